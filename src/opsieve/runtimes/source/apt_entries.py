"""The package archives that this machine's apt knows, from its source lists in both of their formats.

Formats: sources.list(5). Only what names an archive and how it is trusted is kept; `Trusted: yes`, which would let an
unsigned index pass, is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_KEPT_OPTIONS = {
    name.lower(): name for name in ("Signed-By", "Check-Valid-Until", "Valid-Until-Max", "By-Hash", "InRelease-Path")
}

_ONE_LINE = re.compile(
    r"(?P<type>deb(?:-src)?)\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>.*)"
)

MAX_BYTES = 2**20
"""Of one source list."""


@dataclass(frozen=True, slots=True)
class AptEntry:
    """One entry of a source list."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Fields of the deb822 format, among them `Signed-By`, which may be a whole key in several lines."""

    def sources_of(self, suite: str) -> str:
        """A deb822 entry for the source packages of `suite` in the same archive."""
        fields = [
            ("Types", "deb-src"),
            ("URIs", " ".join(self.uris)),
            ("Suites", suite),
            ("Components", " ".join(self.components)),
            *self.options,
        ]
        return "".join(f"{name}: {value}\n" for name, value in fields)


def read_entries(main_list: Path, parts: Path) -> tuple[AptEntry, ...]:
    """The entries of apt's main list and of its folder of lists, in apt's order. What cannot be read is left out."""
    files = [main_list, *sorted(file for file in _files(parts) if file.suffix in {".list", ".sources"})]
    return tuple(entry for file in files for entry in _entries(file))


def archives_with(entries: Iterable[AptEntry], suites: Iterable[str]) -> tuple[AptEntry, ...]:
    """The entries for `main` of one of `suites`, one for each archive, in the order given."""
    wanted = frozenset(suites)
    found: dict[tuple[str, ...], AptEntry] = {}
    for entry in entries:
        if "main" in entry.components and wanted.intersection(entry.suites):
            found.setdefault(entry.uris, entry)
    return tuple(found.values())


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _entries(file: Path) -> Iterator[AptEntry]:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(MAX_BYTES)
    except OSError:
        return iter(())
    return parse_deb822(text) if file.suffix == ".sources" else parse_one_line(text)


def parse_one_line(text: str) -> Iterator[AptEntry]:
    """Entries of the older format: `deb [signed-by=FILE] URI SUITE COMPONENT...`."""
    for line in text.splitlines():
        found = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if found:
            pairs = (option.split("=", 1) for option in (found["options"] or "").split() if "=" in option)
            options = tuple(
                (_KEPT_OPTIONS[name.lower()], value) for name, value in pairs if name.lower() in _KEPT_OPTIONS
            )
            yield AptEntry((found["uri"],), (found["suite"],), tuple(found["rest"].split()), options)


def parse_deb822(text: str) -> Iterator[AptEntry]:
    """Entries of the newer format: paragraphs of fields. Those with `Enabled: no` are left out."""
    for paragraph in re.split(r"\n\s*\n", text):
        fields = _fields(paragraph)
        if "deb" in fields.get("types", "").replace("deb-src", "deb").split() and fields.get("enabled", "yes") != "no":
            options = tuple((name, fields[key]) for key, name in _KEPT_OPTIONS.items() if key in fields)
            uris, suites, components = (tuple(fields.get(key, "").split()) for key in ("uris", "suites", "components"))
            yield AptEntry(uris, suites, components, options)


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in paragraph.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in {" ", "\t"} and name:
            fields[name] += f"\n{line}"
        elif ":" in line:
            name, value = (part.strip() for part in line.split(":", 1))
            name = name.lower()
            fields[name] = value
    return fields
