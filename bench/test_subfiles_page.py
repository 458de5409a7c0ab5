"""The page of netCDF subfiles, from figures that are written down here: its rows, and the bars that are missed."""

from __future__ import annotations

import bench_subfiles
import subfiles_runs
from picture_marks import said
from subfiles_runs import EVERYWHERE, SELECTED, SHARED, Clocks, Result, Runs
from targets_runs import MIB, Way


def figures(selected: float = 66.0, deviation: float = 1.0, merged: bool = True, processor: float = 0.05) -> Runs:
    """Eight targets of 10 MiB/s: of 80 or 70, 0.9 are 72 and 63."""
    result = Result("S3D", mib=128.0, merged=merged)
    result.equal = {SHARED: Way([70.0], [1]), EVERYWHERE: Way([74.0], [1]), SELECTED: Way([73.0], [1])}
    result.slow = {SHARED: Way([9.0], [1]), EVERYWHERE: Way([9.0], [1]), SELECTED: Way([selected], [56.0])}
    result.varied = {SHARED: Way([10.0, 20.0], [1, 1]), SELECTED: Way([66.0, 66.0 + deviation], [1, 1])}
    result.clocks = {SELECTED: Clocks(10.0, 0.5, processor, 8.0, [0.9], [1.1])}
    result.cold = {EVERYWHERE: Way([71.0]), SELECTED: Way([72.0])}
    result.readers = dict.fromkeys(subfiles_runs.READERS, 50.0)
    return Runs(10 * MIB, 8, [result])


def test_bars_that_are_met_and_missed() -> None:
    assert bench_subfiles.missed_bars(figures()) == []
    assert bench_subfiles.missed_bars(figures(selected=60.0)) == ["S3D, 1 slow: 0.86 of what is possible, not 0.9"]
    assert bench_subfiles.missed_bars(figures(deviation=5.0)) == [
        "S3D: deviation 0.50 of the shared file's, not a third"
    ]
    assert bench_subfiles.missed_bars(figures(processor=0.2)) == ["S3D: exchange 2.00 % of collective time, not 1 %"]
    assert bench_subfiles.missed_bars(figures(merged=False)) == ["S3D: the merged file differs"]


def test_the_page_and_its_pictures() -> None:
    text = bench_subfiles.page(figures(), "today", quick=False)
    assert "All are met." in text
    assert "| subfiles on selected targets | 1 | 66.0 | 0.00 | 0.94 | 0.80 |" in text
    assert "| S3D | 71.0 | 72.0 | 50.0 | 50.0 | 50.0 | 50.0 | the same |" in text
    for name, svg in bench_subfiles.pictures(figures()).items():
        assert f"(subfiles{name}.svg)" in text
        assert len(said(svg)) == (2 if name == "-reads" else 3)


def test_the_adapters_message_is_read() -> None:
    line = (
        "/lab/selected.nc: subfiles: all ranks' calls took 10.5000 s, of these exchange 0.2500 s (0.0500 s of the "
        "processor), storage 8.0000 s; storage of a rank 0.9000 to 1.1000 s"
    )
    clocks: dict[str, Clocks] = {}
    subfiles_runs.add_clocks(clocks, {"messages": [line, line.replace("subfiles:", "subfiles, only read:"), "else"]})
    assert clocks == {"selected": Clocks(10.5, 0.25, 0.05, 8.0, [0.9], [1.1])}
