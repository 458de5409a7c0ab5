"""Runs of kernels, and what they write by the formula in kernels/runner/content.hpp. Not here: tests."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
from forked import completed

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
    done = completed(
        [*IOWEIR, "kernel", *words, "--json"],
        env={**os.environ, **ENVIRONMENT, **(environment or {})}, timeout=120,
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


def chombo_values(ranks: int, boxes: int, idle: int, components: int) -> tuple[list[int], int]:
    """Values of each rank of kernel chombo, and the number of all boxes: kernels/chombo.cpp's description in Python."""

    def mixed(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)

    values, number = [], 0
    for rank in range(ranks):
        count = 0 if rank % idle == idle - 1 else boxes - 1 + rank % 3
        sides = [[8 * (1 + (mixed(number + one) >> 2 * d) % 4) for d in range(3)] for one in range(count)]
        values.append(components * sum(x * y * z for x, y, z in sides))
        number += count
    return values, number
