"""The files of a trace directory: run.json, and the nodes' files as the compiled reader takes them.

What is damaged or missing is said and left out. What the trace holds is reader.py's.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ioweir.base import locate
from ioweir.base.guarded_files import Folder, UnsafeFileError, loads_bounded
from ioweir.base.locate import RUN_FILE
from ioweir.trace import compressed, run_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_RUN_BYTES: Final = 64 << 20
"""Of run.json, which holds the words of a command."""
_HEAD_BYTES: Final = 1 << 16
"""Of a node's file that is not compressed: its head, behind which the chunks begin (src/format/node_file.cpp)."""

_SLACK_NS: Final = 2_000_000_000
"""By which a host's clock may be set while a program runs."""


class _Node(NamedTuple):
    """A node's file: where the compiled reader finds it, and what it is called in messages."""

    path: str
    shown: str
    memory: int | None = None
    """A descriptor of what was expanded."""


def missing_nodes(run: Mapping[str, Any], nodes: Sequence[str]) -> list[str]:
    """The nodes' files that were there when the run ended, and are not any more."""
    listed = run.get("nodes")
    there = {compressed.plain_name(node) for node in nodes}
    return [str(name) for name in listed if name not in there] if isinstance(listed, list) else []


def span_of(run: Mapping[str, Any]) -> tuple[int, int] | None:
    """When the run began and ended, in nanoseconds since 1970; None when that is not known."""
    begin, end = run.get("started"), run.get("ended")
    if begin is None or end is None or begin > end:
        return None
    return int(begin * 1e9), int(end * 1e9)


def of_another_run(run: Mapping[str, Any], hosts: Sequence[str], starts_ns: Sequence[int]) -> list[str]:
    """A line where no process of a trace began while the run of its run.json went on (nanoseconds since 1970).

    Known by the clock of the host that wrote both; other hosts' clocks may be wrong.
    """
    span = span_of(run)
    by_one_clock = {run.get("host")} == set(hosts) and {"imported", "simulated"}.isdisjoint(run)
    if span is None or not starts_ns or not by_one_clock:
        return []
    begin, end = span[0] - _SLACK_NS, span[1] + _SLACK_NS
    if any(begin <= start <= end for start in starts_ns):
        return []
    began, ended, first = (
        time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at // 1_000_000_000)) for at in (*span, min(starts_ns))
    )
    return [
        f"{RUN_FILE}: is of another run, {began} to {ended} UTC: the first process of the nodes' files began at "
        f"{first}; put back the file that `ioweir run` wrote there"
    ]


def read_nodes(
    core: Any, folder: Folder, names: Sequence[str], unreadable: list[str], damage: list[str],
    span: tuple[int, int] | None,
) -> Any:  # fmt: skip
    """All nodes at once, on one clock; a file that is no trace file at all is left out and said to be so."""
    with contextlib.ExitStack() as memories:
        nodes: list[_Node] = []
        heads: dict[tuple[int, bytes], _Node] = {}
        for name in names:
            try:
                node = _opened_node(memories, folder, name, damage)
                if node is None:
                    continue
                first = heads.setdefault(_head(folder, name, node), node)
                if first is node:
                    nodes.append(node)
                else:
                    damage.append(f"{node.shown}: is a copy of {first.shown}, and left out; move one of both away")
            except OSError as error:
                unreadable.append(f"{folder.path / name}: {error.strerror}")
        try:
            return core.read_traces([node.path for node in nodes], span, [node.shown for node in nodes])
        except ValueError:
            readable: list[_Node] = []
            for node in nodes:
                try:
                    core.read_traces([node.path], span, [node.shown])
                    readable.append(node)
                except ValueError as error:
                    unreadable.append(str(error))  # names the file
            return core.read_traces([node.path for node in readable], span, [node.shown for node in readable])


def _opened_node(memories: contextlib.ExitStack, folder: Folder, name: str, damage: list[str]) -> _Node | None:
    """None: the file is there twice, compressed and not."""
    path = str(folder.path / name)
    if not name.endswith(locate.COMPRESSED_SUFFIX):
        return _Node(path, path)
    memory = memories.enter_context(compressed.expanded(folder, name, damage))
    if compressed.is_twice(folder, name, memory):
        return None
    return _Node(f"/proc/self/fd/{memory}", path, memory)


def _head(folder: Folder, name: str, node: _Node) -> tuple[int, bytes]:
    """What two nodes' files do not share: size and head, which holds the host and when and what ran there first."""
    file = folder.open_file(name) if node.memory is None else os.dup(node.memory)
    try:
        size = os.fstat(file).st_size
        # A file without a whole chunk is said to be cut off, under its own name.
        return size, os.pread(file, 2 * _HEAD_BYTES, 0) if size > _HEAD_BYTES else name.encode(errors="surrogateescape")
    finally:
        os.close(file)


def cut_off(folder: Folder, names: Sequence[str], unreadable: Sequence[str]) -> Iterator[str]:
    """Those of the files that were read, and end within their heads: to the compiled reader they hold no call."""
    for name in names:
        path = str(folder.path / name)
        found = folder.status(name)
        if name.endswith(locate.COMPRESSED_SUFFIX) or found is None or any(path in line for line in unreadable):
            continue
        if stat.S_ISREG(found.st_mode) and found.st_size < _HEAD_BYTES:
            yield f"{path}: is cut off after {found.st_size:,} bytes, before the first call"


def read_run(folder: Folder, damage: list[str]) -> dict[str, Any] | None:
    """What run.json says, as far as it can be understood; None: there is none."""
    try:
        content = loads_bounded(folder, RUN_FILE, MOST_RUN_BYTES)
    except FileNotFoundError:
        return None
    except UnsafeFileError as error:
        damage.append(f"{RUN_FILE}: {error.strerror}")
        return {}
    except (OSError, ValueError) as error:
        damage.append(f"{RUN_FILE}: {error}")
        return {}
    if not isinstance(content, dict):
        damage.append(f"{RUN_FILE}: holds no JSON object")
        return {}
    run, problems = run_text.checked(content)
    damage.extend(problems)
    return run
