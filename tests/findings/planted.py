"""Programs with planted faults: which there are, running one of them, and what is found in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracing import Mpi, build, ioweir_run

if TYPE_CHECKING:
    from tracing import Traced

SOURCE: Final = Path(__file__).resolve().parent / "programs" / "faults.c"
FAULTS: Final = (
    "small-requests", "independent-shared-file", "data-sieving", "collective-scattered", "misaligned-requests",
    "no-overlap", "rank0-io", "metadata-storm", "sync-cost",
    "serialised-writes", "same-read-by-all", "redundant-read", "random-access", "stdio-data", "lock-wait",
    "unbalanced-bytes",
)  # fmt: skip
CLEAN: Final = ("clean-collective", "clean-own-files", "clean-shared", "clean-nothing")
OF_ROMIO: Final = ("data-sieving", "collective-scattered")
"""Faults of an MPI library's way of doing things, which Open MPI's does not have."""


def traced(mpi: Mpi, name: str, kind: str, place: Path) -> Traced:
    """A run of one of the programs with four ranks."""
    (place / "data").mkdir()
    program = build(str(SOURCE), mpi.cc, "-O1")
    return ioweir_run(place / "trace", mpi.launch(4, program, name, kind, place / "data"))


def found(of: Traced) -> list[dict[str, Any]]:
    """Its findings."""
    report = json.loads((of.directory / "report.json").read_text(encoding="utf-8"))
    findings, wall_s = report["findings"], report["wall_s"]
    assert isinstance(findings, list)
    for finding in findings:
        assert 0 <= finding["gain"]["low"] <= finding["gain"]["high"] <= finding["seconds"] <= wall_s
        assert finding["seconds"] >= 0.01 * wall_s
    assert [row["seconds"] for row in findings] == sorted((row["seconds"] for row in findings), reverse=True)
    return findings
