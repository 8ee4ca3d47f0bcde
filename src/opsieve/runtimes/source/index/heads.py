"""What a declaration at namespace scope declares: the text before its `{` or `;`, read without a C++ parser."""

from __future__ import annotations

import re
from typing import NamedTuple

from opsieve.runtimes.source.index.declarators import NOT_A_NAME, before_initialiser, callable_declarator, last_name

MAX_HEAD = 20_000
"""Characters of a declaration; longer ones are tables of data."""

_IN_PARENTHESES = r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_DECLTYPE = re.compile(rf"\bdecltype{_IN_PARENTHESES}")
_ATTRIBUTE = re.compile(
    r"\[\[[^\[\]]*\]\]"
    rf"|\b(?:__attribute__|__declspec|alignas){_IN_PARENTHESES}"
)
_LABEL = re.compile(r"^(?:\s*(?:public|private|protected)\s*:(?!:))+")
_CLASS = re.compile(r"(?:typedef\s+)?(class|struct|union|enum)\b(.*)$", re.DOTALL)
_SCOPED = re.compile(r"^(?:class|struct)\b\s*")
_BASES = re.compile(r"(?<!:):(?!:)")
_MACRO = re.compile(r"[A-Z][A-Z0-9_]+(?:\s*\([^()]*\))?")
_NAMESPACE = re.compile(r"(?:^|\s)namespace\b\s*([\w:\s]*)$")
_LINKAGE = re.compile(r'^\s*extern\s*""\s*')
_TEMPLATE = re.compile(r"template\b\s*(<\s*>)?\s*(<)?")
_DEFAULTED = re.compile(r"\)[\s\w]*=\s*default\s*$")
_SINGLE_COLON = re.compile(r"(?<!:):(?!:)")
_INTERNAL = re.compile(r"\b(?:static|typedef|friend)\b")
_INLINE = re.compile(r"inline|INLINE|\b(?:static|constexpr|consteval|friend|__global__|__device__)\b")
_CONSTANT = re.compile(r"\b(?:const|constexpr)\b")
_NO_DEFINITION = ("using", "typedef", "friend", "static_assert", "namespace")
_CLASS_KEYS = ("class", "struct", "union", "enum")


class Declared(NamedTuple):
    """`kind` as in records.Definition; `name` as written, with scopes and template arguments."""

    kind: str
    name: str
    parameters: str | None
    """As written; None for a variable."""


def plain(text: str) -> str:
    """A head without attributes and access labels."""
    if "decltype" in text:
        text = _DECLTYPE.sub("auto", text)
    if "__" in text or "[[" in text or "alignas" in text:
        text = _ATTRIBUTE.sub(" ", text)
    return _LABEL.sub("", text).strip() if ":" in text else text.strip()


def namespace_name(head: str) -> str | None:
    """The name of the namespace that `head` opens, empty if it has none; None when it opens no namespace."""
    match = _NAMESPACE.search(head)
    return re.sub(r"\binline\b|\s", "", match.group(1)) if match else None


def linkage(head: str) -> tuple[bool, str]:
    """Whether the head begins with `extern "C"`, and what follows it."""
    match = _LINKAGE.match(head)
    return (True, head[match.end() :]) if match else (False, head)


def class_name(head: str) -> str | None:
    """The class whose body opens behind `head`; empty if it is an enumeration or has no name, None if none opens."""
    match = _CLASS.match(_behind_template(head))
    if match is None:
        return None
    name = _BASES.split(match.group(2), maxsplit=1)[0].strip().removesuffix("final").strip()
    is_enumeration = match.group(1) == "enum"
    if is_enumeration:
        name = _SCOPED.sub("", name)
    if not name:
        return ""
    found = last_name(name)
    # Before a class's name there are export macros only: `struct A b {` is a variable, `struct A f() {` a function.
    if found is None or _MACRO.sub("", found[0]).strip():
        return None
    return "" if is_enumeration else found[1]


def is_member_initialiser(head: str) -> bool:
    """Whether a brace behind `head` initialises a member, as in `A::A(int a) : a_{a} {`."""
    end = head.rstrip()
    if not end or not (end[-1].isalnum() or end[-1] in "_>"):
        return False
    parameters = head.find(")")
    return parameters >= 0 and _SINGLE_COLON.search(head, parameters) is not None


def function(head: str) -> Declared | None:
    """The function that `head` begins to define, None when it defines none that another file can refer to."""
    found = callable_declarator(head)
    if found is None or _INTERNAL.search(found.before):
        return None
    template = _TEMPLATE.match(head)
    kind = "template function" if template and template.group(2) else "function"
    return Declared(kind, found.name, found.parameters)


def is_inline(head: str) -> bool:
    """Whether every file that sees this function has its own copy, or it is a template."""
    return head.startswith("template") or _INLINE.search(head, 0, max(head.find("("), 0)) is not None


def statement(head: str) -> Declared | None:
    """What a statement defines that others can refer to: a variable, an instantiation, or a function by `= default`."""
    if _DEFAULTED.search(head):
        return function(head)
    declarator = before_initialiser(head)
    template = _TEMPLATE.match(declarator)
    if template and not template.group(1):
        return None if template.group(2) else _instantiation(declarator[template.end() :])
    if declarator.startswith(_NO_DEFINITION) or (declarator.startswith("extern") and declarator == head.strip()):
        return None
    return _variable(declarator)


def _variable(declarator: str) -> Declared | None:
    found = callable_declarator(declarator)
    if found is not None:
        # `Type Class::member(initialiser)`, or the declaration of a function: only the kind of symbol can tell.
        declared = Declared("possible variable", found.name, found.parameters)
        before = found.before
    else:
        last = last_name(declarator)
        if last is None or last[1] in NOT_A_NAME:
            return None
        before, declared = last[0], Declared("variable", last[1], None)
    if before.strip() in ("", *_CLASS_KEYS) or _INTERNAL.search(before):
        return None
    external = "::" in declared.name or "*" in before or declarator.startswith("extern")
    if _CONSTANT.search(before) and not external:
        # A constant is local to its file unless a header declares it `extern`.
        return Declared("possible variable", declared.name, declared.parameters)
    return declared


def _instantiation(text: str) -> Declared | None:
    text = text.strip()
    match = _CLASS.match(text)
    found = None if match else callable_declarator(text)
    if found is not None:
        return Declared("instantiation", found.name, found.parameters)
    last = last_name(match.group(2) if match else text)
    return Declared("class instantiation" if match else "instantiation", last[1], None) if last else None


def _behind_template(head: str) -> str:
    """A head without its `template <...>`."""
    while head.startswith("template"):
        depth = 0
        for match in re.finditer(r"->|[<>]", head):
            depth += {"<": 1, ">": -1}.get(match.group(), 0)
            if depth == 0:
                head = head[match.end() :].lstrip()
                break
        else:
            return head
    return head
