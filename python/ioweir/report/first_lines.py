"""What has to be known before any figure of a run, in the first lines of every text.

Calls that failed, a plan that was not applied or only in part, and what verification did not compare.

Judges and words; the figures come from figures.py, verification from verification.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base import units
from ioweir.base.locate import RUN_FILE
from ioweir.base.spec_names import DATA_OPS, LAYERS, MPI_IO, POSIX, STDIO
from ioweir.base.units import plural
from ioweir.report import chosen, other_form, verification, weighed
from ioweir.report.error_names import name_of
from ioweir.report.model import CarriedOut, ErrorCount, Failure, Reason
from ioweir.trace.sums import Less

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ioweir.report.model import LeftOut, Noted, Operations, PassedThrough, Plan, Report, Simulated

APPLIED: Final = "applied"
IN_PART: Final = "in part"
NOT_APPLIED: Final = "not applied"

_OPEN_FAILED: Final = "MPI_File_open failed"
_BY_RULE: Final = "left to the MPI library by its rule"
"""Under writers = "library" (src/engine/files/open.cpp): as the plan has it."""
_REASONS_SHOWN: Final = 4
_ERRORS_SHOWN: Final = 3
# What programs try and are refused as a rule: looking for files, locks that do not wait.
_TRIED: Final = frozenset((layer, op) for layer in (POSIX, STDIO) for op in ("open", "meta", "lock", "seek"))
_ABSENT: Final = {"MPI_ERR_NO_SUCH_FILE"}
"""What MPI-IO says of a file that is not there: programs delete one before they make it anew."""
_NOUNS: Final = {"write": "writes", "read": "reads", "meta": "other calls"}


def lines(report: Report) -> list[str]:
    """All of them, what lost bytes first."""
    return [
        *simulated_lines(report.simulated),
        *left_out_lines(report.left_out),
        *failed_lines(report.failures),
        *verification.lines(report.plan.verify),
        *plan_lines(report.plan),
        *weighed.lines(report.plan.weighed),
        *chosen.lines(report.plan.chosen),
    ]


def simulated_lines(simulated: Simulated | None) -> list[str]:
    """Example: SIMULATED on Sierra: nothing in here was measured."""
    if simulated is None:
        return []
    lines = [f"SIMULATED on {simulated.machine}: nothing in here was measured."]
    if simulated.ranks_written < simulated.ranks:
        sums = simulated.sums
        lines.append(
            f"A SAMPLE: figures below are of {simulated.ranks_written:,} of {simulated.ranks:,} ranks, numbered anew "
            f"({RUN_FILE}: simulated.numbers). All {simulated.ranks:,} wrote {units.size(sums['written_bytes'])} and "
            f"read {units.size(sums['read_bytes'])} in {sums['calls']:,} calls, with {sums['operations']:,} storage "
            f"operations and {sums['messages']:,} messages."
        )
    return lines


def left_out_lines(left_out: LeftOut) -> list[str]:
    """Example: DAMAGED TRACE: 2 chunks fail their checksum and 1 record says what cannot be; they are left out."""
    chunks, records = left_out.chunks, left_out.records
    said = [f"{chunks:,} {plural('chunk', chunks)} whose checksum does not match"] if chunks else []
    if records:
        said.append(f"{records:,} {plural('record', records)} whose times, sizes or offsets cannot be")
    return [f"DAMAGED TRACE: left out: {' and '.join(said)}. Figures lack what was in there."] if said else []


# ------------------------------------------------------------------------------------------------------ failed calls


def _named(layer: str, errors: Mapping[int, int], mpi_libraries: Sequence[str]) -> list[ErrorCount]:
    """The most frequent first."""
    ordered = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    return [ErrorCount(error, name_of(layer, error, mpi_libraries), calls) for error, calls in ordered]


def failures(
    layers: Mapping[str, Operations],
    errors: Mapping[tuple[str, str], Mapping[int, int]],
    unreported: Mapping[str, int],
    short: Mapping[tuple[str, str], Less],
    unreported_short: Mapping[str, int],
    mpi_libraries: Sequence[str],
) -> list[Failure]:
    """Operations of which calls failed or were short, those that move bytes first.

    `errors`: by layer and operation, how many failed with which error. `unreported`: by operation, how many POSIX calls
    failed inside of MPI-IO calls that returned success. `short`: by layer and operation, calls that moved fewer bytes
    than asked; `unreported_short`: as `unreported`, those of them whose rest no call moved.
    """
    rows = [
        Failure(
            layer=layer, op=op, calls=row.calls, failed=row.failed,
            usual=(layer, op) in _TRIED or ((layer, op) == (MPI_IO, "meta") and {one.name for one in named} == _ABSENT),
            errors=named,
            unreported=unreported.get(op, 0) if layer == POSIX else 0,
            short=less.calls, continued=less.continued, missing_bytes=less.missing,
            unreported_short=unreported_short.get(op, 0) if layer == POSIX else 0,
        )
        for layer in LAYERS
        for op, row in layers[layer].items()
        for less in [short.get((layer, op), Less())]
        for named in [_named(layer, errors.get((layer, op), {}), mpi_libraries)]
        if row.failed or less.calls
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row.usual, row.op not in DATA_OPS, -row.failed))


def failed_lines(rows: Sequence[Failure]) -> list[str]:
    """Example: FAILED CALLS: 3 of 40 MPI-IO writes (MPI_ERR_NO_SPACE); 1 of 2 POSIX syncs (EIO)."""
    grave, usual = ([_failed(row) for row in rows if row.failed and row.usual is wanted] for wanted in (False, True))
    said = [f"FAILED CALLS: {'; '.join(grave)}."] if grave else []
    said += short_lines(rows)
    said += [_unreported(row) for row in rows if row.unreported]
    said += [_unreported_short(row) for row in rows if row.unreported_short]
    if usual:
        said.append(f"Failed calls of the kind with which programs look for files or try locks: {'; '.join(usual)}.")
    return said


def short_lines(rows: Sequence[Failure]) -> list[str]:
    """Example: SHORT CALLS: 2 of 9 POSIX writes moved 4 KiB less than they were asked for; no call moved the rest."""
    lost = [(row, row.short - row.continued) for row in rows if row.short > row.continued]
    words = [
        f"{calls:,}{_of(row.calls, calls)} {row.layer} {noun(row.op)} moved {units.size(row.missing_bytes)} less than "
        f"{'it was' if calls == 1 else 'they were'} asked for"
        for row, calls in lost
    ]
    said = [f"SHORT CALLS: {'; '.join(words)}; no call moved the rest."] if words else []
    went_on = [
        f"{row.continued:,}{_of(row.calls, row.continued)} {row.layer} {noun(row.op)}" for row in rows if row.continued
    ]
    if went_on:
        said.append(f"Short calls whose rest a later call moved: {'; '.join(went_on)}.")
    return said


def _unreported_short(row: Failure) -> str:
    calls = noun(row.op)
    return (
        f"SUCCESS FOR LESS: {row.unreported_short:,} POSIX {calls} moved fewer bytes than they were asked for inside "
        f"of MPI-IO {calls} that returned success, and no call moved the rest."
    )


def _unreported(row: Failure) -> str:
    calls = noun(row.op)
    return (
        f"SUCCESS WITHOUT THE BYTES: {row.unreported:,} POSIX {calls}{_errors(row)} failed inside of MPI-IO {calls} "
        "that returned success: what they should have moved may be missing."
    )


def _failed(row: Failure) -> str:
    return f"{row.failed:,}{_of(row.calls, row.failed)} {row.layer} {noun(row.op)}{_errors(row)}"


def noun(op: str) -> str:
    """Calls of an operation in words."""
    return _NOUNS.get(op, plural(op, 2))


def _of(total: int, calls: int) -> str:
    """Of how many. A call that was begun elsewhere fails, or ends early, where it is completed."""
    return f" of {total:,}" if total >= calls else ""


def _errors(row: Failure) -> str:
    """The errors that have names, most calls first."""
    names = [error.name for error in row.errors if error.name]
    more = len(names) - _ERRORS_SHOWN
    shown = [*names[:_ERRORS_SHOWN], f"{more} more"] if more > 0 else names
    return f" ({', '.join(shown)})" if shown else ""


# -------------------------------------------------------------------------------------------------------------- plan


def carried_out(
    file: str | None,
    applied: Sequence[Noted],
    passed_through: Sequence[PassedThrough],
    moved_bytes: int,
    by_adapters: list[str],
) -> CarriedOut:
    """How far a plan was carried out. `by_adapters`: files that its keys for HDF5 or netCDF were applied to."""
    left = [row for row in passed_through if row.text not in (_OPEN_FAILED, _BY_RULE)]
    if applied or by_adapters:
        return CarriedOut(IN_PART if left else APPLIED, _reasons(left), moved_bytes, by_adapters)
    if file:
        return CarriedOut(NOT_APPLIED, _reasons(passed_through), moved_bytes, by_adapters)
    return CarriedOut(None, [], moved_bytes, by_adapters)


def _reasons(rows: Iterable[PassedThrough]) -> list[Reason]:
    """By reason: the files, and how many calls of all ranks; most calls first."""
    groups: dict[str, Reason] = {}
    for row in rows:
        group = groups.setdefault(row.text, Reason(row.text, 0, []))
        group.calls += row.calls
        if row.path not in group.files:
            group.files.append(row.path)
    return sorted(groups.values(), key=lambda group: (-group.calls, group.text))


_CHOSEN: Final = ("the MPI library's turn", "left to the MPI library for good")
"""Reasons under choose = "auto" (src/engine/files/open.cpp)."""


def plan_lines(plan: Plan) -> list[str]:
    """Where a plan was not carried out, or not for all calls: that, and why. And which files have another form now."""
    return [*_carried_out(plan), *other_form.lines(plan.other_form)]


def _carried_out(plan: Plan) -> list[str]:
    how = plan.carried_out
    if how.state == NOT_APPLIED:
        if not how.reasons:
            return ["PLAN NOT APPLIED: no rule matched a file that the program opened through MPI-IO."]
        if all(reason.text == _OPEN_FAILED for reason in how.reasons):
            return [f"PLAN NOT APPLIED: no file that a rule matched could be opened ({_where(how.reasons)})."]
        return [f"PLAN NOT APPLIED: rules matched, and the MPI library moved all bytes: {_where(how.reasons)}."]
    if how.state == IN_PART:
        # What was chosen is said by the lines of the choice.
        reasons = [reason for reason in how.reasons if reason.text not in _CHOSEN]
        if reasons:
            return [f"PLAN APPLIED IN PART: the engine left calls to the MPI library: {_where(reasons)}."]
    return []


def moved_nothing(plan: Plan) -> str | None:
    """Why no difference of a run can be its plan's doing; None where it can, or there is no plan."""
    how = plan.carried_out
    if how.state is None or how.moved_bytes or how.by_adapters:
        return None
    if how.reasons:
        return f"it moved nothing: {_where(how.reasons)}"
    if how.state == NOT_APPLIED:
        return "it moved nothing: no rule matched a file that the program opened through MPI-IO"
    return "it moved nothing, though rules matched files that the program opened through MPI-IO"


def _where(reasons: Sequence[Reason]) -> str:
    words = []
    for reason in reasons[:_REASONS_SHOWN]:
        calls, files = reason.calls, reason.files
        names = files[0] if len(files) == 1 else f"{len(files):,} files"
        counted = f"{calls:,} {plural('call', calls)}, " if calls else ""
        words.append(f"{reason.text} ({counted}{names})")
    if len(reasons) > _REASONS_SHOWN:
        words.append(f"{len(reasons) - _REASONS_SHOWN} more reasons")
    return "; ".join(words)
