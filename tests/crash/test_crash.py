"""A dozen jobs that are killed at random, always the same ones.

300 of them, and by other seeds: crash.py (`make test-long`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import pytest
from cases import STRATEGIES, Case, Kind, cases
from work import run_case

if TYPE_CHECKING:
    from pathlib import Path

SEED: Final = 20261123
DOZEN: Final = tuple(islice(cases(SEED), 12))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", DOZEN, ids=str)
def test_what_a_killed_job_leaves(case: Case, tmp_path: Path) -> None:
    outcome = run_case(case, tmp_path / "case")
    assert outcome.problems == []


def test_every_kind_is_among_the_strategies() -> None:
    assert {strategy.kind for strategy in STRATEGIES} == set(Kind)
    assert len({strategy.name for strategy in STRATEGIES}) == len(STRATEGIES)


def test_a_seed_determines_its_cases() -> None:
    assert list(islice(cases(7), 50)) == list(islice(cases(7), 50))
    assert list(islice(cases(7), 50)) != list(islice(cases(8), 50))
