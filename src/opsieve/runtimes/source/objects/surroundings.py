"""How a job's headers are named without absolute paths, which file each include leads to, and what all that amounts to.

A file that is compiled the same needs three things the same: its own text, the place each of its includes leads to, and
the files in these places. So the *state* of a file is a hash of its text and of the names its includes lead to, where a
name is relative to an include folder, told by its number. When the states of all files that a compiler run read are the
same as before, a run now would read the same files again: by induction over the includes. A header that newly hides
another one changes the state of every file that includes it. Includes that macros compute are covered by `suspicions`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from opsieve.runtimes.source.objects.compiler import SearchPath
from opsieve.runtimes.source.objects.files import Files, digest
from opsieve.runtimes.source.objects.includes import Style
from opsieve.runtimes.source.objects.job import CompileJob

_SOURCE_FOLDER = "s"
_NOWHERE = ""


def outer_source_folder(job: CompileJob) -> str | None:
    """The folder of the job's source; None if it is in an include folder, whose number then names what is in it."""
    folder = posixpath.dirname(job.source_path)
    inside = any(f"{folder}/".startswith(f"{include.rstrip('/')}/") for include in job.include_folders)
    return None if inside else folder


class Surroundings:
    """The headers as one job sees them, or many jobs with the same folders. Everything is looked at once."""

    def __init__(self, job: CompileJob, search: SearchPath, files: Files) -> None:
        self.files = files
        self.current: dict[str, bytes] = {}
        self._searched = {Style.QUOTED: (*search.quoted, *search.angled), Style.ANGLED: search.angled}
        self._folders = {str(number): folder for number, folder in enumerate(job.include_folders)}
        outer = outer_source_folder(job)
        if outer is not None:
            self._folders[_SOURCE_FOLDER] = outer
        # The innermost folder names a file; of the same folder given twice, the first.
        self._prefixes = sorted(
            ((f"{folder.rstrip('/')}/", tag) for tag, folder in self._folders.items()), key=lambda item: -len(item[0])
        )
        self._found: dict[tuple[Style, str, str], str] = {}
        self._led: dict[str, list[str]] = {}

    def name(self, path: str) -> str:
        """The path relative to the include folder or the source's folder that it is in; else the absolute path.

        The compiler shortens some paths of system headers and not others: `/usr/lib/gcc/../include` and `/usr/include`.
        """
        for prefix, tag in self._prefixes:
            if path.startswith(prefix):
                return f"{tag}:{path[len(prefix) :]}"
        folder, _, last = path.rpartition("/")
        return f"{self.files.canonical(folder)}/{last}"

    def path(self, name: str) -> str:
        """The opposite of `name`; a name of folders that this job lacks leads to no file."""
        if name.startswith("/"):
            return name
        tag, _, rest = name.partition(":")
        return f"{self._folders.get(tag, '/dev/null')}/{rest}"

    def state(self, name: str) -> bytes:
        """The state of a file, see above; empty when it is not there."""
        known = self.current.get(name)
        if known is None:
            known = self.current[name] = self._state(name)
        return known

    def _state(self, name: str) -> bytes:
        facts = self.files.facts(self.path(name))
        if facts is None:
            return b""
        return digest(facts.digest, "\0".join(self.led_to(name)).encode(errors="surrogateescape"))

    def led_to(self, name: str) -> list[str]:
        """Where each include that the file mentions leads to, in their order; empty names for what is not found."""
        led = self._led.get(name)
        if led is None:
            path = self.path(name)
            facts = self.files.facts(path)
            mentioned = facts.includes.mentioned if facts else ()
            folder = posixpath.dirname(path)
            led = self._led[name] = [self.find(style, spelled, folder) for style, spelled in mentioned]
        return led

    def find(self, style: Style, spelled: str, folder: str) -> str:
        """The name of the file that an include in a file of `folder` leads to. NEXT: all places it is in."""
        key = (style, spelled, folder if style is Style.QUOTED else "")
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look(style, spelled, folder)
        return found

    def _look(self, style: Style, spelled: str, folder: str) -> str:
        if spelled.startswith("/"):
            return self.name(spelled) if self.files.exists(*posixpath.split(spelled)) else _NOWHERE
        if style is Style.NEXT:
            return "\0".join(self._places(self._searched[Style.QUOTED], spelled))
        folders = self._searched[style]
        if style is Style.QUOTED:
            folders = (folder, *folders)
        return next(self._places(folders, spelled), _NOWHERE)

    def _places(self, folders: Iterable[str], spelled: str) -> Iterator[str]:
        return (self.name(f"{folder}/{spelled}") for folder in folders if self.files.exists(folder, spelled))

    def suspicions(self, names: Iterable[str]) -> dict[str, str]:
        """What else has to stay for files that were read and that no include in any text explains.

        These come from macros, from `-include`, or from the compiler's own accord. Every end of such a file's name may
        be what was asked for: each end, looked for from each folder that has computed includes, with what it leads to.
        """
        names = list(names)
        explained = {place for name in names for found in self.led_to(name) for place in found.split("\0")}
        askers = sorted({self._asker(name) for name in names if self._computes(name)})
        looked: dict[str, str] = {}
        for name in names[1:]:
            if name not in explained:
                parts = name.partition(":")[2].split("/") if not name.startswith("/") else name[1:].split("/")
                for start in range(len(parts)):
                    spelled = "/".join(parts[start:])
                    looked.update({key: self.recheck(key) for key in (spelled, *(f"{a}\0{spelled}" for a in askers))})
        return looked

    def recheck(self, key: str) -> str:
        """Where a key of `suspicions` leads to now."""
        asker, quoted, spelled = key.rpartition("\0")
        return self.find(Style.QUOTED if quoted else Style.ANGLED, spelled, self.path(asker).rstrip("/"))

    def _asker(self, name: str) -> str:
        """The name of the folder that a file is in, such that `path` leads to the folder."""
        folder = posixpath.dirname(self.path(name))
        return self.name(f"{folder}/")

    def _computes(self, name: str) -> bool:
        facts = self.files.facts(self.path(name))
        return facts is not None and facts.includes.computed
