"""`ioweir lab`: storage targets to try things on, whose speed can be changed while programs run.

Here: which labs there are, what each consists of, and that only that is touched. What a lab's targets are made of
lies in lab_loop (loop devices behind the kernel's rate limits), lab_bucket (directories with token buckets, for
users without root) and lab_ceph.

What is known of a lab is written into its own directory (STATE) before anything is made, so that a lab can be taken
down whatever happened meanwhile; a pointer to that directory is kept by name in the user's runtime folder.

Both are believed, down to the names of what is removed. Hence a lab's directory is new, or the user's own and nobody
else's to write to, and so is every folder above it as far as its name goes (guarded_files.who_may_rename).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import tempfile
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder, UnsafeFileError, loads_bounded, own_folder, runtime_folder, who_may_rename
from ioweir.base.units import rate as rate_text
from ioweir.base.units import size
from ioweir.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STATE: Final = ".ioweir-lab.json"
MANIFEST: Final = ".ioweir-targets.toml"
VERSION: Final = 1
DEFAULT_NAME: Final = "lab"
DEFAULT_RATE: Final = "12 MiB"
DEFAULT_SIZE: Final = "1 GiB"
MOST_TARGETS: Final = 64
BACKENDS: Final = ("loop", "bucket", "ceph")
MEMORY: Final = Path("/dev/shm")
_MOST_STATE: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IDENTITY: Final = re.compile(r"[0-9a-f]{32}")


@dataclass
class Lab:
    """A lab as its state file has it. `rates` are bytes a second; `facts` are its backend's own."""

    name: str
    identity: str
    backend: str
    directory: str
    rate: int
    rates: list[int]
    size: int
    complete: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """Its directory."""
        return Path(self.directory)

    def target(self, number: int) -> Path:
        """Where a target's files are."""
        return self.root / ("mnt" if self.backend == "ceph" else f"t{number}")

    @property
    def own_name(self) -> str:
        """Of what it has outside of its directory; nobody else's has it."""
        return f"ioweir-lab-{self.identity}"

    def open(self) -> Folder:
        """Its directory, which has to be the user's alone."""
        return Folder.open(self.root, own=True)

    def save(self) -> None:
        """Writes the state file, whole or not at all."""
        with self.open() as folder:
            folder.write(STATE, json.dumps({"version": VERSION, **asdict(self)}, indent=1) + "\n", 0o600)


class Backend(Protocol):
    """What a lab's targets are made of. Every function may be called for a lab that was made in part."""

    def missing(self) -> list[str]:
        """What this machine or user lacks, in words; empty: it can be used."""

    def owns(self, lab: Lab) -> bool:
        """Whether the facts in a state file are such as this kind writes down, and name nothing of somebody else's."""

    def make(self, lab: Lab) -> None:
        """Makes the targets; the directory and its state file are there."""

    def set_rate(self, lab: Lab, number: int) -> None:
        """Puts lab.rates[number] into effect."""

    def look(self, lab: Lab) -> list[dict[str, Any]]:
        """For each target what is found: rate_now (None: it cannot be told), problem."""

    def remove(self, lab: Lab, force: bool) -> None:
        """Takes away what it made, if it is there."""


def backend_of(name: str) -> Backend:
    """By name."""
    from ioweir.targets import lab_bucket, lab_ceph, lab_loop  # noqa: PLC0415

    if name == "loop":
        return lab_loop.LoopBackend()
    if name == "bucket":
        return lab_bucket.BucketBackend()
    if name == "ceph":
        return lab_ceph.CephBackend()
    raise IoweirError(f"unknown kind of lab: '{name}'; known: {', '.join(BACKENDS)}", EXIT_USAGE)


# ------------------------------------------------------------------------------------------------------ which labs


def registry() -> Folder:
    """Where pointers to labs are kept until the machine is started again."""
    with runtime_folder() as folder:
        return own_folder(folder.path / "labs")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One command on labs at a time."""
    with registry() as folder:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open("lock", flags, 0o600, dir_fd=folder.descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _pointer(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise IoweirError(f"not a name for a lab: '{name}'; letters, digits, - and _", EXIT_USAGE)
    return f"{name}.json"


def _point_to(lab: Lab) -> None:
    with registry() as folder:
        folder.write(_pointer(lab.name), json.dumps({"directory": lab.directory}), 0o600)


def _forget(name: str) -> None:
    with registry() as folder:
        folder.remove(_pointer(name), missing_ok=True)


def read(directory: Path) -> Lab | None:
    """The lab in a directory; None if there is none."""
    file = directory / STATE
    try:
        with Folder.open(directory) as folder:
            if folder.status(STATE) is None:
                return None
            if why := folder.why_not_own():
                raise UnsafeFileError(f"lies in a folder which is not yours alone: {directory} {why}", file)
            content = loads_bounded(folder, STATE, _MOST_STATE, own=True)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise IoweirError(f"there is no lab in {directory}: it is no folder") from error
    except UnsafeFileError as error:
        raise IoweirError(f"the lab's state is not believed: {file} {error.strerror}") from error
    except (OSError, ValueError) as error:
        raise IoweirError(f"cannot read the lab's state {file}: {error}; remove the lab by hand") from error
    lab = _checked(content, directory)
    # A real path when it was written: where a link leads there by now, it leads to something else.
    if lab.directory != str(directory.resolve()):
        raise IoweirError(f"the lab in {directory} was made in {lab.directory}; move it back, or remove it by hand")
    if who := who_may_rename(lab.root):
        raise IoweirError(f"the lab in {directory} is not believed: {who}, may put something else in its place")
    return lab


def _checked(content: Any, directory: Path) -> Lab:
    """A state file's content; what it has outside of its directory has to be of its own name."""
    if not isinstance(content, dict) or content.pop("version", None) != VERSION:
        raise IoweirError(f"the lab in {directory} was made by another version of ioweir; take it down with that one")
    problem = f"the lab's state {directory / STATE} is damaged; remove the lab by hand"
    try:
        lab = Lab(**content)
        texts = (lab.name, lab.identity, lab.backend, lab.directory)
        numbers = (lab.rate, lab.size, *lab.rates)
        sound = all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)
        sound = sound and 1 <= len(lab.rates) <= MOST_TARGETS and isinstance(lab.facts, dict)
        sound = sound and bool(_NAME.fullmatch(lab.name) and _IDENTITY.fullmatch(lab.identity))
        sound = sound and backend_of(lab.backend).owns(lab)
    except (TypeError, AttributeError) as error:
        raise IoweirError(problem) from error
    if not sound:
        raise IoweirError(problem)
    return lab


def _find(name: str, directory: Path | None) -> Lab:
    if directory is None:
        directory = _pointed_to(name)
        if directory is None:
            raise IoweirError(f"no lab named '{name}' is up; ioweir lab up, or name its --directory")
    lab = read(directory)
    if lab is None:
        raise IoweirError(f"there is no lab in {directory}")
    return lab


# --------------------------------------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class Wanted:
    """What `lab up` is asked for."""

    name: str = DEFAULT_NAME
    backend: str = "auto"
    targets: int = 8
    rate: str = DEFAULT_RATE
    size: str = DEFAULT_SIZE
    directory: Path | None = None
    memory: bool = False


def up(wanted: Wanted) -> tuple[Lab, list[str]]:
    """Makes a lab; returns it, and what the user should know. One that was made in part before is taken down first."""
    remarks: list[str] = []
    if not 1 <= wanted.targets <= MOST_TARGETS:
        raise IoweirError(f"a lab of {wanted.targets} targets; 1 to {MOST_TARGETS}", EXIT_USAGE)
    rate = parse_size(wanted.rate)
    kind, remark = _choose(wanted.backend)
    remarks += remark
    with _alone():
        for place in {_pointed_to(wanted.name), wanted.directory and wanted.directory.absolute()}:
            remarks += _clear_way(place) if place else []
        directory = _new_directory(wanted)
        lab = Lab(
            wanted.name, uuid.uuid4().hex, kind, str(directory.resolve()), rate, [rate] * wanted.targets,
            parse_size(wanted.size), facts={"memory": wanted.memory},
        )  # fmt: skip
        lab.save()
        _point_to(lab)
        backend = backend_of(kind)
        try:
            backend.make(lab)
            for number in range(len(lab.rates)):
                backend.set_rate(lab, number)
            lab.complete = True
            lab.save()
        except BaseException:
            with contextlib.suppress(IoweirError, OSError):
                _remove(lab, force=True)
            raise
    return lab, remarks


def _new_directory(wanted: Wanted) -> Path:
    """An empty one that is the user's alone; where none is named, one with a name that nobody can know beforehand."""
    directory = wanted.directory.absolute() if wanted.directory else None
    if directory is None:
        directory = Path(tempfile.mkdtemp(prefix=f"ioweir-lab-{wanted.name}-"))
    elif not os.path.lexists(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
    with Folder.open(directory) as folder:
        if folder.names():
            raise IoweirError(f"{directory} is not empty, and no lab; name another --directory")
        if why := folder.why_not_own():
            raise IoweirError(f"no lab is made in {directory}: it {why}; chmod go-w it, or name another --directory")
    if who := who_may_rename(directory):
        raise IoweirError(
            f"no lab is made in {directory}: {who}, may put something else in its place; name another --directory"
        )
    return directory


def _choose(wanted: str) -> tuple[str, list[str]]:
    if wanted != "auto":
        missing = backend_of(wanted).missing()
        if missing:
            raise IoweirError(f"a lab of kind '{wanted}' needs more: {'; '.join(missing)}")
        return wanted, []
    missing = backend_of("loop").missing()
    if not missing:
        return "loop", []
    return "bucket", [f"token buckets instead of devices, for want of: {'; '.join(missing)}"]


def _pointed_to(name: str) -> Path | None:
    pointer = _pointer(name)
    try:
        with registry() as folder:
            return Path(loads_bounded(folder, pointer, own=True, most=_MOST_STATE)["directory"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _clear_way(directory: Path) -> list[str]:
    """Takes down what is left of a lab; refuses to do so with one that is up."""
    there = read(directory)
    if there is None:
        return []
    if there.complete and not any(row["problem"] for row in backend_of(there.backend).look(there)):
        name = "" if there.name == DEFAULT_NAME else f" --name {there.name}"
        raise IoweirError(f"a lab is up in {directory}; ioweir lab down{name} first")
    _remove(there, force=True)
    return [f"removed what was left of a lab in {directory}"]


def slow(name: str, directory: Path | None, number: int, rate: str) -> Lab:
    """Changes a target's rate: a size a second, a share of the lab's rate such as 1/9, or "full"."""
    with _alone():
        lab = _find(name, directory)
        if not 0 <= number < len(lab.rates):
            raise IoweirError(f"the lab has no target {number}: it has 0 to {len(lab.rates) - 1}", EXIT_USAGE)
        lab.rates[number] = _new_rate(rate, lab.rate)
        backend_of(lab.backend).set_rate(lab, number)
        lab.save()
    return lab


def _new_rate(text: str, full: int) -> int:
    if text == "full":
        return full
    above, slash, below = text.partition("/")
    if not slash:
        return parse_size(text)
    try:
        value = int(full * int(above) / int(below))
    except (ValueError, ZeroDivisionError):
        value = 0
    if value < 1:
        raise IoweirError(
            f"not a rate: '{text}'; write a size a second such as 2MB, a share such as 1/9, or full", EXIT_USAGE
        )
    return value


def status(name: str, directory: Path | None) -> dict[str, Any]:
    """What the lab should be and what is found."""
    lab = _find(name, directory)
    rows = [
        {"target": f"t{number}", "directory": str(lab.target(number)), "rate": lab.rates[number], **found}
        for number, found in enumerate(backend_of(lab.backend).look(lab))
    ]
    return {
        "name": lab.name, "backend": lab.backend, "directory": lab.directory, "complete": lab.complete,
        "rate": lab.rate, "targets": rows,
    }  # fmt: skip


def down(name: str, directory: Path | None, force: bool) -> str:
    """Takes a lab down, also one that was made in part; returns its directory."""
    with _alone():
        lab = _find(name, directory)
        _remove(lab, force)
    return lab.directory


def run(name: str, directory: Path | None, command: Sequence[str]) -> NoReturn:
    """Becomes the command, within the lab's limits."""
    from ioweir.targets import lab_loop  # noqa: PLC0415

    limits = lab_loop.limits_of(_find(name, directory))
    if limits is not None:
        limits.join()
    try:
        os.execvp(command[0], list(command))
    except FileNotFoundError as error:
        raise IoweirError(f"command not found: {command[0]}", EXIT_NOT_FOUND) from error
    except OSError as error:
        raise IoweirError(f"cannot execute {command[0]}: {error.strerror}", EXIT_NOT_EXECUTABLE) from error


def _remove(lab: Lab, force: bool) -> None:
    lab.complete = False
    lab.save()
    backend_of(lab.backend).remove(lab, force)
    if _pointed_to(lab.name) == lab.root:
        _forget(lab.name)
    with lab.open() as folder:
        folder.remove(MANIFEST, missing_ok=True)
        folder.remove(STATE, missing_ok=True)
    # What somebody else put there stays.
    with contextlib.suppress(OSError):
        lab.root.rmdir()


# ------------------------------------------------------------------------------------------------ for the backends


def parse_size(text: str) -> int:
    """Bytes of a size above nothing."""
    try:
        value = int(compiled().parse_size(text))
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error
    if value < 1:
        raise IoweirError(f"a size of nothing: '{text}'", EXIT_USAGE)
    return value


def write_manifest(lab: Lab, head: Mapping[str, str], rows: list[Mapping[str, str | bool]]) -> None:
    """The lab's manifest; texts are written as they are, for a lab's own hold nothing that TOML minds."""

    def line(key: str, value: str | bool) -> str:
        return f"{key} = {json.dumps(value)}\n"

    text = f"# Made by `ioweir lab up`, kind {lab.backend}.\n" + "".join(line(*item) for item in head.items())
    for row in rows:
        text += "\n[[target]]\n" + "".join(line(*item) for item in row.items())
    with lab.open() as folder:
        folder.write(MANIFEST, text, 0o644)


# ------------------------------------------------------------------------------------------------------------- text


def kind_text(backend: str) -> str:
    """How results have to call it."""
    return {"loop": "loop devices behind the kernel's rate limits", "bucket": "directories with token buckets",
            "ceph": "CephFS, a pool a target"}[backend]  # fmt: skip


def to_text(found: Mapping[str, Any]) -> list[str]:
    """For a person."""
    lines = [f"{found['directory']}: {len(found['targets'])} targets, {kind_text(found['backend'])}"]
    if not found["complete"]:
        lines.append("  made in part only: ioweir lab down, or up again")
    for row in found["targets"]:
        text = f"  {row['target']}  {rate_text(row['rate']):>12}"
        if row["rate_now"] not in (None, row["rate"]):
            text += f"  (in effect: {rate_text(row['rate_now']) if row['rate_now'] else 'no limit'})"
        if row.get("free") is not None:
            text += f"  {size(row['free'])} free"
        lines.append(text + (f"  {row['problem']}" if row["problem"] else ""))
    return lines
