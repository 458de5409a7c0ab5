"""What the tests of the tracer share: compilers and launchers of both MPIs, running under ioweir, reading traces.

Lives here: plumbing. Not here: expectations (each test states its own figures).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import forked
import pytest
import zstandard
from ioweir.base import locate
from ioweir.base.compiled import compiled
from ioweir.base.spec_names import WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

HERE: Final = Path(__file__).resolve().parent
PROGRAMS: Final = HERE / "programs"
BUILD: Final = HERE.parent.parent / "build" / "trace-tests"
YIELDS: Final = HERE.parent / "mpi_cases" / "mpich_yields.c"
TIMEOUT_S: Final = 90.0
STUCK: Final = "it is stuck, and is ended"
"""What `ioweir run` says of a launcher that hangs."""
IOWEIR: Final = (sys.executable, "-m", "ioweir")
SANITIZER: Final = os.environ.get("IOWEIR_TEST_SANITIZER", "")
"""The run-time library of the sanitizer that the preload is built with (tools/sanitize.sh); it is preloaded first."""

_core: Final = compiled()
FUNCTIONS: Final[dict[int, dict[str, Any]]] = {row["id"]: row for row in _core.functions()}
NO_MPI_VARIABLES: Final = ("LD_PRELOAD", "IOWEIR_DIR", "IOWEIR_PLAN", "IOWEIR_VERIFY", "IOWEIR_DISABLE")


@dataclass(frozen=True)
class Mpi:
    """One MPI library: its compilers and its launcher."""

    name: str
    cc: str
    fortran: str
    launcher: tuple[str, ...]

    def launch(self, ranks: int, *command: str | Path) -> list[str]:
        """The command that starts `ranks` ranks."""
        words = [*self.launcher, "-n", str(ranks)]
        if SANITIZER:
            words += ["env", f"LD_PRELOAD={SANITIZER}:{preload_library()}"]
        return [*words, *map(str, command)]


OPEN_MPI: Final = Mpi(
    "openmpi", "mpicc.openmpi", "mpifort.openmpi", ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe")
)
MPICH: Final = Mpi("mpich", "mpicc.mpich", "mpifort.mpich", ("mpiexec.mpich",))
MPIS: Final = (OPEN_MPI, MPICH)


# ---------------------------------------------------------------------------------------------------------- building


def build(source: str, compiler: str, *flags: str, libraries: Sequence[str] = ()) -> Path:
    """Compile programs/`source`, once per compiler and flags; later sessions find what has not changed."""
    path = PROGRAMS / source
    libraries = [*libraries, *yielding(compiler, flags)]
    beside = {*PROGRAMS.glob("*.h"), *PROGRAMS.glob("*.inc"), *path.parent.glob("*.h")}
    headers = [header.read_bytes() for header in sorted(beside)]
    key = hashlib.sha256(
        b"\0".join([path.read_bytes(), *headers, compiler.encode(), *(f.encode() for f in (*flags, *libraries))])
    )
    target = BUILD / f"{path.stem}-{key.hexdigest()[:16]}"
    if target.exists():
        return target
    if shutil.which(compiler) is None:
        raise FileNotFoundError(f"{compiler} is not installed: `make deps` installs what the tests need")
    BUILD.mkdir(parents=True, exist_ok=True)
    scratch = target.with_suffix(f".{os.getpid()}")
    finished = subprocess.run(
        [compiler, "-g", *flags, "-o", str(scratch), str(path), *libraries],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=BUILD,
    )  # fmt: skip
    assert finished.returncode == 0, f"{compiler} {source}: {finished.stderr}"
    scratch.replace(target)
    return target


def yielding(compiler: str, flags: Sequence[str]) -> list[str]:
    """What makes a program of MPICH's give way while it waits: ranks outnumber processors, and would spin.

    Linked into it, for who preloads what is what many tests are about.
    """
    if compiler not in (MPICH.cc, MPICH.fortran) or not {"-shared", "-static", "-c"}.isdisjoint(flags):
        return []
    target = BUILD / f"{YIELDS.stem}-{hashlib.sha256(YIELDS.read_bytes()).hexdigest()[:16]}.o"
    if not target.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        scratch = target.with_suffix(f".{os.getpid()}.o")
        subprocess.run(["cc", "-O2", "-fPIC", "-D_GNU_SOURCE", "-c", "-o", str(scratch), str(YIELDS)], check=True)
        scratch.replace(target)
    return [str(target), "-Wl,--export-dynamic-symbol=ucp_worker_progress"]


def undefined_symbols(program: Path) -> set[str]:
    """The names that a program takes from libraries, without versions."""
    listing = subprocess.run(["nm", "-D", "--undefined-only", str(program)], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines() if line.strip()}


# ----------------------------------------------------------------------------------------------------------- running


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def expect(self, code: int = 0) -> Finished:
        """Itself, if it returned `code`."""
        assert self.code == code, f"returned {self.code}, not {code}\n{self.out}\n{self.err}"
        return self


def plain_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without anything of ioweir's."""
    clean = {name: value for name, value in os.environ.items() if name not in NO_MPI_VARIABLES}
    return clean | dict(extra or {})


def mount_tmpfs(place: Path, options: str) -> None:
    """A file system in memory at a new directory, with these mount options; the test is skipped where none may be."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(place)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"this machine does not allow mounting: {done.stderr.strip()}")


def session(number: int) -> str:
    """What the processes of a session are waiting for: a line for each."""
    lines = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (place / "stat").read_text().rpartition(")")
            state, parent, _, of_session = rest.split()[:4]
            if int(of_session) == number:
                words = (place / "cmdline").read_text().replace("\0", " ")
                lines.append(f"{name}) {state}, child of {parent}, in {(place / 'wchan').read_text()}: {words}")
        except OSError:  # it has ended meanwhile
            continue
    return "\n".join(lines)


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = TIMEOUT_S,
    started: Callable[[subprocess.Popen[str]], None] | None = None,
) -> Finished:
    """Run a command to its end, and end all that it started when it takes too long. `started` is called meanwhile."""
    words = [str(word) for word in command]
    environment = plain_environment(env)
    by_python = started is not None or SANITIZER
    with (forked.by_python if by_python else forked.begun)(words, environment, cwd) as process:
        try:
            if started is not None:
                assert isinstance(process, subprocess.Popen)
                started(process)
            out, err = process.communicate(timeout=timeout)
        except BaseException as problem:
            left = session(process.pid) if isinstance(problem, subprocess.TimeoutExpired) else ""
            # A launcher ends its ranks when asked politely; killed at once, it would leave them behind.
            process.terminate()
            try:
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            if isinstance(problem, subprocess.TimeoutExpired):
                raise AssertionError(f"{' '.join(words)}: not done after {timeout} s\n{out}\n{err}\n{left}") from None
            raise
    assert process.returncode is not None
    return Finished(process.returncode, out, err)


@dataclass(frozen=True)
class Traced(Finished):
    """A command that ran under `ioweir run`, or with the preload by hand, and its trace."""

    directory: Path = field(default_factory=Path)

    @cached_property
    def trace(self) -> Recorded:
        """What ioweir._core reads."""
        return Recorded.read(self.directory)

    @cached_property
    def report(self) -> dict[str, Any]:
        """What `ioweir report DIR --json` prints."""
        finished = run([*IOWEIR, "report", self.directory, "--json"]).expect()
        content = json.loads(finished.out)
        assert isinstance(content, dict)
        return content


def ioweir_run(
    directory: Path,
    command: Sequence[str | Path],
    *,
    options: Sequence[str | Path] = (),
    code: int | None = 0,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = TIMEOUT_S,
    started: Callable[[subprocess.Popen[str]], None] | None = None,
) -> Traced:
    """`ioweir run -q -o directory OPTIONS -- command`, which has to return `code` (None: any)."""
    finished = run(
        [*IOWEIR, "run", "-q", "-o", directory, *options, "--", *command],
        env=env,
        cwd=cwd,
        timeout=timeout,
        started=started,
    )
    if code is not None:
        if finished.code != code and STUCK in finished.err:
            pytest.skip(
                "Open MPI's launcher did not end after its ranks had, and its exit code is lost (ioweir.launch.stuck)"
            )
        finished.expect(code)
    return Traced(finished.code, finished.out, finished.err, directory)


def preload_library() -> Path:
    """The installed preload."""
    library = locate.preload_library()
    assert library is not None, "the preload is not installed: `make package`"
    return library


def preloaded(
    directory: Path,
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = TIMEOUT_S,
    before: Path | None = None,
    after: Path | None = None,
) -> Traced:
    """A command with the preload in its environment and no `ioweir run` around it; other libraries before or after."""
    libraries = [str(library) for library in (SANITIZER, before, preload_library(), after) if library]
    variables = {"LD_PRELOAD": ":".join(libraries), "IOWEIR_DIR": str(directory)} | dict(env or {})
    finished = run(command, env=variables, cwd=cwd, timeout=timeout)
    return Traced(finished.code, finished.out, finished.err, directory)


# ----------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Event:
    """One event with the names behind its numbers."""

    process: int
    rank: int
    thread: int
    seq: int
    parent: int
    name: str
    layer: str
    op: str
    origin: str
    failed: bool
    path: str
    start_ns: int
    duration_ns: int
    offset: int
    bytes: int
    error: int

    @property
    def end_ns(self) -> int:
        """When the call returned."""
        return self.start_ns + self.duration_ns


def node_files(directory: Path) -> list[Path]:
    """The nodes' files of a trace, in order; those that are compressed are expanded first, not by ioweir's reader."""
    for packed in directory.glob("node-*.iowt.zst"):
        plain = packed.with_suffix("")
        assert not plain.exists()
        plain.write_bytes(zstandard.ZstdDecompressor().decompress(packed.read_bytes()))
        packed.unlink()
    return sorted(directory.glob("node-*.iowt"))


Totals = dict[Any, tuple[int, int]]
"""Calls and bytes by some key."""


@dataclass(frozen=True)
class Recorded:
    """A trace as ioweir._core gives it."""

    events: tuple[Event, ...]
    waits: tuple[Event, ...]
    """Long calls of MPI outside of I/O: how many there are is the machine's business."""
    processes: tuple[dict[str, Any], ...]
    notes: tuple[dict[str, Any], ...]
    dropped: int
    disabled_processes: int
    damage: tuple[str, ...]

    @classmethod
    def read(cls, directory: Path) -> Recorded:
        """Read the node files of a directory."""
        trace = _core.read_traces([str(path) for path in node_files(directory)])
        columns = [
            getattr(trace, name).tolist()
            for name in (
                "process", "thread", "seq", "parent", "function", "origin", "flags", "path", "start_ns",
                "duration_ns", "offset", "bytes", "error",
            )
        ]  # fmt: skip
        processes, paths = trace.processes, trace.paths
        events = []
        for process, thread, seq, parent, function, origin, flags, path, start, duration, offset, count, error in zip(
            *columns, strict=True
        ):
            about = FUNCTIONS[function]
            events.append(
                Event(
                    process, processes[process]["rank"], thread, seq, parent, about["name"], about["layer"],
                    about["op"], _core.origin_names[origin], bool(flags & 1), paths[path], start, duration, offset,
                    count, error,
                )
            )  # fmt: skip
        return cls(
            tuple(event for event in events if event.layer != WAITING),
            tuple(event for event in events if event.layer == WAITING),
            tuple(processes), tuple(trace.notes), trace.dropped, trace.disabled_processes,
            tuple(trace.damage),
        )  # fmt: skip

    def of(self, path: Path | str) -> list[Event]:
        """The events of one file, in the order of their start."""
        return sorted((event for event in self.events if event.path == str(path)), key=lambda event: event.start_ns)

    def under(self, directory: Path) -> list[Event]:
        """The events of the files in a directory."""
        prefix = f"{directory}/"
        return [event for event in self.events if event.path.startswith(prefix)]

    def ranks(self) -> list[int]:
        """The ranks that were seen, sorted."""
        return sorted(process["rank"] for process in self.processes if process["rank"] >= 0)

    @cached_property
    def by_sequence(self) -> dict[tuple[int, int], Event]:
        """Every event by its thread and its number there."""
        table = {(event.thread, event.seq): event for event in (*self.events, *self.waits)}
        assert len(table) == len(self.events) + len(self.waits), "two events of one thread have the same number"
        return table

    def parent_of(self, event: Event) -> Event | None:
        """The call around an event."""
        return self.by_sequence[event.thread, event.parent] if event.parent else None

    def is_whole(self) -> bool:
        """Nothing was lost or damaged."""
        return self.dropped == 0 and self.disabled_processes == 0 and not self.damage


def totals(events: Iterable[Event], *key: str) -> Totals:
    """Calls and bytes of events by some of their attributes."""
    calls: Counter[Any] = Counter()
    moved: Counter[Any] = Counter()
    for event in events:
        at = tuple(getattr(event, name) for name in key) if len(key) > 1 else getattr(event, key[0])
        calls[at] += 1
        moved[at] += event.bytes
    return {at: (calls[at], moved[at]) for at in calls}


def report_of_file(report: Mapping[str, Any], path: Path | str) -> dict[str, Any]:
    """The layers of one file in a report."""
    rows = [row["layers"] for row in report["files"] if row["path"] == str(path)]
    assert len(rows) == 1, f"{path} stands {len(rows)} times in the report"
    layers = rows[0]
    assert isinstance(layers, dict)
    return layers
