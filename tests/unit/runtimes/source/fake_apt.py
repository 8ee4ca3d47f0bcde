"""Programs that answer as apt does, over packages that a test names. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_PROGRAM = """\
#!{python} -IS
import json, re, shutil, sys
from pathlib import Path

state = json.loads(Path({state!r}).read_text())
name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
with Path({log!r}).open("a") as log:
    print(name, *arguments, file=log)

def fail(words):
    print("E: " + words, file=sys.stderr)
    sys.exit(100)

def packages():
    options = [argument.split("=", 1) for argument in arguments if argument.startswith("Dir::")]
    text = (Path(dict(options)["Dir::Etc::sourceparts"]) / "archive.sources").read_text()
    suite = re.search("^Suites: (.*)$", text, re.M)[1]
    if state["trouble"]:
        fail(state["trouble"])
    if suite not in state["suites"]:
        fail(f"The repository '{{suite}} Release' does not have a Release file.")
    return suite, state["suites"][suite]

if name == "apt-config":
    for word, key in zip(arguments[1::2], arguments[2::2]):
        print(f"{{word}}='{{state['places'][key]}}'")
elif name == "apt-helper":
    uri, target = arguments[-3:-1]
    shutil.copyfile(uri, target) if Path(uri).is_file() else fail("404  Not Found")
elif "update" in arguments:
    packages()
elif "indextargets" in arguments:
    print(*state["names"].get(packages()[0], []))
elif "showsrc" in arguments:
    for version in packages()[1]:
        print(f"Package: pytorch\\nVersion: {{version}}\\n")
else:
    for uri, size, sha256 in packages()[1][arguments[-1].split("=")[1]]:
        print(f"'{{uri}}' {{Path(uri).name}} {{size}} SHA256:{{sha256}}")
"""


@dataclass
class FakeApt:
    """What the archive holds, and how the machine is configured. `install` puts it in force."""

    folder: Path
    suites: dict[str, dict[str, list[tuple[str, int, str]]]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    """Other names of a suite."""

    trouble: str = ""
    """What every update fails with."""

    def add(self, suite: str, version: str, *files: Path, sha256: str | None = None) -> None:
        """Offer a version of the package; `sha256` is a lie about its files."""
        described = [
            (str(file), file.stat().st_size, sha256 or hashlib.sha256(file.read_bytes()).hexdigest()) for file in files
        ]
        self.suites.setdefault(suite, {})[version] = described

    def install(self, patch: pytest.MonkeyPatch, source_list: str) -> None:
        """Make these programs the machine's apt, with `source_list` as the only list."""
        programs = self.folder / "programs"
        (programs / "methods").mkdir(parents=True)
        (self.folder / "sources.list").write_text(source_list)
        places = {
            "Dir::Etc::sourcelist/f": str(self.folder / "sources.list"),
            "Dir::Etc::sourceparts/d": str(self.folder / "no-parts"),
            "Dir::Bin::methods/d": f"{programs}/methods/",
        }
        state = self.folder / "state.json"
        state.write_text(json.dumps({**vars(self), "folder": "", "places": places}))
        text = _PROGRAM.format(python=sys.executable, state=str(state), log=str(self.folder / "log"))
        for name in ("apt-get", "apt-cache", "apt-config", "apt-helper"):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        patch.setenv("PATH", str(programs))

    def calls(self, what: str) -> int:
        """How often a program was called with the argument `what`."""
        log = self.folder / "log"
        return sum(what in line.split() for line in log.read_text().splitlines()) if log.exists() else 0
