"""What somebody else may have put in the place of a file, and commands that must bear it: nothing outside changes,
nothing waits, and neither processor time nor memory grows with what is there.

A case is a thing that was made once (`Subject`), in which one file is replaced (`ATTACKS`). `spoil` does that in a
fresh copy, `run` runs the command line in a child process of this one, with limits, and `Outside` says whether anything
else was touched.
What does not live here: which commands must say what of a case (the tests).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

NOBODY: Final = 65534
ANOTHER: Final = 65533
"""Neither the user nor NOBODY."""
PRECIOUS: Final = b"precious"
HUGE_BYTES: Final = 1 << 40
CPU_SECONDS: Final = 5
"""Of processor time: on a busy machine nothing follows from what a clock on the wall says."""
WALL_SECONDS: Final = 60
"""Then the command waits for something, and is ended."""
MEMORY_BYTES: Final = 1 << 30


class ImpossibleError(Exception):
    """This user or this file system cannot make such a thing."""


class Outside:
    """Files outside of all that a command is about. `touched` is empty as long as they are as they were."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        (self.path / "folder").mkdir()
        for name in ("file", "folder/data", "folder/about", "folder/index.1.0", "folder/data.1.0"):
            (self.path / name).write_bytes(PRECIOUS + b" " + name.encode())
        self._before = self._digest()

    def keep(self) -> None:
        """What was put there on purpose belongs to it from now on."""
        self._before = self._digest()

    @property
    def touched(self) -> list[str]:
        """Names that are new, gone or changed."""
        now = self._digest()
        return sorted(name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name))

    def _digest(self) -> dict[str, tuple[int, int, int, str]]:
        found = {}
        for path in [self.path, *sorted(self.path.rglob("*"))]:
            status = path.lstat()
            regular = stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20
            content = hashlib.sha256(path.read_bytes()).hexdigest() if regular else str(status.st_size)
            found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, content)
        return found


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _to_copy(path: Path, outside: Outside) -> None:
    """A link to a copy of what was there: whoever follows it finds what it wants, and may change it."""
    other = outside.path / "copy"
    if path.is_dir():
        shutil.copytree(path, other, symlinks=True)
    elif path.exists():
        shutil.copy2(path, other)
    else:
        other.write_bytes(PRECIOUS)
    _clear(path)
    path.symlink_to(other)


def _to_file(path: Path, outside: Outside) -> None:
    _clear(path)
    path.symlink_to(outside.path / "file")


def _to_folder(path: Path, outside: Outside) -> None:
    _clear(path)
    path.symlink_to(outside.path / "folder")


def _dangling(path: Path, outside: Outside) -> None:
    _clear(path)
    path.symlink_to(outside.path / "new")


def _to_zeros(path: Path, _outside: Outside) -> None:
    _clear(path)
    path.symlink_to("/dev/zero")


def _to_itself(path: Path, _outside: Outside) -> None:
    _clear(path)
    path.symlink_to(path.name)


def _hard_link(path: Path, outside: Outside) -> None:
    if path.is_dir():
        raise ImpossibleError
    other = outside.path / "copy"
    if path.exists():
        shutil.copy2(path, other)
    else:
        other.write_bytes(PRECIOUS)
    _clear(path)
    os.link(other, path)


def _pipe(path: Path, _outside: Outside) -> None:
    _clear(path)
    os.mkfifo(path)


def _device(path: Path, _outside: Outside) -> None:
    _clear(path)
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # zeros without end
    except OSError as error:
        raise ImpossibleError from error


def _folder(path: Path, _outside: Outside) -> None:
    _clear(path)
    path.mkdir()


def _foreign(path: Path, _outside: Outside) -> None:
    if os.geteuid() != 0:
        raise ImpossibleError
    if not path.exists():
        path.write_bytes(b"")
    os.chown(path, NOBODY, NOBODY)


def _empty(path: Path, _outside: Outside) -> None:
    _clear(path)
    path.write_bytes(b"")


def _huge(path: Path, _outside: Outside) -> None:
    if path.is_dir():
        _clear(path)
    try:
        with path.open("ab") as file:
            file.truncate(HUGE_BYTES)
    except OSError as error:
        raise ImpossibleError from error


def _appended(path: Path, _outside: Outside) -> None:
    if path.is_dir():
        raise ImpossibleError
    with path.open("ab") as file:
        file.write(b"\x00\xffmore" * 1000)


ATTACKS: Final[dict[str, Callable[[Path, Outside], None]]] = {
    "link to a copy": _to_copy,
    "link to a file": _to_file,
    "link to a folder": _to_folder,
    "dangling link": _dangling,
    "link to /dev/zero": _to_zeros,
    "link to itself": _to_itself,
    "hard link": _hard_link,
    "pipe": _pipe,
    "device": _device,
    "folder": _folder,
    "another user's": _foreign,
    "empty": _empty,
    "huge": _huge,
    "appended": _appended,
}


@dataclass(frozen=True)
class Subject:
    """A tree that commands are run in: made once, copied for each case to the same place: absolute links stay right."""

    name: str
    place: Path
    saved: Path = field(repr=False)
    owner: int | None = None
    """Whose it is, with what is put in it; None: the user's."""
    sticky: bool = False
    """Its top is the user's own, and everybody may write in it, as in /tmp."""

    @classmethod
    def keep(cls, name: str, place: Path, owner: int | None = None, sticky: bool = False) -> Subject:
        """As it is now."""
        saved = place.with_name(place.name + ".saved")
        shutil.copytree(place, saved, symlinks=True)
        return cls(name, place, saved, owner, sticky)

    def restore(self) -> None:
        """To what it was."""
        if self.place.exists():
            shutil.rmtree(self.place)
        shutil.copytree(self.saved, self.place, symlinks=True)
        if self.sticky:
            self.place.chmod(0o1777)
        for path in [self.place] * (not self.sticky) + list(self.place.rglob("*")):
            self._give(path)

    def spoil(self, path: Path, attack: str, outside: Outside) -> None:
        """Puts the attack in the place of `path` (relative, there or not)."""
        ATTACKS[attack](self.place / path, outside)
        if attack == "another user's" and self.owner == NOBODY:
            os.chown(self.place / path, ANOTHER, ANOTHER)
        elif attack not in ("another user's", "hard link"):  # that one has the owner of the file outside
            self._give(self.place / path)

    def leaks(self) -> list[str]:
        """Files in it that hold what only a link leads to."""
        found = []
        for path in self.place.rglob("*"):
            status = path.lstat()
            small = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size < 1 << 20
            if small and PRECIOUS in path.read_bytes():
                found.append(f"{path} holds what is outside")
        return found

    def _give(self, path: Path) -> None:
        if self.owner is not None:
            os.chown(path, self.owner, self.owner, follow_symlinks=False)

    def paths(self) -> Iterator[Path]:
        """All that is in it, relative to it."""
        for path in sorted(self.saved.rglob("*")):
            yield path.relative_to(self.saved)


@contextlib.contextmanager
def spoil(subject: Subject, path: Path, attack: str, outside: Path) -> Iterator[Outside]:
    """A fresh copy with the attack in the place of `path` (relative, there or not), and what must not be touched."""
    subject.restore()
    if outside.exists():
        shutil.rmtree(outside)
    kept = Outside(outside)
    subject.spoil(path, attack, kept)
    kept.keep()
    yield kept


@dataclass(frozen=True)
class Outcome:
    """What became of a command."""

    code: int
    """Its exit code; negative: the signal that ended it."""
    text: str
    """Both of its streams."""
    cpu_seconds: float
    memory_bytes: int
    waited: bool
    """It had to be ended."""

    def why_bad(self) -> str:
        """What no command may do, whatever it meets; empty: nothing of that."""
        if self.waited:
            return f"it waits for something: ended after {WALL_SECONDS} s"
        if self.code not in (0, 1):
            return f"exit code {self.code}"
        if self.cpu_seconds > CPU_SECONDS:
            return f"{self.cpu_seconds:.1f} s of processor time"
        if self.memory_bytes > MEMORY_BYTES:
            return f"{self.memory_bytes >> 20} MiB of memory"
        if "Traceback" in self.text:
            return "a traceback"
        if self.code != 0 and not self.text.strip():
            return f"exit code {self.code} without a word"
        return ""


def run(work: Callable[[], object], log: Path) -> Outcome:
    """Runs `work` in a child of this process, which has everything imported already: a case takes milliseconds."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_child(work, log)
    deadline = time.monotonic() + WALL_SECONDS
    waited = False
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid == child:
            break
        if time.monotonic() > deadline and not waited:
            waited = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
    code = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    return Outcome(code, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, waited)


def _be_child(work: Callable[[], object], log: Path) -> None:
    """Never returns."""
    code = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open("/dev/null", os.O_RDONLY)
        for number, descriptor in ((0, nothing), (1, file), (2, file)):
            os.dup2(descriptor, number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        try:
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
