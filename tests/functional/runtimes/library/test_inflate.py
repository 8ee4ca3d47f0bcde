"""The decompressor of the guard against zlib, and on broken input."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.runtimes.wheel.library.guard import table

Inflate = Callable[[bytes, int], bytes | None]
HEADER = Path(table.__file__).parent / "inflate.h"
FENCE = b"\xa5" * 64


@pytest.fixture(scope="module")
def inflate(tmp_path_factory: pytest.TempPathFactory) -> Inflate:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("inflate")
    source = folder / "inflate.c"
    source.write_text(
        f'#include "{HEADER}"\n'
        "long run(const uint8_t *in, long size, uint8_t *out, long room) {\n"
        "  struct inflater z; return inflate(&z, in, size, out, room);\n}\n"
    )
    options = ["-shared", "-fPIC", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]
    subprocess.run(["gcc", *options, source, "-o", folder / "inflate.so"], check=True)
    function = ctypes.CDLL(str(folder / "inflate.so")).run
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_char_p, ctypes.c_long]

    def run(data: bytes, room: int) -> bytes | None:
        out = ctypes.create_string_buffer(bytes(room) + FENCE, room + len(FENCE))
        size = function(data, len(data), out, room)
        assert out.raw[room:] == FENCE
        return None if size < 0 else out.raw[:size]

    return run


def deflate(data: bytes, level: int, strategy: int) -> bytes:
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    return compressor.compress(data) + compressor.flush()


@settings(max_examples=300)
@given(
    pieces=st.lists(st.binary(max_size=300), max_size=20),
    repeats=st.integers(1, 200),
    level=st.integers(0, 9),
    strategy=st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE]),
)
def test_it_undoes_what_zlib_does(
    inflate: Inflate, pieces: list[bytes], repeats: int, level: int, strategy: int
) -> None:
    data = (b"".join(pieces) * repeats)[:60_000]
    packed = deflate(data, level, strategy)
    assert inflate(packed, len(data)) == data
    if data:
        assert inflate(packed, len(data) - 1) is None
        assert inflate(packed[:-1], len(data)) is None


@settings(max_examples=300)
@given(seed=st.integers(0, 1 << 32), flips=st.integers(1, 6))
def test_broken_input_is_refused_or_read_as_zlib_reads_it(inflate: Inflate, seed: int, flips: int) -> None:
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randint(2, 12)) for _ in range(40)]
    packed = bytearray(deflate(b" ".join(chance.choices(words, k=400)), 9, zlib.Z_DEFAULT_STRATEGY))
    for _ in range(flips):
        packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
    found = inflate(bytes(packed), 65_535)
    reader = zlib.decompressobj(-15)
    try:
        expected = reader.decompress(bytes(packed), 65_536)
    except zlib.error:
        return
    if reader.eof and len(expected) <= 65_535:
        assert found == expected
