"""What keeps `ioweir report` cheap, as far as it is no matter of time. Times: bench/report_speed.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from traces import Builder, Call


def test_a_report_loads_no_heavy_library(tmp_path: Path) -> None:
    builder = Builder()
    builder.add(Call(builder.rank(0, 1), "pwrite", 0, 1, "f", 1))
    builder.write(tmp_path)
    program = (
        "import sys; from ioweir.cli.app import main; sys.argv = ['ioweir', 'report', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'elftools'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "solver: 1 rank" in done.stdout
