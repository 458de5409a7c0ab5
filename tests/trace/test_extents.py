"""The trace tells which bytes of a file and of memory each MPI-IO call means, whatever its view, types and pointer."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
from ioweir.trace import Requests, read
from tracing import MPIS, OPEN_MPI, Mpi, build, ioweir_run

LINE: Final = re.compile(r"(\w+) file((?: \d+\+\d+)*) memory((?: \d+\+\d+)*)$")
VIEWS: Final = 10
Extents = list[tuple[int, int]]
Call = tuple[str, Extents, Extents]


def extents_of(text: str) -> Extents:
    pairs = (pair.split("+") for pair in text.split())
    return [(int(offset), int(length)) for offset, length in pairs]


def said_by(data: Path, ranks: int) -> list[list[Call]]:
    """The calls of each rank, with what they mean."""
    return [
        [
            (f"MPI_File_{found[1]}", extents_of(found[2]), extents_of(found[3]))
            for line in Path(f"{data}.said.{rank}").read_text(encoding="utf-8").splitlines()
            if (found := LINE.match(line))
        ]
        for rank in range(ranks)
    ]


def traced(folder: Path) -> dict[int, list[Call]]:
    trace = read(folder)
    names = {function.id: function.name for function in trace.functions}
    requests = trace.requests()
    calls: dict[int, list[Call]] = {}
    processes, functions = requests.process, requests.function
    for i in range(len(requests)):
        name, rank = names[functions[i]], trace.processes[processes[i]].rank
        in_file, in_memory = (of_request(requests, i, memory) for memory in (False, True))
        calls.setdefault(rank, []).append((name, in_file, in_memory))
    return calls


def of_request(requests: Requests, number: int, in_memory: bool) -> Extents:
    found = requests.extents(number, in_memory=in_memory)
    assert found is not None
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(12 if os.environ.get("IOWEIR_TEST_ALL") else 2))
@pytest.mark.parametrize("plan", [False, True], ids=["traced", "planned"])
@pytest.mark.parametrize("ranks", [1, 3], ids=lambda ranks: f"{ranks}ranks")
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_extents_of_random_views(mpi: Mpi, ranks: int, plan: bool, seed: int, tmp_path: Path) -> None:
    options: list[str | Path] = []
    if plan:
        (tmp_path / "plan.toml").write_text('[[file]]\nmatch = "data*"\nwriters = "auto"\n', encoding="utf-8")
        options = ["--plan", tmp_path / "plan.toml"]
    command = mpi.launch(ranks, build("extents.c", mpi.cc), tmp_path / "data", str(seed), str(VIEWS))
    # Open MPI's own I/O writes beyond its buffers in collective calls of such views.
    ioweir_run(tmp_path / "trace", command, options=options, env={"OMPI_MCA_io": "romio321"})
    expected = said_by(tmp_path / "data", ranks)
    found = traced(tmp_path / "trace")
    assert all(len(calls) > 4 * VIEWS for calls in expected)
    for rank in range(ranks):
        assert [name for name, _, _ in found[rank]] == [name for name, _, _ in expected[rank]]
        for number, (one, other) in enumerate(zip(found[rank], expected[rank], strict=True)):
            assert one == other, f"rank {rank}, call {number}"


@pytest.mark.parametrize(("levels", "plan"), [(28, False), (28, True), (60, True)])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_types_made_of_two_of_the_type_before(mpi: Mpi, levels: int, plan: bool, tmp_path: Path) -> None:
    """Each level met twice would take twice the time: minutes for these, which the time limit of a run ends.

    Open MPI does not tell that the two are the same: there the type is not recorded, nor moved by the engine.
    """
    program = build("nested_types.c", mpi.cc)
    path = tmp_path / "data"
    text = tmp_path / "plan.toml"
    text.write_text('[[file]]\nmatch = "*data"\nwriters = "everyone"\n')
    options: list[str | Path] = ["--plan", text] if plan else []
    ioweir_run(tmp_path / "trace", mpi.launch(1, program, path, str(levels)), options=options, timeout=60)
    assert path.read_bytes() == (4).to_bytes(4, "little")
    if levels < 32 and mpi is not OPEN_MPI:  # what is deeper is not recorded
        assert traced(tmp_path / "trace")[0] == [("MPI_File_write_at", [(0, 4)], [(16, 4)])]
