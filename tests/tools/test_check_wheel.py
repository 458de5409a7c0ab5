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
    shared = (f"ioweir-0.data/data/share/{name}" for name in check_wheel.SHARED)
    return dict.fromkeys((*check_wheel.HELD, CORE, *shared), built(tmp_path, "int one(void) { return 1; }"))


def test_a_whole_wheel_has_no_fault(tmp_path: Path, whole: dict[str, bytes]) -> None:
    assert check_wheel.judge(wheel(tmp_path, whole)) == []


@pytest.mark.parametrize(
    "name",
    ["ioweir/lib/libioweir_openmpi.so", "ioweir/include/ioweir/ioweir.h", check_wheel.BRIDGE, CORE],
)
def test_what_is_missing_is_named(tmp_path: Path, whole: dict[str, bytes], name: str) -> None:
    del whole[name]
    (fault,) = check_wheel.judge(wheel(tmp_path, whole))
    assert fault.startswith("lacks " + name.removesuffix(".abi3.so"))


def test_missing_man_pages_are_named(tmp_path: Path, whole: dict[str, bytes]) -> None:
    del whole["ioweir-0.data/data/share/man/man1/ioweir-run.1"]
    assert check_wheel.judge(wheel(tmp_path, whole)) == ["lacks share/man/man1/ioweir-run.1"]


def test_a_newer_c_library_is_a_fault(tmp_path: Path, whole: dict[str, bytes]) -> None:
    # No header: older ones do not declare it.
    code = '__asm__(".symver newer, newer@GLIBC_2.36"); int newer(void); int one(void) { return newer(); }'
    (tmp_path / "map").write_text("GLIBC_2.36 { global: newer; };", encoding="utf-8")
    provider = tmp_path / "libc.so.newer"
    provider.write_bytes(built(tmp_path, "int newer(void) { return 2; }", f"-Wl,--version-script={tmp_path / 'map'}"))
    whole[CORE] = built(tmp_path, code, str(provider))
    faults = check_wheel.judge(wheel(tmp_path, whole))
    assert f"{CORE}: needs newer of glibc 2.36, which is newer than 2.28" in faults


@pytest.mark.parametrize(
    ("name", "soname", "allowed"),
    [
        ("ioweir/lib/libioweir_partition_openmpi.so", "libmpi.so.40", True),
        ("ioweir/lib/libioweir_openmpi.so", "libmpi.so.40", False),
        ("ioweir/lib/kernel_runner_mpich", "libmpi.so.12", True),
        # Debian's name for it alone.
        ("ioweir/lib/kernel_runner_mpich", "libmpich.so.12", False),
        (check_wheel.BRIDGE, "libmpich.so.12", True),
    ],
)
def test_the_mpi_library_is_for_those_that_are_linked_with_it(
    tmp_path: Path, whole: dict[str, bytes], name: str, soname: str, allowed: bool
) -> None:
    provider = tmp_path / soname
    provider.write_bytes(built(tmp_path, "int MPI_Init(void) { return 0; }", f"-Wl,-soname,{soname}"))
    whole[name] = built(tmp_path, "int MPI_Init(void); int one(void) { return MPI_Init(); }", str(provider))
    faults = check_wheel.judge(wheel(tmp_path, whole))
    assert faults == ([] if allowed else [f"{name}: needs the library {soname}"])


def test_a_large_wheel_is_a_fault(tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_wheel, "LARGEST_BYTES", 1000)
    (fault,) = check_wheel.judge(wheel(tmp_path, whole))
    assert fault.endswith("1000 are allowed")
