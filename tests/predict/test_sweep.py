"""`ioweir simulate --sweep`: every point is the simulation of it alone, and what helps is said against the first."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from forked import completed
from ioweir.errors import IoweirError
from ioweir.predict import simulate, sweep, sweep_text

if TYPE_CHECKING:
    from pathlib import Path

IOWEIR = [sys.executable, "-m", "ioweir"]
KERNEL = ("ior-strided", ("data=4 MiB", "transfer=2 MiB", "piece=64 KiB"))


def options(**more: Any) -> simulate.Options:
    return simulate.Options("gigabit12", *KERNEL, **{"ranks": 16, "repeat": 4, **more})


def test_a_point_is_the_simulation_of_it_alone(tmp_path: Path) -> None:
    result = sweep.sweep(options(), sweep.axes_of(["strategy=everyone,aggregators", "ranks=16,32"]))
    assert [tuple(point["point"].values()) for point in result["points"]] == [
        ("everyone", "16"), ("everyone", "32"), ("aggregators", "16"), ("aggregators", "32"),
    ]  # fmt: skip
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "everyone"\n', encoding="utf-8")
    for number, ranks in enumerate((16, 32)):
        alone = simulate.simulate(options(ranks=ranks, plan=plan))
        for name in ("write", "read"):
            assert result["points"][number][name]["seconds"] == alone[name]["seconds"]


def test_what_helps_is_ordered_and_compared_run_by_run() -> None:
    result = sweep.sweep(options(), sweep.axes_of(["strategy=everyone,aggregators,cyclic,contention-free,log"]))
    assert result["points"][0]["write"]["ratio"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    ratios = [row["ratio"]["median"] for row in result["helps"]]
    assert len(ratios) == 4
    assert ratios == sorted(ratios, reverse=True)
    for row in result["helps"]:
        assert row["verdict"] == (
            "helps" if row["ratio"]["low"] > 1 else "harms" if row["ratio"]["high"] < 1 else "no difference shown"
        )


def test_more_targets_and_another_buffer(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text("[targets]\ncount = 1\n[files]\nstripe_bytes = 1048576\n", encoding="utf-8")
    swept = simulate.Options(str(machine), "ior-segmented", ("data=8 MiB", "transfer=8 MiB"), 8, repeat=2)
    result = sweep.sweep(swept, sweep.axes_of(["targets=1,4", "buffer=4 MiB,16 MiB"]))
    helps = {row["change"]: row for row in result["helps"]}
    assert helps["targets 1 -> 4"]["verdict"] == "helps"
    assert 3 < helps["targets 1 -> 4"]["ratio"]["median"] <= 4.01
    assert "buffer size 16 MiB" in result["points"][1]["strategy"] or "buffer 16 MiB" in result["points"][1]["strategy"]


def test_a_point_that_cannot_be_says_why() -> None:
    result = sweep.sweep(options(), sweep.axes_of(["files=2,99"]))
    assert "write" in result["points"][0]
    assert "more files than ranks" in result["points"][1]["error"]
    assert any("more files than ranks" in line for line in sweep_text.to_text(result))


def test_a_sweep_of_which_nothing_can_be_fails(tmp_path: Path) -> None:
    words = [*IOWEIR, "simulate", "--machine", "gigabit12", "--kernel", KERNEL[0], *KERNEL[1], "--ranks", "4"]
    plot = tmp_path / "sweep.svg"
    done = completed([*words, "--sweep", "files=98,99", "--plot", str(plot), "--json"])
    assert done.returncode == 2
    assert "none of its points can be simulated" in done.stderr
    assert [point["point"]["files"] for point in json.loads(done.stdout)["points"]] == ["98", "99"]
    assert not plot.exists()


def test_text_json_and_picture(tmp_path: Path) -> None:
    words = [*IOWEIR, "simulate", "--machine", "gigabit12", "--kernel", KERNEL[0], *KERNEL[1], "--repeat", "2",
             "--sweep", "ranks=8,16", "--sweep", "strategy=everyone,cyclic"]  # fmt: skip
    plot = tmp_path / "sweep.svg"
    done = completed([*words, "--plot", str(plot)], check=True)
    assert done.stdout.startswith("SIMULATED")
    assert "what would help" in done.stdout
    assert plot.read_text(encoding="utf-8").startswith("<svg ")
    result = json.loads(completed([*words, "--json"], check=True).stdout)
    assert result["simulated"] is True
    assert len(result["points"]) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodes=3", "no axis 'nodes'; there are ranks, targets"),
        ("ranks=", "write ranks=VALUE,VALUE"),
        ("ranks=0", "give whole numbers from 1"),
        ("targets=999999999", "--sweep targets=999999999: give whole numbers from 1 to 100000"),
        ("ranks=999999999", "give whole numbers from 1 to 1048576"),
        ("buffer=7 M", "--sweep buffer=7 M"),
        ("strategy=magic", "--sweep strategy=magic: there are everyone"),
        ("ranks=" + ",".join(map(str, range(1, 500))), "499 points; at most 400"),
    ],
)
def test_sweeps_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(IoweirError) as error:
        sweep.axes_of([text])
    assert said in str(error.value)
