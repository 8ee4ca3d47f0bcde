"""TorchScript models (`.pt`, `.jit`): a zip archive with the code of the model as text below `code/`.

The text names only base operators. `read_script` reads it without PyTorch; `needs_of` then makes the answer, from
the text alone (every overload of a base name) or with the overloads that PyTorch's compiler found for the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import InvalidModel
from opsieve.models import syntax
from opsieve.models.archive import ModelArchive
from opsieve.models.collect import NeedsCollector
from opsieve.models.constants import constant_types
from opsieve.models.mobile import pickled_custom_classes
from opsieve.models.needs import ModelNeeds, Reach, Use
from opsieve.models.overloads import Resolution, ScriptSources
from opsieve.models.script_text import ScriptText, scan
from opsieve.models.torch_facts import foldable_overloads
from opsieve.operators import OperatorName

CODE = "code/"
_CONSTANT = re.compile(r"\bCONSTANTS\.c(\d+)\b")
_REWRITTEN = frozenset(f"quantized::conv{n}d{relu}" for n in (2, 3) for relu in ("", "_relu"))
"""torch.jit.load replaces these by their `.new` overload (rewriteQuantizedConvForBC in import.cpp)."""


@dataclass(frozen=True, slots=True)
class Script:
    """One TorchScript model as its file says it."""

    path: Path
    fingerprint: str
    text: ScriptText
    sources: ScriptSources


def read_script(archive: ModelArchive) -> Script:
    """Read all code of the archive. Raises InvalidModel when it is broken or no TorchScript."""
    version = archive.file_version()
    if version is None:
        raise InvalidModel("the archive does not say which version it is", where=f"{archive.path}: version")
    text = ScriptText()
    constants = constant_types(archive)
    sources: dict[str, str] = {}
    for member in archive.names:
        if member.startswith(CODE) and member.endswith(".py"):
            source = archive.read_text(member)
            qualifier = member.removeprefix(CODE).removesuffix(".py").replace("/", ".")
            scan(source, qualifier, member, f"{archive.path}: {member}", text)
            sources[member] = _CONSTANT.sub(lambda match: _placeholder(match, constants), source)
    if "constants.pkl" in archive:
        text.custom_classes.update(pickled_custom_classes(archive.read("constants.pkl")))
    _resolve_methods(text)
    classes = [name for name, parent in text.classes.items() if parent in ("", "Module")]
    return Script(
        archive.path,
        archive.fingerprint(),
        text,
        ScriptSources(version, sources, classes, text.functions),
    )


def needs_of(script: Script, resolution: Resolution | str | None) -> ModelNeeds:
    """The needs of a model: exact where `resolution` knows the overloads, all overloads of a base name elsewhere."""
    needs = NeedsCollector(script.path, file_version=script.sources.version)
    needs.methods.update(script.text.methods, script.text.functions)
    needs.custom_classes.update(script.text.custom_classes)
    if isinstance(resolution, str):
        needs.notes.append(f"The overloads could not be found with PyTorch: {resolution}")
    compiled = resolution.calls if isinstance(resolution, Resolution) else {}
    for base, use in script.text.calls:
        if use.method not in compiled:
            needs.add_written(base, use, all_overloads=True)
        for folded in foldable_overloads(base):
            needs.add(folded, use)
    if isinstance(resolution, Resolution):
        _add_compiled(needs, script.text, resolution)
        needs.notes.extend(f"PyTorch cannot compile {name}: {why}" for name, why in resolution.failures.items())
    return needs.needs("torchscript", script.fingerprint)


def why_not_compiled(script: Script) -> str | None:
    """Why PyTorch must not be asked about this code; None when it may.

    Compiling evaluates default values and class constants. torch.jit.save only writes literals there, and
    named tuples of them; code that calls something would run it.
    """
    for name, place in script.text.computed:
        if script.text.classes.get(name) != "NamedTuple":
            return f"{place} calls {name} in a default value or class constant, which compiling would execute"
    return None


def _add_compiled(needs: NeedsCollector, text: ScriptText, resolution: Resolution) -> None:
    dispatched = frozenset(resolution.dispatched)
    places: dict[tuple[str, str], list[Use]] = defaultdict(list)
    for base, use in text.calls:
        places[use.method, base].append(use)
    for function, calls in resolution.calls.items():
        for operator, place in calls:
            base = operator.partition(".")[0]
            # PyTorch forgets the line of a few nodes (unpacking, casts); the text knows it.
            uses = [Use(function, place)] if place else places[function, base] or [Use(function, function)]
            reach = Reach.DISPATCHER if operator in dispatched else Reach.INTERPRETER
            for use in uses:
                needs.add(OperatorName.parse(operator), use, reach=reach)
                if operator in _REWRITTEN:
                    needs.add(OperatorName.parse(f"{operator}.new"), use, reach=reach)


def _resolve_methods(text: ScriptText) -> None:
    """Tell the methods of the model's own classes from those of built-in types, which are operators."""
    for name, use in text.attribute_calls:
        if name in syntax.METHODS:
            text.calls.append((syntax.METHODS[name], use))
        elif name not in text.declared and not text.custom_classes:
            # torch.jit.save prints methods of tensors, lists, ... as torch.name(x); this text was written by hand.
            text.calls.append((f"aten::{name}", use))
    if "Enum" in text.classes.values():
        text.calls.extend(
            (syntax.ENUM_ATTRIBUTES[name], use) for name, use in text.attributes if name in syntax.ENUM_ATTRIBUTES
        )


def _placeholder(match: re.Match[str], constants: Mapping[int, str]) -> str:
    kind = constants.get(int(match[1][:9]))
    return f"uninitialized({kind})" if kind else match[0]
