"""`ioweir run --tune -- CMD`: a traced run, a plan made from its trace, a second run under it, a verdict.

The plan is simulated to help, or with `--measure` shown to help by replays.

Both runs are the user's program, whole; what it writes, it writes twice. Lives here: the order of the steps, and what
is said of them. Not here: how a program is started (launch/run.py), how a plan is chosen (predict/tune.py).
"""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from ioweir import errors
from ioweir.base import plain_text, processes, units
from ioweir.errors import EXIT_OK, EXIT_SIGNAL_BASE, EXIT_USAGE, EXIT_VERIFY, IoweirError
from ioweir.launch import forwarding, wrappers
from ioweir.launch import run as launch_run
from ioweir.loop import measure
from ioweir.predict import estimated, machine, tune
from ioweir.report.lacking import partial_reasons
from ioweir.trace import reader
from ioweir.trace.attribute import attribute_processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.trace.reader import Trace

BEFORE: Final = "before"
AFTER: Final = "after"
PLAN: Final = "plan.toml"
PREDICTED: Final = "predicted"
MEASURED: Final = "measured"
_FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    output: Path | None = None
    machine: str | None = None
    verify: bool = False
    quiet: bool = False
    measure: bool = False


def run_tuned(words: Sequence[str], options: Options) -> int:
    """Returns the exit code of the last run of the program."""
    if not words:
        raise IoweirError("no command given: ioweir run --tune [OPTIONS] -- CMD ...", EXIT_USAGE)
    if options.machine is not None:
        machine.read(options.machine)  # before the program runs for nothing
    program = wrappers.program_name(launch_run.program_behind(words) or words)
    folder = launch_run.make_directory(options.output, f"{program}-tune", time.time())
    _say(f"first run, without a plan: its trace is {folder / BEFORE}")
    code = _traced(words, folder / BEFORE, [])
    if code != EXIT_OK:
        _say(f"the program ended with {code}: no plan is looked for")
        return code
    plan = folder / PLAN
    try:
        result = _planned(folder, options)
    except forwarding.SignalError as interrupt:
        raise forwarding.SignalError(
            interrupt.number,
            f"ended by signal {interrupt.number} after the first run. To look for a plan: "
            f"ioweir tune {quote(str(folder / BEFORE))} --measure -o {quote(str(plan))}",
        ) from interrupt
    except (IoweirError, OSError) as error:
        _say(f"no plan can be looked for: {errors.text(error)}")
        return code
    if not options.quiet:
        for line in (measure if options.measure else tune).to_text(result):
            _say(line)
    if result["output"] is None:
        if hints := result.get("measured", {}).get("hints"):
            _say(f"verdict: no plan, but the hints {', '.join(hints)} were shown to be faster")
            return code
        found = "was shown to be" if options.measure else "that was simulated is"
        _say(f"verdict: nothing {found} faster; the program stays as it is")
        return code
    measured = "ratio" in result.get("measured", {})
    expected = _measured(result) if measured else result["predicted"]
    how = "replays say it is" if measured else "predicted before it to be"
    _say(f"second run, under {plan}, {how} {_ratio(expected)}")
    code = _traced(words, folder / AFTER, ["--plan", str(plan), *(["--verify"] if options.verify else [])])
    if code == EXIT_VERIFY and options.verify:
        _say(f"not all bytes were compared and equal under {plan}: see above before you use it")
        return code
    if code != EXIT_OK:
        _say(f"the program ended with {code} under the plan; without it with 0. Do not use {plan}")
        return code
    if options.verify:
        _say("no verdict: the second run also read back what it wrote (--verify), which takes time")
        _say(f"to know whether it is faster: ioweir run --plan {quote(str(plan))} -o DIR -- CMD, and ioweir compare")
        return code
    try:
        lines = verdict(folder, expected, MEASURED if measured else PREDICTED)
        if any(row["taken"] for row in result["estimated"]):
            lines.insert(2, f"what was {estimated.SAID}, is not in these ratios: this run is what shows it")
    except (IoweirError, OSError) as error:
        lines = [f"no verdict: {errors.text(error)}"]
    for line in lines:
        _say(line)
    return code


def _planned(folder: Path, options: Options) -> dict[str, Any]:
    """Makes the plan; the result of `ioweir tune`."""
    asked = tune.Options(folder / PLAN, options.machine, folder / BEFORE)
    if options.measure:
        return measure.tune_measured(asked, measure.Options())
    return tune.tune(replace(asked, storage=measure.storage_if_known(folder / BEFORE)))


def _measured(result: dict[str, Any]) -> dict[str, float]:
    """Of the plan that was taken: by replays, with their interval where there is one."""
    found = result["measured"]
    ends = {f"ratio_{end}": found["ratio"] if found[end] is None else found[end] for end in ("low", "high")}
    return {"ratio": found["ratio"], **ends}


def verdict(folder: Path, expected: dict[str, float], how: str) -> list[str]:
    """Of two runs: what changed. How much of it is noise one run a side cannot tell, and that is said.

    `how`: was expected, "predicted" or "measured" by replays.
    """
    traces = [reader.read(folder / name) for name in (BEFORE, AFTER)]
    for name, trace in zip((BEFORE, AFTER), traces, strict=True):
        if trace.dropped or trace.disabled_processes or trace.damage:
            # What is lacking in one of them would be taken for a gain.
            why = partial_reasons(trace, attribute_processes(trace.processes))
            raise IoweirError(f"the trace {folder / name} is partial: {'; '.join(why)}")
    walls, spent = zip(*map(_seconds, traces), strict=True)
    io_ratio = spent[0] / spent[1] if spent[1] > 0 else 1.0
    wall_ratio = walls[0] / walls[1] if walls[1] > 0 else 1.0
    word = "faster" if io_ratio > 1 else "slower"
    low, high = expected["ratio_low"], expected["ratio_high"]
    inside = "within" if low <= io_ratio <= high else "outside of"
    lines = [
        f"program: {units.seconds(walls[0])}, then {units.seconds(walls[1])}: {wall_ratio:.2f} times as fast",
        f"its I/O (of the rank with most): {units.seconds(spent[0])}, then {units.seconds(spent[1])}: {io_ratio:.2f} "
        f"times as fast, {inside} the {how} {low:.2f} .. {high:.2f}",
        f"verdict: {word} in this one run; one run a side does not tell a gain from noise",
    ]
    if how != MEASURED:
        lines[-1] += f". To know: ioweir tune {quote(str(folder / BEFORE))} --measure -o measured.toml"
    if io_ratio > 1:
        lines.append(f"for the next job: ioweir run --plan {quote(str(folder / PLAN))} -- CMD")
        lines.append(f"more: ioweir compare {quote(str(folder / BEFORE))} {quote(str(folder / AFTER))}")
    else:
        lines.append(f"{folder / PLAN} is kept, and was not faster here")
    return lines


def _ratio(predicted: dict[str, float]) -> str:
    return f"{units.times(predicted['ratio'])} ({predicted['ratio_low']:.2f} .. {predicted['ratio_high']:.2f})"


def _seconds(trace: Trace) -> tuple[float, float]:
    """Of a run: seconds of the program, and of MPI-IO calls, of the rank with most of them."""
    import numpy as np  # noqa: PLC0415

    functions = [function.id for function in trace.functions if function.layer == reader.MPI_IO]
    events = trace.events
    outermost = np.isin(events.function, functions) & (events.origin == 0)
    spent: dict[int, int] = {}
    pairs = zip(events.process[outermost].tolist(), events.duration_ns[outermost].tolist(), strict=True)
    for process, duration in pairs:
        spent[process] = spent.get(process, 0) + duration
    return float(trace.run.get("wall_s") or 0.0), max(spent.values(), default=0) / 1e9


def _traced(words: Sequence[str], output: Path, more: Sequence[str]) -> int:
    """The program's exit code. It has this process's streams; signals are handed on to it."""
    with subprocess.Popen(processes.ioweir("run", "--quiet", "-o", str(output), *more, "--", *words)) as child:
        previous: dict[Any, Any] = {}
        try:
            for number in _FORWARDED:
                # A terminal sends SIGINT to the child as well.
                handler = (
                    (lambda *_: None) if number == signal.SIGINT else (lambda caught, _: child.send_signal(caught))
                )
                previous[number] = signal.signal(number, handler)
            code = child.wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
    return EXIT_SIGNAL_BASE - code if code < 0 else code


def _say(text: str) -> None:
    plain_text.say(f"ioweir: {text}")
