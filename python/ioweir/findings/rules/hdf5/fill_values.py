"""hdf5-fill-values: data sets that are filled when they are made, before the program writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioweir.base.units import size
from ioweir.findings import spared
from ioweir.findings.model import Evidence, Remedy
from ioweir.findings.rule import CALLS, Found, Rule
from ioweir.findings.rules.common import SMALL, SMALL_WHY, VANISH, counted, from_memory, hdf5_requests, rule_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioweir.findings.columns import Columns, Mask

_MAKING = ("H5Dcreate", "H5Dset_extent", "H5Dextend")


def filling_requests(run: Columns) -> Mask:
    """Requests by which HDF5 fills data sets while they are made or grow: its notes of them are smaller."""
    filling: Mask = hdf5_requests(run) & run.is_op("write") & (run.bytes >= SMALL) & run.beneath(run.named(*_MAKING))
    return filling


def _find(run: Columns) -> Iterator[Found]:
    requests = filling_requests(run)
    calls = run.roots_of(requests)
    price = run.price(calls)
    if not calls.any() or not run.worth(price.seconds):
        return
    files = run.files_of(calls)
    yield Found(
        calls=calls,
        seconds=price.seconds,
        spares=CALLS,
        summary=f"{size(float(run.bytes[requests].sum()))} of fill values are written by {int(calls.sum()):,} calls "
        "that make data sets or let them grow",
        cause="HDF5 writes the fill value into all of a data set's space before the program writes its data there: "
        "what the program writes itself is written twice.",
        evidence=[
            counted("calls that fill data sets", calls),
            counted("requests with fill values", requests),
            Evidence("bytes of fill values", float(run.bytes[requests].sum()), "B"),
        ],
        remedies=[
            Remedy(
                "plan",
                "let ioweir fill only what nobody writes",
                rule_for(files, 'hdf5 = { fill = "never" }'),
                saves=spared.of_requests(run, run.seconds(requests), from_memory=from_memory(run, requests)),
                doubt="HDF5 fills data sets that can grow, have filters or members (compound types) as before: the "
                "trace does not tell which these are",
            ),
            Remedy(
                "source",
                "where the program writes all of a data set: H5Pset_fill_time(H5D_FILL_TIME_NEVER); netCDF: "
                "nc_def_var_fill with NC_NOFILL",
            ),
        ],
        files=files,
        ranks=run.ranks_of(calls),
    )


RULE = Rule(
    code="hdf5-fill-values",
    title="Data sets filled before they are written",
    layer="HDF5",
    order=26,
    definition="Calls that make HDF5 data sets, or let them grow, with writes of 64 KiB and more beneath, at 1 % of "
    "the run. The seconds are those of these calls.",
    source="HDF5 Reference Manual, H5Pset_fill_time, H5Pset_alloc_time (parallel HDF5 allots space when a data set is "
    "made)",
    thresholds=(SMALL_WHY,),
    gain="lost: the calls' time"
    + VANISH
    + ". The plan among the remedies saves a quarter of the requests' time to all "
    "of it, and from 0 on where the node's memory answered",
    limits="Whether the program writes all of a data set later is not looked at: what nobody writes needs the fill "
    "value. Fill values that HDF5 writes together with data, or when it closes a file, are not told apart. Only calls "
    "that the program makes itself are seen, not those of netCDF.",
    needs=("HDF5",),
    find=_find,
)
