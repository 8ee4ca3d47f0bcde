"""How much memory compilers may take together."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_SHARE = 0.9
"""Of what is available, the part that compilers may count on."""


def memory_for_compilers() -> int:
    """Bytes available now to this machine or this container, less a margin; a very large number where nobody tells."""
    return int(min(_available(), _container_room()) * _SHARE)


def _available() -> float:
    try:
        lines = _MEMINFO.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return float(1 << 60)


def _container_room() -> float:
    """What control groups of version 2 leave; a process outside of any has no such file at the top."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        return int(limit) - int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return float(1 << 60)
