"""`ioweir run --verify`: exit code 0 says that every byte that was passed in was read back and is equal.

Anything else is 74 and named, with file, ranks, calls and bytes.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
from tracing import IOWEIR, MPIS, Mpi, Traced, build, ioweir_run, mount_tmpfs, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK: Final = 100_000
RANKS: Final = 3


def verified(
    mpi: Mpi, file: Path, way: str, folder: Path, *, rule: str = 'writers = "everyone"', ranks: int = RANKS,
    fault: str = "", code: int | None = None, ends: int = 0,
) -> Traced:  # fmt: skip
    """odd_writes under a plan of one rule, with --verify."""
    plan = folder / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "{file.name}"\n{rule}\n')
    injected = ["env", f"IOWEIR_TEST_STORAGE={fault}"] if fault else []
    command = mpi.launch(ranks, *injected, build("odd_writes.c", mpi.cc), file, way, str(ends))
    return ioweir_run(folder / "trace", command, options=["--plan", plan, "--verify"], code=code)


def outcomes(traced: Traced) -> dict[str, tuple[int, int]]:
    """Calls and bytes by outcome, of what was not compared."""
    sums: dict[str, tuple[int, int]] = {}
    for row in traced.report["plan"]["verify"]["left_out"]:
        calls, amount = sums.get(row["outcome"], (0, 0))
        sums[row["outcome"]] = (calls + row["calls"], amount + row["bytes"])
    return sums


def first_lines(traced: Traced) -> list[str]:
    """Of the text report, before any figure of time."""
    lines = run([*IOWEIR, "report", traced.directory]).expect().out.splitlines()
    end = next((at for at, line in enumerate(lines) if line.startswith(("I/O took", "No file I/O"))), len(lines))
    return lines[:end]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    mount_tmpfs(place, "size=128k")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


EQUAL: Final = {
    "plain": RANKS * BLOCK,
    "again": RANKS * BLOCK,
    "partly": RANKS * BLOCK,
    "started": RANKS * BLOCK,
    "collective": 4 * RANKS * BLOCK,
    "holes": 2 * RANKS * 1000,
    "cut": RANKS * BLOCK - 777,
    "deleted": RANKS * BLOCK,
    "delete-on-close": RANKS * BLOCK,
}
"""Ways of writing of which every byte can be compared, and how many there are in the end."""


@pytest.mark.one_of(12)
@pytest.mark.parametrize("rule", ['writers = "everyone"', 'writers = "aggregators:2"\nbuffer = "16 KiB"'])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("way", EQUAL)
def test_every_byte_is_compared(mpi: Mpi, way: str, rule: str, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", way, tmp_path, rule=rule, code=0)
    verify = traced.report["plan"]["verify"]
    assert (verify["result"], verify["left_out"]) == ("ok", [])
    assert verify["compared_bytes"] == EQUAL[way]
    assert any(line.startswith("verified: ") for line in first_lines(traced))


STRATEGIES: Final = {
    "behind": 'writers = "behind:1"\nvisibility = "sync"',
    "auto": 'writers = "auto"',
    "grouped": 'mapping = "grouped:2"\nvisibility = "sync"',
    "log": 'mapping = "log"\nvisibility = "sync"',
    "log-aggregated": 'mapping = "log"\nvisibility = "sync"\nwriters = "aggregators:2"',
    "subfiles": 'mapping = "subfiles:2"\nstripe = { size = "32 KiB" }',
}


@pytest.mark.one_of(8)
@pytest.mark.parametrize("way", ["partly", "collective", "holes"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_so_it_is_under_every_strategy(mpi: Mpi, strategy: str, way: str, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", way, tmp_path, rule=STRATEGIES[strategy], code=0)
    assert traced.report["plan"]["verify"]["compared_bytes"] == EQUAL[way]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("rule", ['writers = "everyone"', 'writers = "aggregators:1"', STRATEGIES["behind"]])
def test_a_full_disk_is_not_verified(mpi: Mpi, rule: str, small: Path, tmp_path: Path) -> None:
    """The program takes no notice and returns 0."""
    traced = verified(mpi, small / "file", "collective", tmp_path, rule=rule, code=74)
    verify = traced.report["plan"]["verify"]
    assert verify["result"] in {"incomplete", "nothing verified"}
    left = outcomes(traced)
    assert set(left) == {"failed"}
    assert left["failed"][1] + verify["compared_bytes"] >= 4 * RANKS * BLOCK - 131072
    assert left["failed"][1] > 0
    assert {row["path"] for row in verify["left_out"]} == {str(small / "file")}
    assert {row["rank"] for row in verify["left_out"]} <= set(range(RANKS))
    said = first_lines(traced)
    assert not any(line.startswith("verified") for line in said)
    assert any("not compared: " in line and "not written" in line for line in said)
    assert any("FAILED CALLS: " in line for line in said)
    assert "verification" in traced.err


LEFT_OUT: Final[dict[str, tuple[str, str, int, int]]] = {
    "atomic": ("passed_through", "atomic mode", RANKS, RANKS * BLOCK),
    "shared": ("passed_through", "shared file pointer", RANKS, RANKS * BLOCK),
    "sequential": ("passed_through", "MPI_MODE_SEQUENTIAL", RANKS, RANKS * BLOCK),
    "read-only": ("failed", "against the access mode", RANKS, RANKS * BLOCK),
    "unclosed": ("unclosed", "the program ended without closing the file", 0, RANKS * BLOCK),
}
"""Ways of writing of which nothing can be compared: outcome, reason, calls and bytes."""


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("way", LEFT_OUT)
def test_what_nobody_compares_is_named(mpi: Mpi, way: str, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", way, tmp_path)
    outcome, reason, calls, amount = LEFT_OUT[way]
    if traced.code != 0 or way != "unclosed":  # a program may be ended by MPI for what it leaves open
        assert traced.code == 74, traced.err
    verify = traced.report["plan"]["verify"]
    assert verify["result"] == "nothing verified"
    assert outcomes(traced) == {outcome: (calls, amount)}
    assert all(reason in row["text"] for row in verify["left_out"])
    assert {row["rank"] for row in verify["left_out"]} == set(range(RANKS))
    if way == "atomic":
        assert sorted(row["offset"] for row in verify["left_out"]) == [rank * BLOCK for rank in range(RANKS)]
    said = first_lines(traced)
    assert any(line.startswith("NOT VERIFIED") for line in said)
    assert any(reason in line and str(tmp_path / "file") in line for line in said)
    if way == "sequential":
        assert any(line.startswith("PLAN NOT APPLIED: rules matched") and reason in line for line in said)
    if way in {"atomic", "shared"}:
        assert any(line.startswith("PLAN APPLIED IN PART") and reason in line for line in said)


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_no_byte_is_not_verified(mpi: Mpi, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", "nothing", tmp_path, code=74)
    assert traced.report["plan"]["verify"]["ok"] == []
    assert first_lines(traced)[-1] == "NOT VERIFIED: no byte was written to a file of the plan"


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_failed_write_that_is_made_good_is_verified(mpi: Mpi, tmp_path: Path) -> None:
    """The second of two writes to the same place; the failed call is said all the same."""
    traced = verified(mpi, tmp_path / "file", "again", tmp_path, ranks=1, fault="eio:1", code=0)
    assert traced.report["plan"]["verify"]["compared_bytes"] == BLOCK
    assert any("FAILED CALLS: 1 of 2 MPI-IO writes" in line for line in first_lines(traced))


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("way", ["neighbours", "two-handles"])
def test_what_others_write_over_is_no_mismatch(mpi: Mpi, way: str, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", way, tmp_path)
    verify = traced.report["plan"]["verify"]
    assert verify["result"] in {"ok", "incomplete"}
    assert traced.code == (0 if verify["result"] == "ok" else 74)
    assert verify["differing_bytes"] == 0
    # Of a checksum's bytes those that another rank has not covered cannot be told: 64 KiB at most on either side.
    assert verify["compared_bytes"] + sum(row["bytes"] for row in verify["left_out"]) <= RANKS * BLOCK + 60 * RANKS


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_the_programs_own_exit_code_stays(mpi: Mpi, tmp_path: Path) -> None:
    traced = verified(mpi, tmp_path / "file", "atomic", tmp_path, ends=5, code=5)
    assert "verification" in traced.err


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_rule_that_matched_is_never_said_not_to(mpi: Mpi, tmp_path: Path) -> None:
    missing = verified(mpi, tmp_path / "file", "missing", tmp_path, code=74)
    said = first_lines(missing)
    assert any("no file that a rule matched could be opened" in line for line in said)
    assert not any("no rule matched" in line for line in said)


def test_compare_credits_no_plan_that_moved_nothing(tmp_path: Path) -> None:
    (mpi, _) = MPIS
    runs: dict[str, Traced] = {}
    for name, way in (("refused", "sequential"), ("applied", "plain")):
        folder = tmp_path / name
        folder.mkdir()
        runs[name] = verified(mpi, folder / "file", way, folder)
    out = run([*IOWEIR, "compare", runs["applied"].directory, runs["refused"].directory, "--force"]).expect().out
    first = out.splitlines()[0]
    assert first.startswith("The plan of the second run did nothing: it moved nothing: MPI_MODE_SEQUENTIAL")
    assert first.endswith("No difference below is its doing.")
    row: dict[str, Any] = runs["refused"].report["plan"]["carried_out"]
    assert (row["state"], row["moved_bytes"]) == ("not applied", 0)
    out = run([*IOWEIR, "compare", runs["refused"].directory, runs["applied"].directory, "--force"]).expect().out
    assert "the second run did nothing" not in out
