"""Whether two traces hold the same calls, by a way of its own: nothing of ioweir.replay is used here.

Of each rank the calls that the program made itself, in order: function, file, offset, bytes, and of MPI-IO which bytes
of the file. Which rank gets what from a pointer that ranks share is chance, and is not compared.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from ioweir.trace import reader

LAYERS = ("MPI-IO", "POSIX", "STDIO")
STAND_INS = {
    "openat": "open", "fputs": "fwrite", "fprintf": "fwrite", "fputc": "fwrite", "statx": "stat", "fstatat": "stat",
    "fseeko": "fseek", "rewind": "fseek", "unlinkat": "unlink",
}  # fmt: skip
"""What a replay says that it calls instead."""


def calls_of(directory: Any, is_data: Any) -> dict[int, list[tuple[Any, ...]]]:
    """By rank. `is_data` says of a path whether it is one of the program's files."""
    trace = reader.read(directory)
    functions = {function.id: function for function in trace.functions}
    extents: dict[tuple[int, int], Any] = {}
    requests = trace.requests()
    for number in range(len(requests)):
        found = requests.extents(number)
        if found is not None:
            key = (int(requests.thread[number]), int(requests.seq[number]))
            extents[key] = tuple(zip(found[0].tolist(), found[1].tolist(), strict=True))
    events = trace.events
    parents = {
        (int(thread), int(seq)): (int(parent), functions[int(function)].layer)
        for thread, seq, parent, function in zip(events.thread, events.seq, events.parent, events.function, strict=True)
    }
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for i in range(len(events)):
        process, thread, seq = int(events.process[i]), int(events.thread[i]), int(events.seq[i])
        rank, function = trace.processes[process].rank, functions[int(events.function[i])]
        path = trace.paths[int(events.path[i])]
        if rank < 0 or function.layer not in LAYERS or int(events.origin[i]) != 0 or int(events.flags[i]) & 1:
            continue
        above = parents[thread, seq][0]
        inside = False
        while above and (thread, above) in parents:
            inside = inside or parents[thread, above][1] in LAYERS
            above = parents[thread, above][0]
        if inside or not is_data(path):
            continue
        name = STAND_INS.get(function.name, function.name)
        offset = int(events.offset[i])
        if function.completes or (name == "open" and offset != reader.OPENED_TO_SYNC):
            offset = -1  # a number of the trace's own, or nothing
        shared = "shared" in name or "ordered" in name
        row = (
            int(events.start_ns[i]), seq, name, PurePosixPath(path).name, -1 if shared else offset,
            int(events.bytes[i]), extents.get((thread, seq)),
        )  # fmt: skip
        rows.setdefault(rank, []).append(row)
    return {rank: [row[2:] for row in sorted(all_of, key=lambda row: row[:2])] for rank, all_of in rows.items()}


def differences(before: dict[int, list[tuple[Any, ...]]], after: dict[int, list[tuple[Any, ...]]]) -> list[str]:
    """In words; empty where there are none."""
    said = []
    for rank in sorted(before.keys() | after.keys()):
        old, new = before.get(rank, []), after.get(rank, [])
        if len(old) != len(new):
            said.append(f"rank {rank}: {len(old)} calls, then {len(new)}")
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if one != other:
                said.append(f"rank {rank}, call {number}: {one}, then {other}")
                break
    return said
