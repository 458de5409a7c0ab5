"""`ioweir run --auto`: writers of a loop's files are chosen while it runs, and every byte arrives."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any, Final

import pytest
from ioweir.trace import reader
from tracing import IOWEIR, MPIS, Mpi, Traced, build, run

if TYPE_CHECKING:
    from pathlib import Path

FILES: Final = 20
CALLS: Final = 8
BLOCK: Final = 65536


def auto(
    mpi: Mpi, folder: Path, ranks: int, how: str, *, files: int = FILES, slow_ms: int = 0, before: tuple[str, ...] = (),
    options: tuple[str, ...] = (), name: str = "trace", code: int | None = 0, behind: Path | None = None,
) -> Traced:  # fmt: skip
    data = folder / f"data-{name}"
    data.mkdir()
    program = build("loop.c", mpi.cc)
    words: list[str | Path] = [
        "env",
        f"XDG_CACHE_HOME={folder / 'cache'}",
        *IOWEIR,
        "run",
        "-o",
        folder / name,
        "--auto",
        *options,
        "--",
    ]
    variables = [*before]
    if slow_ms:
        behind = build("slow_library.c", mpi.cc, "-shared", "-fPIC")
        variables.append(f"SLOW_MS={slow_ms}")
    if behind is not None:
        words = [words[0], f"LD_PRELOAD={behind}", *words[1:]]
    command = mpi.launch(ranks, "env", *variables, program, data, str(files), how)
    finished = run([*words, *command])
    if code is not None:
        finished.expect(code)
    traced = Traced(finished.code, finished.out, finished.err, folder / name)
    if how != "crash":
        expect_bytes(data, ranks, files, how)
    return traced


def expect_bytes(data: Path, ranks: int, files: int, how: str) -> None:
    for file in range(files):
        block = 2 if how == "tiny" else BLOCK
        if how == "grows" and file >= files // 2:
            block *= 8
        content = (data / f"ckpt_{file:04}.data").read_bytes()
        expected = b"".join(
            bytes([1 + (file * 7 + call * 3 + rank) % 250]) * block for call in range(CALLS) for rank in range(ranks)
        )
        assert content == expected, f"file {file} is another one than the program wrote"


def series(traced: Traced) -> dict[str, Any]:
    (row,) = traced.report["plan"]["chosen"]
    found: dict[str, Any] = row
    return found


def writers(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["writers"]: one for one in row["writers"]}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_the_best_is_kept_where_the_library_is_slow(mpi: Mpi, ranks: int, tmp_path: Path) -> None:
    traced = auto(mpi, tmp_path, ranks, "same", slow_ms=10)
    row = series(traced)
    assert row["files"] == FILES
    assert row["path"].endswith("/ckpt_#.data")
    assert row["chosen"] != "library"
    by = writers(row)
    assert row["compared"] >= 1
    assert by["library"]["files"] <= FILES // 3
    assert sum(one["files"] for one in row["writers"]) == FILES
    assert row["gained_s"] > 0.3 * 0.08 * FILES
    said = " ".join(run([*IOWEIR, "report", traced.directory]).expect().out.split())
    assert f"WRITERS CHOSEN for {FILES} files of {row['path']}" in said
    assert "Gained" in said
    assert "PLAN APPLIED IN PART" not in said, "the library's turns are what was asked for"


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_the_library_is_kept_where_the_engine_is_slow(mpi: Mpi, tmp_path: Path) -> None:
    # 64 KiB take the engine's backend 20 ms, and the library's calls go past it; tmpfs alone takes too little time.
    slow = f"IOWEIR_TEST_THROTTLE=stripe=1MiB rates=3MB state={tmp_path}/throttle"
    traced = auto(mpi, tmp_path, 2, "same", slow_ms=2, before=(slow,))
    row = series(traced)
    by = writers(row)
    assert row["chosen"] == "library"
    assert by["library"]["files"] >= FILES - 4
    assert len(by) > 1
    assert row["gained_s"] < 0


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_slow_writers_are_given_up_on_the_way(mpi: Mpi, tmp_path: Path) -> None:
    slow = f"IOWEIR_TEST_THROTTLE=stripe=1MiB rates=3MB state={tmp_path}/throttle"
    # Of independent calls no portions can be compared.
    row = series(auto(mpi, tmp_path, 2, "alone", slow_ms=2, before=(slow,)))
    assert row["chosen"] == "library"
    assert any(one["cut"] for one in row["writers"])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", ["grows", "small", "tiny", "views"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_other_patterns_arrive_too(mpi: Mpi, how: str, tmp_path: Path) -> None:
    # Of several ranks each call would take as long as a busy machine lets them wait for each other.
    traced = auto(mpi, tmp_path, 1 if how == "tiny" else 2, how, slow_ms=0 if how == "tiny" else 5)
    row = series(traced)
    if how == "tiny":
        # The third file's open ends the series: the engine's writers were to be tried in it, and must not move it all.
        plan = traced.report["plan"]
        assert {one["path"][-9:-5] for one in plan["applied"]} == {"0000", "0001"}
        passed = {one["path"][-9:-5]: one["text"] for one in plan["passed_through"]}
        assert passed["0002"] == passed["0003"] == "left to the MPI library for good"
        assert row["files"] == 2
        assert row["ended"] == "its files take too little time"


@pytest.mark.parametrize("mpi", MPIS, ids=str)
def test_a_file_is_one_of_its_series_whatever_each_rank_calls_it(mpi: Mpi, tmp_path: Path) -> None:
    row = series(auto(mpi, tmp_path, 2, "names", slow_ms=10))
    assert row["files"] == FILES
    assert not row["ended"]
    assert row["chosen"] != LIBRARY


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_program_that_writes_once_is_all_but_left_alone(mpi: Mpi, files: int, tmp_path: Path) -> None:
    traced = auto(mpi, tmp_path, 2, "same", files=files, slow_ms=5)
    row = series(traced)
    by = writers(row)
    if files == 1:
        assert [name for name, one in by.items() if one["files"]] == ["library"]
    # Of eight calls the others have none in the first file, for one of theirs could cost more than a fiftieth.
    found = reader.read(traced.directory).chosen_files
    moved = {one.words.split()[1]: one.bytes for one in found if one.step == "portion"}
    assert files > 1 or set(moved) == {"library"}


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_a_program_that_crashes_leaves_what_was_found(mpi: Mpi, tmp_path: Path) -> None:
    traced = auto(mpi, tmp_path, 2, "crash", slow_ms=5, code=None)
    assert traced.code != 0
    # Those that were closed: the others know of the tenth since the eleventh was opened.
    assert series(traced)["files"] == 10
    expect_bytes(tmp_path / "data-trace", 2, 10, "same")


def by_given_times(mpi: Mpi, folder: Path, ranks: int, given: str, files: int) -> list[str]:
    """Of each file who wrote it, where ioweir's own clock goes as `given` says: a file takes an hour or so."""
    library = build("given_times.c", mpi.cc, "-shared", "-fPIC")
    traced = auto(mpi, folder, ranks, "same", files=files, before=(f"GIVEN_TIMES={given}",), behind=library)
    found = reader.read(traced.directory).chosen_files
    chosen = sorted((one for one in found if one.step != "portion"), key=lambda one: one.number)
    for file, one in enumerate(chosen):
        before, after = given.split()[:2], given.split()[3:]
        times = [int(time) for time in (before if file < CHANGE else after)]
        # In units of 100 s; what the calls really took is beside it.
        took = round(one.elapsed_ns / 1e11)
        if one.step == "compared":
            assert CALLS * min(times) <= took <= CALLS * max(times), (file, one)
        else:
            assert took == CALLS * times[one.words.split()[1] != "library"], (file, one)
    return [one.words.split()[1] for one in chosen]


LIBRARY: Final = "library"
ENGINE: Final = "everyone"
CHANGE: Final = 10
"""From this file on the storage is another one. What a file took is known when the next one is opened, and counts for
the one after that. So three files that took longer, 10 to 12, count for file 14."""


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_storage_that_changes_midway_from_the_engines_to_the_librarys(mpi: Mpi, tmp_path: Path) -> None:
    """8 x 3 units by the library and 8 x 1 by the engine; then 8 x 3 and 8 x 9.

    In the first file a call by the engine could cost more than a fiftieth. In the second two calls by each decide.
    """
    expected = [LIBRARY, *[ENGINE] * 13, *[LIBRARY] * 6]
    assert by_given_times(mpi, tmp_path, 1, f"3 1 {CHANGE} 3 9", 20) == expected


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_storage_that_changes_midway_from_the_librarys_to_the_engines(mpi: Mpi, tmp_path: Path) -> None:
    """8 x 1 units by the library and 8 x 3 by the engine; then 8 x 12 and 8 x 3.

    Of the file in which all begins anew the engine has the most.
    """
    expected = [*[LIBRARY] * 14, *[ENGINE] * 6]
    assert by_given_times(mpi, tmp_path, 1, f"1 3 {CHANGE} 12 3", 20) == expected


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_two_ranks_change_together_with_the_storage(mpi: Mpi, tmp_path: Path) -> None:
    """As before with three kinds of the engine's writers, which take the same and come in an order of chance."""
    wrote = by_given_times(mpi, tmp_path, 2, f"1 3 {CHANGE} 12 3", 22)
    engines = {ENGINE, "aggregators:auto", "aggregators:2"}
    assert set(wrote[:14]) == {LIBRARY}
    assert set(wrote[15:]) <= engines


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_the_next_run_knows(mpi: Mpi, tmp_path: Path) -> None:
    first = series(auto(mpi, tmp_path, 2, "same", slow_ms=10))
    kept = tmp_path / "cache" / "ioweir" / "choices.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    text = kept.read_text()
    assert "ckpt" not in text
    assert "loop" not in text
    assert first["digest"] in text
    second = writers(series(auto(mpi, tmp_path, 2, "same", slow_ms=10, name="second")))
    assert sum(one["tried"] for one in second.values()) <= sum(one["tried"] for one in first["writers"])
    plan = (tmp_path / "second" / "plan.toml").read_text()
    assert f'known = ["{first["digest"]} ' in plan
    before = kept.read_bytes()
    auto(mpi, tmp_path, 2, "same", slow_ms=10, name="third", options=("--no-memory",))
    assert "known" not in (tmp_path / "third" / "plan.toml").read_text()
    assert kept.read_bytes() == before


@pytest.mark.one_of(2)
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_what_the_engine_writes_is_verified(mpi: Mpi, tmp_path: Path) -> None:
    traced = auto(mpi, tmp_path, 2, "same", slow_ms=10, options=("--verify",), code=74)
    verify = traced.report["plan"]["verify"]
    assert verify["mismatch"] == []
    assert verify["compared_bytes"] > 0
    assert {row["outcome"] for row in verify["left_out"]} == {"passed_through"}


def test_it_has_a_plan_of_its_own(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\n')
    assert (
        "--auto makes a plan of its own" in run([*IOWEIR, "run", "--auto", "--plan", plan, "--", "true"]).expect(2).err
    )


def test_batch_scripts_have_it_too(tmp_path: Path) -> None:
    said = json.loads(run([*IOWEIR, "env", "--auto", "--json", "-o", tmp_path / "trace"]).expect().out)
    assert said["ranks"]["IOWEIR_PLAN"] == str(tmp_path / "trace" / "plan.toml")
    assert 'choose = "auto"' in (tmp_path / "trace" / "plan.toml").read_text()
    assert said["script"]["IOWEIR_CHOOSE_SEED"].isdigit()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [1, 3, 5])
@pytest.mark.parametrize("slow_ms", [0, 3])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_portions_of_all_kinds_of_calls_arrive(mpi: Mpi, ranks: int, slow_ms: int, tmp_path: Path) -> None:
    """The program itself compares every number, status and pointer."""
    slow = build("slow_library.c", mpi.cc, "-shared", "-fPIC")
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nchoose = "auto"\nchoose_share = 1\n')
    for seed in range(1, 4):
        data = tmp_path / f"data-{seed}"
        data.mkdir()
        command = mpi.launch(
            ranks, "env", f"IOWEIR_CHOOSE_SEED={seed}", f"SLOW_MS={slow_ms}", build("portions.c", mpi.cc), data, "6"
        )
        words: list[str | Path] = [
            "env", f"LD_PRELOAD={slow}", *IOWEIR, "run", "-o", tmp_path / f"trace-{seed}", "--plan", plan, "--",
        ]  # fmt: skip
        finished = run([*words, *command]).expect()
        assert "all numbers are there" in finished.out
        assert mpi.name != "mpich" or "4 of 4 writes failed" in finished.out
        found = reader.read(tmp_path / f"trace-{seed}").chosen_files
        assert {one.words.split()[1] for one in found if one.step == "portion"} >= {"library", "everyone"}
