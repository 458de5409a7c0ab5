"""`ioweir simulate --trace-out DIR`: a simulated run as a directory that report, findings and compare read.

Everything in it says that it is simulated: `simulated` in run.json, the first line of reports, each finding. Of more
than MOST_RANKS ranks a sample is written, numbered from 0 (`numbers`: who they are), with the sums of all beside it.

Lives here: which run is written, run.json. Not here: the trace files (src/sim/trace).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.compiled import compiled
from ioweir.base.locate import NODE_FILES, RUN_FILE
from ioweir.base.new_folder import require_empty, whole_folder
from ioweir.base.spec_names import MPI_IO, POSIX
from ioweir.errors import IoweirError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.predict.machine import Machine
    from ioweir.predict.simulate import PlanRule, Program

MOST_RANKS: Final = 1024
"""A trace has at least 64 KiB a rank."""
EPOCH_S: Final = 946_684_800.0
"""2000-01-01 00:00 UTC, when simulated runs begin: as in src/sim/trace/recorder_write.cpp."""
_FOLDER: Final = "/simulated"


def check(output: Path) -> None:
    """Before anything is simulated: raises IoweirError where something is there already."""
    require_empty(output)


def middle(runs: Sequence[dict[str, Any]]) -> int:
    """The run whose time is the median: the one that is written."""
    took = [run["write"]["seconds"] + run["read"]["seconds"] for run in runs]
    return sorted(range(len(runs)), key=lambda number: took[number])[(len(runs) - 1) // 2]


def write(
    output: Path,
    program: Program,
    machine: Machine,
    plan: PlanRule,
    draw: tuple[dict[str, float], int],
    most_ranks: int = MOST_RANKS,
) -> dict[str, Any]:
    """Simulate once more, and write what the ranks did; returns `simulated` of run.json."""
    shares, seed = draw
    figures = machine.drawn(shares)
    path = program.path if program.path.startswith("/") else f"{_FOLDER}/{program.path}"
    recorder = compiled().SimulatedTrace(
        path, program.ranks, int(figures.get("node.ranks", 1)), most_ranks, program.alone,
        None if plan.by_library else plan.where_from, program.compute_s,
    )  # fmt: skip
    run = program.once(figures, machine.slowdown(), plan, seed, recorder)
    sums = recorder.sums()
    said = {
        "machine": machine.name,
        "what": program.what,
        "plan": plan.where_from,
        "strategy": run["strategy"],
        "seed": seed,
        "ranks": program.ranks,
        "ranks_written": len(sums["kept"]),
        "numbers": sums["kept"] if len(sums["kept"]) < program.ranks else [],
        "sums": {key: sums[key] for key in _SUMS},
    }
    with whole_folder(output, (NODE_FILES, RUN_FILE)) as folder:
        try:
            recorder.write(str(output))
        except ValueError as error:
            # The compiled part's: it names the file and the reason.
            raise IoweirError(str(error)) from error
        folder.write(RUN_FILE, json.dumps(_run(program, plan, said, sums["seconds"]), indent=1))
    return {key: value for key, value in said.items() if key != "numbers"}


_SUMS: Final = (
    "calls", "written_bytes", "read_bytes", "operations", "stored_bytes", "fetched_bytes", "messages",
)  # fmt: skip


def _run(program: Program, plan: PlanRule, said: dict[str, Any], wall_s: float) -> dict[str, Any]:
    return {
        "program": program.what.split(" on ")[0].split(": ")[0],
        "command": [],
        "cwd": _FOLDER,
        "state": "ended",
        "started": EPOCH_S,
        "ended": EPOCH_S + wall_s,
        "wall_s": wall_s,
        "exit_code": 0,
        "signal": None,
        "plan": None if plan.by_library else plan.name,
        "tracing": {"layers": [MPI_IO, POSIX]},
        "simulated": said,
    }
