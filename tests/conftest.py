"""What the tests of all folders share: which of many alike are left to the long run.

`make test` runs every test function. Of a function's cases it runs each under one of the two MPI libraries only, and
of the widest families one of n. `make test-long` runs what is left out. Which cases that are depends on nothing but
the tests: every run of a version has the same.
"""

from __future__ import annotations

import os
import re
import signal
import zlib
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL: Final = "IOWEIR_TEST_ALL"
"""Set in the environment: every test runs."""
LEFT_OUT: Final = "left_out"
"""The mark, set here, of what runs with ALL only: `pytest -m left_out` runs the rest."""

_LIBRARY: Final = re.compile(r"(?<![a-z])(openmpi|mpich)(?![a-z])")
_OTHER: Final = {"openmpi": "mpich", "mpich": "openmpi"}
_MARKS: Final = (
    f"both_mpis: each case under both MPI libraries, not under one of them in turn as without {ALL}=1",
    f"one_of(n): many cases, of which one of n runs, and all with {ALL}=1",
    f"{LEFT_OUT}: not to be written: what runs with {ALL}=1 only",
)


def pytest_configure(config: pytest.Config) -> None:
    """Say what marks there are."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    # A shell without job control starts what runs in the background with these ignored, and programs inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the marks say. A test that is named with its case runs."""
    if any("[" in argument for argument in config.args):
        return
    kept = set(map(id, _one_of_n(_one_library_each(items))))
    left_out = [item for item in items if id(item) not in kept]
    for item in left_out:
        item.add_marker(LEFT_OUT)
    if left_out and not os.environ.get(ALL):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if id(item) in kept]


def _one_library_each(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Each case under one of the two libraries, unless marked both_mpis; what there is under one only, stays."""
    names = {(str(item.path), item.name) for item in items}
    numbers = _Numbers()
    for item in items:
        found = _LIBRARY.search(item.name)
        if found is None or item.get_closest_marker("both_mpis") is not None:
            yield item
            continue
        before, after = item.name[: found.start()], item.name[found.end() :]
        if (str(item.path), before + _OTHER[found[1]] + after) not in names:
            yield item
            continue
        number = _digits(numbers.of(item, before + after), 2) + _offset(item)
        if found[1] == ("openmpi", "mpich")[number % 2]:
            yield item


def _one_of_n(items: Iterator[pytest.Item]) -> Iterator[pytest.Item]:
    """Of tests marked one_of, one case of n, and one at least."""
    staying = list(items)
    families: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in staying:
        if item.get_closest_marker("one_of") is not None and "[" in item.name:
            families.setdefault(_family(item), []).append(item)
    left_out = set()
    for cases in families.values():
        marker = cases[0].get_closest_marker("one_of")
        assert marker is not None
        count, first = marker.args[0], _offset(cases[0])
        chosen = [case for number, case in enumerate(cases) if (_digits(number, count) + first) % count == 0]
        chosen = chosen or [cases[first % len(cases)]]
        left_out |= set(map(id, cases)) - set(map(id, chosen))
    return (item for item in staying if id(item) not in left_out)


def _family(item: pytest.Item) -> tuple[str, str]:
    """All cases of a test function."""
    return str(item.path), item.name.partition("[")[0]


def _offset(item: pytest.Item) -> int:
    """So that the first case is not the one that stays of every function: the others would test its value only."""
    return zlib.crc32(_family(item)[1].encode())


class _Numbers:
    """The cases of each test function, numbered in their order."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[str, int]] = {}

    def of(self, item: pytest.Item, case: str) -> int:
        cases = self._seen.setdefault(_family(item), {})
        return cases.setdefault(case, len(cases))


def _digits(number: int, base: int) -> int:
    """Their sum. What is chosen by it is not always the same value of one parameter, as by the last digit alone."""
    total = 0
    while number:
        number, digit = divmod(number, base)
        total += digit
    return total
