"""Streams of C, C++ and Python: what is seen of them, where, and in which layer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from tracing import build, preloaded

if TYPE_CHECKING:
    from pathlib import Path

    from tracing import Traced


def streams(folder: Path, *mode: str, env: dict[str, str] | None = None) -> tuple[Traced, Path]:
    data, trace = folder / "data", folder / "trace"
    data.mkdir()
    trace.mkdir()
    traced = preloaded(trace, [build("streams.cpp", "g++", "-O2"), data, *mode], env=env)
    traced.expect()
    assert traced.trace.is_whole()
    return traced, data


@pytest.mark.parametrize("seed", range(1, 4))
def test_every_place_is_the_one_that_ftell_gives(seed: int, tmp_path: Path) -> None:
    """Also behind calls that are not seen: getc_unlocked is a macro."""
    traced, data = streams(tmp_path, "random", str(seed))
    expected = []
    for line in traced.out.splitlines()[1:]:
        name, count, place = line.split()
        expected.append((name, int(count), int(place)))
    events = sorted(traced.trace.of(data / "random"), key=lambda event: event.seq)
    (rewind,) = [event.seq for event in events if event.name == "rewind"]
    assert len(expected) > 2000
    # A part of an item that was read at the end of the file moves the place, and is no part of what fread returns.
    found = [(e.name, e.bytes, e.offset) for e in events if e.seq > rewind and e.name != "fclose"]
    assert [(name, place) for name, _, place in found] == [(name, place) for name, _, place in expected]
    whole = [(f, e) for f, e in zip(found, expected, strict=True) if f[0] != "fread"]
    assert [f for f, _ in whole] == [e for _, e in whole]
    assert all(f[1] <= e[1] < f[1] + 7 for f, e in zip(found, expected, strict=True) if f[0] == "fread")


def test_cpp_streams_open_by_stdio_and_move_data_by_descriptor(tmp_path: Path) -> None:
    traced, data = streams(tmp_path, "iostream")
    events = sorted(traced.trace.of(data / "out"), key=lambda event: event.seq)
    assert [event.name for event in events if event.op in ("open", "close")] == ["fopen", "fclose"] * 2
    place = 0
    for event in events:
        if event.op == "write":
            assert event.layer == "POSIX"
            assert event.offset == place
            place += event.bytes
    assert place == (data / "out").stat().st_size == 500_006
    assert next(event.offset for event in events if event.op == "read") == 1000


@pytest.mark.parametrize("layers", ["posix", "stdio"])
def test_one_layer_alone(layers: str, tmp_path: Path) -> None:
    traced, data = streams(tmp_path, "iostream", env={"IOWEIR_LAYERS": layers})
    events = traced.trace.of(data / "out")
    assert {event.layer for event in events} == {layers.upper()}
    if layers == "posix":
        assert sum(event.bytes for event in events if event.op == "write") == 500_006
    else:
        assert {event.name for event in events} == {"fopen", "fclose"}


def test_python_files(tmp_path: Path) -> None:
    """Text and binary files, a context manager, append and truncate: through descriptors, each where it is."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "folder = sys.argv[1]\n"
        "with open(f'{folder}/text', 'w') as file:\n"
        "    for i in range(1000):\n"
        "        print(f'line {i:04}', file=file)\n"
        "with open(f'{folder}/text', 'rb') as file:\n"
        "    file.seek(500)\n"
        "    assert file.read(9) == b'line 0050'\n"
        "with open(f'{folder}/text', 'ab') as file:\n"
        "    file.write(b'end')\n"
        "os.rename(f'{folder}/text', f'{folder}/renamed')\n"
        "os.truncate(f'{folder}/renamed', 100)\n"
        "assert os.stat(f'{folder}/renamed').st_size == 100\n"
        "os.unlink(f'{folder}/renamed')\n",
        encoding="ascii",
    )
    data, trace = tmp_path / "data", tmp_path / "trace"
    data.mkdir()
    trace.mkdir()
    traced = preloaded(trace, [sys.executable, "-I", script, data])
    traced.expect()
    text = sorted(traced.trace.of(data / "text"), key=lambda event: event.seq)
    place = 0
    writes = [event for event in text if event.op == "write"]
    for event in writes[:-1]:
        assert event.offset == place
        place += event.bytes
    assert place == 10_000
    assert (writes[-1].offset, writes[-1].bytes) == (-1, 3)  # appended
    reads = [event for event in text if event.op == "read" and event.bytes]
    assert reads[0].offset <= 500
    assert reads[0].offset + reads[0].bytes >= 509
    assert [event.name for event in text][-1] == "rename"
    renamed = sorted(traced.trace.of(data / "renamed"), key=lambda event: event.seq)
    assert [event.name for event in renamed] == ["rename (to)", "truncate", "stat", "unlink"]
    assert renamed[1].offset == 100
