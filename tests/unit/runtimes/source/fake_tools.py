"""Programs that say who they are, and nothing else."""

from __future__ import annotations

from pathlib import Path

GNU_LD = "GNU ld (GNU Binutils for Debian) 2.40"
OLD_GNU_LD = "GNU ld version 2.35.2-43.el9"
LLD = "Debian LLD 14.0.6 (compatible with GNU linkers)"
GOLD = "GNU gold (GNU Binutils for Debian 2.40) 1.16"
MOLD = "mold 2.30.0 (compatible with GNU ld)"

_COMPILER = """\
#!/bin/sh
# Preprocesses as if the headers named in {headers} were there, each with the version beside its name.
case "$*" in
*--version*) echo "g++ (Fake) 12.2.0" ;;
*-dumpmachine*) echo x86_64-linux-gnu ;;
*-dumpfullversion*) echo 12.2.0 ;;
*-fsyntax-only*) exit {status} ;;
*-E*)
  read -r include name
  name="${{name#<}}" name="${{name%>}}"
  while read -r header version; do
    if [ "$header" = "$name" ]; then
      echo "# 1 \\"/there/$name\\" 1 3"; echo "opsieve_version"; echo "# 2 \\"<stdin>\\""; echo "  $version"; exit 0
    fi
  done < {headers}
  exit 1 ;;
esac
"""


def program(folder: Path, name: str, text: str) -> Path:
    """A program called `name`."""
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
    return file


def says(folder: Path, name: str, words: str) -> Path:
    """A program that prints `words` whatever it is asked."""
    return program(folder, name, f"#!/bin/sh\necho '{words}'\n")


def flatc(folder: Path, version: str, *, works: bool = True) -> Path:
    """A flatc that writes, for a header, the words that it was called with."""
    write = 'echo "// $*" > "$out/$(basename "$schema" .fbs)_generated.h"' if works else 'echo "error: no" >&2; exit 1'
    text = f"""#!/bin/sh
[ "$1" = --version ] && echo "flatc version {version}" && exit
for word; do [ "$last" = -o ] && out="$word"; last="$word" schema="$word"; done
{write}
"""
    return program(folder, "flatc", text)


def compiler(folder: Path, headers: dict[str, str], *, works: bool = True) -> Path:
    """A g++ that finds `headers`: names, each with its version macros as preprocessed."""
    (folder / "headers").write_text("".join(f"{name} {version}\n" for name, version in headers.items()))
    text = _COMPILER.format(headers=folder / "headers", status=0 if works else 1)
    return program(folder, "g++", text)
