"""Which ranks waited for which: in collective MPI-IO calls for the last that came, at locks for who gave them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ioweir.html.bins import row_groups

if TYPE_CHECKING:
    from ioweir.findings.columns import Columns, Floats, Numbers

MOST_ROWS: Final = 48
LOCK_WAIT_NS: Final = 20_000
"""A lock that is free is taken in less (docs/reference/findings.md, lock-wait)."""


def collective(run: Columns) -> dict[str, Any]:
    """Seconds that ranks waited at collective calls. `matrix`: (rows, rows), who waited by for whom.

    Example: ranks 0 and 1 come at 1.0 s, rank 2 at 1.5 s: 0.5 s each in [0][2] and [1][2].
    """
    calls = np.flatnonzero(run.meeting >= 0)
    if not calls.size:
        return _matrix(run, calls, calls, np.zeros(0))
    groups, dense = np.unique(run.meeting[calls], return_inverse=True)
    dense = dense.reshape(-1)
    order = np.lexsort((run.start[calls], dense))
    ends = np.r_[np.flatnonzero(np.diff(dense[order])), order.size - 1]
    last = np.empty(groups.size, dtype=np.int64)
    last[dense[order[ends]]] = calls[order[ends]]
    cause = last[dense]
    waited = (run.start[cause] - run.start[calls]) / 1e9
    return _matrix(run, run.unit[calls], run.unit[cause], waited)


def locks(run: Columns) -> dict[str, Any]:
    """The same of calls that took a lock in more than LOCK_WAIT_NS.

    For whom they waited: the rank whose lock on the file was given up last before the wait ended.
    """
    taken = run.topmost(run.is_op("lock")) & ~run.failed & (run.duration > LOCK_WAIT_NS)
    waits, gave = np.flatnonzero(taken), np.flatnonzero(run.is_op("unlock") & ~run.failed)
    empty = np.zeros(0, dtype=np.int64)
    if not waits.size or not gave.size:
        return _matrix(run, empty, empty, np.zeros(0))
    gave = gave[np.lexsort((run.start[gave], run.file[gave]))]
    holder = np.full(waits.size, -1, dtype=np.int64)
    for file in np.unique(run.file[waits]):
        here = np.flatnonzero(run.file[waits] == file)
        low, high = np.searchsorted(run.file[gave], [file, file + 1])
        at = np.searchsorted(run.start[gave[low:high]], run.end[waits[here]]) - 1
        holder[here] = np.where(at >= 0, gave[low + np.maximum(at, 0)] if high > low else -1, -1)
    known = (holder >= 0) & (run.unit[np.maximum(holder, 0)] != run.unit[waits])
    waits, holder = waits[known], holder[known]
    return _matrix(run, run.unit[waits], run.unit[holder], run.duration[waits] / 1e9)


def _matrix(run: Columns, who: Numbers, whom: Numbers, seconds: Floats) -> dict[str, Any]:
    together, rows = row_groups(run.units, MOST_ROWS)
    cells = np.bincount((who // together) * rows + whom // together, seconds, minlength=rows * rows)
    names = run.who.unit_names or (0,)
    parts = [names[row * together : (row + 1) * together] for row in range(rows)]
    causes = np.bincount(whom, seconds, minlength=run.units)
    victims = np.bincount(who, seconds, minlength=run.units)
    worst = np.argsort(-causes, kind="stable")[:20]
    return {
        "rows": [f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts],
        "matrix": np.round(cells.reshape(rows, rows), 9).tolist(),
        "total": float(seconds.sum()),
        "calls": int((seconds > 0).sum()),
        "causes": [[int(names[u]), float(causes[u]), float(victims[u])] for u in worst if causes[u] > 0],
    }
