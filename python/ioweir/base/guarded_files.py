"""Files that somebody else may have made: the only way in which ioweir's commands open, write and remove files.

What may be there on a machine that others use: a link to somebody's file, a pipe or device that never ends, a file of
another user, one of a terabyte that holds nothing, a name that changes between two looks at it. Hence three ways:

- `Folder`: files beneath a folder that is open. Names are single names, no link is followed, what is opened is a
  regular file (or a folder) of a trusted owner, and what is read has a bound. Nothing outside of it can be reached.
- `read_named`, `open_named`, `write_named`: what the user named on the command line. Links are the user's own word
  there, and a pipe is too where a text is asked for; what is read has a bound all the same.
- `own_folder`: a folder of the user's alone, for what later commands believe without further question.

A trusted owner is the owner of the folder that the file lies in (who names somebody's folder wants what that one put
there), the user, root, and where the folder lets its group write, others in that group; of these three only what has
no second name, for a hard link can be planted to anybody's file. What is believed blindly is asked for with `own=True`:
the user's, or root's, that nobody else may write into.

src/base/guarded_files.hpp is the same for the compiled part. tools/check_opens.py finds other ways of opening files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ioweir.base import plain_text
from ioweir.errors import IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_TEXT: Final = 4 << 20
"""Of plans, and of what else people write: far more than anyone does."""
MOST_NAMES: Final = 1_000_000
"""In one folder; who has put more there wants us to run out of memory."""
WAIT_S: Final = 4.0
"""A pipe in a folder into which nobody writes for so long is given up."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
# Names of what this process has open already: whatever it is, the user has handed it over.
_HANDED_OVER: Final = ("/dev/fd/", "/dev/std", "/proc/self/fd/")
_BLOCK: Final = 1 << 16
_MOST_LINKS: Final = 40
GROUP_FOLDER: Final = stat.S_ISGID | 0o750
"""Of a folder that a group may read; what is made in it has the folder's group."""
GROUP_FILE: Final = 0o640
ALL_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# The default ACL user::rwx, group::r-x, other::--- as the kernel takes it: version 2, then tag, rights and no id each.
_GROUP_READS: Final = struct.pack("<I" + 3 * "HHI", 2, 0x01, 7, 2**32 - 1, 0x04, 5, 2**32 - 1, 0x20, 0, 2**32 - 1)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UnsafeFileError(OSError):
    """A file that is not touched: strerror says why, filename which."""

    def __init__(self, why: str, path: str | Path) -> None:
        super().__init__(errno.EPERM, why, str(path))


def kind_of(mode: int) -> str:
    """What a file is, for people. Example: S_IFIFO -> "a pipe"."""
    kinds = {
        stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device",
    }  # fmt: skip
    return kinds.get(stat.S_IFMT(mode), "of a kind that is not known")


def _why_not_own(found: os.stat_result) -> str:
    """In words; empty: it is the user's or root's, and nobody else may write into it."""
    me = os.geteuid()
    if found.st_uid not in (me, 0):
        return f"belongs to user {found.st_uid}, who is neither you (user {me}) nor root"
    if found.st_mode & _OTHERS_WRITE:
        return f"may be written into by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _why_not_trusted(found: os.stat_result, folder: os.stat_result) -> str:
    """In words; empty: who has put it there may do so. The same rules as in src/base/guarded_raw.hpp."""
    if found.st_uid == folder.st_uid:
        return ""
    me = os.geteuid()
    of_group = folder.st_mode & stat.S_IWGRP and found.st_gid == folder.st_gid and found.st_mode & stat.S_IRGRP
    if found.st_uid not in (me, 0) and not of_group:
        return f"belongs to user {found.st_uid}, its folder to user {folder.st_uid}"
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return f"has {found.st_nlink} names (hard links), and its folder is not its owner's"
    return ""


def _one_name(name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise UnsafeFileError("is not a single name", name)
    return name


class Folder:
    """An open folder, closed at the end of a `with`. Every method but `names` takes a single name in it."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path
        """For messages, and where a descriptor does not do."""
        self.info = os.fstat(descriptor)

    @classmethod
    def open(cls, path: Path, *, own: bool = False) -> Folder:
        """The folder at a path that the user named. OSError: it is none, or with `own` not of the user alone."""
        folder = cls(os.open(path, _FOLDER), path)
        if own and (why := folder.why_not_own()):
            folder.close()
            raise UnsafeFileError(why, path)
        return folder

    @classmethod
    def open_through_own_links(cls, path: Path) -> Folder:
        """As `open`, but through links of the user and root alone: for what removes things that others name.

        `/scratch/*/traces` on root's command line may hold a link that somebody has made to another one's folder.
        """
        handle = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        waiting = list(reversed(path.absolute().parts[1:]))
        links = 0
        descriptor = os.open("/", handle)
        try:
            while waiting:
                inner = os.open(waiting.pop(), handle, dir_fd=descriptor)
                found = os.fstat(inner)
                if not stat.S_ISLNK(found.st_mode):
                    os.close(descriptor)
                    descriptor = inner
                    continue
                with contextlib.closing(_Descriptor(inner)):
                    links += 1
                    if found.st_uid not in (os.geteuid(), 0):
                        raise UnsafeFileError(f"leads through a symbolic link of user {found.st_uid}", path)
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                    target = os.readlink("", dir_fd=inner)
                waiting += reversed([part for part in target.split("/") if part])
                if target.startswith("/"):
                    os.close(descriptor)
                    descriptor = os.open("/", handle)
            return cls(os.open(".", _FOLDER, dir_fd=descriptor), path)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Once is enough, and twice does no harm."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def why_not_own(self) -> str:
        """In words; empty: it is the user's, and nobody else may put anything there."""
        return _why_not_own(os.fstat(self.descriptor))

    def take_from_others(self) -> bool:
        """Leaves the right to write into it to its owner, the user; whether that changed anything."""
        mode = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
        if not mode & _OTHERS_WRITE or self.info.st_uid != os.geteuid():
            return False
        os.fchmod(self.descriptor, mode & ~_OTHERS_WRITE)
        return True

    def close_to_others(self) -> bool:
        """Leaves all rights to its owner, the user; whether that changed anything."""
        mode = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
        if not mode & ALL_OTHERS or self.info.st_uid != os.geteuid():
            return False
        os.fchmod(self.descriptor, mode & ~(ALL_OTHERS | stat.S_ISGID))
        return True

    def let_group_read(self, group: int) -> bool:
        """Lets a group, and nobody else, read what will be made in it, whatever umask its makers have.

        False: the file system has no ACLs, and a maker whose umask is 077 keeps a file from the group.
        """
        os.fchown(self.descriptor, -1, group)
        os.fchmod(self.descriptor, GROUP_FOLDER)
        self.info = os.fstat(self.descriptor)
        try:
            os.setxattr(self.descriptor, "system.posix_acl_default", _GROUP_READS)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOSYS):
                raise
            return False
        return True

    def is_for_group(self) -> bool:
        """Whether a group may read in it: as `let_group_read` made it, or the user."""
        return bool(self.info.st_mode & stat.S_IRGRP)

    def names(self, most: int = MOST_NAMES) -> list[str]:
        """What is in it, sorted."""
        found: list[str] = []
        with os.scandir(self.descriptor) as entries:
            for entry in entries:
                if len(found) == most:
                    raise UnsafeFileError(f"holds more than {most:,} names", self.path)
                found.append(entry.name)
        return sorted(found)

    def status(self, name: str) -> os.stat_result | None:
        """Of what is there, a link itself included; None: nothing."""
        with contextlib.suppress(FileNotFoundError):
            return os.stat(_one_name(name), dir_fd=self.descriptor, follow_symlinks=False)
        return None

    # ---------------------------------------------------------------------------------------------------- reading

    def open_file(self, name: str, *, own: bool = False) -> int:
        """A descriptor to read a regular file of a trusted owner by, and of the user's own where that is asked."""
        path = self.path / _one_name(name)
        try:
            descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=self.descriptor)
        except OSError as error:
            raise self._explained(error, name) from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UnsafeFileError(f"is {kind_of(found.st_mode)}, not a file", path)
            if why := _why_not_own(found) if own else _why_not_trusted(found, self.info):
                raise UnsafeFileError(why, path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def read(self, name: str, most: int = MOST_TEXT, *, own: bool = False) -> bytes:
        """The whole of a file of at most so many bytes."""
        descriptor = self.open_file(name, own=own)
        try:
            return _read_bounded(descriptor, most, self.path / name)
        finally:
            os.close(descriptor)

    def read_text(self, name: str, most: int = MOST_TEXT, *, own: bool = False) -> str:
        """The same as text; ValueError: it is not UTF-8."""
        return self.read(name, most, own=own).decode("utf-8")

    def folder(self, name: str) -> Folder:
        """A folder in this one, whose owner is trusted."""
        try:
            inner = Folder(os.open(_one_name(name), _FOLDER | os.O_NOFOLLOW, dir_fd=self.descriptor), self.path / name)
        except OSError as error:
            raise self._explained(error, name) from error
        if why := _why_not_trusted(inner.info, self.info):
            inner.close()
            raise UnsafeFileError(why, self.path / name)
        return inner

    def below(self, parts: tuple[str, ...]) -> Folder:
        """A folder in a folder and so on, of whatever owner; to be closed. Nothing but folders is gone through."""
        descriptor = os.dup(self.descriptor)
        for name in parts:
            try:
                inner = os.open(_one_name(name), _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return Folder(descriptor, self.path.joinpath(*parts))

    def walk(self, enters: Callable[[str], bool]) -> Iterator[Listing]:
        """Every folder in it, itself first, open until the next one is asked for.

        Goes into folders for whose name `enters` is true, through no link. OSError where one cannot be read.
        """
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            parts = waiting.pop()
            with self.below(parts) as here:
                folders: list[str] = []
                files: list[str] = []
                for name in here.names():
                    found = here.status(name)
                    if found is not None:
                        (folders if stat.S_ISDIR(found.st_mode) else files).append(name)
                yield Listing(here, folders, files)
            waiting += [(*parts, name) for name in reversed(folders) if enters(name)]

    def _explained(self, error: OSError, name: str) -> OSError:
        """The kernel's refusal of a link says "too many levels of symbolic links", or "not a directory"."""
        found = self.status(name) if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO) else None
        if found is not None and not stat.S_ISREG(found.st_mode):
            return UnsafeFileError(f"is {kind_of(found.st_mode)}", self.path / name)
        return OSError(error.errno, error.strerror, str(self.path / name))

    @contextlib.contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """The system's errors name what is in the folder, but not the folder."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path / name)) from error

    # ---------------------------------------------------------------------------------------------------- writing

    def create(self, name: str, mode: int = 0o666) -> int:
        """A descriptor of a new file; FileExistsError where something of that name is there, be it a link."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE
        _one_name(name)
        with self._named(name):
            return os.open(name, flags, mode, dir_fd=self.descriptor)

    @contextlib.contextmanager
    def replacing(self, name: str, mode: int = 0o666) -> Iterator[IO[bytes]]:
        """A file to write that takes the name's place when all went well, and leaves nothing behind otherwise."""
        _one_name(name)
        draft = f".{name[:200]}.{os.urandom(8).hex()}"
        try:
            descriptor = self.create(draft, mode)
        except OSError as error:  # by the name that the user knows
            raise OSError(error.errno, error.strerror, str(self.path / name)) from error
        try:
            with written_as(self.path / name), os.fdopen(descriptor, "w+b") as file:
                yield file
            os.replace(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except BaseException:
            self.remove(draft, missing_ok=True)
            raise

    def write(self, name: str, content: bytes | str, mode: int = 0o666) -> None:
        """Writes a file: whoever looks sees the old one or the new one."""
        with self.replacing(name, mode) as file:
            file.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)

    @contextlib.contextmanager
    def drafting(self, name: str) -> Iterator[str]:
        """A path for a library that takes no descriptors: what it writes there takes the name's place in the end.

        It lies in a new folder of the user's alone, whatever becomes of the names above it meanwhile.
        """
        _one_name(name)
        draft = f".{name[:200]}.{os.urandom(8).hex()}"
        try:
            with written_as(self.path / name), self.make_folder(draft) as inner:
                yield f"{inner.path_by_descriptor()}/data"
                os.replace("data", name, src_dir_fd=inner.descriptor, dst_dir_fd=self.descriptor)
        finally:
            self.remove_tree(draft)

    def path_by_descriptor(self) -> str:
        """A path to it for who takes nothing else, good while it is open, whatever its names are then."""
        return f"/proc/self/fd/{self.descriptor}/."

    def make_folder(self, name: str, mode: int = 0o700) -> Folder:
        """A new folder in it; FileExistsError where something of that name is there."""
        _one_name(name)
        with self._named(name):
            os.mkdir(name, mode, dir_fd=self.descriptor)
        return self.folder(name)

    def rename(self, name: str, other: str) -> None:
        """Within it; what had the other name is gone then."""
        os.replace(_one_name(name), _one_name(other), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    # --------------------------------------------------------------------------------------------------- removing

    def remove(self, name: str, *, missing_ok: bool = False) -> None:
        """A file, or a link itself."""
        try:
            os.unlink(_one_name(name), dir_fd=self.descriptor)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_empty(self, name: str) -> None:
        """An empty folder; a link to one is an error."""
        os.rmdir(_one_name(name), dir_fd=self.descriptor)

    def remove_tree(self, name: str) -> None:
        """Whatever has that name, a folder with all that is in it. Links are removed and not followed."""
        found = self.status(name)
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            self.remove(name, missing_ok=True)
            return
        descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self.descriptor)
        with Folder(descriptor, self.path / name) as inner:
            for each in inner.names():
                inner.remove_tree(each)
        self.remove_empty(name)


@dataclass(frozen=True)
class _Descriptor:
    number: int

    def close(self) -> None:
        os.close(self.number)


@dataclass(frozen=True)
class Listing:
    """What is in a folder."""

    folder: Folder
    folders: list[str]
    files: list[str]
    """Everything else: files, links, pipes, ..."""


# -------------------------------------------------------------------------------------------- what the user has named


def _read_bounded(descriptor: int, most: int, path: Path | str, wait_s: float | None = None) -> bytes:
    """From where the descriptor stands to the end. A pipe that gives nothing for `wait_s` is given up."""
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_size > most:
        raise UnsafeFileError(f"is {found.st_size:,} bytes long; at most {most:,} are read", path)
    parts: list[bytes] = []
    left = most + 1
    while left > 0:
        if wait_s is not None and not select.select([descriptor], [], [], wait_s)[0]:
            raise UnsafeFileError(f"is a pipe into which nobody has written for {wait_s:.0f} s", path)
        part = os.read(descriptor, min(left, _BLOCK))
        if not part:
            return b"".join(parts)
        parts.append(part)
        left -= len(part)
    raise UnsafeFileError(f"does not end within {most:,} bytes, and no more are read", path)


def open_named(path: str | Path, *, most: int | None = None) -> IO[bytes]:
    """A regular file that the user, the system or an executable names, to be read; links are followed.

    Nothing but a regular file is opened: even opening and closing some devices does harm.
    """
    looked = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(looked)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFileError(f"is {kind_of(found.st_mode)}, not a file", path)
        if most is not None and found.st_size > most:
            raise UnsafeFileError(f"is {found.st_size:,} bytes long; at most {most:,} are read", path)
        return os.fdopen(_reopened(looked, path), "rb")
    finally:
        os.close(looked)


def named_holds(path: str | Path, texts: tuple[bytes, ...], most: int = 1 << 30) -> set[bytes]:
    """Which of these stand in the first `most` bytes of such a file. Keeps a block of it in memory at a time."""
    found: set[bytes] = set()
    longest = max(map(len, texts))
    before = b""
    with open_named(path) as file:
        while most > 0 and len(found) < len(texts) and (block := file.read(min(most, 1 << 20))):
            most -= len(block)
            window = before + block
            found.update(text for text in texts if text not in found and text in window)
            before = window[len(window) - longest :] if len(window) > longest else window
    return found


def _reopened(looked: int, path: str | Path) -> int:
    """A descriptor to read what `looked` (O_PATH) names, without asking its name again."""
    try:
        return os.open(f"/proc/self/fd/{looked}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_named(path: Path, most: int = MOST_TEXT) -> bytes:
    """The whole of a text that the user named: a file, or a pipe such as <(command); bounded in bytes and in time."""
    looked = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(looked).st_mode
        handed_over = str(path).startswith(_HANDED_OVER)
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or (handed_over and stat.S_ISCHR(mode))):
            raise UnsafeFileError(f"is {kind_of(mode)}, not a file", path)
        descriptor = _reopened(looked, path)
        try:
            os.set_blocking(descriptor, True)
            # The writer of <(command) is the user's own, and may take its time.
            return _read_bounded(descriptor, most, path, WAIT_S if stat.S_ISFIFO(mode) and not handed_over else None)
        finally:
            os.close(descriptor)
    finally:
        os.close(looked)


@contextlib.contextmanager
def written_as(path: Path) -> Iterator[None]:
    """Where there is no room for what is written, the error says of which file; the kernel's says none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


@contextlib.contextmanager
def writing_named(path: Path) -> Iterator[IO[bytes]]:
    """A file that the user named, to be written: it appears whole or not at all. A link there is replaced.

    What is a pipe or a terminal (/dev/stdout) is written into as it is.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
            # Without a reader a pipe says so at once.
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "wb") as file:
                yield file
            return
        if not stat.S_ISREG(mode):
            raise UnsafeFileError(f"is {kind_of(mode)}, not a file; name a file", path)
    with Folder.open(path.parent) as folder, folder.replacing(path.name) as file:
        yield file


def write_named(path: Path, content: bytes | str) -> None:
    """The same for content that is there."""
    with writing_named(path) as file:
        file.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)


# -------------------------------------------------------------------------------------------- folders of the user's own


def own_folder(path: Path) -> Folder:
    """A folder of the user's alone, made with mode 0700 where it is missing. IoweirError where it is somebody else's.

    The last name may be no link: in a folder for all, such as /tmp, anybody may have put one there.
    """
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        folder = Folder(os.open(path, _FOLDER | os.O_NOFOLLOW), path)
    except OSError as error:
        raise IoweirError(f"{path} cannot be used: {_reason(error, path)}. {_OWN}") from error
    if why := folder.why_not_own():
        folder.close()
        raise IoweirError(f"{path} cannot be used: it {why}. {_OWN}")
    return folder


_OWN: Final = "Set XDG_RUNTIME_DIR to a folder of your own, mode 0700"


def _reason(error: OSError, path: Path) -> str:
    with contextlib.suppress(OSError):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode):
            return f"it is {kind_of(mode)}"
    return str(error.strerror)


def runtime_folder() -> Folder:
    """Where the user's commands find each other's labs until the machine is started again: verified, mode 0700.

    Root's lies in /run; others' in XDG_RUNTIME_DIR, or in /tmp by the number of the user where that is not set.
    """
    me = os.geteuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if me == 0:
        return own_folder(Path("/run/ioweir"))
    if runtime.startswith("/"):
        own_folder(Path(runtime)).close()
        return own_folder(Path(runtime, "ioweir"))
    return own_folder(Path("/tmp", f"ioweir-{me}"))


def who_may_rename(path: Path) -> str:
    """Who but the user and root may put another folder in the place of this one or of one above it; empty: nobody."""
    me = os.geteuid()
    whole = Path(os.path.realpath(path))
    for inner, above in zip([whole, *whole.parents], whole.parents, strict=False):
        info = above.stat()
        if info.st_uid not in (me, 0):
            return f"user {info.st_uid}, to whom {above} belongs"
        everybody = info.st_mode & stat.S_IWOTH or (me == 0 and info.st_gid != 0 and info.st_mode & stat.S_IWGRP)
        if everybody and not info.st_mode & stat.S_ISVTX:
            return f"whoever may write into {above}, which holds {inner.name}"
    return ""


def loads_bounded(folder: Folder, name: str, most: int, **how: Any) -> Any:
    """A JSON file of a folder; ValueError where it is none, also one that is nested beyond measure."""
    return loads(folder.read_text(name, most, **how))


def loads(text: str) -> Any:
    """JSON that somebody else may have written; its texts can be printed and written."""
    import json  # noqa: PLC0415 (shim.py starts with every launcher and needs none)

    try:
        return json.loads(plain_text.json(text) if "\\ud" in text or "\\uD" in text else text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
