"""Which cases `make test` leaves to the long run: tests/conftest.py."""

from __future__ import annotations

import itertools
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest

CONFTEST: Final = Path(__file__).resolve().parents[1] / "conftest.py"
FUNCTIONS: Final = [f"test_{number}" for number in range(64)]


class Item:
    """What is looked at of a pytest.Item."""

    def __init__(self, name: str, **marks: int) -> None:
        self.path = Path("test_file.py")
        self.name = name
        self._marks = {mark: getattr(pytest.mark, mark)(value).mark for mark, value in marks.items()}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marks.get(name)


def chosen(items: list[Item]) -> list[str]:
    spec = spec_from_file_location("conftest_of_all", CONFTEST)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    return [item.name for item in module._one_of_n(module._one_library_each(items))]


def test_each_case_has_one_library_and_both_have_cases() -> None:
    cases = [f"{function}[{case}-{mpi}]" for function in FUNCTIONS for mpi in ("openmpi", "mpich") for case in "abc"]
    kept = chosen([Item(case) for case in cases])
    assert sorted(case.replace("-openmpi", "").replace("-mpich", "") for case in kept) == sorted(
        f"{function}[{case}]" for function in FUNCTIONS for case in "abc"
    )
    for function in FUNCTIONS:
        own = [case for case in kept if case.startswith(f"{function}[")]
        assert {"openmpi" in case for case in own} == {True, False}, own


def test_of_functions_with_one_case_some_have_the_one_and_some_the_other_library() -> None:
    kept = chosen([Item(f"{function}[{mpi}]") for function in FUNCTIONS for mpi in ("openmpi", "mpich")])
    assert len(kept) == len(FUNCTIONS)
    assert 16 < sum("openmpi" in case for case in kept) < 48


def test_what_is_marked_and_what_there_is_under_one_library_only_stays() -> None:
    marked = [Item("test_a[openmpi]", both_mpis=1), Item("test_a[mpich]", both_mpis=1)]
    alone = [Item("test_b[openmpi-1]"), Item("test_b[openmpi-2]"), Item("test_b[mpich-3]"), Item("test_c")]
    assert chosen([*marked, *alone]) == [item.name for item in [*marked, *alone]]


@pytest.mark.parametrize("count", [2, 3, 4, 12])
def test_one_of_n_leaves_every_function_a_case_and_takes_every_value(count: int) -> None:
    cases = list(itertools.product("abc", "xyzw"))
    kept = chosen([Item(f"{f}[{one}-{two}]", one_of=count) for f in FUNCTIONS for one, two in cases])
    by_function = {f: [case.partition("[")[2] for case in kept if case.startswith(f"{f}[")] for f in FUNCTIONS}
    assert all(1 <= len(own) <= 3 * len(cases) // (2 * count) + 1 for own in by_function.values()), by_function
    values = {value for own in by_function.values() for case in own for value in case.rstrip("]").split("-")}
    assert values == set("abcxyzw")


def test_a_function_with_fewer_cases_than_n_has_one() -> None:
    kept = chosen([Item(f"{f}[{case}]", one_of=16) for f in FUNCTIONS for case in "ab"])
    assert len(kept) == len(FUNCTIONS)
    assert {case[-2] for case in kept} == {"a", "b"}
