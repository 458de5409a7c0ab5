"""Patterns of the plans that findings propose match the files that they are about, whatever these are called."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ioweir.base import plain_text
from ioweir.findings.rules.common import pattern

NAMES = ("dump.7.h5", "a b[1]*?.data", "a\n\x1b\u202e\x85.h5", "\u00e4.h5", "b\udcff\udcfe.h5", "\\xff.h5", 'q".h5')


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_matched_in_locales_of_all_kinds(name: str, locale: str) -> None:
    """As the engine compares: by fnmatch(3), where a character is one byte, or several."""
    path = "/data/" + plain_text.without_halves(name)
    program = (
        "import ctypes, locale, sys\n"
        f"locale.setlocale(locale.LC_ALL, {locale!r})\n"
        f"sys.exit(ctypes.CDLL(None).fnmatch({pattern(path).encode()!r}, {os.fsencode(name)!r}, 0))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_ordinary_names_are_their_own_pattern() -> None:
    assert pattern("/data/run 1.chk") == "run 1.chk"
    assert pattern("/data/a*b") == "a?b", "nothing but one character"
