"""The kernels that are written through parallel HDF5: what h5py, which uses no MPI-IO for it, finds in the files.

The oracle: names, types and shapes that are written down here, and values by the runner's formula. Not here: which
bytes of an array each rank has (kernels/kernels_test.cpp).
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

import ioweir.trace
import numpy as np
import pytest
from forked import completed
from ioweir.launch import kernel
from kernel_runs import ENVIRONMENT, IOWEIR, chombo_values, content, run_kernel

if TYPE_CHECKING:
    from pathlib import Path

PYTHON: Final = "/usr/bin/python3"
"""Debian's: it has h5py."""
DUMP: Final = """
import sys, h5py, numpy
arrays = {}
properties = {}
def look(name, item):
    if isinstance(item, h5py.Dataset):
        arrays[name] = item[()]
        offset = item.id.get_offset()
        properties[name + "?chunks"] = list(item.chunks or ())
        offsets = [offset] if offset is not None else []
        if item.chunks is not None:
            offsets += [item.id.get_chunk_info(i).byte_offset for i in range(item.id.get_num_chunks())]
        properties[name + "?offsets"] = offsets
with h5py.File(sys.argv[1]) as file:
    file.visititems(look)
numpy.savez(sys.argv[2], **{k.replace("/", "|"): v for k, v in {**arrays, **properties}.items()})
"""


def dump(path: Path) -> dict[str, Any]:
    """Every dataset of a file, and for each `NAME?chunks` and `NAME?offsets`."""
    out = path.with_suffix(".npz")
    subprocess.run([PYTHON, "-c", DUMP, path, out], check=True, timeout=60)
    with np.load(out) as arrays:
        return {name.replace("|", "/"): arrays[name] for name in arrays.files}


Arrays = list[tuple[str, str, tuple[int, ...]]]


def blocks_of(ranks: int, blocks: int) -> int:
    return sum(blocks + rank % 3 for rank in range(ranks))


def flash(ranks: int) -> Arrays:
    n = blocks_of(ranks, 4)
    tree: Arrays = [
        ("lrefine", "<i4", (n,)), ("nodetype", "<i4", (n,)), ("gid", "<i4", (n, 15)), ("coordinates", "<f8", (n, 3)),
        ("blocksize", "<f8", (n, 3)), ("bndbox", "<f8", (n, 3, 2)),
    ]  # fmt: skip
    return tree + [(f"unknown{v}", "<f8", (n, 2, 3, 4)) for v in range(3)]


def s3d(ranks: int) -> Arrays:
    z, y = {1: (3, 2), 3: (9, 2), 5: (15, 2)}[ranks]
    return [
        ("yspecies", "<f8", (11, z, y, 5)), ("temp", "<f8", (z, y, 5)), ("pressure", "<f8", (z, y, 5)),
        ("u", "<f8", (3, z, y, 5)),
    ]  # fmt: skip


def vorpal(ranks: int) -> Arrays:
    z = {1: 4, 3: 4 + 5 + 4, 5: 4 + 5 + 4 + 3 + 4}[ranks]
    return [(f"Step#{step}/field", "<f8", (z, 3, 5, 3)) for step in range(2)]


def gcrm(ranks: int) -> Arrays:
    return [(f"Step#{step}/values", "<f4", (ranks * 6, 5, 6)) for step in range(3)]


def chombo(ranks: int) -> Arrays:
    values, boxes = chombo_values(ranks, 2, 3, 1)
    return [
        ("level_0/boxes", "<i4", (boxes, 6)), ("level_0/Processors", "<i4", (boxes,)),
        ("level_0/data:offsets=0", "<i8", (boxes + 1,)), ("level_0/data:datatype=0", "<f8", (sum(values),)),
    ]  # fmt: skip


CASES: Final[list[tuple[str, list[str], tuple[int, ...], Any]]] = [
    ("flash", ["local=2,3,4", "blocks=4", "variables=3"], (1, 3, 5), flash),
    ("s3d", ["local=3,2,5"], (1, 3, 5), s3d),
    ("coll_perf", ["global=5,7,6", "variables=2"], (1, 3, 5),
     lambda _: [("cube0", "<i4", (5, 7, 6)), ("cube1", "<i4", (5, 7, 6))]),
    ("btio", ["class=S", "writes=2"], (1, 4, 9), lambda _: [("solution", "<f8", (2, 12, 12, 12, 5))]),
    ("ior-segmented", ["data=6000 B", "transfer=2000 B"], (1, 3, 5), lambda n: [("data", "<i8", (n, 750))]),
    ("ior-strided", ["data=6000 B", "transfer=2000 B", "piece=200 B"], (1, 3, 5),
     lambda n: [("data", "<i8", (30, n, 25))]),
    ("gcrm-hdf5", ["data=edges", "cells=6", "layers=5", "steps=3"], (1, 3, 5), gcrm),
    ("vorpal", ["local=4,3,5", "steps=2"], (1, 3, 5), vorpal),
    ("chombo", ["boxes=2", "idle=3", "components=1"], (1, 3, 5), chombo),
]  # fmt: skip
SETTINGS: Final = {
    "as HDF5 does it": (),
    "independent": ("transfer=independent",),
    "chunked": ("layout=chunked", "alignment=4 KiB", "threshold=1 B", "index=large", "evictions=off",
                "metadata=collective", "fill=never", "format=1.10", "meta_block=64 KiB", "memory=guarded"),
}  # fmt: skip


def expect_content(found: dict[str, Any], expected: Arrays, salt: int) -> None:
    datasets = [name for name in found if "?" not in name]
    assert sorted(datasets) == sorted(name for name, _, _ in expected)
    for number, (name, kind, shape) in enumerate(expected):
        values = found[name]
        assert (values.dtype.str, values.shape) == (kind, shape), name
        right = content(np.full(values.nbytes, number), salt)
        assert np.array_equal(np.frombuffer(values.tobytes(), dtype=np.uint8), right), name


def write(
    folder: Path, mpi: str, name: str, ranks: int, settings: list[str], hdf5: tuple[str, ...], *more: str
) -> list[dict[str, Any]]:
    """Both of its repetitions have to be right; the file of the second one is left."""
    words = [name, *settings, "--mpi", mpi, "--ranks", str(ranks), "--directory", str(folder), "--api", "hdf5"]
    for setting in hdf5:
        words += ["--hdf5", setting]
    rows, _ = run_kernel(*words, "--verify", "--keep", "--repeats", "2", *more)
    assert [(row["mode"], row["read_correct"], row["file_correct"]) for row in rows] == [("hdf5", True, True)] * 2
    return rows


@pytest.mark.one_of(12)
@pytest.mark.parametrize(
    ("mpi", "how", "count"),
    [
        ("openmpi", "as HDF5 does it", 2),
        ("openmpi", "chunked", 1),
        ("mpich", "independent", 0),
        ("mpich", "chunked", 1),
    ],
)
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_h5py_finds_what_was_written(tmp_path: Path, mpi: str, case: Any, how: str, count: int) -> None:
    name, settings, rank_counts, arrays = case
    ranks = rank_counts[count]
    write(tmp_path, mpi, name, ranks, settings, SETTINGS[how])
    found = dump(tmp_path / f"{name}.data")
    expect_content(found, arrays(ranks), 1)
    if how == "chunked":
        places = [int(place) for name in found if name.endswith("?offsets") for place in found[name]]
        assert places
        assert all(place % 4096 == 0 for place in places)


EVERYTHING: Final = """\
[[file]]
match = "*.data"
writers = "auto"
[file.hdf5]
alignment = 4096
threshold = "1 B"
hold_metadata = "all"
metadata_block = "64 KiB"
collective_metadata = "writes"
fill = "never"
chunks = "learn"
istore_k = "auto"
transfer = "auto"
"""


@pytest.mark.one_of(8)
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_h5diff_finds_no_difference_under_a_plan_with_everything(tmp_path: Path, mpi: str, case: Any) -> None:
    name, settings, rank_counts, _ = case
    settings = [setting.replace("cells=6", "cells=60") for setting in settings]  # parts that are worth a chunk
    plan = tmp_path / "plan.toml"
    plan.write_text(EVERYTHING)
    places = {"plain": [], "planned": [*IOWEIR, "run", "-q", "-o", str(tmp_path / "trace"), "--plan", str(plan), "--"]}
    for place, around in places.items():
        folder = tmp_path / place
        folder.mkdir()
        options = kernel.Options(rank_counts[1], folder, mpi, api="hdf5", verify=True, keep=True)
        done = completed(
            [*around, *kernel.command(name, settings, options)], env={**os.environ, **ENVIRONMENT}, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    applied = [note.text for note in ioweir.trace.read(tmp_path / "trace").notes if "applied" in note.text]
    assert applied
    if name == "gcrm-hdf5":  # its memory is a vector, the file's selection a box, and ranks write equal boxes
        said = "transfers with memory in the shape of the file's selection: "
        assert any(said in note.text for note in ioweir.trace.read(tmp_path / "trace").notes)
    files = [tmp_path / place / f"{name}.data" for place in places]
    subprocess.run(["h5diff", "-v", *files], check=True, timeout=60, stdout=subprocess.DEVNULL)
    listed = [subprocess.run(["h5ls", "-r", file], check=True, capture_output=True, text=True).stdout for file in files]
    assert listed[0] == listed[1]
    assert "Dataset" in listed[0]


def test_chunks_are_as_large_as_the_largest_part(tmp_path: Path) -> None:
    """global=5,7,6 on a grid of 3 x 1 x 1: blocks of 2, 2 and 1 planes."""
    write(tmp_path, "openmpi", "coll_perf", 3, ["global=5,7,6", "variables=1"], ("layout=chunked",))
    found = dump(tmp_path / "coll_perf.data")
    assert found["cube0?chunks"].tolist() == [2, 7, 6]
    assert len(found["cube0?offsets"]) == 3


def test_other_numbers_of_ranks_read_it_and_see_wrong_bytes(tmp_path: Path) -> None:
    """Written with salt 0 by 2 ranks: 3 ranks find that, and not what salt 1 says."""
    settings = ["local=4,3,5", "variables=2"]
    run_kernel("coll_perf", *settings, "--mpi", "openmpi", "--ranks", "2", "--directory", str(tmp_path), "--api",
               "hdf5", "--keep")  # fmt: skip
    words = kernel.command("coll_perf", settings, kernel.Options(3, tmp_path, "openmpi", api="hdf5", verify=True))
    for salt, right in (("0", True), ("1", False)):
        done = completed(
            [*words, "--written-by", "2", "--salt", salt], env={**os.environ, **ENVIRONMENT}, timeout=60,
        )  # fmt: skip
        (row,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert (row["read_correct"], row["file_correct"], done.returncode == 0) == (right, right, right)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lattice", "--api", "hdf5"], "a kernel that no program writes through HDF5: 'lattice'; take one of"),
        (["btio", "--ranks", "1", "--api", "netcdf"], "a kernel that no program writes through netCDF: 'btio'"),
        (["flash", "--api", "hdf5", "--hdf5", "transfer=both"],
         "--hdf5 transfer: unknown value: 'both'; write independent or collective"),
        (["flash", "--api", "hdf5", "--hdf5", "aligment=1 MiB"],
         "--hdf5: unknown setting: 'aligment'; did you mean 'alignment'?"),
        (["flash", "--api", "hdf5", "--hdf5", "alignment=1M"], "--hdf5 alignment: "),
        (["flash", "--dummy", "1.5"], "--dummy takes a number from 0 to less than 1: '1.5'"),
        (["flash", "--pause", "-1"], "--pause takes a number from 0 to less than 86400"),
    ],
)  # fmt: skip
def test_mistakes_are_said(words: list[str], message: str) -> None:
    _, errors = run_kernel(*words, "--mpi", "openmpi", code=2)
    assert message in errors


def test_notes_about_many_datasets_are_few_and_teach_a_pattern(tmp_path: Path) -> None:
    """Of 12 datasets of one shape the first is not chunked; with the line that the first run tells all of them are."""

    def run_under(name: str, chunks: str) -> tuple[list[str], str]:
        plan = tmp_path / f"{name}.toml"
        keys = f'chunks = {chunks}\ncollective_metadata = "writes"\n'
        plan.write_text(f'[[file]]\nmatch = "*.data"\n[file.hdf5]\n{keys}')
        kernel_words = ["gcrm-hdf5", "cells=128", "layers=16", "steps=12", "--ranks", "2", "--mpi", "openmpi"]
        done = completed(
            [*IOWEIR, "run", "-q", "-o", tmp_path / name, "--plan", plan, "--", *IOWEIR, "kernel", *kernel_words,
             "--api", "hdf5", "--verify", "--directory", tmp_path],
            env={**os.environ, **ENVIRONMENT}, timeout=120, check=True,
        )  # fmt: skip
        words = [*IOWEIR, "report", str(tmp_path / name), "--json"]
        report = json.loads(completed(words, timeout=60, check=True).stdout)
        return [text.partition("hdf5: ")[2] for text in report["messages"]], done.stderr

    notes, errors = run_under("learned", '"learn"')
    kind = "2 chunks of [128, 16], 8 KiB each"
    assert [note for note in notes if note.endswith(f": {kind}")] == [f"Step#{k}/values: {kind}" for k in range(1, 9)]
    assert f"{kind}: in all 11 datasets, of which the first 8 are named" in notes
    assert "chunks were given to 11 datasets" in notes
    (line,) = [note for note in notes if note.startswith("learned: chunks = ")]
    assert line == 'learned: chunks = { "Step#*/values" = [128, 16] }'
    assert not errors, "the file is opened again for reading, where writes of metadata are nobody's concern"
    notes, _ = run_under("given", line.partition(" = ")[2])
    assert "chunks were given to 12 datasets" in notes


def test_files_of_processes_are_dealt_round(tmp_path: Path) -> None:
    """Three ranks over two directories: the trace says where each wrote."""
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    words = kernel.command("coll_perf", ["local=4,3,5"], kernel.Options(3, tmp_path, "openmpi", api="uniform"))
    spread = [word for place in places for word in ("--spread", str(place))]
    completed(
        [*IOWEIR, "run", "-q", "-o", tmp_path / "trace", "--", *words, *spread], env={**os.environ, **ENVIRONMENT},
         timeout=60, check=True,
    )  # fmt: skip
    trace = ioweir.trace.read(tmp_path / "trace")
    writes = [function.id for function in trace.functions if (function.layer, function.op) == ("POSIX", "write")]
    chosen = np.isin(trace.events.function, writes)
    written = {str(trace.paths[number]) for number in np.unique(trace.events.path[chosen])}
    wanted = {str(places[rank % 2] / f"coll_perf.data.{rank}") for rank in range(3)}
    assert {path for path in written if "coll_perf.data" in path} == wanted
    assert not any(list(place.iterdir()) for place in places)
