"""Bounds, several runs at once, and what is remembered of costs."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from opsieve.progress import Advance
from opsieve.runtimes.source.objects import Compiled, CompileJob, ObjectStore, compile_all
from opsieve.runtimes.source.objects.costs import UNKNOWN_PEAK, Cost, Costs
from opsieve.runtimes.source.objects.files import FileFacts, Files, KnownFile
from opsieve.runtimes.source.objects.includes import Includes, Style
from opsieve.runtimes.source.objects.known_files import read_known_files, write_known_files

from .project import Project, needs_compiler

pytestmark = needs_compiler


def _fill(store: ObjectStore, count: int, size: int) -> list[Path]:
    """Objects, the oldest first."""
    store.hold()
    paths = []
    for number in range(count):
        path = store.object_path(f"{number:032x}")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (number + 1, number + 1))
        paths.append(path)
    return paths


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    with ObjectStore(tmp_path, limit=350) as store:
        paths = _fill(store, 6, 100)
        store.use(paths[1])
    assert [path.exists() for path in paths] == [False, True, False, False, True, True]


def test_what_this_run_used_stays_even_over_the_limit(project: Project) -> None:
    with ObjectStore(project.root / "store", limit=0) as store:
        old = _fill(store, 2, 100)
        compiled = compile_all([project.job()], store, project.compiler())
    assert compiled.require()["src/main.cpp"].exists()
    assert not any(path.exists() for path in old)


def test_nothing_is_removed_while_another_run_uses_the_store(tmp_path: Path) -> None:
    with ObjectStore(tmp_path, limit=0) as reader:
        with ObjectStore(tmp_path, limit=0) as other:
            paths = _fill(other, 2, 100)
        assert all(path.exists() for path in paths)
        assert reader.use(paths[0], 100)
    assert [path.exists() for path in paths] == [True, False]


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    with ObjectStore(tmp_path) as store:
        left = store.root / "work" / "killed" / "made.o"
        left.parent.mkdir()
        left.write_text("half")
    assert not left.exists()


def test_two_runs_at_once_compile_once(project: Project) -> None:
    project.write("src/other.cpp", "int other;\n")
    compiler, results = project.compiler(), []

    def build() -> None:
        results.append(project.build("src/main.cpp", "src/other.cpp", compiler=compiler))

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert project.compiles == 2
    assert [len(compiled.require()) for compiled in results] == [2, 2, 2]


class _Recorded:
    """A progress that remembers every stage: title, total, and what was advanced."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None, list[int]]] = []

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Advance]:
        self.stages.append((title, total, []))
        yield self.stages[-1][2].append


def _compile(project: Project, *names: str) -> tuple[Compiled, _Recorded]:
    progress = _Recorded()
    jobs = [project.job(name) for name in names]
    with project.store() as store:
        return compile_all(jobs, store, project.compiler(), parallel=1, progress=progress), progress


def test_the_longest_first_and_a_total_of_expected_seconds(project: Project) -> None:
    names = ["src/a.cpp", "src/b.cpp", "src/c.cpp"]
    with project.store() as store:
        for name, seconds in zip(names, (2.0, 30.0, 7.0), strict=True):
            project.write(name, f"int {Path(name).stem};\n")
            store.costs.add(Cost(name, seconds, 1 << 20))
    _, progress = _compile(project, *names)
    looking, compiling = progress.stages
    assert looking[:2] == ("looking for compiled objects", 3)
    assert compiling[:2] == ("compiling 3 files", 39)
    assert sum(compiling[2]) == 39
    logged = [
        msgspec.json.decode(line)["name"] for line in (project.root / "store" / "costs.jsonl").read_bytes().splitlines()
    ]
    assert sorted(logged) == names
    assert compiling[2][0] >= 30


def test_costs_are_measured(project: Project) -> None:
    _compile(project, "src/main.cpp")
    costs = Costs(project.root / "store" / "costs.jsonl")
    job = project.job()
    assert 0 < costs.seconds([job])["src/main.cpp"] < 60
    assert 1 << 20 < costs.peak(job) < UNKNOWN_PEAK


def test_unknown_files_are_expected_to_take_what_known_ones_take(tmp_path: Path) -> None:
    costs = Costs(tmp_path / "costs")
    jobs = [CompileJob(name, tmp_path / name) for name in ("a.cpp", "b.cpp", "c.cpp", "new.cpp")]
    for job, seconds in zip(jobs, (1.0, 4.0, 9.0), strict=False):
        costs.add(Cost(job.name, seconds, 5))
    assert Costs(tmp_path / "costs").seconds(jobs)["new.cpp"] == 4.0
    assert costs.peak(jobs[3]) == UNKNOWN_PEAK


def test_memory_bounds_how_many_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of this compiler fails if it meets another one."""
    monkeypatch.setattr("opsieve.runtimes.source.objects.schedule.memory_for_compilers", lambda: UNKNOWN_PEAK)
    meeting = project.root / "meeting"
    alone = f'mkdir {meeting} || exit 1; sleep 0.05; g++ "$@"; rmdir {meeting}'
    names = [f"src/{number}.cpp" for number in range(3)]
    for name in names:
        project.write(name, f"int a{name[4]};\n")
    assert len(project.build(*names, compiler=project.compiler(alone)).require()) == 3


def test_what_is_known_of_headers_is_kept_between_runs(tmp_path: Path) -> None:
    facts = FileFacts(b"digest", Includes(((Style.QUOTED, "a.h"),), True))
    with ObjectStore(tmp_path) as store:
        store.known_files["/a.h"] = KnownFile((1, 2, 3, 4, 5), facts)
    with ObjectStore(tmp_path) as store:
        assert store.known_files == {"/a.h": KnownFile((1, 2, 3, 4, 5), facts)}
        store.known_files["/\udc80.h"] = store.known_files["/a.h"]
    for path in tmp_path.glob("headers-*"):
        path.write_bytes(path.read_bytes()[:-1])
    with ObjectStore(tmp_path) as store:
        assert store.known_files == {}


def test_of_too_many_headers_the_latest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsieve.runtimes.source.objects.known_files.MOST_FILES", 2)
    known = KnownFile((1, 2, 3, 4, 5), FileFacts(b"", Includes((), False)))
    write_known_files(tmp_path, dict.fromkeys(("/a", "/b", "/c"), known))
    assert list(read_known_files(tmp_path)) == ["/b", "/c"]


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.h"
    path.write_text("1")
    known: dict[str, KnownFile] = {}
    first = Files(known).facts(str(path))
    assert first is not None
    assert not known  # just written: another change could bear the same time
    monkeypatch.setattr("opsieve.runtimes.source.objects.files._TOO_NEW_NS", -(10**12))
    assert Files(known).facts(str(path)) == first == known[str(path)].facts
    kept = Files(known).facts(str(path))
    assert kept is known[str(path)].facts
    path.write_text("22")
    assert Files(known).facts(str(path)) != first
