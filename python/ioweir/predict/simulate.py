"""`ioweir simulate`: a kernel, or the calls of a trace, on a simulated machine: how long they would take, as a range.

Lives here: the runs, over seeds and over what the machine file leaves open, and what comes out of them. Not here:
machine files (machine.py), calls of traces (workload.py), the simulation (src/sim), text (text.py).
"""

from __future__ import annotations

import json
import random
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from ioweir.base import progress, toml_text, units
from ioweir.base.compiled import compiled
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.plan.plan_check import check_plan, rule_for
from ioweir.predict import machine as machines
from ioweir.predict import trace_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ioweir.predict.machine import Machine

APIS: Final = ("mpiio",)
DIRECTIONS: Final = ("write", "read")
MOST_RUNS: Final = 10_000
"""Of one program under one plan; with 1,000 the interval no longer changes much."""
_LIBRARY_PLAN: Final = (
    '[[file]]\nmatch = "*"\nwriters = "aggregators:{writers}"\ndomains = "even"\nbuffer = "{kib} KiB"\n'
)
"""Two-phase I/O as ROMIO does it by default: a writer a node, even file domains, 16 MiB a round."""
_LIBRARY_BUFFER: Final = 16 << 20
_ALONE_PLAN: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'


@dataclass(frozen=True)
class Options:
    """What the user asked of `ioweir simulate`."""

    machine: str | None
    kernel: str | None = None
    settings: tuple[str, ...] = ()
    ranks: int | None = None
    trace: Path | None = None
    file: str | None = None
    plan: Path | None = None
    api: str = "mpiio"
    repeat: int = 8
    seed: int = 1
    compute_s: float = 0.0
    """Of the program, between two calls that write."""
    trace_out: Path | None = None
    more_traces: tuple[Path, ...] = ()
    """Of the same program on other numbers of ranks."""


@dataclass(frozen=True)
class PlanRule:
    """A rule of a plan's text."""

    text: str
    name: str
    rule: int
    where_from: str
    by_library: bool = False
    """Carried out by the MPI library, round by round in step; else by ioweir's engine."""


def rule_text(keys: Mapping[str, Any], match: str = "*") -> str:
    """A plan of one rule."""
    return "".join(f"{line}\n" for line in ("[[file]]", f"match = {_toml(match)}", *key_lines(keys)))


def key_lines(keys: Mapping[str, Any]) -> list[str]:
    """Keys of a rule or of a table in it, as a plan has them."""
    return [f"{key} = {_toml(value)}" for key, value in keys.items()]


def _toml(value: Any) -> str:
    """Of what rules have: texts, numbers, switches, lists, tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(key_lines(value)) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return toml_text.quoted(value) if isinstance(value, str) else json.dumps(value)


class Program(Protocol):
    """What is simulated."""

    @property
    def what(self) -> str:
        """For a person."""

    @property
    def path(self) -> str:
        """By which a plan's rule is chosen."""

    @property
    def ranks(self) -> int:
        """How many there are."""

    @property
    def alone(self) -> bool:
        """Each rank makes its calls by itself."""

    @property
    def compute_s(self) -> float:
        """Between two calls that write."""

    @property
    def made(self) -> bool:
        """The file is new, as far as is known."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is not known of it."""

    def once(
        self, figures: dict[str, float], slowdown: list[float], plan: PlanRule, seed: int, recorder: Any = None
    ) -> dict[str, Any]:
        """One run, as ioweir._core tells it; `recorder`: a SimulatedTrace."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of the package."""

    name: str
    settings: tuple[str, ...]
    ranks: int
    compute_s: float
    alone: bool = False
    remarks: tuple[str, ...] = ()
    made: bool = True

    @property
    def what(self) -> str:
        """For a person."""
        return f"kernel {' '.join([self.name, *self.settings])} on {self.ranks} ranks"

    @property
    def path(self) -> str:
        """As `ioweir explain` names it."""
        return f"{self.name}.data"

    def once(
        self, figures: dict[str, float], slowdown: list[float], plan: PlanRule, seed: int, recorder: Any = None
    ) -> dict[str, Any]:
        """Written, then read."""
        return called(
            compiled().simulate_kernel, figures, slowdown, plan.text, plan.name, plan.rule, self.name, self.ranks,
            list(self.settings), self.compute_s, True, True, seed, plan.by_library, recorder,
        )  # fmt: skip


def simulate(options: Options) -> dict[str, Any]:
    """All runs, as one object; every time in it is simulated but `wall_s`."""
    machine, program, plan = prepared(options)
    if options.trace_out is not None:
        trace_out.check(options.trace_out)
    began, began_cpu = time.monotonic(), time.process_time()
    runs = runs_of(program, machine, plan, options.repeat, options.seed)
    cost = {"wall_s": time.monotonic() - began, "cpu_s": time.process_time() - began_cpu}
    result = {**_result(program, machine, plan, options, runs), **cost}
    if options.trace_out is not None:
        draw = draws(machine, options.repeat, options.seed)[trace_out.middle(runs)]
        result["trace"] = {"directory": str(options.trace_out)}
        result["trace"] |= trace_out.write(options.trace_out, program, machine, plan, draw)
    return result


def prepared(options: Options) -> tuple[Machine, Program, PlanRule]:
    """What is simulated, where and under which rule; raises IoweirError for what cannot be."""
    _check(options)
    assert options.machine is not None
    machine = machines.read(options.machine)
    program = program_of(options)
    return machine, program, plan_of(options, machine, program)


def runs_of(program: Program, machine: Machine, plan: PlanRule, repeat: int, seed: int) -> list[dict[str, Any]]:
    """As many runs, each with a seed of its own and other values of what is open."""
    return [
        program.once(machine.drawn(shares), machine.slowdown(), plan, number)
        for shares, number in progress.counted(draws(machine, repeat, seed))
    ]


def known_machines() -> dict[str, str]:
    """What the machines of the package are, by name."""
    return {name: machines.read(name).name for name in machines.names()}


def compute_seconds(text: str | None) -> float:
    """A time as users write it."""
    if text is None:
        return 0.0
    try:
        seconds = units.duration(text)
    except ValueError as error:
        raise IoweirError(f"--compute: {error}", EXIT_USAGE) from error
    most = compiled().most_seconds
    if seconds > most:
        raise IoweirError(f"--compute {text}: give at most {most:.0f}s, which is 10 years", EXIT_USAGE)
    return seconds


def called(call: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """A run; what cannot be simulated is the user's to mend."""
    try:
        return call(*arguments)
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error


def program_of(options: Options) -> Program:
    """The kernel, or the calls of the trace."""
    _check(options)
    if options.trace is None:
        assert options.kernel is not None
        assert options.ranks is not None
        return Kernel(options.kernel, options.settings, options.ranks, options.compute_s)
    from ioweir.predict import workload  # noqa: PLC0415

    traces = [options.trace, *options.more_traces]
    return workload.of_traces(traces, options.file, options.ranks, options.compute_s)


def _check(options: Options) -> None:
    if options.machine is None:
        raise IoweirError(f"simulate needs a machine: --machine {'|'.join(machines.names())}, or a file", EXIT_USAGE)
    if (options.kernel is None) == (options.trace is None):
        meant = next((word for word in options.settings if "=" not in word), None)
        hint = f"; did you mean '--kernel {meant}'?" if meant and options.kernel is None else ""
        raise IoweirError(f"simulate needs one program: --kernel NAME --ranks N, or --trace DIR{hint}", EXIT_USAGE)
    if options.kernel is not None and options.ranks is None:
        raise IoweirError(f"--kernel {options.kernel} needs the number of ranks: --ranks N", EXIT_USAGE)
    if options.kernel is None and options.settings:
        raise IoweirError(f"{options.settings[0]}: parameters are a kernel's; name it with --kernel", EXIT_USAGE)
    if options.kernel is not None and options.file is not None:
        raise IoweirError(f"--file {options.file}: is a trace's; a kernel has one file", EXIT_USAGE)
    if options.ranks is not None and options.ranks < 1:
        raise IoweirError(f"--ranks {options.ranks}: give 1 or more", EXIT_USAGE)
    if options.ranks is not None and options.ranks > compiled().most_ranks:
        raise IoweirError(f"--ranks {options.ranks}: give at most {compiled().most_ranks}", EXIT_USAGE)
    if options.repeat < 1:
        raise IoweirError(f"--repeat {options.repeat}: give 1 or more", EXIT_USAGE)
    check_repeat(options.repeat)
    if options.seed < 0:
        raise IoweirError(f"--seed {options.seed}: give 0 or more", EXIT_USAGE)
    if options.api not in APIS:
        raise IoweirError(f"--api {options.api}: only {', '.join(APIS)} is simulated", EXIT_USAGE)
    if options.kernel is not None:
        assert options.ranks is not None
        check_kernel(Kernel(options.kernel, options.settings, options.ranks, options.compute_s))


def check_repeat(repeat: int) -> None:
    """More runs than anybody waits for: their shares of open ranges alone would fill the memory."""
    if repeat > MOST_RUNS:
        raise IoweirError(f"--repeat {repeat}: give at most {MOST_RUNS}", EXIT_USAGE)


def check_kernel(kernel: Kernel) -> None:
    """Raises IoweirError where there is no such kernel, or not on so many ranks."""
    try:
        compiled().check_kernel(kernel.name, kernel.ranks, list(kernel.settings))
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error


def plan_of(options: Options, machine: Machine, program: Program) -> PlanRule:
    """The rule that is asked for; without, what the program does by itself."""
    if options.plan is not None:
        text = check_plan(options.plan, None)
        index = rule_for(options.plan, text, program.path, only_one_is_meant=options.trace is None)
        return PlanRule(text, str(options.plan), index, f"the plan {options.plan}")
    if program.alone:
        return PlanRule(_ALONE_PLAN, "no plan", 0, "no plan: each rank moves its own bytes, as the program does",
                        by_library=True)  # fmt: skip
    text, writers = library_rule(machine.figures, program.ranks)
    usual = "as ROMIO does it by default, a writer a node"
    said = usual if writers == 1 else f"as this machine's MPI library does it, {writers} writers a node"
    return PlanRule(text, "no plan", 0, f"no plan: two-phase I/O {said}", by_library=True)


def library_rule(figures: Mapping[str, float], ranks: int) -> tuple[str, int]:
    """What an MPI library does without a plan, as a rule; writers of a node."""
    ranks_of_node = int(figures.get("node.ranks", 1))
    writers = min(int(figures.get("library.writers_of_node", 1)), ranks_of_node)
    buffer = int(figures.get("library.buffer_bytes", _LIBRARY_BUFFER))
    nodes = -(-ranks // ranks_of_node)
    return _LIBRARY_PLAN.format(writers=min(ranks, nodes * writers), kib=max(1, buffer >> 10)), writers


def draws(machine: Machine, repeat: int, seed: int) -> list[tuple[dict[str, float], int]]:
    """Of each run the shares of open ranges, and its seed: each range is covered evenly (a Latin hypercube)."""
    generator = random.Random(seed)
    columns: dict[str, list[float]] = {}
    for name in machine.open:
        places = [(number + generator.random()) / repeat for number in range(repeat)]
        generator.shuffle(places)
        columns[name] = places
    return [({name: column[number] for name, column in columns.items()}, seed + number) for number in range(repeat)]


# ------------------------------------------------------------------------------------------------------------- results


def _result(
    program: Program, machine: Machine, plan: PlanRule, options: Options, runs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    phases = {name: phase(runs, name) for name in DIRECTIONS}
    counted = phases["write"] if phases["write"]["bytes"] else phases["read"]
    return {
        "simulated": True,
        "what": program.what,
        "machine": machine.name,
        "plan": plan.where_from,
        "strategy": runs[0]["strategy"],
        "remarks": [*program.remarks, *_doubts(program, plan, runs), *runs[0]["remarks"]],
        "runs": len(runs),
        "seed": options.seed,
        "interval": f"the lowest and the highest of {len(runs)} runs, over seeds and open figures",
        "open": {name: [values[0], values[-1]] for name, values in machine.open.items()},
        **phases,
        "rounds": counted["rounds"],
        "messages": counted["messages"],
        "operations": counted["operations"],
        "events": sum(run["events"] for run in runs),
    }


def _doubts(program: Program, plan: PlanRule, runs: Sequence[dict[str, Any]]) -> list[str]:
    """What a plan does in the simulation, and does not do in the program."""
    strategy = runs[0]["strategy"]
    gathers = any(f"writers {who}" in strategy for who in ("aggregators", "auto")) and "mapping log" not in strategy
    doubts = []
    if program.alone and gathers and not plan.by_library:
        doubts.append("each rank makes its calls by itself: in fact no writers gather them, and the plan gains less")
    if not program.made and "mapping shared" not in strategy:
        doubts.append("the program does not make the file: in fact no plan divides one that is there before")
    return doubts


def phase(all_runs: Sequence[dict[str, Any]], direction: str) -> dict[str, Any]:
    """One direction over all runs: medians, and the range of its time."""
    runs = [run[direction] for run in all_runs]
    seconds = [run["seconds"] for run in runs]
    middle = statistics.median(seconds)
    perceived = statistics.median(run["perceived_s"] for run in runs)
    first = runs[0]
    return {
        "bytes": first["bytes"],
        "seconds": {"median": middle, "low": min(seconds), "high": max(seconds)},
        "bytes_per_s": first["bytes"] / middle if middle > 0 else 0.0,
        "perceived_bytes_per_s": first["bytes"] / perceived if perceived > 0 else 0.0,
        "split": _split(runs),
        "open_s": statistics.median(run["open_s"] for run in runs),
        "metadata": {
            "requests": first["metadata_requests"],
            "wait_s": statistics.median(run["metadata_wait_s"] for run in runs),
        },
        "writers": first["writers"],
        "rounds": first["rounds"],
        "messages": first["messages"],
        "operations": first["operations"],
        "requests": first["requests"],
        "lock_requests": round(statistics.median(run["lock_requests"] for run in runs)),
        "lock_handovers": round(statistics.median(run["lock_handovers"] for run in runs)),
        "targets": _targets(runs),
    }


def _split(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What the average writer did with the time, in seconds that add up to the phase's: medians over runs."""
    shares = {"exchange": "exchange_s", "lock": "lock_s", "storage": "storage_s"}
    rows = []
    for run in runs:
        writers = max(1, run["writers"])
        row = {name: run[key] / writers for name, key in shares.items()}
        row["wait"] = max(0.0, run["seconds"] - sum(row.values()))
        rows.append(row)
    return {name: statistics.median(row[name] for row in rows) for name in (*shares, "wait")}


def _targets(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How busy the targets were while the phase went on, of the run in the middle."""
    run = sorted(runs, key=lambda one: one["seconds"])[len(runs) // 2]
    used = [target for target in run["targets"] if target["bytes"]]
    shares = sorted(target["busy_s"] / run["seconds"] for target in used) if run["seconds"] > 0 else []
    busy = {"least": shares[0], "median": statistics.median(shares), "most": shares[-1]} if shares else None
    return {"used": len(used), "busy": busy}
