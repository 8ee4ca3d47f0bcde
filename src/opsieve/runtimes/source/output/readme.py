"""The `README.txt` of an output folder."""

from __future__ import annotations

import shlex

from opsieve.runtimes.source.output.interface import Interface
from opsieve.runtimes.source.output.parts import RuntimeParts

_TEXT = """\
A PyTorch {version} that holds what its models need, made by opsieve.
It holds {operators} operators; the program has {total:,} bytes.

  bin/run                   loads a model, runs it, times it, compares: bin/run --help
  lib/{library}  what the program was linked from
  include/                  the headers that an application needs
  lib/cmake/                find_package(OpsieveTorch), for CMake
  roots.rsp                 the operators to keep, for the linker
  selection.json            which operators are here, and why each of them
  selected_operators.yaml   the same, for PyTorch's own tools
  sizes.txt, sizes.json     where the bytes are
  command.txt               the command that made this folder
{shared}
Models
{models}

Use it with CMake (the folder can be moved)

  find_package(OpsieveTorch REQUIRED)
  target_link_libraries(app PRIVATE OpsieveTorch::OpsieveTorch)

  cmake -DCMAKE_PREFIX_PATH=<this folder> ...

or without (HERE is this folder)

  c++ {compile} app.cpp \\
    {link}

What an application includes: {includes}.

An application may call operators too (at::add and so on), if they are here. If the linker then misses a symbol such as
at::_ops::add_Tensor::call, or a model says that an operator was left out, make the folder again with that operator:
the command in command.txt and --op aten::add.Tensor.
"""


def readme_text(parts: RuntimeParts, interface: Interface, includes: tuple[str, ...], library: str) -> str:
    """What is in the folder and how to use it."""
    models = "\n".join(f"  {model.path}" for model in parts.selection.models) or "  none; operators were named"
    shared = f"  lib/{parts.shared.name}   the same as a shared library\n" if parts.shared else ""
    return _TEXT.format(
        version=parts.version,
        operators=len(parts.selection.operators),
        total=parts.sizes.total,
        library=library,
        shared=shared,
        models=models,
        compile=" ".join(_compile_words(interface)),
        link=" \\\n    ".join(_link_words(interface, library)),
        includes=", ".join(f"<{name}>" for name in includes),
    )


def _compile_words(interface: Interface) -> list[str]:
    definitions = [f"-D{definition}" for definition in interface.definitions]
    return [
        f"-std=c++{interface.standard}",
        *_quoted(definitions),
        *_quoted(interface.compile_options),
        "-isystem HERE/include",
    ]


def _link_words(interface: Interface, library: str) -> list[str]:
    return [
        " ".join(_quoted(interface.link_options)),
        f"@HERE/roots.rsp -Wl,--whole-archive,HERE/lib/{library},--no-whole-archive",
        " ".join(_quoted(interface.libraries)),
    ]


def _quoted(words: list[str] | tuple[str, ...]) -> list[str]:
    return [shlex.quote(word) for word in words]
