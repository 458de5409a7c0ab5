"""What `--verify` came to: which bytes were read back and compared, which differ, which nobody has compared, and why.

Works on what the ranks said in the trace (VerdictRecord in spec/records.toml, and the notes of rank 0). Wording is here
too, for `run`, `report` and `compare` say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ioweir.base.units import number_list, plural, size
from ioweir.report.model import NotCompared, Verify
from ioweir.trace.paths import clean_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ioweir.report.model import Checked
    from ioweir.trace.reader import Trace

OK: Final = "ok"
MISMATCH: Final = "mismatch"
INCOMPLETE: Final = "incomplete"
NOTHING: Final = "nothing verified"

_EQUAL: Final = "equal"
_DIFFERS: Final = "differs"
_WORDS: Final = {
    "failed": "not written",
    "passed_through": "left to the MPI library",
    "overlapped": "written over in part",
    "beyond_memory": "too many pieces to remember",
    "unreadable": "not readable",
    "unclosed": "never closed",
    "no verdict": "nothing said of it",
}
_SHOWN: Final = 8


def judge(
    trace: Trace,
    ok: Sequence[Checked],
    mismatch: Sequence[Checked],
    written: Mapping[str, int],
    lacking: Iterable[str],
) -> Verify:
    """What of the report is `plan.verify`.

    `ok`, `mismatch`: rank 0's notes. `written`: bytes that MPI-IO calls wrote to files which a rule matched. `lacking`:
    why the trace may not hold what a rank has said.
    """
    requested = bool(trace.run.get("verify", False))
    directory = str(trace.run.get("cwd", ""))
    left_out: list[NotCompared] = []
    equal = differing = 0
    judged = {row.path for row in (*ok, *mismatch)}
    for verdict in trace.verdicts:
        path = clean_path(verdict.path, directory)
        judged.add(path)
        if verdict.outcome == _EQUAL:
            equal += verdict.bytes
        elif verdict.outcome == _DIFFERS:
            differing += verdict.bytes
        else:
            rank, offset = trace.processes[verdict.process].rank, verdict.offset if verdict.offset >= 0 else None
            left_out.append(
                NotCompared(path, verdict.outcome, verdict.text, rank, verdict.calls, verdict.bytes, offset)
            )
    if requested:
        for path, count in sorted(written.items()):
            if count and path not in judged:
                left_out.append(NotCompared(path, "no verdict", "a rank ended before it had compared", bytes=count))
        left_out += [NotCompared("", "no verdict", reason) for reason in lacking]
    if not trace.verdicts:  # a trace of an earlier version
        equal = sum(row.bytes for row in ok)
    return Verify(
        requested=requested,
        result=_result(requested, bool(mismatch or differing), equal, bool(left_out)),
        ok=[row for row in ok if row.bytes],
        mismatch=list(mismatch),
        compared_bytes=equal + differing,
        differing_bytes=differing,
        left_out=left_out,
    )


def _result(requested: bool, differs: bool, equal: int, left_out: bool) -> str | None:
    if differs:
        return MISMATCH
    if not equal:
        return NOTHING if requested or left_out else None
    return INCOMPLETE if left_out else OK


def lines(verify: Verify) -> list[str]:
    """What was verified and what was not, for a person; the worst first. Empty where nobody asked."""
    said: list[str] = []
    for row in verify.mismatch:
        said.append(f"VERIFY MISMATCH: {row.path}: {row.text} ({row.bytes:,} bytes)")
    if verify.result is None:
        return said
    if verify.result == NOTHING:
        what = "no byte was compared" if verify.left_out else "no byte was written to a file of the plan"
        said.append(f"NOT VERIFIED: {what}")
    elif verify.result == INCOMPLETE:
        said.append(f"NOT ALL VERIFIED: {size(verify.compared_bytes)} compared and equal, but not all that was written")
    elif verify.result == OK:
        files = len({row.path for row in verify.ok})
        total = sum(row.bytes for row in verify.ok)
        said.append(f"verified: {size(total)} in {files} {plural('file', files)} as the program passed them in")
    return said + _left_out_lines(verify.left_out)


def _left_out_lines(rows: Sequence[NotCompared]) -> list[str]:
    """One line for each file, outcome and reason, with all ranks' calls and bytes."""
    groups: dict[tuple[str, str, str], list[NotCompared]] = {}
    for row in rows:
        groups.setdefault((row.path, row.outcome, row.text), []).append(row)
    order = sorted(groups.items(), key=lambda item: -sum(row.bytes for row in item[1]))
    said = []
    for (path, outcome, text), of_group in order[:_SHOWN]:
        calls = sum(row.calls for row in of_group)
        total = sum(row.bytes for row in of_group)
        ranks = sorted({row.rank for row in of_group if row.rank is not None})
        first = min((row.offset for row in of_group if row.offset is not None), default=None)
        parts = [size(total)] if total else []
        if calls:
            parts.append(f"{calls:,} {plural('call', calls)}")
        if ranks:
            parts.append(number_list(ranks, "rank"))
        if first is not None:
            parts.append(f"from offset {first:,} on")
        counted = f": {', '.join(parts)}" if parts else ""
        where = f"{path}: " if path else ""
        said.append(f"  not compared: {where}{_WORDS.get(outcome, outcome)} ({text}){counted}")
    if len(order) > _SHOWN:
        said.append(f"  and {len(order) - _SHOWN} more (--json lists all)")
    return said


def complaint(verify: Verify) -> str | None:
    """In one line why bytes were not all compared and equal; None when they were."""
    if verify.result == OK:
        return None
    if verify.result == MISMATCH:
        files = ", ".join(dict.fromkeys(row.path for row in verify.mismatch))
        return f"verification FAILED: {files}: the file does not hold what the program passed in"
    if verify.result == INCOMPLETE:
        files = ", ".join(dict.fromkeys(row.path for row in verify.left_out if row.path)) or "the trace"
        return f"verification INCOMPLETE: {files}: not all that was passed in was compared (the report says why)"
    return "verification: nothing was verified, for no byte that the engine wrote was compared (the report says why)"
