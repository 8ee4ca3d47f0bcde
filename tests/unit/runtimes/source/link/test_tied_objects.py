"""Objects with handlers tied to functions."""

import subprocess
from pathlib import Path

from opsieve.runtimes.source.link.tied_objects import tied_object
from opsieve.runtimes.source.objects import CompileJob, Compiler, ObjectStore, compile_all

SOURCE = """
#include <stdexcept>
int risky(int);
__attribute__((used)) int dead(int x) { try { return risky(x); } catch (const std::runtime_error&) { return 1; } }
int live(int x) { try { return risky(x); } catch (const std::logic_error&) { return 2; } }
int main(int count, char**) { return live(count) == 2 ? 0 : 1; }
"""
RISKY = '#include <stdexcept>\nint risky(int) { throw std::logic_error("x"); }\n'


def test_a_tied_object_still_catches_and_is_made_once(tmp_path: Path) -> None:
    flags = ("-O1", "-ffunction-sections")
    jobs = []
    for name, text in (("a.cpp", SOURCE), ("b.cpp", RISKY)):
        (tmp_path / name).write_text(text)
        jobs.append(CompileJob(name, tmp_path / name, flags))
    compiler = Compiler.find("g++")
    with ObjectStore(tmp_path / "store") as store:
        made = list(compile_all(jobs, store, compiler).require().values())
        tied = [tied_object(path, store) for path in made]
        before = [path.stat().st_ino for path in tied]
        assert [tied_object(path, store).stat().st_ino for path in made] == before
        assert all(one != other for one, other in zip(made, tied, strict=True))
        program = tmp_path / "program"
        subprocess.run(["g++", "-fuse-ld=lld", "-Wl,--gc-sections", *map(str, tied), "-o", str(program)], check=True)
        assert subprocess.run([program], check=False).returncode == 0
        headers = subprocess.run(["readelf", "-SW", str(tied[0])], capture_output=True, text=True, check=True).stdout
        tables = [line for line in headers.splitlines() if " .gcc_except_table." in line]
        assert tables
        assert all("AL" in line for line in tables)
