"""The page of HDF5, from figures that are written down here: its rows, and the bars that are missed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import bench_hdf5
import btio_targets
import hdf5_page
import hdf5_runs
from hdf5_runs import SIEVING, Figures, Ladder, Requests, Runs
from picture_marks import said

MIB = 1 << 20


def ladder(place: str, small: tuple[int, int, int], last: float = 38.0) -> Ladder:
    """Four steps of 10, 20, 30 and `last` MiB/s, a ceiling of 40; small writes of the first three."""
    made = Ladder("GCRM, cells", place, 26.0)
    for title, speed, count in zip("abcd", (10.0, 20.0, 30.0, last), (*small, 5), strict=True):
        made.steps.append(Figures(title, [speed - 1, speed, speed + 2], Requests(count, count * 512, 16, 26 * MIB)))
    made.ceiling.written = [40.0]
    return made


def figures(last: float = 38.0, small: tuple[int, int, int] = (100, 60, 4), planned: float = 90.0) -> Runs:
    """Four targets of 10 MiB/s."""
    runs = Runs(
        10 * MIB, 4, 5 * MIB, on_lab=[ladder("lab", small, last)], on_ceph=[ladder("CephFS", small)],
        in_memory=[ladder("MPICH", (50, 40, 3))],
    )  # fmt: skip
    runs.sieving = {
        "MPICH, guarded memory": [
            *(Figures(title, [20.0 * (n + 1)]) for n, (title, *_) in enumerate(SIEVING)),
            Figures(hdf5_runs.BY_HAND, [85.0]),
        ]
    }
    speeds = {"collective, ROMIO": 80.0, "collective, a plan": planned, "independent, ROMIO": 70.0,
              "independent, OMPIO": 94.0, "independent, a plan": 95.0}  # fmt: skip
    runs.btio = {
        "Open MPI, class A, 4 ranks": [
            Figures(title, [speed], Requests(large=8), [100.0]) for title, speed in speeds.items()
        ]
    }
    runs.btio_on_lab = {"class B, 4 ranks": [Figures(title, [39.0], Requests(large=24)) for title in btio_targets.WAYS]}
    runs.btio_calls = {title: [[0, 0.0, 1.5], [1, 1.5, 3.0]] for title in btio_targets.PICTURES}
    return runs


def test_bars_that_are_met_and_missed() -> None:
    assert hdf5_page.missed_bars(figures()) == []
    assert hdf5_page.missed_bars(figures(last=35.0)) == ["GCRM, cells, lab: 0.88 of a file for each process, not 0.9"]
    assert hdf5_page.missed_bars(figures(small=(100, 60, 100))) == [
        "GCRM, cells, lab: 100 small writes, 100 before",
        "GCRM, cells, CephFS: 100 small writes, 100 before",
    ]
    assert hdf5_page.missed_bars(figures(planned=60.0)) == [
        "BTIO, Open MPI, class A, 4 ranks, collective, written: 0.75 [0.75, 0.75] of the best without a plan"
    ]


def test_shares_of_btio_are_of_runs_in_turn() -> None:
    """By hand: 9/10, 11/10 and 12/10 of OMPIO, whose median is larger than ROMIO's."""
    rows = [Figures("collective, ROMIO", [5.0, 5.0, 30.0], read=[1.0] * 3),
            Figures("collective, OMPIO", [10.0] * 3, read=[1.0] * 3),
            Figures("collective, a plan", [9.0, 11.0, 12.0], read=[0.8, 0.9, 0.7])]  # fmt: skip
    written, read = hdf5_page.btio_shares(rows, "collective")
    assert (written.median, written.low, written.high) == (1.1, 0.9, 1.2)
    assert (read.median, read.high) == (0.8, 0.9)


def test_flash_with_a_plan_is_no_slower_than_the_librarys_best_and_than_by_hand() -> None:
    runs = figures()
    rows = runs.sieving["MPICH, guarded memory"]
    rows[1].written, rows[4].written = [90.0], [100.0]
    assert hdf5_page.missed_bars(runs) == [
        'FLASH-IO, MPICH, guarded memory: 0.89 [0.89, 0.89] of "no sieving"',
        "FLASH-IO, MPICH, guarded memory: 0.80 of one file by hand, not 0.9",
    ]


def test_flash_that_may_be_slower_is_said_to_be() -> None:
    runs = figures()
    rows = runs.sieving["MPICH, guarded memory"]
    planned = rows[3].written[0]
    rows[1].written = [planned / 0.98]
    assert hdf5_page.missed_bars(runs) == []
    said = 'not wholly below 0.97: FLASH-IO, MPICH, guarded memory: 0.98 [0.98, 0.98] of "no sieving"\n'
    assert said in hdf5_page.page(runs, "today", quick=False)


def test_logs_have_to_take_what_the_targets_can() -> None:
    runs = figures()
    for row in runs.btio_on_lab["class B, 4 ranks"]:
        row.written = [37.0]
    assert hdf5_page.missed_bars(runs) == [
        f"BTIO, class B, 4 ranks, logs, {how}: 0.93 of what all targets together can take, not 0.95"
        for how in ("collective", "independent")
    ]
    text = hdf5_page.page(runs, "today", quick=False)
    assert "| class B, 4 ranks | logs, collective | 37.0 | 37.0 | 0.93 | 24 |" in text


def test_writes_of_a_rank_that_follow_each_other_are_one() -> None:
    """By hand: those of rank 0 are 0.05 apart, then 1."""
    writes = [(1, 0.0, 1.0), (0, 1.05, 2.0), (0, 0.0, 1.0), (0, 3.0, 4.0)]
    assert btio_targets.merged(writes, 0.1) == [[0, 0.0, 2.0], [0, 3.0, 4.0], [1, 0.0, 1.0]]


def test_small_steps_are_beside_the_bars() -> None:
    runs = figures()
    made = Ladder(hdf5_runs.SMALL_STEPS, "MPICH", 26.0, [Figures("a", requests=Requests(9)), Figures("b"),
                  Figures("c"), Figures("the baseline with a plan: logs", [40.0])])  # fmt: skip
    made.ceiling.written = [100.0]
    runs.in_memory = [made]
    assert hdf5_page.missed_bars(runs) == []
    text = hdf5_page.page(runs, "today", quick=False)
    assert (
        "- beside the bars, with a sixteenth of the paper's bytes in a dataset: GCRM, many small steps, MPICH: 0.40"
        in text
    )


def test_bars_in_memory_are_of_one_file_and_of_several() -> None:
    made = Ladder("Chombo", "MPICH", 26.0, [Figures(f"the baseline with a plan: {name}", [speed])
                                            for name, speed in (("`auto`", 44.0), ("`auto`, `hdf5`", 46.0),
                                                                ("subfiles", 70.0), ("logs", 85.0))])  # fmt: skip
    made.by_hand.written, made.ceiling.written = [50.0], [90.0]
    assert hdf5_page.missed_in_memory(made) == []
    made.by_hand.written, made.ceiling.written = [60.0], [100.0]
    assert hdf5_page.missed_in_memory(made) == [
        "Chombo, MPICH: 0.77 of one file by hand, not 0.9",
        "Chombo, MPICH: 0.85 of a file for each process, not 0.9",
    ]


def test_the_page_and_its_pictures() -> None:
    text = hdf5_page.page(figures(), "today", quick=False)
    assert "All that were measured are met." in text
    assert "not measured" not in text
    assert "### GCRM, cells, lab, 26 MiB, 1 run" in text
    assert "| a | 12.0 | 10.0 | 0.25 | 16 | 1,664 | 100 | 50.0 |" in text
    assert "| a file for each process, uniform writes | 40.0 | 40.0 | 1.00 | 0 | 0 | 0 | 0.0 |" in text
    assert f"| {SIEVING[3][0]} | 80.0 | 80.0 | 4.00 | 0 | 0 | 0 | 0 |" in text
    assert (
        "| Open MPI, class A, 4 ranks | 80 / 100 (8) | - | 90 / 100 (8) | 70 / 100 (8) | 94 / 100 (8) | 95 / 100 (8) "
        "| 1.12 [1.12, 1.12] / 1.00 [1.00, 1.00] | 1.01 [1.01, 1.01] / 1.00 [1.00, 1.00] |" in text
    )
    for name, svg in hdf5_page.pictures(figures()).items():
        assert f"(hdf5{name}.svg)" in text
        assert len(said(svg)) in {5, 6}


def test_parts_that_were_not_measured_are_left_out() -> None:
    text = hdf5_page.page(Runs(10 * MIB, 4), "today", quick=True)
    assert "A quick run" in text
    assert text.count("- not measured: ") == 6
    for heading in ("targets of", "In memory", "FLASH-IO and", "## BTIO"):
        assert heading not in text.split("## Bars")[1]


def test_every_application_has_a_quick_form_and_a_plan_at_its_end() -> None:
    for application in hdf5_runs.applications(4):
        assert application.kernel[0] == application.quick[0]
        assert application.steps[0].title.startswith("baseline")
        assert application.steps[-1].log
        for directories in ([], [Path("/a"), Path("/b")]):
            rules = [hdf5_runs.rule_of(step, directories) for step in application.steps]
            assert all(rules) or not directories
            for rule, step in zip(rules, application.steps, strict=True):
                if rule is None:
                    continue
                mapping = (
                    "log" if step.log else "subfiles:2" if directories else "subfiles:4" if step.subfiles else "shared"
                )
                assert f'mapping = "{mapping}"' in rule.splitlines()
                assert ('targets = ["/a", "/b"]' in rule.splitlines()) == bool(directories)


def test_parts_of_an_earlier_run_are_added() -> None:
    runs = figures()
    again = hdf5_runs.runs_of(json.loads(json.dumps(asdict(runs))))
    assert again == runs
    one = Runs(10 * MIB, 4, 5 * MIB, in_memory=[ladder("Open MPI", (9, 9, 9))])
    assert one.add(again) == ["lab", "ceph", "sieving", "btio", "logs"]
    assert one.btio_on_lab == runs.btio_on_lab
    assert list(one.parts()) == list(hdf5_runs.PARTS)
    # What this run has not, of a part that it has.
    assert [made.place for made in one.in_memory] == ["MPICH", "Open MPI"]
    faster = Runs(10 * MIB, 4, 5 * MIB, in_memory=[ladder("MPICH", (9, 9, 9), last=99.0)])
    faster.add(again)
    assert [made.steps[3].median for made in faster.in_memory] == [99.0]
    assert (one.on_lab, one.btio) == (runs.on_lab, runs.btio)
    said = bench_hdf5.run_texts({"lab": "yesterday", "memory": "today", "btio": "yesterday"})
    assert said == "Of lab, btio: yesterday\n\nOf memory: today"
