"""The comparison of `make conformance` sees what differs, and nothing that differs by itself."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import conformance_run
import pytest
from conformance_case import DATA, Case, Library
from conformance_fetch import Mirror, mirrors
from conformance_page import BROKEN, SAME, row_of
from conformance_plans import LeftOut
from conformance_run import TIMED_OUT, Way, judge, judge_all, normalised

# "-n 1 PROGRAM ...": takes the place of a launcher.
ALONE = Library("alone", {}, ("sh", "-c", 'shift; exec "$@"'))


def shell(text: str, limit_s: float = 30.0) -> Case:
    return Case("made up", "case", ALONE, 1, ("sh", "-c", text), limit_s=limit_s)


def test_times_and_places_do_not_count(tmp_path: Path) -> None:
    verdict = judge(shell('date +%s.%N; pwd; echo data > "$PWD/out"'), tmp_path / "run", [])
    assert verdict.same
    assert not verdict.remark
    assert verdict.plain is not None
    assert verdict.plain.passed()


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('test -z "$IOWEIR_DIR"', "exit code 0 untraced, 1 traced"),
        ('echo "found ${IOWEIR_DIR:+ioweir}"', "other output: found"),
        ('echo "${IOWEIR_DIR:+ioweir}" > out', "other files: out"),
    ],
    ids=["code", "output", "files"],
)
def test_what_ioweir_changes_is_seen(text: str, part: str, tmp_path: Path) -> None:
    verdict = judge(shell(text), tmp_path / "run", [])
    assert not verdict.same
    assert verdict.remark.startswith(part)


def test_a_program_that_never_ends_the_same_way_is_compared_by_the_rest(tmp_path: Path) -> None:
    random = "head -c 8 /dev/urandom | od -An -tx1"
    verdict = judge(shell(random), tmp_path / "run", [])
    assert verdict.same
    assert verdict.remark == "output not the same in 3 untraced runs"
    worse = judge(shell(f'{random}; test -z "$IOWEIR_DIR"'), tmp_path / "run", [])
    assert not worse.same
    assert worse.remark == "exit code 0 untraced, 1 traced"


def test_a_program_that_cannot_be_started_is_not_the_same(tmp_path: Path) -> None:
    missing = replace(shell(""), command=(str(tmp_path / "missing"),))
    assert row_of(judge(missing, tmp_path / "run", [])).result == BROKEN
    assert row_of(judge(shell("exit 126"), tmp_path / "run", [])).result == SAME


def test_what_a_strategy_leaves_out_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = LeftOut("-x", {"sizes": "checks a size", "modes": "checks modes"})
    monkeypatch.setattr(conformance_run, "LEFT_OUT", {"log": {"case": left_out}})
    case = replace(shell('echo "$@"'), command=("sh", "-c", 'echo "$@"', "program"))
    log, direct = judge_all(case, tmp_path / "run", [Way("log", ()), Way("direct", ())])
    assert log.plain is not None
    assert direct.plain is not None
    assert (log.plain.output, log.remark) == (
        "-x sizes -x modes", "without sizes (checks a size), modes (checks modes)",
    )  # fmt: skip
    assert (direct.plain.output, direct.remark) == ("", "")
    assert log.same
    assert log.case == direct.case == case
    (alone,) = judge_all(replace(case, name="case sizes"), tmp_path / "run", [Way("log", ())])
    assert (alone.plain, alone.remark) == (None, "checks a size")
    (other,) = judge_all(replace(case, name="case others"), tmp_path / "run", [Way("log", ())])
    assert other.plain is not None
    assert (other.same, other.plain.output, other.remark) == (True, "", "")
    failing = replace(case, command=("sh", "-c", 'test -z "$IOWEIR_DIR"', "program"))
    (failed,) = judge_all(failing, tmp_path / "run", [Way("log", ())])
    assert not failed.same
    assert failed.remark == f"{left_out.remark()}; exit code 0 untraced, 1 traced"


def is_running(process: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Its child has nothing left in common with the launcher but the directory."""
    child = f"setsid sleep 300 >/dev/null 2>&1 & echo $! >> {tmp_path}/children"
    verdict = judge(shell(f"{child}; exec sleep 300", 4.0), tmp_path / "run", [])
    assert verdict.same
    assert verdict.plain is not None
    assert verdict.plain.code == TIMED_OUT
    children = [int(word) for word in (tmp_path / "children").read_text(encoding="ascii").split()]
    assert len(children) == 2
    deadline = time.monotonic() + 10.0
    while any(is_running(process) for process in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(process) for process in children)


def test_what_cannot_be_run_is_neither_same_nor_different(tmp_path: Path) -> None:
    verdict = judge(Case("made up", "case", ALONE, 1, not_run="too large"), tmp_path / "run", [])
    assert verdict.plain is None
    assert verdict.remark == "too large"
    assert not (tmp_path / "run").exists()


def test_normalised_output(tmp_path: Path) -> None:
    one = normalised(f"rank 1: 12.5 MB/s\nrank 0 at 0x7ffe01: {tmp_path}/file\n\n[vm:123] done in 17 sec", tmp_path)
    two = normalised("rank 0 at 0x55aa:   SCRATCH/file\n[vm:99] done in 3 sec\nrank 1: 9.75 MB/s", tmp_path)
    assert one == two
    assert normalised("Found 2 errors", tmp_path) != normalised("Found 3 errors", tmp_path)
    assert DATA not in one
    whole = normalised("======================\nMPI-process 1. hostname=vm\nMPI-process 0. hostname=vm\nok", tmp_path)
    mixed = normalised("MPI-process 0.====================== hostname=vm\n\nMPI-process 1. hostname=vm\nok", tmp_path)
    assert whole == mixed == "ok"


def test_mirrors_of_both_kinds_of_list(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(
        "deb [signed-by=/k.gpg arch=amd64] http://one/debian stable main\n# deb x y\n"
    )
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "a.sources").write_text(
        "Types: deb\nURIs: http://two/debian\nSuites: s s-updates\nComponents: main\nSigned-By: /b.gpg\n\n"
        "Types: deb\nURIs: http://two/debian-security\nSuites: s-security\nComponents: main\n"
    )
    (tmp_path / "sources.list.d" / "b.list").write_text("deb https://elsewhere/apt main main\n")
    assert mirrors(tmp_path) == [
        Mirror("http://one/debian", "stable", "/k.gpg"),
        Mirror("http://two/debian", "s", "/b.gpg"),
        Mirror("http://two/debian", "s-updates", "/b.gpg"),
    ]
