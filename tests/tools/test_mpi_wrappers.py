"""cmake/IoweirMpi.cmake: which MPI libraries the build takes from the wrappers that are there, whatever their names.

The wrappers here are scripts that say what those of Open MPI and MPICH do.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CMAKE: Final = shutil.which("cmake")
PROJECT: Final = f"""
cmake_minimum_required(VERSION 3.22)
project(wrappers LANGUAGES NONE)
include("{ROOT}/cmake/IoweirMpi.cmake")
foreach(kind IN LISTS IOWEIR_MPI_KINDS)
  get_target_property(includes ioweir_mpi_headers_${{kind}} INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(links ioweir_mpi_${{kind}} INTERFACE_LINK_LIBRARIES)
  message(STATUS "found ${{kind}} ${{includes}} ${{links}}")
endforeach()
"""
OPEN_MPI: Final = """#!/bin/sh
case $1 in
    --showme:version) echo "mpicc: Open MPI 5.0.8 (Language: C)" ;;
    --showme:incdirs) echo "/ompi/include" ;;
    --showme:link) echo "-L/ompi/lib -Wl,-rpath -Wl,/ompi/lib -lmpi" ;;
    *) exit 1 ;;
esac
"""
MPICH: Final = """#!/bin/sh
case $1 in
    -v) echo "mpicc for MPICH version 4.3.0" ;;
    -show) echo 'gcc -I"/mpich/include" -L/mpich/lib -Wl,-rpath -Wl,/mpich/lib -Wl,--enable-new-dtags -lmpi' ;;
    *) echo "gcc: error: unrecognized command-line option" >&2; exit 1 ;;
esac
"""
# A wrapper of a vendor's who says nothing of MPICH, and is like it.
VENDOR: Final = MPICH.replace("MPICH version 4.3.0", "the vendor's MPI")
OF_OPEN_MPI: Final = "ioweir_mpi_headers_openmpi;-L/ompi/lib;-Wl,-rpath;-Wl,/ompi/lib;-lmpi"
OF_MPICH: Final = "ioweir_mpi_headers_mpich;-L/mpich/lib;-Wl,-rpath,/mpich/lib;-lmpi"
FROM_OPEN_MPI: Final = f"-- found openmpi /ompi/include {OF_OPEN_MPI}"
FROM_MPICH: Final = f"-- found mpich /mpich/include {OF_MPICH}"

pytestmark = pytest.mark.skipif(CMAKE is None, reason="no cmake")


class Site:
    """A machine with these wrappers, and no others."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir()
        (directory / "source").mkdir()
        (directory / "source" / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")

    def has(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        return path

    def configured(self, *options: str) -> subprocess.CompletedProcess[str]:
        assert CMAKE is not None
        # Nothing is built, so no program that builds has to be there.
        generator = ("-G", "Unix Makefiles", "-DCMAKE_MAKE_PROGRAM=true")
        only_path = "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"
        return subprocess.run(
            [CMAKE, *generator, only_path, *options, "-S", self.directory / "source", "-B", self.directory / "build"],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )

    def found(self, *options: str) -> list[str]:
        done = self.configured(*options)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if line.startswith("-- found ")]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_wrappers_of_a_distribution_are_found_by_their_names(site: Site) -> None:
    site.has("mpicc.openmpi", OPEN_MPI)
    site.has("mpicc.mpich", MPICH)
    assert site.found() == [FROM_OPEN_MPI, FROM_MPICH]


@pytest.mark.parametrize(("script", "line"), [(OPEN_MPI, FROM_OPEN_MPI), (MPICH, FROM_MPICH)], ids=["openmpi", "mpich"])
def test_mpicc_alone_is_asked_whose_it_is(site: Site, script: str, line: str) -> None:
    site.has("mpicc", script)
    assert site.found() == [line]
    # A second run, whose cache has the answer.
    assert site.found() == [line]


def test_mpicc_stands_in_for_the_library_that_is_missing_only(site: Site) -> None:
    site.has("mpicc", MPICH.replace("/mpich/", "/other/"))
    site.has("mpicc.openmpi", OPEN_MPI)
    site.has("mpicc.mpich", MPICH)
    assert site.found() == [FROM_OPEN_MPI, FROM_MPICH]


def test_two_wrappers_of_one_name_are_told_apart_by_their_paths(site: Site) -> None:
    open_mpi = site.has("openmpi/mpicc", OPEN_MPI)
    mpich = site.has("mpich/mpicc", MPICH)
    options = (f"-DIOWEIR_MPICC_OPENMPI={open_mpi}", f"-DIOWEIR_MPICC_MPICH={mpich}")
    assert site.found(*options) == [FROM_OPEN_MPI, FROM_MPICH]


def test_off_leaves_a_library_out(site: Site) -> None:
    site.has("mpicc.openmpi", OPEN_MPI)
    site.has("mpicc", MPICH)
    assert site.found("-DIOWEIR_MPICC_OPENMPI=OFF") == [FROM_MPICH]
    assert site.found("-DIOWEIR_MPICC_MPICH=OFF") == []


def test_a_wrapper_of_the_other_library_is_refused(site: Site) -> None:
    done = site.configured(f"-DIOWEIR_MPICC_MPICH={site.has('mpicc', OPEN_MPI)}")
    assert done.returncode != 0
    assert "this wrapper is of openmpi" in " ".join(done.stderr.split())


def test_a_wrapper_that_says_nothing_known_is_taken_where_it_is_named(site: Site) -> None:
    vendor = site.has("mpicc", VENDOR)
    done = site.configured()
    assert "the MPI back ends are not built" in " ".join(done.stderr.split())
    assert site.found(f"-DIOWEIR_MPICC_MPICH={vendor}") == [FROM_MPICH]


def test_a_wrapper_that_does_not_say_where_its_headers_are_is_named(site: Site) -> None:
    broken = site.has("broken", "#!/bin/sh\nexit 3\n")
    done = site.configured(f"-DIOWEIR_MPICC_OPENMPI={broken}")
    assert done.returncode == 0
    assert f"{broken} --showme:incdirs: 3." in " ".join(done.stderr.split())
