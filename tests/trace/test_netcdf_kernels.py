"""The kernels that are written through netCDF, without and with subfiles beneath them.

The oracle: a reader of netCDF files in numpy, shapes that are written down here, and values by the runner's formula.
Not here: which bytes of an array each rank has (kernels/kernels_test.cpp).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from ioweir.launch import kernel
from kernel_runs import ENVIRONMENT, content
from netcdf_header import read_header
from netcdf_subfiling import BY_MPICH, files, library, mpich_folder, netcdf_plan
from tracing import IOWEIR, ioweir_run, run

SALT: Final = 5
READERS: Final = (1, 3, 4, 7)


class Case(NamedTuple):
    """A kernel, and what of its file is known without it."""

    name: str
    settings: list[str]
    shapes: dict[str, tuple[int, ...]]
    """Of some arrays."""
    bytes: int
    """Of all arrays."""
    plan: str
    divided: dict[str, str]
    """Arrays that are divided with this plan, of those above -> the dimension."""


BLOCKS: Final = 4 + 5 + 6 + 4
TREE: Final = BLOCKS * (4 + 4 + 15 * 4)
CASES: Final = [
    Case("coll_perf", ["local=4,3,5", "variables=2"], {"cube0": (8, 6, 5), "cube1": (8, 6, 5)}, 2 * 8 * 6 * 5 * 4,
         "subfiles = 3", {"cube0": "z", "cube1": "z"}),
    Case("s3d", ["local=3,2,5"], {"temp": (6, 4, 5), "u": (3, 6, 4, 5), "yspecies": (11, 6, 4, 5)},
         (11 + 3 + 2) * 120 * 8, 'subfiles = 4, par_dim = "z"', {"temp": "z", "u": "z", "yspecies": "z"}),
    Case("flash", ["local=2,3,4", "blocks=4", "variables=3"],
         {"lrefine": (BLOCKS,), "gid": (BLOCKS, 15), "bndbox": (BLOCKS, 3, 2), "unknown2": (BLOCKS, 2, 3, 4)},
         TREE + BLOCKS * 12 * 8 + 3 * BLOCKS * 24 * 8, "subfiles = 3, min_ndims = 3", {"unknown2": "tot_blocks"}),
    Case("flash", ["local=2,3,4", "blocks=4", "output=corners"],
         {"coordinates": (BLOCKS, 3), "unknown3": (BLOCKS, 3, 4, 5)},
         TREE + BLOCKS * 12 * 4 + 4 * BLOCKS * 60 * 4, "subfiles = 2, min_ndims = 3", {"unknown3": "tot_blocks"}),
    Case("gcrm-pnetcdf", ["level=1", "layers=2", "steps=2"],
         {"flow0": (2, 42, 2), "w_vert": (2, 42, 3), "velocity1": (2, 80, 4), "wind": (2, 120, 2), "ground3": (2, 42)},
         2 * 4 * (42 * (26 * 2 + 5 * 3 + 4) + 80 * 2 * 4 + 120 * 2), "subfiles = 3",
         {"flow0": "cells", "w_vert": "cells", "velocity1": "corners", "wind": "edges", "ground3": "cells"}),
]  # fmt: skip


def command(case: Case, ranks: int, folder: Path, *words: str) -> list[str]:
    """The kernel through PnetCDF."""
    folder.mkdir(exist_ok=True)
    options = kernel.Options(ranks, folder, library()[0].name, api="netcdf", keep=True)
    return [*kernel.command(case.name, case.settings, options), "--salt", str(SALT), *words]


def environment() -> dict[str, str]:
    if not BY_MPICH:
        return ENVIRONMENT
    return {**ENVIRONMENT, "LD_LIBRARY_PATH": f"{mpich_folder()}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def run_divided(case: Case, ranks: int, folder: Path, *words: str, plan: str = "") -> None:
    """Under ioweir; the runner's own checks have to pass."""
    options: list[str | Path] = ["--plan", netcdf_plan(folder, plan, "*.data")] if plan else []
    trace = folder / f"trace{len(list(folder.glob('trace*')))}"
    traced = ioweir_run(trace, command(case, ranks, folder, *words), options=options, cwd=folder, env=environment())
    expect_right(traced.out)


def expect_right(out: str) -> None:
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [row["read_correct"] for row in rows] == [True], out


TYPES: Final[dict[int, np.dtype[Any]]] = {4: np.dtype(">i4"), 5: np.dtype(">f4"), 6: np.dtype(">f8")}


def read_netcdf(path: Path) -> dict[str, Any]:
    """The arrays of a file, by name."""
    data = path.read_bytes()
    header = read_header(data)
    record_bytes = sum(variable.bytes for variable in header.variables if variable.is_record)
    arrays = {}
    for variable in header.variables:
        count = header.records if variable.is_record else 1
        shape = [count, *variable.lengths[1:]] if variable.is_record else list(variable.lengths)
        kind = TYPES[variable.type]
        assert int(np.prod(shape)) * kind.itemsize == variable.bytes * count
        parts = [data[variable.begin + r * record_bytes :][: variable.bytes] for r in range(count)]
        arrays[variable.name] = np.frombuffer(b"".join(parts), kind).reshape(shape)
    return arrays


def expect_content(arrays: dict[str, Any]) -> None:
    """Every byte of every array, which is that of the array's number and its place in it."""
    for number, array in enumerate(arrays.values()):
        swapped = np.frombuffer(array.byteswap().tobytes(), np.uint8)
        assert np.array_equal(swapped, content(np.full(array.nbytes, number), SALT))


@pytest.mark.one_of(5)
@pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{'-'.join(case.settings)}" for case in CASES])
def test_a_kernel_through_netcdf(tmp_path: Path, case: Case) -> None:
    plain, divided = tmp_path / "plain", tmp_path / "divided"
    name = f"{case.name}.data"
    expect_right(run(command(case, 4, plain), cwd=tmp_path, env=environment()).expect().out)
    arrays = read_netcdf(plain / name)
    assert {one: arrays[one].shape for one in case.shapes} == case.shapes
    assert sum(array.nbytes for array in arrays.values()) == case.bytes
    expect_content(arrays)

    divided.mkdir()
    run_divided(case, 4, divided, plan=case.plan)
    (row,) = json.loads(run([*IOWEIR, "ls", "--json", name], cwd=divided).expect().out)
    along = {one["name"]: one["dimension"] for one in row["arrays"]}
    assert {one: along[one] for one in case.shapes if one in along} == case.divided
    # Cut into parts that no rank has written: as many as there are readers.
    for readers in READERS if case is CASES[0] else READERS[1:2]:
        run_divided(case, readers, divided, "--written-by", "4")
    run([*IOWEIR, "merge", name], cwd=divided).expect()
    assert files(divided) == [name]
    assert (divided / name).read_bytes() == (plain / name).read_bytes()


def test_a_wrong_value_is_seen(tmp_path: Path) -> None:
    case = CASES[0]
    run(command(case, 2, tmp_path), cwd=tmp_path, env=environment()).expect()
    path = tmp_path / f"{case.name}.data"
    written = bytearray(path.read_bytes())
    written[-5] ^= 1
    path.write_bytes(written)
    done = run(command(case, 3, tmp_path, "--written-by", "2"), cwd=tmp_path, env=environment())
    assert done.code == 1
    assert "what was read is not what was written, mode netcdf" in done.err


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lattice", "--mode", "netcdf"], "a kernel that no program writes through netCDF: 'lattice'"),
        (["coll_perf", "--mode", "mpiio", "--written-by", "2"], "--written-by is for modes netcdf and hdf5 alone: 2"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, words: list[str], message: str) -> None:
    mpi, _ = library()
    launched = mpi.launch(1, kernel.runner(mpi.name), *words, "--directory", tmp_path)
    done = run(launched, cwd=tmp_path, env=environment())
    assert done.code == 2
    assert message in done.err
