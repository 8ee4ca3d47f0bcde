from pathlib import Path

import pytest

from .project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("first/one.h", "#define ONE 1\n")
    made.write("second/two.h", "#include <one.h>\n#define TWO 2\n")
    made.write("src/main.cpp", '#include <two.h>\n#include "near.h"\nint sum() { return ONE + TWO + NEAR; }\n')
    made.write("src/near.h", "#define NEAR 3\n")
    return made
