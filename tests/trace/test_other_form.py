"""After a plan with groups, logs or subfiles the user is told that the file has another form, and what to do."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from tracing import IOWEIR, OPEN_MPI, build, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.one_of(3)
@pytest.mark.parametrize("mapping", ["grouped:2", "log", "subfiles:2"])
def test_run_and_report_say_that_the_file_has_another_form(mapping: str, tmp_path: Path) -> None:
    plan, file, trace = tmp_path / "plan.toml", tmp_path / "plot.dat", tmp_path / "trace"
    plan.write_text(f'[[file]]\nmatch = "plot.dat"\nmapping = "{mapping}"\n')
    command = OPEN_MPI.launch(2, build("waiting.c", OPEN_MPI.cc), file)
    done = run([*IOWEIR, "run", "-o", trace, "--plan", plan, "--", *command]).expect()
    for said in (done.out + done.err, run([*IOWEIR, "report", trace]).expect().out):
        assert f"OTHER FORM: the bytes of {file} lie in {tmp_path}/.ioweir-" in said
        assert f"`ioweir merge {file}`" in said
    run([*IOWEIR, "merge", file]).expect()
    assert "OTHER FORM" not in run([*IOWEIR, "report", trace]).expect().out
    shutil.rmtree(trace)
