"""Old traces of a site, found and removed: `ioweir site prune`.

A trace goes where all of this holds; whatever else lies in the folder stays, and no link is followed:

- it is a folder right below the one that was named, of that one's owner, root or the user;
- it holds a trace's files and nothing else: by their names, and one of them at least by what stands in it;
- nobody has written into it for the time that was asked for;
- its run has ended, or else no process of this machine has its files mapped.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder, loads_bounded, open_named
from ioweir.base.locate import COMPRESSED_SUFFIX, NODE_FILES, RUN_FILE
from ioweir.base.units import size
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.site import collect
from ioweir.trace.trace_files import MOST_RUN_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ioweir.site.store import Store

LEAST_WITHOUT_END_S: Final = 3600.0
"""A trace whose run has not ended is left alone for so long, whatever was asked for."""
_OWN: Final = (
    "report.json", "plan.toml", RUN_FILE, NODE_FILES, NODE_FILES + COMPRESSED_SUFFIX, "node-*.sums.zst", "all.sums.zst",
)  # fmt: skip
_DRAFT: Final = re.compile(r"\.(run\.json|report\.json|plan\.toml|node-.*|all\..*)\.[0-9a-f]{16}")
_STAND_INS: Final = "shims"
_MAGIC: Final = b"IOWEIRT1"
_COMPRESSED_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_DAY_S: Final = 86_400.0


@dataclass
class Old:
    """A trace that is old enough. `kept`: why it stays all the same; empty where it is removed."""

    trace: str
    age_days: float
    bytes: int
    kept: str = ""


@dataclass
class Pruned:
    """What `ioweir site prune` came to. `removed`: whether it did, or only said what it would do."""

    removed: bool
    traces: list[Old] = field(default_factory=list)

    @property
    def going(self) -> list[Old]:
        """Those that do not stay."""
        return [one for one in self.traces if not one.kept]


def prune(places: Sequence[Path], older_than_s: float, store: Store | None, *, remove: bool) -> Pruned:
    """Of traces in these folders. With a store only those go that it has."""
    done = Pruned(remove)
    known = store.known() if store is not None else None
    mapped = _mapped_files()
    for place in places:
        try:
            with Folder.open_through_own_links(place) as above:
                for name in above.names():
                    one = _looked_at(above, name, older_than_s, mapped)
                    if one is None:
                        continue
                    old, identity = one
                    if not old.kept and store is not None and known is not None and store.key(identity) not in known:
                        old.kept = "the store does not have it: `ioweir site add` it first"
                    if not old.kept and remove:
                        old.kept = _removed(above, name)
                    done.traces.append(old)
        except OSError as error:
            raise IoweirError(f"'{place}' is left alone: {error.strerror}", EXIT_USAGE) from error
    return done


def _looked_at(
    above: Folder, name: str, older_than_s: float, mapped: Collection[tuple[str, int]]
) -> tuple[Old, str] | None:
    """A trace that is old enough; None for anything else."""
    found = above.status(name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return None
    try:
        with above.folder(name) as folder:
            trace = collect.candidate(folder)
            if trace is None or not _is_ours(folder):
                return None
            foreign, states = _content(folder)
    except OSError:
        return None
    age_s = time.time() - max((state.st_mtime for _, state in states), default=found.st_mtime)
    if age_s < older_than_s or (not trace.ended and age_s < LEAST_WITHOUT_END_S):
        return None
    old = Old(str(above.path / name), age_s / _DAY_S, sum(state.st_blocks * 512 for _, state in states))
    if foreign:
        old.kept = f"'{foreign}' in it is no part of a trace: move that elsewhere"
    elif not trace.ended and any((file, state.st_ino) in mapped for file, state in states):
        old.kept = "a process of this machine still has it open"
    return old, trace.identity


def _content(folder: Folder) -> tuple[str, list[tuple[str, os.stat_result]]]:
    """The first name that no trace has, and all files with what the system says of them."""
    foreign, states = "", []
    for name in folder.names():
        state = folder.status(name)
        if state is None:
            continue
        if name == _STAND_INS and stat.S_ISDIR(state.st_mode):
            with folder.folder(name) as inner:
                for each in inner.names():
                    script = inner.status(each)
                    if script is not None and not stat.S_ISREG(script.st_mode):
                        foreign = foreign or f"{name}/{each}"
        elif stat.S_ISREG(state.st_mode) and _is_own_name(name):
            states.append((name, state))
        else:
            foreign = foreign or name
    return foreign, states


def _is_own_name(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _OWN) or _DRAFT.fullmatch(name) is not None


def _is_ours(folder: Folder) -> bool:
    """Whether a file of the folder says that it belongs to a trace: other programs write a run.json, too."""
    for name in folder.names():
        with contextlib.suppress(OSError, ValueError):
            if name == RUN_FILE:
                said: Any = loads_bounded(folder, name, MOST_RUN_BYTES)
                if isinstance(said, dict) and {"state", "ioweir_version", "imported", "simulated"} & said.keys():
                    return True
            elif fnmatch.fnmatchcase(name, NODE_FILES) or fnmatch.fnmatchcase(name, NODE_FILES + COMPRESSED_SUFFIX):
                descriptor = folder.open_file(name)
                try:
                    if os.pread(descriptor, 8, 0).startswith((_MAGIC, _COMPRESSED_MAGIC)):
                        return True
                finally:
                    os.close(descriptor)
    return False


def _mapped_files() -> set[tuple[str, int]]:
    """Names and numbers of nodes' files that processes of this machine have mapped, as far as this user may see it."""
    found: set[tuple[str, int]] = set()
    for number in os.scandir("/proc"):
        if not number.name.isdecimal():
            continue
        with contextlib.suppress(OSError), open_named(Path("/proc", number.name, "maps")) as file:
            for line in file:
                words = line.split(maxsplit=5)
                if len(words) == 6 and b".iowt" in words[5]:
                    path = os.fsdecode(words[5].rstrip(b"\n"))
                    found.add((path.rpartition("/")[2], int(words[4])))
    return found


def _removed(above: Folder, name: str) -> str:
    """Removes a trace; why that failed, in words. run.json goes last, so that what an interruption leaves is found."""
    try:
        with above.folder(name) as folder:
            foreign, states = _content(folder)
            if foreign:
                return f"'{foreign}' has come into it meanwhile"
            if folder.status(_STAND_INS) is not None:
                with folder.folder(_STAND_INS) as inner:
                    for script in inner.names():
                        inner.remove(script, missing_ok=True)
                folder.remove_empty(_STAND_INS)
            for file, _ in sorted(states, key=lambda one: one[0] == RUN_FILE):
                folder.remove(file, missing_ok=True)
        above.remove_empty(name)
    except OSError as error:
        return f"cannot be removed: {error.strerror}"
    return ""


def to_text(done: Pruned) -> Iterator[str]:
    """A line a trace, and the sum."""
    for one in done.traces:
        said = f"stays: {one.kept}" if one.kept else size(one.bytes)
        yield f"{one.trace}: {one.age_days:.0f} days old, {said}"
    total = size(sum(one.bytes for one in done.going))
    verb = "removed" if done.removed else "would be removed; --yes removes them"
    yield f"{len(done.going):,} traces of {total} {verb}"
