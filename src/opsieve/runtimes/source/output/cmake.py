"""The CMake package: `find_package(OpsieveTorch)` and the target `OpsieveTorch::OpsieveTorch`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opsieve.runtimes.source.output.interface import Interface

PACKAGE = "OpsieveTorch"

_CONFIG = """\
# Made by opsieve. Gives OpsieveTorch::OpsieveTorch, the PyTorch {version} that lies in this folder.
get_filename_component(_opsieve_root "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
set(OpsieveTorch_INCLUDE_DIRS "${{_opsieve_root}}/include")
set(OpsieveTorch_LIBRARY "${{_opsieve_root}}/lib/{library}")

if(NOT TARGET OpsieveTorch::OpsieveTorch)
  add_library(OpsieveTorch::OpsieveTorch INTERFACE IMPORTED)
  set_target_properties(OpsieveTorch::OpsieveTorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${{OpsieveTorch_INCLUDE_DIRS}}"
    INTERFACE_COMPILE_DEFINITIONS {definitions}
    INTERFACE_COMPILE_OPTIONS {compile_options}
    INTERFACE_COMPILE_FEATURES "cxx_std_{standard}"
    # The whole library: what registers operators is referred to by nobody. The linker drops what the roots do not need.
    INTERFACE_LINK_OPTIONS {link_options}
    INTERFACE_LINK_DEPENDS "${{OpsieveTorch_LIBRARY}};${{_opsieve_root}}/roots.rsp"
    INTERFACE_LINK_LIBRARIES {libraries})
endif()
{shared}unset(_opsieve_root)
"""

_SHARED = """
if(NOT TARGET OpsieveTorch::Shared)
  add_library(OpsieveTorch::Shared SHARED IMPORTED)
  set_target_properties(OpsieveTorch::Shared PROPERTIES
    IMPORTED_LOCATION "${{_opsieve_root}}/lib/{shared}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${{OpsieveTorch_INCLUDE_DIRS}}"
    INTERFACE_COMPILE_DEFINITIONS {definitions}
    INTERFACE_COMPILE_OPTIONS {compile_options}
    INTERFACE_COMPILE_FEATURES "cxx_std_{standard}")
endif()
"""

_VERSION = """\
# A runtime fits the PyTorch version that it was made from, and no other.
set(PACKAGE_VERSION {version})
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""


def cmake_config(version: str, interface: Interface, library: str, shared: str | None = None) -> str:
    """The text of `OpsieveTorchConfig.cmake`. It lies in `lib/cmake/OpsieveTorch`; the folder can be moved."""
    whole = "LINKER:--whole-archive,${OpsieveTorch_LIBRARY},--no-whole-archive"
    common = {
        "definitions": _list(interface.definitions),
        "compile_options": _list(interface.compile_options),
        "standard": interface.standard,
    }
    return _CONFIG.format(
        version=version,
        library=library,
        link_options=_list((*interface.link_options, "@${_opsieve_root}/roots.rsp", whole), variables=True),
        libraries=_list(interface.libraries),
        shared=_SHARED.format(shared=shared, **common) if shared else "",
        **common,
    )


def cmake_version(version: str) -> str:
    """The text of `OpsieveTorchConfigVersion.cmake`."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return _VERSION.format(version=_quoted(numbers[0] if numbers else "0"))


def _list(words: Iterable[str], *, variables: bool = False) -> str:
    """One argument that is a list; a semicolon within a word does not part it."""
    return '"' + ";".join(_escaped(word, variables).replace(";", "\\;") for word in words) + '"'


def _quoted(text: str) -> str:
    return f'"{_escaped(text, False)}"'


def _escaped(text: str, variables: bool) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return text if variables else text.replace("$", "\\$")
