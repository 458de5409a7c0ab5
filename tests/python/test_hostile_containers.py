"""Containers, divided netCDF files and labs in which somebody has replaced a file.

Each file in turn by each of hostile.ATTACKS, under each command that takes such a thing (hostile_cases.py): in the
user's own tree, and as root in the tree of user nobody. Programs that open such files through MPI-IO and PnetCDF under
`ioweir run`, too; they are started one by one, so that `make test` tries few.
What does not live here: what the commands say (the container's own tests, src/container/hostile_test.cpp).
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import hostile
import pytest
from hostile_cases import EVERY, Words, command, try_all
from ioweir.base.guarded_files import own_folder
from ioweir.targets import lab
from netcdf_subfiling import launch
from tracing import MPIS, OPEN_MPI, Mpi, build, ioweir_run

BYTES: Final = 9_000
RANKS: Final = 2
LONG_AGO: Final = 1_000_000_000
MAPPINGS: Final = {
    "groups": 'mapping = "grouped:2"\n',
    "log": 'mapping = "log"\n',
    "subfiles": 'mapping = "subfiles:3"\n',
    "log on targets": 'mapping = "log"\ntargets = [{targets}]\n',
    "subfiles on targets": 'mapping = "subfiles:3"\ntargets = [{targets}]\n',
}
NETCDF: Final = {
    "netCDF": "netcdf = {{ subfiles = 2 }}\n",
    "netCDF on targets": "targets = [{targets}]\nnetcdf = {{ subfiles = 2 }}\n",
}
OWNERS: Final = ("own", "nobody's", "nobody's in a sticky folder")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root looks at the files of others here")


def plan(place: Path, kind: str) -> Path:
    """Beside the tree, so that it is not replaced."""
    targets = ", ".join(f'"{place / name}"' for name in ("t0", "t1"))
    path = place.parent / "plan.toml"
    path.write_text('[[file]]\nmatch = "*file*"\n' + (MAPPINGS | NETCDF)[kind].format(targets=targets))
    return path


def file_of(kind: str) -> str:
    return "file.nc" if kind in NETCDF else "file"


def job(kind: str, place: Path, *words: str, mpi: Mpi = OPEN_MPI) -> list[str]:
    """The command line of a program that writes the file."""
    file = str(place / file_of(kind))
    if kind in NETCDF:
        return launch("netcdf_full.c", RANKS, file, 1, *words)
    return mpi.launch(RANKS, build("overwritten.c", mpi.cc, "-Wall"), file, "0", str(BYTES), "x", *words)


def make(kind: str, place: Path, *words: str) -> None:
    """A file of this kind; of a job that dies, with `die` among the words."""
    for name in ("t0", "t1"):
        (place / name).mkdir(parents=True)
    options: list[str | Path] = ["--plan", plan(place, kind)]
    trace = place.parent / "trace"
    ioweir_run(trace, job(kind, place, *words), options=options, cwd=place, code=None if "die" in words else 0)


def age(place: Path) -> None:
    """What has changed within the last hour is taken to be in use."""
    for path in [*place.rglob("*"), place]:
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def kept(name: str, place: Path, whose: str) -> hostile.Subject:
    if whose == OWNERS[0]:
        return hostile.Subject.keep(name, place)
    place.parent.chmod(0o1777)
    return hostile.Subject.keep(f"{name}, {whose}", place, hostile.NOBODY, sticky=whose == OWNERS[2])


def commands_of(place: Path, file: str) -> list[Words]:
    path = place / file
    return [
        ("check", path), ("ls", path, "--json"), ("merge", path), ("merge", path, "-o", place / "other"),
        ("gc", place, "--yes"),
    ]  # fmt: skip


def more_commands_of(place: Path, file: str) -> list[Words]:
    """The same work, said or begun in another way: for one kind of each family."""
    path = place / file
    return [("check", path, "--json"), ("ls", path), ("merge", path, "--unfinished"), ("gc", place)]


# Of nobody's trees some kinds: what differs there is who may be believed, not what is looked at.
THINGS: Final = [
    *((kind, OWNERS[0]) for kind in (*MAPPINGS, *NETCDF)),
    *((kind, OWNERS[1]) for kind in ("groups", "log on targets", "subfiles", "netCDF on targets")),
    *((kind, OWNERS[2]) for kind in ("log", "netCDF")),
]
FEW_THINGS: Final = [("groups", OWNERS[0]), ("subfiles on targets", OWNERS[0]), ("netCDF on targets", OWNERS[1])]
LEFT: Final = [
    *((kind, OWNERS[0]) for kind in ("log on targets", "groups", "netCDF")),
    *((kind, OWNERS[1]) for kind in ("log", "netCDF")),
]
FEW_LEFT: Final = [("log on targets", OWNERS[1]), ("netCDF", OWNERS[0])]


def marked(chosen: list[tuple[str, str]]) -> list[object]:
    return [pytest.param(*case, marks=() if case[1] == OWNERS[0] else needs_root, id="-".join(case)) for case in chosen]


def expect_whole(subject: hostile.Subject, file: str, log: Path) -> None:
    """Before anything is replaced: else every command would refuse at once, and nothing be tried."""
    subject.restore()
    outcome = hostile.run(command("check", subject.place / file), log)
    assert outcome.code == 0, outcome.text


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("kind", "whose"), marked(THINGS if EVERY else FEW_THINGS))
def test_files_in_several(kind: str, whose: str, tmp_path: Path) -> None:
    place = tmp_path / "shared" / "place"
    make(kind, place)
    subject = kept(kind, place, whose)
    if whose != OWNERS[2]:  # there nobody's parts are not believed
        expect_whole(subject, file_of(kind), tmp_path / "log")
    more = ("other", f"{file_of(kind)}.ioweir-logical", f"{file_of(kind)}.ioweir-merging", ".ioweir-targets.toml")
    commands = commands_of(place, file_of(kind))
    if kind in ("groups", "netCDF") and whose == OWNERS[0]:
        commands += more_commands_of(place, file_of(kind))
    assert try_all(subject, commands, tmp_path, more, sample=3) >= 2


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("kind", "whose"), marked(LEFT if EVERY else FEW_LEFT))
def test_what_jobs_that_died_and_removals_have_left(kind: str, whose: str, tmp_path: Path) -> None:
    place = tmp_path / "shared" / "place"
    make(kind, place, *(["sync"] if kind in MAPPINGS else []), "die")
    orphan = place / "orphan"
    make(kind, orphan)
    (orphan / file_of(kind)).unlink()
    age(place)
    subject = kept(f"{kind}, left by jobs", place, whose)
    commands = [*commands_of(place, file_of(kind)), ("merge", place / file_of(kind), "--unfinished")]
    assert try_all(subject, commands, tmp_path, sample=3) >= 2


@pytest.mark.parametrize("whose", OWNERS[:2] if EVERY else OWNERS[:1])
def test_labs(whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    (place / "memory").mkdir(parents=True)
    monkeypatch.setattr(lab, "MEMORY", place / "memory")
    monkeypatch.setattr(lab, "runtime_folder", lambda: own_folder(place / "run"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    folder, name = place / "lab", ("--name", "hostile")
    up = ("lab", "up", "--kind", "bucket", "--targets", "2", *name, "--directory", folder)
    probe = ("probe", folder, "--size", "64KiB", "--repeats", "1", "--confirm", "0", "--cache", "10m")
    for words in (up, probe):
        outcome = hostile.run(command(*words), tmp_path / "log")
        assert outcome.code == 0, outcome.text
    (folder / "t0" / "data").write_text("of a program")
    subject = kept("lab", place, whose)
    commands: list[Words] = [
        ("lab", "status", *name), ("lab", "status", *name, "--json"), ("lab", "status", "--directory", folder),
        ("lab", "slow", "0", "1/2", *name), ("lab", "slow", "1", "full", "--directory", folder),
        ("lab", "down", *name), ("lab", "down", "--force", "--directory", folder),
        ("lab", "run", *name, "--", "true"), up, probe, (*probe, "--plot", place / "plot.svg"),
    ]  # fmt: skip
    more = ("plot.svg", "run/labs/lock", "lab/plot")
    # /dev/shm, and folders of the user's own which may well be links.
    but = ("memory", "cache", "cache/ioweir")
    assert try_all(subject, commands, tmp_path, more, sample=3, but=but) >= 2


# ------------------------------------------------------------------------------------------------- traced programs


def programs_of(kind: str, place: Path) -> list[list[str]]:
    """One that writes the file anew, one that writes over a part of it, one that reads it."""
    file = str(place / file_of(kind))
    if kind in NETCDF:
        return [job(kind, place), *(launch("netcdf_full.c", RANKS, file, 1, how) for how in ("again", "read"))]
    return [job(kind, place, mpi=mpi) for mpi in MPIS] + [
        MPIS[0].launch(RANKS, build("overwritten.c", MPIS[0].cc, "-Wall"), file, "0", "100", "y"),
        ["cat", file], ["rm", "-f", file], ["mv", file, f"{file}.moved"],
    ]  # fmt: skip


def program_cases(kind: str, subject: hostile.Subject) -> list[tuple[Path, str, list[str]]]:
    # What the program itself names it opens as without ioweir, pipes and links too.
    names = [path for path in subject.paths() if str(path) != file_of(kind)]
    more = [Path(f"{file_of(kind)}.ioweir-logical")] if kind in NETCDF else []
    every = [
        (path, attack, words)
        for path in [*more, *names]
        for attack in hostile.ATTACKS
        for words in programs_of(kind, subject.place)
    ]
    # Each starts a job: about a hundred of many.
    return every[:: max(1, len(every) // (100 if EVERY else 3) | 1)]


def try_programs(kind: str, subject: hostile.Subject, tmp_path: Path) -> int:
    found, tried = [], 0
    options: list[str | Path] = ["--plan", plan(subject.place, kind)]
    for path, attack, words in program_cases(kind, subject):
        try:
            with hostile.spoil(subject, path, attack, tmp_path / "outside") as outside:
                tried += 1
                why = judged(words, options, subject, tmp_path / f"trace{tried}")
                if why := why or ", ".join([*outside.touched, *subject.leaks()]):
                    found.append(f"{path}: {attack}: {' '.join(words)}: {why}")
        except hostile.ImpossibleError:
            continue
    print("\n".join([*found, f"programs, {subject.name}: {tried} combinations, {len(found)} found"]), flush=True)
    assert not found, "\n".join(found)
    return tried


def judged(words: list[str], options: list[str | Path], subject: hostile.Subject, trace: Path) -> str:
    """What is wrong with how a program under ioweir ended, which may fail, of course; empty: nothing."""
    started = time.monotonic()
    try:
        done = ioweir_run(
            trace, words, options=options, cwd=subject.place.parent, code=None, timeout=hostile.WALL_SECONDS
        )
    except AssertionError as problem:
        return f"not done after {time.monotonic() - started:.0f} s: {str(problem)[-800:]}"
    signals = {128 + number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)}
    crashed = done.code in signals or "Segmentation fault" in done.err
    return f"exit code {done.code}: {done.err[-800:]}" if crashed else ""


@pytest.mark.one_of(4)
@pytest.mark.parametrize("whose", OWNERS[:2])
@pytest.mark.parametrize("kind", ["log on targets", "subfiles", "netCDF"] if EVERY else ["log", "netCDF"])
def test_programs_that_open_them(kind: str, whose: str, tmp_path: Path) -> None:
    if whose != OWNERS[0] and (os.geteuid() != 0 or not EVERY):
        pytest.skip("root opens the files of others, in the long run")
    place = tmp_path / "shared" / "place"
    make(kind, place)
    subject = kept(kind, place, whose)
    assert try_programs(kind, subject, tmp_path) >= 2
