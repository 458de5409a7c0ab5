"""Runs of kernels, and what they write by the formula in kernels/runner/content.hpp. Not here: tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np

IOWEIR = (sys.executable, "-m", "ioweir")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


def run_kernel(
    *words: str, code: int = 0, environment: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """`ioweir kernel`: what it printed as JSON, and on standard error."""
    done = subprocess.run(
        [*IOWEIR, "kernel", *words, "--json"],
        env={**os.environ, **ENVIRONMENT, **(environment or {})},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, f"{done.stdout}{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stderr


def content(owners: Any, salt: int = 0) -> Any:
    """The bytes of a file whose byte i belongs to rank owners[i]."""
    offsets = np.arange(owners.size, dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = (
            (offsets >> np.uint64(3)) * np.uint64(0x9E3779B97F4A7C15)
            + (owners.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
            + np.uint64(salt) * np.uint64(0x8CB92BA72F3D8DD7)
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return ((x >> (np.uint64(8) * (offsets & np.uint64(7)))) & np.uint64(255)).astype(np.uint8)
