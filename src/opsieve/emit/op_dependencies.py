"""Operator dependencies as text: the YAML of PyTorch's old code analyzer, and Graphviz.

The YAML is a list of `{name, depends: [{name}]}`, as tools/code_analyzer/gen_op_registration_allowlist.py reads it;
operators without dependencies have no `depends`. Names carry their overload, which the old files had lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def dependencies_yaml(needs: Mapping[str, Collection[str]]) -> str:
    """All operators, sorted."""
    lines = []
    for name in sorted(needs):
        lines.append(f"- name: {name}\n")
        if needs[name]:
            lines.append("  depends:\n")
            lines.extend(f"  - name: {needed}\n" for needed in sorted(needs[name]))
    return "".join(lines)


def dependencies_dot(needs: Mapping[str, Collection[str]]) -> str:
    """A directed graph; operators without any edge are left out."""
    edges = (f'  "{name}" -> "{needed}";\n' for name in sorted(needs) for needed in sorted(needs[name]))
    return "".join(["digraph operators {\n", *edges, "}\n"])
