"""What is said when compiling fails, and that nothing half-made stays."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from opsieve.errors import MissingInstallation
from opsieve.runtimes.source.objects import (
    CompileFailed,
    CompileJob,
    Compiler,
    CompilerStopped,
    StoreFull,
    UnusableFlag,
    UnusableStore,
    compile_all,
)
from opsieve.runtimes.source.objects.failures import cause, failure_of, is_disk_full, is_out_of_memory, lacks_header

from .project import Project, needs_compiler, script

pytestmark = needs_compiler


def test_the_first_errors_with_their_place(project: Project) -> None:
    source = project.write("src/wrong.cpp", "int a;\nint b = missing;\n")
    compiled = project.build("src/wrong.cpp", "src/main.cpp", keep_going=True)
    failure = compiled.failures["src/wrong.cpp"]
    assert failure.where == f"{source}:2"
    assert "missing" in failure.errors[0]
    assert str(source) in failure.command
    assert list(compiled.objects) == ["src/main.cpp"]
    with pytest.raises(CompileFailed, match="1 source file does not compile") as caught:
        compiled.require()
    assert caught.value.where == f"{source}:2"
    assert not project.left_over()


def test_nothing_is_started_after_a_failure_unless_wanted(project: Project) -> None:
    names = [f"src/{number}.cpp" for number in range(6)]
    for name in names:
        project.write(name, "wrong")
    assert 1 <= len(project.build(*names).failures) <= 2
    assert len(project.build(*names, keep_going=True).failures) == 6


def test_a_failure_is_tried_again(project: Project) -> None:
    project.write("first/one.h", "#error not yet\n")
    assert project.build().failures["src/main.cpp"].errors[0].endswith("#error not yet")
    project.write("first/one.h", "#define ONE 1\n")
    assert not project.build().failures


def test_a_missing_source_is_a_failure(project: Project) -> None:
    compiled = project.build("src/gone.cpp", "src/main.cpp", keep_going=True)
    assert list(compiled.failures) == ["src/gone.cpp"]
    assert list(compiled.objects) == ["src/main.cpp"]


def test_two_different_jobs_of_one_name(project: Project) -> None:
    jobs = [CompileJob("a.cpp", project.root / "src/main.cpp"), CompileJob("a.cpp", project.root / "src/other.cpp")]
    with project.store() as store, pytest.raises(ValueError, match=r"a\.cpp"):
        compile_all(jobs, store, project.compiler())


@pytest.mark.parametrize("flag", ["-I/usr/include", "-o", "-MMD", "-save-temps=obj", "-c"])
def test_flags_that_have_no_place_in_a_job(flag: str) -> None:
    with pytest.raises(UnusableFlag, match=flag):
        CompileJob("a.cpp", Path("a.cpp"), (flag,))


def test_no_such_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingInstallation, match="no-such-g"):
        Compiler.find("no-such-g++")
    monkeypatch.setenv("CXX", "no-such-c++ -m64")
    with pytest.raises(MissingInstallation, match="no-such-c"):
        Compiler.find()


def test_a_compiler_that_does_not_work(tmp_path: Path) -> None:
    with pytest.raises(MissingInstallation, match="does not work: broken"):
        Compiler.find(str(script(tmp_path / "g++", "echo broken >&2; exit 3")))


def test_the_compiler_is_known_by_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = Compiler.find(str(script(tmp_path / "wrapped", 'exec g++ "$@"')))
    monkeypatch.setenv("CXX", "g++ -m64")
    with_words = Compiler.find()
    assert wrapped.identity == Compiler.find("g++").identity != with_words.identity
    assert with_words.arguments == ("-m64",)
    other = script(tmp_path / "other", 'case $1 in --version) echo "g++ 99";; *) exec g++ "$@";; esac')
    assert Compiler.find(str(other)).identity != wrapped.identity


@pytest.mark.parametrize(
    "said", ["as: main.o: No space left on device", "LLVM ERROR: IO failure on output stream: No space left on device"]
)
def test_a_full_disk(project: Project, said: str) -> None:
    with pytest.raises(StoreFull, match="no space left") as caught:
        project.build(compiler=project.compiler(f"echo '{said}' >&2; exit 1"))
    assert caught.value.where == str(project.root / "store")
    assert not project.left_over()


def test_a_disk_that_is_really_full(project: Project) -> None:
    """On a file system of 64 KB, for which a namespace of our own is needed."""
    store = project.root / "store"
    store.mkdir()
    project.write("src/main.cpp", "char big[200000] = {1};\n")
    program = project.write(
        "program.py",
        "from pathlib import Path\nfrom tests.unit.runtimes.source.objects.project import Project\n"
        f"Project(Path({str(project.root)!r})).build()\n",
    )
    mounted = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=64k none {store} && exec "$@"',
    ]
    if shutil.which("unshare") is None or subprocess.run([*mounted, "sh", "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    run = subprocess.run(
        [*mounted, "sh", sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "StoreFull" in run.stderr


def test_a_full_disk_when_we_write_ourselves(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsieve.runtimes.source.objects.known.add_entry", _no_space)
    with pytest.raises(StoreFull):
        project.build()
    assert not project.left_over()


def _no_space(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


def test_an_unusable_store(project: Project) -> None:
    project.write("store", "a file where the folder should be")
    with pytest.raises(UnusableStore, match="cannot use the store"):
        project.build()


@pytest.mark.parametrize(
    "death", ["echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1", "kill -9 $$"]
)
def test_killed_for_memory_is_tried_once_more_alone(project: Project, death: str) -> None:
    once = f'if [ ! -e {project.root}/died ]; then touch {project.root}/died; {death}; fi; exec g++ "$@"'
    project.build(compiler=project.compiler(once)).require()
    assert project.compiles == 2
    project.write("src/main.cpp", "int again;")
    with pytest.raises(CompilerStopped, match="ran out of memory"):
        project.build(compiler=project.compiler(death))
    assert not project.left_over()


def test_a_compiler_that_crashes(project: Project) -> None:
    compiled = project.build(compiler=project.compiler("kill -SEGV $$"))
    assert "-11" in compiled.failures["src/main.cpp"].errors[0]


def test_an_interrupt_ends_the_compilers_and_keeps_what_is_done(project: Project) -> None:
    project.write("src/slow.cpp", "int slow;\n")
    pid = project.root / "pid"
    os.mkfifo(pid)
    slow = f'case "$*" in *slow.cpp*) sleep 1000 & echo $! > {pid}; wait ;; *) exec g++ "$@" ;; esac'
    compiler = project.compiler(slow)
    project.build(compiler=compiler)
    children: list[int] = []

    def interrupt() -> None:
        children.append(int(pid.read_text()))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        project.build("src/main.cpp", "src/slow.cpp", compiler=compiler)
    thread.join()
    assert _ended(children[0])
    assert not project.left_over()
    assert project.build("src/main.cpp", "src/slow.cpp").reused == 1


def test_a_killed_run_leaves_whole_objects_and_the_next_goes_on(project: Project) -> None:
    project.write("src/slow.cpp", "int slow;\n")
    pid = project.root / "pid"
    os.mkfifo(pid)
    slow = f'case "$*" in *slow.cpp*) sleep 1000 & echo $! > {pid}; wait ;; *) exec g++ "$@" ;; esac'
    compiler = project.compiler(slow)
    project.build(compiler=compiler)
    run = multiprocessing.get_context("spawn").Process(
        target=project.build, args=("src/main.cpp", "src/slow.cpp"), kwargs={"compiler": compiler}
    )
    run.start()
    orphan = int(pid.read_text())
    run.kill()
    run.join()
    os.killpg(os.getpgid(orphan), signal.SIGKILL)
    assert project.left_over()
    compiled = project.build("src/main.cpp", "src/slow.cpp")
    assert (compiled.reused, len(compiled.require())) == (1, 2)
    assert not project.left_over()


def _ended(process: int) -> bool:
    """Whether a process is gone, or dead and not yet waited for by the system."""
    for _ in range(3000):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_an_object_made_while_a_header_changes_is_not_remembered(project: Project) -> None:
    header = project.root / "first/one.h"
    changing = project.compiler(f'g++ "$@" && echo "#define ONE 7" > {header}')
    assert project.build(compiler=changing).require()
    assert project.build().reused == 0


def test_a_header_that_goes_after_it_was_looked_for_is_not_taken_for_read(project: Project) -> None:
    project.build()
    hiding = project.write("first/two.h", "#define TWO 7\n#define ONE 1\n")
    project.build(compiler=project.compiler(f'rm {hiding}; exec g++ "$@"')).require()
    project.write("first/two.h", "#define TWO 7\n#define ONE 1\n")
    with_it = project.build(compiler=project.compiler())
    assert with_it.reused == 0


def test_a_header_that_hides_another_only_after_it_was_read_is_not_taken_for_read(project: Project) -> None:
    hiding = project.root / "first/two.h"
    late = project.compiler(f'g++ "$@" && echo "#define TWO 7" > {hiding}')
    project.build(compiler=late).require()
    assert project.build(compiler=project.compiler()).reused == 0


def test_a_header_that_is_gone_when_its_reader_is_compiled_is_not_remembered(project: Project) -> None:
    header = project.root / "second/two.h"
    project.build(compiler=project.compiler(f'g++ "$@" && mv {header} {header}.old')).require()
    assert project.build(compiler=project.compiler()).failures
    (project.root / "second/two.h.old").rename(header)
    assert project.build(compiler=project.compiler()).reused == 0


def test_other_files_may_come_and_go_in_include_folders(project: Project) -> None:
    busy = f'touch {project.root}/first/a {project.root}/src/b; rm {project.root}/second/c; exec g++ "$@"'
    project.write("second/c", "")
    project.build(compiler=project.compiler(busy)).require()
    assert project.build(compiler=project.compiler()).reused == 1


def test_messages_about_the_source_are_no_fault_of_the_machine() -> None:
    said = b"a.cpp:3:1: error: static assertion failed: out of memory, No space left on device\n    3 | out of memory\n"
    assert not is_out_of_memory(said, 1)
    assert not is_disk_full(said)
    assert failure_of("a.cpp", said, 1).where == "a.cpp:3"
    assert failure_of("a.cpp", b"", -11).errors == ("the compiler ended with status -11 and said nothing",)


@pytest.mark.parametrize(
    "said",
    [
        "/src/a.cpp:2:10: fatal error: dir/some.h: No such file or directory",
        "/src/a.cpp:2:10: fatal error: 'dir/some.h' file not found",
    ],
)
def test_a_header_that_is_not_there_is_told_in_plain_words(said: str) -> None:
    assert lacks_header(failure_of("a.cpp", said.encode(), 1))
    assert cause(said) == "dir/some.h is not installed"


def test_other_causes_are_told_without_their_place() -> None:
    said = "/src/a.cpp:2:10: error: expected ';' before '}' token"
    assert not lacks_header(failure_of("a.cpp", said.encode(), 1))
    assert cause(said) == "expected ';' before '}' token"
    assert cause("it does not compile") == "it does not compile"
