"""Which ranks opened a file together: the openings of all ranks, put together to those of communicators.

A trace says how many ranks a communicator has, not which. All of them, or one alone, is certain; else it is as many
ranks as opened the file then. Where more did, the openings cannot be told apart, and are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from ioweir.replay.datatypes import BYTE
from ioweir.replay.model import Instance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioweir.replay.model import Handle, Op, Recorded


def put_together(recorded: Recorded, handles: Sequence[Handle]) -> None:
    """Gives each handle its opening, and openings their group; takes the calls of bad ones out."""
    _fill_sizes(recorded, handles)
    instances: dict[tuple[int, int, int], Instance] = {}
    times: Counter[tuple[int, int, int]] = Counter()
    for handle in handles:
        same = (handle.rank, handle.file, handle.ranks)
        # Of one rank alone there is nothing to put together: each is an opening of its own.
        key = (handle.file, handle.ranks, times[same])
        times[same] += 1
        if handle.ranks == 1:
            handle.instance = Instance(key, {handle.rank: handle})
            continue
        instance = instances.setdefault(key, Instance(key))
        instance.members[handle.rank] = handle
        handle.instance = instance
    groups: dict[tuple[int, ...], int] = {}
    of_handle: defaultdict[int, list[Op]] = defaultdict(list)
    for rank in recorded.ranks:
        for op in rank.ops:
            if op.handle is not None:
                of_handle[id(op.handle)].append(op)
    openings = {id(handle.instance): handle.instance for handle in handles if handle.instance is not None}
    for instance in openings.values():
        _judge(instance, of_handle)
        members = tuple(sorted(instance.members))
        instance.group = groups.setdefault(members, len(groups))
        _agree_on_views(instance)
    recorded.groups = [list(members) for members in groups]
    for handle in handles:
        assert handle.instance is not None
        of_handle[id(handle)][0].arguments[3] = handle.instance.group
    _take_out(recorded)


def _fill_sizes(recorded: Recorded, handles: Sequence[Handle]) -> None:
    """A handle that moved no data does not say how many ranks opened it: what others say of the same opening."""
    known: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    unknown: dict[tuple[int, int], int] = Counter()
    for handle in handles:
        if handle.ranks:
            known[handle.file, handle.ordinal][handle.ranks] += 1
        else:
            unknown[handle.file, handle.ordinal] += 1
    for handle in handles:
        if handle.ranks == 0:
            at = (handle.file, handle.ordinal)
            handle.ranks = known[at].most_common(1)[0][0] if known[at] else unknown[at]
        if handle.ranks > len(recorded.ranks):
            handle.bad = "a communicator of more ranks than there are"


def _judge(instance: Instance, of_handle: dict[int, list[Op]]) -> None:
    """One bad handle makes the opening one."""
    members = instance.members.values()
    why = next((handle.bad for handle in members if handle.bad), "")
    if not why and len(members) != instance.key[1]:
        why = f"opened by {len(members)} ranks, of a communicator of {instance.key[1]}"
    if not why:
        together = {tuple(op.name for op in of_handle[id(handle)] if op.collective) for handle in members}
        why = "" if len(together) == 1 else "the ranks' collective calls differ"
    for handle in members:
        handle.bad = why


def _agree_on_views(instance: Instance) -> None:
    """A view through which a rank moved nothing is not known; its elementary type is the other ranks'."""
    members = list(instance.members.values())
    for views in zip(*(handle.views for handle in members), strict=False):
        known = [op.arguments[2] for op in views if op.arguments[2] != BYTE]
        if known:
            for op in views:
                if op.arguments[2] == BYTE:
                    op.arguments[2:4] = [known[0], known[0]]


def _take_out(recorded: Recorded) -> None:
    for rank in recorded.ranks:
        kept = []
        for op in rank.ops:
            if op.handle is not None and op.handle.bad:
                recorded.left_out[f"MPI-IO on a file with {op.handle.bad}"] += 1
            else:
                kept.append(op)
        rank.ops = kept
