"""A packed archive serves a machine that has neither the tree nor the objects, and nothing broken gets into a cache."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import msgspec
import pytest
import zstandard

from opsieve.errors import InvalidFile, OpsieveError, OutputExists
from opsieve.runtimes.source.association.sites import Sites
from opsieve.runtimes.source.objects import Compiler, ObjectStore
from opsieve.runtimes.source.packing import pack, unpack_runtime
from opsieve.runtimes.source.packing.manifest import FORMAT, MANIFEST, Manifest, Member
from opsieve.runtimes.source.prepare import prepare_workspace
from opsieve.runtimes.source.prepared import load_prepared
from opsieve.runtimes.source.workspace import Workspace

from .small_workspace import SOURCES, needs_compiler, small_workspace

pytestmark = needs_compiler

Contents = dict[str, bytes]
Change = Callable[[Manifest, Contents], Manifest]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("packed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSIEVE_CACHE", str(root / "cache"))
        workspace = small_workspace(root)
        (workspace.generated / "made.h").write_text("#define MADE 1\n")
        (workspace.folder / "sites.json").write_text("{}")
        archive = prepare_workspace(workspace, Compiler.find(), ObjectStore(root / "store"), parallel=1).archive
        pack(workspace, archive, Compiler.find(), root / "runtime.opsieve")
        pack(workspace, archive, Compiler.find(), root / "again.opsieve")
        with pytest.raises(OutputExists):
            pack(workspace, archive, Compiler.find(), root / "again.opsieve")
    return root / "runtime.opsieve"


def read(archive: Path) -> tuple[Manifest, Contents]:
    with zstandard.open(archive, "rb") as stream, tarfile.open(fileobj=io.BytesIO(stream.read())) as tar:
        found = {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}
    return msgspec.json.decode(found.pop(MANIFEST), type=Manifest), found


def written(target: Path, manifest: object, contents: Contents) -> Path:
    with zstandard.open(target, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for name, content in {MANIFEST: msgspec.json.encode(manifest), **contents}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target


def left_in(cache: Path) -> list[str]:
    """All that an unpacking left, locks aside."""
    return sorted(path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_another_machine_has_everything(packed: Path, cache: Path) -> None:
    unpacked = unpack_runtime(packed, Compiler.find())
    assert not unpacked.already
    generated = cache / "source-builds" / unpacked.manifest.generated
    folder = cache / "source-builds" / unpacked.manifest.workspace
    assert (generated / "made.h").read_text() == "#define MADE 1\n"
    sources = {name: unpacked.tree.root / name for name in SOURCES}
    original, options = packed.parent / "tree", unpacked.manifest.options
    there = Workspace(unpacked.tree, options, folder, generated, sources, Sites(()), ())
    prepared = load_prepared(there)
    assert prepared is not None
    assert prepared.objects.keys() == SOURCES.keys()
    assert unpacked.tree.fingerprint() == type(unpacked.tree).open(original).fingerprint()


def test_the_same_contents_are_the_same_bytes(packed: Path) -> None:
    assert packed.read_bytes() == packed.with_name("again.opsieve").read_bytes()


def test_unpacking_again_changes_nothing(packed: Path, cache: Path) -> None:
    unpack_runtime(packed, Compiler.find())
    before = left_in(cache)
    assert unpack_runtime(packed, Compiler.find()).already
    assert left_in(cache) == before


def test_a_damaged_object_in_the_cache_is_replaced(packed: Path, cache: Path) -> None:
    unpacked = unpack_runtime(packed, Compiler.find())
    objects = cache / "source-builds" / unpacked.manifest.workspace / unpacked.manifest.prepared / "objects"
    (objects / "app/main.cpp.o").write_bytes(b"")
    assert not unpack_runtime(packed, Compiler.find()).already
    assert (objects / "app/main.cpp.o").stat().st_size


def test_a_changed_tree_in_the_cache_is_replaced(packed: Path, cache: Path) -> None:
    unpacked = unpack_runtime(packed, Compiler.find())
    (unpacked.tree.root / "c10/core/TensorImpl.h").write_text("changed")
    again = unpack_runtime(packed, Compiler.find())
    assert not again.already
    assert again.tree.fingerprint() == again.manifest.fingerprint


def test_two_at_once(packed: Path, cache: Path) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            unpack_runtime(packed, Compiler.find())
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert unpack_runtime(packed, Compiler.find()).already
    assert not list((cache / "source-builds").glob(".unpack-*"))


def test_another_compiler_is_named(packed: Path, cache: Path) -> None:
    with pytest.raises(InvalidFile, match=r"made with another compiler: .*\d"):
        unpack_runtime(packed, replace(Compiler.find(), identity="other"))
    assert left_in(cache) == []


def other_format(manifest: Manifest, contents: Contents) -> Manifest:
    return msgspec.structs.replace(manifest, format=FORMAT + 1)


def other_code(manifest: Manifest, contents: Contents) -> Manifest:
    return msgspec.structs.replace(manifest, workspace="associated-" + "0" * 20)


def folder_outside(manifest: Manifest, contents: Contents) -> Manifest:
    return msgspec.structs.replace(manifest, prepared="../prepared-" + "0" * 20)


def a_bit(manifest: Manifest, contents: Contents) -> Manifest:
    contents["generated/made.h"] = b"#define MADE 2\n"
    return manifest


def shorter(manifest: Manifest, contents: Contents) -> Manifest:
    contents["generated/made.h"] = b"#"
    return manifest


def without_a_file(manifest: Manifest, contents: Contents) -> Manifest:
    del contents["generated/made.h"]
    return manifest


def with_another_file(manifest: Manifest, contents: Contents) -> Manifest:
    contents["generated/evil.h"] = b""
    return manifest


def too_large(manifest: Manifest, contents: Contents) -> Manifest:
    return msgspec.structs.replace(manifest, members={"generated/x": Member(1 << 60, "")})


def negative(manifest: Manifest, contents: Contents) -> Manifest:
    return msgspec.structs.replace(manifest, members={"generated/x": Member(-1, "")})


def named(name: str) -> Change:
    def change(manifest: Manifest, contents: Contents) -> Manifest:
        return msgspec.structs.replace(manifest, members={**manifest.members, name: Member(0, "")})

    change.__name__ = f"named {name[:20]!r}"
    return change


def no_tree(manifest: Manifest, contents: Contents) -> Manifest:
    for name in [name for name in contents if name.startswith("tree/c10")]:
        del contents[name]
    return msgspec.structs.replace(manifest, members={n: m for n, m in manifest.members.items() if n in contents})


@pytest.mark.parametrize(
    "change",
    [
        other_format,
        other_code,
        folder_outside,
        a_bit,
        shorter,
        without_a_file,
        with_another_file,
        too_large,
        negative,
        no_tree,
        *map(
            named,
            ("../x", "/etc/x", "tree/../../x", "elsewhere/x", "tree", "tree//x", "tree/a\0b", "tree/" + "x" * 2000),
        ),
        named("generated/made.h/below"),
    ],
    ids=lambda change: change.__name__,
)
def test_what_is_wrong_is_refused_and_leaves_nothing(packed: Path, cache: Path, tmp_path: Path, change: Change) -> None:
    manifest, contents = read(packed)
    wrong = written(tmp_path / "wrong", change(manifest, contents), contents)
    with pytest.raises(OpsieveError):
        unpack_runtime(wrong, Compiler.find())
    assert left_in(cache) == []
    assert not (tmp_path / "x").exists()


def test_the_changes_are_what_is_refused(packed: Path, cache: Path, tmp_path: Path) -> None:
    same = written(tmp_path / "same", *read(packed))
    assert not unpack_runtime(same, Compiler.find()).already


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "gzip", "header"])
def test_files_that_are_none(packed: Path, cache: Path, tmp_path: Path, kind: str) -> None:
    wrong = tmp_path / "wrong"
    if kind == "cut":
        wrong.write_bytes(packed.read_bytes()[:-2000])
    elif kind == "gzip":
        shutil.make_archive(str(wrong), "gztar", packed.parent / "tree")
        wrong = wrong.with_suffix(".tar.gz")
    elif kind == "header":
        # An extension header that asks for a gigabyte of memory.
        info = tarfile.TarInfo("pax")
        info.type, info.size = tarfile.XHDTYPE, 1 << 30
        with zstandard.open(wrong, "wb") as stream:
            stream.write(info.tobuf())
            for _ in range(1 << 6):
                stream.write(bytes(1 << 20))
    else:
        wrong.write_bytes(b"" if kind == "empty" else b"nothing of the kind\n" * 100)
    with pytest.raises(InvalidFile):
        unpack_runtime(wrong, Compiler.find())
    assert left_in(cache) == []


def test_a_link_is_refused(packed: Path, cache: Path, tmp_path: Path) -> None:
    manifest, contents = read(packed)
    with zstandard.open(tmp_path / "wrong", "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        info = tarfile.TarInfo(MANIFEST)
        content = msgspec.json.encode(manifest)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo(next(iter(contents)))
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(InvalidFile, match="not as listed"):
        unpack_runtime(tmp_path / "wrong", Compiler.find())
    assert left_in(cache) == []
