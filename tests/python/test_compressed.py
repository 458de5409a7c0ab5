"""Compressed traces say what the originals said; damage costs what is damaged; nothing in them can do harm."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import zstandard
from forked import completed
from ioweir.errors import IoweirError
from ioweir.trace import compressed, reader
from traces import NS, Builder, Call

IOWEIR: Final = [sys.executable, "-m", "ioweir"]
COLUMNS: Final = (
    "process", "thread", "seq", "parent", "function", "origin", "flags", "path", "start_ns", "duration_ns", "offset",
    "bytes", "error",
)  # fmt: skip


def job(seed: int, hosts: int = 1, calls: int = 400, **process: Any) -> Builder:
    """Writes and reads of a rank on each host."""
    dice = random.Random(seed)
    builder = Builder()
    for rank in range(hosts):
        index = builder.rank(rank, hosts, host=f"n{rank}", **process)
        at = 0.0
        for _ in range(calls):
            took = dice.uniform(1e-6, 1e-3)
            name = dice.choice(("pwrite", "pread"))
            builder.add(
                Call(index, name, at, at + took, f"/data/{dice.randrange(4)}", dice.randrange(1 << 20),
                     offset=dice.randrange(1 << 40))
            )  # fmt: skip
            at += took + dice.uniform(0, 1e-3)
    return builder


def written(builder: Builder, place: Path) -> Path:
    """A trace directory of the user's own."""
    place.mkdir(mode=0o700, parents=True)
    builder.write(place)
    return place


def columns(trace: reader.Trace) -> list[list[int]]:
    """All events."""
    return [getattr(trace.events, name).tolist() for name in COLUMNS]


def compress(place: Path, **how: bool) -> list[compressed.Compressed]:
    """What `ioweir compress` does."""
    return compressed.compress_all(place, reader.read(place), **how)


@pytest.mark.parametrize("seed", range(4))
def test_a_compressed_trace_is_the_trace(tmp_path: Path, seed: int) -> None:
    place = written(job(seed, hosts=1 + seed), tmp_path / "t")
    files = {file.name: file.read_bytes() for file in place.iterdir()}
    before = reader.read(place)
    expected = columns(before)
    done = compress(place)
    assert [one.why_not for one in done] == [""] * (1 + seed)
    assert all(one.after < one.before for one in done)
    assert sorted(file.name for file in place.iterdir()) == sorted(name + ".zst" for name in files)
    for name, content in files.items():
        assert zstandard.ZstdDecompressor().decompress((place / (name + ".zst")).read_bytes()) == content
    after = reader.read(place)
    assert columns(after) == expected
    assert (after.processes, after.paths, after.damage, after.hosts) == (
        before.processes, before.paths, (), before.hosts,
    )  # fmt: skip
    assert compress(place) == []


def test_the_commands_say_the_same(tmp_path: Path) -> None:
    plain = written(job(9, hosts=2), tmp_path / "plain" / "t")
    packed = tmp_path / "packed" / "t"
    shutil.copytree(plain, packed)
    done = completed([*IOWEIR, "compress", "--json", packed], check=True)
    nodes = json.loads(done.stdout)["nodes"]
    assert [(node["file"], node["why_not"]) for node in nodes] == [("node-n0.iowt", None), ("node-n1.iowt", None)]
    for command in (["report", "t", "--json"], ["findings", "t", "--json"], ["timeline", "t", "--json"]):
        said = [completed([*IOWEIR, *command], check=True, cwd=place.parent).stdout for place in (plain, packed)]
        assert said[0] == said[1], command


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The node's file of a real run, and its length in chunks is some dozen."""
    place = tmp_path_factory.mktemp("recorded")
    program = (
        "import os\nf = os.open('data', os.O_CREAT | os.O_WRONLY)\nfor i in range(200000): os.pwrite(f, b'x', i * i)\n"
    )
    completed(
        [*IOWEIR, "run", "-q", "--no-compress", "-o", "t", "--", sys.executable, "-c", program], cwd=place, check=True
    )
    (node,) = (place / "t").glob("node-*.iowt")
    return node


@pytest.mark.parametrize("part", [0.0, 0.01, 0.4, 0.9, 0.9999])
def test_of_a_file_that_is_cut_off_what_is_there_is_read(tmp_path: Path, recorded: Path, part: float) -> None:
    """As of an original that ends at the same place. Blocks of Zstandard hold 128 KiB: the trace is some of them."""
    place, plain = tmp_path / "t", tmp_path / "plain"
    for folder in (place, plain):
        folder.mkdir(mode=0o700)
        shutil.copy(recorded, folder / "node-n0.iowt")
    expected = reader.read(plain).event_count
    compress(place)
    (file,) = place.iterdir()
    os.truncate(file, int(file.stat().st_size * part))
    if part < 0.1:
        with pytest.raises(IoweirError, match=r"node-n0\.iowt\.zst"):
            reader.read(place)
        return
    trace = reader.read(place)
    (words,) = [line for line in trace.damage if "node-n0.iowt.zst: is cut off: " in line]
    there = int(words.rpartition(": ")[2].split()[0].replace(",", ""))
    os.truncate(plain / "node-n0.iowt", there)
    assert columns(trace) == columns(reader.read(plain))
    assert 0.5 * part * expected < trace.event_count <= expected


def test_damaged_bytes_cost_some_events_and_invent_none(tmp_path: Path) -> None:
    place = written(job(4, calls=20_000), tmp_path / "t")
    trace = reader.read(place)
    sound = set(zip(*columns(trace), strict=True))
    compress(place)
    (file,) = place.iterdir()
    whole = file.read_bytes()
    dice = random.Random(1)
    noticed = 0
    for _ in range(40):
        broken = bytearray(whole)
        broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        file.write_bytes(broken)
        try:
            found = reader.read(place)
        except IoweirError:
            noticed += 1
            continue
        assert set(zip(*columns(found), strict=True)) <= sound
        noticed += bool(found.damage)
    assert noticed == 40


@pytest.mark.parametrize(
    "content",
    [b"", b"no zstd at all", zstandard.ZstdCompressor().compress(b"no trace" * 1000)],
    ids=["empty", "rubbish", "no-trace"],
)
def test_what_is_no_trace_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node-x.iowt.zst").write_bytes(content)
    with pytest.raises(IoweirError, match=r"cannot be read: .*node-x\.iowt\.zst"):
        reader.read(tmp_path)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", ["zeros", "pattern"])
def test_little_that_claims_much_is_refused(tmp_path: Path, kind: str) -> None:
    """Gigabytes out of some KiB: soon said."""
    block = bytes(1 << 20) if kind == "zeros" else bytes(range(256)) * 4096
    with (tmp_path / "node-x.iowt.zst").open("wb") as out, zstandard.ZstdCompressor(level=3).stream_writer(out) as to:
        for _ in range(4096):
            to.write(block)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = subprocess.run(
        [*IOWEIR, "report", tmp_path], capture_output=True, text=True, check=False, timeout=60, preexec_fn=limit
    )
    assert done.returncode == 1
    assert "node-x.iowt.zst" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    place = written(job(5), tmp_path / "t")
    compress(place)
    (file,) = place.iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IoweirError, match=r"node-n0\.iowt\.zst: is a symbolic link"):
        reader.read(place)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(IoweirError, match=r"node-n0\.iowt\.zst: is a (named )?pipe|FIFO"):
        reader.read(place)


def test_an_original_that_is_still_there_is_read_once(tmp_path: Path) -> None:
    """Compressing was interrupted after the compressed file had its name."""
    place = written(job(6), tmp_path / "t")
    expected = columns(reader.read(place))
    original = (place / "node-n0.iowt").read_bytes()
    compress(place)
    (place / "node-n0.iowt").write_bytes(original)
    assert columns(reader.read(place)) == expected
    assert [one.why_not for one in compress(place)] == ["node-n0.iowt.zst is there, too"]


def test_what_was_written_after_the_end_is_read_as_well(tmp_path: Path) -> None:
    """A process that begins to trace when the file is compressed makes the file anew."""
    place = written(job(6), tmp_path / "t")
    compress(place)
    late = Builder()
    process = late.process(pid=77, host="n0", image=900)
    late.add(Call(process, "pwrite", 50.0, 51.0, "/data/late", 8))
    late.write(place)
    trace = reader.read(place)
    assert trace.event_count == 401
    assert trace.paths[int(trace.events.path[np.argmax(trace.events.start_ns)])] == "/data/late"


def test_where_a_process_may_still_run_nothing_is_compressed(tmp_path: Path) -> None:
    builder = job(7, hosts=2)
    builder.process(pid=4, start_s=1, end_s=None, host="n1", image=50)
    place = written(builder, tmp_path / "t")
    assert [(one.name, one.why_not) for one in compress(place)] == [
        ("node-n0.iowt", ""), ("node-n1.iowt", "a process has not ended, or was killed")
    ]  # fmt: skip
    assert [one.why_not for one in compress(place, also_unfinished=True)] == [""]


def test_a_damaged_file_stays_as_it_is(tmp_path: Path) -> None:
    place = written(job(7, hosts=2, calls=4000), tmp_path / "t")
    file = place / "node-n1.iowt"
    content = bytearray(file.read_bytes())
    content[len(content) // 2 + 100] ^= 0x40
    file.write_bytes(content)
    assert reader.read(place).damage
    assert [(one.name, one.why_not) for one in compress(place)] == [
        ("node-n0.iowt", ""), ("node-n1.iowt", "it is damaged")
    ]  # fmt: skip
    assert file.read_bytes() == content


def test_a_process_that_was_replaced_by_exec_has_ended(tmp_path: Path) -> None:
    builder = job(7)
    builder.process(pid=4, start_s=1, end_s=None, host="n0", image=50)
    builder.process(pid=4, start_s=2, end_s=9, host="n0", image=51)
    assert [one.why_not for one in compress(written(builder, tmp_path / "t"))] == [""]


def test_others_may_not_have_their_traces_compressed(tmp_path: Path) -> None:
    place = written(job(8), tmp_path / "t")
    place.chmod(0o777)
    done = completed([*IOWEIR, "compress", place])
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert (place / "node-n0.iowt").exists()


def test_a_run_compresses_its_trace_unless_it_is_told_not_to_or_killed(tmp_path: Path) -> None:
    program = (
        "import os\nf = os.open('data', os.O_CREAT | os.O_WRONLY)\nfor i in range(5000): os.pwrite(f, b'x' * 9, i)\n"
    )
    killed = program + f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    for name, code, options, ending in (
        ("packed", program, (), ".iowt.zst"), ("plain", program, ("--no-compress",), ".iowt"),
        ("killed", killed, (), ".iowt"),
    ):  # fmt: skip
        completed(
            [*IOWEIR, "run", "-q", *options, "-o", name, "--", sys.executable, "-c", code],
            cwd=tmp_path,
        )
        (node,) = (tmp_path / name).glob("node-*")
        assert node.name.endswith(ending)
        trace = reader.read(tmp_path / name)
        assert not trace.damage
        names = {function.id: function.name for function in trace.functions}
        assert sum(names[number] == "pwrite" for number in trace.events.function.tolist()) == 5000


def test_times_are_those_of_the_original(tmp_path: Path) -> None:
    """Of several nodes, whose clocks are set against each other: compressed one, plain the other."""
    place = written(job(11, hosts=3), tmp_path / "t")
    expected = columns(reader.read(place))
    with_one = reader.read(place)
    compressed.compress_all(place, with_one)
    packed = place / "node-n1.iowt.zst"
    (place / "node-n1.iowt").write_bytes(zstandard.ZstdDecompressor().decompress(packed.read_bytes()))
    packed.unlink()
    assert columns(reader.read(place)) == expected
    assert max(expected[COLUMNS.index("start_ns")]) < 100 * NS
