"""The questions of queries.py, answered by Dask: on one machine, or by workers on several that a scheduler knows.

Workers read the store's files themselves, so all of them must see the store under the same path, and have ioweir.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dask
import dask.dataframe as dd
import pandas as pd

from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site.queries import Query, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.site.queries import Choice
    from ioweir.site.store import Store

_ON_ONE_MACHINE: Final = 8
"""Pieces of each table; with workers, so many for each of them."""
_CONNECT_S: Final = "30s"
_KEYS: Final = ["run", "part"]


class DaskEngine:
    """The rows of the runs that are chosen, spread over the workers' memory."""

    def __init__(self, store: Store, choice: Choice, scheduler: str | None) -> None:
        self._open = contextlib.ExitStack()
        try:
            self._pieces = _ON_ONE_MACHINE
            if scheduler is None:
                self._open.enter_context(dask.config.set(scheduler="threads"))
            else:
                self._pieces *= max(1, self._connect(scheduler))
            runs = _chosen(_once(self._read(store, "runs"), self._pieces), choice).persist()
            found = self._read(store, "findings").merge(runs[_KEYS], on=_KEYS, how="inner").persist()
            self._frames = {"runs": runs, "findings": found}
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> DaskEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._frames = {}
        self._open.close()

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """As Engine says."""
        frame = self._frame(query.of)
        by = list(query.by)
        distinct = [one for one in query.measures if one.how == "distinct"]
        lazily = [_aggregated(frame, query, 1)]
        # Pairs first, then how many of each: groupby.nunique of Dask takes no second measure along.
        lazily += [frame[[*by, one.column]].drop_duplicates().groupby(by, dropna=False).size() for one in distinct]
        grouped, *counts = dask.compute(*lazily)
        for one, count in zip(distinct, counts, strict=True):
            grouped[one.name] = count
        rows = grouped.reset_index()[query.names()].to_dict("records")
        return [{str(name): value for name, value in row.items()} for row in rows]

    def _frame(self, of: str | Query) -> Any:
        if isinstance(of, str):
            return self._frames[of]
        return _aggregated(self._frame(of.of), of, self._pieces).reset_index()

    def _connect(self, scheduler: str) -> int:
        """How many workers a scheduler has."""
        import distributed  # noqa: PLC0415

        try:
            client = distributed.Client(scheduler, timeout=_CONNECT_S, set_as_default=True)
        except (OSError, ValueError) as error:
            raise IoweirError(
                f"--scheduler {scheduler}: no Dask scheduler answers there: {error}; give the address that "
                "`dask scheduler` prints, such as tcp://node1:8786",
                EXIT_USAGE,
            ) from error
        self._open.callback(client.close)
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise IoweirError(f"--scheduler {scheduler}: it has no workers; start some with `dask worker {scheduler}`")
        return workers

    def _read(self, store: Store, table: str) -> Any:
        """The rows of a table. What cannot be read is left out, and noted in the store."""
        names = store.file_names(table)
        some = [names[at :: self._pieces] for at in range(min(self._pieces, len(names)))]
        place = store.folder.path.resolve()
        read = dask.delayed(_rows, nout=2, pure=False)
        pieces = dask.persist(*(read(place, table, part) for part in some))
        for not_read in dask.compute(*(piece[1] for piece in pieces)):
            store.not_read |= not_read
        meta = _rows(place, table, [])[0]
        if not pieces:
            return dd.from_pandas(meta, npartitions=1)
        return dd.from_delayed([piece[0] for piece in pieces], meta=meta, verify_meta=False)


def _rows(place: Path, table: str, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """By a worker: the rows of some files of the store there, and what of them cannot be read."""
    from ioweir.site.store import Store  # noqa: PLC0415

    with Store.open(place) as store:
        frames = [columns(table, part, stored).to_pandas() for part, stored in store.parts(table, names)]
        return pd.concat(frames, ignore_index=True), store.not_read


def _once(runs: Any, pieces: int) -> Any:
    """Each run once, as the first of the files says that hold it."""
    return runs.shuffle("run", npartitions=pieces).map_partitions(_first_of_each)


def _first_of_each(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("part", kind="stable").drop_duplicates("run")


def _chosen(runs: Any, choice: Choice) -> Any:
    if choice.since_us is not None:
        runs = runs[runs["started_us"] >= choice.since_us]
    if choice.end_us is not None:
        runs = runs[runs["started_us"] < choice.end_us]
    return runs if choice.user is None else runs[runs["user"] == choice.user]


def _aggregated(frame: Any, query: Query, pieces: int) -> Any:
    """All measures of a question but "distinct", by group."""
    grouped = frame.assign(one=1).groupby(list(query.by), dropna=False)
    how = {
        one.name: ("one", "sum") if one.how == "count" else (one.column, one.how)
        for one in query.measures
        if one.how != "distinct"
    }
    return grouped.agg(**{name: pd.NamedAgg(*what) for name, what in how.items()}, split_out=pieces)
