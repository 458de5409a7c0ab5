"""ioweir.h from C++, Fortran and Python: the example solvers restart in the same bits, Python writes what it says."""

from __future__ import annotations

import struct
import sys
from functools import cache
from pathlib import Path
from typing import Final

import phasta_files
import pytest
import tracing
from ioweir.programs import linking
from sets import ARGUMENT, NOT_FOUND, left_over, paths
from test_languages import python_with
from tracing import MPIS, OPEN_MPI, Mpi

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "heat"
SCRIPT: Final = Path(__file__).parent / "programs" / "checkpoints.py"
PARTS: Final = 12


@pytest.fixture(params=MPIS, ids=lambda mpi: mpi.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI library in turn."""
    found: Mpi = request.param
    return found


@cache
def built(mpi: Mpi, language: str) -> Path:
    """The example solver."""
    target = tracing.BUILD / f"heat-{language}-{mpi.name}"
    tracing.BUILD.mkdir(parents=True, exist_ok=True)
    flags = [*linking.partition_flags(mpi.name), *tracing.yielding(mpi.cc, ())]
    if language == "fortran":
        modules = tracing.BUILD / f"modules-{mpi.name}"
        modules.mkdir(exist_ok=True)
        words = [mpi.fortran, "-O1", "-Wall", "-Werror", "-ffree-line-length-none", f"-J{modules}"]
        source = EXAMPLES / "heat.f90"
    else:
        words = [mpi.cc.replace("mpicc", "mpicxx"), "-O1", "-Wall", "-Wextra", "-Werror", "-std=c++17"]
        words += ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
        source = EXAMPLES / "heat.cpp"
    tracing.run([*words, "-o", target, source, *flags]).expect()
    return target


def blocks(base: Path, step: int) -> dict[str, dict[int, tuple[list[int], bytes]]]:
    """Of a set of one file, by the independent reader: field, part, parameters and items."""
    file = phasta_files.read(paths(str(base), step, 1)[0])
    return {name: {b.part: (b.parameters, b.items) for b in found} for name, found in file.fields.items()}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("language", ["c++", "fortran"])
def test_a_solver_restarts_in_the_same_bits(mpi: Mpi, language: str, tmp_path: Path) -> None:
    """On 3 ranks throughout, and on 3, then 5 (more than processors, not dividing 12), then 1."""
    solver = built(mpi, language)
    straight, restarted = tmp_path / "straight", tmp_path / "restarted"
    out = tracing.run(mpi.launch(3, solver, straight, "60", "20")).expect().out
    assert "begins at step 0" in out
    for ranks, last, begins in ((3, 20, 0), (5, 40, 20), (1, 60, 40)):
        out = tracing.run(mpi.launch(ranks, solver, restarted, str(last), "20")).expect().out
        assert f"begins at step {begins}" in out
    wanted = blocks(straight, 60)
    assert blocks(restarted, 60) == wanted
    first = {part: items for part, (_, items) in blocks(straight, 20)["temperature"].items()}
    assert sorted(first) == list(range(1, PARTS + 1))
    values = [value for _, items in wanted["temperature"].values() for (value,) in struct.iter_unpack("<d", items)]
    assert 20 <= min(values) < 25, "heat has moved"
    assert 60 < max(values) < 100, "and none was made"
    assert all(items != first[part] for part, (_, items) in wanted["temperature"].items() if 4 < part < 9)
    # A torn checkpoint is not taken for one.
    paths(str(restarted), 60, 1)[0].unlink()
    assert "begins at step 40" in tracing.run(mpi.launch(2, solver, restarted, "40", "20")).expect().out


def test_python_writes_and_reads(mpi: Mpi, tmp_path: Path) -> None:
    variables = {"MPI4PY_MPIABI": "openmpi"} if mpi is OPEN_MPI else python_with(mpi, tmp_path)[1]
    base = tmp_path / "restart"

    def run(ranks: int, what: str) -> str:
        return tracing.run(mpi.launch(ranks, Path(sys.executable), SCRIPT, what, base), env=variables).expect().out

    run(3, "write")
    found: dict[int, tuple[list[int], bytes, bytes]] = {}
    for path in paths(str(base), 7, 2):
        fields = phasta_files.read(path).fields
        assert list(fields) == ["solution", "ids"]
        for solution, ids in zip(fields["solution"], fields["ids"], strict=True):
            assert solution.part == ids.part
            found[solution.part] = (solution.parameters, solution.items, ids.items)
    assert found == {g: expected(g) for g in range(1, 7)}
    assert run(2, "read").count("read 3 of 6 parts, step 7, ['solution', 'ids']") == 2
    out = run(2, "wrong")
    assert out.count(f": {ARGUMENT}: ioweir: a number of files that cannot be: 99; from 1 to the number of ranks") == 2
    assert out.count(f": {ARGUMENT}: ioweir: an unknown key in MPI_Info: ioweir_layuot; did you mean") == 2
    assert out.count(f": {NOT_FOUND}: ioweir: ") + out.count(f": {NOT_FOUND}: ioweir: rank 0") >= 2
    assert out.count(f": {ARGUMENT}: ioweir: no type of items: 0; IOWEIR_FLOAT64 or IOWEIR_INT32") == 2
    run(3, "hand")
    for step in (1, 2):
        fields = phasta_files.read(paths(str(base), step, 1)[0]).fields
        assert [b.items for b in fields["solution"]] == [expected(g)[1] for g in range(1, 5)]
    assert left_over(str(base)) == []


def expected(part: int) -> tuple[list[int], bytes, bytes]:
    """As programs/checkpoints.py fills it."""
    count = 10 + part
    solution = b"".join(struct.pack("<d", part + i / 4) for i in range(count))
    return [count, part], solution, b"".join(struct.pack("<i", part * i) for i in range(count))
