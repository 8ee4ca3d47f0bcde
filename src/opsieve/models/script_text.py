"""The text of TorchScript code, scanned for what it calls.

A scanner over tokens instead of Python's `ast`, because TorchScript is not quite Python (its names may be Python
keywords), because its files come in any size and depth (`ast` takes 200 bytes of memory per byte of text and
gives up on deep nesting), and because `ast` is five times slower. The scanner keeps nothing but open brackets.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field

from opsieve.errors import InvalidModel
from opsieve.models import syntax
from opsieve.models.mobile import custom_classes
from opsieve.models.needs import Use

_TOKEN = re.compile(
    r"""[ \t]*(?:
      (?P<name> [A-Za-z_]\w* (?:\.[A-Za-z_]\w*)* )
    | (?P<attribute> (?:\.[A-Za-z_]\w*)+ )
    | (?P<number> \.?\d[\w.]* (?:(?<=[eE])[-+]\d+)? )
    | (?P<string> \"{3}(?:[^\\]|\\.)*?\"{3} | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<newline> \n[ \t]* )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<operator> -> | \*\* | // | << | >> | [-+*/=!<>]= | [-+*/%@&|^~<>=,:;] )
    | (?P<comment> \#[^\n]* | \\\n )
    | (?P<bad> . )
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_KEYWORDS = frozenset(keyword.kwlist) - {"True", "False", "None"}
"""No printed variable has such a name (reserved_names in python_print.cpp), though an attribute may."""

_OPERANDS = ("name", "attribute", "number", "string", "close")
_OPENING = {")": "(", "]": "[", "}": "{"}
_CLASS = re.compile(r"class +(\w+)(?:\((\w*)\))?:", re.ASCII)
_FUNCTION = re.compile(r"def +(\w+) *\(", re.ASCII)
_CONVERSION = re.compile(r"\(\s*(\w+)\s*,")
_CONSTANT_INDEX = re.compile(r"\s*-?\d+\s*")
_ASSIGNED = re.compile(r" *=(?!=)")
_LITERAL = re.compile(r" *(?:\.?\d|inf|nan)")
_SPECIAL_FORMS = ("annotate", "uninitialized", "unchecked_cast")
_TYPE_LEVEL = (*syntax.TYPES, "__annotations__")
_CALL = re.compile(r"[ \t]*\(")
_BEFORE_GROUP = ("and", "else", "if", "in", "is", "not", "or")
"""A bracket after one of these keywords groups an expression; after any other token but an operator it is a call."""

MAX_FINDINGS = 1_000_000
"""Calls and attributes in all code of a model, which keeps the memory they take bounded."""

MAX_OPEN_BRACKETS = 10_000
"""Printed code has a few dozen; PyTorch's own parser would end in a stack overflow well before this."""


@dataclass(slots=True)
class ScriptText:
    """What the code of one model says, over all its files."""

    calls: list[tuple[str, Use]] = field(default_factory=list)
    """Base names of operators, each with its place."""

    methods: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    classes: dict[str, str] = field(default_factory=dict)
    """Qualified name -> what it inherits from: `Module`, `NamedTuple`, `Interface`, `Enum`, ..., or nothing."""

    declared: set[str] = field(default_factory=set)
    """The bare names of all methods, those of interfaces included."""

    custom_classes: set[str] = field(default_factory=set)
    attributes: list[tuple[str, Use]] = field(default_factory=list)
    """`(x).name`, read and not called."""

    attribute_calls: list[tuple[str, Use]] = field(default_factory=list)
    """`x.name(...)`: a method of a class in the file, or of a built-in type."""

    computed: list[tuple[str, str]] = field(default_factory=list)
    """Calls outside of bodies (default values, class constants) and their place: compiling would run them."""

    @property
    def findings(self) -> int:
        """How much has been found."""
        return len(self.calls) + len(self.attributes) + len(self.attribute_calls) + len(self.computed)


def scan(text: str, qualifier: str, member: str, where: str, into: ScriptText) -> None:
    """Add what `text` says to `into`. `qualifier` is the dotted name of the file, `member` its name in the archive.

    Raises InvalidModel, with `where` and the line, for text that TorchScript's own lexer would not accept.
    """
    _Scanner(text.rstrip(), qualifier, member, where, into).run()


@dataclass(slots=True)
class _Bracket:
    character: str
    position: int
    line: int
    is_index: bool
    of_expression: bool
    has_parts: bool = False


class _Scanner:
    """The state while one file is scanned: the line, the enclosing class and function, the open brackets."""

    def __init__(self, text: str, qualifier: str, member: str, where: str, into: ScriptText) -> None:
        self.text = text
        self.qualifier = qualifier
        self.member = member
        self.where = where
        self.into = into
        self.line = 1
        self.indent = 0
        self.class_name = ""
        self.function = ""
        self.function_indent = 0
        self.in_header = False
        self.in_loop_header = False
        self.brackets: list[_Bracket] = []
        self.previous = ""  # the kind of the token before
        self.previous_text = ""

    def run(self) -> None:
        handlers = {
            "name": self.on_name,
            "attribute": self.on_attribute,
            "operator": self.on_operator,
            "open": self.on_open,
            "close": self.on_close,
            "bad": self.on_bad,
        }
        new_statement = True
        for match in _TOKEN.finditer(self.text):
            kind = str(match.lastgroup)
            if kind in ("newline", "comment"):
                self.line += match[kind].count("\n")
                if kind == "newline" and not self.brackets:
                    new_statement, self.indent = True, len(match[kind]) - 1
                continue
            if new_statement:
                self.begin_statement(match.start(kind))
                new_statement = False
            token = match[kind]
            if kind in handlers:
                handlers[kind](token, match.end())
            elif kind == "string":
                self.line += token.count("\n")
            if self.previous_text in ("def", "class"):
                kind = "definition"
            self.previous = "keyword" if token in _KEYWORDS else kind
            self.previous_text = token
        if self.brackets:
            raise self.fault(f"the {self.brackets[-1].character!r} of line {self.brackets[-1].line} is not closed")

    def begin_statement(self, position: int) -> None:
        self.previous = self.previous_text = ""
        self.in_header = False
        self.in_loop_header = self.text.startswith("for ", position)
        if self.indent <= self.function_indent:
            self.function = ""
        if self.indent == 0:
            self.class_name = ""
        if header := _CLASS.match(self.text, position):
            self.class_name = f"{self.qualifier}.{header[1]}"
            if self.class_name in self.into.classes:
                raise self.fault(f"class {header[1]} is defined twice")
            self.into.classes[self.class_name] = header[2] or ""
        elif header := _FUNCTION.match(self.text, position):
            self.in_header = True
            if not self.function:  # one that is defined inside of another (for `fork`) counts as a part of that one
                self.begin_function(header[1])

    def begin_function(self, name: str) -> None:
        self.function = f"{self.class_name or self.qualifier}.{name}"
        self.function_indent = self.indent
        if not self.class_name:
            self.into.functions.append(self.function)
            return
        self.into.declared.add(name)
        if self.into.classes[self.class_name] not in syntax.INTERFACES:
            self.into.methods.append(self.function)

    def on_name(self, token: str, end: int) -> None:
        first, *rest = token.split(".")
        is_call = _CALL.match(self.text, end) is not None and self.previous_text not in ("def", "class")
        if token in _KEYWORDS:
            self.on_keyword(token)
        elif first == "torch" and rest:
            self.add(f"aten::{rest[-1]}")  # torch.autograd.grad is aten::grad
        elif first == "ops" and len(rest) == 2:
            self.add(f"{rest[0]}::{rest[1]}")
        elif first == "__torch__":
            self.into.custom_classes.update(custom_classes(token))
        elif is_call and rest:
            self.into.attribute_calls.append((rest[-1], self.use()))
        elif is_call:
            self.on_function_call(token, end)

    def on_keyword(self, token: str) -> None:
        if token == "in" and self.in_loop_header:
            self.in_loop_header = False
        else:
            self.add(*syntax.BINARY.get(token, ()), *syntax.UNARY.get(token, ()))

    def on_function_call(self, token: str, end: int) -> None:
        self.add(*syntax.FUNCTIONS.get(token, ()))
        if token == "annotate" and (conversion := _CONVERSION.match(self.text, end)):
            self.add(*syntax.CONVERSIONS.get(conversion[1], ()))

    def on_attribute(self, token: str, end: int) -> None:
        name = token.rpartition(".")[2]
        if _CALL.match(self.text, end):
            self.into.attribute_calls.append((name, self.use()))
        else:
            self.into.attributes.append((name, self.use()))

    def on_operator(self, token: str, end: int) -> None:
        if token in ",:" and self.brackets:
            self.brackets[-1].has_parts = True
        if token == "=" and self.previous_text == ",":
            self.add(*syntax.UNPACKED)
        elif self.previous in _OPERANDS:
            self.add(*syntax.BINARY.get(token, ()), *syntax.IN_PLACE.get(token, ()))
        elif not _LITERAL.match(self.text, end):
            self.add(*syntax.UNARY.get(token, ()))

    def on_open(self, token: str, end: int) -> None:
        if len(self.brackets) >= MAX_OPEN_BRACKETS:
            raise self.fault(f"more than {MAX_OPEN_BRACKETS} brackets are open")
        outside_of_body = self.in_header or not self.function
        if token == "(" and outside_of_body and self.is_callable() and self.previous_text not in _SPECIAL_FORMS:
            self.into.computed.append((self.previous_text, self.use().place))
        of_type = self.previous == "name" and self.previous_text.rpartition(".")[2] in _TYPE_LEVEL
        is_index = token == "[" and self.previous in _OPERANDS and not of_type
        self.brackets.append(_Bracket(token, end, self.line, is_index, self.previous == "close"))

    def is_callable(self) -> bool:
        """True when a bracket that opens here calls what stands before it."""
        return self.previous in _OPERANDS or (self.previous == "keyword" and self.previous_text not in _BEFORE_GROUP)

    def on_close(self, token: str, end: int) -> None:
        if not self.brackets or self.brackets[-1].character != _OPENING[token]:
            raise self.fault(f"{token!r} closes nothing")
        bracket = self.brackets.pop()
        if not bracket.is_index:
            return
        if bracket.has_parts:
            self.add(*syntax.TENSOR_INDEX)
        if _ASSIGNED.match(self.text, end):
            self.add(*syntax.INDEX_ASSIGNED)
        else:
            self.add(*syntax.INDEX)
            constant = _CONSTANT_INDEX.fullmatch(self.text, bracket.position, end - 1)
            if constant and bracket.of_expression:  # python_print.cpp puts tuples, and only them, always in brackets
                self.add(*syntax.CONSTANT_INDEX)

    def on_bad(self, token: str, end: int) -> None:
        raise self.fault(f"{token!r} has no place in TorchScript")

    def add(self, *operators: str) -> None:
        for operator in operators:
            self.into.calls.append((operator, self.use()))

    def use(self) -> Use:
        if self.into.findings > MAX_FINDINGS:
            raise self.fault(f"the code makes more than {MAX_FINDINGS} calls")
        return Use(self.function or self.class_name or self.qualifier, f"{self.member}:{self.line}")

    def fault(self, problem: str) -> InvalidModel:
        return InvalidModel(
            f"this is no TorchScript: {problem}",
            where=f"{self.where}:{self.line}",
            remedy="get the file again, or save the model again",
        )
