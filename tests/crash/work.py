"""One case: a job that is killed, and everything that is looked at afterwards.

Which cases there are: cases.py; the bytes: oracle.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import tracing
from cases import STEPS, Case, Kind, Victim
from ioweir.containers import unfinished
from oracle import Notes, content, is_one_of, violations
from processes import LIMIT_S, HangError, Job
from sets import built, left_over
from tracing import Finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oracle import Bytes

PROGRAMS: Final = Path(__file__).resolve().parent / "programs"
OTHERS: Final = re.compile("ioweir-lab-.*|ioweir-[a-z-]+-[A-Za-z0-9]{6}")
"""In /dev/shm: labs, and what the fuzz targets' C++ tests, which run beside these, have from mkdtemp()."""
OTHERS_BEGIN_S: Final = 10.0
"""So long at most a job's shared memory has a name, while its ranks meet."""
NEW, OLD, NEXT = 2, 1, 3
"""Seeds of what the killed job writes, of what was there before, and of what is written afterwards."""


@dataclass
class Outcome:
    """What became of a case."""

    killed: bool = False
    problems: list[str] = field(default_factory=list)


def program(case: Case) -> Path:
    """What writes."""
    if case.strategy.kind is Kind.NETCDF:
        return tracing.build(str(PROGRAMS / "netcdf_writer.c"), case.mpi.cc, libraries=["-lpnetcdf"])
    if case.strategy.kind is Kind.HDF5:
        include, library = f"-I/usr/include/hdf5/{case.mpi.name}", f"-lhdf5_{case.mpi.name}"
        return tracing.build(str(PROGRAMS / "hdf5_writer.c"), case.mpi.cc, include, libraries=[library])
    return tracing.build(str(PROGRAMS / "writer.c"), case.mpi.cc)


def nth_call() -> Path:
    """Kills a rank at a system call."""
    return tracing.build(str(PROGRAMS / "nth_call.c"), "cc", "-Wall", "-Wextra", "-Werror")


class Work:
    """The folder of a case: data of the program, targets, notes and traces."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self.problems: list[str] = []
        self.runs = 0
        targets = [folder / "t0", folder / "t1"]
        for target in targets:
            target.mkdir()
        self.targets = targets
        self.plan = folder / "plan.toml"
        rule = case.strategy.rule.replace("TARGETS", ", ".join(f'"{target}"' for target in targets))
        self.plan.write_text(f'[[file]]\nmatch = "*/data/*"\n{rule}\n')
        self.file = self.data / "file"
        if case.strategy.kind is Kind.NETCDF:
            self.file = self.data / "file.nc"

    # ------------------------------------------------------------------------------------------------------- running

    def start(
        self, ranks: int, words: Sequence[str | Path], before: Sequence[str | Path] = (), under: bool = True
    ) -> Job:
        """A job; `before`: between launcher and program."""
        self.runs += 1
        command = self.case.mpi.launch(ranks, *before, *words)
        if under:
            trace = self.folder / f"trace{self.runs}"
            command = [*tracing.IOWEIR, "run", "-q", "-o", str(trace), "--plan", str(self.plan), "--", *command]
        return Job(uuid.uuid4().hex, command, self.folder / f"said{self.runs}")

    def must_run(self, what: str, ranks: int, words: Sequence[str | Path], under: bool = True) -> bool:
        """A job that nobody kills."""
        job = self.start(ranks, words, under=under)
        code = job.end()
        if job.stuck or tracing.STUCK in job.said():
            return True  # its exit code is lost; what it wrote is looked at
        if code != 0:
            self.problems.append(f"{what}: exit code {code}: {job.said()[-600:]}")
        return code == 0

    def ioweir(self, *words: str | Path) -> Finished:
        """A command of ioweir's; one that says a traceback, or hangs, is a finding."""
        done = tracing.run([*tracing.IOWEIR, *words], timeout=LIMIT_S)
        if "Traceback" in done.err:
            self.problems.append(f"ioweir {' '.join(map(str, words))}: {done.err[-600:]}")
        return done

    def rows(self, command: str, path: Path) -> list[dict[str, Any]]:
        """What ls, check or gc say as JSON."""
        done = self.ioweir(command, path, "--json")
        try:
            rows = json.loads(done.out)
        except ValueError:
            self.problems.append(
                f"ioweir {command}: no JSON, exit code {done.code}: {done.out[-200:]} {done.err[-400:]}"
            )
            return []
        assert isinstance(rows, list)
        return rows

    # ------------------------------------------------------------------------------------------------------- killing

    def kill(
        self, words: Sequence[str | Path], notes: Path | None, expected: int, under: bool = True
    ) -> tuple[bool, int]:
        """Runs a job and kills what the case says. Whether it was there to be killed; the command's exit code."""
        case = self.case
        if case.victim is Victim.CALL:
            job = self.start(case.ranks, words, (nth_call(), str(case.rank), str(case.call)), under)
            code = job.end()
            return code != 0, code
        job = self.start(case.ranks, words, under=under)
        wanted = int(case.moment * expected)
        last = time.monotonic() + LIMIT_S
        seen = 0.0
        while not job.has_ended() and time.monotonic() < last:
            if notes is None:
                # By time, since its ranks were first seen.
                if not seen and job.ranks(Path(str(words[0]))):
                    seen = time.monotonic()
                if seen and time.monotonic() - seen > case.moment * 0.5:
                    break
            elif Notes.read(notes, case.ranks).lines >= wanted:
                break
            time.sleep(0.001)
        time.sleep(case.delay_s)
        killed = self._strike(job, Path(str(words[0])))
        return killed, job.end()

    def _strike(self, job: Job, of: Path) -> bool:
        case = self.case
        if case.victim is Victim.RUN:
            if job.has_ended():
                return False
            job.process.kill()
            return True
        victims = job.launchers() if case.victim is Victim.LAUNCHER else job.ranks(of)
        if case.victim is Victim.RANK:
            victims = victims[case.rank : case.rank + 1]
        return sum(victim.kill() for victim in victims) > 0

    # -------------------------------------------------------------------------------------------------- what is left

    def clean_up(self) -> None:
        """`gc` removes what nobody needs, and then nothing of ioweir's is left but traces.

        A directory that a job has begun to make stays for a minute, which has gone by.
        """
        for directory in self.data.glob(".ioweir-*"):
            if directory.is_dir():
                os.utime(directory, (0, 0))
        done = self.ioweir("gc", self.folder, "--yes")
        if done.code != 0:
            self.problems.append(f"gc: exit code {done.code}: {done.out[-300:]} {done.err[-300:]}")
        left = [
            path
            for path in (*self.data.rglob("*"), *(p for t in self.targets for p in t.rglob("*")))
            if "ioweir" in path.name
        ]
        if left:
            self.problems.append(f"left after gc: {', '.join(path.name for path in left[:5])}")

    def no_memory_left(self, before: set[str]) -> None:
        """Nothing of ioweir's stays in /dev/shm. Jobs of other tests have names there for a moment while they begin."""
        until = time.monotonic() + OTHERS_BEGIN_S
        left = {name for name in shared_memory() - before if "ioweir" in name and not OTHERS.fullmatch(name)}
        while left and time.monotonic() < until:
            time.sleep(0.05)
            left &= shared_memory()
        if left:
            self.problems.append(f"left in /dev/shm: {sorted(left)[:5]}")

    def report(self) -> None:
        """The trace of the killed job can be read, or is said to be damaged."""
        trace = self.folder / f"trace{self.runs}"
        if trace.exists():
            self.ioweir("report", trace)


def shared_memory() -> set[str]:
    """Files in /dev/shm. Not folders, in which tests beside this one work, nor states of labs: no job makes any.

    Nor Open MPI's semaphores, which have the names of files, and which killed jobs leave.
    """
    with os.scandir("/dev/shm") as there:
        return {entry.name for entry in there if entry.is_file() and not entry.name.startswith(("ioweir-lab-", "sem."))}


# ----------------------------------------------------------------------------------------------------------- MPI-IO


def _is_container(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(17) == b"ioweir container "


def _read(work: Work, what: str) -> Bytes | None:
    """All bytes, through a new job."""
    out = work.folder / f"out{work.runs}"
    if not work.must_run(what, min(2, work.case.ranks), [program(work.case), "read", work.file, out]):
        return None
    return np.fromfile(out, dtype=np.uint8)


def _check_container(work: Work, found: Bytes, notes: Notes) -> None:
    """What `check` and `merge` say of what a killed job has left."""
    case = work.case
    rows = work.rows("check", work.file)
    whole = bool(rows) and not rows[0]["problems"]
    before = [OLD] if case.overwrites else []
    # Whole: what a job has closed, or what was there before it began.
    if whole and len(found) > 0 and not is_one_of(found, [NEW, *before], case.ranks, STEPS):
        work.problems.append("check says that a file is whole whose job was killed before all was written")
    if len(notes.closed) == case.ranks and not whole:
        work.problems.append(f"check says that a file is not whole which all ranks have closed: {rows}")
    merged = work.folder / "merged"
    done = work.ioweir("merge", work.file, "-o", merged)
    if done.code == 0 and not np.array_equal(np.fromfile(merged, dtype=np.uint8), found):
        work.problems.append("merge gives other bytes than reading")
    if done.code != 0 and whole:
        work.problems.append(f"merge of a whole file: exit code {done.code}: {done.err[-300:]}")
    if done.code != 0 and merged.exists():
        work.problems.append("merge has failed and left an output")


def _of_mpi_io(work: Work) -> bool:
    case = work.case
    writer = program(case)
    if case.overwrites:
        work.must_run(
            "the earlier job", case.ranks, [writer, "write", work.file, work.folder / "notes0", str(STEPS), str(OLD)]
        )
    notes_path = work.folder / "notes1"
    expected = case.ranks * (3 + STEPS + STEPS // 2)
    killed, _ = work.kill([writer, "write", work.file, notes_path, str(STEPS), str(NEW)], notes_path, expected)
    work.report()
    notes = Notes.read(notes_path, case.ranks)
    if work.file.exists():
        found = _read(work, "reading what a killed job has left")
        if found is not None:
            work.problems += violations(found, notes, NEW, OLD if case.overwrites else None, case.ranks, STEPS)
            if _is_container(work.file):
                _check_container(work, found, notes)
    elif notes.opened:
        work.problems.append("the file is not there, though a rank has opened it")
    if work.must_run(
        "the next job", case.ranks, [writer, "write", work.file, work.folder / "notes2", str(STEPS), str(NEXT)]
    ):
        found = _read(work, "reading what the next job has written")
        if found is not None and not np.array_equal(found, content(NEXT, case.ranks, STEPS)):
            work.problems.append("the next job's bytes are not there")
        if _is_container(work.file):
            rows = work.rows("check", work.file)
            if rows and rows[0]["problems"]:
                work.problems.append(f"not whole after a new job has overwritten and closed it: {rows[0]['problems']}")
            done = work.ioweir("merge", work.file)
            if done.code != 0 or not np.array_equal(
                np.fromfile(work.file, dtype=np.uint8), content(NEXT, case.ranks, STEPS)
            ):
                work.problems.append(f"merge in its place: exit code {done.code}: {done.err[-300:]}")
    work.clean_up()
    return killed


# ----------------------------------------------------------------------------------------------------------- netCDF


def _of_netcdf(work: Work) -> bool:
    case = work.case
    writer = program(case)
    if case.overwrites:
        work.must_run(
            "the earlier job", case.ranks, [writer, "write", work.file, work.folder / "notes0", str(STEPS), str(OLD)]
        )
    notes_path = work.folder / "notes1"
    expected = case.ranks * (3 + STEPS + STEPS // 2)
    killed, _ = work.kill([writer, "write", work.file, notes_path, str(STEPS), str(NEW)], notes_path, expected)
    notes = Notes.read(notes_path, case.ranks)
    synced = min((notes.synced.get(rank, -1) for rank in range(case.ranks)), default=-1) + 1
    closed = len(notes.closed) == case.ranks
    if synced or closed:
        steps = str(STEPS if closed else synced)
        work.must_run("reading what was synced", min(2, case.ranks), [writer, "check", work.file, steps, str(NEW)])
    if work.file.exists():
        done = work.ioweir("check", work.file)
        if closed and done.code != 0:
            work.problems.append(f"check of a file that was closed: exit code {done.code}: {done.out[-400:]}")
        if done.code == 0 and killed and not closed and notes.opened:
            work.problems.append(f"check says that a file is whole whose job was killed: {done.out[-400:]}")
    if work.must_run(
        "the next job", case.ranks, [writer, "write", work.file, work.folder / "notes2", str(STEPS), str(NEXT)]
    ):
        work.must_run("reading the next job's", 1, [writer, "check", work.file, str(STEPS), str(NEXT)])
        done = work.ioweir("check", work.file)
        if done.code != 0:
            work.problems.append(f"not whole after a new job has written it: {done.out[-400:]}")
        done = work.ioweir("merge", work.file)
        if done.code != 0:
            work.problems.append(f"merge in its place: exit code {done.code}: {done.err[-300:]}")
        work.must_run(
            "reading the merged file without ioweir",
            1,
            [writer, "check", work.file, str(STEPS), str(NEXT)],
            under=False,
        )
        left = sorted(path.name for path in work.data.iterdir() if path != work.file)
        if left:
            work.problems.append(f"left beside the merged file: {left}")
    work.clean_up()
    return killed


# ----------------------------------------------------------------------------------------------------------- HDF5


def _of_hdf5(work: Work) -> bool:
    case = work.case
    writer = program(case)
    notes_path = work.folder / "notes1"
    killed, _ = work.kill(
        [writer, "write", work.file, notes_path, str(STEPS), str(NEW)], notes_path, case.ranks * (1 + STEPS)
    )
    notes = Notes.read(notes_path, case.ranks)
    of_all = set.intersection(*(notes.closed_steps.get(rank, set()) for rank in range(case.ranks)))
    # The last ones are those that may be hurt.
    for step in sorted(of_all)[-2:]:
        words: list[str | Path] = [writer, "check", work.file, str(step), str(NEW)]
        work.must_run(f"reading file {step}", min(2, case.ranks), words)
        work.must_run(f"reading file {step} without ioweir", 1, words, under=False)
        done = work.ioweir("check", f"{work.file}.{step}.h5")
        if done.code != 0:
            work.problems.append(f"check of a file that was closed: exit code {done.code}: {done.out[-300:]}")
    if work.must_run("the next job", case.ranks, [writer, "write", work.file, work.folder / "notes2", "2", str(NEXT)]):
        work.must_run("reading the next job's", 1, [writer, "check", work.file, "1", str(NEXT)], under=False)
    return killed


# ----------------------------------------------------------------------------------------------------------- sets


def _of_sets(work: Work) -> bool:
    case = work.case
    sets = built(case.mpi)
    kind, number, *more = case.strategy.rule.split()
    base = str(work.data / "restart")

    def words(step: int) -> list[str | Path]:
        if kind == "write":
            return [sets.path, "write", base, str(step), number, "2", *more]
        return [sets.path, "hand", base, str(step), str(step), "1", "2", number, *more]

    def last_step() -> int:
        job = work.start(2, [sets.path, "read", base, "-1"], under=False)
        code = job.end()
        found = re.findall(r"read step (\d+) of", job.said())
        if code != 0 or len(set(found)) != 1 or job.said().count("0 wrong") != 2:
            work.problems.append(f"reading the last set: exit code {code}: {job.said()[-400:]}")
            return -1
        return int(found[0])

    work.must_run("the earlier job", case.ranks, words(10), under=False)
    killed, code = work.kill(words(11), None, 0, under=False)
    step = last_step()
    if step not in (10, 11) or (code == 0 and step != 11):
        work.problems.append(f"the last set is step {step}, and writing step 11 ended with exit code {code}")
    for row in unfinished.unfinished(work.data, time.time() + 2 * unfinished.QUIET_S):
        if not row["problem"]:
            unfinished.remove(work.data, row)
    if last_step() != step:
        work.problems.append("removing what is unfinished has removed a set")
    for name in left_over(base):
        path = work.data / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    work.must_run("the next job", case.ranks, words(12), under=False)
    if last_step() != 12:
        work.problems.append("the next job's set is not the last one")
    return killed


WORK: Final = {Kind.MPI_IO: _of_mpi_io, Kind.NETCDF: _of_netcdf, Kind.HDF5: _of_hdf5, Kind.SETS: _of_sets}


def run_case(case: Case, folder: Path) -> Outcome:
    """Carries out a case in a new folder, which stays only where something was found."""
    before = shared_memory()
    work = Work(case, folder)
    outcome = Outcome()
    try:
        outcome.killed = WORK[case.strategy.kind](work)
        work.no_memory_left(before)
    except HangError as hang:
        work.problems.append(str(hang))
    except subprocess.SubprocessError as problem:
        work.problems.append(repr(problem))
    except AssertionError as problem:  # of tracing.run(): a command that takes too long
        work.problems.append(str(problem))
    outcome.problems = work.problems
    if not work.problems:
        shutil.rmtree(folder)
    return outcome
