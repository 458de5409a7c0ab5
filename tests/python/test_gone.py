"""ioweir is removed, or replaced by another version, while a job runs: the job goes on, and its exit code is its own.

Not here: a node that lacks ioweir when the job begins (tests/tools/test_site_modules.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ioweir.errors import EXIT_VERIFY
from ioweir.launch import run as run_module
from ioweir.launch import shim
from ioweir.launch.run import Options

SYSTEM_PYTHON = Path("/usr/bin/python3")
LAUNCHER = '#!/bin/sh\necho "$0" "$@"; echo "$PATH"; echo "${LD_PRELOAD:-none} ${IOWEIR_GONE:-none}"; exit 3\n'


@pytest.mark.parametrize("what", ["interpreter", "package"])
@pytest.mark.parametrize(("preload", "left"), [("", "none"), ("{ours}", "none"), ("{ours}:libm.so.6", "libm.so.6")])
def test_a_stand_in_without_ioweir_becomes_the_launcher(
    what: str, preload: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "interpreter":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "gone" / "python"))
    else:
        if not SYSTEM_PYTHON.exists():
            pytest.skip("no Python without ioweir")
        monkeypatch.setattr(sys, "executable", str(SYSTEM_PYTHON))
        monkeypatch.setattr(shim, "__file__", str(tmp_path / "gone" / "ioweir" / "launch" / "shim.py"))
    programs, shims, ours = tmp_path / "bin", tmp_path / "trace" / "shims", tmp_path / "gone" / "ours.so"
    programs.mkdir()
    (programs / "srun").write_text(LAUNCHER)
    (programs / "srun").chmod(0o755)
    assert shim.write_shims(shims, ours, str(programs)) == ["srun"]
    kept = f"{programs}:/usr/bin:/bin"
    environment = {"PATH": f"{shims}:{kept}", "LD_PRELOAD": preload.format(ours=ours)}
    done = subprocess.run(
        ["srun", "-n", "2", "a b"], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [f"{programs / 'srun'} -n 2 a b", kept, f"{left} none"]
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ioweir: ")]
    assert said.startswith("ioweir: srun: what it starts is not traced: ioweir is not complete any more in /")


@pytest.mark.parametrize(
    ("command", "verify", "code"), [("exit 7", False, 7), ("exit 0", False, 0), ("exit 0", True, 74)]
)
def test_the_exit_code_stays_where_no_report_can_be_made(
    command: str, verify: bool, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def gone(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'ioweir.report.figures'")

    monkeypatch.setattr(run_module, "_first_report", gone)
    plan = tmp_path / "plan.toml"
    plan.write_text('[[file]]\nmatch = "*.chk"\n')
    options = Options(
        tmp_path / "trace", plan if verify else None, verify=verify, discard=True, environment=dict(os.environ)
    )
    assert run_module.run(["sh", "-c", command], options) == code
    assert code in (0, 7, EXIT_VERIFY)
    assert (tmp_path / "trace" / "run.json").exists(), "what was recorded stays, --discard or not"
    assert "is not reported: ioweir is not complete any more (No module named" in capfd.readouterr().err
