#!/usr/bin/env python3
"""Pictures of the web report of three real runs: LAMMPS, an HDF5 checkpoint with data sieving, and a slow target.

`make screenshots` leaves them in build/screenshots, a PNG a section, beside the pages they show. The slow target needs
root (loop devices with a rate limit); what cannot be run is said. Not here: judging them, which people do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "html"))
import browser  # noqa: E402 (lives with the tests, which need it most)

IOWEIR = str(ROOT / ".venv" / "bin" / "ioweir")
SECTIONS = (
    "findings", "timeline", "shares", "concurrency", "composition", "places", "offsets", "waits", "locks", "sizes",
    "files", "ranks",
)  # fmt: skip
TARGETS = 4
SLOW = 2
ENVIRONMENT = {
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
FLASH_HINTS = ("--hint", "romio_ds_write=enable", "--hint", "romio_cb_write=disable")
"""As Wright et al. 2013 found FLASH-IO: the MPI library sieves, and does not gather."""


class NotRunError(Exception):
    """A run that is not possible here, and why."""


def command(*words: str, folder: Path) -> None:
    """Run it; its output is shown where it fails."""
    done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotRunError(f"{' '.join(words)} ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")


def lammps(folder: Path) -> None:
    """The demonstration's example: dumps and restarts by MPI-IO."""
    if shutil.which("lmp") is None:
        raise NotRunError("LAMMPS is not installed (make deps)")
    program = ("mpirun.openmpi", "-n", "4", "lmp", "-in", str(ROOT / "examples/lammps/in.melt"))
    command(IOWEIR, "run", "--quiet", "-o", "trace", "--", *program, folder=folder)


def flash(folder: Path) -> None:
    """FLASH-IO's checkpoint by parallel HDF5 from memory with guard cells, on MPICH's ROMIO."""
    kernel = ("kernel", "flash", "blocks=20", "variables=8", "--mpi", "mpich", "--api", "hdf5")
    options = ("--hdf5", "memory=guarded", *FLASH_HINTS, "--directory", str(folder))
    command(IOWEIR, "run", "--quiet", "-o", "trace", "--", IOWEIR, *kernel, *options, folder=folder)


def slow_target(folder: Path) -> None:
    """A 3-D array over four targets, one of which has a ninth of the others' speed."""
    name = f"screenshots-{os.getpid()}"
    place = folder / "targets"
    lab = (IOWEIR, "lab")
    where = ("--name", name, "--directory", str(place))
    up = ("--targets", str(TARGETS), "--rate", "24 MiB", "--size", "256 MiB", "--kind", "loop")
    command(*lab, "up", *up, *where, folder=folder)
    try:
        command(*lab, "slow", str(SLOW), "1/9", *where, folder=folder)
        listed = ", ".join(f'"{place}/t{number}"' for number in range(TARGETS))
        (folder / "plan.toml").write_text(
            f'[[file]]\nmatch = "*/coll_perf.data"\nmapping = "subfiles:{TARGETS}"\ntargets = [{listed}]\n'
            f'writers = "aggregators:{TARGETS}"\ndomains = "cyclic"\nstripe = {{ size = "1 MiB" }}\n'
            'order = "contention-free"\n',
            encoding="utf-8",
        )
        kernel = (IOWEIR, "kernel", "coll_perf", "local=96,96,96", "variables=2", "--mpi", "openmpi", "--ranks", "8")
        program = (*kernel, "--directory", str(place))
        run = (IOWEIR, "run", "--quiet", "-o", "trace", "--plan", "plan.toml", "--", *program)
        command(*lab, "run", *where, "--", *run, folder=folder)
    finally:
        command(*lab, "down", *where, folder=folder)


RUNS: dict[str, Callable[[Path], None]] = {"lammps": lammps, "flash-sieving": flash, "slow-target": slow_target}


def pictures(page_file: Path, output: Path, name: str) -> list[str]:
    """A PNG a section, and one of the page in dark colours. What is wrong with the page."""
    program = browser.installed()
    if program is None:
        raise NotRunError("no Chromium is installed (apt-get install chromium)")
    with browser.browser(program) as page:
        page.prefer("light")
        page.open(page_file)
        page.draw_all()
        for section in SECTIONS:
            (output / f"{name}-{section}.png").write_bytes(page.picture(f"#{section}"))
        page.ask("document.getElementById('theme').click()")
        page.ask("document.getElementById('timeline').scrollIntoView()")
        page.settle()
        (output / f"{name}-dark.png").write_bytes(page.picture())
        worst = max((wide for start, wide in page.long_tasks()), default=0.0)
        print(f"{name}: longest task of the browser {worst:.0f} ms, page {page_file.stat().st_size / 1e6:.2f} MB")
        return page.errors


def main() -> int:
    """Run, report, look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "screenshots")
    parser.add_argument("--only", choices=RUNS, action="append", help="one of the runs; may be given several times")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, run in RUNS.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="ioweir-screenshots.") as folder:
            try:
                run(Path(folder))
                page = options.output / f"{name}.html"
                command(IOWEIR, "report", "trace", "--html", str(page.resolve()), folder=Path(folder))
                errors = pictures(page, options.output, name)
            except NotRunError as error:
                errors = [f"not run: {error}"]
        for line in errors:
            print(f"{name}: {line}", file=sys.stderr)
        failed += bool(errors)
    print(f"pictures in {options.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
