"""What `ioweir findings --json` prints, field by field, also of hostile and broken traces."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from ioweir.base import json_text, plain_text
from ioweir.base.compiled import compiled
from ioweir.findings import ranking, text
from ioweir.findings.table import BY_CODE
from ioweir.trace import LAYERS
from traces import FUNCTIONS, Builder, Call
from tracing import IOWEIR, run

if TYPE_CHECKING:
    from ioweir.findings.model import Findings

WALL_S: Final = 100.0
MIB: Final = 1 << 20
FIELDS: Final[dict[str, type]] = {
    "code": str, "severity": str, "layer": str, "files": list, "ranks": list, "seconds": float, "gain": dict,
    "summary": str, "cause": str, "evidence": list, "remedies": list, "unseen": list, "chain": list, "title": str,
}  # fmt: skip
HOSTILE: Final = (
    "/data/line\nbreak", "/data/\x1b]0;title\x07\x1b[2J", "/data/" + "long" * 1000, "/data/\x9b31m", "/data/\u202eltr",
    "/data/'\"$(reboot)*?[a]\\", "/data/\r", "/data/" + "x" * 255,
)  # fmt: skip
CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e]")


def is_number(value: object) -> bool:
    """A number that JSON has: no truth value, no infinity."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def check(rows: list[dict[str, Any]], wall_s: float) -> None:
    """Every field of every finding has its type, and its value lies where the contract says."""
    assert [row["seconds"] for row in rows] == sorted((row["seconds"] for row in rows), reverse=True)
    for row in rows:
        assert {name: type(row[name]) for name in FIELDS} == FIELDS, row
        assert row["code"] in BY_CODE
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", row["code"])
        assert row["severity"] in ("high", "medium", "low")
        assert row["layer"] in LAYERS
        assert all(type(rank) is int for rank in row["ranks"])
        assert row["ranks"] == sorted(set(row["ranks"]))
        for name in ("files", "unseen", "chain"):
            assert all(type(value) is str and value for value in row[name]), name
        assert set(row["gain"]) == {"low", "high", "method", "may_cost"}
        assert row["gain"]["may_cost"] >= 0
        assert row["gain"]["low"] == 0 or row["gain"]["may_cost"] == 0
        assert all(is_number(value) for value in (row["seconds"], row["gain"]["low"], row["gain"]["high"]))
        assert 0 <= row["gain"]["low"] <= row["gain"]["high"] <= min(2 * row["seconds"] * (1 + 1e-9), wall_s)
        assert row["seconds"] <= wall_s
        assert row["gain"]["method"] in ("bound", "simulated", "measured")
        assert row["summary"]
        assert row["cause"]
        assert row["evidence"]
        for evidence in row["evidence"]:
            assert set(evidence) == {"text", "figure", "unit"}
            assert is_number(evidence["figure"]), evidence
            assert all(type(evidence[name]) is str and evidence[name] for name in ("text", "unit"))
        assert row["remedies"]
        for remedy in row["remedies"]:
            assert set(remedy) == {"kind", "text", "plan", "hints", "doubt", "saves"}
            assert remedy["kind"] in ("plan", "hint", "source", "striping")
            assert all(type(remedy[name]) is str for name in ("kind", "text", "plan", "doubt"))
            assert all(type(value) is str and value for pair in remedy["hints"].items() for value in pair)
            assert all(f"{name} = {value}" in remedy["text"] for name, value in remedy["hints"].items())
            saves = remedy["saves"]
            assert saves is None or 0 <= saves["low"] <= saves["high"] <= wall_s * (1 + 1e-9), saves
            if remedy["kind"] == "plan":
                compiled().check_plan(remedy["plan"], "plan.toml")
            else:
                assert remedy["plan"] == ""


def written(builder: Builder, folder: Path, wall_s: float = WALL_S) -> Path:
    """A directory as `ioweir run` leaves it."""
    folder.mkdir(exist_ok=True)
    builder.write(folder)
    run_file = {"wall_s": wall_s, "exit_code": 0, "signal": None, "state": "ended", "program": "solver", "cwd": "/"}
    (folder / "run.json").write_text(json.dumps(run_file), encoding="utf-8")
    return folder


def shown(found: Findings) -> str:
    """What reaches a terminal, in words."""
    lines = [*text.full(found, "trace"), *text.short(found, "trace")]
    return "\n".join(plain_text.line(line) for line in lines)


def random_run(seed: int) -> Builder:
    """A trace of anything: any call, place, size and time, failed, unfinished, with callers that were not recorded."""
    chance = np.random.default_rng(seed)
    builder = Builder()
    ranks = int(chance.integers(0, 6))
    processes = [
        builder.rank(rank, ranks, finalized=bool(chance.random() < 0.5), end_s=None if chance.random() < 0.5 else 99.0)
        for rank in range(ranks)
        if chance.random() < 0.8  # of a partial trace some ranks are missing
    ] or [builder.process(executable="/bin/tool")]
    names = [function.name for function in FUNCTIONS]
    few = chance.choice(names, size=8)
    for process in processes:
        now = 0.0
        for _ in range(int(chance.integers(0, 150))):
            length = float(chance.choice([0.0, 1e-6, 0.01, 1.0]))
            name, path = str(chance.choice(few)), str(chance.choice(["", *HOSTILE]))
            places = [-1, 0, 4096, int(chance.integers(0, 1 << 40)), (1 << 62)]
            call = Call(
                process, name, now, now + length, path, int(chance.choice([0, 1, 512, MIB, 1 << 40])),
                failed=bool(chance.random() < 0.1), recorded=bool(chance.random() < 0.9),
                offset=int(chance.choice(places)),
            )  # fmt: skip
            builder.add(call)
            for part in range(int(chance.integers(0, 4))):
                step = length / 4
                inner = call.inside(
                    str(chance.choice(few)), now + part * step, now + (part + 1) * step, int(chance.integers(0, MIB)),
                    offset=int(chance.choice(places)), failed=bool(chance.random() < 0.1),
                )  # fmt: skip
                builder.add(inner)
            now += length
    return builder


@pytest.mark.parametrize("seed", range(200 if os.environ.get("IOWEIR_TEST_ALL") else 20))
def test_no_trace_breaks_a_rule_or_the_contract(seed: int) -> None:
    found = ranking.find(random_run(seed).trace(), WALL_S, LAYERS)
    check(json_text.to_dict(found.findings), WALL_S)
    assert not CONTROL.search(shown(found).replace("\n", ""))


def hostile(builder: Builder, path: str) -> None:
    """Two ranks that write 10 s each through collective calls which end in tiny requests."""
    for rank in [builder.rank(number, 2) for number in range(2)]:
        write = Call(rank, "MPI_File_write_at_all", 0, 10, path, 51200)
        builder.add(
            write, *(write.inside("pwrite", at / 10, at / 10 + 0.1, 512, offset=1024 * at) for at in range(100))
        )


@pytest.mark.one_of(9)
@pytest.mark.parametrize("path", HOSTILE)
def test_no_name_of_a_file_commands_a_terminal(path: str, tmp_path: Path) -> None:
    builder = Builder()
    hostile(builder, path)
    folder = written(builder, tmp_path / "trace")
    rows = json.loads(run([*IOWEIR, "findings", folder, "--json"]).expect().out)
    assert rows[0]["code"] == "collective-scattered"
    assert rows == json.loads(run([*IOWEIR, "report", folder, "--json"]).expect().out)["findings"]
    check(rows, WALL_S)
    for more in ((), ("--plan", "collective-scattered")):
        said = run([*IOWEIR, "findings", folder, *more]).expect()
        assert not CONTROL.search((said.out + said.err).replace("\n", ""))
        lengths = [len(line) for line in said.out.splitlines() if not line.lstrip().startswith("match = ")]
        assert max(lengths) <= 600  # of a long name the two ends
    assert "\nline" not in said.out


def empty(builder: Builder) -> None:
    """No call at all."""
    builder.rank(0, 2)


def single(builder: Builder) -> None:
    """One rank."""
    rank = builder.rank(0, 1)
    builder.add(*(Call(rank, "pwrite", at, at + 1, "/out", 100, offset=100 * at) for at in range(80)))


def without_mpi(builder: Builder) -> None:
    """No MPI."""
    tool = builder.process(executable="/bin/tool")
    builder.add(*(Call(tool, "pread", at, at + 1, "/in", 100, offset=100 * at) for at in range(80)))


def killed(builder: Builder) -> None:
    """Neither MPI_Finalize nor an end, and the calls around the last ones never returned."""
    for rank in [builder.rank(number, 2, finalized=False, end_s=None) for number in range(2)]:
        write = Call(rank, "MPI_File_write_at", 0, 80, "/out", 1 << 20, recorded=False)
        builder.add(write, *(write.inside("pwrite", at, at + 1, 100, offset=100 * at) for at in range(80)))


def partial(builder: Builder) -> None:
    """Of eight ranks the third alone."""
    rank = builder.rank(2, 8)
    builder.add(*(Call(rank, "MPI_File_write_at_all", at, at + 1, "/out", 100) for at in range(80)))


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("make", "first"),
    [(empty, None), (single, "small-requests"), (without_mpi, "small-requests"), (killed, "small-requests")],
)
def test_traces_of_other_runs_are_looked_into(make: Any, first: str | None, tmp_path: Path) -> None:
    builder = Builder()
    make(builder)
    folder = written(builder, tmp_path / "trace")
    rows = json.loads(run([*IOWEIR, "findings", folder, "--json"]).expect().out)
    check(rows, WALL_S)
    assert [row["code"] for row in rows[:1]] == ([first] if first else [])
    said = run([*IOWEIR, "findings", folder]).expect().out
    assert ("By rank" in said) == (make in (single, killed))
    assert ("By process 1000" in said) == (make is without_mpi)


def test_one_rank_of_many_is_looked_into(tmp_path: Path) -> None:
    builder = Builder()
    partial(builder)
    check(json.loads(run([*IOWEIR, "findings", written(builder, tmp_path / "trace"), "--json"]).expect().out), WALL_S)


def test_a_trace_that_is_cut_off_is_looked_into(tmp_path: Path) -> None:
    """The last bytes of a node's file are missing, as after a crash of the node."""
    builder = Builder()
    single(builder)
    folder = written(builder, tmp_path / "trace")
    (node,) = folder.glob("*.iowt")
    node.write_bytes(node.read_bytes()[:-200])
    said = run([*IOWEIR, "findings", folder, "--json"])
    check(json.loads(said.out), WALL_S)
    assert "Traceback" not in said.err
