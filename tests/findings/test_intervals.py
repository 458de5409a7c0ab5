"""Numbers as places in a table, and unions of intervals, against the plain way to find them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from ioweir.findings.intervals import numbered, union

SMALL = st.integers(0, 20)
LARGE = st.integers(0, 1 << 60)


@given(st.lists(st.one_of(SMALL, LARGE)))
def test_places_and_numbers_give_the_values_again(values: list[int]) -> None:
    names, places = numbered(np.array(values, dtype=np.int64))
    assert names.tolist() == sorted(set(values))
    assert names[places].tolist() == values


@given(st.lists(st.tuples(SMALL, st.integers(0, 100), st.integers(0, 30)), min_size=1))
def test_of_each_group_the_union_is_counted_once(rows: list[tuple[int, int, int]]) -> None:
    group, start, length = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    names, busy = union(group, start, start + length)
    expected = {
        name: len({at for of, begin, long in rows if of == name for at in range(begin, begin + long)})
        for name in set(group.tolist())
    }
    assert dict(zip(names.tolist(), busy.tolist(), strict=True)) == expected
