"""Events as Parquet, partitioned by node and rank, and as CSV; sums of imported logs as a table beside them.

The columns are those of the master log (trace/merge.py) with names of files in the place of their numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base.new_folder import whole_folder
from ioweir.base.progress import watched
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.trace.merge import Merger, plain, replacing, table_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ioweir.trace.reader import Trace

FORMAT_VERSION: Final = 1
COUNTS: Final = "_counts.parquet"
"""Table readers leave out what begins so."""
_MOST_PARTITIONS: Final = 1 << 24
_OPEN_FILES: Final = 256
_GROUP_ROWS: Final = 1 << 18
_CSV: Final = (".csv", ".csv.gz", ".csv.zst")


def parquet(trace: Trace, output: Path, progress: IO[str] | None) -> int:
    """OUT/node=HOST/rank=RANK/part-N.parquet; how many rows of sums stand beside them."""
    with whole_folder(output, ("node=*", COUNTS)):
        return _parquet(trace, output, progress)


def _parquet(trace: Trace, output: Path, progress: IO[str] | None) -> int:
    import pyarrow as pa  # noqa: PLC0415 (this format only)
    from pyarrow import dataset  # noqa: PLC0415

    rows = _Rows(trace)
    metadata = {**rows.merger.metadata(), "ioweir.export_version": str(FORMAT_VERSION)}

    def work() -> None:
        tables = rows.tables()
        first = next(tables)
        schema = first.schema.with_metadata(metadata)
        batches = (batch for table in _chain(first, tables) for batch in table.cast(schema).to_batches())
        dataset.write_dataset(
            pa.RecordBatchReader.from_batches(schema, batches),
            str(output),
            format="parquet",
            file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd", compression_level=1),
            partitioning=dataset.partitioning(pa.schema([("node", pa.string()), ("rank", pa.int32())]), flavor="hive"),
            basename_template="part-{i}.parquet",
            existing_data_behavior="overwrite_or_ignore",
            max_partitions=_MOST_PARTITIONS,
            max_open_files=_OPEN_FILES,
            max_rows_per_group=_GROUP_ROWS,
        )

    if trace.event_count:
        watched(work, rows.merger, trace.event_count, "writing the trace's events", progress)
    return _write_counts(trace, output / COUNTS, ".parquet")


def csv(trace: Trace, output: Path, progress: IO[str] | None) -> int:
    """One file by time; how many rows of sums stand in NAME-counts.csv beside it."""
    suffix = next((end for end in _CSV if output.name.endswith(end) and len(output.name) > len(end)), None)
    if suffix is None:
        raise IoweirError(
            f"'{output}': CSV goes into a file named {', '.join(f'NAME{end}' for end in _CSV)}", EXIT_USAGE
        )
    rows = _Rows(trace)
    with replacing(output) as file, table_writer(file, suffix, {}) as write:

        def work() -> None:
            for table in rows.tables():
                write(table)

        watched(work, rows.merger, trace.event_count, "writing the trace's events", progress)
    counts = output.with_name(f"{output.name.removesuffix(suffix)}-counts{suffix}")
    return _write_counts(trace, counts, suffix)


class _Rows:
    """The master log's tables with `node` for `host` and names for numbers of files."""

    def __init__(self, trace: Trace) -> None:
        self.merger = Merger(trace)

    def tables(self) -> Iterator[pa.Table]:
        """At least one."""
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        for table in self.merger.tables():
            numbers = table.column("file").to_numpy().astype(np.uint32)
            at = table.schema.get_field_index("file")
            named = table.set_column(at, "file", self.merger.file_names(numbers).cast(pa.string()))
            host = named.schema.get_field_index("host")
            yield plain(named.set_column(host, "node", named.column("host").cast(pa.string())))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _write_counts(trace: Trace, path: Path, suffix: str) -> int:
    """The sums of an imported log; none are written of a trace."""
    import pyarrow as pa  # noqa: PLC0415

    if trace.counted is None:
        return 0
    came = trace.counted
    names = ("layer", "op", "rank", "calls", "bytes", "time_s", "longest_s", "first_s", "last_s", "outermost")
    columns = {name: [getattr(row, name) for row in came.counts] for name in names}
    table = pa.table({"file": pa.array([came.files[row.file] for row in came.counts], pa.string()), **columns})
    with replacing(path) as file, table_writer(file, suffix, {"ioweir.tool": came.tool}) as write:
        write(table)
    return len(came.counts)
