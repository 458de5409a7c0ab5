"""`mapping = "subfiles:auto"` under the preload: storage targets are probed when a file is made, the report says what
was chosen, and nothing is left of a probe (docs/reference/targets.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from ioweir.base.compiled import compiled
from tracing import MPIS, Mpi, build, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Traced

RANKS: Final = 3
RATES: Final = ("20 MB", "2 MB", "20 MB", "20 MB")
"""Token buckets: no device is behind them."""
BLOCK: Final = 40_000


def job(mpi: Mpi, folder: Path, probe: str, *before: str, code: int | None = 0) -> Traced:
    """A job that writes a file in groups' way, on targets of these rates. The file is FOLDER/lab/file."""
    lab = folder / "lab"
    lab.mkdir()
    manifest = f'state = "{folder}/buckets"\n'
    for i, rate in enumerate(RATES):
        (lab / f"t{i}").mkdir()
        manifest += f'[[target]]\nname = "t{i}"\ndirectory = "t{i}"\nrate = "{rate}"\n'
    (lab / ".ioweir-targets.toml").write_text(manifest)
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "file"\nmapping = "subfiles:auto"\nprobe = {{ {probe} }}\n')
    program = build("container_in_job.c", mpi.cc)
    command = mpi.launch(RANKS, *before, program, lab / "file", "divided", "leave")
    return ioweir_run(folder / "trace", command, options=["--plan", plan], code=code)


def left_on_targets(folder: Path) -> list[list[str]]:
    return [sorted(path.name for path in (folder / "lab" / f"t{i}").iterdir()) for i in range(len(RATES))]


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_new_file_goes_to_the_good_targets_and_the_report_says_so(mpi: Mpi, tmp_path: Path) -> None:
    traced = job(mpi, tmp_path, "discard_ms = 20, window_ms = 80")
    said = [line for line in traced.report["messages"] if " chosen: " in line]
    assert len(said) == 1
    assert said[0].startswith(f"{tmp_path}/lab/file: 4 storage targets (token buckets) probed in ")
    assert " 3 chosen: t0 " in said[0]
    assert "; left out: t1 " in said[0]
    # A subfile on each, and nothing of the probe.
    assert [len(names) for names in left_on_targets(tmp_path)] == [1, 0, 1, 1]
    assert all(".subfile." in name for names in left_on_targets(tmp_path) for name in names)
    applied = [row["text"] for row in traced.report["plan"]["applied"]]
    assert any("mapping subfiles:3" in text for text in applied)
    # What the probes have written is the engine's, as all that it does.
    events = [e for e in traced.trace.events if e.op == "write" and e.layer == "POSIX"]
    written = [event for event in events if event.path.startswith(str(tmp_path))]
    assert written
    assert {event.origin for event in written} == {"engine"}
    assert sum(event.bytes for event in written) > 1_000_000
    # The whole file, read without MPI.
    merged = compiled().merge_container(str(tmp_path / "lab" / "file"), str(tmp_path / "merged"))
    assert merged == RANKS * BLOCK
    expected = bytes(1 + (rank * 31 + at) % 251 for rank in range(RANKS) for at in range(BLOCK))
    assert (tmp_path / "merged").read_bytes() == expected


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_ranks_that_are_killed_while_they_probe_leave_nothing(mpi: Mpi, tmp_path: Path) -> None:
    job(mpi, tmp_path, "window_ms = 60000", "timeout", "-s", "KILL", "6", code=None)
    assert left_on_targets(tmp_path) == [[], [], [], []]
    assert sorted(path.name for path in (tmp_path / "lab").iterdir()) == [
        ".ioweir-targets.toml", "file", "t0", "t1", "t2", "t3",
    ]  # fmt: skip
    assert (tmp_path / "lab" / "file").read_bytes() == b""


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_logs_lie_on_the_targets_of_the_rule_until_the_file_is_an_ordinary_one(mpi: Mpi, tmp_path: Path) -> None:
    targets = [tmp_path / f"t{i}" for i in range(4)]
    for target in targets:
        target.mkdir()
    plan = tmp_path / "plan.toml"
    listed = ", ".join(f'"{target}"' for target in targets)
    plan.write_text(f'[[file]]\nmatch = "file"\nmapping = "log"\ntargets = [{listed}]\n')
    program = build("container_in_job.c", mpi.cc)
    command = mpi.launch(RANKS, program, tmp_path / "file", "divided", "leave")
    ioweir_run(tmp_path / "trace", command, options=["--plan", plan])
    # Ranks 0, 1 and 2 of 3 on 4 targets: 0, ceil(4/3) and ceil(8/3).
    names = [[path.name.partition(".log.")[2].partition(".")[2] for path in target.iterdir()] for target in targets]
    assert names == [["0"], [], ["1"], ["2"]]
    expected = bytes(1 + (rank * 31 + at) % 251 for rank in range(RANKS) for at in range(BLOCK))
    for rank, target in ((0, targets[0]), (1, targets[2]), (2, targets[3])):
        (log,) = target.iterdir()
        assert log.read_bytes()[4096:] == expected[rank * BLOCK : (rank + 1) * BLOCK]
    merged = compiled().merge_container(str(tmp_path / "file"), str(tmp_path / "file"))
    assert merged == len(expected)
    assert (tmp_path / "file").read_bytes() == expected
    assert [list(target.iterdir()) for target in targets] == [[], [], [], []]
