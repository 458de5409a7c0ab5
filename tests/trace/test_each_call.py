"""With `visibility = "call"` each rank reads what any has written last, after a mere barrier: random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_library_programs import PYTHON
from tracing import OPEN_MPI, PROGRAMS, ioweir_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("mapping", ["log", "grouped:2"])
def test_what_was_written_last_is_read(tmp_path: Path, mapping: str, ranks: int) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[[file]]\nmatch = "*.data"\nmapping = "{mapping}"\nvisibility = "call"\n')
    for seed in (1, 2):
        command = OPEN_MPI.launch(ranks, PYTHON, PROGRAMS / "each_call.py", tmp_path / f"{seed}.data", str(seed))
        traced = ioweir_run(tmp_path / f"trace{seed}", command, options=["--plan", plan])
        assert traced.out.count("the same") == ranks
