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
        "mapping": "shared",
        "writers": "aggregators:4",
        "domains": "even",
        "order": "sequential",
        "buffer_bytes": 1 << 20,
        "threshold": None,
        "stripe": {"size_bytes": 0, "count": 8},
        "not_executable": None,
    }
    assert (second["match"], second["line"], second["writers"], second["buffer_bytes"]) == ("é*", 6, "everyone", 0)


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
            "known: everyone, aggregators, delegates, behind, auto",
        ),
    ],
)
def test_mistakes_are_value_errors_with_line_and_remedy(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compiled().parse_plan(text, "plan.toml")


def test_strategy_names_are_those_that_a_plan_file_takes() -> None:
    names = compiled().strategy_names()
    for key in ("mapping", "writers", "domains", "order"):
        for form in names[key]:
            for value in form.split(" or "):
                written = value.replace("N", "2")
                (rule,) = compiled().parse_plan(f'[[file]]\nmatch = "*"\n{key} = "{written}"\n', "plan.toml")
                assert rule[key] == written
    assert names["executable"] == [
        "everyone",
        "aggregators with even, aligned, cyclic, group-cyclic or cooperative domains, sequential or contention-free",
        "behind",
        "auto: everyone, or aggregators as above",
        "mapping grouped with everyone, aggregators or auto in each group",
        "mapping log with everyone, aggregators or auto, in sequential order or as the bytes arrive",
        "mapping subfiles with everyone, aggregators or auto",
    ]
