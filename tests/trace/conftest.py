"""Fixtures of the tests of the tracer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from symbol_calls import Both
from tracing import MPIS, Mpi

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(params=MPIS, ids=lambda mpi: mpi.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI library in turn."""
    library = request.param
    assert isinstance(library, Mpi)
    return library


@pytest.fixture(params=(1, 3, 4), ids=lambda ranks: f"{ranks}ranks")
def ranks(request: pytest.FixtureRequest) -> int:
    """One rank, a number that is no power of two, and more than most machines of ours have cores."""
    return int(request.param)


@pytest.fixture(scope="module", params=MPIS, ids=lambda mpi: mpi.name)
def any_mpi(request: pytest.FixtureRequest) -> Mpi:
    """Each MPI library in turn, for fixtures of a module."""
    library = request.param
    assert isinstance(library, Mpi)
    return library


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty folder for what a program writes."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An empty folder for a trace."""
    folder = tmp_path / "trace"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def symbol_runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Both]:
    """A program of programs/symbols*.c with and without the preload; each runs once."""
    return cache(lambda source: Both(source, tmp_path_factory.mktemp("symbols")))
