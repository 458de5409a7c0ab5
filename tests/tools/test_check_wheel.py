"""The check of wheels: what they must hold, and what their binaries may ask of a system."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import check_wheel
import pytest

CORE = "ioweir/_core.abi3.so"


def built(place: Path, code: str, *flags: str) -> bytes:
    """A shared library of a line of C."""
    source, library = place / "one.c", place / "one.so"
    source.write_text(code, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source, *flags], check=True)
    return library.read_bytes()


def wheel(place: Path, members: dict[str, bytes]) -> Path:
    path = place / "ioweir-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    return dict.fromkeys((*check_wheel.HELD, CORE), built(tmp_path, "int one(void) { return 1; }"))


def test_a_whole_wheel_has_no_fault(tmp_path: Path, whole: dict[str, bytes]) -> None:
    assert check_wheel.judge(wheel(tmp_path, whole)) == []


@pytest.mark.parametrize("name", ["ioweir/lib/libioweir_openmpi.so", "ioweir/include/ioweir/ioweir.h", CORE])
def test_what_is_missing_is_named(tmp_path: Path, whole: dict[str, bytes], name: str) -> None:
    del whole[name]
    (fault,) = check_wheel.judge(wheel(tmp_path, whole))
    assert fault.startswith("lacks " + name.removesuffix(".abi3.so"))


def test_a_newer_c_library_is_a_fault(tmp_path: Path, whole: dict[str, bytes]) -> None:
    # No header: older ones do not declare it.
    code = '__asm__(".symver newer, newer@GLIBC_2.36"); int newer(void); int one(void) { return newer(); }'
    (tmp_path / "map").write_text("GLIBC_2.36 { global: newer; };", encoding="utf-8")
    provider = tmp_path / "libc.so.newer"
    provider.write_bytes(built(tmp_path, "int newer(void) { return 2; }", f"-Wl,--version-script={tmp_path / 'map'}"))
    whole[CORE] = built(tmp_path, code, str(provider))
    faults = check_wheel.judge(wheel(tmp_path, whole))
    assert f"{CORE}: needs newer of glibc 2.36, which is newer than 2.28" in faults


def test_the_mpi_library_is_for_those_that_are_linked_with_it(tmp_path: Path, whole: dict[str, bytes]) -> None:
    provider = tmp_path / "libmpi.so.40"
    provider.write_bytes(built(tmp_path, "int MPI_Init(void) { return 0; }", "-Wl,-soname,libmpi.so.40"))
    with_mpi = built(tmp_path, "int MPI_Init(void); int one(void) { return MPI_Init(); }", str(provider))
    whole["ioweir/lib/libioweir_partition_openmpi.so"] = with_mpi
    assert check_wheel.judge(wheel(tmp_path, whole)) == []
    whole["ioweir/lib/libioweir_openmpi.so"] = with_mpi
    faults = check_wheel.judge(wheel(tmp_path, whole))
    assert faults == ["ioweir/lib/libioweir_openmpi.so: needs the library libmpi.so.40"]


def test_a_large_wheel_is_a_fault(tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_wheel, "LARGEST_BYTES", 1000)
    (fault,) = check_wheel.judge(wheel(tmp_path, whole))
    assert fault.endswith("1000 are allowed")
