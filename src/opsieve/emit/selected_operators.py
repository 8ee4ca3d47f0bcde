"""`selected_operators.yaml`, as PyTorch's torchgen and ExecuTorch read it.

Keys and their meaning: torchgen/selective_build/selector.py and operator.py. What that schema has no place for
(evidence, fingerprints) stands in `selection.json`.
"""

from __future__ import annotations

from opsieve.graph.scopes import Scope
from opsieve.select.selection import Selection


def selected_operators_yaml(selection: Selection) -> str:
    """The selection as YAML, sorted; the same selection gives the same text."""
    import yaml

    training = bool({Scope.AUTOGRAD, Scope.ALL} & set(selection.scopes))
    operators = {
        str(operator.name): {
            "is_used_for_training": training,
            "is_root_operator": operator.is_root,
            "include_all_overloads": False,
        }
        for operator in (*selection.operators, *selection.missing)
    }
    document = {
        "include_all_operators": False,
        # Dtypes, custom classes and build features are not selected yet: all of them stay.
        "include_all_non_op_selectives": True,
        "operators": operators,
        "kernel_metadata": {},
        "custom_classes": [],
        "build_features": [],
    }
    return yaml.safe_dump(document, sort_keys=True, default_flow_style=False)
