from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.runtimes.source.apt_entries import AptEntry, archives_with, parse_deb822, parse_one_line, read_entries

DEB822 = """\
# The distribution
Types: deb deb-src
URIs: http://mirror.example/debian
 http://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
# in between
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
Trusted: yes

Types: deb
Enabled: no
URIs: http://off.example/
Suites: bookworm
Components: main
"""


def test_the_newer_format() -> None:
    (entry,) = parse_deb822(DEB822)
    assert entry.uris == ("http://mirror.example/debian", "http://second.example/debian")
    assert entry.suites == ("bookworm", "bookworm-updates")
    assert entry.components == ("main", "contrib")
    assert entry.options == (("Signed-By", "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc"),)


def test_what_is_written_for_the_sources_reads_back_as_the_same_archive() -> None:
    (entry,) = parse_deb822(DEB822)
    text = entry.sources_of("trixie")
    assert text.startswith("Types: deb-src\n")
    assert list(parse_deb822(text)) == [AptEntry(entry.uris, ("trixie",), entry.components, entry.options)]


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("deb http://m.example/debian sid main", AptEntry(("http://m.example/debian",), ("sid",), ("main",))),
        (
            "deb-src [arch=amd64 signed-by=/k.gpg trusted=yes] http://m.example/d  sid  main contrib # why",
            AptEntry(("http://m.example/d",), ("sid",), ("main", "contrib"), (("Signed-By", "/k.gpg"),)),
        ),
    ],
)
def test_the_older_format(line: str, entry: AptEntry) -> None:
    assert list(parse_one_line(f"# a comment\n\n{line}\n")) == [entry]


@pytest.mark.parametrize("line", ["# deb http://m.example/debian sid main", "deb", "rpm http://m.example sid main"])
def test_lines_that_are_no_entries(line: str) -> None:
    assert list(parse_one_line(line)) == []


def test_lists_are_read_in_apts_order_and_the_unreadable_is_left_out(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "b.list").write_text("deb http://b.example sid main\n")
    (parts / "a.sources").write_text("Types: deb\nURIs: http://a.example\nSuites: sid\nComponents: main\n")
    (parts / "c.list.save").write_text("deb http://c.example sid main\n")
    (parts / "d.list").mkdir()
    main = tmp_path / "sources.list"
    main.write_text("deb http://main.example sid main\n")
    assert [entry.uris[0] for entry in read_entries(main, parts)] == [
        "http://main.example",
        "http://a.example",
        "http://b.example",
    ]
    assert read_entries(tmp_path / "gone", tmp_path / "gone") == ()


def test_an_archive_is_taken_once_and_only_for_a_suite_and_component_asked_for() -> None:
    mirror = AptEntry(("http://m.example",), ("bookworm",), ("main",))
    entries = [
        AptEntry(("http://other.example",), ("tool-bookworm",), ("main",)),
        AptEntry(("http://third.example",), ("bookworm",), ("stable",)),
        mirror,
        AptEntry(("http://m.example",), ("stable",), ("main",)),
    ]
    assert archives_with(entries, ["bookworm", "stable"]) == (mirror,)
