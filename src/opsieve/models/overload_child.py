"""Runs in a child process with PyTorch: compiles TorchScript code and says which overload each call means.

Nothing of the model runs and no weight is there. The archive that PyTorch gets holds the code of the model and one
object of a class of ours, whose attributes have the model's classes as their optional types and are all None.
To know its type, PyTorch compiles the methods of every one of these classes.
Speaks JSON on standard input and output (see overloads.py); imports nothing of opsieve, so that any interpreter
with PyTorch can run it.
"""

from __future__ import annotations

import io
import json
import re
import resource
import sys
import time
import zipfile
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ROOT_MODULE = "opsieve_roots"
MAX_MESSAGE = 400
_PLACE = re.compile(r'File "(code/[^"]+)", line (\d+)')


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory_bytes"], request["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import torch

    dispatched = frozenset(torch._C._dispatch_get_all_op_names())
    deadline = time.monotonic() + request["seconds"]
    json.dump([resolve(torch, model, dispatched, deadline) for model in request["models"]], sys.stdout)


def resolve(torch: ModuleType, model: dict[str, Any], dispatched: frozenset[str], deadline: float) -> dict[str, Any]:
    """Compile everything at once; if that fails, each class and function alone, to keep what does compile."""
    types, functions = model["classes"], model["functions"]
    calls, failure = compile_roots(torch, model, types, functions)
    failures = {}
    if failure:
        for name in [*types, *functions]:
            if time.monotonic() > deadline:
                failures[name] = "no time left to compile it alone"
                continue
            alone = ([name], []) if name in types else ([], [name])
            found, failure = compile_roots(torch, model, *alone)
            calls.update(found)
            if failure:
                failures[name] = failure
    used = {operator for function in calls.values() for operator, _ in function}
    return {"calls": calls, "failures": failures, "dispatched": sorted(used & dispatched)}


def compile_roots(
    torch: ModuleType, model: dict[str, Any], types: list[str], functions: list[str]
) -> tuple[dict[str, list[tuple[str, str]]], str]:
    """The operator calls of every function that got compiled, by qualified name, and what went wrong if anything."""
    unit = torch._C.CompilationUnit()
    archive = archive_of(model, types, functions)
    try:
        torch._C.import_ir_module_from_buffer(unit, archive, None, {}, False)
    except RuntimeError as error:
        return {}, str(error).strip()[:MAX_MESSAGE]
    prefix = f"__torch__.{ROOT_MODULE}."
    compiled = {function.qualified_name: function for function in unit.get_functions()}
    return {
        name: sorted(set(calls_in(function.graph)))
        for name, function in compiled.items()
        if not name.startswith(prefix)
    }, ""


def calls_in(block: torch._C.Graph | torch._C.Block) -> Iterator[tuple[str, str]]:
    """Every operator call in a graph, those of its blocks and subgraphs included, with its place."""
    for node in block.nodes():
        schema = node.schema()
        if "(" in schema and "::" in schema.partition("(")[0]:
            places = _PLACE.findall(node.sourceRange())
            yield schema.partition("(")[0], ":".join(places[-1]) if places else ""
        for inner in node.blocks():
            yield from calls_in(inner)
        for attribute in node.attributeNames():
            if node.kindOf(attribute) == "g":
                yield from calls_in(node.g(attribute))


def archive_of(model: dict[str, Any], types: list[str], functions: list[str]) -> bytes:
    """A TorchScript archive with the model's code and one object whose type mentions all of `types`."""
    attributes = [f"  a{number} : Optional[{name}]\n" for number, name in enumerate(types)]
    uses = [f"    f{number} = {name}\n" for number, name in enumerate(functions)]
    root = (
        "class Roots(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
        + "".join(attributes)
        + f"  def uses(self: __torch__.{ROOT_MODULE}.Roots) -> NoneType:\n"
        + "".join(uses)
        + "    return None\n"
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for member, text in {**model["sources"], f"code/__torch__/{ROOT_MODULE}.py": root}.items():
            archive.writestr(f"model/{member}", text)
        archive.writestr("model/data.pkl", pickled_root(len(types)))
        archive.writestr("model/constants.pkl", b"\x80\x02).")
        archive.writestr("model/version", str(model["version"]))
        archive.writestr("model/byteorder", sys.byteorder)
    return content.getvalue()


def pickled_root(attributes: int) -> bytes:
    """The pickle of a Roots object whose attributes are all None."""
    names = [f"a{number}".encode() for number in range(attributes)]
    items = b"".join(b"X" + len(name).to_bytes(4, "little") + name + b"N" for name in names)
    return b"\x80\x02c__torch__." + ROOT_MODULE.encode() + b"\nRoots\n)\x81}(" + items + b"ub."


if __name__ == "__main__":
    main()
