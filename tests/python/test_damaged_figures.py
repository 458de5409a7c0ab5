"""Damage of any kind: a command makes an error of it, or figures that a run can have, in well-formed output.

A seeded sample is among the tests, IOWEIR_TEST_ALL=1 takes 40 of each kind, IOWEIR_DAMAGES=N as many. The commands run
in this process: thousands of them would take an hour as processes of their own.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import random
import re
import struct
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

import jsonschema
import pytest
from forked import completed
from ioweir import trace
from ioweir.cli import app
from traces import EPOCH_NS, NS, Builder, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IOWEIR: Final = Path(sys.executable).with_name("ioweir")
SCHEMA: Final = json.loads(Path(__file__).parents[2].joinpath("docs/reference/report.schema.json").read_text("utf-8"))
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)
ALL: Final = bool(os.environ.get("IOWEIR_TEST_ALL"))
DAMAGES: Final = int(os.environ.get("IOWEIR_DAMAGES", "40" if ALL else "1"))
"""Of each kind on each trace."""

ALIGNMENT: Final = 65536
WALL_S: Final = 100.0
HOSTILE: Final = "\x1b[2J\x07\r\n\t\x9b31m\u202e\u2028<&>\"'"
OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
RUN: Final[dict[str, Any]] = {
    "run_version": 1, "command": ["solver", HOSTILE], "program": "solver", "cwd": "/d", "wall_s": WALL_S,
    "started": EPOCH_NS / NS, "ended": EPOCH_NS / NS + WALL_S, "exit_code": 0, "signal": None, "state": "ended",
    "plan": None, "verify": False, "tracing": {"layers": list(trace.LAYERS)}, "nodes": ["node-node.iowt"],
    "launcher": {"kind": "mpich"},
}  # fmt: skip


def job() -> Builder:
    """Two ranks with collective and other calls, locks, failures, POSIX calls of the program's own and call sites."""
    builder = Builder()
    rng = random.Random(7)
    for rank in range(2):
        builder.rank(rank, 2, executable=f"/bin/solver{HOSTILE}")
    for number in range(400):
        rank, at = number % 2, 0.2 * number
        path = f"/d/{number % 5}{HOSTILE if number % 5 == 0 else ''}"
        name = "MPI_File_write_at_all" if number % 3 else "MPI_File_read_at"
        amount = rng.randrange(1 << 20)
        outer = Call(rank, name, at, at + 0.15, path, amount, site=1 + number % 3)
        inner = "pwrite" if number % 3 else "pread"
        builder.add(
            outer, outer.inside("fcntl_lock", at, at + 0.02, 1), outer.inside(inner, at + 0.02, at + 0.1, amount)
        )
        if number % 10 == 0:
            builder.add(Call(rank, "write", at + 0.16, at + 0.17, "/d/own", 100, failed=number % 20 == 0))
    return builder


def made(folder: Path) -> bytes:
    job().write(folder)
    return (folder / "node-node.iowt").read_bytes()


def chunks(content: bytes | bytearray) -> Iterator[int]:
    at = ALIGNMENT
    while at + 64 <= len(content):
        yield at
        at += max(struct.unpack_from("<I", content, at + 24)[0], ALIGNMENT)


def unsealed(content: bytes) -> bytes:
    """As processes leave it that are killed: no checksum says what is damaged."""
    result = bytearray(content)
    for at in chunks(content):
        result[at + 28 : at + 32] = bytes(4)
    return bytes(result)


def of_version_1(content: bytes) -> bytes:
    result = bytearray(unsealed(content))
    result[8:12] = (1).to_bytes(4, "little")
    for at in chunks(content):
        result[at : at + 8] = b"IOWCHNK1"
    return bytes(result)


PROGRAM: Final = """
import os
for number in range(3):
    with open(f"out{number}", "wb", buffering=0) as file:
        for _ in range(40):
            file.write(b"x" * 1000)
    with open(f"out{number}", "rb", buffering=0) as file:
        while file.read(4096):
            pass
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, dict[str, Any]]]:
    """By kind: the trace of a node, and run.json."""
    whole = made(tmp_path_factory.mktemp("made"))
    place = tmp_path_factory.mktemp("real")
    completed(
        [IOWEIR, "run", "-q", "--no-compress", "-o", "trace", "--", sys.executable, "-c", PROGRAM],
        cwd=place,
        check=True,
        timeout=60,
    )
    (node,) = (place / "trace").glob("node-*.iowt")
    real = node.read_bytes()
    about = json.loads((place / "trace" / "run.json").read_text("utf-8"))
    about.pop("nodes", None)
    return {
        "sealed": (whole, RUN), "unsealed": (unsealed(whole), RUN), "version 1": (of_version_1(whole), RUN),
        "real": (real, about), "real, unsealed": (unsealed(real), about),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ damage


def place_of(rng: random.Random, content: bytearray) -> int:
    """Mostly where something is written: chunks are empty for the greater part."""
    for _ in range(200):
        at = rng.randrange(ALIGNMENT, len(content))
        if content[at]:
            return at
    return rng.randrange(len(content))


def flip(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice([1, 3, 30])):
        content[place_of(rng, content)] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice([1, 30, 300])):
        content[place_of(rng, content)] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])


def in_the_header(rng: random.Random, content: bytearray) -> None:
    content[rng.randrange(200)] ^= 1 << rng.randrange(8)


def in_a_chunks_header(rng: random.Random, content: bytearray) -> None:
    content[rng.choice(list(chunks(content))) + rng.randrange(64 + 200)] ^= 1 << rng.randrange(8)


def words(rng: random.Random, content: bytearray) -> None:
    """Numbers as large, small and odd as can be, in the place of numbers."""
    for _ in range(rng.choice([1, 5])):
        at = place_of(rng, content) & ~7
        value = rng.choice([0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 40, rng.getrandbits(64)])
        content[at : at + 8] = value.to_bytes(8, "little")[: len(content) - at]


def cut(rng: random.Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


def a_part_anew(rng: random.Random, content: bytearray) -> None:
    """A chunk in another's place, twice, or gone."""
    places = list(chunks(content))
    one, other = rng.choice(places), rng.choice(places)
    part = bytes(content[one : one + ALIGNMENT])
    if rng.random() < 0.5:
        content[other : other + len(part)] = part
    else:
        content += part
        struct.pack_into("<Q", content, len(content) - len(part) + 8, len(content) - len(part))


def text(rng: random.Random, content: bytearray) -> None:
    """Control characters and halves of UTF-8 in names."""
    found = [match.start() for match in re.finditer(rb"/[a-z]+/", content)]
    at = rng.choice(found)
    content[at : at + 4] = rng.choice([b"\x1b[2J", b"\xff\xfe\xc3(", b"\xe2\x80\xae\r", b"\x07\x9b\n\x00"])


DAMAGE: Final[dict[str, Callable[[random.Random, bytearray], None]]] = {
    "flip": flip, "overwrite": overwrite, "header": in_the_header, "chunk header": in_a_chunks_header, "words": words,
    "cut": cut, "chunks": a_part_anew, "text": text,
}  # fmt: skip
VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1e308, -1e308, math.nan, math.inf, 10**30, "", f"x{HOSTILE}\ud800", "9" * 400, [], ["a", 1], {},
    {"kind": 5}, [[[]]], [{}], 1e-300, 3,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ checks


def run(*words: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["ioweir", *map(str, words)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            app.main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        pytest.fail(f"{' '.join(map(str, words))}\n{traceback.format_exc()}")
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def check_json(printed: str) -> Any:
    printed.encode("ascii")
    document = json.loads(printed, parse_constant=constant)
    for value in leaves(document):
        if isinstance(value[-1], str):
            value[-1].encode("utf-8")
    return document


def leaves(value: Any, *keys: str) -> Iterator[tuple[Any, ...]]:
    """Keys and value of everything that is no object and no list."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, *keys, key)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry, *keys)
    else:
        yield (*keys, value)


SIGNED: Final = {"offset_s", "exit_code", "signal", "address", "offset", "error"}


def check_numbers(document: Any, wall_s: float, ranks: int) -> None:
    """No time beyond the run, no share beyond 1, nothing negative."""
    longest = wall_s * 1.01 + 4.1  # clocks: twice two seconds
    for *keys, value in leaves(document):
        if isinstance(value, bool) or not isinstance(value, int | float) or (set(keys) & SIGNED):
            continue
        key = keys[-1]
        if key in ("begin_s", "end_s"):
            assert -4.1 <= value <= longest, (keys, value)
            continue
        assert math.isfinite(value), (keys, value)
        assert value >= 0 or (value == -1 and key in ("rank", "slowest")), (keys, value)
        if key in ("longest_s", "mean_s", "max_s", "span_s", "mean_time_s", "deviation_s", "last_s", "first_s"):
            assert value <= longest, (keys, value)
        elif key == "time_s" and "verification" not in keys:
            assert value <= longest * max(ranks, 1) * 1.01, (keys, value)
        elif "share" in key:
            assert value <= 1.01, (keys, value)


def check_report(document: dict[str, Any], wall_s: float, processes: int) -> None:
    VALIDATOR.validate(document)
    ranks = max(document["ranks"], processes)
    check_numbers({key: value for key, value in document.items() if key not in ("started", "clocks")}, wall_s, ranks)
    assert document["wall_s"] <= wall_s * 1.01 + 4.1
    if document["io"]["max_s"] > document["wall_s"] * 1.001 + 0.001:
        assert document["partial"]
        assert document["io"]["share_of_wall"] is None
    assert document["io"]["mean_s"] <= document["io"]["max_s"] * 1.000001
    assert document["events_counted"] <= document["events"]
    for layer in [
        *document["layers"].values(),
        *(layer for file in document["files"] for layer in file["layers"].values()),
    ]:
        for op, row in layer.items():
            bounds = row.get("perceived_bytes_per_s")
            if isinstance(bounds, list) and None not in bounds:
                assert bounds[0] <= bounds[1], (op, row)
            assert row.get("span_s", 0) <= row["time_s"] * 1.000001
            assert row["longest_s"] <= row["time_s"] * 1.000001
    for kind in document["decomposition"].values():
        if kind["parts"] is not None:
            assert sum(kind["parts"].values()) == pytest.approx(kind["time_s"], abs=1e-6)


def check_text(printed: str) -> None:
    assert not OBEYED.search(printed), printed
    printed.encode("utf-8")
    figures = [line for line in printed.splitlines() if "is left out" not in line]
    assert not any(re.search(r"\b(nan|inf)\b", line) for line in figures), printed


COMMANDS: Final = (
    ("report",), ("report", "--json"), ("timeline",), ("timeline", "--by", "rank"),
    ("timeline", "--by", "target", "--op", "read"), ("timeline", "--json", "--picture", "picture.svg"),
    ("merge-trace", "-o", "log.csv"), ("merge-trace", "--json", "-o", "log.arrow"), ("compare", "--force", "good"),
    ("compare", "--json", "--force", "good"), ("explain", "--plan", "plan.toml", "--picture", "plan.svg", "--trace"),
    ("explain", "--plan", "plan.toml", "--json", "--trace"),
)  # fmt: skip


def use(folder: Path, wall_s: float, processes: int) -> None:
    """Every command that reads a trace, on the one in `bad`."""
    for words in COMMANDS:
        for picture in folder.glob("*.svg"):
            picture.unlink()
        code, out, err = run(*words, "bad")
        for said in (out, err):
            check_text(said)
        if code != 0:
            assert err.startswith("ioweir: "), (words, code, out, err)
            continue
        if "--json" in words:
            document = check_json(out)
            if words[0] == "report":
                check_report(document, wall_s, processes)
            elif words[0] == "compare":
                changes = document["changes"]
                check_numbers(changes, 1e300, 1)
                for change in changes:
                    most = (max(wall_s, WALL_S) * 1.01 + 4.1) * processes * 1.01
                    assert change["unit"] != "s" or max(change["before"], change["after"]) <= most, change
            else:
                check_numbers(document, 1e300 if words[0] == "explain" else wall_s, processes)
        elif not out.strip():
            pytest.fail(f"{words}: nothing printed")
        if words[0] == "merge-trace" and "log.csv" in words:
            check_log(folder / "log.csv")
        for picture in folder.glob("*.svg"):
            ElementTree.parse(picture)


def check_log(log: Path) -> None:
    with log.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert int(row["duration_ns"]) >= 0
            assert int(row["bytes"]) >= -1 or row["op"] not in trace.DATA_OPS  # a lock may reach backwards


PLAN: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    job().write(tmp_path / "good")
    (tmp_path / "good" / "run.json").write_text(json.dumps(RUN))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", ["sealed", "unsealed", "version 1", "real", "real, unsealed"])
def test_whole_traces_pass_themselves(place: Path, traces: dict[str, Any], kind: str) -> None:
    content, about = traces[kind]
    (place / "bad" / "node-node.iowt").write_bytes(content)
    (place / "bad" / "run.json").write_text(json.dumps(about))
    use(place, about["wall_s"], 2)
    assert run("report", "bad")[0] == 0
    assert json.loads(run("report", "--json", "bad")[1])["events"] > 100


@pytest.mark.one_of(18)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["sealed", "unsealed", "version 1", "real", "real, unsealed"])
def test_damaged_traces(place: Path, traces: dict[str, Any], kind: str, damage: str) -> None:
    content, about = traces[kind]
    (place / "bad" / "run.json").write_text(json.dumps(about))
    for seed in range(DAMAGES):
        rng = random.Random(f"{kind} {damage} {seed}")
        broken = bytearray(content)
        DAMAGE[damage](rng, broken)
        (place / "bad" / "node-node.iowt").write_bytes(broken)
        try:
            use(place, about["wall_s"], 2)
        except BaseException:
            print(f"seed {seed}")
            raise


@pytest.mark.one_of(16)
@pytest.mark.parametrize("key", RUN)
def test_damaged_texts_of_runs(place: Path, traces: dict[str, Any], key: str) -> None:
    """run.json with something else in each place."""
    content, _ = traces["sealed"]
    (place / "bad" / "node-node.iowt").write_bytes(content)
    values = VALUES if ALL else random.Random(key).sample(VALUES, 2)
    for value in values:
        (place / "bad" / "run.json").write_text(json.dumps(RUN | {key: value}))
        try:
            use(place, WALL_S, 2)
        except BaseException:
            print(f"value {value!r}")
            raise


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wall_s": -1}, "'wall_s' is left out: -1 is not seconds"),
        ({"wall_s": 1e9}, "'wall_s' is left out: it is longer than from 'started' to 'ended'"),
        ({"command": 5}, "'command' is left out: 5 is not a list of words"),
        ({"ended": RUN["started"] - 10}, "'ended' is left out: it lies before 'started'"),
        ({"exit_code": "0"}, "'exit_code' is left out: '0' is not an exit code or null"),
    ],
)
def test_what_a_run_cannot_have_been_is_left_out_and_said(place: Path, change: dict[str, Any], said: str) -> None:
    job().write(place / "bad")
    (place / "bad" / "run.json").write_text(json.dumps(RUN | change))
    document = json.loads(run("report", "--json", "bad")[1])
    assert document["damage"] == [f"run.json: {said}"]
    assert document["partial"]
    assert document["wall_s"] == pytest.approx(WALL_S)
    assert document["io"]["max_s"] < WALL_S


def test_a_rank_in_calls_for_longer_than_the_run_is_said(place: Path) -> None:
    job().write(place / "bad")
    (place / "bad" / "run.json").write_text(json.dumps(RUN | {"wall_s": 3.0}))
    document = json.loads(run("report", "--json", "bad")[1])
    assert document["io"]["share_of_wall"] is None
    assert document["partial_reasons"] == [
        "damaged: times cannot be right: 30.40 s in calls of one rank, in a run of 3.00 s"
    ]
    assert run("compare", "good", "bad")[0] == 3
