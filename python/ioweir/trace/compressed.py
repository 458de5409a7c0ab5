"""Nodes' files of a trace, compressed when the run has ended: node-HOST.iowt becomes node-HOST.iowt.zst.

A compressed file is an ordinary Zstandard file; `zstd -d` undoes it. Readers expand it into memory that has no name and
hand that to the compiled reader as a file. A file is compressed only where all that wrote into it have ended, and the
original goes only after the compressed one has its name: whoever looks meanwhile finds one of them whole.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import progress
from ioweir.base.guarded_files import Folder
from ioweir.base.locate import COMPRESSED_SUFFIX, NODE_FILES
from ioweir.base.units import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ioweir.trace.reader import Process, Trace

LEVEL: Final = 6
"""Of Zstandard. docs/results/tracer.md has sizes and times of others."""
_PIECE: Final = 1 << 20
_BLOCK: Final = 4096
MOST_RATIO: Final = 256
"""Bytes that are not in all-zero blocks, for each byte compressed: a file that claims more was made to fill memory."""
MOST_LENGTH_RATIO: Final = 4096
_SPARE: Final = 64 << 20
_SMALL_SPARE: Final = 1 << 20


@dataclass(frozen=True)
class Compressed:
    """What `compress` did to a node's file."""

    name: str
    before: int
    """Bytes of data, without holes."""
    after: int
    """Bytes now; `before` where it was left as it is."""
    why_not: str = ""
    """Left as it is, because."""


def plain_name(name: str) -> str:
    """Of a node's file, compressed or not."""
    return name.removesuffix(COMPRESSED_SUFFIX)


def host_of(name: str) -> str:
    """Of a node's file. Example: node-a.iowt.zst -> a."""
    begin, end = NODE_FILES.split("*")
    return plain_name(name).removeprefix(begin).removesuffix(end)


def node_files(names: Sequence[str]) -> list[str]:
    """The nodes' files among the names in a trace directory."""
    patterns = (NODE_FILES, NODE_FILES + COMPRESSED_SUFFIX)
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def is_twice(folder: Folder, name: str, memory: int) -> bool:
    """Whether the original of an expanded file is there, too: compressing ended before it had gone.

    Something else under its name was written by a process that began after the run had ended.
    """
    if folder.status(plain_name(name)) is None:
        return False
    plain = folder.open_file(plain_name(name))
    try:
        at = 0
        while piece := os.pread(plain, _PIECE, at):
            if piece != os.pread(memory, _PIECE, at):
                return False
            at += len(piece)
        return at == os.fstat(memory).st_size
    finally:
        os.close(plain)


def compress_all(directory: Path, trace: Trace, *, also_unfinished: bool = False) -> list[Compressed]:
    """Compress the files of all nodes of a trace of the user's own, where nobody writes into them any more."""
    with Folder.open(directory, own=True) as folder:
        names = [name for name in folder.names() if fnmatch.fnmatch(name, NODE_FILES)]
        done = []
        for name in progress.counted(names):
            why = why_not(name, trace)
            if why and not also_unfinished:
                taken = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False).st_blocks * 512
                done.append(Compressed(name, taken, taken, why))
            elif folder.status(name + COMPRESSED_SUFFIX) is not None:
                done.append(Compressed(name, 0, 0, f"{name}{COMPRESSED_SUFFIX} is there, too"))
            else:
                done.append(compress(folder, name))
        return done


def why_not(name: str, trace: Trace) -> str:
    """Why a node's file is to stay; a network file system may still bring what makes a damaged one whole."""
    if host_of(name) in hosts_with_unfinished_processes(trace.processes):
        return "a process has not ended, or was killed"
    return "it is damaged" if any(f"{name}: " in line for line in trace.damage) else ""


def hosts_with_unfinished_processes(processes: Sequence[Process]) -> set[str]:
    """Where a process that wrote into the trace may still run: it left no end, and was not replaced by exec."""
    last = {(process.host, process.pid): process for process in sorted(processes, key=lambda one: one.start_ns)}
    return {process.host for process in last.values() if process.end_ns < 0}


def to_text(done: Sequence[Compressed]) -> list[str]:
    """A line for each node."""
    if not done:
        return ["nothing to compress: the nodes' files are compressed, or there are none"]
    return [
        f"{one.name}: stays as it is: {one.why_not}" if one.why_not
        else f"{one.name}{COMPRESSED_SUFFIX}: {size(one.after)}, was {size(one.before)}"
        for one in done
    ]  # fmt: skip


def to_json(done: Sequence[Compressed]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "nodes": [
            {"file": one.name, "before_bytes": one.before, "after_bytes": one.after, "why_not": one.why_not or None}
            for one in done
        ]
    }


def compress(folder: Folder, name: str) -> Compressed:
    """Compress a node's file of a trace of the user's own, which nobody writes into any more. OSError: it stays."""
    import zstandard  # noqa: PLC0415 (only where there is something to compress)

    descriptor = folder.open_file(name, own=True)
    try:
        found = os.fstat(descriptor)
        before = found.st_blocks * 512
        parameters: dict[str, Any] = {"level": LEVEL, "write_checksum": True, "threads": _threads(found.st_size)}
        written = _Bounds()
        with folder.replacing(name + COMPRESSED_SUFFIX, 0o600) as out:
            os.fchmod(out.fileno(), found.st_mode & 0o777)
            writer = zstandard.ZstdCompressor(**parameters).stream_writer(out, size=found.st_size, closefd=False)
            with writer:
                while piece := os.read(descriptor, _PIECE):
                    written.add(piece)
                    writer.write(piece)
            out.flush()
            after = out.tell()
            too_good = written.excess(after)
            if too_good or after >= before:
                why = "it would be refused as too well compressed" if too_good else "it would not become smaller"
                raise _LeaveError(why)
        folder.remove(name)
    except _LeaveError as reason:
        return Compressed(name, before, before, str(reason))
    finally:
        os.close(descriptor)
    return Compressed(name, before, after)


class _LeaveError(Exception):
    """The file stays as it is."""


def _threads(size: int) -> int:
    """Of a file of a few pieces one thread is done before others have begun."""
    return min(len(os.sched_getaffinity(0)), 8) if size > 8 * _PIECE else 0


class _Bounds:
    """How much was expanded, and whether a trace can have been so much."""

    def __init__(self) -> None:
        self.length = 0
        self.data = 0

    def add(self, piece: bytes) -> list[tuple[int, memoryview]]:
        """Counts a piece; returns the parts of it that are not all zero, with their places."""
        parts: list[tuple[int, memoryview]] = []
        view = memoryview(piece)
        for at in range(0, len(piece), _BLOCK):
            block = view[at : at + _BLOCK]
            if block == _ZEROS[: len(block)]:
                continue
            if parts and parts[-1][0] + len(parts[-1][1]) == self.length + at:
                begin = parts[-1][0] - self.length
                parts[-1] = (parts[-1][0], view[begin : at + len(block)])
            else:
                parts.append((self.length + at, block))
        self.length += len(piece)
        self.data += sum(len(part) for _, part in parts)
        return parts

    def excess(self, compressed: int) -> str:
        """In words; empty: it can be a trace."""
        if self.data > MOST_RATIO * compressed + _SPARE or self.length > MOST_LENGTH_RATIO * compressed + _SPARE:
            return f"expands to more than {MOST_RATIO} times its size, which no trace does"
        return ""


_HEADER_BYTES: Final = 18
_ZEROS: Final = memoryview(bytes(_BLOCK))


@contextlib.contextmanager
def expanded(folder: Folder, name: str, damage: list[str]) -> Iterator[int]:
    """A descriptor of memory that holds a compressed node's file, as far as it can be expanded; the rest is said."""
    import zstandard  # noqa: PLC0415 (only traces that are compressed)

    source = folder.open_file(name)
    try:
        memory = os.memfd_create(f"ioweir {name}"[:200], os.MFD_CLOEXEC)
        try:
            compressed = os.fstat(source).st_size
            bounds = _Bounds()
            declared = _declared_bytes(os.pread(source, _HEADER_BYTES, 0))
            with os.fdopen(os.dup(source), "rb") as file:
                reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
                    file, read_across_frames=True, closefd=False
                )
                try:
                    while piece := reader.read(_PIECE):
                        for at, part in bounds.add(piece):
                            _write(memory, part, at)
                        if why := bounds.excess(compressed):
                            damage.append(f"{folder.path / name}: {why}; the rest is left out")
                            break
                    else:
                        if bounds.length < declared:
                            damage.append(
                                f"{folder.path / name}: is cut off: {bounds.length:,} of {declared:,} B of the trace "
                                "are there"
                            )
                except zstandard.ZstdError as error:
                    damage.append(
                        f"{folder.path / name}: is damaged or cut off behind {bounds.length:,} B of the trace "
                        f"({error}); the rest is left out"
                    )
            os.ftruncate(memory, bounds.length)
            yield memory
        finally:
            os.close(memory)
    finally:
        os.close(source)


def expand_small(folder: Folder, name: str, most: int) -> bytes:
    """The whole of a compressed file of at most so many bytes. ValueError: it is damaged, cut off, or holds more.

    More is also what no such file holds for its size: of text that is read into objects a few bytes would fill memory.
    """
    import zstandard  # noqa: PLC0415

    content = folder.read(name, most)
    most = min(most, MOST_RATIO * len(content) + _SMALL_SPARE)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(content)
        expanded = reader.read(most + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"is damaged ({error})") from error
    declared = _declared_bytes(content[:_HEADER_BYTES])
    if len(expanded) > most or declared > most:
        raise ValueError(f"holds more than {most:,} B")
    if len(expanded) < declared:
        raise ValueError(f"is cut off: {len(expanded):,} of {declared:,} B are there")
    return bytes(expanded)


def _declared_bytes(header: bytes) -> int:
    """How much a Zstandard file says it holds; 0 where it does not say, or is none."""
    import zstandard  # noqa: PLC0415

    try:
        return max(zstandard.frame_content_size(header), 0)
    except zstandard.ZstdError:
        return 0


def _write(memory: int, part: memoryview, at: int) -> None:
    while part:
        done = os.pwrite(memory, part, at)
        part, at = part[done:], at + done
