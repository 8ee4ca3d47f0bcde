"""What linkers say of missing symbols, and the sources that are written for a link."""

import subprocess
from pathlib import Path

import pytest

from opsieve.errors import BuildFailed, MissingInstallation
from opsieve.runtimes.source.link.left_out import write_left_out
from opsieve.runtimes.source.link.linker import LinkerKind, find_linker
from opsieve.runtimes.source.link.linking import LinkInput, link, parse_undefined, response_file
from opsieve.runtimes.source.link.stand_ins import StandIn, write_stand_ins
from opsieve.runtimes.source.objects import Compiler

LLD = """\
ld.lld: error: undefined hidden symbol: opsieve_op_4aten2mm
>>> referenced by Operators_0.cpp
>>>               /tmp/o/ab.o:(create_mm_typed_handle())
>>> referenced 3 more times

ld.lld: error: undefined symbol: _ZN2at5emptyEv
>>> referenced by a.cpp
collect2: error: ld returned 1 exit status
"""
GNU = """\
/usr/bin/ld.bfd: a.o: in function `main':
a.cpp:(.text.startup+0x5): undefined reference to `_Z1fv'
/usr/bin/ld.bfd: b.o:(.data+0x0): undefined reference to `_Z1gv'
b.cpp:(.text+0x9): more undefined references to `_Z1gv' follow
/usr/bin/ld.bfd: p: hidden symbol `opsieve_op_1a1b' isn't defined
"""


def test_what_lld_misses_and_who_refers_to_it() -> None:
    found = parse_undefined(LLD)
    assert list(found) == ["opsieve_op_4aten2mm", "_ZN2at5emptyEv"]
    assert found["opsieve_op_4aten2mm"][0] == "Operators_0.cpp"


def test_what_gnu_ld_misses() -> None:
    assert list(parse_undefined(GNU)) == ["_Z1fv", "_Z1gv", "opsieve_op_1a1b"]


def test_what_gold_misses() -> None:
    said = "/tmp/a.o:main.cpp:function main: error: undefined reference to '_Z1fv'\ncollect2: error: 1"
    assert parse_undefined(said) == {"_Z1fv": ("/tmp/a.o:main.cpp:function main",)}


@pytest.mark.parametrize("text", ["", "ld: cannot find -lx", "collect2: error: ld returned 1 exit status"])
def test_other_failures_miss_nothing(text: str) -> None:
    assert parse_undefined(text) == {}


def test_paths_with_blanks_and_quotes_survive_a_response_file(tmp_path: Path) -> None:
    text = response_file(LinkInput((Path('/a b/"c".o'),), ("root",)))
    assert text == '-Wl,-u,root\n"/a b/\\"c\\".o"\n'


def compiled(folder: Path, name: str, text: str) -> Path:
    source, target = folder / f"{name}.cpp", folder / f"{name}.o"
    source.write_text(text)
    subprocess.run(["g++", "-O1", "-ffunction-sections", "-c", str(source), "-o", str(target)], check=True)
    return target


def test_a_link_tells_what_live_code_misses_and_nothing_that_dead_code_does(tmp_path: Path) -> None:
    compiler = Compiler.find("g++")
    given = compiled(tmp_path, "a", "int f(); int g(); int dead() { return g(); } int main() { return f(); }")
    for name in ("lld", "bfd"):
        outcome = link(compiler, find_linker(compiler, name), LinkInput((given,), ()), tmp_path / "out")
        assert list(outcome.undefined) == ["_Z1fv"]
        assert not outcome.is_complete


def test_stand_ins_throw_and_data_is_zero(tmp_path: Path) -> None:
    stand_ins = [StandIn("_Z4gonei", "gone.cpp", 'no "header"'), StandIn("_ZN1s5tableE", "table.cpp", "")]
    write_stand_ins(stand_ins, tmp_path / "stand_ins.cpp")
    main = """
#include <cstdio>
#include <stdexcept>
namespace s { extern void* table; }
namespace opsieve { [[noreturn]] void missing(const char* what, const char* why) {
  std::printf("%s | %s", what, why); throw std::runtime_error(what); } }
int gone(int);
int main() { if (s::table) return 2; try { return gone(1); } catch (std::exception&) { return 0; } }
"""
    objects = (compiled(tmp_path, "main", main), compiled(tmp_path, "s", (tmp_path / "stand_ins.cpp").read_text()))
    compiler = Compiler.find("g++")
    assert link(compiler, find_linker(compiler), LinkInput(objects, ()), tmp_path / "out").is_complete
    said = subprocess.run([tmp_path / "out"], capture_output=True, text=True, check=True).stdout
    assert said == 'gone(int) | gone.cpp was not compiled: no "header"'


def test_what_is_missing_is_told_without_long_arguments(tmp_path: Path) -> None:
    # Loader::parse(std::shared_ptr<char>, std::map<...>) const, in an unnamed namespace
    name = "_ZNK12_GLOBAL__N_16Loader5parseESt10shared_ptrIcESt3mapINSt7__cxx1112basic_stringIcEES5_E"
    write_stand_ins([StandIn(name, "a.cpp", "")], tmp_path / "stand_ins.cpp")
    assert '"(anonymous namespace)::Loader::parse"' in (tmp_path / "stand_ins.cpp").read_text()


def test_an_operator_that_is_left_out_has_a_definition(tmp_path: Path) -> None:
    write_left_out(["opsieve_op_1a1c", "opsieve_op_1a1b"], tmp_path / "left_out.cpp")
    made = compiled(tmp_path, "left", (tmp_path / "left_out.cpp").read_text())
    names = subprocess.run(["nm", "--defined-only", "-g", str(made)], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in names.splitlines()] == ["opsieve_op_1a1b", "opsieve_op_1a1c"]


def test_linkers_are_known_by_what_they_say_they_are() -> None:
    compiler = Compiler.find("g++")
    assert find_linker(compiler, "bfd").kind is LinkerKind.GNU
    assert find_linker(compiler, "bfd").version >= (2, 30)
    assert find_linker(compiler).is_exact
    assert find_linker(compiler, "bfd").folding("all") == ()
    with pytest.raises(MissingInstallation, match="nonsense"):
        find_linker(compiler, "nonsense")


def test_a_link_that_fails_for_another_reason_says_why(tmp_path: Path) -> None:
    compiler = Compiler.find("g++")
    given = compiled(tmp_path, "a", "int main() {}")
    with pytest.raises(BuildFailed, match="opsieve_no_such_library"):
        link(compiler, find_linker(compiler), LinkInput((given,), (), ("-lopsieve_no_such_library",)), tmp_path / "out")
