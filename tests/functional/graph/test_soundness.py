"""Everything that torch's own test data dispatches must be in the graph: 0 edges outside.

About five minutes on two idle cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.functional.truth.observations import Edge, Observations
from tests.functional.truth.op_db_calls import MODES
from tests.functional.truth.soundness import Judge

pytestmark = [pytest.mark.torch, pytest.mark.slow]

# Fewer means that the test data was not run, so that nothing could have lain outside.
AT_LEAST_EDGES = {
    "dense": 3000,
    "grad": 1800,
    "backward": 3000,
    "sparse": 2800,
    "quantized": 1800,
    "mkldnn": 1000,
    "nested": 1000,
    "views": 2500,
    "schemas": 8000,
}
# Its kernel calls a virtual method of an object that autograd installs at start-up (VariableHooksInterface), which
# dispatches this operator. Every runtime keeps it.
THROUGH_VARIABLE_HOOKS = {("aten::set_data", "aten::_has_compatible_shallow_copy_type")}


@pytest.mark.parametrize("mode", [*MODES, "schemas"])
def test_no_observed_dispatch_lies_outside_the_graph(
    observed: Callable[[str], Observations], judge: Judge, mode: str, record_property: Callable[[str, object], None]
) -> None:
    verdict = judge.judge(observed(mode))
    record_property("edges", verdict.edges)
    record_property("precision", round(verdict.precision, 2))
    assert verdict.outside == ()
    assert {(edge.parent, edge.child) for edge in verdict.kept_anyway} <= THROUGH_VARIABLE_HOOKS
    assert verdict.edges > AT_LEAST_EDGES[mode]


@pytest.mark.parametrize("mode", [*MODES, "schemas"])
def test_every_observed_operator_is_known(observed: Callable[[str], Observations], judge: Judge, mode: str) -> None:
    assert judge.unknown(observed(mode)) == set()


def test_the_graph_is_not_sound_by_holding_everything(observed: Callable[[str], Observations], judge: Judge) -> None:
    assert 1 <= judge.judge(observed("dense")).precision < 3


def test_an_edge_that_the_graph_lacks_is_found(observed: Callable[[str], Observations], judge: Judge) -> None:
    impossible = Edge("aten::relu", "aten::lstm.input", ())
    observations = observed("dense")
    changed = replace(observations, edges={**observations.edges, impossible: 1})
    assert judge.judge(changed).outside == (impossible,)
