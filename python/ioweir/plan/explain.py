"""`ioweir explain`: which rank would write (or read) what when, under a plan, as text, JSON and a picture.

The plan is the planner's (ioweir._core); this module chooses the rule, the striping and the access pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import picture
from ioweir.base.compiled import compiled
from ioweir.base.units import few
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.plan import schedule_picture
from ioweir.plan.plan_check import check_plan, rule_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ioweir.trace.pattern import FilePattern

_MOST_TARGETS: Final = 10_000
"""Of a file; Lustre has 2,000 at most. To find an order takes more than linear time."""


@dataclass(frozen=True)
class Options:
    """What the user asked of `ioweir explain`."""

    plan: Path
    kernel: str | None = None
    settings: tuple[str, ...] = ()
    ranks: int | None = None
    trace: Path | None = None
    file: str | None = None
    call: int = 1
    stripe: str | None = None
    targets: int | None = None
    nodes: int | None = None
    processors: int | None = None
    reads: bool = False
    picture: Path | None = None
    everything: bool = False


@dataclass(frozen=True)
class _Striping:
    bytes: int
    targets: int
    where_from: str


def explain(options: Options) -> dict[str, Any]:
    """The explanation as one object; writes the picture where one is wanted."""
    if (options.kernel is None) == (options.trace is None):
        raise IoweirError("explain needs one access pattern: --kernel NAME --ranks N, or --trace DIR", EXIT_USAGE)
    if options.trace is not None and options.settings:
        raise IoweirError(f"{options.settings[0]}: parameters are a kernel's; name it with --kernel", EXIT_USAGE)
    if options.trace is not None and options.ranks is not None:
        raise IoweirError(f"--ranks {options.ranks}: the trace has its own; leave it out", EXIT_USAGE)
    picture.check_name("--picture", options.picture)
    most = compiled().most_ranks
    if options.ranks is not None and options.ranks > most:
        raise IoweirError(f"--ranks {options.ranks}: give at most {most}", EXIT_USAGE)
    text = check_plan(options.plan, None)
    result = _of_kernel(text, options) if options.kernel is not None else _of_trace(text, options)
    if options.picture is not None:
        table = schedule_picture.cells(result["steps"])
        summary = result["summary"]
        result["picture"] = str(options.picture)
        picture.save(
            options.picture,
            schedule_picture.chart(
                table, f"{result['what']}: {summary['rounds']} rounds of {summary['writers']} writers",
                f"{result['strategy']}; {result['striping']['text']}",
            ),
        )  # fmt: skip
    return result


def to_text(result: dict[str, Any]) -> list[str]:
    """For a person."""
    lines = [
        f"pattern   {result['what']}",
        f"rule      {result['rule']['match']} ({result['plan']}:{result['rule']['line']})",
        f"striping  {result['striping']['text']}",
        *result["text"].rstrip("\n").splitlines(),
    ]
    if result["striping"]["targets"] > 1:
        lines += ["", *schedule_picture.to_text(schedule_picture.cells(result["steps"]))]
    if not result["complete"]:
        lines.append(f"only the first {len(result['steps'])} steps are in the table and the picture")
    if "picture" in result:
        lines += ["", f"picture: {result['picture']}"]
    return lines


def _rules(text: str, options: Options) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = compiled().parse_plan(text, str(options.plan))
    if not rules:
        raise IoweirError(f"plan '{options.plan}' has no rules: write a [[file]] table", EXIT_USAGE)
    return rules


def _striping(rule: dict[str, Any], options: Options) -> _Striping:
    """From the command line, else the plan's stripe; a file that is not striped lies on one target."""
    planned_bytes, planned_count = rule["stripe"]
    most = _MOST_TARGETS
    if options.targets is not None and options.targets > most:
        raise IoweirError(f"--targets {options.targets}: give at most {most}", EXIT_USAGE)
    if options.targets is None and planned_count > most:
        raise IoweirError(
            f"stripe = {{ count = {planned_count} }} ({options.plan}:{rule['line']}): at most {most} targets can be "
            "explained; give fewer, or --targets N",
            EXIT_USAGE,
        )
    if options.stripe is not None or options.targets is not None:
        size = _size(options.stripe) if options.stripe is not None else planned_bytes
        targets = options.targets if options.targets is not None else planned_count
        if size < 1 or targets < 1:
            raise IoweirError(
                "striping needs the size of a stripe and the number of targets: give --stripe SIZE and --targets N, "
                "or both in the plan's stripe",
                EXIT_USAGE,
            )
        return _Striping(size, targets, "as asked for")
    if planned_bytes > 0 and planned_count > 0:
        return _Striping(planned_bytes, planned_count, "the plan's")
    return _Striping(0, 1, "not striped: one target (--stripe SIZE --targets N for others)")


def _size(text: str) -> int:
    try:
        return int(compiled().parse_size(text))
    except ValueError as error:
        raise IoweirError(f"--stripe: {error}", EXIT_USAGE) from error


def _finish(
    result: dict[str, Any], what: str, rule: dict[str, Any], striping: _Striping, options: Options
) -> dict[str, Any]:
    from ioweir.base import units  # noqa: PLC0415

    text = (
        f"{striping.targets} targets, stripes of {units.size(striping.bytes)} ({striping.where_from})"
        if striping.bytes else striping.where_from
    )  # fmt: skip
    return {
        "what": what,
        "plan": str(options.plan),
        "rule": {"match": rule["match"], "line": rule["line"]},
        "striping": {"stripe_bytes": striping.bytes, "targets": striping.targets, "text": text},
        **result,
    }


def _machine(striping: _Striping, options: Options, nodes: int = 1) -> Any:
    """`nodes`: where the user names no number of them."""
    for name, value in (("--nodes", options.nodes), ("--processors", options.processors)):
        if value is not None and value < 1:
            raise IoweirError(f"{name} {value}: there is at least one", EXIT_USAGE)
    return compiled().Machine(
        striping.bytes, striping.targets, nodes if options.nodes is None else options.nodes, options.processors or 0
    )


def _planned(call: Any, *arguments: Any) -> dict[str, Any]:
    try:
        result: dict[str, Any] = call(*arguments)
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error
    return result


# ------------------------------------------------------------------------------------------------------------ kernels


def _of_kernel(text: str, options: Options) -> dict[str, Any]:
    assert options.kernel is not None
    if options.ranks is None:
        raise IoweirError(f"--kernel {options.kernel} needs the number of ranks: --ranks N", EXIT_USAGE)
    rules = _rules(text, options)
    path = options.file or f"{options.kernel}.data"
    index = rule_for(
        options.plan, text, path, only_one_is_meant=options.file is None, remedy=". Name a file with --file"
    )
    striping = _striping(rules[index], options)
    result = _planned(
        compiled().explain_kernel, text, str(options.plan), index, options.kernel, options.ranks,
        list(options.settings), options.call, _machine(striping, options), not options.reads, options.everything,
    )  # fmt: skip
    words = " ".join([options.kernel, *options.settings])
    return _finish(
        result, f"kernel {words} on {options.ranks} ranks, call {options.call}", rules[index], striping, options
    )


def _patterns(rules: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"'{rule['match']}'" for rule in rules)


# ------------------------------------------------------------------------------------------------------------- traces


def _of_trace(text: str, options: Options) -> dict[str, Any]:
    from ioweir.trace import pattern, reader  # noqa: PLC0415

    assert options.trace is not None
    rules = _rules(text, options)
    loaded = reader.read(options.trace)
    loaded.require_events(options.trace, "explain")
    if loaded.unreadable:
        raise IoweirError(f"calls of all ranks are needed, and {'; '.join(loaded.unreadable)}")
    ranks = pattern.all_ranks_of(loaded)
    files = pattern.patterns(loaded)
    chosen = _file_of_trace(files, text, rules, options)
    index = rule_for(options.plan, text, chosen.path)
    if not chosen.calls:
        reasons = "; ".join(f"{count} calls {reason}" for reason, count in sorted(chosen.unknown.items()))
        raise IoweirError(
            f"{chosen.path}: the trace knows the extents of no collective call ({reasons or 'there is none'}). "
            "Take the program's access pattern from a kernel (--kernel)"
        )
    if not 1 <= options.call <= len(chosen.calls):
        raise IoweirError(
            f"--call {options.call}: {chosen.path} has calls 1 to {len(chosen.calls)} whose extents are known",
            EXIT_USAGE,
        )
    call = chosen.calls[options.call - 1]
    reads = options.reads or "read" in call.function
    nodes = len({process.host for process in loaded.processes if process.rank >= 0})
    striping = _striping(rules[index], options)
    extents = [call.extents(rank) for rank in range(ranks)]
    if None in extents:
        raise IoweirError(
            f"--call {options.call}: rank {extents.index(None)} asks for more than {pattern.MOST_EXTENTS} pieces, "
            "which are more than are explained. Take a smaller run of the program"
        )
    result = _planned(
        compiled().explain_extents, text, str(options.plan), index, extents,
        _machine(striping, options, max(1, nodes)), not reads, options.everything,
    )  # fmt: skip
    what = f"{chosen.path}: {call.function}, call {options.call} of {len(chosen.calls)} known ones"
    left_out = dict(sorted(chosen.unknown.items()))
    return _finish({"left_out": left_out, **result}, what, rules[index], striping, options)


def _file_of_trace(
    files: dict[str, FilePattern], text: str, rules: Sequence[dict[str, Any]], options: Options
) -> FilePattern:
    from ioweir.trace import pattern  # noqa: PLC0415

    if not files:
        raise IoweirError(f"{options.trace}: the trace holds no MPI-IO data call: there is nothing to plan")
    if options.file is not None:
        return files[pattern.file_named(files, options.file)]
    fitting = [path for path in files if compiled().match_plan(text, str(options.plan), path) is not None]
    if not fitting:
        raise IoweirError(
            f"no rule of {options.plan} ({_patterns(rules)}) fits a file with MPI-IO data calls: {few(sorted(files))}",
            EXIT_USAGE,
        )
    if len(fitting) > 1:
        raise IoweirError(f"the plan fits several files: name one with --file: {few(sorted(fitting))}", EXIT_USAGE)
    return files[fitting[0]]
