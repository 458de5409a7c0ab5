"""`ioweir kernel`: runs an application's I/O kernel through MPI-IO (or by hand), checked, and says how fast it was.

Which kernels there are is kernels/'s, what their runs do kernels/runner's; this module finds runner and launcher.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir import linking, locate
from ioweir.compiled import compiled
from ioweir.errors import EXIT_NOT_FOUND, EXIT_NOT_STARTED, EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Debian's names first: the plain ones may be of the other library.
LAUNCHERS: Final = {
    linking.OPEN_MPI: ("mpirun.openmpi", "mpirun", "mpiexec"),
    linking.MPICH: ("mpiexec.mpich", "mpiexec", "mpirun"),
}
# More ranks than processors are normal on the machine of one person.
_ENVIRONMENT: Final = {"OMPI_MCA_rmaps_base_oversubscribe": "1"}


@dataclass(frozen=True)
class Options:
    """What the user asked of `ioweir kernel`."""

    ranks: int
    directory: Path
    mpi: str | None = None
    api: str = "mpiio"
    repeats: int = 1
    verify: bool = False
    keep: bool = False
    hints: tuple[str, ...] = ()
    hdf5: tuple[str, ...] = ()
    """How --api hdf5 makes its file: NAME=VALUE, see kernels/runner/hdf5_settings.hpp."""
    dummy: float = 0.0
    """Share of the available memory that is taken away."""
    pause: float = 0.0
    """Seconds between repetitions."""


def known() -> list[dict[str, Any]]:
    """Every kernel with its parameters."""
    kernels: list[dict[str, Any]] = compiled().known_kernels()
    return kernels


def describe() -> list[str]:
    """The kernels as text."""
    lines = []
    for kernel in known():
        lines += [f"{kernel['name']}: {kernel['summary']}", f"  source: {kernel['source']}"]
        for parameter in kernel["parameters"]:
            default = f" [{parameter['default']}]" if parameter["default"] else ""
            lines.append(f"  {parameter['name']}=...: {parameter['meaning']}{default}")
    return lines


def runner(kind: str) -> Path:
    """The program that runs kernels under an MPI library."""
    name = f"kernel_runner_{kind}"
    for directory in locate.candidate_directories():
        if (directory / name).is_file():
            return directory / name
    looked = ", ".join(str(directory) for directory in locate.candidate_directories())
    raise IoweirError(
        f"{name} is not in {looked}: ioweir was built without this MPI library. Install it and reinstall ioweir, or "
        f"choose another with --mpi",
        EXIT_NOT_STARTED,
    )


def command(name: str, settings: Sequence[str], options: Options) -> list[str]:
    """What is executed."""
    kind = options.mpi or linking.kind_of_environment()
    if kind not in LAUNCHERS:
        raise IoweirError(f"--mpi {kind}: a kernel needs an MPI library: {' or '.join(LAUNCHERS)}", EXIT_USAGE)
    if options.ranks < 1:
        raise IoweirError(f"--ranks {options.ranks}: write a number from 1 on", EXIT_USAGE)
    if not options.directory.is_dir():
        raise IoweirError(f"--directory {options.directory}: there is no such directory; make it first", EXIT_USAGE)
    launcher = next((word for word in LAUNCHERS[kind] if shutil.which(word)), None)
    if launcher is None:
        raise IoweirError(f"none of {', '.join(LAUNCHERS[kind])} is in PATH: install the MPI library", EXIT_NOT_FOUND)
    return [
        launcher, "-n", str(options.ranks), str(runner(kind)), name, *settings,
        "--directory", str(options.directory.resolve()), "--mode", options.api, "--repeats", str(options.repeats),
        "--verify", str(int(options.verify)), "--keep", str(int(options.keep)), "--dummy", str(options.dummy),
        "--pause", str(options.pause), *(word for hint in options.hints for word in ("--hint", hint)),
        *(word for setting in options.hdf5 for word in ("--hdf5", setting)),
    ]  # fmt: skip


def run(name: str, settings: Sequence[str], options: Options, as_json: bool) -> int:
    """Runs a kernel and prints a line for each repetition and way; returns the exit code."""
    _require_known(name, settings, options.ranks)
    words = command(name, settings, options)
    with subprocess.Popen(
        words, env={**_ENVIRONMENT, **os.environ}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        rows = []
        for line in process.stdout:
            if as_json or not line.startswith("{"):
                print(line, end="", flush=True)
            else:
                rows.append(json.loads(line))
                print(_line(rows[-1]), flush=True)
    print("".join(f"{line}\n" for line in summary(rows)), end="", flush=True)
    return process.returncode


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Of each way that was repeated, the most (which Howison et al. 2010 report) and the median."""
    lines = []
    for way in dict.fromkeys((row["mode"], row["file"]) for row in rows):
        of_way = [row for row in rows if (row["mode"], row["file"]) == way]
        if len(of_way) < 2:
            continue
        parts = []
        for name in ("write", "read"):
            speeds = [row[f"{name}_mib_per_s"] for row in of_way if row[f"{name}_mib_per_s"] is not None]
            if speeds:
                parts.append(f"{name} {max(speeds):.0f} MiB/s at most, {statistics.median(speeds):.0f} in the middle")
        lines.append(f"{way[0]} to {way[1]}, {len(of_way)} times: {'; '.join(parts)}")
    return lines


def _require_known(name: str, settings: Sequence[str], ranks: int) -> None:
    """Mistakes are said here, before anything is started."""
    try:
        compiled().check_kernel(name, ranks, list(settings))
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error


def _line(row: dict[str, Any]) -> str:
    verdict = "" if row["read_correct"] and row["file_correct"] is not False else "  WRONG CONTENT"
    verified = ", file verified" if row["file_correct"] else ""
    return (
        f"{row['kernel']} {row['mode']}: {row['ranks']} ranks, {row['calls']} calls, {row['mib']:.1f} MiB in pieces of "
        f"{row['mean_piece_bytes']} B: write {row['write_mib_per_s']:.0f} MiB/s, read {row['read_mib_per_s']:.0f} MiB/s"
        f"{verified}{verdict}"
    )
