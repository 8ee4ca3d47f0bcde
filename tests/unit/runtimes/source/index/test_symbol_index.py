"""Ranking, learning, explaining and saving."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.index import Learned, SymbolIndex
from opsieve.runtimes.source.index.build import FORMAT
from opsieve.runtimes.source.index.search import MAX_CANDIDATES
from tests.unit.runtimes.source.index.small_tree import index_text

TWICE = "_ZN1a5twiceEi"


def paths(index: SymbolIndex, symbol: str, learned: Learned | None = None) -> list[str]:
    return [one.path for one in index.candidates(symbol, learned or Learned())]


@pytest.fixture
def index(tmp_path: Path) -> SymbolIndex:
    return index_text(
        tmp_path,
        one__cpp="namespace a { int twice(int x) { return x; } }",
        other__cpp="namespace a { int twice(double x) { return 2; } }",
        third__cpp="namespace b { int twice(int x) { return 3; } }",
    )


def test_the_overload_with_the_right_types_comes_first(index: SymbolIndex) -> None:
    assert paths(index, TWICE) == ["one.cpp", "other.cpp"]
    assert paths(index, "_ZN1a5twiceEd") == ["other.cpp", "one.cpp"]


def test_an_object_that_defines_the_symbol_outranks_every_rule(index: SymbolIndex) -> None:
    learned = Learned.from_object("third.cpp", [TWICE])
    found = index.candidates(TWICE, learned)
    assert [one.path for one in found] == ["third.cpp", "one.cpp", "other.cpp"]
    assert found[0].rule == "its object defines it"


def test_an_object_that_does_not_define_the_symbol_is_no_candidate(index: SymbolIndex) -> None:
    learned = Learned.from_object("one.cpp", ["_ZN1a6thriceEi"], asked=[TWICE])
    assert paths(index, TWICE, learned) == ["other.cpp"]


def test_contradicting_facts_leave_the_rules_to_decide(index: SymbolIndex) -> None:
    learned = Learned.from_object("other.cpp", [TWICE]).merged(Learned.from_object("other.cpp", [], asked=[TWICE]))
    assert paths(index, TWICE, learned) == ["one.cpp", "other.cpp"]


def test_an_unplaced_symbol_says_who_wants_it_and_what_was_tried(index: SymbolIndex) -> None:
    learned = Learned.from_object("one.cpp", [], asked=[TWICE]).merged(
        Learned.from_object("other.cpp", [], asked=[TWICE])
    )
    assert paths(index, TWICE, learned) == []
    assert str(index.unplaced(TWICE, ["main.cpp", "a.cpp", "b.cpp", "c.cpp"], learned)).splitlines() == [
        "no source file is known to define a::twice(int) (symbol _ZN1a5twiceEi)",
        "  wanted by a.cpp, b.cpp, c.cpp and 1 more",
        "  tried one.cpp: function definition; its object does not define it",
        "  tried other.cpp: function definition; its object does not define it",
        "  not tried third.cpp: defines b::twice",
    ]


def test_a_file_tried_without_any_rule_is_told_too(index: SymbolIndex) -> None:
    learned = Learned.from_object("third.cpp", [], asked=["other_library"])
    told = index.unplaced("other_library", learned=learned)
    assert [(one.path, one.rule) for one in told.tried] == [("third.cpp", "was compiled")]
    assert (told.referenced_by, told.near) == ((), ())


def test_a_saved_index_answers_the_same(index: SymbolIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "index")
    loaded = SymbolIndex.load(tmp_path / "index")
    assert loaded.files == ("one.cpp", "other.cpp", "third.cpp")
    assert loaded.candidates(TWICE) == index.candidates(TWICE)


@pytest.mark.parametrize("content", [b"", b"\x93\x01\x02", b"no index", b"\xdf\xff\xff\xff\xff"])
def test_a_broken_index_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "index").write_bytes(content)
    with pytest.raises(InvalidFile, match="cannot read the index"):
        SymbolIndex.load(tmp_path / "index")


def test_an_index_of_another_version_is_refused(index: SymbolIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "index")
    content = (tmp_path / "index").read_bytes()
    (tmp_path / "index").write_bytes(content.replace(b"\xa6format" + bytes((FORMAT,)), b"\xa6format\x7f", 1))
    with pytest.raises(InvalidFile, match="another version"):
        SymbolIndex.load(tmp_path / "index")


def test_a_missing_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot read the source file"):
        SymbolIndex.build([("gone.cpp", tmp_path / "gone.cpp")])


def test_the_answer_does_not_depend_on_the_order_of_the_files(tmp_path: Path) -> None:
    text = "namespace a { int twice(int x) { return x; } }"
    forwards = index_text(tmp_path, x__cpp=text, y__cpp=text)
    backwards = index_text(tmp_path, y__cpp=text, x__cpp=text)
    assert paths(forwards, TWICE) == paths(backwards, TWICE) == ["x.cpp", "y.cpp"]


def test_a_symbol_is_never_worth_compiling_everything(tmp_path: Path) -> None:
    text = "namespace a { int twice(int x) { return x; } }"
    index = index_text(tmp_path, **{f"file{number}__cpp": text for number in range(40)})
    assert len(paths(index, TWICE)) == MAX_CANDIDATES


def test_another_specialisation_is_no_candidate(tmp_path: Path) -> None:
    index = index_text(
        tmp_path,
        a__cpp="struct A; template <> int Stub<A>::value = 1;",
        b__cpp="struct B; template <> int Stub<B>::value = 1;",
    )
    assert paths(index, "_ZN4StubI1AE5valueE") == ["a.cpp"]
    assert paths(index, "_ZN4StubI1CE5valueE") == []


def test_a_member_comes_from_the_file_that_instantiates_its_class(tmp_path: Path) -> None:
    index = index_text(
        tmp_path,
        a__cpp="namespace n { template class Box<float>; }",
        b__cpp="namespace n { template class Box<int>; extern template class Box<long>; }",
    )
    assert paths(index, "_ZN1n3BoxIiE4openEv") == ["b.cpp"]
    assert paths(index, "_ZTVN1n3BoxIfEE") == ["a.cpp"]
    assert index.candidates("_ZN1n3BoxIiE4openEv")[0].rule == "explicit class instantiation definition"


def test_a_class_without_a_known_key_function_is_where_its_members_are(tmp_path: Path) -> None:
    index = index_text(tmp_path, a__cpp="void n::Box::open() {}", b__cpp="void n::Jar::open() {}")
    found = index.candidates("_ZTVN1n3BoxE")
    assert [(one.path, one.rule) for one in found] == [("a.cpp", "function definition (a member, open)")]


def test_a_member_defined_under_a_using_directive_is_found(tmp_path: Path) -> None:
    index = index_text(tmp_path, a__cpp="using namespace n; int Box::open() { return 1; }")
    assert paths(index, "_ZN1n3Box4openEv") == ["a.cpp"]


def test_a_c_name_is_not_a_function_of_a_namespace(tmp_path: Path) -> None:
    index = index_text(
        tmp_path, a__cpp='namespace n { int open(); int open() { return 1; } extern "C" int shut() { return 1; } }'
    )
    assert paths(index, "open") == []
    assert paths(index, "shut") == ["a.cpp"]


def test_a_variable_is_not_a_function_of_its_name(tmp_path: Path) -> None:
    index = index_text(
        tmp_path,
        a__cpp="namespace n { int size(int x) { return x; } }",
        b__cpp="namespace n { int size = 3; }",
        c__cpp="namespace n { Lock Box::size(3); }",
    )
    assert paths(index, "_ZN1n4sizeE") == ["b.cpp"]
    assert paths(index, "_ZN1n4sizeEi") == ["a.cpp"]
    assert paths(index, "_ZN1n3Box4sizeE") == ["c.cpp"]


def test_every_definition_of_a_macro_is_tried(tmp_path: Path) -> None:
    index = index_text(
        tmp_path,
        a__h="#ifdef _FLAGS\n#define DEFINE_Flag(x) GFLAG(x)\n#else\n#define DEFINE_Flag(x) int FLAGS_##x;\n#endif",
        a__cpp='#include "a.h"\nDEFINE_Flag(quick)',
    )
    assert paths(index, "FLAGS_quick") == ["a.cpp"]
