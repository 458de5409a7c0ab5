"""The vectorised report against an oracle that goes through the events one by one, on random traces."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import NS, Builder, Call, printed

MPI_CALLS = ("MPI_File_open", "MPI_File_write_at_all", "MPI_File_write_at", "MPI_File_read_at", "MPI_File_set_view")
POSIX_CALLS = ("open", "pread", "pwrite", "write", "fcntl_lock", "fcntl_unlock", "close")
OPS = {"MPI_File_open": "open", "MPI_File_set_view": "view", "open": "open", "close": "close"} | {
    "MPI_File_write_at_all": "write", "MPI_File_write_at": "write", "MPI_File_read_at": "read", "pread": "read",
    "pwrite": "write", "write": "write", "fcntl_lock": "lock", "fcntl_unlock": "unlock",
}  # fmt: skip


COLLECTIVE = ("MPI_File_open", "MPI_File_write_at_all", "MPI_File_set_view")


def layer(call: Call) -> str:
    return "MPI-IO" if call.name.startswith("MPI") else "POSIX"


def ancestors(call: Call) -> list[Call]:
    found = []
    while call.parent is not None:
        call = call.parent
        if not call.recorded:
            break
        found.append(call)
    return found


def union_length(intervals: list[tuple[int, int]]) -> int:
    """By marking every nanosecond-long piece between neighbouring ends: slow and obvious."""
    ends = sorted({end for interval in intervals for end in interval})
    return sum(
        right - left
        for left, right in pairwise(ends)
        if any(start <= left and right <= end for start, end in intervals)
    )


def histogram(calls: list[Call]) -> dict[str, int]:
    found: dict[str, int] = {}
    for call in sorted(calls, key=lambda call: call.bytes):
        power = 1
        while power * 2 <= call.bytes:
            power *= 2
        key = str(power if call.bytes > 0 else 0)
        found[key] = found.get(key, 0) + 1
    return found


def ns(call: Call) -> tuple[int, int]:
    start = round(call.start_s * NS)
    return start, start + round((call.end_s - call.start_s) * NS)


def shifts(calls: list[Call]) -> list[tuple[Call, int]]:
    """Of collective calls in which ranks wait: how long the last one held the others up, and minus what each waited."""
    numbers: dict[tuple[str, int], int] = {}
    meetings: dict[tuple[str, int], list[Call]] = {}
    for call in sorted(calls, key=lambda call: call.process):
        if call.name in COLLECTIVE and not any(layer(other) == "MPI-IO" for other in ancestors(call)):
            number = numbers[call.path, call.process] = numbers.get((call.path, call.process), 0) + 1
            meetings.setdefault((call.path, number), []).append(call)
    found = []
    for met in meetings.values():
        met.sort(key=lambda call: (ns(call)[0], call.process))
        last = ns(met[-1])[0]
        data = [
            ns(c)[0]
            for c in calls
            if layer(c) == "POSIX" and OPS[c.name] in ("read", "write") and c.bytes > 0
            and any(a in met and OPS[a.name] in ("read", "write") for a in ancestors(c))
        ]  # fmt: skip
        if len(met) < 2 or min(ns(call)[1] for call in met) <= last or min(data, default=last) < last:
            continue
        found += [(call, ns(call)[0] - last) for call in met[:-1]]
        found.append((met[-1], last - ns(met[-2])[0]))
    return found


@st.composite
def builders(draw: st.DrawFn) -> Builder:
    builder = Builder()
    ranks = draw(st.sampled_from([1, 3, 4]))
    for rank in range(ranks):
        builder.rank(rank, ranks)
    for rank in range(ranks):
        clock = 0.0
        for _ in range(draw(st.integers(0, 4))):
            clock += draw(st.integers(0, 4)) / 4
            start = clock
            path = draw(st.sampled_from(["/f", "/g"]))
            outer = Call(rank, draw(st.sampled_from(MPI_CALLS + POSIX_CALLS)), start, start, path, bytes=0)
            outer.bytes = draw(st.integers(-1, 100))
            outer.recorded = draw(st.integers(0, 9)) > 0
            builder.add(outer)
            if layer(outer) == "MPI-IO":
                around = outer
                if draw(st.booleans()):
                    around = outer.inside(draw(st.sampled_from(MPI_CALLS)), start, start, draw(st.integers(0, 9)))
                    builder.add(around)
                for _ in range(draw(st.integers(0, 3))):
                    name, length = draw(st.sampled_from(POSIX_CALLS)), draw(st.integers(0, 4)) / 8
                    origin = draw(st.sampled_from(["mpi_library", "engine"]))
                    builder.add(around.inside(name, clock, clock + length, draw(st.integers(0, 99)), origin=origin))
                    clock += length
                around.end_s = clock
            clock += draw(st.integers(0, 4)) / 4
            outer.end_s = clock
    return builder


@settings(max_examples=150, deadline=None)
@given(builder=builders(), seed=st.integers(0, 99))
def test_every_figure_matches_the_oracle(builder: Builder, seed: int) -> None:
    result = printed(builder.trace(shuffle=seed))
    ranks = len(builder.processes)
    calls = [call for call in builder.calls if call.recorded]
    top = [call for call in calls if all(layer(other) != layer(call) for other in ancestors(call))]
    groups: list[tuple[dict[str, dict[str, dict[str, object]]], list[Call]]] = [(result["layers"], top)]
    groups += [(row["layers"], [c for c in top if c.path == row["path"]]) for row in result["files"]]
    assert {row["path"] for row in result["files"]} == {call.path for call in top}
    for layers, events in groups:
        for name in ("MPI-IO", "POSIX"):
            for op in ("read", "write", "lock", "unlock", "open", "close", "view"):
                chosen = [c for c in events if layer(c) == name and OPS[c.name] == op]
                time_ns = sum(ns(c)[1] - ns(c)[0] for c in chosen)
                if op not in ("read", "write", "lock") and not chosen and layers is not result["layers"]:
                    assert op not in layers[name]
                    continue
                row = layers[name][op]
                assert row["calls"] == len(chosen)
                assert row["time_s"] == time_ns / 1e9
                assert row["longest_s"] == max((ns(c)[1] - ns(c)[0] for c in chosen), default=0) / 1e9
                if op not in ("read", "write"):
                    continue
                moved = sum(max(c.bytes, 0) for c in chosen)
                span = union_length([ns(c) for c in chosen])
                assert row["bytes"] == moved
                assert row["sizes"] == histogram(chosen)
                assert row["span_s"] == span / 1e9
                if time_ns:
                    upper = float(Fraction(ranks * moved * NS, time_ns))
                    perceived = row["perceived_bytes_per_s"]
                    assert (perceived[1] if isinstance(perceived, list) else perceived) == pytest.approx(upper)
                else:
                    assert row["effective_bytes_per_s"] is None
    outermost = [call for call in calls if not ancestors(call)]
    per_rank = [union_length([ns(c) for c in outermost if c.process == rank]) for rank in range(ranks)]
    assert result["io"]["mean_s"] == sum(per_rank) / 1e9 / ranks
    waits = shifts(calls)
    cost = [busy + sum(by for c, by in waits if c.process == rank) for rank, busy in enumerate(per_rank)]
    assert result["io"]["max_s"] == max(cost) / 1e9
    for name in ("MPI-IO", "POSIX"):
        for op in ("write", "lock"):
            chosen = [c for c in top if layer(c) == name and OPS[c.name] == op]
            times = [sum(ns(c)[1] - ns(c)[0] for c in chosen if c.process == rank) for rank in range(ranks)]
            if chosen:
                worst = result["slowest"][name][op]
                assert worst["mean_s"] == sum(times) / 1e9 / ranks
                moved_by = [
                    sum(by for c, by in waits if c.process == rank and (layer(c), OPS[c.name]) == (name, op))
                    for rank in range(ranks)
                ]
                used = {c.process for c in chosen}
                assert worst["time_s"] == max(times[rank] + moved_by[rank] for rank in used) / 1e9
            else:
                assert op not in result["slowest"].get(name, {})
    for made in result["inside"]:
        whole = [c for c in outermost if (layer(c), OPS[c.name]) == (made["layer"], made["op"])]
        assert made["time_s"] == sum(ns(c)[1] - ns(c)[0] for c in whole) / 1e9
        assert made["time_s"] == pytest.approx(made["other_s"] + sum(part["time_s"] for part in made["parts"]))
        for part in made["parts"]:
            direct = [
                c
                for c in top
                if ancestors(c) and ancestors(c)[-1] in whole and {layer(a) for a in ancestors(c)} == {made["layer"]}
                and (layer(c), OPS[c.name]) == (part["layer"], part["op"])
            ]  # fmt: skip
            assert part["calls"] == len(direct) > 0
            assert part["time_s"] == sum(ns(c)[1] - ns(c)[0] for c in direct) / 1e9
    for kind in ("by_file", "by_rank"):
        assert sum(row["calls"] for row in result["locks"][kind]) == result["locks"]["calls"]
        assert sum(row["time_s"] for row in result["locks"][kind]) == pytest.approx(result["locks"]["time_s"])
    for op in ("write", "read"):
        storage = result["storage"][op]
        assert sum(row["bytes"] for row in storage["by_rank"]) == result["layers"]["POSIX"][op]["bytes"]
        collective = {
            c.process
            for c in top
            if layer(c) == "POSIX" and OPS[c.name] == op and c.bytes > 0
            and [a.name for a in ancestors(c) if layer(a) == "MPI-IO"][-1:] == ["MPI_File_write_at_all"]
        }  # fmt: skip
        assert set(storage["aggregators"]) == collective
        inside = [
            (c, [a for a in ancestors(c) if layer(a) == "MPI-IO"][-1])
            for c in top
            if layer(c) == "POSIX" and any(layer(a) == "MPI-IO" for a in ancestors(c))
        ]
        parts = result["decomposition"][op]["parts"]
        for part in ("write", "read", "lock", "unlock"):
            expected = sum(ns(c)[1] - ns(c)[0] for c, a in inside if OPS[a.name] == op and OPS[c.name] == part)
            assert parts[part] == expected / 1e9
        assert sum(parts.values()) == pytest.approx(result["layers"]["MPI-IO"][op]["time_s"])
    assert sum(row["calls"] for ops in result["origins"].values() for row in ops.values()) == sum(
        layer(c) == "POSIX" for c in top
    )
