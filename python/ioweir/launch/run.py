"""`ioweir run`: starts a program with the preload on its ranks only, waits for it, and says what the trace shows.

The command is prepared by a function of the words and the environment (`prepare`), so that it can be tested without
starting anything; how launchers are told apart and rewritten is launchers.py's.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import itertools
import os
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir import errors
from ioweir.base import json_text, locate, plain_text
from ioweir.base.guarded_files import Folder
from ioweir.base.locate import NODE_FILES, RUN_FILE
from ioweir.base.version import ioweir_version
from ioweir.errors import (
    EXIT_NOT_EXECUTABLE,
    EXIT_NOT_FOUND,
    EXIT_NOT_STARTED,
    EXIT_SIGNAL_BASE,
    EXIT_USAGE,
    EXIT_VERIFY,
    IoweirError,
)
from ioweir.launch import choices, clock, guardian, launchers, pnetcdf, shim, stuck, wrappers
from ioweir.launch.commands import find_command, refuse_queueing
from ioweir.launch.given_environment import given_environment
from ioweir.launch.tracing_options import VARIABLES, Tracing
from ioweir.plan.plan_check import check_plan
from ioweir.programs import sanitizers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ioweir.report.model import Report
    from ioweir.trace.reader import Trace

PLAN_FILE: Final = "plan.toml"
REPORT_FILE: Final = "report.json"
SHIM_DIRECTORY: Final = "shims"
# Set by ioweir run itself; a value from an outer ioweir run must not reach the program.
_OWN_VARIABLES: Final = ("IOWEIR_DIR", "IOWEIR_PLAN", "IOWEIR_VERIFY", choices.SEED, clock.VARIABLE, *VARIABLES)
# Should a thread swallow the child's end all the same, it is noticed after this time.
_LOOK_AGAIN_S: Final = 1.0
_LOOK_AT_LAUNCHER_S: Final = 5.0


@dataclass(frozen=True)
class Prepared:
    """What will be executed."""

    path: str
    words: tuple[str, ...]
    environment: dict[str, str]
    program: str
    launcher: str | None = None
    """Path of the launcher whose command was rewritten."""
    kind: launchers.Kind | None = None
    shims: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How the command ended."""

    wall_s: float
    exit_code: int | None = None
    signal: int | None = None

    @property
    def shell_code(self) -> int:
        """The exit code as a shell would give it."""
        return EXIT_SIGNAL_BASE + self.signal if self.signal else self.exit_code or 0


@dataclass(frozen=True)
class Options:
    """What the user asked of `ioweir run`."""

    output: Path | None = None
    plan: Path | None = None
    auto: bool = False
    """In the place of a plan: writers are chosen by what they take."""
    memory: bool = True
    """With `auto`: what earlier runs found is used, and what this one finds is kept."""
    verify: bool = False
    quiet: bool = False
    compress: bool = True
    """The trace, when the run has ended and all processes with it."""
    discard: bool = False
    """Of a run that ended well the trace is deleted."""
    guarded: bool = True
    """What is left of the command ends with it, also when this process is killed (guardian.py)."""
    tracing: Tracing = field(default_factory=Tracing)
    environment: Mapping[str, str] = field(default_factory=given_environment)


def require_preload() -> Path:
    """The library to preload, or an error that says where it was looked for."""
    library = locate.preload_library()
    if library is None:
        looked = ", ".join(str(directory) for directory in locate.candidate_directories())
        raise IoweirError(
            f"{locate.PRELOAD_LIBRARY} is not in {looked}: reinstall ioweir, or name its directory in "
            f"{locate.LIBRARY_DIRECTORY_VARIABLE}",
            EXIT_NOT_STARTED,
        )
    if any(character in str(library) for character in " :"):
        raise IoweirError(
            f"{library}: LD_PRELOAD cannot hold a path with a blank or a colon. Install ioweir elsewhere",
            EXIT_NOT_STARTED,
        )
    return library


# ------------------------------------------------------------------------------------------------------ preparation


def rank_variables(
    library: Path,
    directory: Path,
    plan: Path | None,
    verify: bool,
    tracing: Tracing,
    environment: Mapping[str, str],
) -> dict[str, str]:
    """What the preload on a rank reads, and with a plan what makes PnetCDF call MPI-IO."""
    variables = {launchers.PRELOAD: str(library), "IOWEIR_DIR": str(directory)}
    if plan is not None:
        variables["IOWEIR_PLAN"] = str(plan)
        variables |= pnetcdf.variables(environment)
    if verify:
        variables["IOWEIR_VERIFY"] = "1"
    return variables | tracing.variables()


def program_behind(words: Sequence[str]) -> tuple[str, ...]:
    """The words that start the program itself, behind wrappers and a launcher."""
    at = wrappers.unwrap(words)
    if launchers.find_launcher(words, at):
        path = shutil.which(words[at])
        known = (launchers.identify(path) if path else None) or launchers.OPEN_MPI_4
        context = launchers.parse(known, words[at:])[0]
        if context.program is None or launchers.programs_stand_in_a_file(context):
            return ()
        first, end = at + context.program, at + context.end
        return tuple(words[wrappers.unwrap(words[:end], first) : end])
    return tuple(words[at:])


def prepare(
    words: Sequence[str], variables: Mapping[str, str], environment: Mapping[str, str], shims: Path | None = None
) -> Prepared:
    """The command and environment with which the ranks, and no launcher, get `variables`.

    `shims` is where to put stand-ins for launchers that the command may call; None makes none.
    """
    base = {name: value for name, value in environment.items() if name not in _OWN_VARIABLES}
    path = find_command(words[0], base)
    behind = program_behind(words)
    program = wrappers.program_name(behind or words)
    # What the user set for the preload by hand goes to the ranks as well.
    passed = dict(variables) | {n: v for n, v in base.items() if n.startswith(shim.VARIABLE_PREFIX)}
    needed, notes = sanitizers.variables_for(words, base)
    passed |= needed
    at = wrappers.unwrap(words)
    launcher = shutil.which(words[at], path=base.get("PATH")) if launchers.find_launcher(words, at) else None
    if launcher is not None:
        known = launchers.identify(launcher)
        inner = words[at:]
        rewritten = (
            launchers.inherit(inner, passed, base) if known is None else launchers.rewrite(known, inner, passed, base)
        )
        return Prepared(
            path,
            (*words[:at], *rewritten.words),
            base | rewritten.environment,
            program,
            launcher,
            known.kind if known else None,
            warnings=(*rewritten.warnings, *notes),
        )
    library = variables[launchers.PRELOAD]
    direct = base | passed | {launchers.PRELOAD: launchers.join_preload(library, base.get(launchers.PRELOAD))}
    names: list[str] = []
    if shims is not None:
        search = base.get("PATH", os.defpath)
        names = shim.write_shims(shims, Path(library), search)
        if names:
            direct["PATH"] = f"{shims}{os.pathsep}{search}"
    return Prepared(path, tuple(words), direct, program, shims=tuple(names), warnings=notes)


def make_directory(output: Path | None, program: str, now: float, group: int | None = None) -> Path:
    """The trace directory: the one asked for, which must be empty, or a new one named by program and time.

    It is the user's alone, for what the ranks read there says which files they write; a group may be let read it.
    """
    try:
        directory = _new_directory(program, now) if output is None else _asked_directory(output)
        if group is not None:
            _share(directory, group)
    except OSError as error:
        raise IoweirError(
            f"trace directory {error.filename}: cannot be made: {error.strerror}. Name a writable place with -o",
            EXIT_NOT_STARTED,
        ) from error
    return directory.resolve()


def _new_directory(program: str, now: float) -> Path:
    stem = f"ioweir-{program}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"
    for number in itertools.count(1):
        directory = Path(stem if number == 1 else f"{stem}-{number}")
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            return directory
    raise AssertionError


def _asked_directory(output: Path) -> Path:
    with contextlib.suppress(FileExistsError):
        try:
            output.mkdir(mode=0o700)
        except FileNotFoundError:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.mkdir(mode=0o700)
    if not output.is_dir():
        raise IoweirError(f"-o {output}: is no directory; name a directory that is new or empty", EXIT_NOT_STARTED)
    with Folder.open(output) as folder:
        _require_empty(folder, output)  # before anything is changed: a link may have led to another place
        if folder.take_from_others():
            _say(f"-o {output}: others could write into it, and cannot any more (chmod go-w)")
        if why := folder.why_not_own():
            raise IoweirError(f"-o {output}: {why}; name a directory that is new or your own", EXIT_NOT_STARTED)
        folder.close_to_others()
        _require_empty(folder, output)
    return output


def _require_empty(folder: Folder, output: Path) -> None:
    if folder.names():
        raise IoweirError(
            f"-o {output}: is not empty, and traces are never mixed; name another or remove it", EXIT_NOT_STARTED
        )


def _share(directory: Path, group: int) -> None:
    """Looks again at what is there: in a folder that others may write into, the name may have got another meaning."""
    with Folder.open(directory, own=True) as folder:
        if folder.names():
            raise IoweirError(
                f"trace directory {directory}: something else has come to lie there; name a place into which nobody "
                "but you may write",
                EXIT_NOT_STARTED,
            )
        if not folder.let_group_read(group):
            _say(
                f"{directory}: this file system has no default ACLs; the group can read the trace unless the job's "
                "umask is 077"
            )


def write_json(path: Path, content: object) -> None:
    """Write a file of a trace so that a reader sees the old or the new one, never a part."""
    with Folder.open(path.parent, own=True) as folder:
        folder.write(path.name, "\n".join(json_text.lines(content)) + "\n")


# -------------------------------------------------------------------------------------------------------- execution


def execute(prepared: Prepared, server: clock.ClockServer | None = None, *, guarded: bool = True) -> Ended:
    """Start the command, hand signals on to it, wait for it.

    A signal goes to any thread that does not block it. numpy's libraries start threads when they are imported, so that
    this must be done before that, or they would swallow what is waited for here.
    """
    watched = guardian.FORWARDED | {signal.SIGCHLD}
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        begun = time.monotonic()
        child = _start(prepared, previous, guarded)  # before there are threads: it may fork
        if server is not None:
            # Started here, it blocks what is waited for below.
            threading.Thread(target=server.serve, daemon=True).start()
        watch, looked = stuck.Watch(child.process), begun
        while True:
            caught = signal.sigtimedwait(watched, _LOOK_AGAIN_S)
            if time.monotonic() - looked >= _LOOK_AT_LAUNCHER_S:
                looked = time.monotonic()
                for line in watch.end_stuck():
                    _say(line)
            if caught is None or caught.si_signo == signal.SIGCHLD:
                status = child.ended()
                if status is not None:
                    wall_s = time.monotonic() - begun
                    if os.WIFSIGNALED(status):
                        return Ended(wall_s, signal=os.WTERMSIG(status))
                    return Ended(wall_s, exit_code=os.WEXITSTATUS(status))
            elif caught.si_code != guardian.SI_KERNEL:
                # A terminal sends to the child as well: a second one would make launchers kill at once.
                child.hand_on(caught.si_signo)
    finally:
        if server is not None:
            server.stop()
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start(prepared: Prepared, mask: Iterable[int], guarded: bool) -> guardian.Started:
    def start(path: str, words: tuple[str, ...]) -> guardian.Started:
        return guardian.start(path, words, prepared.environment, mask, guarded=guarded)

    try:
        return start(prepared.path, prepared.words)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            # A script without #!: what every shell does with it.
            return start("/bin/sh", ("/bin/sh", prepared.path, *prepared.words[1:]))
        raise IoweirError(
            f"{prepared.words[0]}: cannot be started: {error.strerror}",
            EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE,
        ) from error


def run(words: Sequence[str], options: Options) -> int:
    """The whole of `ioweir run`; returns the exit code."""
    if not words:
        raise IoweirError("no command given: ioweir run [OPTIONS] -- CMD ...", EXIT_USAGE)
    if options.verify and options.plan is None and not options.auto:
        raise IoweirError(
            "--verify checks what ioweir's engine wrote, and without --plan it writes nothing: add --plan PLAN.toml",
            EXIT_USAGE,
        )
    find_command(words[0], options.environment)
    refuse_queueing(words)
    library = require_preload()
    plan_text = check_plan(options.plan, Path.cwd()) if options.plan is not None else None
    program = wrappers.program_name(program_behind(words) or words)
    if options.auto:
        plan_text = choices.plan_text(choices.known(program, options.environment) if options.memory else ())
    started = time.time()
    existed = options.output is not None and os.access(options.output, os.F_OK)
    anonymous = options.tracing.anonymise_key is not None
    directory = make_directory(options.output, "run" if anonymous else program, started, options.tracing.group)
    server = clock.start()
    try:
        plan_copy = copy_plan(plan_text, directory)
        variables = rank_variables(library, directory, plan_copy, options.verify, options.tracing, options.environment)
        if options.auto:
            variables |= choices.variables(options.environment)
        if server is not None:
            variables[clock.VARIABLE] = server.variable()
        prepared = prepare(words, variables, options.environment, directory / SHIM_DIRECTORY)
        for warning in prepared.warnings:
            _say(warning)
        content = _run_content(words, options, prepared, started)
        write_json(directory / RUN_FILE, content)
        ended = execute(prepared, server, guarded=options.guarded)
    except (IoweirError, OSError) as error:
        _clear(directory, existed)
        if isinstance(error, IoweirError):
            raise
        raise IoweirError(
            f"{error.filename or directory}: {error.strerror}; nothing was started", EXIT_NOT_STARTED
        ) from error
    try:
        _write_end(directory, content, ended, anonymous and plan_copy is not None)
    except OSError as error:
        # A full disk, or the program has removed it: its exit code is its own all the same.
        _say(f"the trace in {directory} is not finished: {error.strerror or error}")
    try:
        report = _first_report(directory, options)
        code = _conclude(directory, ended, options, report, program)
    except ImportError as error:
        # Somebody has removed ioweir, or is replacing it. The program's exit code is its own all the same.
        _say(
            f"the trace in {directory} is not reported: ioweir is not complete any more ({error}). "
            f"When it is installed again: ioweir report {shlex.quote(shown(directory))}"
        )
        report, code = None, EXIT_VERIFY if options.verify and ended.shell_code == 0 else ended.shell_code
    if options.discard:
        if code == 0 and report is not None:
            _discard(directory, existed)
            if not options.quiet:
                _say("the trace is deleted (--discard); commands named above need a run without that option")
        else:
            _say(f"the trace is kept for a look at what went wrong: `ioweir report {shlex.quote(shown(directory))}`")
    return code


def _clear(directory: Path, existed: bool) -> None:
    with contextlib.suppress(OSError):
        with Folder.open(directory, own=True) as folder:
            for name in folder.names():
                folder.remove_tree(name)
        if not existed:
            directory.rmdir()


def _discard(directory: Path, existed: bool) -> None:
    """Remove what ioweir has written there; what the program has put beside it stays."""
    own = (RUN_FILE, REPORT_FILE, PLAN_FILE, NODE_FILES, f"{NODE_FILES}.*", "node-*.sums.zst")
    with contextlib.suppress(OSError):
        with Folder.open(directory, own=True) as folder:
            for name in folder.names():
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in own):
                    folder.remove(name, missing_ok=True)
        if not existed:
            directory.rmdir()  # where the program has left nothing


def _write_end(directory: Path, content: dict[str, Any], ended: Ended, remove_plan: bool) -> None:
    with Folder.open(directory, own=True) as folder:
        folder.remove_tree(SHIM_DIRECTORY)
        nodes = sorted(name for name in folder.names() if fnmatch.fnmatch(name, NODE_FILES))
        if remove_plan:
            folder.remove(PLAN_FILE)  # its patterns are names of files
    content |= {
        "state": "ended",
        "ended": time.time(),
        "wall_s": ended.wall_s,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "nodes": nodes,
    }
    write_json(directory / RUN_FILE, content)


def copy_plan(text: str | None, directory: Path) -> Path | None:
    """The trace keeps its own copy of the plan, and the ranks read that: an edit during the run changes nothing."""
    if text is None:
        return None
    with Folder.open(directory, own=True) as folder:
        folder.write(PLAN_FILE, text)
    return directory / PLAN_FILE


def _run_content(words: Sequence[str], options: Options, prepared: Prepared, started: float) -> dict[str, Any]:
    names = {
        "command": list(words),
        "cwd": str(Path.cwd()),
        "program": prepared.program,
        "launcher": {"path": prepared.launcher, "kind": prepared.kind.value if prepared.kind else None},
        "executed": list(prepared.words),
        "shims": list(prepared.shims),
        "plan": str(options.plan) if options.plan else None,
    }
    if options.tracing.anonymise_key is not None:
        names = anonymous_names(names)
    return names | {
        "state": "running",
        "host": socket.gethostname(),
        "processors": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "verify": options.verify,
        "auto": options.auto,
        "tracing": options.tracing.described(),
        "ioweir_version": ioweir_version(),
        "started": started,
    }


def anonymous_names(names: Mapping[str, Any]) -> dict[str, Any]:
    """The part of run.json that names files, without the names."""
    launcher = names.get("launcher") or {}
    return {
        "command": [],
        "cwd": "",
        "program": "anonymous",
        "launcher": {"path": None, "kind": launcher.get("kind")},
        "executed": [],
        "shims": [],
        "plan": "anonymous" if names.get("plan") else None,
    }


def _conclude(directory: Path, ended: Ended, options: Options, report: Report | None, program: str = "") -> int:
    """Keep what was learnt, and judge a verification. The program's own code stays, unless it is 0 and bytes differ.

    `report`: none where the trace could not be read.
    """
    if options.auto and options.memory and program and report is not None:
        why = choices.remember(program, report.plan.chosen, options.environment)
        if why:
            _say(why)
    if not options.quiet and not options.discard:
        _say(f"trace in {directory} (`ioweir report {shlex.quote(str(directory))}` prints this again)")
    if not options.verify:
        return ended.shell_code
    # Loaded when the program has ended, as all that reports need.
    from ioweir.report import verification  # noqa: PLC0415

    problem = verification.complaint(report.plan.verify) if report else "verification: nothing is known of it"
    if problem is not None:
        _say(problem)
    return EXIT_VERIFY if problem is not None and ended.shell_code == 0 else ended.shell_code


def _first_report(directory: Path, options: Options) -> Report | None:
    anonymous = options.tracing.anonymise_key is not None
    # numpy starts threads: see execute
    from ioweir.report import figures, run_findings  # noqa: PLC0415
    from ioweir.trace.reader import load  # noqa: PLC0415

    try:
        is_compressed = _end_nodes(directory, options)
        trace = load(directory, sums_of_many=True)
        result = figures.build(trace, sys.stderr)
        found = run_findings.findings_of(trace, result)
        result.findings = found.findings
        # Where the directory lies now is a name like any other.
        write_json(directory / REPORT_FILE, replace(result, trace=directory.name) if anonymous else result)
    except (IoweirError, OSError, MemoryError) as error:
        _say(f"the trace cannot be reported: {errors.text(error) or 'there is not enough memory'}")
        return None
    if options.compress and not options.discard and not is_compressed:
        _compress(directory, trace)
    if not options.quiet:
        from ioweir.findings import text  # noqa: PLC0415
        from ioweir.report import report_text  # noqa: PLC0415

        for line in (*report_text.summary(result), "", *text.short(found, shown(directory))):
            plain_text.say(line)
    return result


def _end_nodes(directory: Path, options: Options) -> bool:
    """Add up what each of several nodes did; whether their files are compressed now."""
    with Folder.open(directory, own=True) as folder:
        names = sorted(name for name in folder.names() if fnmatch.fnmatch(name, NODE_FILES))
    if len(names) < 2:
        return False
    from ioweir.report import node_end  # noqa: PLC0415

    compress = options.compress and len(names) >= locate.MANY_NODES
    for why in node_end.end_nodes(directory, names, compress=compress):
        _say(f"no sums of {why}")
    return compress


def _compress(directory: Path, trace: Trace) -> None:
    """A trace that cannot be compressed is a trace all the same."""
    from ioweir.trace import compressed  # noqa: PLC0415

    try:
        compressed.compress_all(directory, trace)
    except OSError as error:
        _say(f"the trace is not compressed: {error}")


def shown(directory: Path) -> str:
    """A trace's name as a user types it: from here, where it lies below."""
    try:
        return str(directory.relative_to(Path.cwd()))
    except ValueError:
        return str(directory)


def _say(text: str) -> None:
    plain_text.say(f"ioweir: {text}")
