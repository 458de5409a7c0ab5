"""Other tools in the same process, loaded before and after ioweir: nobody counts twice, and nothing breaks.

Neither Debian nor PyPI has Darshan's runtime (`apt-cache policy darshan-runtime`; PyPI's darshan reads logs only), so a
library of our own stands in for it, programs/darshan_like.c, which interposes in the same way. The tools write down
what they have counted: with ioweir it has to be what it is without, and ioweir's events what they are without the tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
import test_exact
import test_requests
from tracing import OPEN_MPI, Mpi, Recorded, Traced, build, preload_library, run, totals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RANKS: Final = 3
# How the second tool finds the functions behind its own.
WAYS: Final[dict[str, tuple[str, ...]]] = {"linked": (), "next": ("-DBY_NEXT",), "handle": ("-DBY_HANDLE",)}
SONAMES: Final = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}
HDF5_FLAGS: Final = ("-I/usr/include/hdf5/openmpi", "-L/usr/lib/x86_64-linux-gnu/hdf5/openmpi")


@pytest.fixture(scope="module", params=["before", "after"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tool_of(mpi: Mpi, source: str, *flags: str) -> Path:
    """A preloadable library."""
    name = f'-DMPI_LIBRARY="{SONAMES[mpi.name]}"'
    return build(source, mpi.cc, "-shared", "-fPIC", "-w", name, *flags, libraries=["-ldl"])


def counted(folder: Path) -> dict[str, str]:
    """What a tool wrote down."""
    return {path.name: path.read_text(encoding="ascii") for path in sorted(folder.iterdir())}


class Together:
    """A program run with the tool alone, then with ioweir before or after it."""

    def __init__(self, mpi: Mpi, tool: Path, place: str, program: Path, folder: Path, data_name: str = "") -> None:
        ours = preload_library()
        libraries: Sequence[Path] = [tool, ours] if place == "before" else [ours, tool]
        self.alone = self._counts(mpi, [tool], program, folder / "alone", data_name)
        self.together = self._counts(mpi, libraries, program, folder / "together", data_name)
        self.data = folder / "together" / "data"
        self.trace_directory = folder / "together" / "trace"

    def _counts(self, mpi: Mpi, libraries: Sequence[Path], program: Path, folder: Path, name: str) -> dict[str, str]:
        for part in ("counts", "data", "trace"):
            (folder / part).mkdir(parents=True)
        variables = [
            f"LD_PRELOAD={':'.join(map(str, libraries))}",
            f"IOWEIR_DIR={folder}/trace",
            f"TOOL_COUNTS={folder}/counts/tool",
            f"TOOL_FILES={folder}/data",
        ]
        run(mpi.launch(RANKS, "env", *variables, program, folder / "data" / name)).expect()
        return counted(folder / "counts")


class KnownBeside(test_exact.Known):
    """The known program beside another tool: test_exact.py's expectations hold."""

    def __init__(self, mpi: Mpi, both: Together, program: Path) -> None:
        self.mpi, self.ranks, self.variant, self.program, self.data = mpi, RANKS, "MPI", program, both.data
        self.run = Traced(0, "", "", both.trace_directory)
        words = (self.data / "failures.0").read_text(encoding="ascii").split()
        self.class_of_write, self.class_of_open, self.mpi_version = map(int, words)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_profiling_tool(mpi: Mpi, place: str, way: str, tmp_path: Path) -> None:
    program = build("known.c", mpi.cc)
    both = Together(mpi, tool_of(mpi, "profiling_tool.c", *WAYS[way]), place, program, tmp_path)
    assert len(both.alone) == RANKS
    assert both.together == both.alone
    known = KnownBeside(mpi, both, program)
    test_exact.test_every_call_and_byte_of_every_rank(known)
    test_exact.test_parents_and_origins(known)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_profiling_tool_that_sees_requests(mpi: Mpi, place: str, way: str, tmp_path: Path) -> None:
    """It gets every MPI_Wait from ioweir's entry, also while no request of I/O is pending."""
    program = build("requests.c", mpi.cc)
    both = Together(mpi, tool_of(mpi, "profiling_tool.c", *WAYS[way]), place, program, tmp_path)
    assert both.together == both.alone
    recorded = Recorded.read(both.trace_directory)
    assert recorded.is_whole()
    for rank in range(RANKS):
        events = recorded.of(both.data / f"requests.{rank}")
        test_requests.check_completions([event for event in events if event.layer == "MPI-IO"])


def test_a_tool_that_interposes_as_darshan_does(mpi: Mpi, place: str, tmp_path: Path) -> None:
    program = build("known.c", mpi.cc)
    both = Together(mpi, tool_of(mpi, "darshan_like.c"), place, program, tmp_path)
    assert list(both.alone) == ["tool"], "the tool writes one log, with MPI-IO of its own, in MPI_Finalize"
    assert both.together == both.alone
    assert all(int(word) > 0 for word in both.alone["tool"].splitlines()[0].split()[:-1])
    known = KnownBeside(mpi, both, program)
    test_exact.test_every_call_and_byte_of_every_rank(known)
    test_exact.test_parents_and_origins(known)


def test_hdf5_beside_such_a_tool(place: str, tmp_path: Path) -> None:
    program = build("hdf5_rows.c", OPEN_MPI.cc, "-w", *HDF5_FLAGS, libraries=["-lhdf5"])
    both = Together(OPEN_MPI, tool_of(OPEN_MPI, "darshan_like.c"), place, program, tmp_path, "rows.h5")
    assert both.together == both.alone
    calls_of_hdf5 = [int(line.split()[-1]) for line in both.alone["tool"].splitlines()]
    assert calls_of_hdf5 == [2] * RANKS  # H5Fcreate and H5Dwrite
    recorded = Recorded.read(both.trace_directory)
    assert recorded.is_whole()
    writes = [
        e for e in recorded.of(both.data / "rows.h5") if e.layer == "MPI-IO" and e.name == "MPI_File_write_at_all"
    ]
    assert totals(writes, "rank") == dict.fromkeys(range(RANKS), (1, 4000))
