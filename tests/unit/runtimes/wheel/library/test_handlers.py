"""How many types a handler entry names, whichever way its actions reach them."""

from __future__ import annotations

import numpy as np
import pytest

from opsieve.runtimes.wheel.library.fields import TableError
from opsieve.runtimes.wheel.library.handlers import read_handlers

OMIT, TYPES, ULEB = b"\xff", b"\x9b", b"\x01"


def entry(sites: bytes, actions: bytes, types: int, specifications: bytes = b"") -> bytes:
    """An entry with `types` type pointers, as GCC writes it; all lengths below 128."""
    body = ULEB + bytes([len(sites)]) + sites + actions
    body += bytes(-(3 + len(body)) % 4)
    return OMIT + TYPES + bytes([len(body) + 4 * types]) + body + b"\x11" * 4 * types + specifications


def counts(*entries: bytes) -> list[int]:
    sizes = np.array([len(e) for e in entries], np.int64)
    data = np.frombuffer(b"".join(entries), np.uint8)
    return read_handlers(data, np.cumsum(sizes) - sizes).type_counts.tolist()


def site(action: int) -> bytes:
    return bytes([4, 2, 9, action])


def test_the_largest_type_of_a_chain_counts() -> None:
    # First action: type 1, then (two bytes on) type 3, then the end.
    assert counts(entry(site(0) + site(1), b"\x01\x01\x03\x00", 3)) == [3]


def test_chains_may_go_backwards() -> None:
    # The site starts at the second action, type 1, which goes back to the first, type 2.
    assert counts(entry(site(3), b"\x02\x00\x01\x7d", 2)) == [2]


def test_clean_up_alone_names_no_type() -> None:
    assert counts(entry(site(0), b"", 0)) == [0]
    assert counts(entry(site(1), b"\x00\x00", 0)) == [0]


def test_exception_specifications_name_types_too() -> None:
    # Filter -1: the list behind the type table that starts at offset 0, types 2 and 4.
    assert counts(entry(site(1), b"\x7f\x00", 4, b"\x02\x04\x00")) == [4]


def test_several_entries_keep_apart() -> None:
    plain = OMIT + OMIT + ULEB + b"\x04" + site(0)
    first = entry(site(1), b"\x01\x00", 1)
    last = entry(site(1), b"\x02\x01\x01\x00", 2)
    assert counts(first, plain, last) == [1, 0, 2]


def test_unknown_forms_stay_where_they_are() -> None:
    absolute = OMIT + b"\x03" + b"\x0d" + ULEB + b"\x04" + site(1) + b"\x01\x00" + bytes(6)
    with_start = b"\x1b" + bytes(4) + OMIT + ULEB + b"\x04" + site(0)
    data = np.frombuffer(absolute + with_start, np.uint8)
    assert read_handlers(data, np.array([0, len(absolute)])).movable.tolist() == [False, False]


@pytest.mark.parametrize(
    "broken",
    [
        entry(site(1), b"\x01\x00", 1)[:7],  # truncated
        entry(b"\x04\x02\x09", b"", 0),  # a site of three numbers
        entry(site(1), b"\x01\x7f", 1),  # an action that follows itself
        entry(site(1), b"\xff\xff\x03\x00", 1),  # type 65535
        entry(site(1), b"\x7f\x00", 1, b"\x01\x81"),  # a specification without end
        OMIT + TYPES + b"\x7f" + ULEB + b"\x04" + site(0),  # a type table behind the end
        b"\xff",
    ],
)
def test_broken_entries_are_errors(broken: bytes) -> None:
    with pytest.raises(TableError):
        counts(broken)
