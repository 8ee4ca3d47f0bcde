"""What is compiled for one tree and one set of options: configured headers, generated code, rewritten registrations.

Made once and kept in the user's cache folder: the tree's generated code by the tree's fingerprint, the rewritten
sources by that and by what the preprocessor sees.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
from filelock import FileLock

from opsieve.errors import InvalidSourceTree
from opsieve.files import replacing_file, replacing_folder
from opsieve.graph.cache import cache_folder
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source import code_generation
from opsieve.runtimes.source.association.sites import Site, Sites
from opsieve.runtimes.source.association.tree import Associated, associate
from opsieve.runtimes.source.configuration import configured_headers
from opsieve.runtimes.source.flatbuffers import SchemaHeader
from opsieve.runtimes.source.objects.compiler import Compiler, compiler_environment
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.options import BuildOptions, Interpreter, QuantizedEngine, Threads, is_kernel_file
from opsieve.runtimes.source.patches import patched
from opsieve.runtimes.source.qnnpack import (
    engine_sources,
    families,
    header_files,
    is_qnnpack,
    qnnpack_flags,
    qnnpack_include,
    qnnpack_sources,
)
from opsieve.runtimes.source.tree import FULL_INTERPRETER, LITE_INTERPRETER, SourceGroup, SourceTree

FORMAT = 1
"""To be raised whenever what is generated or rewritten changes."""

SUPPORT = Path(__file__).parent / "cpp"
"""C++ of ours that goes into every runtime; also an include folder."""

THIRD_PARTY = (
    "fmt/include",
    "cpuinfo/include",
    "flatbuffers/include",
    "pocketfft",
    "nlohmann",
    "eigen",
    "pthreadpool/include",
    "FP16/include",
    "FXdiv/include",
    "psimd/include",
)
"""Include folders of submodules, below `third_party`."""

_HEADER_FOLDERS = ("aten/src/ATen", "c10", "torch/csrc", "caffe2/utils")

_STANDARD = re.compile(r"set\(\s*CMAKE_CXX_STANDARD\s+(\d+)")


@dataclass(frozen=True)
class Workspace:
    """Everything that can be compiled, by name."""

    tree: SourceTree
    options: BuildOptions
    folder: Path
    """Of the rewritten sources and configured headers."""

    generated: Path
    """Of the generated code."""

    sources: Mapping[str, Path]
    """Name -> the file to compile: the tree's own, a generated one, or a rewritten one."""

    sites: Sites
    always: tuple[str, ...]
    """Registrations that stay whenever their file is linked, as `file:line: reason`."""

    engine_sources: frozenset[str] = frozenset()
    """Sources that are told of the quantized engine. Its own are not among them."""

    families: frozenset[str] = frozenset()
    """The processors that the engine's own sources are compiled for; see qnnpack.py."""

    schema_header: SchemaHeader | None = None
    """For the sources that read flatbuffer models."""

    def job(self, name: str) -> CompileJob:
        """How a source is compiled."""
        source = self.sources[name]
        flags = self.options.flags(self._cxx_standard, is_kernel=is_kernel_file(name))
        include = self._include
        if is_qnnpack(name):
            flags = (*flags, *qnnpack_flags(name, self.families))
        if is_qnnpack(name) or name in self.engine_sources:
            flags = (*flags, *self.options.engine_flags)
            include = (*include, *qnnpack_include(self.tree.root))
        if self.schema_header and self.schema_header.is_included_by(source):
            include = (*self.schema_header.include, *include)
        if self.options.dtype_header and _dispatches_on_dtypes(source):
            # Only these see the header, so that all other objects are those of every build. A header that dispatches
            # on dtypes keeps them all in a file that does not: larger, not wrong.
            return CompileJob(name, source, (*flags, "-DTEMPLATE_SELECTIVE_BUILD"), (self._dtype_folder(), *include))
        return CompileJob(name, source, flags, include)

    # Asked for each of hundreds of sources, and the same for all.
    @cached_property
    def _cxx_standard(self) -> str:
        return _standard(self.tree)

    @cached_property
    def _include(self) -> tuple[Path, ...]:
        return include_folders(self.tree, self.folder, self.generated)

    def _dtype_folder(self) -> Path:
        """The include folder with the header of the chosen dtypes."""
        folder = self.folder / f"dtypes-{_hash(self.options.dtype_header)}"
        header = folder / "ATen/selected_mobile_ops.h"
        if not header.is_file():
            with replacing_file(header, force=True) as temporary:
                temporary.write_text(self.options.dtype_header, encoding="utf-8")
        return folder


def include_folders(tree: SourceTree, folder: Path, generated: Path) -> tuple[Path, ...]:
    """In the order of the search."""
    miniz = sorted((tree.root / "third_party").glob("miniz*"))
    third_party = [tree.root / "third_party" / name for name in THIRD_PARTY]
    return (
        folder / "config",
        SUPPORT,
        generated / code_generation.ATEN,
        generated / code_generation.AUTOGRAD,
        tree.root,
        tree.root / "aten/src",
        *miniz,
        tree.root / "torch/csrc",
        tree.root / "torch/csrc/api/include",
        *(path for path in third_party if path.is_dir()),
    )


def open_workspace(
    tree: SourceTree, options: BuildOptions, compiler: Compiler, progress: Progress = SILENT
) -> Workspace:
    """The workspace of a tree, from the cache or made now (about 30 s the first time, 10 s for other options).

    Raises InvalidSourceTree when the tree's generators fail or its sources cannot be read.
    """
    generated, folder = workspace_folders(tree, options, compiler)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{generated}.lock"):
        if not generated.is_dir():
            with replacing_folder(generated) as temporary:
                code_generation.generate(tree, temporary, progress)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            with replacing_folder(folder) as temporary:
                _associate(tree, options, compiler, generated, temporary, progress)
    return _read(tree, options, compiler, folder, generated)


def workspace_folders(tree: SourceTree, options: BuildOptions, compiler: Compiler) -> tuple[Path, Path]:
    """Where the generated code and the rewritten sources of a workspace are, or would be."""
    root = cache_folder() / "source-builds"
    generated = root / f"generated-{_hash(tree.fingerprint(), str(FORMAT))}"
    key = _hash(
        generated.name,
        compiler.identity,
        repr(sorted(options.config_values.items())),
        *options.flags(_standard(tree), is_kernel=False),
        *options.engine_flags,
        _support_fingerprint(),
    )
    return generated, root / f"associated-{key}"


class _Record(msgspec.Struct, frozen=True):
    sites: tuple[Site, ...]
    always: tuple[str, ...]
    rewritten: tuple[str, ...]
    engine_sources: tuple[str, ...] = ()


def _associate(
    tree: SourceTree, options: BuildOptions, compiler: Compiler, generated: Path, folder: Path, progress: Progress
) -> None:
    headers = configured_headers(tree.root, tree.version, options.config_values)
    for name, text in headers.items():
        target = folder / "config" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    flags = (*options.flags(_standard(tree), is_kernel=False), *options.engine_flags)
    include = include_folders(tree, folder, generated)
    if options.engine_flags:
        include = (*include, *qnnpack_include(tree.root))

    def preprocess(name: str, text: str) -> str:
        return _preprocess(CompileJob(name, tree.root / name, flags, include), compiler, text, folder)

    sources = _original_sources(tree, options, compiler, generated)
    asking = engine_sources(sources, header_files(tree.root, _HEADER_FOLDERS)) if options.engine_flags else ()
    _write(associate(sources, preprocess, progress, patched), asking, folder)


def _write(associated: Associated, asking: Iterable[str], folder: Path) -> None:
    for name, text in associated.sources.items():
        target = folder / "rewritten" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="surrogateescape")
    record = _Record(associated.sites.all, associated.always, tuple(sorted(associated.sources)), tuple(sorted(asking)))
    (folder / "sites.json").write_bytes(msgspec.json.encode(record, enc_hook=str))


def _read(tree: SourceTree, options: BuildOptions, compiler: Compiler, folder: Path, generated: Path) -> Workspace:
    record = msgspec.json.decode((folder / "sites.json").read_bytes(), type=_Record)
    sources = _original_sources(tree, options, compiler, generated)
    sources |= {name: folder / "rewritten" / name for name in record.rewritten}
    sources |= {f"opsieve/{file.name}": file for file in sorted(SUPPORT.glob("*.cpp"))}
    asking = frozenset(record.engine_sources)
    has_engine = options.quantized_engine is QuantizedEngine.QNNPACK
    processors = families(compiler) if has_engine else frozenset[str]()
    return Workspace(
        tree,
        options,
        folder,
        generated,
        sources,
        Sites(record.sites),
        record.always,
        asking,
        processors,
        SchemaHeader(tree.root, compiler, options.extra_flags, folder),
    )


def _original_sources(tree: SourceTree, options: BuildOptions, compiler: Compiler, generated: Path) -> dict[str, Path]:
    groups = FULL_INTERPRETER if options.interpreter is Interpreter.FULL else LITE_INTERPRETER
    has_engine = options.quantized_engine is QuantizedEngine.QNNPACK
    if options.threads is Threads.NATIVE or has_engine:
        groups |= {SourceGroup.PTHREADPOOL}
    return {
        **(qnnpack_sources(tree.root, families(compiler)) if has_engine else {}),
        **{name: tree.root / name for name in tree.sources(groups)},
        **code_generation.registration_files(generated),
        **code_generation.other_files(generated),
    }


def _preprocess(job: CompileJob, compiler: Compiler, text: str, folder: Path) -> str:
    command = [
        *compiler.command,
        *job.flags,
        *(word for path in job.include for word in ("-I", str(path))),
        "-E",
        "-x",
        "c++",
        "-",
    ]
    done = subprocess.run(
        command,
        input=text.encode(errors="surrogateescape"),
        capture_output=True,
        env=compiler_environment(folder),
        check=False,
    )
    if done.returncode:
        first = next(
            (line for line in done.stderr.decode(errors="replace").splitlines() if "error" in line), "no message"
        )
        raise InvalidSourceTree(f"the preprocessor failed: {first[:300]}", where=job.name, remedy="opsieve doctor")
    return done.stdout.decode(errors="surrogateescape")


def _dispatches_on_dtypes(source: Path) -> bool:
    return "AT_DISPATCH_" in source.read_text(encoding="utf-8", errors="replace")


def _standard(tree: SourceTree) -> str:
    match = _STANDARD.search((tree.root / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace"))
    return match[1] if match else "17"


def _support_fingerprint() -> str:
    here = Path(__file__).parent
    files = [here / "patches.py", here / "explaining.py", *sorted(here.glob("association/*.py"))]
    return _hash(*(file.read_text(encoding="utf-8") for file in files if file.is_file()))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=10).hexdigest()
