"""From options to compiler flags."""

from opsieve.runtimes.source.options import Blas, BuildOptions, CpuLevel, Interpreter, Threads, is_kernel_file


def test_only_kernels_get_the_instructions_of_a_level() -> None:
    options = BuildOptions(cpu=CpuLevel.AVX2)
    assert "-mavx2" in options.flags("17", is_kernel=True)
    assert "-mavx2" not in options.flags("17", is_kernel=False)
    assert "-DCPU_CAPABILITY=DEFAULT" in options.flags("17", is_kernel=True)


def test_the_users_flags_come_last() -> None:
    options = BuildOptions(optimisation="-Os", extra_flags=("-O1", "-fno-plt"))
    flags = options.flags("14", is_kernel=False)
    assert flags[-2:] == ("-O1", "-fno-plt")
    assert flags.index("-Os") < flags.index("-O1")
    assert "-std=gnu++14" in flags


def test_every_option_changes_what_the_compiler_is_told() -> None:
    def told(options: BuildOptions) -> tuple[object, ...]:
        return options.flags("17", is_kernel=True), tuple(sorted(options.config_values.items()))

    variants = [
        BuildOptions(),
        BuildOptions(interpreter=Interpreter.FULL),
        BuildOptions(cpu=CpuLevel.AVX512),
        BuildOptions(blas=Blas.OPENBLAS),
        BuildOptions(threads=Threads.NATIVE),
        BuildOptions(threads=Threads.NONE),
        BuildOptions(optimisation="-O3"),
        BuildOptions(position_independent=True),
    ]
    assert len({told(options) for options in variants}) == len(variants)


def test_dtypes_change_no_flag_of_files_that_do_not_dispatch_on_them() -> None:
    assert BuildOptions(dtype_header="x").flags("17", is_kernel=False) == BuildOptions().flags("17", is_kernel=False)


def test_definitions_are_those_of_the_command_line() -> None:
    definitions = BuildOptions().definitions
    assert definitions["C10_MOBILE"] == "1"
    assert definitions["NDEBUG"] == ""


def test_kernel_files() -> None:
    assert is_kernel_file("aten/src/ATen/native/cpu/CopyKernel.cpp")
    assert is_kernel_file("generated/UfuncCPUKernel_add.cpp")
    assert not is_kernel_file("aten/src/ATen/native/Copy.cpp")
    assert not is_kernel_file("generated/UfuncCPU_add.cpp")
