"""Traces as Python sees them: columns over the reader's memory, tables of processes and threads, batches by time."""

from __future__ import annotations

import gc
import re
import time
from pathlib import Path

import numpy as np
import pytest
from ioweir import trace
from ioweir.trace import Events
from traces import NS, Builder, Call

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python-trace.md"


def small() -> Builder:
    builder = Builder()
    first, second = builder.rank(0, 2), builder.rank(1, 2)
    write = Call(first, "MPI_File_write_at", 1, 3, "/d/f", 10)
    builder.add(write, write.inside("pwrite", 1.5, 2, 10), Call(second, "pread", 0.5, 4, "/d/g", failed=True, site=3))
    return builder


def test_the_page_names_every_column_and_its_type() -> None:
    events = small().trace().events
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (u?int\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    described = {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}
    assert described == {name: str(getattr(events, name).dtype) for name in Events.__dataclass_fields__}


def test_values() -> None:
    loaded = small().trace()
    events = loaded.events
    names = {function.id: function.name for function in loaded.functions}
    found = {
        (
            loaded.processes[events.process[i]].rank, names[int(events.function[i])], int(events.seq[i]),
            int(events.parent[i]), loaded.paths[events.path[i]], int(events.start_ns[i]), int(events.duration_ns[i]),
            int(events.bytes[i]), int(events.flags[i]), int(events.error[i]), loaded.sites[events.site[i]],
        )
        for i in range(len(events))
    }  # fmt: skip
    assert found == {
        (0, "MPI_File_write_at", 1, 0, "/d/f", NS, 2 * NS, 10, 0, 0, ()),
        (0, "pwrite", 2, 1, "/d/f", 3 * NS // 2, NS // 2, 10, 0, 0, ()),
        (1, "pread", 1, 0, "/d/g", NS // 2, 7 * NS // 2, 0, 1, 5, ((0, 0x1003),)),
    }
    assert {(loaded.processes[t.process].rank, t.events) for t in loaded.threads if t.events} == {(0, 2), (1, 1)}


def test_columns_are_views_that_keep_the_trace_alive() -> None:
    events = small().trace().events
    start, again = events.start_ns, events.start_ns
    assert not start.flags.owndata
    assert not start.flags.writeable
    assert np.shares_memory(start, again)
    copy = start.copy()
    del events, again
    gc.collect()
    assert np.array_equal(start, copy)


def test_batches_are_all_events_by_time() -> None:
    loaded = small().trace()
    batches = list(loaded.batches(2))
    assert [len(batch) for batch in batches] == [2, 1]
    assert [int(start) for batch in batches for start in batch.start_ns] == [NS // 2, NS, 3 * NS // 2]
    assert batches[0].start_ns.flags.owndata is False
    del loaded
    gc.collect()
    assert int(batches[1].duration_ns[0]) == NS // 2


def test_opening_decodes_nothing_for_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().write(tmp_path)
    loaded = trace.read(tmp_path)
    assert "events" not in loaded.__dict__
    assert loaded.event_count == 3
    assert loaded.epoch_ns // NS == 1_700_000_000
    monkeypatch.setattr(time, "time", lambda: 0.0)  # nothing of the trace depends on today
    assert trace.load(tmp_path).events.start_ns.tolist() == loaded.events.start_ns.tolist()
