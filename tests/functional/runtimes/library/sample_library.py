"""Compiles the sample library with one linker, and makes it slim."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs

from opsieve.code.elf import HEADER, PROGRAM_HEADER, PT_LOAD, ElfFile
from opsieve.code.graph import CodeGraph, build_code_graph
from opsieve.runtimes.wheel.library.guard.table import RemovedFunctions
from opsieve.runtimes.wheel.library.kept import KeptCode
from opsieve.runtimes.wheel.library.redirect import Redirects
from opsieve.runtimes.wheel.library.segments import PT_GNU_EH_FRAME
from opsieve.runtimes.wheel.library.slim import SlimPlan
from opsieve.runtimes.wheel.library.stubs import PrunedError

SOURCES = Path(__file__).parent / "sample"
LINKERS = ("bfd", "gold", "lld")
"""Not mold: its procedure linkage table has a form that `opsieve.code` refuses."""


class MemoryImage:
    """A library as the loader sees it: ElfFile refuses slim libraries, whose code is not whole."""

    def __init__(self, path: Path) -> None:
        self.bytes = np.fromfile(path, np.uint8)
        header = self.bytes[: HEADER.itemsize].view(HEADER)[0]
        start, count = int(header["phoff"]), int(header["phnum"])
        self.segments = self.bytes[start : start + count * PROGRAM_HEADER.itemsize].view(PROGRAM_HEADER)


@dataclass(frozen=True)
class Sample:
    """A compiled sample: the library, and the driver that is linked against it."""

    folder: Path
    graph: CodeGraph = field(repr=False)
    names: list[bytes] = field(repr=False)

    @property
    def library(self) -> Path:
        return self.folder / "libsample.so"

    def elf(self) -> ElfFile:
        return ElfFile(self.library)

    def run(self, *questions: str, libraries: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the driver with the library that is in the folder `libraries`."""
        variables = {"LD_LIBRARY_PATH": f"{libraries}:{self.folder}", **environment}
        return subprocess.run(
            [self.folder / "driver", *questions], capture_output=True, text=True, env=variables, check=False
        )

    def index(self, part: str) -> int:
        """The function whose mangled name holds `part`."""
        (found,) = (i for i, name in enumerate(self.names) if part.encode() in name and b".cold" not in name)
        return found

    def plan(self, *, raising: bool = True, guard: bool = True, keep: int = -1) -> SlimPlan:
        """Remove every function with "removed" in its own name, but not number `keep`; all but `unlisted` raise."""
        functions = self.graph.functions
        removed = np.array([is_removed(name) and i != keep for i, name in enumerate(self.names)])
        listed = np.flatnonzero(removed & [b"unlisted" not in name for name in self.names])
        gone = np.flatnonzero(removed)
        errors = tuple(PrunedError(f"function {i}", f"{self.names[i].decode()} was removed") for i in listed)
        plan = SlimPlan(code=KeptCode.of(functions, ~removed), references=self.graph.references)
        if raising:
            redirects = Redirects(functions.starts[listed], functions.ends[listed], np.arange(len(listed)))
            plan = replace(plan, errors=errors, redirects=redirects)
        if guard:
            names = [self.names[i] for i in gone]
            operators = np.where([b"exported" in name for name in names], 0, -1)
            table = RemovedFunctions(
                functions.starts[gone], functions.ends[gone], names, operators, ("aten::sample.out",), "keep it"
            )
            plan = replace(plan, removed=table)
        return plan


def is_removed(name: bytes) -> bool:
    """Whether the tests remove a function: `kept_calls_removed_local` stays."""
    return b"removed" in name and b"kept_" not in name


def memory(elf: ElfFile | MemoryImage, start: int, end: int, hole: int | None = None) -> np.ndarray:
    """The bytes that the loader puts at `[start, end)`. What is in no segment reads as `hole`, if that is allowed."""
    found = np.zeros(end - start, bool)
    contents = np.full(end - start, 0 if hole is None else hole, np.uint8)
    for segment in elf.segments:
        address, size, offset = (int(segment[name]) for name in ("vaddr", "filesz", "offset"))
        low, high = max(start, address), min(end, address + size)
        if segment["type"] == PT_LOAD and low < high:
            contents[low - start : high - start] = elf.bytes[low - address + offset : high - address + offset]
            found[low - start : high - start] = True
    assert hole is not None or found.all()
    return contents


def unwind_records(elf: ElfFile | MemoryImage) -> dict[int, object]:
    """Each unwinding record by the start of its code, found as the unwinder finds it and read by pyelftools.

    The value holds all that must not change: end of the code, instructions, personality, handlers with their types.
    """
    (header,) = (s for s in elf.segments if s["type"] == PT_GNU_EH_FRAME)
    base = int(header["vaddr"])
    head = memory(elf, base, base + int(header["filesz"]))
    assert head[:4].tolist() == [1, 0x1B, 3, 0x3B]
    (count,) = head[8:12].view("<u4").tolist()
    table = head[12 : 12 + 8 * count].view("<i4").reshape(-1, 2).astype(np.int64) + base
    frames = base + 4 + int(head[4:8].view("<i4")[0])
    end = int(table[:, 1].max()) + 4
    end += int(memory(elf, end - 4, end).view("<u4")[0])
    stream = io.BytesIO(memory(elf, frames, end).tobytes())
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    entries = CallFrameInfo(stream, end - frames, frames, structs, for_eh_frame=True).get_entries()
    fdes = {entry.offset + frames: entry for entry in entries if isinstance(entry, FDE)}
    assert np.all(np.diff(table[:, 0]) >= 0)
    return {start: _record(elf, fdes[fde], start, frames) for start, fde in table.tolist()}


def _record(elf: ElfFile | MemoryImage, fde: FDE, start: int, table: int) -> object:
    # pyelftools gives pointers relative to their own place as addresses.
    assert fde.header["initial_location"] == start
    # DW_CFA_nop (0) is padding.
    instructions = [(i.opcode, i.args) for i in (*fde.cie.instructions, *fde.instructions) if i.opcode]
    handlers = None if fde.lsda_pointer is None else _handlers(elf, fde.lsda_pointer)
    return (
        fde.header["address_range"],
        str(fde.cie.header["augmentation"]),
        _personality(elf, fde, table),
        instructions,
        handlers,
    )


def _personality(elf: ElfFile | MemoryImage, fde: FDE, table: int) -> int | None:
    """The slot that holds the address of the personality routine."""
    letters = fde.cie.header["augmentation"]
    if b"P" not in letters:
        return None
    assert letters.startswith(b"zP")
    # Five fields of one byte stand behind the letters: alignment factors, return address, length, encoding.
    place = table + fde.cie.offset + 9 + len(letters) + 1 + 5
    return place + int(memory(elf, place, place + 4).view("<i4")[0])


def _handlers(elf: ElfFile | MemoryImage, address: int) -> object:
    """The call sites, actions and types at `address`, as plainly as the Itanium ABI says it."""
    cursor = address

    def byte() -> int:
        nonlocal cursor
        cursor += 1
        return int(memory(elf, cursor - 1, cursor)[0])

    def number() -> int:
        value = shift = 0
        while True:
            part = byte()
            value |= (part & 0x7F) << shift
            shift += 7
            if part < 0x80:
                return value

    assert byte() == 0xFF
    encoding = byte()
    types = None
    if encoding != 0xFF:
        distance = number()
        types = cursor + distance
    assert byte() == 1
    length = number()
    end = cursor + length
    sites = []
    while cursor < end:
        sites.append((number(), number(), number(), number()))
    chains = []
    for site in sites:
        place = end + site[3] - 1
        chain: list[object] = []
        while site[3]:
            cursor = place
            kind = _signed(number(), cursor - place)
            at = cursor
            step = _signed(number(), cursor - at)
            chain.append(_type(elf, types, encoding, kind))
            if step == 0:
                break
            place = at + step
        chains.append(chain)
    return sites, chains


def _signed(value: int, size: int) -> int:
    return value - (1 << 7 * size) if value >> (7 * size - 1) else value


def _type(elf: ElfFile | MemoryImage, types: int | None, encoding: int, kind: int) -> object:
    """The slot that holds the address of a caught type; negative kinds are exception specifications."""
    if kind <= 0 or types is None:
        return kind
    assert encoding == 0x9B
    place = types - 4 * kind
    distance = int(memory(elf, place, place + 4).view("<i4")[0])
    return place + distance if distance else "anything"


def build_sample(folder: Path, linker: str, *options: str) -> Sample:
    """Compile and link; skips the test when the compiler or the linker is not there."""
    if shutil.which("g++") is None or shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"g++ with ld.{linker} is not installed")
    compile_ = ["g++", "-std=c++17", "-O1", "-fPIC", "-fuse-ld=" + linker]
    common = [f"-L{folder}", f"-Wl,-rpath-link,{folder}", "-pthread"]
    shared = [*compile_, "-shared", "-Wl,--build-id=sha1"]
    thrower, sample, driver = (SOURCES / f"{name}.cpp" for name in ("thrower", "sample", "driver"))
    # Taking the address is enough to import the thrower; nothing of the sample itself throws through it.
    use = folder / "use.cpp"
    use.write_text(
        "namespace c10::detail { void torchCheckFail(const char*, const char*, unsigned, const char*); }\n"
        'void kept_check(bool ok) { if (!ok) c10::detail::torchCheckFail("f", "g", 1, "unused"); }\n'
    )
    for command in (
        [*shared, thrower, "-o", folder / "libthrower.so"],
        [*shared, *options, sample, use, *common, "-lthrower", "-o", folder / "libsample.so"],
        [*compile_, driver, *common, "-lsample", "-lthrower", "-o", folder / "driver"],
    ):
        subprocess.run(command, check=True)
    return _load(folder)


@cache
def _load(folder: Path) -> Sample:
    elf = ElfFile(folder / "libsample.so")
    graph = build_code_graph(elf)
    names = [elf.name(".strtab", offset) if offset >= 0 else b"" for offset in graph.functions.names.tolist()]
    return Sample(folder, graph, names)
