"""`ioweir explain`: the paper's examples counted from the extents of the steps, traces, the picture, mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from forked import completed
from ioweir.errors import IoweirError
from ioweir.plan import schedule_picture
from ioweir.plan.explain import Options, explain, to_text
from ioweir.predict import simulate
from ioweir.replay import from_trace
from ioweir.trace import pattern
from traces import Builder, Call

MIB = 1 << 20
IOWEIR = (sys.executable, "-m", "ioweir")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
RULE = """[[file]]
match = "*.data"
writers = "aggregators:3"
order = "{order}"
buffer = "{buffer}"
stripe = {{ size = "1 MiB", count = 3 }}
"""


def plan_file(folder: Path, order: str = "contention-free", buffer: str = "2 MiB") -> Path:
    plan = folder / "plan.toml"
    plan.write_text(RULE.format(order=order, buffer=buffer), encoding="utf-8")
    return plan


def stripes_of(result: dict[str, Any]) -> Counter[tuple[int, int, int]]:
    """(rank, round, target) -> stripes of 1 MiB on 3 targets that the rank moves then, counted byte by stripe."""
    found: Counter[tuple[int, int, int]] = Counter()
    for step in result["steps"]:
        for offset, length in step["extents"]:
            assert offset % MIB == 0
            assert length % MIB == 0
            for stripe in range(offset // MIB, (offset + length) // MIB):
                found[step["rank"], step["round"], stripe % 3] += 1
    return found


def segmented(plan: Path, ranks: int, stripes: int, **more: Any) -> dict[str, Any]:
    """The paper's file: every rank has so many stripes, one rank after the other."""
    settings = (f"data={stripes}MiB", f"transfer={stripes}MiB")
    return explain(Options(plan, "ior-segmented", settings, ranks, **more))


def test_figures_1_to_4_of_wang_et_al(tmp_path: Path) -> None:
    """18 stripes, three aggregators, buffers of two stripes: three rounds, each aggregator alone at one target."""
    result = segmented(plan_file(tmp_path), ranks=6, stripes=3)
    found = stripes_of(result)
    assert result["summary"]["rounds"] == 3
    assert set(found.values()) == {2}
    assert len({(rank, number) for rank, number, _ in found}) == len(found) == 9
    assert len({(target, number) for _, number, target in found}) == 9
    # Every aggregator keeps its file domain: six stripes one after the other.
    for index, rank in enumerate((0, 2, 4)):
        own = sorted(offset for step in result["steps"] if step["rank"] == rank for offset, _ in step["extents"])
        assert own == [(6 * index + stripe) * MIB for stripe in range(6)]
    assert "no target has two ranks at it in one round" in to_text(result)


def test_figure_2_all_aggregators_at_the_same_targets(tmp_path: Path) -> None:
    """In order, every aggregator needs targets 0 and 1 first, while target 2 is idle."""
    result = segmented(plan_file(tmp_path, order="sequential"), ranks=6, stripes=3)
    found = stripes_of(result)
    assert result["summary"]["rounds"] == 3
    assert {target for _, number, target in found if number == 1} == {0, 1}
    assert {rank for rank, number, target in found if (number, target) == (1, 0)} == {0, 2, 4}
    assert "in 6 of 6 cells several ranks are at one target" in to_text(result)


def test_figures_6_and_7_and_table_1_of_wang_et_al(tmp_path: Path) -> None:
    """21 stripes, buffers of one: seven rounds, and each aggregator has 3, 2 and 2 items as in Table I."""
    result = segmented(plan_file(tmp_path, buffer="1 MiB"), ranks=3, stripes=7)
    found = stripes_of(result)
    assert result["summary"]["rounds"] == 7
    assert set(found.values()) == {1}
    assert len({(rank, number) for rank, number, _ in found}) == len(found) == 21
    assert len({(target, number) for _, number, target in found}) == 21
    items = Counter((target, rank) for rank, _, target in found)
    table = [[items[target, rank] for rank in range(3)] for target in range(3)]
    assert table == [[3, 2, 2], [2, 3, 2], [2, 2, 3]]


def test_sources_and_targets_add_up(tmp_path: Path) -> None:
    result = explain(
        Options(
            plan_file(tmp_path),
            "lattice",
            ("local=4,4,4,4", "site=100 B"),
            7,
            stripe="24 KiB",
            targets=5,
            everything=True,
        )
    )
    for step in result["steps"]:
        assert sum(step["targets"].values()) == sum(step["sources"].values()) == step["bytes"]
        assert sum(length for _, length in step["extents"]) == step["bytes"]
    assert sum(step["bytes"] for step in result["steps"]) == 7 * 256 * 100 == result["summary"]["bytes_moved"]
    assert result["complete"]
    assert result["striping"]["targets"] == 5
    assert "... and" not in result["text"]


def test_the_picture_shows_every_cell_and_frames_the_crowded_ones(tmp_path: Path) -> None:
    for order, framed in (("contention-free", 0), ("sequential", 6)):
        picture = tmp_path / f"{order}.svg"
        result = segmented(plan_file(tmp_path, order=order), ranks=6, stripes=3, picture=picture)
        root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
        marks = [element.get("aria-label", "") for element in root.iter() if element.get("role") == "graphics-symbol"]
        table = schedule_picture.cells(result["steps"])
        for (target, number), ranks in table.items():
            who = ", ".join(f"rank {rank}: {amount} B" for rank, amount in sorted(ranks.items()))
            assert marks.count(f"target {target}, round {number}: {who}") == len(ranks)
        assert sum(element.get("stroke") == "#cc0000" for element in root.iter()) == framed
        assert {"round", "storage target"} <= {element.text for element in root.iter()}


def run_traced(folder: Path, *words: str, plan: str | None = None) -> Path:
    more = []
    if plan is not None:
        (folder / "applied.toml").write_text(plan, encoding="utf-8")
        more = ["--plan", str(folder / "applied.toml")]
    completed(
        [*IOWEIR, "run", "-q", *more, "-o", folder / "trace", "--",
         *IOWEIR, "kernel", *words, "--directory", str(folder), "--mpi", "openmpi"],
        env={**os.environ, **ENVIRONMENT}, check=True, timeout=120,
    )  # fmt: skip
    return folder / "trace"


@pytest.mark.one_of(2)
def test_a_trace_gives_the_extents_of_the_default_view(tmp_path: Path) -> None:
    trace = run_traced(tmp_path, "ior-segmented", "data=96KiB", "transfer=32KiB", "--ranks", "3")
    plan = plan_file(tmp_path)
    striping = {"stripe": "16 KiB", "targets": 3}
    for call in (1, 2, 3, 4):  # three to write, then three to read
        seen = explain(Options(plan, trace=trace, call=call, **striping))  # type: ignore[arg-type]
        computed = explain(
            Options(plan, "ior-segmented", ("data=96KiB", "transfer=32KiB"), 3, call=(call - 1) % 3 + 1, **striping)  # type: ignore[arg-type]
        )
        assert seen["steps"] == computed["steps"]
        assert ("read" if call > 3 else "write") in seen["what"]
    with pytest.raises(IoweirError, match=r"--call 7: .*ior-segmented.data has calls 1 to 6"):
        explain(Options(plan, trace=trace, call=7))


@pytest.mark.parametrize("applied", [None, '[[file]]\nmatch = "*.data"\n'], ids=["library", "everyone"])
def test_a_trace_gives_the_extents_behind_a_view(tmp_path: Path, applied: str | None) -> None:
    words = ("local=2,4,4,32",)
    trace = run_traced(tmp_path, "lattice", *words, "--ranks", "4", plan=applied)
    plan = plan_file(tmp_path)
    for call in (1, 2):
        seen = explain(Options(plan, trace=trace, call=call, stripe="16 KiB", targets=3))
        computed = explain(Options(plan, "lattice", words, 4, stripe="16 KiB", targets=3, reads=call == 2))
        assert seen["steps"] == computed["steps"]
        assert not seen["left_out"]


def test_a_trace_that_does_not_know_says_so(tmp_path: Path) -> None:
    builder = Builder()
    for rank in range(2):
        builder.rank(rank, 2)
        builder.add(Call(rank, "MPI_File_write_ordered", 1, 2, "/d/lattice.data", 40))
        builder.add(Call(rank, "MPI_File_write_all", 3, 4, "/d/lattice.data", 40))
    folder = tmp_path / "trace"
    folder.mkdir()
    builder.write(folder)
    expected = (
        r"the trace knows the extents of no collective call \(2 calls at the pointer that ranks share; "
        r"2 calls through a view or a pointer that the trace does not know\)"
    )
    with pytest.raises(IoweirError, match=expected):
        explain(Options(plan_file(tmp_path), trace=folder))


@pytest.mark.parametrize("ranks", [4, 1 << 24])
def test_what_ranks_moved_that_left_no_trace_is_not_taken_for_nothing(tmp_path: Path, ranks: int) -> None:
    builder = Builder()
    for rank in range(3):
        builder.rank(rank, ranks)
        builder.add(Call(rank, "MPI_File_write_at_all", 3, 4, "/d/lattice.data", 40))
    folder = tmp_path / "trace"
    folder.mkdir()
    builder.write(folder)
    options = simulate.Options("franklin", trace=folder)
    for work in (
        lambda: explain(Options(plan_file(tmp_path), trace=folder)),
        lambda: simulate.simulate(options),
        lambda: from_trace.read(folder),
    ):
        tracemalloc.start()
        with pytest.raises(IoweirError, match=r"left no trace|nothing is known of rank 3"):
            work()
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
        tracemalloc.stop()


def strided(plan: Path, piece: str, ranks: int = 5, **more: Any) -> dict[str, Any]:
    return explain(Options(plan, "ior-strided", ("data=1MiB", "transfer=1MiB", f"piece={piece}"), ranks, **more))


def ranks_that_write(result: dict[str, Any]) -> set[int]:
    return {step["rank"] for step in result["steps"]}


def test_writers_are_spread_over_nodes(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "aggregators:2"\n', encoding="utf-8")
    assert ranks_that_write(strided(plan, "4KiB")) == {0, 2}
    assert ranks_that_write(strided(plan, "4KiB", nodes=2)) == {0, 3}, "ranks 0 to 2 on one node, 3 and 4 on the other"
    assert ranks_that_write(strided(plan, "4KiB", nodes=9)) == {0, 2}, "no node without a rank"


def test_auto_goes_by_processors_and_direction(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*"\nwriters = "auto"\n', encoding="utf-8")
    everyone = set(range(5))
    assert ranks_that_write(strided(plan, "16KiB")) != everyone
    assert ranks_that_write(strided(plan, "16KiB", processors=4)) == everyone, "an exchange waits for processors"
    assert ranks_that_write(strided(plan, "16KiB", nodes=2, processors=3)) != everyone
    assert ranks_that_write(strided(plan, "16KiB", reads=True)) == everyone, "no lock to wait for"
    assert ranks_that_write(strided(plan, "4KiB", reads=True)) != everyone


def test_one_rank_has_nobody_to_exchange_with(tmp_path: Path) -> None:
    result = segmented(plan_file(tmp_path), ranks=1, stripes=3)
    assert [step["operations"] for step in result["steps"]] == [1]
    assert "there is one rank" in " ".join(result["remarks"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--nodes", "0"], "--nodes 0: there is at least one"),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--processors", "-1"], "--processors -1: "),
        (["--kernel", "lattice", "--ranks", "2"], "explain needs a plan: --plan PLAN.toml"),
        (["--plan", "P"], "explain needs one access pattern: --kernel NAME --ranks N, or --trace DIR"),
        (["--plan", "P", "--kernel", "lattice"], "--kernel lattice needs the number of ranks: --ranks N"),
        (["--plan", "P", "--kernel", "latice", "--ranks", "2"], "unknown kernel: 'latice'; did you mean 'lattice'?"),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "site=1M"], "kernel parameter site: "),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--call", "2"], "call 2: the kernel has calls 1 to 1"),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--file", "x.h5"], "no rule of P fits the file 'x.h5'"),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--stripe", "1M"], "--stripe: "),
        (
            ["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--targets", "0"],
            "striping needs the size of a stripe",
        ),
        (
            ["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--stripe", "1 MiB", "--targets", "2000000000"],
            "--targets 2000000000: give at most 10000",
        ),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2147483647"], "--ranks 2147483647: give at most 1048576"),
        (["--plan", "P", "--kernel", "lattice", "--ranks", "2", "--picture", "a.png"], "pictures are SVG"),
        (["--plan", "Q", "--kernel", "lattice", "--ranks", "2"], "plan 'Q' cannot be read: No such file"),
        (["--plan", "P", "--trace", "nowhere"], "trace directory 'nowhere' does not exist"),
    ],
)
def test_mistakes_are_said_with_value_and_remedy(tmp_path: Path, words: list[str], message: str) -> None:
    plan_file(tmp_path).rename(tmp_path / "P")
    done = completed([*IOWEIR, "explain", *words], cwd=tmp_path)
    assert done.stderr.startswith("ioweir: ")
    assert message in done.stderr
    assert done.returncode == (1 if "nowhere" in words else 2)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('writers = "everyone"\nthreshold = 0.5\n', "a threshold without the contention-free order: threshold = 0.5"),
        (
            'writers = "aggregators:2"\ndomains = "cyclic"\nstripe = { size = "1 MiB", count = 2000000000 }\n',
            "stripe = { count = 2000000000 } (plan.toml:1): at most 10000 targets can be explained",
        ),
    ],
)
def test_plans_that_cannot_be_explained(keys: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(f'[[file]]\nmatch = "*"\n{keys}', encoding="utf-8")
    done = completed([*IOWEIR, "explain", "--plan", "plan.toml", "--kernel", "lattice", "--ranks", "2"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    plan = 'match = "*"\nwriters = "aggregators:2"\ndomains = "cyclic"\nstripe = { size = "1 B", count = 2000 }\n'
    (tmp_path / "plan.toml").write_text(f"[[file]]\n{plan}", encoding="utf-8")
    command = [*IOWEIR, "explain", "--plan", "plan.toml", "--kernel", "coll_perf", "--ranks", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as running:
        try:
            time.sleep(3)
            assert running.poll() is None
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"Traceback" not in said


def test_json_holds_what_the_text_says(tmp_path: Path) -> None:
    plan = plan_file(tmp_path)
    words = ["explain", "--plan", str(plan), "--kernel", "coll_perf", "local=8,8,8", "--ranks", "6", "--json"]
    done = completed([*IOWEIR, *words], check=True)
    result = json.loads(done.stdout)
    assert result["rule"] == {"match": "*.data", "line": 1}
    assert result["summary"]["bytes_requested"] == 6 * 8**3 * 4
    assert f"{result['summary']['rounds']} rounds" in result["text"]


def test_of_many_files_a_message_names_some() -> None:
    paths = [f"/d/chk.{step}" for step in range(300)]
    with pytest.raises(IoweirError, match=r"there are /d/chk\.0, /d/chk\.1, /d/chk\.10, /d/chk\.100 and 296 more$"):
        pattern.file_named(paths, "nosuch")
    with pytest.raises(IoweirError, match=r"no file of that name with MPI-IO data calls; there are /d/chk\.0$"):
        pattern.file_named(paths[:1], "nosuch")
