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

from ioweir.base import locate, plain_text
from ioweir.base.compiled import compiled
from ioweir.base.new_folder import require_writable
from ioweir.errors import EXIT_NOT_FOUND, EXIT_NOT_STARTED, EXIT_USAGE, IoweirError
from ioweir.launch import forwarding, launchers
from ioweir.programs import elf, linking

if TYPE_CHECKING:
    from collections.abc import Sequence

# Debian's names first: the plain ones may be of the other library.
LAUNCHERS: Final = {
    linking.OPEN_MPI: ("mpirun.openmpi", "mpirun", "mpiexec"),
    linking.MPICH: ("mpiexec.mpich", "mpiexec", "mpirun"),
}
_KINDS: Final = {launchers.Kind.OPEN_MPI: linking.OPEN_MPI, launchers.Kind.HYDRA: linking.MPICH}
_LIBRARIES: Final = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12")
_SEARCHED_BY_ALL: Final = ("/", "/usr", "/usr/local")
# A mistyped number must not bring the machine down.
_RANKS_A_PROCESSOR: Final = 64
_LEAST_LIMIT: Final = 256
_BATCH_JOBS: Final = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
# As in kernels/runner/netcdf.cpp.
_PNETCDF: Final = ("libpnetcdf.so", "libpnetcdf.so.4", "libpnetcdf.so.0d")


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


def runner(kind: str, program: str = "kernel_runner") -> Path:
    """The program that runs kernels under an MPI library, or another one of which there is one for each library."""
    name = f"{program}_{kind}"
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
    kind = options.mpi or kind_here()
    if kind not in LAUNCHERS:
        raise IoweirError(f"--mpi {kind}: a kernel needs an MPI library: {' or '.join(LAUNCHERS)}", EXIT_USAGE)
    if options.ranks < 1:
        raise IoweirError(f"--ranks {options.ranks}: write a number from 1 on", EXIT_USAGE)
    require_writable(options.directory)
    launcher = launcher_of(kind)
    refuse_too_many(options.ranks)
    _require_library_of(kind, options.api)
    return [
        launcher, "-n", str(options.ranks), str(runner(kind)), name, *settings,
        "--directory", str(options.directory.resolve()), "--mode", options.api, "--repeats", str(options.repeats),
        "--verify", str(int(options.verify)), "--keep", str(int(options.keep)), "--dummy", str(options.dummy),
        "--pause", str(options.pause), "--ranks", str(options.ranks),
        *(word for hint in options.hints for word in ("--hint", hint)),
        *(word for setting in options.hdf5 for word in ("--hdf5", setting)),
    ]  # fmt: skip


def kind_here() -> str:
    """The MPI of the `mpicc` in PATH; where there is none, for nobody compiles there, of the launcher in PATH."""
    if shutil.which("mpicc") is None:
        for path in filter(None, map(shutil.which, ("mpirun", "mpiexec"))):
            launcher = launchers.identify(path)
            if launcher is not None and launcher.kind in _KINDS:
                return _KINDS[launcher.kind]
    return linking.kind_of_environment()


def environment_of(launcher: str) -> dict[str, str]:
    """What a launcher of ranks is started with, for a runner that may have been linked on another machine.

    Its MPI library may lie in a folder that ld.so does not search by itself: beside the launcher's.
    """
    # More ranks than processors are normal on the machine of one person.
    # Open MPI 4, and 5.
    environment = {
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        **os.environ,
    }
    above = Path(os.path.realpath(shutil.which(launcher) or launcher)).parent.parent
    if str(above) not in _SEARCHED_BY_ALL:
        beside = [above / name for name in ("lib", "lib64")]
        found = [str(place) for place in beside if any((place / library).exists() for library in _LIBRARIES)]
        searched = os.environ.get("LD_LIBRARY_PATH")
        if found:
            environment["LD_LIBRARY_PATH"] = os.pathsep.join([*([searched] if searched else []), *found])
    return environment


def launcher_of(kind: str) -> str:
    """The command that starts ranks of an MPI library."""
    launcher = next((word for word in LAUNCHERS[kind] if shutil.which(word)), None)
    if launcher is None:
        raise IoweirError(f"none of {', '.join(LAUNCHERS[kind])} is in PATH: install the MPI library", EXIT_NOT_FOUND)
    return launcher


def run(name: str, settings: Sequence[str], options: Options, as_json: bool) -> int:
    """Runs a kernel and prints a line for each repetition and way; returns the exit code."""
    _require_known(name, settings, options.ranks)
    words = command(name, settings, options)
    _require_sense(words[3:], options.ranks)
    rows = []
    with forwarding.started(words, environment_of(words[0])) as child:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            if as_json or not line.startswith("{"):
                print(plain_text.line(line.removesuffix("\n")), flush=True)
            else:
                rows.append(json.loads(line))
                print(plain_text.line(_line(rows[-1])), flush=True)
    plain_text.print_lines(summary(rows))
    return child.exit_code()


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
                most, middle = _amount(max(speeds)), _amount(statistics.median(speeds))
                parts.append(f"{name} {most} MiB/s at most, {middle} in the middle")
        lines.append(f"{way[0]} to {way[1]}, {len(of_way)} times: {'; '.join(parts)}")
    return lines


def _require_known(name: str, settings: Sequence[str], ranks: int) -> None:
    """Mistakes are said here, before anything is started."""
    try:
        compiled().check_kernel(name, ranks, list(settings))
    except ValueError as error:
        raise IoweirError(str(error), EXIT_USAGE) from error


def _require_sense(words: Sequence[str], ranks: int) -> None:
    """The rest is the runner's to know; asked before there are ranks, its answer does not drown in the launcher's."""
    done = subprocess.run(
        [*words, "--check-ranks", str(ranks)],
        env={**os.environ, "IOWEIR_DISABLE": "1"}, capture_output=True, text=True, check=False,
        errors="surrogateescape",
    )  # fmt: skip
    if done.returncode == EXIT_USAGE:
        raise IoweirError(done.stderr.strip().removeprefix("kernel_runner: "), EXIT_USAGE)


def refuse_too_many(ranks: int) -> None:
    """More than the machine bears, outside of a batch job."""
    most = max(_LEAST_LIMIT, _RANKS_A_PROCESSOR * (os.cpu_count() or 1))
    if ranks > most and not any(os.environ.get(name) for name in _BATCH_JOBS):
        raise IoweirError(
            f"--ranks {ranks}: more than {most}, which is what this machine's processors are allowed outside of a "
            f"batch job ({', '.join(_BATCH_JOBS)}); write fewer",
            EXIT_USAGE,
        )


def _require_library_of(kind: str, api: str) -> None:
    """Debian's PnetCDF is Open MPI's, whose C++ library calls MPI while it is loaded: no time to look at it then."""
    if "netcdf" not in (word.partition(":")[0] for word in api.split(",")):
        return
    program = elf.read(str(runner(kind)))
    found = next(filter(None, (elf.find_library(name, program, program, os.environ) for name in _PNETCDF)), None)
    theirs = linking.kind_of_libraries(elf.closure(found, os.environ).libraries) if found else None
    if theirs is not None and theirs[0] != kind:
        raise IoweirError(
            f"--api netcdf: {found} needs {theirs[1]}, and is for another MPI library than {kind}; take --mpi "
            f"{theirs[0]}, or name the folder of a PnetCDF for {kind} in LD_LIBRARY_PATH",
            EXIT_USAGE,
        )


def _amount(mib: float | None) -> str:
    """Three digits where there are fewer. Example: 0.00183 for 480 values of 4 bytes."""
    if mib is None:
        return "-"
    return f"{mib:.0f}" if mib >= 10 else f"{mib:.3g}"


def _line(row: dict[str, Any]) -> str:
    verdict = "" if row["read_correct"] and row["file_correct"] is not False else "  WRONG CONTENT"
    verified = ", file verified" if row["file_correct"] else ""
    mib = f"{row['mib']:.1f}" if row["mib"] >= 1 else _amount(row["mib"])
    return (
        f"{row['kernel']} {row['mode']}: {row['ranks']} ranks, {row['calls']} calls, {mib} MiB in pieces of "
        f"{row['mean_piece_bytes']} B: write {_amount(row['write_mib_per_s'])} MiB/s, "
        f"read {_amount(row['read_mib_per_s'])} MiB/s"
        f"{verified}{verdict}"
    )
