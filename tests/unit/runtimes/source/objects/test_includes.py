from pathlib import Path

import pytest

from opsieve.runtimes.source.objects.includes import Style, find_includes, read_depfile


@pytest.mark.parametrize(
    ("text", "style", "name"),
    [
        (b"#include <a/b.h>\n", Style.ANGLED, "a/b.h"),
        (b'#include "a.h" // why', Style.QUOTED, "a.h"),
        (b"int a;\n \t# \tinclude<a.h>", Style.ANGLED, "a.h"),
        (b'%:include "a.h"\r\n', Style.QUOTED, "a.h"),
        (b"#import <a.h>\n", Style.ANGLED, "a.h"),
        (b"#include_next <a.h>\n", Style.NEXT, "a.h"),
        (b"#inc\\\nlude <a.h>\n", Style.ANGLED, "a.h"),
        (b"#if defined(X) && __has_include( <a.h> )\n", Style.ANGLED, "a.h"),
        (b'#elif __has_include("a.h")\n', Style.QUOTED, "a.h"),
        (b"#if __has_include_next(<a.h>)\n", Style.NEXT, "a.h"),
    ],
)
def test_every_way_to_mention_a_header(text: bytes, style: Style, name: str) -> None:
    found = find_includes(text)
    assert found.mentioned == ((style, name),)
    assert not found.computed


def test_several_on_one_line_and_each_once() -> None:
    text = b"#if __has_include(<a.h>) || __has_include(<b.h>)\n#include <a.h>\n#endif"
    assert find_includes(text).mentioned == ((Style.ANGLED, "a.h"), (Style.ANGLED, "b.h"))


def test_computed() -> None:
    assert find_includes(b"#include HEADER(x)\n").computed
    assert not find_includes(b"// what we include here\nint include = 1;\n#define include 3\n").computed


def test_depfile(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_bytes(b"object: /a/s.cpp \\\n /a/with\\ space.h /b/c\\#.h\\\n /d/$$e.h\n")
    assert read_depfile(path) == ["/a/s.cpp", "/a/with space.h", "/b/c#.h", "/d/$e.h"]
    path.write_bytes(b"")
    assert read_depfile(path) == []
