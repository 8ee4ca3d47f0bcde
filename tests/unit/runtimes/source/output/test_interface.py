from dataclasses import replace

from opsieve.runtimes.source.objects import CompileJob
from opsieve.runtimes.source.output import RuntimeParts
from opsieve.runtimes.source.output.cmake import cmake_config, cmake_version
from opsieve.runtimes.source.output.interface import Interface, interface_of


def test_flags_that_concern_an_application(parts: RuntimeParts) -> None:
    flags = ("-std=gnu++20", "-O2", "-ffunction-sections", "-fopenmp", "-DA=1", "-DA=2", "-DB", "-DNDEBUG", "-fPIC")
    changed = replace(
        parts, compile=CompileJob("x.cpp", parts.compile.source, flags), libraries=("-fopenmp", "-lcpuinfo", "-ldl")
    )
    assert interface_of(changed, ("A", "NDEBUG")) == Interface(
        standard="20",
        definitions=("A=2",),
        compile_options=("-ffunction-sections", "-fopenmp"),
        link_options=("-Wl,--gc-sections", "-fopenmp"),
        libraries=("-lcpuinfo", "-ldl"),
    )


def test_values_reach_cmake_as_they_are() -> None:
    interface = Interface("17", ('A="x;y"', "B=$C"), (), (), ())
    assert r'INTERFACE_COMPILE_DEFINITIONS "A=\"x\;y\";B=\$C"' in cmake_config("2.6.0", interface, "lib.a")


def test_versions_that_are_more_than_numbers() -> None:
    assert 'set(PACKAGE_VERSION "2.6.0")' in cmake_version("2.6.0a0+git123")
