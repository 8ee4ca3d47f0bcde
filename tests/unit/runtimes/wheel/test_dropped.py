import pytest

from opsieve.runtimes.wheel.dropped import DROP_RULES, drop_reason
from tests.unit.runtimes.wheel.fake_site import DROPPED, FOR_BUILDING, KEPT


@pytest.mark.parametrize("path", KEPT)
def test_what_a_run_needs_stays(path):
    assert drop_reason(path) is None


@pytest.mark.parametrize("path", DROPPED)
def test_what_no_run_needs_goes_with_a_reason_even_with_headers(path):
    assert drop_reason(path)
    assert drop_reason(path, with_headers=True)


@pytest.mark.parametrize("path", FOR_BUILDING)
def test_what_compiling_needs_stays_only_with_headers(path):
    assert "--with-headers" in (drop_reason(path) or "")
    assert drop_reason(path, with_headers=True) is None


def test_no_rule_reaches_python_code_or_names_two_files_alike():
    assert drop_reason("torch/utils/include/x.py") is None
    assert drop_reason("torch/testing/_internal/common_utils.py") is None
    assert drop_reason("torch/lib/libtorch.so") is None
    assert len({pattern for rule in DROP_RULES for pattern in rule.patterns}) == sum(
        len(rule.patterns) for rule in DROP_RULES
    )
