"""Runs one program without and with ioweir, and says whether both ended alike.

Alike: the same exit code, the same output once what differs between any two runs is taken out of it (times, rates,
addresses, process ids, the order of the ranks' lines), and the same files left behind. Some programs end differently
from run to run by themselves: when a pair differs, both sides are run again, and they are alike if any two agree. A
part (exit code, output, files) that varies untraced too is left out of the comparison, and the table says so.
With several ways of running under ioweir (plans), all are compared with the same runs without it.
Not here: which programs there are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import conformance_objects
from conformance_case import DATA
from conformance_plans import BY_STRIPES, LEFT_OUT, OTHER_BYTES, UNDEFINED_BYTES, has_stripes, without
from netcdf_header import MAGIC, without_gaps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance_case import Case

ATTEMPTS: Final = 3
POLITE_S: Final = 5.0
TIMED_OUT: Final = "time limit"
NOT_STARTED: Final = "127"
"""The exit code of shells, launchers and the dynamic loader for a program that is not there or lacks a library."""


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    code: str
    output: str
    files: tuple[str, ...]

    def passed(self) -> bool:
        """By exit code, and by what MPICH's programs print."""
        return self.code == "0" and "Found" not in self.output


@dataclass(frozen=True)
class Way:
    """One way of running under ioweir."""

    name: str
    options: tuple[str, ...]
    """Of `ioweir run`."""
    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same of programs that have some of their own."""


@dataclass(frozen=True)
class Moved:
    """What the engine did in a run: calls that it moved itself, exchanges among them, calls left to the library."""

    calls: int = 0
    exchanges: int = 0
    left: tuple[tuple[str, int], ...] = ()
    """By reason."""


@dataclass(frozen=True)
class Verdict:
    """Both endings of a case."""

    case: Case
    plain: Ending | None
    watched: Ending | None
    same: bool
    remark: str = ""
    way: str = ""
    moved: Moved = field(default_factory=Moved)


def judge(case: Case, scratch: Path, options: Sequence[str]) -> Verdict:
    """Run a case in one way until its endings agree, at most ATTEMPTS times each."""
    (verdict,) = judge_all(case, scratch, [Way("", tuple(options))])
    return verdict


def judge_all(case: Case, scratch: Path, ways: Sequence[Way]) -> list[Verdict]:
    """Run a case in each way until its ending agrees with one of those without ioweir, at most ATTEMPTS times each."""
    if case.not_run:
        return [Verdict(case, None, None, True, case.not_run, way.name) for way in ways]
    plain: list[Ending] = []
    if len(ways) > 1:
        plain.append(_run(case, scratch, None))
        if plain[0].code == TIMED_OUT:
            why = f"does not end within {case.limit_s:.0f} s by itself"
            return [Verdict(case, None, None, True, why, way.name) for way in ways]
    return [_judge_way(case, scratch, way, plain) for way in ways]


def _judge_way(case: Case, scratch: Path, way: Way, plain: list[Ending]) -> Verdict:
    """Compare what of a case is compared in this way; `plain` as of `_judge`."""
    program, _, test = case.name.partition(" ")
    left_out = LEFT_OUT.get(way.name, {}).get(program)
    if left_out and test:  # a program that runs one of its tests
        if test in left_out.reasons:
            return Verdict(case, None, None, True, left_out.reasons[test], way.name)
        left_out = None
    words, plain = (left_out.words(), []) if left_out else ((), plain)
    verdict = _judge(replace(case, command=(*case.command, *words)), scratch, way, plain)
    said = (left_out.remark() if left_out else "", without(way.name, case.name), verdict.remark)
    return replace(verdict, case=case, remark="; ".join(filter(None, said)))


def _judge(case: Case, scratch: Path, way: Way, plain: list[Ending]) -> Verdict:
    """`plain`: the runs without ioweir so far; more are added when they are needed."""
    watched: list[Ending] = []
    moved = Moved()
    objects = way.name in OTHER_BYTES
    if objects:
        plain = []
    options = way.own.get(case.name, way.options)
    for attempt in range(ATTEMPTS):
        if len(plain) <= attempt:
            plain.append(_run(case, scratch, None, objects=objects))
        watched.append(_run(case, scratch, options, objects=objects))
        moved = _moved(scratch / "trace")
        both = set(plain) & set(watched)
        if both:
            ending = both.pop()
            return Verdict(case, ending, ending, True, _unsteady(plain, watched), way.name, moved)
    told = BY_STRIPES.get(case.suite.split()[0], {}) if way.name and has_stripes(way.name) else {}
    if told:
        striped = _run(replace(case, environment={**told, **case.environment}), scratch, None)
        if striped in watched:
            said = " ".join(f"{name}={value}" for name, value in told.items())
            return Verdict(case, striped, striped, True, f"compared with a run that has {said}", way.name, moved)
    # No two are alike. A part that differs from run to run untraced too cannot be compared: the others can.
    wrong = [part for part in PARTS if not _agree(part, plain, watched)]
    remark = _difference(plain[-1], watched[-1]) if wrong else _unsteady(plain, watched)
    if wrong == ["files"] and way.name and case.name in UNDEFINED_BYTES:
        wrong, remark = [], UNDEFINED_BYTES[case.name]
    return Verdict(case, plain[-1], watched[-1], not wrong, remark, way.name, moved)


def _moved(trace: Path) -> Moved:
    """Of the run that has just ended; nothing where it left no report."""
    try:
        plan = json.loads((trace / "report.json").read_text(encoding="utf-8"))["plan"]
    except (OSError, ValueError):
        return Moved()
    left: Counter[str] = Counter()
    for row in plan["passed_through"]:
        left[row["text"]] += row["calls"]
    engine = plan["engine"]
    return Moved(
        sum(row["calls"] for row in engine), sum(row["exchanges"] for row in engine), tuple(sorted(left.items()))
    )


PARTS: Final = ("code", "output", "files")


def _agree(part: str, plain: Sequence[Ending], watched: Sequence[Ending]) -> bool:
    theirs = {getattr(ending, part) for ending in plain}
    return len(theirs) > 1 or bool(theirs & {getattr(ending, part) for ending in watched})


def _unsteady(plain: Sequence[Ending], watched: Sequence[Ending]) -> str:
    """What differed from run to run, in words."""
    apart = [part for part in PARTS if len({getattr(ending, part) for ending in plain}) > 1]
    if apart:
        return f"{' and '.join(apart)} not the same in {len(plain)} untraced runs"
    if len(watched) == 1:
        return ""
    return f"{len(watched)} pairs were run until two agreed; the first: {_difference(plain[0], watched[0])}"


def _difference(plain: Ending, watched: Ending) -> str:
    if plain.code != watched.code:
        return f"exit code {plain.code} untraced, {watched.code} traced"
    if plain.files != watched.files:
        return "other files: " + ", ".join(sorted(set(plain.files) ^ set(watched.files))[:4])
    lines = set(plain.output.splitlines()) ^ set(watched.output.splitlines())
    return "other output: " + " | ".join(sorted(lines)[:4])


def _run(case: Case, scratch: Path, options: Sequence[str] | None, *, objects: bool = False) -> Ending:
    """One run in an empty directory; `options` None: without ioweir. `objects`: what is in HDF5 files counts."""
    shutil.rmtree(scratch, ignore_errors=True)
    data, trace = scratch / "data", scratch / "trace"
    data.mkdir(parents=True)
    words = [word.replace(DATA, str(data)) for word in case.command]
    command = [*case.library.launcher, "-n", str(case.ranks), *words]
    if options is not None:
        command = [sys.executable, "-m", "ioweir", "run", "-q", "-o", str(trace), *options, "--", *command]
    own = {name: value.replace(DATA, str(data)) for name, value in case.environment.items()}
    environment = {**os.environ, **case.library.environment, **own}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", cwd=data, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate(timeout=case.limit_s)
            code = str(process.returncode)
        except subprocess.TimeoutExpired:
            output, code = _end(process), TIMED_OUT
        finally:
            _end_those_in(scratch)
    # What a run that was cut off has printed and written until then says nothing.
    if code == TIMED_OUT:
        return Ending(code, "", ())
    if options is not None:
        output += _merge_containers(data)
    return Ending(code, normalised(output, scratch), tuple(_files(data, objects=objects)))


def _merge_containers(directory: Path) -> str:
    """Makes ordinary files of those that a plan has divided. What went wrong, for the output to differ."""
    # The parts of a netCDF file whose arrays lie in subfiles may be containers themselves.
    return _merge_where(_is_container, directory) + _merge_where(_has_subfiles, directory)


def _is_container(path: Path) -> bool:
    copy_of_header_file = path.name == "about" and path.parent.name.startswith(".ioweir-")
    return not copy_of_header_file and path.read_bytes().startswith(b"ioweir container ")


def _has_subfiles(path: Path) -> bool:
    return path.with_name(f"{path.name}.subfile_0.nc").exists()


def _merge_where(divided: Callable[[Path], bool], directory: Path) -> str:
    wrong = ""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and divided(path):
            merged = subprocess.run(
                [sys.executable, "-m", "ioweir", "merge", str(path)], capture_output=True, text=True, check=False
            )
            wrong += merged.stderr if merged.returncode else ""
    return wrong


def _end(process: subprocess.Popen[str]) -> str:
    """A launcher ends its ranks when asked politely; killed at once it would leave them behind."""
    process.terminate()
    try:
        output, _ = process.communicate(timeout=POLITE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return str(output)


def _end_those_in(scratch: Path) -> None:
    """Ranks that outlived their launcher: they are known by their working directory, which is this run's own."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = Path(os.readlink(entry / "cwd")).is_relative_to(scratch)  # noqa: PTH115 (says "(deleted)" too)
        except OSError:
            continue
        if inside and int(entry.name) != os.getpid():
            os.kill(int(entry.name), signal.SIGKILL)


def _files(directory: Path, *, objects: bool = False) -> list[str]:
    """Names, sizes and contents of what is left."""
    found = []
    for path in sorted(directory.rglob("*")):
        if objects and path.is_file() and (listed := conformance_objects.checksum(path)):
            found.append(f"{path.relative_to(directory)} (HDF5, {listed})")
        elif path.is_file():
            digest = hashlib.sha256(_content(path)).hexdigest()[:16]
            found.append(f"{path.relative_to(directory)} ({path.stat().st_size} bytes, {digest})")
    return found


def _content(path: Path) -> bytes:
    """A file's bytes; of a netCDF file without those that belong to nothing."""
    data = path.read_bytes()
    try:
        return without_gaps(data) if data.startswith(MAGIC) else data
    except (ValueError, struct.error, KeyError, IndexError):
        return data  # one that was damaged on purpose


NOISE: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"\b\d+\.\d+(e[+-]?\d+)?\b"), "NUMBER"),
    (re.compile(r"\[[\w.-]+:\d+\]"), "[PROCESS]"),
    (re.compile(r"\bPID \d+"), "PID"),
    (re.compile(r"\[\[\d+,\d+\],\d+\]"), "[PROCESS]"),
    (re.compile(r"(?i)\b(\d+)( ?)(us|ms|s|sec|seconds|kb/s|mb/s|mbytes/s(ec)?)\b"), "NUMBER"),
    (re.compile(r"\s+"), " "),
)


NOT_APPLIED: Final = re.compile(
    r"ioweir: [^\n]*: (hdf5: collective_metadata: the file is not opened through MPI-IO|"
    r"hdf5: (alignment|page): the program's user block of [^\n]*|"
    r"hdf5: (libver|page): the program allows no formats newer than [^\n]*|"
    r"none of its arrays can be divided over subfiles; it is written as one file|"
    r"ranks have defined different things, and new arrays are not divided over subfiles; [^\n]*)\n"
)
"""What ioweir says of a file to which a part of the plan does not apply, in the midst of what the program says."""


BANNER: Final = re.compile(r"={20,}|MPI-process \d+\.|hostname=\S+|\d+:setup_rand: seed = \d+\.")
"""What every rank of HDF5's tests prints at once, in pieces that launchers mix within lines."""


def normalised(output: str, scratch: Path) -> str:
    """Output without what differs between any two runs; its lines sorted, because ranks print at the same time."""
    text = BANNER.sub("", NOT_APPLIED.sub("", output.replace(str(scratch), "SCRATCH")))
    lines = []
    for line in text.splitlines():
        kept = line
        for pattern, word in NOISE:
            kept = pattern.sub(word, kept)
        if kept.strip():
            lines.append(kept.strip())
    return "\n".join(sorted(lines))
