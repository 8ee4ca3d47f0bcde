"""apt with a source list, an index and a cache of its own, so that nothing of the system changes.

apt brings what we would otherwise write: mirrors and proxies as the machine is configured, signed indexes, checksums.
Needs no root. The machine's settings stay in force, without the commands that they run after an update.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from opsieve.errors import MissingInstallation, SourceUnavailable
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.apt_entries import AptEntry, read_entries

# Lists can only be emptied in a file, not by `-o`. Error-Mode: else a failed download ends with status 0.
_SETTINGS = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Update::Error-Mode "any";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Dir::Etc::sourcelist "/dev/null";
"""

_URI_LINE = re.compile(r"'(?P<uri>[^']+)' (?P<name>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-fA-F]{64})$", re.M)

_POLL_SECONDS = 0.2

_NO_SUCH_SUITE = "does not have a Release file"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source package, as the signed index describes it."""

    uri: str
    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PrivateApt:
    """apt over the folder `folder`, which belongs to it."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Prepare an empty folder. Raises MissingInstallation where there is no apt."""
        if not all(shutil.which(tool) for tool in ("apt-get", "apt-cache", "apt-config")):
            raise MissingInstallation("this machine has no apt", expected="Debian, or a system made from it")
        for name in ("lists/partial", "cache/archives/partial", "parts"):
            (folder / name).mkdir(parents=True)
        (folder / "settings").write_text(_SETTINGS)
        return cls(folder)

    def entries_of_the_machine(self) -> tuple[AptEntry, ...]:
        """What the machine's own source lists name."""
        places = self._places("sourcelist", "Dir::Etc::sourcelist/f", "sourceparts", "Dir::Etc::sourceparts/d")
        return read_entries(Path(places.get("sourcelist", "")), Path(places.get("sourceparts", "")))

    def update(self, entry: AptEntry, suite: str) -> bool:
        """Get the signed index of the source packages in one suite of `entry`; False if the archive has no such suite.

        Raises SourceUnavailable with apt's words if the archive cannot be reached, or its signature is not right.
        """
        (self.folder / "parts" / "archive.sources").write_text(entry.sources_of(suite))
        done = self._run("apt-get", "update")
        if done.returncode == 0:
            return True
        if _NO_SUCH_SUITE in done.stderr:
            return False
        raise SourceUnavailable(f"the package index cannot be read: {_last_words(done.stderr)}", where=entry.uris[0])

    def names_of_the_suite(self) -> frozenset[str]:
        """The names of the suite that the last update got: `bookworm` and `oldstable` are one."""
        done = self._run("apt-get", "indextargets", "--format", "$(CODENAME) $(SUITE)", "Created-By: Sources")
        return frozenset(done.stdout.split())

    def versions(self, package: str) -> tuple[str, ...]:
        """The versions of the source package `package` in the suite that the last update got."""
        done = self._run("apt-cache", "showsrc", "--only-source", package)
        return tuple(re.findall(r"^Version: (\S+)$", done.stdout, re.M))

    def files(self, package: str, version: str) -> tuple[SourceFile, ...]:
        """The files of a source package, those with a SHA-256 in the index. Raises SourceUnavailable if apt fails."""
        done = self._run("apt-get", "-qq", "source", "--print-uris", "--only-source", f"{package}={version}")
        if done.returncode != 0:
            raise SourceUnavailable(f"apt does not give the files of {package}: {_last_words(done.stderr)}")
        return tuple(
            SourceFile(found["uri"], found["name"], int(found["size"]), found["sha256"].lower())
            for found in _URI_LINE.finditer(done.stdout)
        )

    def download(self, file: SourceFile, target: Path, progress: Progress = SILENT) -> None:
        """Download `file` to `target` and check its SHA-256. Raises SourceUnavailable; `target` may then be there."""
        methods = self._places("methods", "Dir::Bin::methods/d").get("methods", "/usr/lib/apt/methods/")
        helper = Path(methods).parent / "apt-helper"
        command = self._command(str(helper), "download-file", file.uri, str(target), f"SHA256:{file.sha256}")
        with (
            progress.stage(f"downloading {file.name}", file.size) as advance,
            (self.folder / "errors").open("w+") as errors,
            subprocess.Popen(command, stdout=errors, stderr=errors, env=_environment()) as process,
        ):
            seen = 0
            try:
                while not _ended(process):
                    size = target.stat().st_size if target.exists() else 0
                    advance(max(0, size - seen))
                    seen = max(seen, size)
            except BaseException:
                process.terminate()
                raise
            errors.seek(0)
            words = _last_words(errors.read())
        if process.returncode != 0:
            raise SourceUnavailable(f"{file.name} cannot be downloaded: {words}", where=file.uri)
        _check(file, target)

    def _places(self, *names_and_keys: str) -> dict[str, str]:
        # Without our settings: the machine's own source lists are wanted.
        done = subprocess.run(
            ["apt-config", "shell", *names_and_keys], capture_output=True, text=True, env=_environment(), check=False
        )
        return dict(word.split("=", 1) for word in shlex.split(done.stdout) if "=" in word)

    def _command(self, tool: str, *arguments: str) -> list[str]:
        places = {"Etc::sourceparts": "parts", "State::lists": "lists", "Cache": "cache"}
        options = [part for key, name in places.items() for part in ("-o", f"Dir::{key}={self.folder / name}")]
        return [tool, "-c", str(self.folder / "settings"), *options, *arguments]

    def _run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = self._command(tool, *arguments)
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=_environment(), cwd=self.folder, check=False
        )


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _last_words(text: str) -> str:
    """apt's errors in one line, without its marks."""
    lines = [line[3:] for line in text.splitlines() if line.startswith("E: ")] or text.strip().splitlines()[-1:]
    return "; ".join(lines)[:500] or "no reason given"


def _check(file: SourceFile, target: Path) -> None:
    with target.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise SourceUnavailable(
            f"{file.name} is not what the signed index describes",
            where=file.uri,
            expected=f"SHA-256 {file.sha256}, found {found}",
        )
