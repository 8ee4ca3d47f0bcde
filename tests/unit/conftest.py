"""What the unit tests share: a compiler for the small libraries that they analyse."""

from __future__ import annotations

import pytest

from tests.unit.native import Compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("native"))
