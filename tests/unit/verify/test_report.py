import json

import pytest

from opsieve.cli.verify import print_report
from opsieve.verify.outcome import Verdict, compare
from opsieve.verify.report import Comparison, VerifyReport
from opsieve.verify.settings import UNUSUAL
from tests.unit.verify.examples import crash, error, results, variation

LEFT_OUT = error("aten::relu is not in this build, which opsieve made. build again with: --op aten::relu")


def report(*pairs, verdict=None):
    comparisons = []
    for number, (stock, slim) in enumerate(pairs):
        found, reason = compare(stock, slim)
        comparisons.append(Comparison(variation(number, f"batch {number}"), stock, slim, verdict or found, reason))
    return VerifyReport("2.13.0+cpu", "2.13.0+cpu.opsieve.habc", tuple(comparisons))


@pytest.mark.parametrize(
    ("slim", "identical"), [(results("a"), True), (results("b"), False), (LEFT_OUT, False), (crash("x"), False)]
)
def test_one_difference_is_enough(slim, identical):
    assert report((results("a"), results("a")), (results("a"), slim)).identical is identical


def test_what_stock_does_not_repeat_is_not_held_against_slim():
    assert report((results("a"), results("b")), verdict=Verdict.UNSTABLE).identical


def test_differences_with_the_same_reason_stand_together():
    found = report((results("a"), LEFT_OUT), (results("a"), results("b")), (results("a"), LEFT_OUT))
    (model,) = found.models
    assert found.counts(model) == {Verdict.LEFT_OUT: 2, Verdict.DIFFERENT: 1}
    grouped = found.differences(model)
    assert [len(variations) for variations in grouped.values()] == [2, 1]


def test_json_holds_every_variation_and_outcomes_only_where_they_differ():
    told = json.loads(json.dumps(report((results("a"), results("a")), (results("a"), LEFT_OUT)).to_json()))
    same, other = told["models"][0]["variations"]
    assert told["identical"] is False
    assert told["models"][0]["counts"] == {"identical": 1, "left out": 1}
    assert same == {"inputs": "batch 0", "settings": other["settings"], "verdict": "identical"}
    assert other["slim"]["text"] == LEFT_OUT.text
    assert other["stock"]["calls"][0][0]["digest"] == "a"


def test_the_printed_report_fits_80_columns_and_names_each_reason_once(capsys):
    crashed = crash("exit status 86", "opsieve: libtorch_cpu.so: removed\n  function: " + "at::native::f " * 20)
    print_report(report(*[(results("a"), LEFT_OUT)] * 9, (results("a"), crashed), (results("a"), results("a"))))
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert printed.count("--op aten::relu") == 1
    assert "left out in 9 variations" in printed
    assert "exit status 86" in printed
    assert printed.rstrip().endswith("NOT identical.")


def test_an_identical_report_says_so(capsys):
    print_report(report((results("a"), results("a"))))
    assert "bit for bit" in capsys.readouterr().out


def test_settings_are_told_when_few_variations_differ(capsys):
    one = Comparison(variation(0, "batch 3", UNUSUAL), results("a"), results("b"), Verdict.DIFFERENT, "bytes")
    print_report(VerifyReport("1", "2", (one,)))
    assert "batch 3; 1 thread, inference_mode, mkldnn off" in capsys.readouterr().out
