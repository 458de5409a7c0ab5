"""`ioweir env --tune`: a job runs under the plan that `ioweir tune` makes of an earlier trace, where one helps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from forked import completed

IOWEIR = [sys.executable, "-m", "ioweir"]
MACHINE = ("--machine", "gigabit12")
STRIDED = ("ior-strided", "data=4MiB", "transfer=2MiB", "piece=64KiB")


def env(*words: str | Path, code: int = 0) -> tuple[dict[str, Any], str]:
    """What `ioweir env --json` prints, and says."""
    done = completed([*IOWEIR, "env", *map(str, words), "--json"], timeout=120)
    assert done.returncode == code, done.stderr
    return (json.loads(done.stdout) if code == 0 else {}), done.stderr


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was simulated, on storage where pieces of 64 KiB cost much."""
    trace = tmp_path_factory.mktemp("earlier") / "trace"
    words = ["--kernel", STRIDED[0], *STRIDED[1:], "--ranks", "16", *MACHINE, "--trace-out", str(trace)]
    completed([*IOWEIR, "simulate", *words], timeout=120, check=True)
    return trace


def test_the_job_has_the_plan_that_tune_makes(earlier: Path, tmp_path: Path) -> None:
    plan = tmp_path / "trace.plan.toml"
    variables, said = env("-o", tmp_path / "trace", "--tune", earlier, *MACHINE)
    alone = tmp_path / "alone.toml"
    completed([*IOWEIR, "tune", earlier, "-o", alone, *MACHINE], timeout=120, check=True)
    rules = [line for line in alone.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in plan.read_text().splitlines() if not line.startswith("#")] == rules
    copied = Path(variables["ranks"]["IOWEIR_PLAN"])
    assert copied.read_text() == plan.read_text()
    assert json.loads((tmp_path / "trace" / "run.json").read_text())["plan"] == str(plan)
    assert "times" in said


def test_a_plan_of_an_earlier_job_is_replaced_and_another_is_not(earlier: Path, tmp_path: Path) -> None:
    """Once a plan lay there, no later job of that name had one."""
    plan = tmp_path / "trace.plan.toml"
    plan.write_text("# made by ioweir tune for another run\n")
    variables, _ = env("-o", tmp_path / "trace", "--tune", earlier, *MACHINE)
    assert "IOWEIR_PLAN" in variables["ranks"]
    assert "[[file]]" in plan.read_text()
    own = tmp_path / "other.plan.toml"
    own.write_text("# mine\n")
    variables, said = env("-o", tmp_path / "other", "--tune", earlier, *MACHINE)
    assert "IOWEIR_PLAN" not in variables["ranks"]
    assert f"{own} is there, and `ioweir tune` has not made it; move it" in said
    assert own.read_text() == "# mine\n"


def test_the_first_job_is_traced_alone(tmp_path: Path) -> None:
    variables, said = env("-o", tmp_path / "trace", "--tune", tmp_path / "none", "--verify")
    assert "IOWEIR_PLAN" not in variables["ranks"]
    assert f"--tune {tmp_path / 'none'}: is not there yet, so this job is traced without a plan" in said
    assert not list(tmp_path.glob("*.toml"))


def test_an_anonymised_job_has_no_plan_and_goes_on(earlier: Path, tmp_path: Path) -> None:
    variables, said = env("-o", tmp_path / "trace", "--tune", earlier, "--anonymise", *MACHINE)
    assert "IOWEIR_PLAN" not in variables["ranks"]
    assert "this trace is to be anonymised, so this job is traced without a plan" in said
    assert not list(tmp_path.glob("*.toml"))


def test_without_a_gain_there_is_no_plan(tmp_path: Path) -> None:
    trace = tmp_path / "earlier"
    words = ["--kernel", "ior-segmented", "data=1MiB", "transfer=1MiB", "--ranks", "1", *MACHINE]
    completed([*IOWEIR, "simulate", *words, "--trace-out", trace], timeout=120, check=True)
    variables, said = env("-o", tmp_path / "trace", "--tune", trace, *MACHINE)
    assert "IOWEIR_PLAN" not in variables["ranks"]
    assert "nothing that was simulated is faster: this job is traced without a plan" in said
    assert not list(tmp_path.glob("*.toml"))


def test_a_trace_that_gives_no_plan_fails_no_job(earlier: Path, tmp_path: Path) -> None:
    """The storage of a simulated run is not there to be measured."""
    variables, said = env("-o", tmp_path / "trace", "--tune", earlier)
    assert "IOWEIR_PLAN" not in variables["ranks"]
    assert f"--tune {earlier}: no plan can be made, so this job is traced without one: " in said


def test_what_does_not_go_together_is_refused_before_anything_is_made(earlier: Path, tmp_path: Path) -> None:
    plan = tmp_path / "own.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "everyone"\n')
    for more in (("--plan", plan), ("--auto",)):
        _, said = env("-o", tmp_path / "trace", "--tune", earlier, *more, code=2)
        assert f"--tune makes a plan of its own: leave {more[0]} out" in said
    _, said = env("-o", tmp_path / "trace", *MACHINE, code=2)
    assert "--machine gigabit12 is for --tune" in said
    full = tmp_path / "full"
    full.mkdir()
    (full / "theirs").touch()
    _, said = env("-o", full, "--tune", earlier, code=125)
    assert "is not empty" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "own.toml"]
