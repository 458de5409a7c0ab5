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
    config.addinivalue_line("markers", f"one_of(n): many cases, of which one of n runs, and all with {ALL}=1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the two marks say."""
    if os.environ.get(ALL):
        return
    kept = _one_of_n(_one_library_each(items))
    if len(kept) < len(items):
        staying = set(map(id, kept))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in staying])
        items[:] = kept


def _one_library_each(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of tests marked either_mpi, each case under one of the two libraries."""
    numbers = _Numbers()
    kept = []
    for item in items:
        found = _LIBRARY.search(item.name)
        if item.get_closest_marker("either_mpi") is not None and found is not None:
            number = numbers.of(item, item.name.replace(found[1], "", 1))
            if found[1] != ("openmpi", "mpich")[_digits(number, 2) % 2]:
                continue
        kept.append(item)
    return kept


def _one_of_n(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of tests marked one_of, one case of n."""
    numbers = _Numbers()
    kept = []
    for item in items:
        marker = item.get_closest_marker("one_of")
        if marker is not None and "[" in item.name:
            count = marker.args[0]
            if _digits(numbers.of(item, item.name), count) % count != 0:
                continue
        kept.append(item)
    return kept


class _Numbers:
    """The cases of each test function, numbered in their order."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, int]] = {}

    def of(self, item: pytest.Item, case: str) -> int:
        cases = self._seen.setdefault((str(item.path), item.name.partition("[")[0]), {})
        return cases.setdefault(case, len(cases))


def _digits(number: int, base: int) -> int:
    """Their sum. What is chosen by it is not always the same value of one parameter, as by the last digit alone."""
    total = 0
    while number:
        number, digit = divmod(number, base)
        total += digit
    return total
