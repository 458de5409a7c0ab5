"""What `ioweir simulate` found, for a person."""

from __future__ import annotations

from typing import Any

from ioweir.base import units

_SPLIT = {
    "exchange": "handing bytes over between ranks",
    "lock": "waiting for locks",
    "storage": "on storage",
    "wait": "waiting for a turn, for the slowest, or to open",
}


def to_text(result: dict[str, Any]) -> list[str]:
    """Lines of at most 80 columns, but for names."""
    lines = [
        f"SIMULATED {result['what']}",
        f"machine   {result['machine']}",
        f"plan      {result['plan']}",
        f"          {result['strategy']}",
        *(f"          {remark}" for remark in result["remarks"]),
    ]
    for name in ("write", "read"):
        if result[name]["bytes"]:
            lines += ["", *_phase(name, result[name])]
    lines += ["", f"range     {result['interval']}"]
    if result["open"]:
        ranges = ", ".join(f"{name} {low:g} .. {high:g}" for name, (low, high) in sorted(result["open"].items()))
        lines.append(f"          not known: {ranges}")
    if "trace" in result:
        lines.append(_trace(result["trace"]))
    lines.append(f"cost      {result['events']:,} events in {units.seconds(result['wall_s'])}")
    return lines


def _trace(trace: dict[str, Any]) -> str:
    written, ranks = trace["ranks_written"], trace["ranks"]
    who = "all ranks" if written == ranks else f"{written:,} of {ranks:,} ranks, and the sums of all"
    return f"trace     {trace['directory']}: the run whose time is the median, {who}"


def _phase(name: str, phase: dict[str, Any]) -> list[str]:
    seconds = phase["seconds"]
    span = f"{units.seconds(seconds['median'])} ({units.seconds(seconds['low'])} .. {units.seconds(seconds['high'])})"
    lines = [f"{name:<9} {units.size(phase['bytes'])} in {span}, {units.size(phase['bytes_per_s'])}/s"]
    if phase["perceived_bytes_per_s"] > phase["bytes_per_s"] * 1.001:
        lines[0] += f"; the program sees {units.size(phase['perceived_bytes_per_s'])}/s"
    lines.append(
        f"          {phase['writers']:,} writers, {phase['rounds']:,} rounds, {phase['messages']:,} messages, "
        f"{phase['operations']:,} operations, {phase['requests']:,} requests to {phase['targets']['used']:,} targets"
    )
    lines.append("          an average writer's time:")
    for kind, words in _SPLIT.items():
        share = phase["split"][kind] / seconds["median"] if seconds["median"] > 0 else 0.0
        lines.append(f"          {share:>6.1%}  {units.seconds(phase['split'][kind]):>8}  {words}")
    busy = phase["targets"]["busy"]
    if busy is not None:
        lines.append(
            f"          targets were busy {busy['median']:.0%} of the time (least {busy['least']:.0%}, most "
            f"{busy['most']:.0%}); {phase['lock_handovers']:,} locks handed over"
        )
    return lines
