"""The account of a sample whose every operator is known."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import GroundTruthMismatch, InvalidFile, InvalidLibrary
from opsieve.operators import OperatorName
from opsieve.runtimes.source.link.account import (
    Need,
    Sizes,
    account_from_json,
    account_to_json,
    chains_to,
    read_account,
)
from opsieve.runtimes.source.link.left_out import write_left_out
from tests.functional.runtimes.source.link.account.conftest import LEN, RUNTIME, Builder, Linked, sites

CONV, MM, ADD, RELU, ZERO, TWIN = (
    OperatorName.parse(f"test::{name}") for name in ("conv", "mm", "add.Tensor", "relu", "zero", "twin")
)


@pytest.fixture(scope="module", params=["g++", "clang++"])
def linked(request: pytest.FixtureRequest, builder: Builder) -> Linked:
    return builder.link(request.param, "lld", ("test::conv", "test::len"), "-no-pie")


def test_operators_and_who_needs_them(linked: Linked) -> None:
    account = linked.account()
    assert [operator.name for operator in account.operators] == sorted([CONV, MM, ADD, ZERO, LEN])
    assert {(need.source, need.target) for need in account.needs} == {
        (CONV, MM),
        (CONV, ADD),
        (MM, ADD),
        (None, ZERO),
    }
    assert {operator.name for operator in account.operators if operator.asked} == {CONV, LEN}
    assert account.operator(CONV).kernels == ("CPU",)
    assert account.operator(LEN).kinds == ("interpreter",)
    assert RELU not in account


def test_the_functions_on_the_way(linked: Linked) -> None:
    account = linked.account()
    ways = {(need.source, need.target): account.names(need) for need in account.needs}
    assert ways[CONV, MM] == ("kernel_conv()", "at::_ops::mm::call()")
    assert ways[MM, ADD] == ("kernel_mm()", "at::_ops::add_Tensor::redispatch()")
    assert ways[None, ZERO] == ("main", "clear()")
    assert [need.target for need in chains_to(account, ADD)[CONV]] == [ADD]
    assert chains_to(account, CONV) == {CONV: ()}
    assert list(chains_to(account, ZERO)) == [None]


def test_what_would_go_without_an_operator(linked: Linked, builder: Builder) -> None:
    account = linked.account()
    assert account.operator(CONV).only_here == (ADD, MM)
    assert account.operator(MM).only_here == ()
    assert account.operator(ADD).exclusive.constants >= 1024  # its table
    assert account.operator(MM).exclusive.constants < 1024 <= account.operator(MM).reachable.constants
    without = builder.link(linked.program.name.split("_")[1], "lld", ("test::len",), "-no-pie").account()
    less = account.total - account.operator(CONV).exclusive
    # lld keeps the tables of handlers of dropped functions as long as their objects are given.
    assert (less.code, less.constants) == (without.total.code, without.total.constants)
    assert (account.core.code, account.core.constants) == (without.core.code, without.core.constants)


def test_every_byte_is_put_down_once(linked: Linked) -> None:
    account = linked.account()
    tops = [account.operator(name).exclusive for name in (CONV, ZERO, LEN)]
    assert account.alone == Sizes.sum(tops)
    assert account.core + account.shared + account.alone == account.total
    assert account.operator(MM).own == account.operator(MM).exclusive
    assert account.operator(CONV).own.total < account.operator(CONV).exclusive.total
    assert [file.name for file in account.files] == ["main.cpp", "operators.cpp"]
    assert min(file.sizes.total for file in account.files) > 100


def test_sizes_are_those_of_the_program(linked: Linked) -> None:
    """What else is loaded comes from the linker and from the system's own objects."""
    account = linked.account()
    assert 0.5 * account.program_bytes < account.total.total < account.program_bytes


def test_merged_functions_count_once(builder: Builder) -> None:
    """Two kernels of the sample, one in each source, have the same code; each operator alone would need it."""
    roots = ("test::conv", "test::twin")
    plain = builder.link("g++", "lld", roots, "-no-pie")
    folded = builder.link("g++", "lld", roots, "-no-pie", "-Wl,--icf=all")
    (size,) = {plain.size(f"_Z{len(name)}{name}v") for name in ("kernel_mm", "kernel_twin")}
    assert size > 0
    one, other = plain.account(), folded.account()
    merged = sum(plain.size(name) for name in plain.folded_with(folded))
    assert one.total.code - other.total.code == merged >= size
    assert other.operator(TWIN).exclusive.code < one.operator(TWIN).exclusive.code


def test_equal_strings_count_once(builder: Builder) -> None:
    linked = builder.link("g++", "lld", ("test::conv",), "-no-pie")
    rodata = ElfFile(linked.program, or_program=True).section(".rodata").size
    assert 0 <= rodata - linked.account().total.constants < 64  # the start-up code's own constant, and alignment


@pytest.mark.parametrize("linker", ["bfd", "gold", "mold"])
def test_other_linkers_and_what_they_keep(builder: Builder, linker: str) -> None:
    account = builder.link("g++", linker, ("test::conv",), "-no-pie").account()
    exact = {CONV, MM, ADD, ZERO}
    everything = exact | {RELU, LEN, TWIN}
    assert {operator.name for operator in account.operators} == (exact if linker == "bfd" else everything)
    assert (None, RELU) in {(need.source, need.target) for need in account.needs} or linker == "bfd"
    assert [operator.name for operator in account.operators if operator.asked] == [CONV]


def test_merged_functions_leave_the_operators_as_they_are(builder: Builder) -> None:
    plain = builder.link("g++", "lld", ("test::conv",), "-no-pie").account()
    folded = builder.link("g++", "lld", ("test::conv",), "-no-pie", "-Wl,--icf=all").account()
    assert [operator.name for operator in folded.operators] == [operator.name for operator in plain.operators]
    assert folded.needs == plain.needs


def test_an_operator_that_was_left_out_by_name(builder: Builder, linked: Linked, tmp_path: Path) -> None:
    """Something else has taken the place of its registration: it is not there, though code refers to it."""
    write_left_out(["opsieve_op_4test2mm"], tmp_path / "left_out.cpp")
    subprocess.run(["g++", "-c", tmp_path / "left_out.cpp", "-o", tmp_path / "left_out.o"], check=True)
    objects = (*linked.given.objects, tmp_path / "left_out.o")
    account = builder.link_objects(linked.linker, objects, ("test::conv",), "-no-pie").account()
    assert [operator.name for operator in account.operators] == sorted([CONV, ADD, ZERO])
    assert "left_out.cpp" in {file.name for file in account.files}


def test_a_shared_library(builder: Builder) -> None:
    """Its roots are what it exports, among them the functions that dispatch operators."""
    linked = builder.link("g++", "lld", ("test::len",), "-fPIC", "-shared")
    assert {operator.name for operator in linked.account().operators} == {MM, ADD, ZERO, RELU, LEN}


def test_json_and_back(linked: Linked, tmp_path: Path) -> None:
    account = linked.account()
    chains_to(account, ADD)
    path = tmp_path / "account.json"
    path.write_bytes(account_to_json(account))
    assert account_from_json(path) == account
    assert account_to_json(account_from_json(path)) == path.read_bytes()


@pytest.mark.parametrize(
    "broken",
    [
        {"needs": (Need(None, RELU, ()),)},
        {"needs": (Need(RELU, ADD, ()),)},
        {"needs": (Need(None, ADD, (99,)),)},
        {"needs": (Need(None, ADD, (-1,)),)},
    ],
    ids=["target", "source", "place", "negative"],
)
def test_an_account_that_cannot_be(linked: Linked, tmp_path: Path, broken: dict[str, tuple[Need, ...]]) -> None:
    path = tmp_path / "account.json"
    path.write_bytes(account_to_json(replace(linked.account(), **broken)))  # type: ignore[arg-type]
    with pytest.raises(InvalidFile):
        account_from_json(path)


def test_a_program_of_another_link(builder: Builder, linked: Linked) -> None:
    other = builder.link("g++", "lld", (), "-no-pie")
    with pytest.raises(GroundTruthMismatch, match="does not hold"):
        read_account(other.program, linked.given, {}, sites(), linked.linker, RUNTIME)


def test_a_program_that_is_none(linked: Linked, tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"#!/bin/sh\n")
    with pytest.raises(InvalidLibrary):
        read_account(tmp_path / "program", linked.given, {}, sites(), linked.linker, RUNTIME)
