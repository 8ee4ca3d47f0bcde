"""The version of a slim package, and the files that carry it.

A local version (PEP 440) names what the package holds: `2.13.0+cpu.opsieve.h<hash>`. Requirements such as
`torch==2.13.0` accept it, and pip does not take it for the stock wheel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from opsieve import __version__ as opsieve_version
from opsieve.errors import MissingInstallation

_OURS = re.compile(r"[+.]opsieve\.h[0-9a-f]+$")
_HASH_DIGITS = 10


def slim_version(stock: str, hashes: Mapping[str, str]) -> str:
    """The version of a package whose files have these hashes: the same content gets the same version.

    `stock` is the version it is cut from; one that is itself ours loses its old hash. The letter before the digits
    keeps PEP 440 from reading a hash without letters as a number and dropping its leading zeros.
    """
    base = _OURS.sub("", stock)
    content = "".join(f"{path}\0{digest}\n" for path, digest in sorted(hashes.items()))
    digits = sha256(content.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{base}{'.' if '+' in base else '+'}opsieve.h{digits}"


def version_py_with_version(version_py: str, version: str) -> str:
    """The text of `torch/version.py` with another `__version__`; the rest of the line and file stays."""
    return _replace_once(
        r"(?m)^(__version__\s*(?::\s*\w+\s*)?=\s*)(['\"])[^'\"\n]*\2", version_py, rf"\g<1>'{version}'"
    )


def metadata_with_version(metadata: str, version: str) -> str:
    """The text of METADATA with another Version header; the description after the headers is not touched."""
    headers, blank, description = metadata.partition("\n\n")
    return _replace_once(r"(?m)^(Version:\s*)\S+", headers, rf"\g<1>{version}") + blank + description


def wheel_with_generator(wheel: str) -> str:
    """The text of WHEEL saying who made it. Its tags stay: the code is for the same Python and platform."""
    return _replace_once(r"(?m)^(Generator:\s*).*", wheel, rf"\g<1>opsieve ({opsieve_version})")


def _replace_once(pattern: str, text: str, replacement: str) -> str:
    changed, count = re.subn(pattern, replacement, text, count=2)
    if count != 1:
        raise MissingInstallation(
            f"expected one place that says the version (pattern {pattern}), found {count}",
            expected="the metadata of a released PyTorch wheel",
        )
    return changed
