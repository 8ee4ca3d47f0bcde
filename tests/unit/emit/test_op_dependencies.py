from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import networkx as nx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opsieve.emit.op_dependencies import dependencies_dot, dependencies_yaml
from opsieve.graph.dependencies import find_dependencies
from opsieve.graph.scopes import parse_scopes
from tests.unit.native import Compiler, fake_torch, op_graph_of

names = st.sampled_from(
    ["aten::add.Tensor", "aten::add", "aten::_to_copy", "prim::If", "no::no", "aten::__and__.Tensor"]
)
needs_of_operators = st.dictionaries(names, st.sets(names, max_size=4))


def load_op_dep_graph(text: str) -> dict[str, set[str]]:
    """As tools/code_analyzer/gen_op_registration_allowlist.py of PyTorch 1.x read the file."""
    result = defaultdict(set)
    for op in yaml.safe_load(text) or []:
        op_name = op["name"]
        for dep in op.get("depends", []):
            result[op_name].add(dep["name"])
    return dict(result)


def gen_transitive_closure(dep_graph: dict[str, set[str]], root_ops: list[str]) -> list[str]:
    """From the same file."""
    result = set(root_ops)
    queue = root_ops[:]
    while queue:
        cur = queue.pop()
        for dep in dep_graph.get(cur, []):
            if dep not in result:
                result.add(dep)
                queue.append(dep)
    return sorted(result)


@given(needs_of_operators)
def test_the_old_reader_reads_what_was_written(needs: dict[str, set[str]]) -> None:
    text = dependencies_yaml(needs)
    assert load_op_dep_graph(text) == {name: found for name, found in needs.items() if found}
    assert [operator["name"] for operator in yaml.safe_load(text) or []] == sorted(needs)


@given(needs_of_operators)
def test_the_order_does_not_matter(needs: dict[str, set[str]]) -> None:
    backwards = {name: sorted(needs[name], reverse=True) for name in sorted(needs, reverse=True)}
    assert dependencies_yaml(backwards) == dependencies_yaml(needs)
    assert dependencies_dot(backwards) == dependencies_dot(needs)


def test_the_old_closure_is_the_closure(compiler: Compiler) -> None:
    found = find_dependencies(op_graph_of(fake_torch(compiler)), parse_scopes(()))
    text = dependencies_yaml({name: found.direct(name) for name in found.graph.operators})
    for root in found.graph.operators:
        old = gen_transitive_closure(load_op_dep_graph(text), [root, *sorted(found.always)])
        assert old == sorted(found.closure([root]))


def test_an_example() -> None:
    assert dependencies_yaml({"b::b": ["a::a.out", "a::a"], "a::a": []}) == (
        "- name: a::a\n- name: b::b\n  depends:\n  - name: a::a\n  - name: a::a.out\n"
    )


def edges_of(dot: str) -> list[tuple[Any, ...]]:
    return re.findall(r'^  "([^"]+)" -> "([^"]+)";$', dot, re.MULTILINE)


@given(needs_of_operators)
def test_the_drawing_has_every_edge(needs: dict[str, set[str]]) -> None:
    dot = dependencies_dot(needs)
    assert dot.startswith("digraph operators {\n")
    assert dot.endswith("}\n")
    edges = edges_of(dot)
    assert set(nx.DiGraph(edges).edges) == {(a, b) for a, found in needs.items() for b in found}
    assert len(dot.splitlines()) == len(edges) + 2


@pytest.mark.parametrize("write", [dependencies_yaml, dependencies_dot])
def test_no_operators_give_an_empty_file(write: Any) -> None:
    assert edges_of(write({})) == []
    assert load_op_dep_graph(dependencies_yaml({})) == {}
