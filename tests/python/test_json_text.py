"""JSON on few lines is still the same JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ioweir.base.json_text import lines, text
from ioweir.findings.model import Gain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=6))
def test_it_reads_back_as_what_it_was(document: dict[str, Any]) -> None:
    assert json.loads("\n".join(lines(document))) == document


def test_numbers_that_json_has_not_are_null() -> None:
    """Whatever reads JSON by its rules, such as JavaScript, refuses NaN and Infinity."""
    document = {"a": [math.inf, 1.0], "gain": Gain(math.nan, 2.0), "b": {"c": -math.inf, "d": (True, "x", None)}}
    said = "\n".join(lines(document))
    read = json.loads(said, parse_constant=pytest.fail)
    assert read == {
        "a": [None, 1.0],
        "gain": {"low": None, "high": 2.0, "method": "bound", "may_cost": 0.0},
        "b": {"c": None, "d": [True, "x", None]},
    }
    assert json.loads(text(document, indent=1)) == read


def test_a_line_for_each_key_and_each_entry() -> None:
    document = {"a": 1, "files": [{"path": "x"}, {"path": "y"}], "layers": {"POSIX": {"calls": 1}}, "list": [1, 2]}
    assert list(lines(document)) == [
        "{",
        ' "a": 1,',
        ' "files": [',
        '  {"path": "x"},',
        '  {"path": "y"}',
        " ],",
        ' "layers": {',
        '  "POSIX": {"calls": 1}',
        " },",
        ' "list": [1, 2]',
        "}",
    ]
