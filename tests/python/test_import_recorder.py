"""Recorder's traces, written here as its logger writes them (versions 2.3 and 3.0), and read back."""

from __future__ import annotations

import random
import struct
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ioweir.errors import IoweirError
from ioweir.imports import recorder
from ioweir.imports.run import import_log
from ioweir.report import build, to_dict
from ioweir.report.run_findings import findings_of
from ioweir.trace import reader

FUNCTIONS = [
    "open",
    "close",
    "write",
    "pwrite64",
    "read",
    "lseek",
    "getcwd",
    "fcntl",
    "MPI_File_open",
    "MPI_File_write_at_all",
]
RESOLUTION = 1e-6


@dataclass
class Made:
    """A call as the test knows it: microseconds after the start."""

    function: str
    start: int
    end: int
    arguments: tuple[str, ...]
    depth: int = 0


def program(rank: int) -> list[Made]:
    """An MPI-IO write of three pwrites in two rounds, then small writes in a loop."""
    calls = [
        Made("MPI_File_open", 10, 40, ("comm", "/d/shared", "5", "info", "fh1")),
        Made("open", 15, 20, ("/d/shared", "66"), 1),
    ]
    for step in range(2):
        at = 100 + 200 * step
        calls.append(Made("MPI_File_write_at_all", at, at + 100, ("fh1", str(step), "buf", "1", "type", "status")))
        calls += [
            Made(
                "pwrite64", at + 10 + 20 * i, at + 20 + 20 * i, ("/d/shared", "0x1", "4096", str(4096 * (rank + i))), 1
            )
            for i in range(3)
        ]
    calls += [Made("write", 1000 + 10 * i, 1000 + 10 * i + 5, ("/d/log", "0x2", "100")) for i in range(50)]
    calls.append(Made("getcwd", 2000, 2001, ("x",)))
    calls.append(Made("fcntl", 2010, 2060, ("/d/shared", "7", "1", "0", "0", "0")))
    calls.append(Made("fcntl", 2070, 2071, ("/d/shared", "6", "2", "0", "0", "0")))
    return calls


def key(call: Made, version: int) -> bytes:
    text = "".join(f"{word} " for word in call.arguments).encode()
    function = struct.pack("<i" if version == 3 else "<B", FUNCTIONS.index(call.function))
    return struct.pack("<Q", 7) + function + struct.pack("<BBi", call.depth, len(call.arguments), len(text)) + text


def stamps(calls: list[Made]) -> bytes:
    before, out = 0, b""
    for call in calls:
        out += struct.pack("<II", call.start - before, call.end - before)
        before = call.start
    return out


def grammar(numbers: list[int]) -> bytes:
    """Runs of one symbol are one entry, and the middle third is a rule of its own, used once."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    third = len(runs) // 3
    first = [*runs[:third], [-2, 1], *runs[2 * third :]]
    rules = {-1: first, -2: runs[third : 2 * third]}
    out = struct.pack("<i", len(rules))
    for rule, body in rules.items():
        out += struct.pack("<ii", rule, len(body)) + b"".join(struct.pack("<ii", *entry) for entry in body)
    return out


def packed(content: bytes) -> bytes:
    small = zlib.compress(content)
    return struct.pack("<QQ", len(small), len(content)) + small


def write(folder: Path, version: int, ranks: int, merged: bool = False) -> None:
    folder.mkdir()
    (folder / "VERSION").write_text("2.3.3" if version == 2 else "3.0.0")
    names = "".join(f"{name}\n" for name in FUNCTIONS).encode()
    if version == 2:
        (folder / "recorder.mt").write_bytes(struct.pack("<i4xddii", ranks, 1.7e9, RESOLUTION, 1024, 0) + names)
    else:
        flags = (True, True, True, True, False, False, True, True)
        head = struct.pack("<i8?4xddi4?", ranks, *flags, 1.7e9, RESOLUTION, 1024, True, merged, False, False)
        (folder / "recorder.mt").write_bytes(head.ljust(1024, b"\0") + names)
    programs = [program(rank) for rank in range(ranks)]
    tables = [list(dict.fromkeys(key(call, version) for call in calls)) for calls in programs]
    if merged:
        union = list(dict.fromkeys(entry for table in tables for entry in table))
        tables = [union] * ranks
        (folder / "recorder.cst").write_bytes(packed(signatures(union, version)))
        (folder / "ug.mt").write_bytes(struct.pack(f"<{ranks + 1}i", *range(ranks), ranks))
        (folder / "ug.cfg").write_bytes(
            b"".join(
                packed(grammar([t.index(key(c, version)) for c in calls]))
                for t, calls in zip(tables, programs, strict=True)
            )
        )
    times = [packed(stamps(calls)) for calls in programs]
    for rank, (table, calls) in enumerate(zip(tables, programs, strict=True)):
        cfg = grammar([table.index(key(call, version)) for call in calls])
        if version == 2:
            (folder / f"{rank}.cst").write_bytes(signatures(table, version))
            (folder / f"{rank}.cfg").write_bytes(cfg)
            (folder / f"{rank}.ts").write_bytes(stamps(calls))
        elif not merged:
            (folder / f"{rank}.cst").write_bytes(packed(signatures(table, version)))
            (folder / f"{rank}.cfg").write_bytes(packed(cfg))
    if version == 3:
        sizes = struct.pack(f"<{ranks}Q", *map(len, times))
        (folder / "recorder.ts").write_bytes(sizes + b"".join(times))


def signatures(table: list[bytes], version: int) -> bytes:
    out = struct.pack("<i", len(table))
    for number, entry in enumerate(table):
        out += (
            struct.pack("<ii", number, len(entry)) if version == 2 else struct.pack("<iiii", number, 0, len(entry), 1)
        )
        out += entry
    return out


OURS = {"pwrite64": "pwrite", "fcntl": "fcntl_lock"}


@pytest.mark.parametrize(("version", "merged"), [(2, False), (3, False), (3, True)])
def test_calls_are_events(tmp_path: Path, version: int, merged: bool) -> None:
    write(tmp_path / "log", version, 3, merged)
    made = import_log(tmp_path / "log", tmp_path / "out")
    assert made.partial == []
    trace = reader.load(tmp_path / "out")
    assert not trace.damage
    events, names = trace.events, {function.id: function.name for function in trace.functions}
    found = sorted(
        (
            trace.processes[events.process[at]].rank,
            names[int(events.function[at])],
            trace.paths[events.path[at]],
            round(int(events.start_ns[at]) / 1000),
            int(events.duration_ns[at]) // 1000,
            int(events.bytes[at]),
        )
        for at in range(len(events))
    )
    wanted: list[tuple[Any, ...]] = []
    for rank in range(3):
        for call in program(rank):
            if call.function == "getcwd":
                continue
            name = OURS.get(call.function, call.function)
            if call.function == "fcntl" and call.arguments[2] == "2":
                name = "fcntl_unlock"
            path = "/d/log" if call.function == "write" else "/d/shared"
            moved = int(call.arguments[2]) if call.function in ("write", "pwrite64") else 0
            wanted.append((rank, name, path, call.start, call.end - call.start, moved))
    assert found == sorted(wanted)
    inside = [names[int(events.function[at])] for at in range(len(events)) if events.parent[at]]
    assert sorted(inside) == ["open"] * 3 + ["pwrite"] * 18
    report = to_dict(build(trace))
    assert report["ranks"] == 3
    assert not report["partial"]
    assert report["imported"]["tool"] == ("Recorder 2.3" if version == 2 else "Recorder 3.0")
    assert report["layers"]["POSIX"]["write"]["bytes"] == 3 * (6 * 4096 + 5000)
    for one in findings_of(trace).findings:
        assert any("no return values" in words for words in one.unseen)


def test_rules_that_never_end_do(tmp_path: Path) -> None:
    """A rule that holds itself, one without calls two thousand million times, one that doubles itself 30 times.

    And lines of rules: one that ends in no call, and one of a call through 40,000 of them a million times.
    """
    loop = struct.pack("<i", 1) + struct.pack("<ii", -1, 2) + struct.pack("<iiii", 0, 1, -1, 1)
    nothing = struct.pack("<i", 2) + struct.pack("<iiii", -1, 1, -2, 2**31 - 1) + struct.pack("<ii", -2, 0)
    double = struct.pack("<i", 31) + b"".join(
        struct.pack("<iiii", -n, 1, -n - 1 if n < 31 else 0, 2) for n in range(1, 32)
    )
    length = 40_000
    line = (
        struct.pack("<i", length)
        + struct.pack("<iiii", -1, 1, -2, 1 << 20)
        + b"".join(struct.pack("<iiii", -n, 1, -n - 1, 1) for n in range(2, length))
    )
    empty, long = line + struct.pack("<ii", -length, 0), line + struct.pack("<iiii", -length, 1, 0, 1)
    cases = {"loop": loop, "nothing": nothing, "double": double, "empty": empty, "long": long}
    for name, cfg in cases.items():
        write(tmp_path / name, 2, 1)
        (tmp_path / name / "0.cfg").write_bytes(cfg)
        if name == "long":
            (tmp_path / name / "0.ts").write_bytes(bytes(8 << 20))
        begun = time.process_time()
        made = import_log(tmp_path / name, tmp_path / f"{name}.out")
        assert time.process_time() - begun < 20
        assert bool(made.partial) == (name not in ("nothing", "empty"))
        assert reader.load(tmp_path / f"{name}.out").event_count <= len(program(0))


def test_more_calls_than_memory_holds_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_MOST_CALLS", 5)
    write(tmp_path / "log", 3, 1)
    made = import_log(tmp_path / "log", tmp_path / "out")
    assert made.partial == ["a rank's calls beyond the first 5 are left out"]
    assert 0 < made.events <= 5


def test_a_version_of_one_number_is_none(tmp_path: Path) -> None:
    write(tmp_path / "log", 3, 1)
    (tmp_path / "log" / "VERSION").write_text("3")
    with pytest.raises(IoweirError, match="VERSION says '3', which is no version"):
        import_log(tmp_path / "log", tmp_path / "out")


def test_damaged_traces_are_errors_or_partial(tmp_path: Path) -> None:
    draw = random.Random(5)
    for number in range(24):
        version = 2 + number % 2
        folder = tmp_path / f"log{number}"
        write(folder, version, 2, merged=number % 4 == 3)
        victim = draw.choice(sorted(folder.iterdir()))
        content = bytearray(victim.read_bytes())
        if number % 3 == 0:
            content = content[: draw.randrange(len(content) + 1)]
        for _ in range(4):
            if content:
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        victim.write_bytes(bytes(content))
        try:
            import_log(folder, tmp_path / f"out{number}")
        except IoweirError:
            continue
        trace = reader.load(tmp_path / f"out{number}")
        build(trace)
        findings_of(trace)


def test_what_is_wrong_with_a_trace_is_said_in_words(tmp_path: Path) -> None:
    write(tmp_path / "log", 2, 2)
    head = tmp_path / "log" / "recorder.mt"
    whole = head.read_bytes()
    (tmp_path / "log" / "1.cst").unlink()
    made = import_log(tmp_path / "log", tmp_path / "out")
    assert made.partial == ["rank 1 cannot be read: 1.cst: No such file or directory; check the path"]
    head.write_bytes(struct.pack("<i", 0) + whole[4:])
    with pytest.raises(IoweirError, match=r"recorder\.mt says 0 ranks \(1 to \d+ can be\)"):
        import_log(tmp_path / "log", tmp_path / "new")
    head.unlink()
    head.mkdir()
    with pytest.raises(IoweirError, match=r"as a trace of Recorder: recorder\.mt: is a folder, not a file$"):
        import_log(tmp_path / "log", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_other_versions_are_named(tmp_path: Path) -> None:
    write(tmp_path / "log", 3, 1)
    (tmp_path / "log" / "VERSION").write_text("9.1.0")
    with pytest.raises(IoweirError, match=r"version 9\.1 is not known \(2\.3 and 3\.0 are\)"):
        import_log(tmp_path / "log", tmp_path / "out")


def test_very_many_ranks_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "log", 2, 2)
    head = tmp_path / "log" / "recorder.mt"
    head.write_bytes(struct.pack("<i", 102) + head.read_bytes()[4:])
    made = import_log(tmp_path / "log", tmp_path / "out")
    assert len(made.partial) == 21
    assert made.partial[0] == "rank 2 cannot be read: 2.cst: No such file or directory; check the path"
    assert made.partial[-1] == "so it is with 80 more ranks"


def as_newer(folder: Path, ranks: int, merged: bool, combined: bool) -> None:
    """The files of a trace of 3.0 as Recorder writes them since: without VERSION, or all in recorder.dat."""
    (folder / "VERSION").unlink()
    flags = (True, True, True, True, False, False, True, True)
    head = struct.pack(
        "<5i8?4xddi4?", 3, 1, 0, ranks, len(FUNCTIONS), *flags, 1.7e9, RESOLUTION, 1024, True, merged, False, False
    )
    (folder / "recorder.mt").write_bytes(head + b"".join(name.encode().ljust(64, b"\0") for name in FUNCTIONS))
    if not combined:
        return
    kinds = {"recorder.mt": 0, "recorder.ts": 1, "recorder.cst": 2, "ug.cfg": 3, "ug.mt": 4, "cst": 5, "cfg": 6}
    files = sorted(folder.iterdir())
    at, index, body = 16 + 24 * len(files), b"", b""
    for file in files:
        rank, _, end = file.name.partition(".")
        kind, number = (kinds[end], int(rank)) if rank.isdigit() else (kinds[file.name], -1)
        content = file.read_bytes()
        index += struct.pack("<IiQQ", kind, number, at + len(body), len(content))
        body += content
        file.unlink()
    (folder / "recorder.dat").write_bytes(struct.pack("<8sII", b"RECORDER", 1, len(files)) + index + body)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("combined", [False, True])
def test_newer_formats_hold_the_same(tmp_path: Path, merged: bool, combined: bool) -> None:
    for name in ("old", "new"):
        write(tmp_path / name, 3, 3, merged)
    as_newer(tmp_path / "new", 3, merged, combined)
    made = [import_log(tmp_path / name, tmp_path / f"{name}.out") for name in ("old", "new")]
    assert (made[1].tool, made[1].partial, made[1].ranks) == ("Recorder 3.1", [], 3)
    assert made[1].events == made[0].events > 0
    old, new = (to_dict(build(reader.load(tmp_path / f"{name}.out"))) for name in ("old", "new"))
    assert new["layers"] == old["layers"]
    assert new["layers"]["POSIX"]["write"]["bytes"] == 3 * (6 * 4096 + 5000)


def test_damage_in_the_one_file_of_all(tmp_path: Path) -> None:
    write(tmp_path / "log", 3, 2)
    as_newer(tmp_path / "log", 2, False, True)
    path = tmp_path / "log" / "recorder.dat"
    whole = path.read_bytes()
    for content, said in (
        (whole[:-1], r"recorder\.dat is cut off: section \d+ ends at byte"),
        (b"XX" + whole[2:], r"recorder\.dat begins with b'XXCORDER'"),
        (whole[:12] + struct.pack("<I", 1 << 31) + whole[16:], "says it has 2,147,483,648 sections"),
    ):
        path.write_bytes(content)
        with pytest.raises(IoweirError, match=said):
            import_log(tmp_path / "log", tmp_path / "out")
    at = whole.index(struct.pack("<Ii", 6, 1))
    path.write_bytes(whole[: at + 4] + struct.pack("<i", 7) + whole[at + 8 :])
    made = import_log(tmp_path / "log", tmp_path / "out")
    assert made.partial == ["rank 1 cannot be read: recorder.dat:1.cfg: No such file or directory; check the path"]
    draw = random.Random(4)
    for number in range(20):
        flipped = bytearray(whole)
        for _ in range(4):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        try:
            import_log(tmp_path / "log", tmp_path / f"out{number}")
        except IoweirError:
            continue
        build(reader.load(tmp_path / f"out{number}"))


def test_heads_that_say_more_functions_than_they_have(tmp_path: Path) -> None:
    write(tmp_path / "log", 3, 1)
    as_newer(tmp_path / "log", 1, False, False)
    head = tmp_path / "log" / "recorder.mt"
    whole = head.read_bytes()
    head.write_bytes(whole[:16] + struct.pack("<i", 11) + whole[20:])
    with pytest.raises(IoweirError, match=r"recorder\.mt is too short for the 11 functions"):
        import_log(tmp_path / "log", tmp_path / "out")
    head.write_bytes(struct.pack("<i", 4) + whole[4:])
    with pytest.raises(IoweirError, match=r"version 4\.1 is not known \(2\.3 and 3 are\)"):
        import_log(tmp_path / "log", tmp_path / "out")
