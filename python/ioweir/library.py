"""Traces in programs and notebooks: `ioweir.open(DIR)` (docs/reference/library.md).

Nothing is read before it is asked for, and each part once. Tables are numpy columns of one length; words (names of
functions, files, layers) are numbers in them, whose words stand beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from ioweir.findings.model import Finding
    from ioweir.report.model import Report
    from ioweir.trace.reader import Trace

    Column = npt.NDArray[Any]

_SHOWN: Final = 10


class Columns(Mapping[str, "Column"]):
    """A table: `table["bytes"]` or `table.bytes` is a column of shape (len(table),)."""

    def __init__(self, columns: Mapping[str, Column], words: Mapping[str, Sequence[str]]) -> None:
        self._columns = dict(columns)
        self.words = {name: tuple(entries) for name, entries in words.items()}
        """Of columns that hold numbers of words, the words."""

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __getattr__(self, name: str) -> Column:
        columns = self.__dict__.get("_columns", {})  # pickle and copy ask before there are any
        if name not in columns:
            raise AttributeError(f"no column '{name}'; there are {', '.join(columns)}")
        return columns[name]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self._columns.values())))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def text(self, name: str) -> Column:
        """A column of words, as an array of str objects."""
        import numpy as np  # noqa: PLC0415

        return np.array(self.words[name], dtype=object)[self._columns[name]]

    def where(self, rows: Column) -> Columns:
        """The rows that a mask or a list of numbers chooses."""
        return Columns({name: column[rows] for name, column in self._columns.items()}, self.words)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame, words as categories. Needs pandas."""
        import pandas as pd  # noqa: PLC0415

        return pd.DataFrame(
            {
                name: pd.Categorical.from_codes(column, list(self.words[name])) if name in self.words else column
                for name, column in self._columns.items()
            }
        )

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415

        first = self.where(slice(0, _SHOWN))  # type: ignore[arg-type]
        shown = {name: first.text(name) if name in self.words else column for name, column in first.items()}
        head = "".join(f"<th>{escape(name)}</th>" for name in shown)
        rows = ["".join(f"<td>{escape(str(value))}</td>" for value in row) for row in zip(*shown.values(), strict=True)]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{len(self):,} rows</p>"


@dataclass(frozen=True)
class Plot:
    """A picture. Notebooks show it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write it to a file."""
        from ioweir.base.guarded_files import write_named  # noqa: PLC0415

        write_named(Path(path), self.svg)


class Run:
    """A traced run, or an imported log."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        """The tables of docs/reference/python-trace.md."""

    def __repr__(self) -> str:
        return f"<ioweir.Run {self.trace.directory}: {self.trace.event_count:,} events>"

    @cached_property
    def report(self) -> Report:
        """What `ioweir report --json` prints, by name."""
        from ioweir.report.figures import build  # noqa: PLC0415

        return build(self.trace)

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong, most seconds first: what `ioweir findings --json` prints."""
        from ioweir.report.run_findings import findings_of  # noqa: PLC0415

        return findings_of(self.trace, self.report).findings

    @cached_property
    def events(self) -> Columns:
        """Every recorded call, by time of entry: about 70 bytes of memory each."""
        import numpy as np  # noqa: PLC0415

        from ioweir.trace import attribute  # noqa: PLC0415
        from ioweir.trace.reader import FLAG_FAILED, LAYERS, OPS  # noqa: PLC0415

        trace, events = self.trace, self.trace.events
        order = np.argsort(events.start_ns, kind="stable")
        who = attribute.attribute_processes(trace.processes)
        ranks = np.array(
            [who.unit_names[at] if who.has_ranks and at >= 0 else -1 for at in who.units] or [-1], np.int32
        )
        number_of = {host: at for at, host in enumerate(trace.hosts)}
        hosts = np.array([number_of[process.host] for process in trace.processes] or [0], np.int32)
        files, number = trace.files
        most = max((function.id for function in trace.functions), default=0) + 1
        layer, op = np.zeros(most, np.int8), np.zeros(most, np.int8)
        names = [""] * most
        for function in trace.functions:
            layer[function.id], op[function.id] = LAYERS.index(function.layer), OPS.index(function.op)
            names[function.id] = function.name
        process, called = events.process[order], events.function[order]
        return Columns(
            {
                "start_ns": events.start_ns[order],
                "duration_ns": events.duration_ns[order],
                "rank": ranks[process],
                "node": hosts[process],
                "thread": events.thread[order],
                "seq": events.seq[order],
                "parent": events.parent[order],
                "layer": layer[called],
                "op": op[called],
                "function": called.astype(np.int32),
                "file": np.array(number or [0], np.int32)[events.path[order]],
                "offset": events.offset[order],
                "bytes": events.bytes[order],
                "failed": (events.flags[order] & FLAG_FAILED) != 0,
                "error": events.error[order],
            },
            {"node": trace.hosts, "layer": LAYERS, "op": OPS, "function": names, "file": files},
        )

    @cached_property
    def calls(self) -> Columns:
        """Sums by file, layer and operation, as in the report: a row for each that occurs. Layers hold each other."""
        import numpy as np  # noqa: PLC0415

        from ioweir.trace.reader import LAYERS, OPS  # noqa: PLC0415

        files = [row.path for row in self.report.files]
        rows = [
            (at, LAYERS.index(layer), OPS.index(op), one)
            for at, row in enumerate(self.report.files)
            for layer, ops in row.layers.items()
            for op, one in ops.items()
            if one.calls or one.time_s
        ]
        made = [one for *_, one in rows]
        return Columns(
            {
                "file": np.array([row[0] for row in rows], np.int32),
                "layer": np.array([row[1] for row in rows], np.int8),
                "op": np.array([row[2] for row in rows], np.int8),
                "calls": np.array([one.calls for one in made], np.int64),
                "failed": np.array([one.failed for one in made], np.int64),
                "bytes": np.array([getattr(one, "bytes", 0) for one in made], np.int64),
                "time_s": np.array([one.time_s for one in made], np.float64),
                "longest_s": np.array([one.longest_s for one in made], np.float64),
            },
            {"file": files, "layer": LAYERS, "op": OPS},
        )

    def plot_timeline(self, op: str = "write", by: str = "rank", bins: int = 200) -> Plot:
        """When each rank, file or target was written or read; the axis of time has its unit."""
        from ioweir.base import picture  # noqa: PLC0415
        from ioweir.report import timeline, timeline_picture  # noqa: PLC0415

        if not self.trace.event_count:
            raise IoweirError("there are no events to plot: the log has sums only", EXIT_USAGE)
        if by not in timeline.BY or op not in timeline.OPS:
            raise IoweirError(f"by is one of {', '.join(timeline.BY)}, op of {', '.join(timeline.OPS)}", EXIT_USAGE)
        if not 1 <= bins <= timeline.MOST_BINS:
            raise IoweirError(f"bins is 1 to {timeline.MOST_BINS}, not {bins}", EXIT_USAGE)
        drawn = timeline.of_trace(self.trace, timeline.Options(op, by, bins))
        return Plot(picture.to_svg(timeline_picture.chart(drawn)))


def open_run(directory: str | Path) -> Run:
    """What `ioweir run` or `ioweir import` wrote."""
    from ioweir.trace.reader import read  # noqa: PLC0415

    return Run(read(directory))
