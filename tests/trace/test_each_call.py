"""With `visibility = "call"` each rank reads what any has written last, after a mere barrier: random programs."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest
from test_library_programs import PYTHON
from tracing import OPEN_MPI, PROGRAMS, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.one_of(4)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("mapping", ["log", "grouped:2"])
def test_what_was_written_last_is_read(tmp_path: Path, mapping: str, ranks: int) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nmapping = "{mapping}"\nvisibility = "call"\n')
    for seed in (1, 2):
        command = OPEN_MPI.launch(ranks, PYTHON, PROGRAMS / "each_call.py", tmp_path / f"{seed}.data", str(seed))
        traced = ioweir_run(tmp_path / f"trace{seed}", command, options=["--plan", plan])
        assert traced.out.count("the same") == ranks


@pytest.mark.parametrize("mapping", ["log", "grouped:2"])
def test_reads_after_writes_of_ones_own_do_not_read_all_indexes_anew(tmp_path: Path, mapping: str) -> None:
    """What is read of indexes is no more than what is written, instead of growing with the square of the calls."""
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nmapping = "{mapping}"\nvisibility = "call"\n')
    command = OPEN_MPI.launch(1, PYTHON, PROGRAMS / "write_read.py", tmp_path / "1.data", "400")
    traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan])
    indexes = [event for event in traced.trace.events if event.layer == "POSIX" and "/index." in event.path]
    read, written = (sum(event.bytes for event in indexes if event.op == op) for op in ("read", "write"))
    assert written > 0
    assert read <= written


@pytest.mark.parametrize("mapping", ["log", "grouped:2"])
def test_small_writes_take_no_lock_on_a_file_system_of_one_machine(tmp_path: Path, mapping: str) -> None:
    """What says that something was written is in shared memory: beside the data there is one write, to the index."""
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nmapping = "{mapping}"\nvisibility = "call"\n')
    calls = 100
    before = os.umask(0o022)  # others must not write the file
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            command = OPEN_MPI.launch(1, PYTHON, PROGRAMS / "write_read.py", f"{folder}/1.data", str(calls))
            traced = ioweir_run(tmp_path / "trace", command, options=["--plan", plan])
    finally:
        os.umask(before)
    engines = [event for event in traced.trace.events if event.layer == "POSIX" and "/.ioweir-" in event.path]
    number = [event for event in engines if event.path.endswith("/atomic")]
    assert sum(event.op == "write" for event in number) == 1
    assert sum(event.op == "lock" for event in number) <= 2
    index = [event for event in engines if "/index." in event.path and event.op == "write"]
    assert len(index) <= calls
