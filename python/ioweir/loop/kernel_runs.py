"""Runs of kernels on a folder under the strategies that `ioweir tune` tries, and without a plan: `ioweir calibrate`.

All ways of a kernel take turns in one job, each with a file of its own, so that what disturbs one disturbs the others.

Lives here: kernels, ways, starting them. Not here: what is made of the times (predict/node.py).
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import processes, progress
from ioweir.base.guarded_files import write_named
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.launch import forwarding, kernel
from ioweir.predict.candidates import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LIBRARY: Final = "library"
"""Without a plan."""
OPENING: Final = "open_close"
_BUFFERS: Final = (None, "16 MiB")
KERNELS: Final = (
    ("ior-strided", "data=4MiB", "transfer=4MiB", "piece=64KiB"),
    ("ior-strided", "data=4MiB", "transfer=4MiB", "piece=8KiB"),
    ("ior-strided", "data=512KiB", "transfer=128KiB", "piece=1KiB"),
    ("ior-strided", "data=1000000", "transfer=250000", "piece=200"),
    ("ior-strided", "data=8MiB", "transfer=8MiB", "piece=1MiB"),
    ("ior-segmented", "data=512KiB", "transfer=32KiB"),
    ("ior-segmented", "data=4MiB", "transfer=1MiB"),
)
"""Few large pieces and many small ones, on borders of pages and not, one call and many, one round and (8 KiB under
`auto`) many."""


@dataclass(frozen=True)
class Way:
    """A strategy, and its rule; "" without a plan."""

    name: str
    keys: Mapping[str, Any] | None

    @property
    def mapping(self) -> str:
        """The word for it, without a number of files; "" without a plan."""
        from ioweir.predict.candidates import mapping_word  # noqa: PLC0415

        return "" if self.keys is None else mapping_word(self.keys)

    def rule(self, match: str) -> str:
        """Of a plan."""
        from ioweir.predict.simulate import rule_text  # noqa: PLC0415

        return "" if self.keys is None else rule_text(self.keys, match)


def ways(ranks: int) -> list[Way]:
    """The program as it is comes first."""
    tried = [one for one in candidates(ranks, ranks, 1) if one.keys.get("buffer") in _BUFFERS]
    return [Way(LIBRARY, None), *(Way(one.strategy, one.keys) for one in tried)]


def typical(times: Sequence[float]) -> float:
    """The lower quartile: what else the machine does only makes a run longer."""
    return sorted(times)[(len(times) - 1) // 4]


def measured(
    folder: Path, mpi: str, name: str, settings: Sequence[str], ranks: int, repeats: int
) -> dict[str, dict[str, list[float]]]:
    """Of each way seconds of writing, to fsync, of reading back, and of opening and closing for both (`open_close`).

    The files lie in a folder of their own, so that nothing in `folder` is written over.
    """
    chosen = ways(ranks)
    prefix = "ioweir-calibrate-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix) as scratch,
        tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as place,
    ):
        plan, trace = Path(scratch) / "plan.toml", Path(scratch) / "trace"
        write_named(plan, "\n".join(way.rule(f"way{number}.data") for number, way in enumerate(chosen)))
        modes = ",".join(f"mpiio:way{number}.data" for number in range(len(chosen)))
        launcher = kernel.launcher_of(mpi)
        words = [
            launcher, "-n", str(ranks), str(kernel.runner(mpi)), name, *settings, "--directory", place,
            "--mode", modes, "--sync", "1", "--warm-up", "1", "--repeats", str(repeats), "--salt", "3",
            "--ranks", str(ranks),
        ]  # fmt: skip
        traced = processes.ioweir(
            "run", "--quiet", "--layers", "mpiio", "--plan", str(plan), "-o", str(trace), "--", *words
        )
        seconds: dict[str, dict[str, list[float]]] = {
            way.name: {"write": [], "read": [], OPENING: []} for way in chosen
        }  # fmt: skip
        for row in _rows(traced, kernel.environment_of(launcher)):
            way = chosen[int(row["file"].removeprefix("way").removesuffix(".data"))]
            if not row["read_correct"]:
                raise IoweirError(f"{name} under {way.name}: what was read is not what was written")
            times = seconds[way.name]
            for direction in ("write", "read"):
                times[direction].append(row["mib"] / row[f"{direction}_mib_per_s"])
            times[OPENING].append(row["open_close_s"])
    return seconds


def _rows(words: Sequence[str], environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    with forwarding.started(words, environment) as child:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if (code := child.exit_code()) != 0:
        raise IoweirError(f"{' '.join(map(str, words))} ended with {code}")


def mpi_of(asked: str | None) -> str:
    """The MPI library that runs the kernels: the one asked for, else that of this environment."""
    kind = asked or kernel.kind_here()
    if kind not in kernel.LAUNCHERS:
        raise IoweirError(f"--mpi {kind}: a kernel needs an MPI library: {' or '.join(kernel.LAUNCHERS)}", EXIT_USAGE)
    return kind


def rows(
    folder: Path, mpi: str | None, ranks: int | None, repeats: int, kernels: Sequence[Sequence[str]] = KERNELS
) -> list[dict[str, Any]]:
    """For `predict.cases.of_rows`: of each kernel and way the typical times, and those of each opening and closing."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise IoweirError(f"--kernels {folder}: no directory in which you may write; name another", EXIT_USAGE)
    kind = mpi_of(mpi)
    count = ranks or 2 * len(os.sched_getaffinity(0))
    if count < 2:
        raise IoweirError(f"--ranks {count}: give 2 or more; one rank exchanges nothing", EXIT_USAGE)
    kernel.refuse_too_many(count)
    found = []
    for name, *settings in progress.counted(kernels):
        seconds = measured(folder, kind, name, settings, count, repeats)
        for way in ways(count):
            found.append({
                "kernel": name, "settings": settings, "ranks": count, "plan": way.rule("*"),
                "library": way.keys is None, "mapping": way.mapping, "openings_s": seconds[way.name].pop(OPENING),
                **{f"{direction}_s": typical(times) for direction, times in seconds[way.name].items()},
            })  # fmt: skip
    return found
