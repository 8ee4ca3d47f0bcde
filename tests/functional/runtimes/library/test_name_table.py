"""The names that the guard can find, asked of its own C code."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.runtimes.wheel.library.guard import table
from opsieve.runtimes.wheel.library.guard.table import RemovedFunctions, make_name_table

Find = Callable[[bytes, int, int], tuple[int, str, str] | None]
GUARD = Path(table.__file__).parent / "guard.c"
HARNESS = """
#define SOURCE_DIGEST "none"
#include "{guard}"
static struct state memory;
int find(char *names, uint64_t count, uint64_t address, uint64_t *start, const char **name, const char **op) {{
  struct header *header = (struct header *)&guard_header;
  header->index = names - (char *)header;
  header->index_count = count;
  header->state = (char *)&memory - (char *)header;
  struct found found;
  if (!find_removed(address, &found)) return 0;
  *start = found.start; *name = found.name; *op = found.op;
  return 1;
}}
"""


@pytest.fixture(scope="module")
def find(tmp_path_factory: pytest.TempPathFactory) -> Find:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("names")
    # The header is code in the real guard; here the tests must be able to fill it in.
    guard = GUARD.read_text().replace('.section .header,\\"ax\\"', ".data").replace("const volatile", "volatile")
    (folder / "guard.c").write_text(guard)
    (folder / "inflate.h").symlink_to(GUARD.parent / "inflate.h")
    (folder / "find.c").write_text(HARNESS.format(guard=folder / "guard.c"))
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", folder / "find.c", "-o", folder / "find.so"]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(folder / "find.so")).find

    def call(names: bytes, count: int, address: int) -> tuple[int, str, str] | None:
        start, name, op = ctypes.c_uint64(), ctypes.c_char_p(), ctypes.c_char_p()
        results = (ctypes.byref(start), ctypes.byref(name), ctypes.byref(op))
        arguments = (ctypes.c_char_p(names), ctypes.c_uint64(count), ctypes.c_uint64(address))
        if not function(*arguments, *results):
            return None
        return start.value, (name.value or b"").decode(), (op.value or b"").decode()

    return call


@settings(max_examples=60)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 3000) | st.just(0), st.integers(1, 1 << 20)), min_size=1, max_size=60),
    repeats=st.sampled_from([1, 1, 50]),
    base=st.integers(0, 1 << 29),
)
def test_every_removed_function_is_found(find: Find, sizes: list[tuple[int, int]], repeats: int, base: int) -> None:
    gaps = np.array([gap for gap, _ in sizes] * repeats)
    lengths = np.array([length for _, length in sizes] * repeats)
    ends = base + np.cumsum(gaps + lengths)
    starts = ends - lengths
    count = len(starts)
    names = [b"function%d_%s" % (i, b"x" * (i % 97)) for i in range(count)]
    operators = np.arange(count) % 3 - 1
    removed = RemovedFunctions(starts, ends, names, operators, ("aten::one", "aten::two.out"), "")
    made = make_name_table(removed)
    for i in {0, count // 2, count - 1, *range(0, count, 97)}:
        operator = ("", "aten::one", "aten::two.out")[operators[i] + 1]
        expected = (int(starts[i]), names[i].decode(), operator)
        assert find(made.contents, made.count, int(starts[i])) == expected
        assert find(made.contents, made.count, int(ends[i]) - 1) == expected
        if gaps[i]:
            assert find(made.contents, made.count, int(starts[i]) - 1) is None
    assert find(made.contents, made.count, int(ends[-1])) is None
    assert find(made.contents, made.count, 0) is None or starts[0] == 0


def test_names_are_readable_and_cut() -> None:
    assert table.readable(b"_ZN2at6native3addERKNS_6TensorE") == "at::native::add(at::Tensor const&)"
    assert table.readable(b"_ZN2at6native3addERKNS_6TensorE.cold") == "at::native::add(at::Tensor const&).cold"
    assert table.readable(b"mkl_blas_sgemm") == "mkl_blas_sgemm"
    assert table.readable(b"_Znonsense.part.0") == "_Znonsense.part.0"
    assert table.readable(b"_ZN\xff\xfe") == "_ZN��"
