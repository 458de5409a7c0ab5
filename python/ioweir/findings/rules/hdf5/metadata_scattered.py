"""hdf5-metadata-scattered and hdf5-chunk-mismatch: small pieces and whole chunks that HDF5 adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ioweir.base.units import size
from ioweir.findings import spared
from ioweir.findings.intervals import median, numbered
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule, Threshold
from ioweir.findings.rules.common import (
    MANY,
    MANY_WHY,
    PAGE,
    SMALL,
    SMALL_WHY,
    VANISH,
    above_large,
    counted,
    from_memory,
    hdf5_requests,
    made_smaller,
    rule_for,
    sized,
)
from ioweir.findings.rules.hdf5.fill_values import filling_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask, Numbers


_GATHERED = 'hdf5 = { metadata_block = "1 MiB", collective_metadata = "writes" }'
_FILLED = 'hdf5 = { metadata_block = "1 MiB", collective_metadata = "writes", fill = "never" }'
_MANY_NOTES = 16
_MANY_CHUNKS = 16
_SIDE_BY_SIDE = 4
_TWICE = 2
_BESIDE = 16
_MOSTLY = 0.5
_ALIKE = 0.9


def _metadata(run: Columns) -> Iterator[Found]:
    if not run.is_layer("HDF5").any():
        return
    requests = hdf5_requests(run)
    small = requests & (run.bytes <= PAGE)
    data = run.is_layer("HDF5") & run.is_op("write", "read") & ~run.named("H5A")
    of_data = run.beneath(data)
    metadata = small & ~of_data
    metadata |= _beside_data(run, small & of_data)
    # A close writes what the library has kept of its notes; data of chunks it has written before (H5Dclose).
    metadata |= requests & (run.bytes < SMALL) & run.beneath(run.named("H5Fclose"))
    objects = _objects(run)
    if run.count_by_unit(metadata).max() < _MANY_NOTES and run.count_by_unit(objects).max() < MANY:
        return
    calls = run.roots_of(metadata) & ~data
    calls |= (metadata & of_data) | objects
    price = run.price(calls)
    if not run.worth(price.seconds):
        return
    files = run.files_of(calls)
    filling = filling_requests(run)
    filled = run.worth(run.seconds(filling))
    yield Found(
        calls=calls,
        seconds=price.seconds,
        spares=CALLS,
        summary=_notes(run, metadata, objects),
        cause="HDF5 keeps headers, indexes and attributes in small pieces all over the file, and reads or writes "
        "each by itself.",
        evidence=[
            counted("requests for metadata", metadata),
            counted("calls that make, open, describe or close objects", objects),
            Evidence("bytes of them", float(run.bytes[metadata].sum()), "B"),
            *(
                [Evidence("fill values, by calls that make data sets", float(run.bytes[filling].sum()), "B")]
                if filled
                else []
            ),
        ],
        remedies=[
            Remedy(
                "plan",
                f"let ioweir gather HDF5's metadata{', and fill only what nobody writes' if filled else ''}",
                rule_for(files, _FILLED if filled else _GATHERED),
                saves=spared.of_requests(
                    run, run.seconds(metadata | filling), from_memory=from_memory(run, metadata | filling)
                ),
            ),
            Remedy(
                "source",
                "make groups, data sets and attributes once; H5Pset_meta_block_size, H5Pset_coll_metadata_write",
            ),
        ],
        files=files,
        ranks=run.ranks_of(calls),
    )


def _beside_data(run: Columns, small: Mask) -> Mask:
    """What H5Dwrite adds besides its data: of small requests those that together are little of what their call moves.

    Example: of 1 MiB, 20 requests of 512 B; not 512 of 2 KiB, which are the data itself, line by line.
    """
    together = np.bincount(run.root[small], run.bytes[small], minlength=len(run))
    little = (run.bytes >= _BESIDE * PAGE) & (_BESIDE * together < run.bytes)
    beside: Mask = small & little[run.root]
    return beside


def _objects(run: Columns) -> Mask:
    """Outermost calls about groups, data sets, attributes and types: not about files, and not their data."""
    about = run.named("H5D", "H5G", "H5A", "H5O", "H5L", "H5T") & run.is_layer("HDF5") & run.outermost
    moving = run.named("H5D") & run.is_op("read", "write", "sync")
    objects: Mask = about & ~moving
    return objects


def _notes(run: Columns, metadata: Mask, objects: Mask) -> str:
    made = f"{int(objects.sum()):,} calls make, open, describe or close objects"
    if not metadata.any():
        return made
    each = size(median(run.bytes[metadata]))
    return f"{int(metadata.sum()):,} requests of {each} are HDF5's own notes, between the data; {made}"


def _data_calls(run: Columns) -> Mask:
    data: Mask = run.is_layer("HDF5") & run.outermost & run.is_op("write", "read") & (run.bytes > 0) & run.named("H5D")
    return data


def _many(run: Columns) -> Iterator[Found]:
    """Calls that end in many requests of one size which lie side by side: a contiguous data set would take one."""
    data = _data_calls(run)
    for op in ("write", "read"):
        small = run.storage & run.is_op(op) & (run.bytes < SMALL) & (run.position >= 0) & ~run.outermost
        small &= run.beneath(data & run.is_op(op)) & ~run.in_collective
        at = np.flatnonzero(small)
        if not at.size:
            continue
        at = at[np.lexsort((run.position[at], run.root[at]))]
        root, place, stop = run.root[at], run.position[at], run.position[at] + run.bytes[at]
        apart = np.r_[True, (root[1:] != root[:-1]) | (place[1:] != stop[:-1])]
        number = np.bincount(root, minlength=len(run))
        stretches = np.bincount(root, apart, minlength=len(run))
        moved = np.bincount(root, run.bytes[at], minlength=len(run))
        usual = median(run.bytes[at])
        chunked = data & (number >= _MANY_CHUNKS) & (number >= _SIDE_BY_SIDE * stretches)
        # Chunks as the program has them: compressed ones are smaller in the file. Of larger chunks for parts of them
        # more is moved than asked for.
        chunked &= (run.bytes < SMALL * number) & (moved <= _TWICE * run.bytes)
        if not chunked.any() or (run.bytes[at] == usual).mean() < _ALIKE:
            continue
        inner = small & run.beneath(chunked)
        filtered = bool((inner & made_smaller(run, op)).any())
        seconds = run.seconds(inner if filtered else chunked)
        if not run.worth(seconds):
            continue
        high = above_large(run, inner, op, seconds)
        chunk = size(float(median(run.bytes[chunked] // number[chunked]) if filtered else usual))
        in_file = f" ({size(float(usual))} in the file)" if filtered else ""
        yield Found(
            calls=chunked,
            seconds=seconds,
            high=high,
            spares=CALLS,
            summary=f"{int(chunked.sum()):,} HDF5 calls become {sized(run, inner, op)} that lie side by side: chunks "
            "smaller than what is moved at a time",
            cause=f"The data set is stored in chunks of {chunk}{in_file}, and HDF5 makes a request of its own "
            "for each, though neighbours in the file are moved by the same call.",
            evidence=[
                counted(f"POSIX {op}s of one chunk", inner),
                Evidence("chunks moved by one call", float(number[chunked].mean()), "chunks"),
            ],
            remedies=[Remedy("source", "give the data set chunks of the shape of one access (H5Pset_chunk)")],
            files=run.files_of(chunked),
            ranks=run.ranks_of(chunked),
        )


def _chunks(run: Columns) -> Iterator[Found]:
    if not run.is_layer("HDF5").any():
        return
    yield from _many(run)
    data = _data_calls(run)
    every = hdf5_requests(run) & run.beneath(data)
    inside = np.flatnonzero(every & (run.bytes > PAGE))
    if not inside.size:
        return
    moved = np.bincount(run.root[inside], run.bytes[inside], minlength=len(run))
    opposite = inside[run.op[inside] != run.op[run.root[inside]]]
    read_to_write = np.bincount(run.root[opposite], run.bytes[opposite], minlength=len(run))
    wrong = data & ((moved > _TWICE * run.bytes) | (read_to_write > 0))
    spared_by_cache = run.bytes - np.bincount(run.root[every], run.bytes[every], minlength=len(run))
    wrong, asked = _not_made_up_for(run, data, wrong, moved, read_to_write, np.maximum(spared_by_cache, 0))
    whole = float(moved[wrong].sum())
    wasted = whole - asked
    if wrong.sum() < 4 or wasted <= 0:
        return
    share = wasted / whole
    lost = run.seconds(wrong) * share
    if not run.worth(lost):
        return
    files = run.files_of(wrong)
    sieved = _overlap_in_part(run, inside[wrong[run.root[inside]]])
    yield Found(
        calls=wrong,
        seconds=lost,
        spares=CALLS,
        summary=f"for {size(asked)} of the program's data, HDF5 moves {size(whole)}: "
        f"{'whole stretches for pieces of them' if sieved else 'whole chunks for parts of them'}",
        cause="The data set is stored in one piece, line by line, and the program moves parts of lines. HDF5 moves "
        "them through its sieve buffer (64 KiB, H5Pset_sieve_buf_size), with all that lies between."
        if sieved
        else "The data set is stored in chunks of another shape than what the program reads or writes at a "
        "time, so that whole chunks are moved, also more than once.",
        evidence=[
            counted("calls that move more than twice their data", wrong),
            Evidence("moved in excess", wasted, "B"),
        ],
        remedies=[
            Remedy(
                "source",
                "move whole lines at a time, or give the data set chunks of the shape of one access (H5Pset_chunk)"
                if sieved
                else "give the data set chunks of the shape of one access (H5Pset_chunk), or a chunk cache that holds "
                "a row of chunks (H5Pset_chunk_cache)",
            )
        ],
        files=files,
    )


def _overlap_in_part(run: Columns, rows: Numbers) -> bool:
    """Whether most places of requests begin inside of another one: chunks are the same place, or apart.

    Example: 64 KiB from 0, from 16 KiB and from 32 KiB on; not 64 KiB from 0, from 0 and from 64 KiB on.
    """
    rows = rows[run.position[rows] >= 0]
    rows = rows[np.lexsort((-run.bytes[rows], run.position[rows], run.file[rows]))]
    file, place = run.file[rows], run.position[rows]
    new = np.flatnonzero(np.r_[True, (file[1:] != file[:-1]) | (place[1:] != place[:-1])][: rows.size])
    if new.size < 2:
        return False
    file, place, stop = file[new], place[new], (place + run.bytes[rows])[new]
    inside = (file[1:] == file[:-1]) & (place[1:] < stop[:-1])
    return bool(inside.mean() >= _MOSTLY)


def _not_made_up_for(
    run: Columns, data: Mask, wrong: Mask, moved: np.ndarray, read_to_write: np.ndarray, cached: np.ndarray
) -> tuple[Mask, float]:
    """Of calls that move too much those that no other call makes up for, and how much of the program's data it is.

    The chunk cache moves a chunk in one call for many: what the rank's other calls on the file move less than their own
    bytes (`cached`) is this call's as well. Example: of rows of 4 KiB in a chunk of 1 MiB one call in 256 moves all.
    """
    pairs, of = numbered(run.file[data] * run.units + run.unit[data])

    def sums(values: np.ndarray, chosen: Mask) -> np.ndarray:
        return np.bincount(of[chosen[data]], values[data & chosen], minlength=pairs.size)

    asked, whole = sums(run.bytes, wrong) + sums(cached, data), sums(moved, wrong)
    faulty = (whole > _TWICE * asked) | ((sums(read_to_write, wrong) > 0) & (whole > asked))
    result = np.zeros(len(run), dtype=bool)
    result[data] = wrong[data] & faulty[of]
    return result, float(asked[faulty].sum())


METADATA = Rule(
    code="hdf5-metadata-scattered",
    title="HDF5's notes between the data",
    layer="HDF5",
    order=28,
    definition="16 or more requests of a rank, of 4 KiB and less, inside of HDF5 calls that move no data. In a call "
    "that does they count where all of them are under a sixteenth of its data. In H5Fclose those of under 64 KiB "
    "count. Or 64 or more calls of a rank about groups, data sets, attributes and types. The seconds are those of all "
    "such calls: HDF5 keeps the notes of each object in memory first (its metadata cache), and that work goes with the "
    "object. Writes of 64 KiB and more inside of H5Dcreate are fill values: where they cost 1 % of the run, the plan "
    "leaves them out.",
    source="Howison et al. 2010 (small metadata writes between the data, and gathering them)",
    thresholds=(
        MANY_WHY,
        SMALL_WHY,
        Threshold("size", "4 KiB", "object headers and B-tree nodes are 256 B to 2 KiB; page size"),
    ),
    gain="lost: the calls' time" + VANISH + ". The plan among the remedies puts the requests together and leaves the "
    "calls: it saves a quarter of the requests' time to all of it, and from 0 on where the node's memory answered",
    limits="Chunks' indexes inside of a data call of like size are not told apart.",
    needs=("HDF5",),
    find=_metadata,
)
CHUNKS = Rule(
    code="hdf5-chunk-mismatch",
    title="Chunks of the wrong shape",
    layer="HDF5",
    order=18,
    definition="At least 4 HDF5 calls on data sets that move more than twice their bytes beneath, or read to be able "
    "to write. What the rank's other calls on the file move less than their own bytes, because it is in HDF5's chunk "
    "cache, counts as theirs. Or calls that each end in 16 or more requests under 64 KiB of one size, lying side by "
    "side, which move under 64 KiB of the program's data each.",
    source="Howison et al. 2010 (one chunk for what a process accesses); HDF5 User Guide, Chunking in HDF5",
    thresholds=(
        Threshold("twice", "2 times", "a selection that is off by one chunk border moves under twice its bytes"),
        Threshold(
            "side by side",
            "4 requests a stretch, 90 % of one size",
            "a selection of a contiguous data set makes one request of a stretch, and its pieces have gaps between",
        ),
        SMALL_WHY,
    ),
    gain="lost: the share of bytes in excess, or the seconds above what the same bytes take at the run's own fast "
    "large calls"
    + VANISH
    + ". Of data that is smaller in the file only the requests' seconds count: compressing remains",
    limits="Compression moves fewer bytes than the data has and hides the excess. The shape of chunks is not in the "
    "trace: it is concluded from the requests, as is that a data set has none. Small chunks that "
    "a collective call puts together are not seen.",
    needs=("HDF5",),
    find=_chunks,
)
