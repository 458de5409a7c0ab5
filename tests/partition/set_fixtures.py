"""Fixtures of the tests of ioweir.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sets import Program, built
from tracing import MPIS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=MPIS, ids=lambda mpi: mpi.name)
def program(request: pytest.FixtureRequest) -> Program:
    """programs/sets.c with each MPI library in turn."""
    return built(request.param)


@pytest.fixture
def base(tmp_path: Path) -> str:
    """A base name in an empty directory."""
    (tmp_path / "run").mkdir()
    return str(tmp_path / "run" / "restart")
