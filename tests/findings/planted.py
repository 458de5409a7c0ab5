"""Programs with planted faults (cases.toml, habits.toml, held_out*.toml): which there are, running one, what is found.

Lives here: cases, building and running. Not here: what is right, which cases.toml says, and scores (bench_findings.py).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracing import BUILD, MPIS, Finished, Mpi, build, ioweir_run, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from tracing import Traced

HERE: Final = Path(__file__).resolve().parent
PROGRAMS: Final = HERE / "programs"
PLANTED: Final = "planted"
REPAIRED: Final = "repaired"
CLEAN: Final = "clean"
HELD_OUT: Final = "held_out_2.toml"


@dataclass(frozen=True)
class Case:
    """One program and its twin."""

    code: str
    """What is planted; "clean" of programs with nothing."""
    name: str
    words: dict[str, str]
    """Arguments of both twins ("with"), and of each."""
    program: str = "moves"
    ranks: int = 4
    only: str = ""
    """The MPI library that it is for."""
    model: dict[str, str] | None = None
    targets: dict[str, str] | None = None
    prepare: str = ""
    reads: bool = False
    gain: bool = True
    disk: bool = False
    """Needs a disk that can be waited for."""
    held: bool = False

    @property
    def title(self) -> str:
        """Example: "sync-cost/after-32k"."""
        return f"{self.code}/{self.name}"

    @property
    def mpis(self) -> list[Mpi]:
        """The MPI libraries that it runs under."""
        return [mpi for mpi in MPIS if self.only in ("", mpi.name)]

    def arguments(self, kind: str) -> list[str]:
        """The words of one twin."""
        both, own = (self.words.get(name, "").split() for name in ("with", kind))
        # The kind of a program of shapes.c and its like stands before what is said of it.
        return [*own, *both] if self.program in ("shapes", "forms", "habits") else [*both, *own]


@cache
def cases() -> tuple[Case, ...]:
    """All of cases.toml, of habits.toml and held_out.toml (seen by now), and of held_out_2.toml."""
    return tuple(
        _case(code, {"program": program, **row}, held=name == HELD_OUT)
        for name, program in (
            ("cases.toml", "moves"),
            ("held_out.toml", "shapes"),
            ("habits.toml", "habits"),
            (HELD_OUT, "forms"),
        )
        for code, table in tomllib.loads((HERE / name).read_text(encoding="utf-8")).items()
        for row in table["case"]
    )


def _case(code: str, row: dict[str, Any], *, held: bool) -> Case:
    def both(name: str) -> dict[str, str]:
        of_all = row.pop(name, "")
        return {kind: row.pop(f"{name}_{kind}", of_all) for kind in (PLANTED, REPAIRED)}

    row = dict(row)
    row.pop("note", None)
    words = {kind: row.pop(kind, "") for kind in ("with", PLANTED, REPAIRED)}
    return Case(
        code=code, words=words, only=row.pop("mpi", ""), model=both("model"), targets=both("targets"), held=held, **row
    )


def chosen(code: str, name: str) -> Case:
    """One of them."""
    (case,) = [case for case in cases() if (case.code, case.name) == (code, name)]
    return case


def built(case: Case, mpi: Mpi) -> Path:
    """Its program."""
    if case.program == "records":
        return build(str(PROGRAMS / "records.F90"), mpi.fortran, "-O1")
    if case.program == "sets":
        flags = ("-O1", f"-I/usr/include/hdf5/{mpi.name}")
        return build(str(PROGRAMS / "sets.c"), mpi.cc, *flags, libraries=[f"-lhdf5_{mpi.name}"])
    if case.program == "fields":
        return build(str(PROGRAMS / "fields.c"), mpi.cc, "-O1", libraries=["-lpnetcdf"])
    return build(str(PROGRAMS / f"{case.program}.c"), mpi.cc, "-O1")


@cache
def _model() -> Path:
    """The model of storage, compiled."""
    target = BUILD / "storage_model.so"
    BUILD.mkdir(parents=True, exist_ok=True)
    source = PROGRAMS / "storage_model.c"
    subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", "-o", str(target), str(source), "-ldl"], check=True)
    return target


def _setting(case: Case, kind: str, place: Path) -> tuple[dict[str, str], list[str | Path]]:
    """Environment, and options of `ioweir run`: the model beneath, the plan that deals files over targets."""
    environment: dict[str, str] = {}
    options: list[str | Path] = []
    if case.model and case.model.get(kind):
        table = place / "stripes"
        table.unlink(missing_ok=True)
        environment |= {
            "LD_PRELOAD": str(_model()), "STORAGE_MODEL": case.model[kind], "STORAGE_MODEL_TABLE": str(table),
        }  # fmt: skip
    if case.targets and case.targets.get(kind):
        names = [str(place / name) for name in case.targets[kind].split()]
        for name in names:
            Path(name).mkdir(exist_ok=True)
        plan = place / "plan.toml"
        lines = [
            "[[file]]",
            'match = "shared.*"',
            f'mapping = "subfiles:{len(names)}"',
            f"targets = {json.dumps(names)}",
        ]
        plan.write_text("\n".join([*lines, ""]))
        options = ["--plan", plan]
    return environment, options


def command(case: Case, mpi: Mpi, kind: str, data: Path) -> list[str]:
    """The command that runs one twin on a directory."""
    words = case.arguments(kind)
    if case.reads:
        words = [*words, "read=1"]
    return mpi.launch(case.ranks, built(case, mpi), data, *words)


def prepared(case: Case, mpi: Mpi, kind: str, place: Path) -> Path:
    """A directory with what the program reads."""
    data = place / "data"
    data.mkdir(exist_ok=True)
    (data / "config").write_text("x" * 100)
    words = case.arguments(kind) if case.reads else case.prepare.split()
    if words and (case.reads or case.prepare):
        run(mpi.launch(case.ranks, built(case, mpi), data, *words)).expect()
    return data


def traced(case: Case, mpi: Mpi, kind: str, place: Path) -> Traced:
    """A run of one twin under `ioweir run`."""
    data = prepared(case, mpi, kind, place)
    environment, options = _setting(case, kind, place)
    return ioweir_run(place / "trace", command(case, mpi, kind, data), options=options, env=environment)


def timed(case: Case, mpi: Mpi, kind: str, place: Path) -> float:
    """Seconds of one twin by itself, as it says: nothing traced; with a plan, ioweir without a trace cannot be."""
    data = prepared(case, mpi, kind, place)
    environment, options = _setting(case, kind, place)
    words = command(case, mpi, kind, data)
    if options:
        finished: Finished = ioweir_run(place / "trace", words, options=options, env=environment)
    else:
        finished = run(words, env=environment).expect()
    (said,) = re.findall(r"seconds +([0-9.]+)", finished.out)
    return float(said)


def found(of: Traced) -> list[dict[str, Any]]:
    """Its findings."""
    report = json.loads((of.directory / "report.json").read_text(encoding="utf-8"))
    findings, wall_s = report["findings"], report["wall_s"]
    assert isinstance(findings, list)
    for finding in findings:
        assert 0 <= finding["gain"]["low"] <= finding["gain"]["high"] <= wall_s
        assert 0.01 * wall_s <= finding["seconds"] <= wall_s
    assert [row["seconds"] for row in findings] == sorted((row["seconds"] for row in findings), reverse=True)
    return findings
