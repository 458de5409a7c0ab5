"""Traces, sets of partitioned files, manifests, plans and probes' results in which somebody has replaced a file.

Each file in turn by each of hostile.ATTACKS, under each command that reads it. What must hold for all: hostile.Outcome.
`make test` runs a part of them, tools/long_tests.sh all (IOWEIR_TEST_ALL=1).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from ioweir import cli, report, report_text
from ioweir.errors import EXIT_DIFFERENT, EXIT_NOT_STARTED, EXIT_USAGE
from test_merge import job

hostile: Any = pytest.importorskip("hostile")

EVERY: Final = bool(os.environ.get("IOWEIR_TEST_ALL"))
SAMPLE: Final = 6
PLAN: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'
MANIFEST: Final = "[[target]]\nname = 't0'\ndirectory = 'a'\n[[target]]\nname = 't1'\ndirectory = 'b'\n"

# Imported before children are made, which then start at once.
_ = (report, report_text)


def command(*words: str | Path) -> Callable[[], object]:
    def work() -> None:
        sys.argv = ["ioweir", *map(str, words)]
        cli.main()

    return work


def cases(subject: Any, commands: list[Any], more: tuple[str, ...] = ()) -> Iterator[tuple[Path, str, Any]]:
    """Every file, attack and command; by default every so many of them."""
    every = [
        (path, attack, words)
        for path in [*subject.paths(), *map(Path, more)]
        for attack in hostile.ATTACKS
        for words in commands
    ]
    step = 1 if EVERY else max(1, len(every) // (SAMPLE * len(commands)) | 1)
    return iter(every[::step])


def try_all(subject: Any, commands: list[Any], tmp_path: Path, more: tuple[str, ...] = ()) -> int:
    """How many were tried; what was found is an assertion of all of them together."""
    found, tried = [], 0
    for path, attack, words in cases(subject, commands, more):
        try:
            with hostile.spoil(subject, path, attack, tmp_path / "outside") as outside:
                tried += 1
                outcome = hostile.run(command(*words), tmp_path / "log")
                if outcome.code in (EXIT_USAGE, EXIT_DIFFERENT, EXIT_NOT_STARTED):  # each is a refusal
                    outcome = replace(outcome, code=1)
                why = outcome.why_bad() or ", ".join(outside.touched)
                if why:
                    found.append(f"{path}: {attack}: ioweir {' '.join(map(str, words))}: {why}\n{outcome.text[-500:]}")
        except hostile.ImpossibleError:
            continue
    assert not found, "\n".join(found)
    return tried


def test_traces(tmp_path: Path) -> None:
    place = tmp_path / "trace"
    place.mkdir()
    job(0).write(place)
    (place / "run.json").write_text('{"wall_s": 100.0, "exit_code": 0, "state": "ended", "program": "solver"}\n')
    other = tmp_path / "other"
    other.mkdir()
    job(1).write(other)
    (other / "run.json").write_text((place / "run.json").read_text())
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    subject = hostile.Subject.keep("trace", place)
    commands = [
        ("report", place), ("report", place, "--json"), ("compare", place, other), ("timeline", place, "--by", "rank"),
        ("merge-trace", place), ("explain", "--trace", place, "--plan", plan),
    ]  # fmt: skip
    more = ("master.parquet", "master-files.parquet", "node-c.iowt")
    assert try_all(subject, commands, tmp_path, more) >= SAMPLE // 2


def test_sets_of_partitioned_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "partition"))
    from phasta_files import write
    from sets import contents

    place = tmp_path / "sets"
    place.mkdir()
    write(place / "restart-dat.20.1", contents([1, 2]))
    write(place / "restart-dat.20.2", contents([3]))
    serial = tmp_path / "sets" / "view"
    hidden = place / ".restart-dat.10.new-0123456789abcdef"
    hidden.mkdir()
    (hidden / "manifest").write_text("ioweir set 1\nstate complete\nstep 10\n")
    for path in (hidden / "manifest", hidden):
        os.utime(path, (0, 0))
    subject = hostile.Subject.keep("sets", place)
    first = place / "restart-dat.20.1"
    commands = [
        ("check", first), ("ls", first), ("gc", place), ("gc", place, "--yes"),
        ("convert", first, serial, "--to", "serial", "--replace"), ("convert", first, serial, "--replace"),
    ]  # fmt: skip
    more = ("view.20.1", "view-dat.20.d", "restart-dat.20.set")
    assert try_all(subject, commands, tmp_path, more) >= SAMPLE // 2


def test_manifests_and_what_a_probe_has_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    for name in ("a", "b", "data", "cache"):
        (place / name).mkdir(parents=True)
    (place / ".ioweir-targets.toml").write_text(MANIFEST)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    words = ("probe", place / "data", "--size", "64KiB", "--repeats", "1", "--confirm", "0", "--cache", "10m")
    assert hostile.run(command(*words), tmp_path / "log").code == 0
    assert list((place / "cache" / "ioweir").iterdir())
    subject = hostile.Subject.keep("place", place)
    assert try_all(subject, [words], tmp_path) >= SAMPLE // 2


def test_plans_and_pictures(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "plan.toml").write_text(PLAN)
    subject = hostile.Subject.keep("place", place)
    plan = place / "plan.toml"
    commands = [
        ("explain", "--kernel", "coll_perf", "--ranks", "2", "--plan", plan, "--picture", place / "picture.svg"),
        ("run", "-q", "-o", place / "trace", "--plan", plan, "--", "true"),
    ]
    assert try_all(subject, commands, tmp_path, ("picture.svg", "trace")) >= SAMPLE // 2
