import pytest

from opsieve.verify.outcome import Leaf, Outcome, OutcomeKind, Verdict, compare, differ_in_bytes_only
from tests.unit.verify.examples import crash, error, results

LEFT_OUT = "aten::relu is not in this build of PyTorch, which opsieve made. To add it: --op aten::relu"


@pytest.mark.parametrize(
    "outcome", [results("a", "b"), error("bad shape"), crash("signal SIGFPE"), Outcome(OutcomeKind.RESULTS)]
)
def test_the_same_outcome_is_identical(outcome):
    assert compare(outcome, outcome) == (Verdict.IDENTICAL, "")


@pytest.mark.parametrize(
    ("stock", "slim", "told"),
    [
        (results("a", "b"), results("a", "c"), "call 2: result (float32 (2,) strides (1,)) has other bytes"),
        (results("a"), results("a", form="float64 (2,) strides (1,)"), "float64"),
        (results("a"), error("odd"), "stock returned from 1 calls, slim raised builtins.RuntimeError: odd in call 1"),
        (error("odd"), results("a"), "stock raised builtins.RuntimeError: odd in call 1, slim returned"),
        (error("odd"), error("even"), "another text: stock 'odd', slim 'even'"),
        (error("odd"), error("odd", kind="builtins.ValueError"), "slim builtins.ValueError: odd"),
        (error("odd"), error("odd", stage="load"), "in load"),
        (crash("signal SIGFPE"), results("a"), "stock crashed (signal SIGFPE), slim returned"),
    ],
)
def test_a_difference_says_what_differs(stock, slim, told):
    verdict, reason = compare(stock, slim)
    assert verdict is Verdict.DIFFERENT
    assert told in reason


def test_another_structure_is_a_difference():
    one = Outcome(OutcomeKind.RESULTS, calls=((Leaf("", "tuple of 1", ""), Leaf("[0]", "int 1", "")),))
    two = Outcome(OutcomeKind.RESULTS, calls=((Leaf("", "int 1", ""),),))
    assert compare(one, two)[0] is Verdict.DIFFERENT
    assert "another structure" in compare(one, two)[1]
    assert (
        "result[0] is int 1 in stock, int 2 in slim"
        in compare(one, Outcome(OutcomeKind.RESULTS, calls=((one.calls[0][0], Leaf("[0]", "int 2", "")),)))[1]
    )


def test_an_operator_that_was_left_out_is_called_so_with_the_way_to_add_it():
    verdict, reason = compare(results("a"), error(LEFT_OUT))
    assert verdict is Verdict.LEFT_OUT
    assert "--op aten::relu" in reason
    assert compare(error("bad shape"), error(LEFT_OUT))[0] is Verdict.LEFT_OUT


def test_a_crash_keeps_its_last_words():
    verdict, reason = compare(results("a"), crash("exit status 86", "opsieve: libtorch_cpu.so: removed code"))
    assert verdict is Verdict.CRASHED
    assert reason == "exit status 86: opsieve: libtorch_cpu.so: removed code"


def test_both_crashing_alike_is_identical_whatever_they_said():
    assert compare(crash("signal SIGFPE", "pid 1"), crash("signal SIGFPE", "pid 2"))[0] is Verdict.IDENTICAL
    assert compare(crash("signal SIGFPE"), crash("signal SIGSEGV"))[0] is Verdict.CRASHED


def test_only_bytes_may_be_unstable():
    assert differ_in_bytes_only(results("a"), results("b"))
    assert not differ_in_bytes_only(results("a"), results("a"))
    assert not differ_in_bytes_only(results("a"), results("b", form="float64 (2,) strides (1,)"))
    assert not differ_in_bytes_only(results("a"), results("b", "b"))
    assert not differ_in_bytes_only(results("a"), error("odd"))


def test_a_long_reason_is_cut_in_the_middle():
    reason = compare(results("a"), error("trace " * 5000 + "what is really said"))[1]
    assert len(reason) == 1003
    assert reason.startswith("stock returned from 1 calls, slim raised")
    assert "what is really said" in reason


def test_of_a_left_out_operator_only_the_message_is_told():
    trace = "Traceback of TorchScript (most recent call last):\n" + "  File code\n" * 500
    assert compare(results("a"), error(f"{trace}RuntimeError: {LEFT_OUT}\n")) == (
        Verdict.LEFT_OUT,
        f"call 1: RuntimeError: {LEFT_OUT}",
    )
