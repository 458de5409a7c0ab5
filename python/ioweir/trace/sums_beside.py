"""Sums in a trace's directory that stand in the place of events: an imported log's, those of all nodes.

Which of them are read, if any, reader.py decides. What is in them: counted.py, node_sums.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.guarded_files import loads_bounded
from ioweir.errors import IoweirError
from ioweir.trace import counted, node_sums
from ioweir.trace.reader import SUMS_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.base.guarded_files import Folder
    from ioweir.trace.counted import Counted


def of_a_log(folder: Folder, damage: list[str]) -> Counted | None:
    """Those of an imported log."""
    try:
        return counted.from_json(loads_bounded(folder, SUMS_FILE, counted.MOST_BYTES))
    except (OSError, ValueError) as error:
        damage.append(f"{SUMS_FILE}: {error}")
        return None


def of_all_nodes(folder: Folder, names: Sequence[str], damage: list[str]) -> Counted | None:
    """The sums of all nodes, None where there are none."""
    parts = []
    for name in node_sums.names_in(names):
        try:
            parts.append(node_sums.read(folder, name))
        except (OSError, ValueError) as error:
            damage.append(f"{name}: {error}")
    return node_sums.counted(node_sums.merge(parts), str(folder.path)) if parts else None


def of_many_nodes(folder: Folder, names: Sequence[str], nodes: Sequence[str]) -> Counted | None:
    """The sums in place of the events of very many nodes; None where they do not have every rank."""
    made = {node_sums.name_of(name) for name in nodes}.intersection(names)
    if not made:
        return None
    try:
        merged = node_sums.merge([node_sums.read(folder, name) for name in sorted(made)])
    except (OSError, ValueError, IoweirError):
        return None  # the events are there
    return node_sums.counted(merged, str(folder.path)) if len(merged.known) == merged.ranks else None
