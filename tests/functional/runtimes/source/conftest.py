"""A real PyTorch source tree, and objects that are kept from one run of the tests to the next.

The first run compiles for about ten minutes on two processors. OPSIEVE_TEST_SOURCE names a tree to use instead of
getting one through apt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from opsieve.errors import SourceUnavailable
from opsieve.runtimes.source.debian_source import get_source
from opsieve.runtimes.source.tree import SourceTree

VERSION = "2.6.0"


@pytest.fixture(scope="session")
def source_cache() -> Path:
    """Beside the user's own cache, so that neither is in the other's way."""
    return Path(os.environ.get("OPSIEVE_TEST_CACHE") or platformdirs.user_cache_path("opsieve-tests"))


@pytest.fixture(scope="session")
def source_tree(source_cache: Path) -> SourceTree:
    given = os.environ.get("OPSIEVE_TEST_SOURCE")
    if given:
        return SourceTree.open(Path(given))
    try:
        return get_source(VERSION, source_cache / f"pytorch-{VERSION}").tree
    except SourceUnavailable as error:
        pytest.skip(f"no source of PyTorch {VERSION} here: {error}")


@pytest.fixture
def kept_objects(source_cache: Path) -> Iterator[None]:
    """What is compiled in a test is there in the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSIEVE_CACHE", str(source_cache))
        yield
