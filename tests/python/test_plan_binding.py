"""The plan file as Python sees it, through the compiled part of the installed package."""

from __future__ import annotations

import re

import pytest
from ioweir.base.compiled import compiled


def test_rules_come_in_order_with_defaults_filled_in() -> None:
    text = (
        '[[file]]\nmatch = "*.chk"\nwriters = "aggregators:4"\nbuffer = "1 MiB"\nstripe = { count = 8 }\n'
        '[[file]]\nmatch = "é*"\n'
    )
    first, second = compiled().parse_plan(text, "plan.toml")
    assert first == {
        "match": "*.chk",
        "line": 1,
        "keys": {
            "match": '"*.chk"',
            "mapping": '"shared"',
            "writers": '"aggregators:4"',
            "domains": '"even"',
            "order": '"sequential"',
            "buffer": '"1 MiB"',
            "stripe": "{ count = 8 }",
        },
        "stripe": (0, 8),
        "not_executable": None,
    }
    assert (second["match"], second["line"], second["keys"]["writers"]) == ("é*", 6, '"everyone"')
    assert "buffer" not in second["keys"]


def test_a_legal_strategy_that_cannot_be_executed_is_accepted_with_the_reason() -> None:
    text = '[[file]]\nmatch = "*"\nmapping = "subfiles:auto"\nwriters = "behind:1"\n'
    (rule,) = compiled().parse_plan(text, "plan.toml")
    assert rule["not_executable"].startswith(
        "a legal strategy that this version cannot execute yet: mapping subfiles:auto"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[fil]]", "unknown key: 'fil' (plan.toml:1); a plan file has [[file]] tables only"),
        (
            '[[file]]\nmatch = "*"\nwriters = "evryone"\n',
            "unknown writers: 'evryone' (plan.toml:3); did you mean 'everyone'? "
            "known: everyone, aggregators, delegates, behind, library, auto",
        ),
    ],
)
def test_mistakes_are_value_errors_with_line_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compiled().parse_plan(text, "plan.toml")
