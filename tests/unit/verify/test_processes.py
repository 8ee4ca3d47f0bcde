import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import MissingInstallation
from opsieve.installed import ChildFailed
from opsieve.verify import child_process
from opsieve.verify.child_process import Runtime
from opsieve.verify.outcome import OutcomeKind
from opsieve.verify.processes import AT_EXIT, AT_START, ask, run_variations
from opsieve.verify.settings import USUAL, Processor
from tests.unit.verify.examples import variation

STOCK = Runtime(Path(sys.executable), Path("/site/torch"), environment={"FAKE_TORCH": "/site/torch"})


@pytest.fixture(autouse=True)
def fake_child(monkeypatch):
    monkeypatch.setattr(child_process, "SCRIPT", Path(__file__).parent / "fake_child.py")


def runs(*inputs):
    tried = [variation(number) for number in range(len(inputs))]
    return [replace(v, inputs=replace(v.inputs, file=file)) for v, file in zip(tried, inputs, strict=True)]


def outcomes(*inputs, seconds=60.0, runtime=STOCK):
    counted = []
    found = run_variations(runtime, runs(*inputs), seconds=seconds, finished=counted.append)
    assert sorted(found) == list(range(len(inputs)))
    assert sum(counted) == len(inputs), "progress must reach its total, crashes included"
    return [found[number] for number in range(len(inputs))]


def test_a_crash_costs_one_variation():
    before, crashed, after, last = outcomes("fine", "segfault", "fine", "segfault")
    assert before.kind is after.kind is OutcomeKind.ERROR
    assert crashed.kind is last.kind is OutcomeKind.CRASH
    assert crashed.error == "signal SIGSEGV"


def test_the_last_words_of_the_guard_are_kept_without_what_was_said_before():
    (crashed,) = outcomes("guard")
    assert crashed.error == "exit status 86"
    assert crashed.text == "opsieve: libx.so: removed code\n  function: f"


def test_a_hanging_variation_is_ended_and_the_next_one_runs():
    hung, after = outcomes("hang", "fine", seconds=2)
    assert hung.kind is OutcomeKind.CRASH
    assert "no answer within 2 seconds" in hung.error
    assert after.kind is OutcomeKind.ERROR


def test_a_model_that_ends_the_process_quietly_is_a_crash_too():
    left, after = outcomes("leave", "fine")
    assert (left.kind, left.error) == (OutcomeKind.CRASH, "exit status 0")
    assert after.kind is OutcomeKind.ERROR


def test_garbage_in_the_middle_is_a_crash_of_that_variation():
    garbled, after = outcomes("garbage", "fine")
    assert garbled.kind is OutcomeKind.CRASH
    assert after.kind is OutcomeKind.ERROR


def test_each_processor_has_its_own_process_with_its_own_switches():
    tried = [
        replace(v, settings=replace(USUAL, processor=processor))
        for v, processor in zip(runs("", "", ""), Processor, strict=True)
    ]
    found = run_variations(STOCK, tried, seconds=60, finished=lambda amount: None)
    assert [found[number].text for number in range(3)] == ["native", "avx2", "default"]


def test_a_child_that_never_begins_crashes_in_all_variations_and_is_not_started_again():
    found = outcomes("fine", "fine", runtime=replace(STOCK, environment={**STOCK.environment, "FAKE_IMPORT": "fails"}))
    assert [(o.kind, o.stage, o.error) for o in found] == [(OutcomeKind.CRASH, AT_START, "exit status 1")] * 2
    assert "no torch" in found[0].text


def test_a_bad_end_after_the_last_variation_is_a_crash_of_the_last():
    first, last = outcomes("fine", "fine", runtime=replace(STOCK, environment={**STOCK.environment, "FAKE_EXIT": "1"}))
    assert first.kind is OutcomeKind.ERROR
    assert (last.kind, last.stage, last.error) == (OutcomeKind.CRASH, AT_EXIT, "exit status 3")


def test_a_question_to_a_child_that_fails_is_a_fault():
    with pytest.raises(ChildFailed, match="no torch"):
        ask(replace(STOCK, environment={**STOCK.environment, "FAKE_IMPORT": "fails"}), {}, seconds=60)


def test_the_slim_package_comes_first_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "theirs")
    slim = Runtime(STOCK.python, Path("/slim/torch"), on_path=True)
    assert ask(slim, {}, seconds=60)["path"] == os.pathsep.join(["/slim", "theirs"])
    assert ask(STOCK, {}, seconds=60)["path"] == "theirs"


def test_another_torch_than_the_expected_one_is_refused():
    other = replace(STOCK, environment={"FAKE_TORCH": "/elsewhere/torch"})
    with pytest.raises(MissingInstallation, match="/elsewhere/torch"):
        ask(other, {}, seconds=60)
    with pytest.raises(MissingInstallation, match="/elsewhere/torch"):
        outcomes("fine", runtime=other)


def test_what_is_no_interpreter_is_refused(tmp_path):
    with pytest.raises(MissingInstallation, match="cannot start"):
        ask(Runtime(tmp_path / "python", tmp_path), {}, seconds=60)
