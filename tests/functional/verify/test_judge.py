"""The judge on a library whose executed functions are known, and on PyTorch itself."""

import subprocess
import sys

import numpy as np
import pytest

from opsieve.code.elf import STT_FUNC, ElfFile
from opsieve.errors import InvalidLibrary, MissingInstallation
from opsieve.installed import find_torch
from opsieve.verify.judge import executed_functions, judge, judged_torch

LIBRARY = r"""
#include <pthread.h>
static volatile int loaded;
static __attribute__((constructor)) void at_load(void) { loaded = 1; }
int leaf(int x) { return x + 1; }
int calls_leaf(int x) { return leaf(x) * 2; }
int never(int x) { return x; }
int in_child(int x) { return x - 1; }
int in_thread(int x) { return x + 3; }
static void *thread(void *sum) { *(int *)sum = in_thread(1); return 0; }
int threads(int n) {
    pthread_t t[64]; int sums[64], total = 0;
    for (int i = 0; i < n; i++) pthread_create(&t[i], 0, thread, &sums[i]);
    for (int i = 0; i < n; i++) { pthread_join(t[i], 0); total += sums[i]; }
    return total;
}
"""
PROGRAM = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int calls_leaf(int), in_child(int), threads(int);
int main(int argc, char **argv) {
    printf("%d\n", calls_leaf(3) + threads(32));
    if (argc > 1) { fflush(stdout); if (!fork()) _exit(in_child(8)); int s; wait(&s); printf("%d\n", WEXITSTATUS(s)); }
    if (argc > 2) __asm__ volatile("int3");
    return 5;
}
"""
OPTIONS = {
    "plain": [],
    "separate code": ["-Wl,-z,separate-code"],
    "another base": ["-Wl,-z,noseparate-code", "-Wl,-Ttext-segment=0x600000"],
}


def compile_c(source, output, *options):
    options = ["-O1", "-fno-inline", "-pthread", *options]
    subprocess.run(["cc", "-x", "c", "-", "-o", output, *options], input=source, text=True, check=True)
    return output


@pytest.fixture(params=OPTIONS)
def library(request, tmp_path):
    return compile_c(LIBRARY, tmp_path / "libsample.so", "-shared", "-fPIC", *OPTIONS[request.param])


@pytest.fixture
def program(library, tmp_path):
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["cc", tmp_path / "main.c", "-o", tmp_path / "main", f"-L{tmp_path}", "-lsample", "-pthread"]
    subprocess.run(command, check=True)
    return tmp_path / "main"


def functions(library):
    """{address: name} of the functions in the symbol table."""
    elf = ElfFile(library)
    symbols = elf.symbols[(elf.symbols["info"] & 15 == STT_FUNC) & (elf.symbols["shndx"] != 0)]
    symbols = symbols[symbols["size"] > 0]
    return {int(s["value"]): elf.name(".strtab", int(s["name"])).decode() for s in symbols}


def executed(library, command, environment=None):
    known = functions(library)
    starts = np.array(sorted(known), np.int64)
    run = executed_functions(library, starts, command, environment)
    return {known[address] for address in run.executed.tolist()}, run


COMMON = {"at_load", "calls_leaf", "leaf", "threads", "thread", "in_thread"}


def test_a_linked_program_from_its_constructors_on(library, program):
    names, run = executed(library, [program])
    assert names == COMMON
    assert (run.stdout, run.stderr, run.returncode) == (b"136\n", b"", 5), "the program must not notice"


def test_processes_that_it_starts_are_judged_too(library, program):
    names, run = executed(library, [program, "fork"])
    assert names == COMMON | {"in_child"}
    assert run.stdout == b"136\n7\n"


def test_a_python_program_that_opens_the_library(library):
    script = "import ctypes; print(ctypes.CDLL('libsample.so').leaf(1))"
    names, run = executed(library, [sys.executable, "-c", script])
    assert names == {"at_load", "leaf"}
    assert run.stdout == b"2\n"


def test_another_trap_ends_the_program_as_it_would_have(library, program):
    _, run = executed(library, [program, "fork", "trap"])
    assert run.returncode == -5


def test_runs_of_one_judge_are_counted_apart(library, program):
    known = functions(library)
    with judge(library, np.array([*known, *known], np.int64)) as ours:
        path = {"LD_LIBRARY_PATH": str(ours.library.parent)}
        long = ours.run([program, "fork"], path)
        short = ours.run([program], path)
        folder = ours.folder
        assert ours.starts.tolist() == sorted(known)
    assert set(long.executed) - set(short.executed) == {a for a, name in known.items() if name == "in_child"}
    assert not folder.exists()


def test_only_the_given_functions_are_looked_at(library, program):
    starts = [address for address, name in functions(library).items() if name in ("leaf", "never")]
    run = executed_functions(library, np.array(starts, np.int64), [program])
    assert [functions(library)[address] for address in run.executed.tolist()] == ["leaf"]


def test_addresses_outside_of_the_code_are_refused(library):
    with pytest.raises(InvalidLibrary, match="not in the library's code"):
        executed_functions(library, np.array([1 << 40]), ["true"])


def test_without_a_compiler_the_fault_says_what_to_install(library, monkeypatch, tmp_path):
    starts = np.array(sorted(functions(library)), np.int64)
    for name, value in (("CC", "no-such-compiler"), ("PATH", str(tmp_path / "empty"))):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            with pytest.raises(MissingInstallation) as caught:
                executed_functions(library, starts, [sys.executable, "-c", ""])
            assert "apt-get install" in (caught.value.remedy or "")


TORCH_PROGRAM = """
import hashlib, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(5))
torch.set_num_threads(2)
x = torch.randn(2, 3, 8, 8)
y = model(x)
y.sum().backward()
print(hashlib.sha256(bytes(y.detach().untyped_storage())).hexdigest(), torch.__file__)
"""


@pytest.mark.torch
def test_pytorch_computes_the_same_under_the_judge_and_its_functions_are_found():
    install = find_torch()
    path = install.library("libtorch_cpu.so")
    elf = ElfFile(path)
    text = elf.section(".text").index
    symbols = elf.symbols
    symbols = symbols[(symbols["info"] & 15 == STT_FUNC) & (symbols["shndx"] == text) & (symbols["size"] > 0)]
    starts = symbols["value"].astype(np.int64)
    stock = subprocess.run([install.python, "-c", TORCH_PROGRAM], capture_output=True, text=True, check=True)
    with judged_torch(install, path.name, starts) as (ours, environment):
        run = ours.run([install.python, "-c", TORCH_PROGRAM], environment)
        imported = ours.run([install.python, "-c", "import torch"], environment)
    assert run.returncode == imported.returncode == 0, run.stderr
    digest, file = run.stdout.decode().split()
    assert digest == stock.stdout.split()[0]
    assert file != stock.stdout.split()[1], "the mirrored package must have been imported"
    assert len(starts) > 300_000
    assert 20_000 < len(imported.executed) < len(run.executed) < 60_000

    found = set(run.executed.tolist())
    exported = elf.dynamic_symbols
    entry = {elf.name(".dynstr", int(s["name"])): int(s["value"]) for s in exported if s["shndx"]}
    assert entry[b"_ZN2at4_ops4relu4callERKNS_6TensorE"] in found
    assert entry[b"_ZN2at4_ops6lgamma4callERKNS_6TensorE"] not in found
    assert entry[b"_ZN2at4_ops4relu4callERKNS_6TensorE"] not in set(imported.executed.tolist())
