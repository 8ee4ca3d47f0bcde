"""Writing the folder, as a whole or not at all."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from opsieve.emit.selected_operators import selected_operators_yaml
from opsieve.errors import BuildFailed, OutputExists
from opsieve.files import refuse_existing, replacing_folder
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.capabilities import CAPABILITIES, capabilities_to_json
from opsieve.runtimes.source.link.account import ACCOUNT
from opsieve.runtimes.source.output.archive import strip, write_archive
from opsieve.runtimes.source.output.cmake import PACKAGE, cmake_config, cmake_version
from opsieve.runtimes.source.output.header_record import kept_headers
from opsieve.runtimes.source.output.headers import PROBES, copy_headers
from opsieve.runtimes.source.output.interface import Interface, interface_of
from opsieve.runtimes.source.output.parts import RuntimeParts
from opsieve.runtimes.source.output.readme import readme_text
from opsieve.runtimes.source.output.sizes import sizes_json, sizes_text
from opsieve.select.store import selection_to_json

LIBRARY = "libopsieve_torch.a"
PROGRAM = "bin/run"
ROOTS = "roots.rsp"
SELECTION = "selection.json"
SELECTED_OPERATORS = "selected_operators.yaml"
SIZES = "sizes.txt"
SIZES_JSON = "sizes.json"
COMMAND = "command.txt"
README = "README.txt"

_MARKS = (COMMAND, SELECTION, ROOTS)


def refuse_output(out: Path, *, force: bool) -> None:
    """Raise OutputExists unless `out` can be written: nothing is there, or `force` is given and it is such a folder.

    To be asked before a long build, and asked again when the folder is written.
    """
    refuse_existing(out, force)
    if out.is_symlink() or (out.exists() and not _is_ours(out)):
        raise OutputExists(
            "the output exists, and is no folder that opsieve made",
            where=out,
            expected="with --force, an empty folder or the output of an earlier build",
            remedy="choose another name",
        )


def write_folder(parts: RuntimeParts, out: Path, *, force: bool = False, progress: Progress = SILENT) -> None:
    """Write the runtime into the folder `out`.

    Raises OutputExists as `refuse_output` does, BuildFailed when the headers cannot be read, `ar` or `strip` fail, or
    the disk is full. Whatever is raised, `out` is as it was.
    """
    refuse_output(out, force=force)
    try:
        with replacing_folder(out, force=force) as temporary:
            _write_all(parts, temporary, progress)
    except OSError as error:
        raise BuildFailed(f"the output cannot be written: {error.strerror or error}", where=out) from error


def _write_all(parts: RuntimeParts, folder: Path, progress: Progress) -> None:
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    with progress.stage("writing the library"):
        _write_binaries(parts, folder)
    with progress.stage("collecting headers"):
        includes = PROBES[parts.interpreter]
        headers = kept_headers(parts.compiler, parts.compile, includes, parts.header_record)
        copy_headers(headers, folder / "include")
    interface = interface_of(parts, headers.macros)
    _write_package(parts, interface, folder)
    for name, text in {
        ROOTS: "".join(f"-Wl,-u,{symbol}\n" for symbol in parts.roots),
        SELECTION: selection_to_json(parts.selection).decode(),
        SELECTED_OPERATORS: selected_operators_yaml(parts.selection),
        SIZES: sizes_text(parts.sizes),
        SIZES_JSON: sizes_json(parts.sizes).decode(),
        ACCOUNT: parts.account.decode(),
        COMMAND: shlex.join(parts.command) + "\n",
        CAPABILITIES: capabilities_to_json(parts.capabilities).decode(),
        README: readme_text(parts, interface, includes, LIBRARY),
    }.items():
        (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")


def _write_binaries(parts: RuntimeParts, folder: Path) -> None:
    program = folder / PROGRAM
    shutil.copyfile(parts.program, program)
    program.chmod(parts.program.stat().st_mode & 0o777)
    strip(parts.compiler, program)
    write_archive(parts.compiler, parts.library_objects, folder / "lib" / LIBRARY)
    if parts.shared is not None:
        shutil.copyfile(parts.shared, folder / "lib" / parts.shared.name)


def _write_package(parts: RuntimeParts, interface: Interface, folder: Path) -> None:
    package = folder / "lib" / "cmake" / PACKAGE
    package.mkdir(parents=True)
    shared = parts.shared.name if parts.shared else None
    config = cmake_config(parts.version, interface, LIBRARY, shared)
    (package / f"{PACKAGE}Config.cmake").write_text(config, encoding="utf-8")
    (package / f"{PACKAGE}ConfigVersion.cmake").write_text(cmake_version(parts.version), encoding="utf-8")


def _is_ours(folder: Path) -> bool:
    """Whether replacing it loses nothing but what an earlier build made."""
    if not folder.is_dir():
        return False
    return not any(folder.iterdir()) or all((folder / name).is_file() for name in _MARKS)
