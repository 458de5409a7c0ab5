"""`ioweir replay`: carries a trace's I/O out again, in a new folder, with a plan or without; says how long it took."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import plain_text, processes, units
from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.base.new_folder import require_empty, require_writable, whole_folder
from ioweir.containers import container
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.launch import forwarding
from ioweir.launch import kernel as kernels
from ioweir.plan.plan_check import check_plan
from ioweir.replay import from_trace, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioweir.replay.model import Recorded

KEEP: Final = "keep"
DROP: Final = "drop"
RUNNER: Final = "replay_runner"
DEFAULT_MEMORY: Final = 1 << 30
_BYTES_OF_TURNS: Final = 2 << 30


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    trace: Path
    directory: Path = Path()
    plan: Path | None = None
    output: Path | None = None
    """Of the trace of the replay."""
    ranks: int | None = None
    think: str = KEEP
    mpi: str | None = None
    seed: int = 1
    memory: int = DEFAULT_MEMORY
    """Bytes of a call's data on a rank."""
    hints: tuple[str, ...] = ()
    keep: bool = False
    """The files, afterwards."""
    also: tuple[Path, ...] = ()
    """Traces of the program on other numbers of ranks."""
    script: Path | None = None
    """Where to write the scripts, instead of running them."""


def think_factor(text: str) -> float:
    """Example: keep -> 1.0; drop -> 0.0; 0.5 -> 0.5."""
    named = {KEEP: 1.0, DROP: 0.0}
    with contextlib.suppress(ValueError):
        factor = named[text] if text in named else float(text)
        if 0 <= factor <= 1000 and math.isfinite(factor):
            return factor
    raise IoweirError(f"--think {text}: write {KEEP}, {DROP}, or a factor from 0 to 1000 such as 0.5", EXIT_USAGE)


def replay(options: Options) -> dict[str, Any]:
    """Reads the trace and carries it out once; or only writes the scripts."""
    check(options)
    plan = None if options.plan is None else check_plan(options.plan, None)
    original = from_trace.read(options.trace)
    recorded = _scaled(options, original)
    if plan is not None:
        recorded.remarks += _missed(options, recorded, plan)
    kernels.refuse_too_many(len(recorded.ranks))
    about = described(options, recorded) | {"recorded": _amounts(original), "recorded_ranks": len(original.ranks)}
    if options.script is not None:
        with whole_folder(options.script, (write.script_name("*"),)) as folder:
            write.write_scripts(recorded, folder, options.seed)
        return about | {"replayed": None, "scripts": str(options.script)}
    with Prepared.make(options, recorded) as prepared:
        done = prepared.run(options)
        return about | {
            "inputs": prepared.inputs,
            "replayed": done,
            "files": prepared.files(options),
        }


def check(options: Options) -> None:
    """Mistakes that need no trace."""
    think_factor(options.think)
    if options.mpi is not None and options.mpi not in kernels.LAUNCHERS:
        raise IoweirError(
            f"--mpi {options.mpi}: a replay needs an MPI library: {' or '.join(kernels.LAUNCHERS)}", EXIT_USAGE
        )
    require_writable(options.directory)
    if options.output is not None:
        require_empty(options.output)
    if options.ranks is not None:
        if options.ranks < 1:
            raise IoweirError(f"--ranks {options.ranks}: give 1 or more", EXIT_USAGE)
        kernels.refuse_too_many(options.ranks)  # before their calls are made, which take memory
    if options.memory < 1:
        raise IoweirError(f"--memory {options.memory}: write a size such as 1 GiB", EXIT_USAGE)
    for hint in options.hints:
        name, _, value = hint.partition("=")
        if not name.strip() or not value.strip():
            raise IoweirError(f"--hint {hint}: write NAME=VALUE", EXIT_USAGE)


def _scaled(options: Options, recorded: Recorded) -> Recorded:
    """On as many ranks as the user wants."""
    if options.ranks is None or options.ranks == len(recorded.ranks):
        if options.also:
            raise IoweirError(
                f"--also {options.also[0]}: tells what other numbers of ranks do; say which, --ranks N", EXIT_USAGE
            )
        return recorded
    from ioweir.replay import more_ranks  # noqa: PLC0415 (loads the simulator)

    return more_ranks.on_ranks(options.trace, recorded, options.ranks, options.also)


def _missed(options: Options, recorded: Recorded, plan: str) -> list[str]:
    """Of a plan whose rules do not apply here to files for which they are in the program."""
    match, name = compiled().match_plan, str(options.plan)
    moving = sorted({op.file for rank in recorded.ranks for op in rank.ops if op.handle is not None})
    wanted = [file for file in moving if match(plan, name, recorded.paths[file]) is not None]
    if not wanted:
        return [f"no rule of {name} is for a file of this trace: the replay is as without a plan"]
    # The folder of a turn has such a name, and its own folder another one each time.
    place = options.directory.resolve() / "ioweir-replay-0" / "files-0"
    others = [
        file
        for file in wanted
        if match(plan, name, recorded.paths[file]) != match(plan, name, f"{place}/{recorded.names[file]}")
    ]
    if not others:
        return []
    return [
        f"{name} does not do here what it does in the program, for {len(others)} {units.plural('file', len(others))}: "
        f"{recorded.paths[others[0]]} is {recorded.names[others[0]]} below the replay's folder. Write patterns without "
        "folders"
    ]


def described(options: Options, recorded: Recorded) -> dict[str, Any]:
    """What was recorded, and what becomes of it."""
    return {
        "trace": str(options.trace),
        "ranks": len(recorded.ranks),
        "files": len(recorded.paths),
        "calls": recorded.calls(),
        "recorded": _amounts(recorded),
        "think": think_factor(options.think),
        "plan": str(options.plan) if options.plan else None,
        "left_out": [{"what": what, "calls": calls} for what, calls in recorded.left_out.most_common()],
        "stand_ins": [{"what": what, "calls": calls} for what, calls in recorded.stand_ins.most_common()],
        "remarks": recorded.remarks,
    }


def _amounts(recorded: Recorded) -> dict[str, Any]:
    return {
        "seconds": recorded.seconds(),
        "written_bytes": recorded.moved("write"),
        "read_bytes": recorded.moved("read"),
    }


@dataclass(frozen=True)
class Turn:
    """The I/O carried out once."""

    name: str
    """Of the folder of its files."""
    hints: tuple[str, ...] = ()


class Prepared:
    """A new folder with the scripts and a place for the files, which is gone afterwards."""

    def __init__(self, folder: Folder, name: str, recorded: Recorded, kind: str, seed: int) -> None:
        self._folder = folder
        self._name = name
        self._recorded = recorded
        self._kind = kind
        self._seed = seed
        self._keep = False
        self._runs = 0
        self.inputs = {"files": len(recorded.inputs), "bytes": recorded.found_bytes()}

    @classmethod
    @contextlib.contextmanager
    def make(cls, options: Options, recorded: Recorded) -> Iterator[Prepared]:
        """In the directory that the user named; the original files are never touched.

        Signals raise forwarding.SignalError meanwhile, so that the folder goes in any case.
        """
        kind = options.mpi or recorded.mpi or kernels.kind_here()
        if kind not in kernels.LAUNCHERS:
            raise IoweirError(
                f"the trace does not say which MPI library it was; name it: --mpi {'|'.join(kernels.LAUNCHERS)}"
            )
        name = f"ioweir-replay-{os.urandom(4).hex()}"
        with forwarding.ending_in_order(), Folder.open(options.directory) as above:
            folder = above.make_folder(name)
            prepared = cls(folder, str(options.directory.resolve() / name), recorded, kind, options.seed)
            try:
                with folder.make_folder("scripts") as scripts:
                    write.write_scripts(recorded, scripts, options.seed)
                yield prepared
            finally:
                folder.close()
                if not prepared._keep:
                    above.remove_tree(name)

    def files(self, options: Options) -> str | None:
        """Where they are left, if they are."""
        return f"{self._name}/files-{self._runs - 1}" if options.keep else None

    def run(self, options: Options) -> dict[str, Any]:
        """Once, with files that are new each time."""
        found: list[dict[str, Any]] = []
        self.run_turns(options, [Turn(self.new_name(), options.hints)], found.append)
        (done,) = found
        return done | ({"trace": str(options.output) if options.output else None} if _under_ioweir(options) else {})

    def new_name(self) -> str:
        """Of a folder for the files of one turn."""
        self._runs += 1
        return f"files-{self._runs - 1}"

    def room_for_turns(self) -> int:
        """How many may be in a launch: the files that they find are made before it, and lie beside each other."""
        most = min(_BYTES_OF_TURNS, shutil.disk_usage(self._folder.path).free // 4)
        return max(1, most // max(self.inputs["bytes"], 1))

    def run_turns(self, options: Options, turns: Sequence[Turn], told: Callable[[dict[str, Any]], None]) -> None:
        """All of them in one start of the ranks; `told` of each as soon as it is done.

        IoweirError when the ranks end before the last turn has.
        """
        self._keep |= options.keep
        made: list[str] = []
        try:
            for turn in turns:
                made.append(turn.name)
                with self._folder.make_folder(turn.name) as files:
                    write.make_files(self._recorded, files, options.seed)
            self._run(options, turns, told)
        finally:
            if not options.keep:
                for name in made:
                    self._remove(name)

    def _run(self, options: Options, turns: Sequence[Turn], told: Callable[[dict[str, Any]], None]) -> None:
        runner, ranks = kernels.runner(self._kind, RUNNER), len(self._recorded.ranks)
        launcher = kernels.launcher_of(self._kind)
        environment = kernels.environment_of(launcher)
        words = [
            launcher, "-n", str(ranks), str(runner),
            "--script", f"{self._name}/scripts", *(word for turn in turns for word in self._words(turn)),
            "--think", repr(think_factor(options.think)), "--memory", str(options.memory),
            # The trace of one replay has the recorded calls and no others.
            "--keep", str(int(options.keep or len(turns) == 1)),
        ]  # fmt: skip
        if not _under_ioweir(options):
            _executed(words, environment, len(turns), told)
            return
        with contextlib.ExitStack() as temporary:
            output = options.output
            if output is None:
                output = Path(temporary.enter_context(tempfile.TemporaryDirectory(prefix="ioweir-replay-"))) / "trace"
            plan = [] if options.plan is None else ["--plan", str(options.plan)]
            traced = processes.ioweir("run", "--quiet", "-o", str(output), *plan, "--", *words)
            _executed(traced, environment, len(turns), told)

    def _remove(self, name: str) -> None:
        """With the parts of its files on other targets: those of a file that is gone belong to nobody."""
        with self._folder.below((name,)) as files:
            for each in map(PurePosixPath, self._recorded.names):
                with contextlib.suppress(OSError), files.below(each.parent.parts) as here:
                    here.remove(each.name, missing_ok=True)
        place = Path(self._name) / name
        container.remove(place, container.orphans(place))
        self._folder.remove_tree(name)

    def _words(self, turn: Turn) -> list[str]:
        return ["--target", f"{self._name}/{turn.name}", *(word for hint in turn.hints for word in ("--hint", hint))]


def _under_ioweir(options: Options) -> bool:
    return options.plan is not None or options.output is not None


def _executed(
    words: Sequence[str], environment: dict[str, str], turns: int, told: Callable[[dict[str, Any]], None]
) -> None:
    """Tells of each line that the runner prints for a turn."""
    found = 0
    with forwarding.started(words, environment) as child:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            if line.startswith('{"seconds"'):
                found += 1
                told(json.loads(line))
            else:
                print(plain_text.line(line.removesuffix("\n")), file=sys.stderr)
    if child.ended_by:
        raise forwarding.SignalError(child.ended_by, f"the replay was ended by signal {child.ended_by}")
    if found < turns:
        raise IoweirError(
            f"the replay did not come to its end (exit code {child.exit_code()}); what it said stands above"
        )


def failed(result: dict[str, Any]) -> bool:
    """Whether a call that succeeded when it was recorded did not now."""
    return result["replayed"] is not None and result["replayed"]["failed"] > 0


def to_text(result: dict[str, Any]) -> list[str]:
    """For a person."""
    recorded, done = result["recorded"], result["replayed"]
    scaled = "" if result["ranks"] == result["recorded_ranks"] else f" (recorded: {result['recorded_ranks']})"
    lines = [
        f"replay of {result['trace']}: {result['ranks']} {units.plural('rank', result['ranks'])}{scaled}, "
        f"{result['calls']} {units.plural('call', result['calls'])}",
        f"  recorded  {units.seconds(recorded['seconds'])}, {units.size(recorded['written_bytes'])} written, "
        f"{units.size(recorded['read_bytes'])} read",
    ]
    if done is not None and failed(result):
        lines += [
            f"  replayed  {done['failed']} calls FAILED that did not when recorded: these times are not comparable, "
            "and not shown",
            f"  the first: {done['first_failure']}",
        ]
    elif done is not None:
        think = result["think"]
        thought = "as recorded" if think == 1 else "left out" if think == 0 else f"times {think:g}"
        lines += [
            f"  replayed  {units.seconds(done['seconds'])}, {units.size(done['written_bytes'])} written, "
            f"{units.size(done['read_bytes'])} read; time between calls {thought}",
            f"  in calls  {units.seconds(done['io_s'])} of the slowest rank: write {units.seconds(done['write_s'])}, "
            f"read {units.seconds(done['read_s'])}, other {units.seconds(done['other_s'])}",
        ]
    if done is not None:
        if done.get("trace"):
            lines.append(f"  its trace: {done['trace']}")
        if result["files"] and isinstance(result["files"], str):
            lines.append(f"  its files: {result['files']}")
    else:
        lines.append(f"  scripts are in {result['scripts']}")
    for title, rows in (("left out", result["left_out"]), ("in the place of others", result["stand_ins"])):
        if rows:
            lines.append(f"  {title}:")
            lines += [f"    {row['calls']:>8}  {row['what']}" for row in rows]
    return lines + [f"  {remark}" for remark in result["remarks"]]
