"""The questions of queries.py, answered by DuckDB on one machine.

ioweir reads the store's files itself, because some may be damaged or links to elsewhere, and hands each one's rows to
DuckDB. DuckDB opens no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import duckdb

from ioweir.site.queries import Query, columns

if TYPE_CHECKING:
    from ioweir.site.queries import Choice, Measure
    from ioweir.site.store import Store

_SETTINGS: Final = {"enable_external_access": "false", "lock_configuration": "true"}
_ONCE: Final = 'QUALIFY row_number() OVER (PARTITION BY "run" ORDER BY "part") = 1'


class DuckdbEngine:
    """A data base in memory with the rows of the runs that are chosen."""

    def __init__(self, store: Store, choice: Choice) -> None:
        self._connection = duckdb.connect(":memory:", config=dict(_SETTINGS))
        try:
            for table in ("runs", "findings"):
                self._fill(table, store)
            self._choose(choice)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> DuckdbEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def answer(self, query: Query) -> list[dict[str, Any]]:
        """As Engine says."""
        found = self._connection.execute(sql(query)).fetchall()
        return [dict(zip(query.names(), row, strict=True)) for row in found]

    def _fill(self, table: str, store: Store) -> None:
        made = False
        for part, stored in store.parts(table):
            self._connection.register("rows", columns(table, part, stored))
            into = f"INSERT INTO every_{table}" if made else f"CREATE TABLE every_{table} AS"
            self._connection.execute(f"{into} SELECT * FROM rows")
            self._connection.unregister("rows")
            made = True

    def _choose(self, choice: Choice) -> None:
        """Each run once, and of these the ones that are asked for, with their findings."""
        self._connection.execute(
            f"""
            CREATE TABLE runs AS
            SELECT * FROM (SELECT * FROM every_runs {_ONCE})
            WHERE ($since IS NULL OR started_us >= $since) AND ($until IS NULL OR started_us < $until)
              AND ($name IS NULL OR "user" = $name)
            """,
            {"since": choice.since_us, "until": choice.end_us, "name": choice.user},
        )
        self._connection.execute(
            "CREATE TABLE findings AS SELECT * FROM every_findings SEMI JOIN runs USING (run, part)"
        )
        for table in ("every_runs", "every_findings"):
            self._connection.execute(f"DROP TABLE {table}")


def sql(query: Query) -> str:
    """A question as DuckDB is asked it."""
    of = f'"{query.of}"' if isinstance(query.of, str) else f"({sql(query.of)})"
    by = ", ".join(f'"{name}"' for name in query.by)
    measures = ", ".join(f'{_measured(one)} AS "{one.name}"' for one in query.measures)
    return f"SELECT {by}, {measures} FROM {of} GROUP BY {by}"


def _measured(measure: Measure) -> str:
    words = {"count": "count(*)", "distinct": f'count(DISTINCT "{measure.column}")'}
    return words.get(measure.how, f'{measure.how}("{measure.column}")')
