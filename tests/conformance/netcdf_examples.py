#!/usr/bin/env python3
"""PnetCDF's own examples, in C, Fortran 77 and Fortran 90, without ioweir and with their files in subfiles.

The merged files must be the same byte for byte, and the exit codes too.

    .venv/bin/python tests/conformance/netcdf_examples.py [--work FOLDER]

Their source is fetched through Debian's package manager. Needs libpnetcdf-dev, gfortran and Open MPI, with which
Debian's PnetCDF is built.
Closes with "N passed, N failed".
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from conformance_fetch import debian_source

RANKS: Final = 2
PLAN: Final = '[[file]]\nmatch = "*.nc"\nnetcdf = { subfiles = 2, min_ndims = 1 }\n'
LAUNCH: Final = ("mpirun.openmpi", "--oversubscribe", "-n", str(RANKS))
IOWEIR: Final = (sys.executable, "-m", "ioweir")
ENVIRONMENT: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **os.environ}
SUFFIXES: Final = {"C": ".c", "F77": ".f", "F90": ".f90"}


def compiler(language: str, examples: Path, modules: Path) -> list[str | Path]:
    """The command that builds an example, but for its source, its output and the library."""
    if language == "C":
        return ["mpicc.openmpi", "-w"]
    found = sorted(Path("/usr/lib").glob("*/fortran/gfortran-mod-*/pnetcdf.mod"))
    include = Path("/usr/include", sysconfig.get_config_var("MULTIARCH") or "")
    words: list[str | Path] = ["mpifort.openmpi", "-w", "-fallow-argument-mismatch", f"-I{include}", f"-J{modules}"]
    return [*words, *(f"-I{module.parent}" for module in found), examples / language / "utils.F90"]


def code_of(command: list[str | Path], log: Path) -> int:
    with log.open("w", encoding="utf-8") as out:
        return subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, check=False, timeout=300, env=ENVIRONMENT, cwd=log.parent
        ).returncode


def fault_of(program: Path, work: Path) -> str:
    """Runs an example both ways; what differs, or nothing."""
    without, planned = work / "without.nc", work / "planned.nc"
    plain = code_of([*LAUNCH, program, "-q", without], work / "without.out")
    plan = work / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    under: list[str | Path] = [*IOWEIR, "run", "-o", work / "trace", "--plan", plan, "--", *LAUNCH]
    code = code_of([*under, program, "-q", planned], work / "planned.out")
    if plain != code:
        return f"exit code {code}, without ioweir {plain}"
    if not without.exists():
        return "" if not planned.exists() else "a file that is not there without ioweir"
    if list(work.glob("planned.nc.*")):  # subfiles
        if code_of([*IOWEIR, "merge", planned, "-o", work / "merged.nc"], work / "merge.out") != 0:
            return (work / "merge.out").read_text(encoding="utf-8")
        planned = work / "merged.nc"
    return "" if without.read_bytes() == planned.read_bytes() else "another file"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder for sources and results; else one that is removed")
    asked = parser.parse_args().work
    passed = failed = 0
    with tempfile.TemporaryDirectory() as removed:
        work = (asked or Path(removed)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        examples = debian_source("pnetcdf", work) / "examples"
        for language, suffix in SUFFIXES.items():
            for source in sorted((examples / language).glob(f"*{suffix}")):
                folder = work / f"{language}-{source.stem}"
                folder.mkdir()
                program = folder / "program"
                words = [*compiler(language, examples, folder), "-o", program, source, "-lpnetcdf", "-lm"]
                fault = "it does not compile" if code_of(words, folder / "compile.out") else fault_of(program, folder)
                print(f"{language} {source.stem}: {fault or 'the same'}", flush=True)
                passed, failed = passed + (not fault), failed + bool(fault)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
