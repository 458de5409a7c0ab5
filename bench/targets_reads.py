"""Cold reads: one shared file against subfiles on all targets (Son et al. 2016, figure 13), for `make bench-targets`.

Lives here: a lab of its own, first with a file system on each device, then with one that stripes over all of them, what
is read on each, and the table and picture. Not here: writing (targets_runs.py), labs (python/ioweir/targets/lab.py).
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import bars
import launch
from ioweir.base.units import rate
from ioweir.targets import lab, lab_loop

MIB = 1 << 20
KIND = "openmpi"
RANKS = 8
KERNEL = ("coll_perf", "local=128,128,128", "variables=2")
SUBFILED, DEALT, SHARED, LIBRARY = "subfiled.data", "dealt.data", "shared.data", "library.data"
TITLES = {
    SUBFILED: "subfiles on all targets, an aggregator for each",
    DEALT: "the same subfiles, even domains of 8 aggregators: each reads from all of them in turn",
    SHARED: "one file, striped over all targets by the file system; even domains of 8 aggregators",
    LIBRARY: "the same file, read by Open MPI without ioweir",
}
MKFS = "mkfs.btrfs"


@dataclass
class Way:
    """Reads of one way."""

    mib_per_s: list[float] = field(default_factory=list)
    fetched: list[float] = field(default_factory=list)
    """What the devices were asked for over the file's bytes, in each run."""

    @property
    def mean(self) -> float:
        """MiB/s."""
        return statistics.mean(self.mib_per_s)

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return statistics.stdev(self.mib_per_s) if len(self.mib_per_s) > 1 else 0.0


@dataclass
class Reads:
    """What was measured."""

    target_rate: int
    targets: int
    ways: dict[str, Way] = field(default_factory=dict)
    missing: str = ""
    """Why no file was striped by a file system."""

    @property
    def ideal_mib_per_s(self) -> float:
        """Of all targets."""
        return self.target_rate * self.targets / MIB


def rule(file: str, directories: list[Path]) -> str:
    """The plan's rule of a way."""
    everywhere = ", ".join(f'"{directory}"' for directory in directories)
    dealt = f'mapping = "subfiles:{len(directories)}"\ntargets = [{everywhere}]\n'
    parts = {
        SUBFILED: f'writers = "aggregators:auto"\ndomains = "cyclic"\nstripe = {{ size = "1 MiB" }}\n{dealt}',
        DEALT: f'writers = "aggregators:8"\ndomains = "even"\nstripe = {{ size = "1 MiB" }}\n{dealt}',
        SHARED: 'writers = "aggregators:8"\ndomains = "even"\n',
    }
    return f'[[file]]\nmatch = "{file}"\n{parts[file]}'


def devices(made: lab.Lab) -> list[str]:
    """The lab's loop devices, without /dev/."""
    return [Path(row["device"]).name for row in lab_loop.LoopBackend().look(made) if row["device"]]


def sectors_read(names: list[str]) -> int:
    """By the kernel's count, of all of them."""
    return sum(int((Path("/sys/block") / name / "stat").read_text(encoding="ascii").split()[2]) for name in names)


@contextmanager
def striped(made: lab.Lab, names: list[str]) -> Iterator[Path]:
    """One file system whose stripes (64 KiB) lie over the lab's devices in turn, in place of those on each. The lab
    takes what is left of it down."""
    place = made.root / "striped"
    for number in range(len(made.rates)):
        subprocess.run(["umount", str(made.target(number))], check=True)
    subprocess.run(
        [MKFS, "--quiet", "--force", "--data", "raid0", "--metadata", "raid0", *(f"/dev/{name}" for name in names)],
        check=True, capture_output=True,
    )  # fmt: skip
    place.mkdir()
    subprocess.run(["mount", "-t", "btrfs", "-o", ",".join(f"device=/dev/{name}" for name in names), f"/dev/{names[0]}",
                    str(place)], check=True)  # fmt: skip
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=False)


def read(way: Way, file: str, place: Path, scratch: Path, names: list[str], number: int) -> None:
    """Writes the file, forgets all pages, and reads it: as many ranks, the same kernel."""
    trace = scratch / f"trace-{file}"
    words = [*KERNEL, "--directory", str(place), "--mode", f"mpiio:{file}", "--sync", "1", "--cold", "1", "--salt",
             str(number)]  # fmt: skip
    traced = None if file == LIBRARY else launch.Traced(trace, scratch / "reads.toml", "mpiio")
    before = sectors_read(names)
    (line,) = launch.run_program(launch.KERNEL_RUNNER, KIND, RANKS, words, traced)
    fetched = (sectors_read(names) - before) * 512
    shutil.rmtree(trace, ignore_errors=True)
    if not line["read_correct"]:
        raise launch.BenchmarkError(f"what was read is not what was written: {line}")
    way.mib_per_s.append(line["read_mib_per_s"])
    way.fetched.append(fetched / (line["mib"] * MIB))
    if fetched < 0.95 * line["mib"] * MIB:
        raise launch.BenchmarkError(f"{file}: only {fetched} bytes came from the devices, the rest was in the cache")


def why_no_btrfs() -> str:
    """What is missing for files that a file system stripes, and what to do about it; empty: nothing."""
    if lab_loop.find_program(MKFS) is None:
        return f"{MKFS} is not installed (Debian and Ubuntu: apt-get install btrfs-progs)"
    if "btrfs" not in Path("/proc/filesystems").read_text(encoding="ascii").split():
        return "the kernel has no btrfs (as a module: modprobe btrfs)"
    return ""


def measure(scratch: Path, target_rate: int, targets: int, quick: bool) -> Reads:
    """On a loop lab that is made for it."""
    reads = Reads(target_rate, targets)
    repeats = 2 if quick else 7
    wanted = lab.Wanted(
        f"reads-{os.getpid()}", "loop", targets, f"{target_rate} B", "512 MiB", scratch / "reads", memory=True
    )
    made, _ = lab.up(wanted)
    try:
        names = devices(made)
        directories = [made.target(i) for i in range(targets)]
        rules = [rule(file, directories) for file in (SUBFILED, DEALT, SHARED)]
        (scratch / "reads.toml").write_text("\n".join(rules), encoding="utf-8")
        for number in range(repeats):
            for file in (SUBFILED, DEALT):
                read(reads.ways.setdefault(file, Way()), file, made.root, scratch, names, number)
        reads.missing = why_no_btrfs()
        if reads.missing:
            print(f"-- no rows of a shared file: {reads.missing}", flush=True)
            return reads
        with striped(made, names) as place:
            for number in range(repeats):
                for file in (SHARED, LIBRARY):
                    read(reads.ways.setdefault(file, Way()), file, place, scratch, names, number)
    finally:
        lab.down(made.name, made.root, force=True)
    return reads


# ------------------------------------------------------------------------------------------------------------- page


def to_svg(reads: Reads) -> str:
    """Bars with their deviation, and a line at what all targets can give."""
    return bars.to_svg(
        "Cold reads of coll_perf, MiB/s",
        [bars.Bar(TITLES[file], way.mean, way.deviation) for file, way in reads.ways.items()],
        reads.ideal_mib_per_s,
        f"dashed: all targets together, {reads.ideal_mib_per_s:.1f} MiB/s; red: standard deviation",
    )


def lines_of(reads: Reads, picture: str) -> list[str]:
    """The page's part."""
    lines = [
        "## Cold reads",
        "",
        f"coll_perf, {RANKS} ranks (Open MPI), {reads.targets} loop devices of {rate(reads.target_rate)}, all equal. "
        "Between writing and reading, everything goes to the devices and the page cache is emptied (`--cold`); that "
        "the bytes came from the devices is counted there. Son et al., figure 13.",
        "",
        "| what is read | runs | MiB/s, mean | standard deviation | of all targets | read from devices / file |",
        "|---|---|---|---|---|---|",
        *(
            f"| {TITLES[file]} | {len(way.mib_per_s)} | {way.mean:.1f} | {way.deviation:.2f} | "
            f"{way.mean / reads.ideal_mib_per_s:.2f} | {statistics.mean(way.fetched):.2f} |"
            for file, way in reads.ways.items()
        ),
        "",
    ]
    if reads.missing:
        lines += [f"No file was striped by a file system: {reads.missing}.", ""]
    else:
        lines += ["The file system that stripes is btrfs (raid0), whose stripes are 64 KiB.", ""]
    if max(way.mean for way in reads.ways.values()) > reads.ideal_mib_per_s:
        lines += ["A share above 1 is the limits' doing: a device that was idle may move a burst first.", ""]
    return [*lines, f"![cold reads]({picture})", ""]
