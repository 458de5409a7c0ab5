"""`ioweir merge-sums DIR... -o OUT`: sums of all nodes of a run, from their events or from sums that were made before.

Nodes are independent of each other: a job may let each node add up its own events (`--host`), and merge what they made.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioweir.base import json_text
from ioweir.base.guarded_files import Folder, loads_bounded
from ioweir.base.locate import RUN_FILE
from ioweir.base.new_folder import require_empty, whole_folder
from ioweir.base.processes import workers
from ioweir.base.units import plural
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.report import node_end
from ioweir.trace import compressed, node_sums, reader, trace_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Merged:
    """What was written."""

    directory: Path
    hosts: int
    ranks: int
    rows: int
    files: int
    partial: tuple[str, ...]
    without_ranks: tuple[str, ...]
    """Nodes that hold no rank: a launcher's, say."""


def to_json(merged: Merged) -> dict[str, Any]:
    """What `--json` prints."""
    return vars(merged) | {"directory": str(merged.directory)}


def to_text(merged: Merged) -> list[str]:
    """What was written, and what it lacks."""
    lines = [
        f"{merged.directory}: {merged.hosts:,} {plural('node', merged.hosts)}, {merged.ranks:,} "
        f"{plural('rank', merged.ranks)}, {merged.files:,} {plural('file', merged.files)}, {merged.rows:,} rows of sums"
    ]
    lines += [f"without a rank, left out: {name}" for name in merged.without_ranks]
    return lines + [f"PARTIAL: {words}" for words in merged.partial]


def merge(sources: Sequence[Path], output: Path, *, jobs: int = 1, hosts: Sequence[str] | None = None) -> Merged:
    """Write OUT/all.sums.zst and OUT/run.json. Nothing is written where a node cannot be read."""
    require_empty(output)
    parts: list[node_sums.NodeSums] = []
    without: list[str] = []
    work: list[tuple[str, str]] = []
    for source in sources:
        with _opened(source) as folder:
            names = folder.names()
            nodes = [name for name in compressed.node_files(names) if _is_asked_for(name, hosts)]
            ended = {name: node_sums.name_of(name) for name in nodes if node_sums.name_of(name) in names}
            made = [*ended.values()] if nodes else node_sums.names_in(names)
            nodes = [name for name in nodes if name not in ended]
            if not nodes and not made:
                which = f" of {', '.join(hosts)}" if hosts else ""
                raise IoweirError(f"'{source}' holds neither events{which} nor sums of nodes", EXIT_USAGE)
            work += [(str(source), name) for name in nodes]
            for name in made:
                try:
                    parts.append(node_sums.read(folder, name))
                except ValueError as error:
                    raise IoweirError(f"{source / name}: {error}") from error
    for (source_name, name), part in zip(work, _all(work, jobs), strict=True):
        if part is None:
            without.append(f"{source_name}/{name}")
        else:
            parts.append(part)
    if not parts:
        raise IoweirError("no node holds an MPI rank: sums are by rank, and a report of so little needs none")
    merged = node_sums.merge(parts)
    with whole_folder(output, (node_sums.MERGED_NAME, RUN_FILE), 0o700) as folder:
        node_sums.write(folder, node_sums.MERGED_NAME, merged)
        folder.write(RUN_FILE, "\n".join(json_text.lines(_run_of(sources))) + "\n")
    return Merged(
        output, len(merged.hosts), merged.ranks, merged.rows, len(merged.files), merged.partial, tuple(without)
    )


def _opened(source: Path) -> Folder:
    try:
        return Folder.open(source)
    except OSError as error:
        raise IoweirError(f"'{source}': {error.strerror}", EXIT_USAGE) from error


def _is_asked_for(name: str, hosts: Sequence[str] | None) -> bool:
    return hosts is None or compressed.host_of(name) in hosts


def _all(work: Sequence[tuple[str, str]], jobs: int) -> list[node_sums.NodeSums | None]:
    if jobs == 1 or len(work) < 2:
        return [_of_node(one) for one in work]
    with workers(min(jobs, len(work), 4 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(_of_node, work))


def _of_node(place: tuple[str, str]) -> node_sums.NodeSums | None:
    """The sums of one node; None: no rank ran there."""
    source, name = place
    return node_end.of_node(reader.read(source, name), name)


def _run_of(sources: Sequence[Path]) -> dict[str, Any]:
    """What is known of the run, without its list of nodes, whose events are not here."""
    for source in sources:
        with Folder.open(source) as folder:
            try:
                content = loads_bounded(folder, RUN_FILE, trace_files.MOST_RUN_BYTES)
            except (OSError, ValueError):
                continue
        if isinstance(content, dict):
            return {key: value for key, value in content.items() if key != "nodes"}
    return {}
