"""The preload has names of functions that a program's libraries may lack.

Whoever asks for one gets the answer that it would have got without ioweir.
"""

from __future__ import annotations

import ctypes.util
from typing import TYPE_CHECKING, Final

import pytest
from tracing import MPICH, build, preloaded, run

if TYPE_CHECKING:
    from pathlib import Path

LINKINGS: Final = {
    "lazy": ("-Wl,-z,lazy",),
    "now": ("-Wl,-z,now",),
    "no-relro": ("-Wl,-z,norelro",),
    "not-independent": ("-no-pie", "-fno-pie"),
}
FLAGS: Final = ("-O1", "-std=gnu11", "-ldl")


def answers(text: str) -> dict[str, str]:
    return dict(line.split(": ") for line in text.splitlines())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "trace").mkdir()
    return tmp_path / "trace"


@pytest.mark.parametrize("linking", LINKINGS)
@pytest.mark.parametrize("disabled", [False, True], ids=["traced", "disabled"])
def test_no_function_appears_that_is_not_there(linking: str, disabled: bool, trace: Path) -> None:
    program = build("asks_for.c", "gcc", *FLAGS, *LINKINGS[linking])
    alone = run([program]).expect().out
    assert "H5Fopen: code no, data no, default no, program no" in alone
    with_preload = preloaded(trace, [program], env={"IOWEIR_DISABLE": "1"} if disabled else {})
    assert answers(with_preload.expect().out) == answers(alone)
    assert with_preload.err == ""


def test_what_is_there_stays(trace: Path) -> None:
    """Linked with MPICH, the same program finds MPI, and not what only ioweir has."""
    program = build("asks_for.c", MPICH.cc, *FLAGS, "-Wl,--no-as-needed")
    alone = run([program]).expect().out
    assert "MPI_File_open: code there, data there, default there, program there" in alone
    assert answers(preloaded(trace, [program]).expect().out) == answers(alone)


def test_what_lies_in_a_local_scope_is_not_the_programs(trace: Path) -> None:
    """Neither RTLD_DEFAULT nor the program's handle reaches it."""
    library = ctypes.util.find_library("hdf5_serial") or ctypes.util.find_library("hdf5")
    assert library is not None, "Debian's HDF5 is not installed: `make deps`"
    program = build("asks_for.c", "gcc", *FLAGS)
    alone = run([program, library]).expect().out
    assert "H5Fopen: code no, data no, default no" in alone
    assert answers(preloaded(trace, [program, library]).expect().out) == answers(alone)
