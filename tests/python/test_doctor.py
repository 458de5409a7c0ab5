"""What `doctor` finds out about executables: those of the system, and pretended ones."""

from __future__ import annotations

import io
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ioweir.base import locate
from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_FAILED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_OK, IoweirError
from ioweir.launch import doctor, launchers
from ioweir.programs import elf, io_functions, symbols


class FakeCore:
    """The compiled part as far as doctor asks it."""

    @staticmethod
    def functions() -> list[dict[str, Any]]:
        names = {"write": "POSIX", "pwrite": "POSIX", "MPI_File_write_at_all": "MPI-IO", "MPI_File_open": "MPI-IO"}
        return [
            {"id": i, "name": n, "layer": layer, "op": "write", "symbols": [n, f"P{n}"]}
            for i, (n, layer) in enumerate(names.items(), start=1)
        ]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pretend that the compiled part and the preload are there: the system's `true` lends its architecture."""
    true = shutil.which("true")
    assert true is not None
    library = tmp_path / "libioweir_preload.so"
    shutil.copy(os.path.realpath(true), library)
    monkeypatch.setenv("IOWEIR_LIBDIR", str(tmp_path))
    monkeypatch.setattr(doctor, "compiled", FakeCore)
    return library


def texts(result: doctor.Examination, severity: str) -> list[str]:
    return [finding["text"] for finding in result["findings"] if finding["severity"] == severity]


def test_a_plain_program() -> None:
    result = doctor.examine(["ls", "-l"])
    assert result["kind"] == "dynamic executable"
    assert {layer for layer, seen in result["layers"].items() if seen} == {"POSIX"}
    assert result["mpi"] is None
    assert texts(result, "error") == []
    assert doctor.exit_code(result) == EXIT_OK
    families = {gap["family"] for gap in result["gaps"]}
    assert "STDIO" in families
    out = io.StringIO()
    doctor.write(result, out)
    assert out.getvalue().startswith("ls: dynamic executable, /")


def test_the_closure_is_what_the_dynamic_linker_loads() -> None:
    """ldd asks the dynamic linker itself: an independent oracle."""
    path = os.path.realpath(sys.executable)
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    oracle = {line.split()[0] for line in listed.splitlines() if "=>" in line}
    found = elf.closure(path, os.environ)
    assert {name for name in found.libraries if not name.startswith("ld-")} == oracle
    assert found.missing == ()


class TestBuilt:
    """Executables made for the question."""

    @staticmethod
    def build(folder: Path, code: str, *options: str) -> str:
        source, target = folder / "p.c", folder / "program"
        source.write_text(code)
        subprocess.run(["cc", str(source), "-o", str(target), *options], check=True)
        return str(target)

    def test_static(self, tmp_path: Path) -> None:
        program = self.build(tmp_path, "int main(void){return 0;}", "-static")
        result = doctor.examine([program])
        assert result["kind"] == "static executable"
        assert "statically linked" in texts(result, "error")[0]
        assert doctor.exit_code(result) == EXIT_FAILED

    def test_static_pie_is_static_too(self, tmp_path: Path) -> None:
        program = self.build(tmp_path, "int main(void){return 0;}", "-static-pie")
        assert doctor.examine([program])["kind"] == "static executable"

    def test_gaps_are_named(self, tmp_path: Path) -> None:
        code = (
            "#include <unistd.h>\n#include <sys/mman.h>\n#include <sys/file.h>\n"
            "int main(int c, char** v){ if (c > 9) { mmap(0, 1, 1, 2, c, 0); flock(c, 2); }"
            " return (int)write(1, v[0], 1) < 0; }"
        )
        gaps = {gap["family"]: gap for gap in doctor.examine([self.build(tmp_path, code)])["gaps"]}
        assert gaps["memory-mapped files"]["functions"] == ["mmap"]
        assert gaps["memory-mapped files"]["imported_by"] == ["program"]
        assert gaps["memory-mapped files"]["moves_data"]
        assert gaps["file locks"]["functions"] == ["flock"]
        assert not gaps["file locks"]["moves_data"]
        assert "POSIX data" not in gaps

    def test_missing_library(self, tmp_path: Path) -> None:
        (tmp_path / "l.c").write_text("int f(void){return 1;}")
        library = tmp_path / "libgone.so"
        subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "l.c"), "-o", str(library)], check=True)
        program = self.build(tmp_path, "int f(void); int main(void){return f();}", f"-L{tmp_path}", "-lgone")
        assert "libgone.so is not found" in texts(doctor.examine([program]), "error")[0]

    def test_runpath_with_origin(self, tmp_path: Path) -> None:
        (tmp_path / "l.c").write_text("int f(void){return 1;}")
        subprocess.run(
            ["cc", "-shared", "-fPIC", str(tmp_path / "l.c"), "-o", str(tmp_path / "libhere.so")], check=True
        )
        program = self.build(
            tmp_path, "int f(void); int main(void){return f();}", f"-L{tmp_path}", "-lhere", "-Wl,-rpath,$ORIGIN"
        )
        found = elf.closure(program, os.environ)
        assert found.libraries["libhere.so"].path == str(tmp_path / "libhere.so")

    def test_setuid(self, tmp_path: Path) -> None:
        program = Path(self.build(tmp_path, "int main(void){return 0;}"))
        program.chmod(program.stat().st_mode | stat.S_ISUID)
        assert any("setuid" in text for text in texts(doctor.examine([str(program)]), "error"))


def seen(result: doctor.Examination) -> set[str]:
    """The layers that will be seen."""
    return {layer for layer, is_seen in result["layers"].items() if is_seen}


class TestHdf5:
    """Programs with the HDF5, PnetCDF and netCDF that the distribution has, and with stand-ins."""

    SOURCE = "long H5Fcreate(); int H5Dwrite(); int main(void) { return H5Fcreate() + H5Dwrite(); }"

    def build(self, directory: Path, *flags: str, source: str = SOURCE, name: str = "program") -> str:
        (directory / "text.c").write_text(source)
        subprocess.run(["gcc", "-w", "-o", directory / name, directory / "text.c", *flags], check=True, cwd=directory)
        return str(directory / name)

    def test_shared(self, tmp_path: Path) -> None:
        result = doctor.examine([self.build(tmp_path, "-lhdf5_serial")])
        assert seen(result) == {"POSIX", "HDF5"}
        assert not [text for text in texts(result, "warning") if "HDF5" in text]

    def test_parallel_netcdf_brings_hdf5_and_mpi(self, tmp_path: Path) -> None:
        source = "int nc_open(); int main(void) { return nc_open(); }"
        result = doctor.examine([self.build(tmp_path, "-lnetcdf_mpi", source=source)])
        assert seen(result) == {"POSIX", "MPI-IO", "HDF5", "netCDF"}
        assert result["mpi"] == doctor.OPEN_MPI

    def test_pnetcdf(self, tmp_path: Path) -> None:
        source = "int ncmpi_open(); int main(void) { return ncmpi_open(); }"
        result = doctor.examine([self.build(tmp_path, "-lpnetcdf", source=source)])
        assert seen(result) == {"POSIX", "MPI-IO", "PnetCDF"}

    @pytest.mark.parametrize("strip", [(), ("-s",)], ids=["symbols", "stripped"])
    def test_static(self, tmp_path: Path, strip: tuple[str, ...]) -> None:
        flags = ("-Wl,-Bstatic", "-lhdf5_serial", "-Wl,-Bdynamic", "-lcrypto", "-lcurl", "-lsz", "-lz", "-lm", *strip)
        result = doctor.examine([self.build(tmp_path, *flags)])
        assert seen(result) == {"POSIX"}
        assert any("HDF5 is linked statically" in text for text in texts(result, "warning"))

    def test_too_old(self, tmp_path: Path) -> None:
        source = "long H5Fcreate() { return 0; } int H5Dwrite() { return 0; }"
        self.build(tmp_path, "-shared", "-Wl,-soname,libhdf5.so.10", source=source, name="libhdf5.so.10")
        result = doctor.examine([self.build(tmp_path, "libhdf5.so.10", "-Wl,-rpath,$ORIGIN")])
        assert seen(result) == {"POSIX"}
        assert any("older than HDF5 1.10" in text for text in texts(result, "warning"))

    def test_calls_of_drivers_are_a_gap_and_asynchronous_ones_are_none(self, tmp_path: Path) -> None:
        source = "int H5Dwrite_async() { return 0; } int H5FDwrite() { return 0; }"
        self.build(tmp_path, "-shared", "-Wl,-soname,libhdf5.so.310", source=source, name="libhdf5.so.310")
        program = self.build(
            tmp_path, "libhdf5.so.310", "-Wl,-rpath,$ORIGIN",
            source="int H5Dwrite_async(), H5FDwrite(); int main(void) { return H5Dwrite_async() + H5FDwrite(); }",
        )  # fmt: skip
        gaps = {gap["family"]: gap["functions"] for gap in doctor.examine([program])["gaps"]}
        assert gaps["HDF5 drivers"] == ["H5FDwrite"]
        assert not any("H5Dwrite_async" in functions for functions in gaps.values())

    def test_python_package(self, tmp_path: Path) -> None:
        result = doctor.examine(["/usr/bin/python3", str(tmp_path / "script.py")])
        assert "HDF5" in seen(result)
        assert any("h5py is there (libhdf5_openmpi" in text for text in texts(result, "ok"))


def test_lammps() -> None:
    result = doctor.examine(["lmp", "-in", "x"])
    assert result["mpi"] == doctor.OPEN_MPI
    assert {layer for layer, seen in result["layers"].items() if seen} == {"POSIX", "MPI-IO"}
    gaps = {gap["family"]: gap["functions"] for gap in result["gaps"]}
    assert "MPI_File_read_at_all" in gaps["MPI-IO data"]
    assert "MPI_File_write_at_all" not in gaps["MPI-IO data"]
    assert "MPI_File_sync" in gaps["other MPI-IO calls"]


def test_launcher_of_the_other_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "identify", lambda _path: launchers.HYDRA)
    monkeypatch.setattr(doctor, "mpi_of", lambda sonames: (doctor.OPEN_MPI, next(iter(sonames))))
    monkeypatch.setattr(shutil, "which", lambda name, **_: {"mpirun": "/x/mpirun"}.get(name, "/bin/ls"))
    result = doctor.examine(["mpirun", "-n", "2", "ls"])
    assert any("do not match" in text and "rank 0 of 1" in text for text in texts(result, "warning"))
    assert result["launcher_kind"] == "Hydra (MPICH)"


@pytest.mark.parametrize(
    ("soname", "mpi"),
    [
        ("libmpi.so.40", doctor.OPEN_MPI),
        ("libmpi_mpifh.so.40", doctor.OPEN_MPI),
        ("libmpich.so.12", doctor.MPICH),
        ("libmpi.so.12", doctor.MPICH),
        ("libmpi_cray.so.12", doctor.MPICH),
        ("libmpifort.so.12", None),
        ("libm.so.6", None),
    ],
)
def test_mpi_by_soname(soname: str, mpi: str | None) -> None:
    found = doctor.mpi_of([soname])
    assert (found[0] if found else None) == mpi


def test_a_library_that_translates_is_named(tmp_path: Path) -> None:
    library, program = tmp_path / "libmpitrampoline.so.5", tmp_path / "program"
    (tmp_path / "library.c").write_text("int MPI_Init(void) { return 0; }\n")
    (tmp_path / "program.c").write_text("int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n")
    shared = ["-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["cc", *shared, "-o", str(library), str(tmp_path / "library.c")], check=True)
    here = f"-Wl,-rpath,{tmp_path}"
    subprocess.run(["cc", "-o", str(program), str(tmp_path / "program.c"), str(library), here], check=True)
    result = doctor.examine([str(program)])
    assert result["mpi"] is None
    assert not result["layers"]["MPI-IO"]
    assert any(f"{library.name} translates between MPI libraries" in text for text in texts(result, "warning"))


def test_intel_mpis_launcher_is_named(tmp_path: Path) -> None:
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/sh\necho "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626"\n')
    launcher.chmod(0o755)
    result = doctor.examine([str(launcher), "-n", "2", "-prepend-timestamp", "ls"])
    assert any("mpiexec: Hydra (Intel MPI); only its ranks" in text for text in texts(result, "ok"))
    assert result["program"] == "ls"
    assert not any("option" in text for text in texts(result, "warning"))


def test_scripts(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/usr/bin/env sh\nexit 0\n")
    script.chmod(0o755)
    result = doctor.examine([str(script)])
    assert (result["kind"], result["program"]) == ("script", "job")
    assert "is a script for sh" in texts(result, "note")[0]
    python = doctor.examine([sys.executable, "solve.py"])
    assert (python["kind"], python["program"]) == ("Python script", "solve")


def test_tables_that_lead_nowhere_are_an_error(tmp_path: Path) -> None:
    """Of a program that is damaged; those of a trace's call sites are left out."""
    whole = Path("/bin/true").read_bytes()
    (sections,) = struct.unpack_from("<Q", whole, 40)
    damaged = 0
    for seed in range(60):
        draw, content = random.Random(seed), bytearray(whole)
        for _ in range(draw.choice((1, 3, 8))):
            at = draw.choice((draw.randrange(16, 1024), draw.randrange(sections, len(content))))
            content[at] = draw.choice((0, 255, draw.randrange(256)))
        path = tmp_path / str(seed)
        path.write_bytes(content)
        path.chmod(0o755)
        said = ""
        try:
            elf.read(str(path))
        except ValueError as error:
            said = str(error)
        if said:
            damaged += 1
            assert str(path) in said
            with pytest.raises(IoweirError, match="Is it a complete executable"):
                doctor.examine([str(path)])
        symbols.build_id(str(path))
        symbols.read_tables(str(path), [0x2000])
    assert damaged > 5


def test_without_the_preload(installed: Path) -> None:
    installed.unlink()
    result = doctor.examine(["ls"])
    assert result["preload"] is None
    assert doctor.exit_code(result) == EXIT_FAILED


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(IoweirError, match="nosuchprogram: not found") as caught:
        doctor.examine(["nosuchprogram"])
    assert caught.value.exit_code == EXIT_NOT_FOUND


@pytest.mark.parametrize("command", [["FILE"], ["mpirun.openmpi", "-n", "2", "FILE"]])
def test_a_command_that_cannot_be_executed(command: list[str], tmp_path: Path) -> None:
    plain = tmp_path / "notes.txt"
    plain.write_text("no program", encoding="utf-8")
    for path, why in ((plain, "is not executable"), (tmp_path, "is a directory")):
        with pytest.raises(IoweirError, match=why) as caught:
            doctor.examine([str(path) if word == "FILE" else word for word in command])
        assert caught.value.exit_code == EXIT_NOT_EXECUTABLE


@pytest.mark.parametrize(
    ("symbol", "base"),
    [
        ("MPI_File_write_at_all", "mpi_file_write_at_all"),
        ("PMPI_File_write_at_all", "mpi_file_write_at_all"),
        ("mpi_file_write_at_all_", "mpi_file_write_at_all"),
        ("mpi_file_write_at_all_f08_", "mpi_file_write_at_all"),
        ("mpi_file_write_at_all_f08ts_", "mpi_file_write_at_all"),
        ("MPI_FILE_OPEN", "mpi_file_open"),
        ("MPI_Send", None),
        ("write", None),
    ],
)
def test_mpi_names_in_all_languages(symbol: str, base: str | None) -> None:
    assert io_functions.mpi_base_name(symbol) == base


def test_gaps_that_move_data_come_first_and_covered_symbols_are_none() -> None:
    imported = ["pwrite", "fsync", "fwrite", "mpi_file_open_", "MPI_File_iwrite", "MPI_File_sync", "printf", "malloc"]
    found = io_functions.gaps(imported, {"pwrite", "MPI_File_open"})
    assert [gap.family for gap in found] == [
        "MPI-IO data", "STDIO", "other MPI-IO calls", "sizes, positions and synchronisation",
    ]  # fmt: skip
    assert [gap.moves_data for gap in found] == [True, True, False, False]


# ------------------------------------------------------------------------------ with the preload that is installed


@pytest.fixture
def really_installed(monkeypatch: pytest.MonkeyPatch) -> frozenset[str]:
    """What the preload exports, as the system's own tool lists it."""
    monkeypatch.delenv("IOWEIR_LIBDIR")
    monkeypatch.setattr(doctor, "compiled", compiled)
    library = locate.preload_library()
    assert library is not None
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return frozenset(line.split()[-1].split("@")[0] for line in listing.stdout.splitlines())


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_nothing_that_the_preload_stands_in_for_is_a_gap(tmp_path: Path, really_installed: frozenset[str]) -> None:
    """A program that imports every function of the table: the gaps are those that the preload does not export."""
    table = sorted(set().union(*(family.functions for family in io_functions.FAMILIES)))
    library = tmp_path / "libeverything.so"
    declared = "".join(f"void {name}(void) {{}}\n" for name in table)
    (tmp_path / "l.c").write_text(declared)
    common = ["-w", "-fno-builtin", "-nostdlib"]
    subprocess.run(["cc", *common, "-shared", "-fPIC", str(tmp_path / "l.c"), "-o", str(library)], check=True)
    calls = "".join(f"void {name}(void);\n" for name in table) + "void* all[] = {" + ", ".join(table) + "};"
    (tmp_path / "p.c").write_text(calls + "int main(void) { return all[0] != 0; }")
    program = tmp_path / "program"
    subprocess.run(
        ["cc", "-w", "-fno-builtin", str(tmp_path / "p.c"), "-o", str(program), str(library), f"-Wl,-rpath,{tmp_path}"],
        check=True,
    )
    named = {name for gap in doctor.examine([str(program)])["gaps"] for name in gap["functions"]}
    assert named == set(table) - really_installed
    assert {"mmap", "flock", "aio_read", "io_uring_submit", "syscall", "fwrite"} <= really_installed
    assert {"io_submit", "fputws", "H5FDwrite"} <= named


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.usefixtures("really_installed")
def test_programs_whose_calls_are_all_recorded_have_no_gap(tmp_path: Path) -> None:
    """C++ streams, aio, io_uring by liburing and by number."""
    (tmp_path / "p.cpp").write_text(
        "#include <aio.h>\n#include <fstream>\n#include <liburing.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int main(int c, char** v) { if (c < 9) return 0; std::ofstream o(v[1]); o << 1; std::fstream f(v[2]);"
        " aiocb a{}; aio_read(&a); aio_cancel(0, &a); io_uring r; io_uring_queue_init(8, &r, 0); io_uring_get_sqe(&r);"
        " io_uring_cqe* e; io_uring_submit(&r); io_uring_wait_cqe(&r, &e);"
        " return (int)syscall(SYS_io_uring_setup, 1, v); }"
    )
    program = tmp_path / "program"
    subprocess.run(["g++", str(tmp_path / "p.cpp"), "-o", str(program), "-luring"], check=True)
    result = doctor.examine([str(program)])
    assert [gap for gap in result["gaps"] if gap["moves_data"]] == []
