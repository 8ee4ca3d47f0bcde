"""torch.export models (`.pt2`): a zip archive with the graphs as JSON. Schema: torch/_export/serde/schema.py.

`msgspec` decodes only the fields named here and skips the rest (shapes, stack traces), which is most of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec

from opsieve.errors import UnknownOperator
from opsieve.models.archive import ModelArchive
from opsieve.models.collect import NeedsCollector
from opsieve.models.detect import OLD_GRAPH, graph_members
from opsieve.models.needs import ModelNeeds, Reach, Use
from opsieve.operators import OperatorName

NEWEST_SCHEMA = 8
"""The major schema version of PyTorch 2.13.0; minor ones only add fields."""

MAX_OLD_BYTES = 32 << 20

_PREFIX = "torch.ops."
_HIGHER_ORDER = "higher_order"
_COPY = OperatorName("aten", "copy_")


class _CustomObject(msgspec.Struct):
    class_fqn: str


class _Argument(msgspec.Struct):
    as_graph: _GraphArgument | None = None
    as_operator: str | None = None
    as_custom_obj: _CustomObject | None = None
    as_string_to_argument: dict[str, _Argument] | None = None


class _NamedArgument(msgspec.Struct):
    arg: _Argument


class _Node(msgspec.Struct):
    target: str
    inputs: list[_NamedArgument]


class _Graph(msgspec.Struct):
    nodes: list[_Node]
    custom_obj_values: dict[str, _CustomObject] = {}


class _GraphArgument(msgspec.Struct):
    name: str
    graph: _Graph


class _OutputSpecification(msgspec.Struct):
    buffer_mutation: object = None
    parameter_mutation: object = None
    user_input_mutation: object = None


class _Signature(msgspec.Struct):
    output_specs: list[_OutputSpecification]


class _GraphModule(msgspec.Struct):
    graph: _Graph
    signature: _Signature


class _SchemaVersion(msgspec.Struct):
    major: int


class _Program(msgspec.Struct):
    graph_module: _GraphModule
    schema_version: _SchemaVersion


def read_export(archive: ModelArchive) -> ModelNeeds:
    """The operators of every graph of every program in the archive. Raises InvalidModel when one is malformed."""
    needs = NeedsCollector(archive.path)
    for member in graph_members(archive.names):
        program = _decode(archive, member)
        if program.schema_version.major > NEWEST_SCHEMA:
            needs.notes.append(
                f"{member} has schema version {program.schema_version.major}, newer than {NEWEST_SCHEMA}: "
                "operators in fields we do not know would be missed."
            )
        method = "model" if member == OLD_GRAPH else PurePosixPath(member).stem
        _add_graph(archive, needs, program.graph_module.graph, method, member)
        _add_mutations(needs, program.graph_module.signature, method, member)
    return needs.needs("export", archive.fingerprint())


def _decode(archive: ModelArchive, member: str) -> _Program:
    content = archive.read(member)
    try:
        try:
            return msgspec.json.decode(content, type=_Program)
        except msgspec.DecodeError:
            # Old files may hold a bare NaN or Infinity, which only Python itself reads (with ten times the memory).
            if len(content) > MAX_OLD_BYTES or not re.search(rb"[:\[,]\s*-?(?:NaN|Infinity)", content):
                raise
            return msgspec.convert(json.loads(content), _Program)
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise archive.fault(
            f"this is no exported program ({error})", member, expected="the JSON that torch.export.save writes"
        ) from error


def _add_graph(archive: ModelArchive, needs: NeedsCollector, graph: _Graph, method: str, member: str) -> None:
    needs.methods.add(method)
    needs.custom_classes.update(value.class_fqn for value in graph.custom_obj_values.values())
    for number, node in enumerate(graph.nodes):
        use = Use(method, f"{member}:{number}")
        _add_target(archive, needs, node.target, use)
        for argument in _flat(node):
            if argument.as_operator is not None:
                _add_target(archive, needs, argument.as_operator, use)
            if argument.as_custom_obj is not None:
                needs.custom_classes.add(argument.as_custom_obj.class_fqn)
            if argument.as_graph is not None:
                inner = argument.as_graph
                _add_graph(archive, needs, inner.graph, f"{method}.{inner.name}", member)


def _flat(node: _Node) -> Iterator[_Argument]:
    waiting = [named.arg for named in node.inputs]
    while waiting:
        argument = waiting.pop()
        waiting.extend((argument.as_string_to_argument or {}).values())
        yield argument


def _add_target(archive: ModelArchive, needs: NeedsCollector, target: str, use: Use) -> None:
    """Note the operator that a node calls. Other targets are Python functions on sizes (`_operator.mul`)."""
    if not target.startswith(_PREFIX):
        return
    namespace, _, rest = target.removeprefix(_PREFIX).partition(".")
    base, _, overload = rest.partition(".")
    try:
        name = OperatorName.parse(f"{namespace}::{base}.{overload}" if overload else f"{namespace}::{base}")
    except UnknownOperator as error:
        raise archive.fault(error.problem, use.place, expected="torch.ops.<namespace>.<name>.<overload>") from error
    if namespace == _HIGHER_ORDER:  # control flow and the like: Python code, not in the dispatcher
        needs.add(name, use, reach=Reach.INTERPRETER)
    else:
        needs.add(name, use, all_overloads=not overload)


def _add_mutations(needs: NeedsCollector, signature: _Signature, method: str, member: str) -> None:
    """ExportedProgram.module() adds an `aten::copy_` for each input or buffer that the graph only returns anew."""
    for number, output in enumerate(signature.output_specs):
        if output.buffer_mutation or output.parameter_mutation or output.user_input_mutation:
            needs.add(_COPY, Use(method, f"{member}:output {number}"))
