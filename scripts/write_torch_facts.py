"""Write down what reading models has to know of PyTorch, so that it can be done without PyTorch.

    python scripts/write_torch_facts.py > src/opsieve/models/torch_facts.json

Run with the torch that opsieve supports. A functional test runs this script again and compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import torch


def main() -> None:
    """Print the facts as JSON, byte-stable."""
    facts = {
        "torch": torch.__version__.split("+")[0],
        "foldable_operators": foldable_operators(),
        "interpreter_operators": interpreter_operators(),
        "mixed_bases": mixed_bases(),
        "upgraders": upgraders(),
    }
    json.dump(facts, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


def interpreter_operators() -> list[str]:
    """The operators that TorchScript can call but that are not registered with the dispatcher."""
    callable_ones = {_name(schema) for schema in torch._C._jit_get_all_schemas()}
    return sorted(callable_ones - set(torch._C._dispatch_get_all_op_names()))


def foldable_operators() -> list[str]:
    """The dispatcher's operators that take and return no tensor and no list.

    PyTorch evaluates them while it compiles TorchScript, so they are called although no graph shows them.
    """
    registered = set(torch._C._dispatch_get_all_op_names())
    return sorted(
        _name(schema)
        for schema in torch._C._jit_get_all_schemas()
        if _name(schema) in registered
        and schema.returns
        and not any(
            kind in str(argument.type)
            for argument in [*schema.arguments, *schema.returns]
            for kind in ("Tensor", "[", "__torch__", "Any")
        )
    )


def mixed_bases() -> list[str]:
    """The base names with overloads of both kinds, such as aten::add (.int, and .Tensor in the dispatcher)."""
    dispatched = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    return sorted(dispatched & {name.partition(".")[0] for name in interpreter_operators()})


def upgraders() -> dict[str, dict[str, object]]:
    """By operator: the version that changed it, and what PyTorch calls in its place in a file older than that."""
    graphs = torch._C._generate_upgraders_graph()
    return {
        operator: {
            "since": max(entry.bumped_at_version for entry in entries),
            "calls": sorted({name for entry in entries for name in _called(graphs[entry.upgrader_name])}),
        }
        for operator, entries in sorted(torch._C._get_operator_version_map().items())
    }


def _called(block: torch._C.Graph | torch._C.Block) -> Iterator[str]:
    for node in block.nodes():
        schema = node.schema()
        if "::" in schema:
            yield schema.split("(")[0]
        for inner in node.blocks():
            yield from _called(inner)


def _name(schema: torch._C.FunctionSchema) -> str:
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


if __name__ == "__main__":
    main()
