"""A runtime of three functions, compiled and linked in no time, that stands for PyTorch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opsieve.operators import OperatorName
from opsieve.runtimes.source.capabilities import SCHEMA, Capabilities
from opsieve.runtimes.source.objects import CompileJob, Compiler
from opsieve.runtimes.source.options import Interpreter
from opsieve.runtimes.source.output import RuntimeParts, SizeRow, SizeTables
from opsieve.runtimes.source.output import headers as headers_module
from opsieve.runtimes.source.wanted import Policy
from opsieve.select.selection import (
    ModelIdentity,
    Reason,
    ReasonKind,
    RuntimeIdentity,
    SelectedOperator,
    Selection,
)

SOURCES = {
    "opsieve/run.cpp": "#include <toy/all.h>\nint main() { return three() - 3; }\n",
    "a/three.cpp": "#include <toy/all.h>\nint three() { return ADDED + 1; }\n",
    "b/three.cpp": "int unused() { return 0; }\n",
}
HEADERS = {
    "inner/toy/all.h": '#pragma once\n#include <inner/toy/macro.h>\n#include "near.h"\nint three();\n',
    "inner/toy/macro.h": "#pragma once\n#ifdef TOY_BIG\n#define ADDED 2\n#endif\n",
    "inner/toy/near.h": "#pragma once\n#include <toy/macro.h>\n",
    "inner/toy/not_asked_for.h": "",
}


@pytest.fixture
def compiler() -> Compiler:
    return Compiler.find()


@pytest.fixture
def job(tmp_path: Path) -> CompileJob:
    """How the toy is compiled: as in PyTorch, one include folder lies within the other."""
    tree = tmp_path / "tree"
    for name, text in {**SOURCES, **HEADERS}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return CompileJob("x.cpp", tree / "x.cpp", ("-std=gnu++17", "-DTOY_BIG=1", "-DTOY_OTHER"), (tree, tree / "inner"))


@pytest.fixture
def selection() -> Selection:
    operator = SelectedOperator(OperatorName("aten", "add", "Tensor"), (Reason(ReasonKind.MODEL, "m.ptl", "forward"),))
    models = (ModelIdentity("m.ptl", "mobile", "0123"),)
    return Selection(RuntimeIdentity("2.6.0", "abc"), ("inference",), models, (operator,))


@pytest.fixture
def parts(
    tmp_path: Path, compiler: Compiler, job: CompileJob, selection: Selection, monkeypatch: pytest.MonkeyPatch
) -> RuntimeParts:
    monkeypatch.setitem(headers_module.PROBES, Interpreter.LITE, ("toy/all.h",))  # type: ignore[arg-type]
    built = tmp_path / "built"
    built.mkdir()
    objects = {}
    for number, name in enumerate(SOURCES):
        objects[name] = built / f"{number}.o"
        include = [f"-I{folder}" for folder in job.include]
        command = [
            *compiler.command,
            *job.flags,
            *include,
            "-c",
            str(tmp_path / "tree" / name),
            "-o",
            str(objects[name]),
        ]
        subprocess.run(command, check=True)
    subprocess.run([*compiler.command, *map(str, objects.values()), "-o", str(built / "program")], check=True)
    return RuntimeParts(
        version="2.6.0",
        interpreter=Interpreter.LITE,
        program=built / "program",
        objects=objects,
        roots=("_Z5threev",),
        link_flags=("-Wl,--gc-sections", "-Wl,--no-demangle"),
        libraries=("-lm",),
        compiler=compiler,
        compile=job,
        selection=selection,
        account=b"{}\n",
        sizes=SizeTables(1000, (SizeRow("aten::add.Tensor", 600),), (SizeRow("a/three.cpp", 500),)),
        command=("opsieve", "build", "m.ptl", "-o", "a folder"),
        capabilities=Capabilities(SCHEMA, "2.6.0", Interpreter.LITE, Policy.STATIC, (4, 9), (1, 10), None, ()),
    )
