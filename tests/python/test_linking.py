"""Where `ioweir link` puts ioweir's archive among a compiler's arguments. Programs: tests/trace/test_linked.py."""

from __future__ import annotations

import pytest
from ioweir.programs import linking

ARCHIVE = str(linking.directory_of(linking.NONE) / linking.ARCHIVE)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("a.o -o program", "a.o A -o program"),
        ("-O2 a.c b.o -lhdf5 -lm", "-O2 a.c A b.o A -lhdf5 A -lm A"),
        ("a.o -l hdf5 -I include", "a.o A -l hdf5 -I include"),
        (
            "a.o -Wl,--whole-archive x.a -lx -Wl,--no-whole-archive y.a",
            "a.o A -Wl,--whole-archive x.a -lx -Wl,--no-whole-archive y.a A",
        ),
        (
            "a.o -Wl,--whole-archive,x.a,--no-whole-archive y.a",
            "a.o A -Wl,--whole-archive,x.a,--no-whole-archive y.a A",
        ),
        ("@objects -L. -Wl,-rpath,lib", "@objects A -L. -Wl,-rpath,lib"),
        ("-x c text", "-x c text -x none A"),
    ],
)
def test_the_archive_stands_behind_every_input(arguments: str, expected: str) -> None:
    """A stands for the archive. Where archives come in whole it must not."""
    full = linking.command(["gcc", *arguments.split()], linking.NONE)
    front = linking.flags(linking.NONE, libraries=True)[:-2]
    assert full[0] == "gcc"
    assert full[1 : 1 + len(front)] == front
    assert full[-2:] == ("-lpthread", "-ldl")
    assert list(full[1 + len(front) : -2]) == [ARCHIVE if word == "A" else word for word in expected.split()]


def test_what_links_nothing_is_left_alone() -> None:
    words = ("gcc", "-c", "a.c", "-lhdf5")
    assert linking.command(words, linking.NONE) == words
