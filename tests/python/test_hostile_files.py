"""Traces, sets of partitioned files, manifests, plans and probes' results in which somebody has replaced a file.

Each file in turn by each of hostile.ATTACKS, under each command that reads it (hostile_cases.py). Containers, divided
netCDF files and labs: test_hostile_containers.py.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import hostile
import pytest
from hostile_cases import SAMPLE, Words, command, try_all
from test_merge import job

PLAN: Final = '[[file]]\nmatch = "*"\nwriters = "everyone"\n'
MANIFEST: Final = "[[target]]\nname = 't0'\ndirectory = 'a'\n[[target]]\nname = 't1'\ndirectory = 'b'\n"


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
        ("merge-trace", place), ("explain", "--trace", place, "--plan", plan), ("compare", other, place, "--json"),
        ("timeline", place, "--by", "target", "--picture", place / "picture.svg"),
        ("merge-trace", place, "-o", place / "table.csv"),
    ]  # fmt: skip
    more = ("picture.svg", "table.csv", "master.parquet", "master-files.parquet", "node-c.iowt")
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
    # The user's own folders, which may well be links: only what is in them is somebody else's to replace.
    assert try_all(subject, [words], tmp_path, but=("cache", "cache/ioweir")) >= SAMPLE // 2


def test_executables_that_a_doctor_looks_at(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    shutil.copy("/bin/true", place / "program")
    (place / "script").write_text("#!/bin/sh\nexec true\n")
    (place / "script").chmod(0o755)
    subject = hostile.Subject.keep("executables", place)
    commands: list[Words] = [("doctor", "--json", "--", place / name) for name in ("program", "script")]
    commands += [("run", "-q", "-o", place / "trace", "--", place / name) for name in ("program", "script")]
    assert try_all(subject, commands, tmp_path) >= SAMPLE // 2


def test_targets_that_a_plan_names(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in ("t0", "t1"):
        (place / name).mkdir(parents=True)
    (place / "plan.toml").write_text(
        f'[[file]]\nmatch = "*"\nmapping = "log"\ntargets = ["{place}/t0", "{place}/t1"]\n'
    )
    subject = hostile.Subject.keep("targets of a plan", place)
    commands: list[Words] = [
        ("run", "-q", "-o", place / "trace", "--plan", place / "plan.toml", "--", "true"),
        ("env", "-o", place / "trace", "--plan", place / "plan.toml"),
    ]
    assert try_all(subject, commands, tmp_path, ("trace",)) >= SAMPLE // 2


def test_hdf5_files_and_their_marks(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    path = place / "file.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes([2, 8, 8, 0]) + bytes(200))
    (place / "file.h5.ioweir-held").write_text("ioweir-held 1\n")
    subject = hostile.Subject.keep("HDF5", place)
    commands: list[Words] = [("check", path), ("ls", path), ("merge", path), ("gc", place, "--yes")]
    assert try_all(subject, commands, tmp_path, ("file.h5.ioweir-held.new",)) >= SAMPLE // 2


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
