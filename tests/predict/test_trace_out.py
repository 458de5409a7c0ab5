"""`ioweir simulate --trace-out`: what stands in the trace is what was simulated, and everybody is told that it is."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from forked import completed
from ioweir.base.compiled import compiled
from ioweir.errors import IoweirError
from ioweir.predict import machine as machines
from ioweir.predict import simulate, trace_out
from ioweir.predict.simulate import Kernel, Options, PlanRule
from ioweir.report import figures
from ioweir.report.model import Data
from ioweir.trace import pattern, reader

IOWEIR = [sys.executable, "-m", "ioweir"]
KERNELS = (
    ("coll_perf", "local=8,16,16"), ("ior-strided", "data=2MiB", "transfer=1MiB", "piece=64KiB"),
    ("btio", "class=S", "writes=2"), ("lattice", "local=2,2,4,4", "calls=2"), ("flash", "blocks=3"),
)  # fmt: skip
CREATE, READ_ONLY, WRITE_ONLY = 1, 2, 4
"""MPI_MODE_*, of both libraries."""
PLANS = (
    None,
    'writers = "aggregators:3"\ndomains = "cyclic"\nbuffer = "256 KiB"\n',
    'writers = "everyone"\n',
    'writers = "behind:1"\n',
    'mapping = "log"\n',
    'mapping = "grouped:2"\nwriters = "aggregators:1"\n',
)


def traced(folder: Path, kernel: tuple[str, ...], ranks: int, plan: str | None, **more: Any) -> dict[str, Any]:
    """`simulate --trace-out`, in this process."""
    rule = None
    if plan is not None:
        rule = folder.with_name(f"{folder.name}.toml")
        rule.write_text(f'[[file]]\nmatch = "*"\n{plan}', encoding="utf-8")
    return simulate.simulate(
        Options(more.pop("machine", "gigabit12"), kernel[0], kernel[1:], ranks, plan=rule, trace_out=folder, repeat=2,
                **more)
    )  # fmt: skip


def said(*words: str) -> str:
    done = completed([*IOWEIR, *words], check=True)
    return done.stdout


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_trace_holds_what_was_simulated(kernel: tuple[str, ...], plan: str | None, tmp_path: Path) -> None:
    result = traced(tmp_path / "t", kernel, 9, plan)
    trace = reader.read(tmp_path / "t")
    assert not trace.damage
    report = figures.build(trace)
    assert report.partial_reasons == []
    assert report.ranks == 9
    assert report.wall_s == pytest.approx(trace.run["wall_s"])
    for op in ("write", "read"):
        asked, moved = report.layers["MPI-IO"][op], report.layers["POSIX"][op]
        assert isinstance(asked, Data)
        assert isinstance(moved, Data)
        assert asked.bytes == result[op]["bytes"]
        # A read may take along what lies between.
        assert moved.bytes == result["trace"]["sums"]["stored_bytes" if op == "write" else "fetched_bytes"]
        assert moved.bytes >= result[op]["bytes"]
        assert moved.calls == result[op]["operations"]
    sums = result["trace"]["sums"]
    assert sums["operations"] == result["write"]["operations"] + result["read"]["operations"]
    assert sums["messages"] == result["write"]["messages"] + result["read"]["messages"]
    # What each rank asked for in each call.
    requests = trace.requests()
    found: dict[bool, dict[int, list[Any]]] = {True: {}, False: {}}
    for number, process in enumerate(requests.process.tolist()):
        rank = trace.processes[process].rank
        found[bool(requests.write[number])].setdefault(rank, []).append(
            sorted(pattern.extents_of(requests, number) or [])
        )
    calls = compiled().kernel_requests(kernel[0], 9, list(kernel[1:]))
    for of_ranks in found.values():
        assert [[of_ranks[rank][call] for rank in range(9)] for call in range(len(calls))] == [
            [[(int(a), int(b)) for a, b in pieces] for pieces in ranks] for ranks in calls
        ]
    assert (report.plan.carried_out.state == "applied") == (plan is not None)


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[2]])
def test_files_are_opened_to_write_and_then_to_read(plan: str | None, tmp_path: Path) -> None:
    traced(tmp_path / "t", KERNELS[1], 3, plan)
    trace = reader.read(tmp_path / "t")
    opens = next(function.id for function in trace.functions if function.name == "MPI_File_open")
    of_rank = [
        trace.events.offset[(trace.events.function == opens) & (trace.events.process == process)].tolist()
        for process in range(3)
    ]
    assert of_rank == [[CREATE | WRITE_ONLY, READ_ONLY]] * 3


def test_the_trace_is_simulated_like_the_kernel(tmp_path: Path) -> None:
    kernel = KERNELS[1]
    result = traced(tmp_path / "t", kernel, 6, PLANS[1])
    again = simulate.simulate(Options("gigabit12", trace=tmp_path / "t", plan=tmp_path / "t.toml", repeat=2))
    assert again["write"] == result["write"]


def test_time_is_that_of_the_run_in_the_middle(tmp_path: Path) -> None:
    result = traced(tmp_path / "t", KERNELS[0], 16, PLANS[1])
    run = json.loads((tmp_path / "t" / "run.json").read_text(encoding="utf-8"))
    low, high = (sum(result[op]["seconds"][end] for op in ("write", "read")) for end in ("low", "high"))
    assert low * (1 - 1e-9) <= run["wall_s"] <= high * (1 + 1e-9)


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        traced(tmp_path / name, KERNELS[0], 20, None, machine="sierra")
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == 3  # two nodes, and the run
    for name in files:
        one, two = ((tmp_path / folder / name).read_bytes() for folder in ("a", "b"))
        assert one == two


def test_everybody_is_told(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    traced(tmp_path / "t", KERNELS[0], 4, None)
    words = "SIMULATED on 64 nodes on Gigabit Ethernet, 12 Lustre servers: nothing in here was measured."
    assert words in said("report", folder).splitlines()[1]
    assert said("findings", folder).startswith(words)
    found = json.loads(said("findings", folder, "--json"))
    assert found
    assert all(re.search("simulated on .* nothing of it was measured", one["unseen"][0]) for one in found)
    assert words.removeprefix("SIMULATED") in said("compare", folder, "--to", folder)
    said("report", folder, "--html", str(tmp_path / "page.html"))
    assert words in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads(said("report", folder, "--json"))["simulated"]["ranks_written"] == 4


def test_of_many_ranks_a_sample_and_exact_sums(tmp_path: Path) -> None:
    found = machines.read("sierra")
    program = Kernel("ior-segmented", ("data=1MiB", "transfer=256KiB"), 100, 0.0)
    rule = PlanRule('[[file]]\nmatch = "*"\nwriters = "everyone"\n', "a plan", 0, "a plan")
    draw = (dict.fromkeys(found.open, 0.5), 1)
    made = trace_out.write(tmp_path / "t", program, found, rule, draw, most_ranks=10)
    assert (made["ranks"], made["ranks_written"]) == (100, 10)
    assert made["sums"]["written_bytes"] == made["sums"]["stored_bytes"] == 100 << 20
    assert made["sums"]["calls"] == 2 * 4 * 100
    numbers = json.loads((tmp_path / "t" / "run.json").read_text(encoding="utf-8"))["simulated"]["numbers"]
    assert [number // 10 for number in numbers] == list(range(10))
    report = figures.build(reader.read(tmp_path / "t"))
    written = report.layers["MPI-IO"]["write"]
    assert isinstance(written, Data)
    assert written.bytes == 10 << 20
    assert report.partial_reasons == ["a sample of 10 of 100 simulated ranks, numbered anew"]


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "there").write_text("x", encoding="utf-8")
    with pytest.raises(IoweirError, match="holds something"):
        traced(tmp_path / "t", KERNELS[0], 4, None)
    done = completed(
        [*IOWEIR, "simulate", "--machine", "sierra", "--kernel", "coll_perf", "--ranks", "4", "--trace-out",
         str(tmp_path / "u"), "--sweep", "ranks=4,8"],
    )  # fmt: skip
    assert done.returncode == 2
    assert "--trace-out writes one simulated run" in done.stderr


@pytest.mark.parametrize("is_there", [False, True])
def test_where_it_cannot_be_written_nothing_is_left(tmp_path: Path, *, is_there: bool) -> None:
    folder = tmp_path / "t"
    if is_there:
        folder.mkdir()
    words = ["simulate", "--machine", "sierra", "--kernel", "coll_perf", "--ranks", "4", "--trace-out", str(folder)]
    done = completed(["sh", "-c", 'ulimit -f 16 && exec "$@"', "sh", *IOWEIR, *words])
    assert done.returncode == 1
    assert done.stderr == f"ioweir: cannot write the trace file: {folder}/node-0.iowt; File too large\n"
    assert folder.exists() == is_there
    assert not is_there or not list(folder.iterdir())
