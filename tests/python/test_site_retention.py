"""What a site removes of old runs: `ioweir site forget --older-than` of a store, `ioweir site prune` of traces.

Folders in which somebody has put something else are made for real; as root, as another user.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ioweir.base.guarded_files import Folder, UnsafeFileError
from ioweir.site.rows import Collected
from ioweir.site.store import Store
from site_runs import assert_alike, generated, oracle, stored, summarised, traced
from tracing import IOWEIR, Finished, run

DAY_S = 86_400.0
STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")


def begun(number: int, days_ago: float) -> Collected:
    """A generated run that began so many days ago."""
    one = generated(number, random.Random(number))
    started = time.time() - days_ago * DAY_S
    findings = [replace(row, started=started) for row in one.findings]
    return Collected(replace(one.run, started=started), findings)


# ------------------------------------------------------------------------------------------------------------ the store


@pytest.fixture
def runs() -> list[Collected]:
    """One a day of the last 200 days, at noon of that distance: none is near 90 days old to the second."""
    return [begun(number, number + 0.5) for number in range(200)]


@pytest.fixture
def store(tmp_path: Path, runs: list[Collected]) -> Path:
    with Store.make_or_open(tmp_path / "store") as opened:
        opened.add(runs[::2])
        opened.add(runs[1::2])
    return tmp_path / "store"


def test_runs_older_than_a_time_are_forgotten_with_their_findings(store: Path, runs: list[Collected]) -> None:
    young = [one for one in runs if one.run.started >= time.time() - 90 * DAY_S]
    assert len(young) == 90
    before = {file.name: file.read_bytes() for file in store.iterdir()}
    dry = run([*IOWEIR, "site", "forget", store, "--older-than", "90d", "--dry-run"]).expect()
    assert dry.out.startswith("110 runs would be forgotten; of ")
    assert {file.name: file.read_bytes() for file in store.iterdir()} == before
    done = run([*IOWEIR, "site", "forget", store, "--older-than", "90d"]).expect()
    assert done.out == dry.out.replace("would be forgotten", "forgotten")
    assert stored(store, "runs") == sorted(one.run.run for one in young)
    assert stored(store, "findings") == sorted(found.run for one in young for found in one.findings)
    assert_alike(summarised(store), oracle(young))
    again = run([*IOWEIR, "site", "forget", store, "--older-than", "90d"]).expect()
    assert again.out == "0 runs forgotten; of 0 files nothing is left\n"


def test_a_damaged_file_of_a_month_that_is_not_over_stays_and_is_named(store: Path) -> None:
    month = time.strftime("%Y-%m", time.gmtime(time.time() - 90 * DAY_S))
    broken = store / f"runs-{month}-{'0' * 16}.parquet"
    broken.write_bytes(b"PAR1")
    old = store / f"runs-2001-01-{'0' * 16}.parquet"
    old.write_bytes(b"PAR1")
    done = run([*IOWEIR, "site", "forget", store, "--older-than", "90d"])
    assert (done.code, str(broken) in done.err, str(old) in done.err) == (1, True, False)
    assert (broken.exists(), old.exists()) == (True, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "forget needs --older-than TIME"),
        (["--older-than", "90d", "--before", "2026-01"], "forget needs --older-than TIME"),
        (["--older-than", "soon"], "--older-than: not a time: 'soon'"),
    ],
)
def test_bad_words_of_forget_are_refused(store: Path, words: list[str], message: str) -> None:
    done = run([*IOWEIR, "site", "forget", store, *words])
    assert done.code != 0
    assert message in done.err


# --------------------------------------------------------------------------------------------------------------- traces


def aged(place: Path, days: float) -> Path:
    """As if nobody had written into a trace for so long."""
    when = time.time() - days * DAY_S
    for file in [*place.iterdir(), place]:
        os.utime(file, (when, when), follow_symlinks=False)
    return place


def prune(*words: str | Path) -> Finished:
    return run([*IOWEIR, "site", "prune", *words])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two old traces and a young one."""
    place = tmp_path / "traces"
    for name, days in (("old", 40), ("older", 50), ("young", 10)):
        aged(traced(place, name), days)
    return place


def test_old_traces_are_listed_and_with_yes_removed(place: Path) -> None:
    (place / "old" / "shims").mkdir()
    (place / "old" / "shims" / "mpirun").write_text("#!/bin/sh\n")
    aged(place / "old", 40)
    listed = prune(place, "--older-than", "30d").expect().out
    assert f"{place}/old: 40 days old" in listed
    assert "2 traces of " in listed
    assert "would be removed; --yes removes them" in listed
    assert sorted(path.name for path in place.iterdir()) == ["old", "older", "young"]
    said = json.loads(prune(place, "--older-than", "30d", "--yes", "--json").expect().out)
    assert [(Path(one["trace"]).name, one["kept"]) for one in said["traces"]] == [("old", ""), ("older", "")]
    assert [path.name for path in place.iterdir()] == ["young"]
    assert prune(place, "--older-than", "30d", "--yes").expect().out == "0 traces of 0 B removed\n"


def test_only_what_the_store_has_is_removed_where_one_is_named(place: Path, tmp_path: Path) -> None:
    run([*IOWEIR, "site", "add", tmp_path / "store", place / "older"]).expect()
    done = prune(place, "--older-than", "30d", "--yes", "--store", tmp_path / "store").expect()
    assert f"{place}/old: 40 days old, stays: the store does not have it" in done.out
    assert sorted(path.name for path in place.iterdir()) == ["old", "young"]


def foreign_file(trace: Path) -> None:
    (trace / "results.h5").write_text("precious")


def foreign_folder(trace: Path) -> None:
    (trace / "inner").mkdir()
    (trace / "inner" / "results").write_text("precious")


def deep_stand_ins(trace: Path) -> None:
    (trace / "shims" / "deeper").mkdir(parents=True)


def a_link(trace: Path) -> None:
    (trace / "node-link.iowt").symlink_to("/etc/passwd")


def a_pipe(trace: Path) -> None:
    os.mkfifo(trace / "plan.toml")


@pytest.mark.parametrize("spoil", [foreign_file, foreign_folder, deep_stand_ins, a_link, a_pipe])
def test_what_holds_anything_else_stays_whole(place: Path, spoil: Callable[[Path], None]) -> None:
    trace = place / "old"
    spoil(trace)
    aged(trace, 40)
    before = sorted(str(path) for path in trace.rglob("*"))
    done = prune(place, "--older-than", "30d", "--yes").expect()
    assert "is no part of a trace: move that elsewhere" in done.out
    assert sorted(str(path) for path in trace.rglob("*")) == before
    assert not (place / "older").exists()


@pytest.mark.parametrize("content", ["{}", '{"events": 3}', "[]", "no JSON"])
def test_another_programs_run_json_makes_no_trace(tmp_path: Path, content: str) -> None:
    other = tmp_path / "traces" / "other"
    other.mkdir(parents=True)
    (other / "run.json").write_text(content)
    aged(other, 400)
    assert prune(tmp_path / "traces", "--older-than", "1d", "--yes").expect().out == "0 traces of 0 B removed\n"
    assert (other / "run.json").read_text() == content


def test_no_link_is_followed(place: Path, tmp_path: Path) -> None:
    """Neither to a trace elsewhere, nor a trace's file that is a link."""
    elsewhere = aged(traced(tmp_path / "elsewhere", "kept"), 100)
    (place / "link").symlink_to(elsewhere)
    prune(place, "--older-than", "30d", "--yes").expect()
    assert (elsewhere / "run.json").exists()
    assert (place / "link").is_symlink()


@as_root
def test_a_folder_that_is_somebody_elses_link_is_left_alone(tmp_path: Path) -> None:
    """As in `site prune /scratch/*/traces`: a user has put a link to another one's folder there."""
    aged(traced(tmp_path / "victim", "kept"), 100)
    mallory = tmp_path / "mallory"
    mallory.mkdir()
    for link in ("traces", "more"):
        (mallory / link).symlink_to(tmp_path / "victim" if link == "traces" else tmp_path)
        os.chown(mallory / link, STRANGER, STRANGER, follow_symlinks=False)
    for way in (mallory / "traces", mallory / "more" / "victim"):
        done = prune(way, "--older-than", "30d", "--yes")
        assert done.code != 0
        assert f"'{way}' is left alone: leads through a symbolic link of user {STRANGER}" in done.err
    assert (tmp_path / "victim" / "kept" / "run.json").exists()
    (tmp_path / "own").symlink_to("victim")
    assert "1 traces" in prune(tmp_path / "own", "--older-than", "30d").expect().out, "root's own link is its own word"


def test_links_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        Folder.open_through_own_links(tmp_path / "a")
    with Folder.open_through_own_links(tmp_path / "." / ".." / tmp_path.name) as folder:
        assert folder.info.st_ino == tmp_path.stat().st_ino
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        Folder.open_through_own_links(tmp_path / "file")


@as_root
def test_links_of_others_are_refused_in_the_middle_too(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    Folder.open_through_own_links(tmp_path / "link" / "inner").close()
    os.chown(tmp_path / "link", STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(UnsafeFileError, match=f"link of user {STRANGER}"):
        Folder.open_through_own_links(tmp_path / "link" / "inner")


@as_root
def test_a_trace_of_another_than_the_folders_owner_stays(place: Path) -> None:
    os.chown(place, STRANGER, STRANGER)
    os.chown(place / "old", 4242, 4242)
    prune(place, "--older-than", "30d", "--yes").expect()
    assert sorted(path.name for path in place.iterdir()) == ["old", "young"]


def test_a_trace_without_an_end_stays_while_a_process_has_it_open(tmp_path: Path) -> None:
    """A process that computes for weeks writes nothing, and its trace is one all the same."""
    place = tmp_path / "traces"
    going = traced(place, "going", state="environment")
    (node,) = going.glob("node-*.iowt")
    holds = (
        f"import mmap, sys\nwith open({str(node)!r}, 'r+b') as file:\n    mapped = mmap.mmap(file.fileno(), 0)\n"
        "print(flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        aged(going, 40)
        done = prune(place, "--older-than", "30d", "--yes").expect()
        process.communicate()
    assert "stays: a process of this machine still has it open" in done.out
    assert node.exists()
    assert "1 traces" in prune(place, "--older-than", "30d", "--yes").expect().out
    assert not going.exists()


def test_a_trace_without_an_end_stays_for_an_hour_whatever_is_asked(tmp_path: Path) -> None:
    place = tmp_path / "traces"
    aged(traced(place, "going", state="environment"), 0.02)
    aged(traced(place, "ended"), 0.02)
    prune(place, "--older-than", "1m", "--yes").expect()
    assert [path.name for path in place.iterdir()] == ["going"]


def test_what_an_interrupted_removal_leaves_is_removed_the_next_time(place: Path) -> None:
    for file in (place / "old").glob("node-*"):
        file.unlink()
    run_json = place / "old" / "run.json"
    run_json.write_text(json.dumps({**json.loads(run_json.read_text()), "ioweir_version": "0.1.0"}))
    aged(place / "old", 40)
    prune(place, "--older-than", "30d", "--yes").expect()
    assert [path.name for path in place.iterdir()] == ["young"]
