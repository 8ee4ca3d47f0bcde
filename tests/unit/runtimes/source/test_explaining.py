import pytest

from opsieve.runtimes.source.explaining import CHANGES, Change, changed_sources, explaining


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.source)
def test_the_message_passes_through_our_function(change: Change) -> None:
    text = f"first\nbefore {change.old} after\n"
    assert explaining(change.source, text) == (
        f"#include <opsieve/explain.h>\n#line 1\nfirst\nbefore {change.new} after\n"
    )
    assert "::opsieve::explained(" in change.new


def test_other_sources_and_other_words_stay_as_they_are() -> None:
    assert explaining("c10/util/Other.cpp", CHANGES[0].old) == CHANGES[0].old
    assert explaining(CHANGES[0].source, "msg_(msg)") == "msg_(msg)"


def test_the_sources_to_look_at() -> None:
    assert changed_sources() == {"c10/util/Exception.cpp", "torch/csrc/jit/frontend/error_report.cpp"}
