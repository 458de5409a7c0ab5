"""`ioweir.open`: what it gives against the reader and the report, how fast the import is, and the notebook."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ioweir
import nbformat
import numpy as np
import pytest
from ioweir.errors import IoweirError
from ioweir.report import build, to_dict
from ioweir.trace import reader
from nbclient import NotebookClient
from traces import Builder, Call

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "library.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = Builder()
    for rank in range(3):
        process = builder.rank(rank, 3)
        for step in range(100):
            builder.add(
                Call(
                    process, "pwrite", 5 - rank + step / 10, 5 - rank + step / 10 + 0.05, "/d/f", 10 + rank, offset=step
                )
            )
        builder.add(Call(process, "open", 0.5, 0.75, "/d/f", failed=rank == 2))
    made = tmp_path_factory.mktemp("run")
    builder.write(made)
    (made / "run.json").write_text(json.dumps({"wall_s": 20.0, "program": "solver", "state": "ended"}))
    return made


def test_events_are_the_readers(folder: Path) -> None:
    table, trace = ioweir.open(folder).events, reader.load(folder)
    assert len(table) == trace.event_count == 303
    assert all(column.shape == (303,) for column in table.values())
    assert (np.diff(table.start_ns) >= 0).all()
    names = {function.id: function.name for function in trace.functions}
    events = trace.events
    wanted = sorted(
        (
            int(events.start_ns[at]),
            trace.processes[events.process[at]].rank,
            names[int(events.function[at])],
            int(events.bytes[at]),
        )
        for at in range(len(events))
    )
    found = zip(
        table.start_ns.tolist(), table["rank"].tolist(), table.text("function"), table.bytes.tolist(), strict=True
    )
    assert sorted(found) == wanted
    chosen = table.where(table.failed)
    assert (len(chosen), chosen.text("op").tolist(), chosen["rank"].tolist()) == (1, ["open"], [2])
    frame = table.to_pandas()
    assert frame.groupby("rank")["bytes"].sum().to_dict() == {0: 1000, 1: 1100, 2: 1200}
    assert "303 rows" in table._repr_html_()
    with pytest.raises(AttributeError, match="no column 'size'"):
        _ = table.size


def test_calls_report_and_findings_are_the_commands(folder: Path) -> None:
    t = ioweir.open(folder)
    report = to_dict(build(reader.load(folder)))
    write = t.calls.where((t.calls.text("layer") == "POSIX") & (t.calls.text("op") == "write"))
    ours: dict[str, Any] = report["layers"]["POSIX"]["write"]
    assert (write.calls.sum(), write.bytes.sum()) == (ours["calls"], ours["bytes"]) == (300, 3300)
    assert write.time_s.sum() == pytest.approx(ours["time_s"]) == pytest.approx(15.0)
    assert to_dict(t.report) == report
    said = subprocess.run(
        [sys.executable, "-m", "ioweir", "findings", folder, "--json"], capture_output=True, text=True, check=True
    )
    assert [one.code for one in t.findings] == [one["code"] for one in json.loads(said.stdout)]


def test_tables_go_to_other_processes(folder: Path) -> None:
    events = ioweir.open(folder).events
    for other in (copy.copy(events), copy.deepcopy(events), pickle.loads(pickle.dumps(events))):
        assert np.array_equal(other.bytes, events.bytes)
        assert other.words == events.words
    with pytest.raises(AttributeError, match="no column 'moon'; there are start_ns, "):
        _ = events.moon


def test_the_timeline_has_units_and_labels(folder: Path, tmp_path: Path) -> None:
    plot = ioweir.open(folder).plot_timeline(op="write", by="rank")
    assert plot.svg.startswith("<svg")
    for words in ("rank 0", "rank 2", "time since the first call, s"):
        assert words in plot.svg
    plot.save(tmp_path / "t.svg")
    assert (tmp_path / "t.svg").read_text() == plot.svg
    with pytest.raises(IoweirError, match="by is one of"):
        ioweir.open(folder).plot_timeline(by="moon")
    with pytest.raises(IoweirError, match="bins is 1 to 10000, not 0"):
        ioweir.open(folder).plot_timeline(bins=0)


def test_the_import_is_quick_and_loads_nothing() -> None:
    code = (
        "import sys, time; before = set(sys.modules); begin = time.process_time(); import ioweir; "
        "took = time.process_time() - begin; print(took, sorted(set(sys.modules) - before - {'typing'})); "
        "assert 'numpy' not in sys.modules and 'ioweir.library' not in sys.modules"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert float(said.stdout.split()[0]) < 0.15


def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not any(output.output_type == "error" for output in cell.outputs) for cell in cells)
    shown = [cell.outputs[-1]["data"]["text/plain"] for cell in cells]
    assert "events>" in shown[0]
    calls, moved, _ = shown[1].strip("()").split(", ", 2)
    assert (int(calls), int(moved)) == (2000, 2000 * 512)
    assert "pwrite" not in shown[2]
    assert "image/svg+xml" in cells[-1].outputs[-1]["data"]
