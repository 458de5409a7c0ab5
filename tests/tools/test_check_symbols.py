"""The symbol checker, on small libraries compiled for the purpose."""

import ctypes
import subprocess
from pathlib import Path

import check_symbols
import pytest

HIDDEN = '__attribute__((visibility("hidden")))'
HOOKS = "int ioweir_hook_a(void) { return 1; }\nint ioweir_hook_b(void) { return 2; }\n"
EXPORTS = {"ioweir_hook_a", "ioweir_hook_b"}


def compile_library(directory: Path, source: str, *flags: str, name: str = "libtry.so") -> Path:
    code = directory / (name + ".c")
    code.write_text(source)
    library = directory / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, code, *flags], check=True, capture_output=True, text=True)
    return library


def faults(library: Path) -> list[str]:
    """What the checker finds in a library that ought to export EXPORTS."""
    return check_symbols.judge(check_symbols.read_library(library), EXPORTS)


def test_a_sound_library_passes(tmp_path: Path) -> None:
    source = (
        HOOKS
        + '#include <string.h>\n__attribute__((visibility("hidden"))) size_t inner(char* s) { return strlen(s); }\n'
    )
    assert faults(compile_library(tmp_path, source)) == []


def test_an_export_too_many_and_one_too_few(tmp_path: Path) -> None:
    source = "int ioweir_hook_a(void) { return 1; }\nint stranger(void) { return 3; }\n"
    assert faults(compile_library(tmp_path, source)) == [
        "exports stranger, which is not on the list",
        "does not export ioweir_hook_b",
    ]


def test_weak_and_data_exports_count(tmp_path: Path) -> None:
    source = HOOKS + "__attribute__((weak)) int soft(void) { return 3; }\nint datum = 4;\n"
    assert faults(compile_library(tmp_path, source)) == [
        "exports datum, which is not on the list",
        "exports soft, which is not on the list",
    ]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "closefrom"), reason="this C library has no newer function to try")
def test_functions_of_a_newer_c_library(tmp_path: Path) -> None:
    """closefrom came with glibc 2.34; dlopen only moved then."""
    source = HOOKS + (
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <unistd.h>\n"
        f"{HIDDEN} void* opening(void) {{ return dlopen(0, RTLD_NOW); }}\n"
        f"{HIDDEN} void closing(void) {{ closefrom(1000); }}\n"
    )
    found = faults(compile_library(tmp_path, source))
    assert len(found) == 1
    assert found[0].startswith("needs closefrom of glibc 2.34")


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        (f"extern int MPI_Barrier(int); {HIDDEN} int (*p)(int) = MPI_Barrier;", "MPI_Barrier", "undefined"),
        (f"extern char ompi_mpi_byte[]; {HIDDEN} char* q = ompi_mpi_byte;", "ompi_mpi_byte", "undefined"),
        (
            f"extern int H5open(void) __attribute__((weak)); {HIDDEN} int (*r)(void) = H5open;",
            "H5open",
            "weak undefined",
        ),
    ],
)
def test_symbols_that_nobody_promised_to_define(tmp_path: Path, line: str, name: str, kind: str) -> None:
    assert faults(compile_library(tmp_path, HOOKS + line + "\n")) == [
        f"has the {kind} symbol {name}, which the C library does not define"
    ]


def test_libraries_that_must_not_be_needed(tmp_path: Path) -> None:
    compile_library(tmp_path, "int fake_mpi(void) { return 0; }\n", "-Wl,-soname,libmpi.so.40", name="libmpi.so")
    source = (
        HOOKS
        + 'extern int fake_mpi(void);\n__attribute__((visibility("hidden"))) int use(void) { return fake_mpi(); }\n'
    )
    library = compile_library(tmp_path, source, f"-L{tmp_path}", "-lmpi")
    assert faults(library) == [
        "needs the library libmpi.so.40",
        "has the undefined symbol fake_mpi, which the C library does not define",
    ]


def test_expected_exports_follow_the_specification() -> None:
    specification = {
        "posix": [{"name": "pwrite", "symbols": [{"name": "pwrite"}, {"name": "pwrite64"}]}],
        "mpi": [{"name": "MPI_File_close"}, {"name": "MPI_File_write_at", "large_count": True}],
    }
    assert check_symbols.expected_exports(specification) == {
        "pwrite",
        "pwrite64",
        "MPI_File_close",
        "PMPI_File_close",
        "MPI_File_write_at",
        "PMPI_File_write_at",
        "MPI_File_write_at_c",
        "PMPI_File_write_at_c",
    }


def test_missing_libraries_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_symbols.main([str(tmp_path)]) == 1
    assert "libioweir_preload.so is not there" in capsys.readouterr().err
