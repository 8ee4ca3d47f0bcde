from pathlib import Path

from opsieve.verify.settings import ALL_SETTINGS, OTHER_PROCESSORS, UNUSUAL, USUAL, GradMode, Processor
from opsieve.verify.variation import PreparedInputs, settings_for, variations

PLAIN = PreparedInputs("as given", "0.pt", True)
OTHER = PreparedInputs("batch 3", "1.pt", False)


def test_given_inputs_are_tried_under_every_setting():
    tried = settings_for(PLAIN, thorough=False)
    assert len(set(tried)) == len(tried) == 2 * 2 * 3 + 2
    assert {s.threads for s in tried} == {1, 2}
    assert {s.mkldnn for s in tried} == {True, False}
    assert {s.grad for s in tried} == set(GradMode)
    assert {s.processor for s in tried} == set(Processor)


def test_other_inputs_are_tried_under_two_settings_that_share_no_switch_unless_thorough():
    assert settings_for(OTHER, thorough=False) == (USUAL, UNUSUAL)
    assert USUAL.threads != UNUSUAL.threads
    assert USUAL.mkldnn != UNUSUAL.mkldnn
    assert USUAL.grad != UNUSUAL.grad
    assert settings_for(OTHER, thorough=True) == (*ALL_SETTINGS, *OTHER_PROCESSORS)


def test_variations_are_numbered_and_their_labels_tell_them_apart():
    tried = list(variations(Path("m.pt"), "torchscript", "forward", [PLAIN, OTHER], thorough=True))
    assert [variation.number for variation in tried] == list(range(28))
    assert len({variation.label for variation in tried}) == 28
    assert tried[0].label == "as given; 2 threads, no_grad"


def test_only_other_processors_need_switches():
    assert Processor.NATIVE.environment == {}
    assert Processor.BASELINE.environment["ATEN_CPU_CAPABILITY"] == "default"
    assert Processor.AVX2.environment != Processor.BASELINE.environment
