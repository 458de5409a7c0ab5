"""Fixtures of the tests of the tracer."""

from __future__ import annotations

import pytest
from tracing import MPIS, Mpi


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
