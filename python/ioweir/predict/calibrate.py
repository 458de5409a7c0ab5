"""`ioweir calibrate`: a machine file that fits what was measured of this storage, and what that does not settle.

Lives here: options, which figures are free, the machine file, text. Not here: the fit (fitting.py), cases
(measured.py, traced.py, cases.py).
"""

from __future__ import annotations

import math
import platform
import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import toml_text, units
from ioweir.base.guarded_files import write_named
from ioweir.errors import EXIT_USAGE, IoweirError, reason
from ioweir.predict import cases as case_files
from ioweir.predict import fitting, kept, machine, measured, node, traced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ioweir.predict.fitting import Fit, Found

LEAST_CASES: Final = 4
LEAST_GAINS: Final = 10
"""Of plans, to say something of gains."""
WRITE, READ = "targets.write_bytes_per_s", "targets.read_bytes_per_s"
_ONE_NODE: Final = {
    "node.ranks": 4096.0,
    "node.nic_bytes_per_s": node.NO_BOUND,
    "fabric.latency_s": 1e-6,
    "client.cache_bytes": float(1 << 40),
    "client.rpc_bytes": float(1 << 20),
    "targets.cache_bytes_per_s": 1e10,
    "locks.used": 0.0,
}
"""Of one machine: all ranks on one node, a page cache, a local file system without locks between nodes. What lies
between the node and its storage, a network perhaps, is in the rates of the targets."""
_BEFOREHAND: Final = {
    WRITE: (1e5, 1e11),
    READ: (1e5, 1e11),
    "targets.request_s": (1e-6, 0.1),
    "targets.seek_s": (1e-6, 0.1),
    "targets.cache_bytes": (4096.0, float(256 << 20)),
    "node.copy_bytes_per_s": (1e8, 3e10),
    "fabric.storage_bytes_per_s": (1e6, 1e12),
    "fabric.message_s": (1e-7, 1e-2),
}
"""In which range a figure of one machine can be, before anything is measured."""
_EXCHANGE: Final = ("fabric.message_s",)


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    output: Path | None
    """The machine file to write; None, with kernels: it is kept for `ioweir tune`."""
    targets: Path | None = None
    trace: Path | None = None
    runs: Path | None = None
    name: str | None = None
    repeats: int = 3
    force: bool = False
    kernels: Path | None = None
    """Where the kernels of `kernel_rows` ran."""
    kernel_rows: Sequence[Mapping[str, Any]] = ()
    mpi: str = ""
    """Under which MPI library they ran: "openmpi" or "mpich"."""


@dataclass(frozen=True)
class Measured:
    """All cases of a calibration, and what is known of the machine without a fit."""

    cases: Sequence[Any]
    count: int
    slowdown: Sequence[float]
    remarks: tuple[str, ...] = ()
    how: str = ""
    beforehand: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Narrower ranges of figures than machines in general have."""
    storage: node.Storage | None = None
    """Of kernels on one node whose processors are to be described, too."""
    known: Mapping[str, float] = field(default_factory=dict)
    """Figures for the machine file that no case of these needs."""
    processors: int = 0
    """That ranks of the runs shared; 0: not said."""
    opening: machine.Opening = field(default_factory=machine.Opening)


def calibrate(options: Options) -> dict[str, Any]:
    """Measures or reads, fits, writes the machine file; everything that was found as one object."""
    check(options)
    began = time.monotonic()
    found = _measured(options)
    result = fit_machine(found, options.name or f"{platform.node()}, calibrated")
    output = options.output
    if output is None:
        assert options.kernels is not None
        output = kept.keep(result["machine"], options.kernels, options.mpi)
    else:
        try:
            write_named(output, result["machine"])
        except OSError as error:
            raise IoweirError(f"{output} cannot be written: {reason(error)}", EXIT_USAGE) from error
    machine.read(str(output))
    return {
        **result, "output": str(output), "kept": options.output is None, "wall_s": time.monotonic() - began,
    }  # fmt: skip


def check(options: Options) -> None:
    """Mistakes of the command line."""
    if (options.targets, options.trace, options.runs, options.kernels) == (None, None, None, None):
        raise IoweirError(
            "calibrate needs measurements: --targets PATH, --trace DIR, --runs FILE or --kernels DIR", EXIT_USAGE
        )
    if options.kernels is not None and (options.targets, options.trace, options.runs) != (None, None, None):
        raise IoweirError(
            "--kernels goes alone: its runs describe one node whose files lie in one folder; make two machine files",
            EXIT_USAGE,
        )
    if options.repeats < 2:
        raise IoweirError(
            f"--repeats {options.repeats}: give 2 or more; one run says nothing of its spread", EXIT_USAGE
        )
    if options.output is None and options.kernels is None:
        raise IoweirError("--output MACHINE.toml is missing: the machine file to write", EXIT_USAGE)
    if options.output is not None and options.output.exists() and not options.force:
        raise IoweirError(f"{options.output} is there; name another --output, or --force", EXIT_USAGE)


def fit_machine(found: Measured, name: str) -> dict[str, Any]:
    """The machine file's text, and what it rests on."""
    groups = {case.group for case in found.cases}
    if len(groups) < LEAST_CASES:
        raise IoweirError(
            f"too few different cases to fit a machine to: {len(groups)}, and {LEAST_CASES} are needed: run the "
            "program with other sizes and numbers of ranks, or measure with --targets",
            EXIT_USAGE,
        )
    base = {**_ONE_NODE, "targets.count": float(found.count)}
    near: dict[str, float] = {}
    if found.storage is None:
        free = _free(found)
        if found.processors:
            # Of one number of ranks, what a call costs can be a message's time or a rank's work. Only work grows with
            # the ranks that share a processor, as calls of ranks that wait for each other there do.
            free = [one for one in free if one.name not in _EXCHANGE]
            named = {*_EXCHANGE, *(one.name for one in free)}
            free += [one for one in node.of_processors() if one.name not in named]
            near = node.near_of_calls(found.cases, free, base)
    else:
        base |= node.base(found.storage)
        first = node.first(found.cases, base, found.storage)
        base |= first.way
        near = first.near
        free = node.free(found.cases, found.storage)
    result = fitting.fit(found.cases, free, base, near)
    text = machine_text(found, result, base, name)
    return {
        "name": name,
        "cases": len(found.cases),
        "groups": len(groups),
        "how": found.how,
        "held_out": asdict(result.held_out),
        **_ratios(result),
        "fitted": asdict(result.fitted),
        "figures": [asdict(one) for one in result.found],
        "targets": {"count": found.count, "slowdown": list(found.slowdown)},
        "opening": asdict(found.opening),
        "remarks": list(found.remarks),
        "machine": text,
    }


def of_storage(path: Path, repeats: int) -> Measured:
    """Measures the storage targets in effect at a path."""
    places = measured.directories(path)
    cases, slowdown = measured.measure(places, repeats)
    copying = measured.copying(places[0])
    how = f"files on {len(places)} {units.plural('target', len(places))}"
    beforehand = {"node.copy_bytes_per_s": (copying / 2, copying * 2)}
    known = {"client.page_cache_bytes": float(node.memory_bytes() // 2)}
    if len(places) > 1:
        known["targets.folders"] = 1.0
    return Measured(cases, len(places), slowdown, (), how, beforehand, known=known)


def of_kernels(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Measured:
    """Runs of kernels on one node, whose processors they show."""
    found = case_files.of_rows(rows)
    kernels = len({case.held_with for case in found})
    how = f"{kernels} kernels under {len(rows) // max(1, kernels)} strategies"
    opening = machine.Opening(*case_files.opening(rows))
    return Measured(found, 1, (), (), how, storage=node.storage_at(folder), opening=opening)


def _measured(options: Options) -> Measured:
    if options.kernels is not None:
        return of_kernels(options.kernels, options.kernel_rows)
    parts = []
    if options.targets is not None:
        parts.append(of_storage(options.targets, options.repeats))
    if options.trace is not None:
        parts.append(of_trace(options.trace))
    if options.runs is not None:
        runs = case_files.of_runs(options.runs, parts[0].slowdown if parts else ())
        count = max((max(case.placed.targets, default=0) + 1 for case in runs), default=1)
        slow = max((case.placed.slowdown for case in runs), key=len)
        processors = _processors_of(runs, options.runs)
        known = {"node.processors": float(processors)} if processors else {}
        parts.append(
            Measured(runs, count, slow, (), f"{len(runs)} runs of kernels", known=known, processors=processors)
        )
    first = max(parts, key=lambda part: part.count)
    return replace(
        first,
        cases=[case for part in parts for case in part.cases],
        remarks=tuple(remark for part in parts for remark in part.remarks),
        known={name: value for part in parts for name, value in part.known.items()},
        processors=max(part.processors for part in parts),
        how=", ".join(part.how for part in parts),
    )


def _processors_of(runs: Sequence[case_files.KernelCase], file: Path) -> int:
    """The number that all runs say, or none says."""
    said = sorted({run.processors for run in runs})
    if len(said) > 1:
        raise IoweirError(
            f"--runs {file}: runs on {', '.join(map(str, said))} processors (0: not said): a machine file describes "
            "one kind of node; give the same `processors` with each run, or with none",
            EXIT_USAGE,
        )
    return said[0]


def of_trace(directory: Path) -> Measured:
    """The POSIX calls of a trace as cases."""
    found = traced.of_trace(directory)
    remarks = [] if found.flushed else [
        "the trace has writes that nothing flushed: the machine is what they met (a page cache), not the device below"
    ]  # fmt: skip
    if found.targets == 1:
        remarks.append("how many storage targets there are, a trace does not say: targets.count = 1 is all of them")
    how = f"{len(found.cases)} stretches of calls of {found.ranks} processes"
    return Measured(found.cases, found.targets, (), tuple(remarks), how)


def _free(found: Measured) -> list[fitting.Free]:
    """Figures that cases of these kinds can say something about."""
    writes = [case for case in found.cases if case.writes]
    reads = [case for case in found.cases if not case.writes]
    kernels = any(isinstance(case, case_files.KernelCase) for case in found.cases)
    names = [name for name in _BEFOREHAND if name not in _EXCHANGE or kernels]
    if found.count == 1:
        names.remove("fabric.storage_bytes_per_s")
    if not writes:
        names = [name for name in names if name not in (WRITE, "targets.cache_bytes", "node.copy_bytes_per_s")]
    if not reads:
        names.remove(READ)
    free = []
    for name in names:
        low, high = found.beforehand.get(name, _BEFOREHAND[name])
        start = math.sqrt(low * high)
        if name == WRITE:
            start = min(high / 2, max(2 * low, _fastest(writes) / found.count))
        elif name == READ:
            start = min(high / 2, max(2 * low, _fastest(reads) / found.count))
        elif name == "fabric.storage_bytes_per_s":
            start = min(high / 2, 20 * _fastest(found.cases))
        elif name == "targets.cache_bytes":
            start = float(256 << 10)
        free.append(fitting.Free(name, low, high, start))
    return free


def _fastest(cases: Sequence[Any]) -> float:
    """Bytes a second of the case in the upper quarter."""
    rates = sorted(case.bytes / case.seconds for case in cases)
    return float(rates[len(rates) * 3 // 4])


# ---------------------------------------------------------------------------------------------------------------- file


def machine_text(found: Measured, result: Fit, base: Mapping[str, float], name: str) -> str:
    """A machine file: figures that are determined, ranges of those that are not, and sources.

    The middle of a range is the fitted value: values in the middle of all ranges explain the cases together.
    """
    day = time.strftime("%Y-%m-%d", time.gmtime())
    source = f"ioweir calibrate, {day}: {found.how}"
    known = [one for one in result.found if one.determined]
    base = {**base, **found.known}
    opened = {one.name: _range(one) for one in result.found if not one.determined}
    for one in known:
        if one.name in (WRITE, READ) and result.held_out.cases:
            opened[one.name] = _spread(one, result)
    if found.storage is not None and result.held_out.cases:
        base = {**base, node.SLOWDOWN: 1.0}
        opened[node.SLOWDOWN] = (min(1.0, result.held_out.ratio_low), 1.0, max(1.0, result.held_out.ratio_high))
    given = {**base, **{one.name: one.value for one in result.found}}
    lines = [f"name = {_text(name)}", f"about = {_text(_about(found, result))}"]
    ratios = _ratios(result)
    if ratios["gains"]:
        lines.append(f"gains = [{', '.join(f'{value:.4g}' for value in ratios['gains'])}]")
    if ratios["plans"]:
        lines.append(f"plans = {ratios['plans']:.4g}")
    if result.held_out.cases:
        lines.append(f"unexplained = {min(result.held_out.median, machine.MOST_UNEXPLAINED):.4g}")
    for table in dict.fromkeys(key.partition(".")[0] for key in given):
        lines += ["", f"[{table}]"]
        lines += [
            f"{key.partition('.')[2]} = {_number(key, value)}" for key, value in given.items()
            if key.startswith(f"{table}.")
        ]  # fmt: skip
    if opened:
        lines += ["", "[open]"]
        lines += [
            f'"{key}" = [{", ".join(_number(key, value) for value in values)}]' for key, values in opened.items()
        ]  # fmt: skip
    if found.opening != machine.Opening():
        rows = {"runs": found.opening.runs, **found.opening.plans}
        lines += ["", "[opening]"]
        lines += [f"{key} = [{', '.join(f'{value:.4g}' for value in values)}]" for key, values in rows.items()]
    slow = {
        number: min(max(factor, machine.LEAST_SLOWDOWN), machine.MOST_SLOWDOWN)
        for number, factor in enumerate(found.slowdown) if factor != 1
    }  # fmt: skip
    if slow:
        lines += ["", "[slow_targets]", *(f"{number} = {factor:.4g}" for number, factor in slow.items())]
    lines += ["", "[sources]"]
    for table in dict.fromkeys(key.partition(".")[0] for key in given):
        lines.append(f"{table} = {_text(source + '; figures that are not fitted: one node, no locks between nodes')}")
    for one in result.found:
        why = "fitted" if one.determined else "not determined by the data: open"
        lines.append(f'"{one.name}" = {_text(f"{source}: {why}, 90 % interval {one.low:.3g} to {one.high:.3g}")}')
    return "\n".join(lines) + "\n"


def _ratios(result: Fit) -> dict[str, Any]:
    """`gains`: between which factors of a simulated gain four of five measured ones lie, with the middle one.

    `plans`: by which factor the ratio of two plans' times is off in the middle one of all pairs. Of errors that are
    normal in their logarithm three of four do not hide which plan is faster, if the simulated ratio is larger. None:
    too few.
    """
    errors = case_files.ratio_errors(result.held)
    found: dict[str, Any] = {"gains": None, "plans": None}
    if len(errors.gains) >= LEAST_GAINS:
        low, high = fitting.coverage(errors.gains, machine.SHARE_OF_GAINS)
        found["gains"] = (low, statistics.median(errors.gains), high)
    if len(errors.plans) >= LEAST_GAINS:
        found["plans"] = statistics.median(errors.plans)
    return found


def _spread(one: Found, result: Fit) -> tuple[float, float, float]:
    """What the fit does not explain of times that it had not seen, as a range of rates: nine of ten lie within."""
    error = result.held_out
    return one.value / max(1.0, error.ratio_high), one.value, one.value / min(1.0, error.ratio_low)


def _range(one: Found) -> tuple[float, float, float]:
    return one.low, min(max(one.value, one.low), one.high), one.high


def _about(found: Measured, result: Fit) -> str:
    error = result.held_out
    text = f"Fitted to {len(found.cases)} cases ({found.how})."
    if error.cases:
        text += f" Held-out error: median {error.median:.1%}, nine of ten below {error.p90:.1%}."
    return " ".join([text, *(f"{remark[0].upper()}{remark[1:]}." for remark in found.remarks)])


def _number(key: str, value: float) -> str:
    figure = next(one for one in machine.figures() if one.name == key)
    if figure.switch:
        return "true" if value else "false"
    value = figure.nearest(value)
    return str(round(value)) if figure.whole else f"{value:.6g}" if value < 1e6 else f"{value:.1f}"


def _text(text: str) -> str:
    return toml_text.quoted(text)


# ---------------------------------------------------------------------------------------------------------------- text


def to_text(result: Mapping[str, Any]) -> list[str]:
    """For a person."""
    held, fitted = result["held_out"], result["fitted"]
    lines = [f"{result['output']}: fitted to {result['cases']} cases ({result['how']})"]
    if held["cases"]:
        lines.append(
            f"held-out error: median {held['median']:.1%}, 90th percentile {held['p90']:.1%}, of {held['cases']} "
            f"cases, each left out of the fit that it is held against"
        )
    if result["gains"]:
        low, middle, high = result["gains"]
        lines.append(
            f"gains of plans, measured over simulated, held out: median {middle:.2f}, four of five {low:.2f} .. "
            f"{high:.2f}"
        )
    if result["plans"]:
        lines.append(f"two plans against each other: off by a factor of {result['plans']:.2f} (median), held out")
    for mapping, (low, middle, high) in result["opening"]["plans"].items():
        lines.append(
            f"opening and closing under a plan (mapping {mapping}) over without one: median {middle:.2f}, four of five "
            f"{low:.2f} .. {high:.2f}"
        )
    lines.append(f"error of the fit itself: median {fitted['median']:.1%}, 90th percentile {fitted['p90']:.1%}")
    for one in result["figures"]:
        known = f"{one['value']:.4g}, 90 % within {one['low']:.3g} .. {one['high']:.3g}"
        unknown = f"open, not determined: {one['low']:.3g} .. {one['high']:.3g}"
        lines.append(f"  {one['name']:<27} {known if one['determined'] else unknown}")
    slow = [(number, factor) for number, factor in enumerate(result["targets"]["slowdown"]) if factor != 1]
    lines += [f"  target {number} takes {factor:.2f} times as long as the others" for number, factor in slow]
    if result["kept"]:
        lines.append("kept: `ioweir tune` takes it for traces of this host whose files lie on that file system")
    return lines + [f"note: {remark}" for remark in result["remarks"]]
