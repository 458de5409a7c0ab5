#!/usr/bin/env python3
"""Checks wheels of ioweir: tools/check_wheel.py WHEEL... What they hold, their size, and what their binaries ask for.

Lives here: the promise for wheels (docs/explanation/dependencies.md). Not here: what the preloaded libraries export
(check_symbols.py), whether the wheel works (wheels/try.sh).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from check_symbols import ALLOWED_NEEDED, OLDEST_GLIBC, read_library

LARGEST_BYTES: Final = 25 * 1000 * 1000
BACK_ENDS: Final = ("libioweir_openmpi.so", "libioweir_mpich.so", "libioweir_mpi_abi.so")
FOR_EACH_MPI: Final = (
    "libioweir_partition_{}.so", "kernel_runner_{}", "replay_runner_{}", "link/{}/libioweir_trace.a"
)  # fmt: skip
LIBRARIES: Final = (
    "libioweir_preload.so", "libioweir_container.so", "link/none/libioweir_trace.a", *BACK_ENDS,
    *(name.format(kind) for name in FOR_EACH_MPI for kind in ("openmpi", "mpich")),
)  # fmt: skip
# Named as MPICH's library is outside of Debian; brings Debian's, where that is the one that is there.
BRIDGE: Final = "ioweir/lib/mpich/libmpi.so.12"
HELD: Final = (
    *(f"ioweir/lib/{name}" for name in LIBRARIES), BRIDGE, "ioweir/include/ioweir/ioweir.h", "ioweir/__init__.py",
    "ioweir/html/assets/echarts.min.js",
)  # fmt: skip
# What pip puts into the environment's share.
SHARED: Final = ("man/man1/ioweir-run.1", "bash-completion/completions/ioweir")
# Those alone are linked with an MPI library, which is the user's: by names that each library of the family has.
MPI_LIBRARIES: Final = {
    **{f"{part}_openmpi": ("libmpi.so.40",) for part in ("libioweir_partition", "kernel_runner", "replay_runner")},
    **{f"{part}_mpich": ("libmpi.so.12",) for part in ("libioweir_partition", "kernel_runner", "replay_runner")},
}
# Of the C library before 2.34, which had them apart; later ones have them still.
ALSO_ALLOWED: Final = ("libutil.so.",)


def judge_binary(path: Path) -> list[str]:
    """What a binary asks for that not every system with the oldest C library has."""
    binary = read_library(path)
    of_mpi = ("libmpich.so.12",) if path.match(BRIDGE) else MPI_LIBRARIES.get(path.name.removesuffix(".so"), ())
    allowed = ALLOWED_NEEDED + ALSO_ALLOWED + of_mpi
    faults = [f"needs the library {name}" for name in binary.needed if not name.startswith(allowed)]
    faults += [
        f"needs {name} of glibc {'.'.join(map(str, version))}, which is newer than {'.'.join(map(str, OLDEST_GLIBC))}"
        for name, version in sorted(binary.glibc.items())
        if version > OLDEST_GLIBC
    ]
    return faults


def judge(wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    faults = []
    if wheel.stat().st_size > LARGEST_BYTES:
        faults.append(f"has {wheel.stat().st_size} bytes; {LARGEST_BYTES} are allowed")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as place:
        names = archive.namelist()
        faults += [f"lacks {name}" for name in HELD if name not in names]
        faults += [
            f"lacks share/{name}" for name in SHARED if not any(n.endswith(f".data/data/share/{name}") for n in names)
        ]
        if not any(name.startswith("ioweir/_core.") for name in names):
            faults.append("lacks ioweir/_core, the module for Python")
        for name in names:
            with archive.open(name) as stream:
                # A shared library or a program: an object file asks for nothing.
                head = stream.read(18)
            if head[:4] == b"\x7fELF" and head[16] in (2, 3):
                faults += [f"{name}: {fault}" for fault in judge_binary(Path(archive.extract(name, place)))]
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Checks each; the exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheels", nargs="+", type=Path)
    faults = [(wheel, fault) for wheel in parser.parse_args(arguments).wheels for fault in judge(wheel)]
    for wheel, fault in faults:
        print(f"{wheel.name}: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
