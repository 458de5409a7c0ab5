"""From traces to a site's store: which folders are traces, which are new, which are still being written.

Not here: what is kept of a run (rows.py), how (store.py).
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from ioweir.base import progress
from ioweir.base.guarded_files import Folder, loads_bounded
from ioweir.base.locate import RUN_FILE
from ioweir.base.processes import workers
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site import rows
from ioweir.trace.compressed import node_files
from ioweir.trace.trace_files import MOST_RUN_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from ioweir.site.store import Store

_BATCH: Final = 256
"""Runs that are stored at a time: what is interrupted loses no more."""
_SAME: Final = ("started", "cwd", "command", "host", "imported")


@dataclass
class Done:
    """What `ioweir site add` came to. `failed`: why, by trace."""

    added: int = 0
    known: int = 0
    unsettled: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """A folder with a trace."""

    path: Path
    identity: str
    ended: bool
    newest: float
    """When something in it was written last, in seconds since 1970."""


def add(store: Store, places: Sequence[Path], settled_s: float, jobs: int, *, anonymise: bool) -> Done:
    """Adds the traces at these places: traces, or folders of them. Those that the store knows are not read again."""
    done, known = Done(), store.known()
    new: list[tuple[Path, str]] = []
    for one in candidates(places):
        key = store.key(one.identity)
        if key in known:
            done.known += 1
        elif not one.ended and time.time() - one.newest < settled_s:
            done.unsettled.append(str(one.path))
        else:
            known.add(key)
            new.append((one.path, key))
    read = progress.counted(_read_all(new, jobs), len(new))
    while batch := list(islice(read, _BATCH)):
        collected = []
        for path, result in batch:
            if isinstance(result, str):
                done.failed[str(path)] = result
            else:
                collected.append(result)
        store.add(collected, anonymise=anonymise)
        done.added += len(collected)
    return done


def _read_all(new: Sequence[tuple[Path, str]], jobs: int) -> Iterator[tuple[Path, rows.Collected | str]]:
    for at in range(0, len(new), _BATCH):
        yield from _read(new[at : at + _BATCH], jobs)


def _read(some: Sequence[tuple[Path, str]], jobs: int) -> Iterator[tuple[Path, rows.Collected | str]]:
    """Each trace's rows, or why it cannot be read. A trace that ends the process that reads it is lost alone."""
    if jobs == 1 or len(some) == 1:
        for path, key in some:
            yield path, _one(path, key)
        return
    with workers(min(jobs, len(some))) as pool:
        waiting = [(path, key, pool.submit(_one, path, key)) for path, key in some]
        for path, _, future in waiting:
            try:
                yield path, future.result()
            except BrokenProcessPool:
                yield path, "a process that read traces was ended; `ioweir report` on each of the traces says more"


def _one(path: Path, key: str) -> rows.Collected | str:
    try:
        return rows.of_trace(path, key)
    except IoweirError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def candidates(places: Sequence[Path]) -> Iterator[Candidate]:
    """The traces at these places."""
    for place in places:
        try:
            with Folder.open(place) as folder:
                one = candidate(folder)
                if one is not None:
                    yield one
                    continue
                found = False
                for name in folder.names():
                    for inner in _folders(folder, name):
                        found = True
                        yield inner
        except OSError as error:
            raise IoweirError(f"'{place}' cannot be opened: {error.strerror}", EXIT_USAGE) from error
        if not found:
            raise IoweirError(f"'{place}' is no trace, and no folder with traces", EXIT_USAGE)


def _folders(folder: Folder, name: str) -> Iterator[Candidate]:
    """A trace of that name, if it is one. A folder of somebody who is not trusted is none."""
    try:
        with folder.folder(name) as inner:
            one = candidate(inner)
    except OSError:
        return
    if one is not None:
        yield one


def candidate(folder: Folder) -> Candidate | None:
    """What a folder is, if it is a trace."""
    names = folder.names()
    files = [*node_files(names), *(name for name in names if name == RUN_FILE)]
    if not files:
        return None
    states = {name: folder.status(name) for name in files}
    newest = max((state.st_mtime for state in states.values() if state is not None), default=0.0)
    run: dict[str, Any] = {}
    if RUN_FILE in files:
        try:
            content = loads_bounded(folder, RUN_FILE, MOST_RUN_BYTES)
            run = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            run = {}
    said = [run.get(name) for name in _SAME]
    if run.get("started") is None:  # nothing tells runs apart but what they wrote
        said += [[name, state.st_size, state.st_mtime] for name, state in states.items() if state is not None]
    identity = json.dumps(said)
    return Candidate(folder.path, identity, run.get("state") == "ended", newest)


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))
