"""What the tests of all folders share: which of many alike are left to the long run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

ALL: Final = "IOWEIR_TEST_ALL"
"""Set in the environment: every test runs."""

_LIBRARY: Final = re.compile(r"(?<![a-z])(openmpi|mpich)(?![a-z])")


def pytest_configure(config: pytest.Config) -> None:
    """Say what marks there are."""
    config.addinivalue_line(
        "markers",
        f"either_mpi: many cases, each under one of the two MPI libraries in turn, and under both with {ALL}=1",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests marked either_mpi, leave out half: each case runs under one of the two libraries."""
    if os.environ.get(ALL):
        return
    seen: dict[tuple[str, str], list[str]] = {}
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        found = _LIBRARY.search(item.name)
        if item.get_closest_marker("either_mpi") is None or found is None:
            kept.append(item)
            continue
        function = (str(item.path), item.name.partition("[")[0])
        case = item.name.replace(found[1], "", 1)
        cases = seen.setdefault(function, [])
        if case not in cases:
            cases.append(case)
        # By the number of ones in its number, so that no parameter's values go with one library.
        wanted = ("openmpi", "mpich")[cases.index(case).bit_count() % 2]
        (kept if found[1] == wanted else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
