"""What `make demo` installs of the lock: all that ioweir's own packages ask for, and nothing that only tests do."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import lock_part
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent.parent


def names_in(text: str) -> set[str]:
    return {re.split(r"[ =;]", line)[0].lower() for line in text.splitlines() if "==" in line}


def locked_part() -> set[str]:
    wanted = lock_part.named((ROOT / "requirements.in").read_text(encoding="utf-8"))
    return names_in(lock_part.part((ROOT / "requirements.lock").read_text(encoding="utf-8"), wanted))


def test_what_its_packages_ask_for_is_in_it() -> None:
    """By the packages' own words, as pip has installed them here."""
    part = locked_part()
    installed = {name for name in part if list(metadata.distributions(name=name))}
    assert {"numpy", "pyarrow", "scipy", "typer", "rich", "zstandard", "scikit-build-core", "nanobind"} <= installed
    for name in installed:
        for text in metadata.requires(name) or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": ""}):
                assert asked.name.lower() in part, f"{name} asks for {asked.name}"


def test_what_only_tests_need_is_not() -> None:
    part = locked_part()
    whole = names_in((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert not part & {"pytest", "mypy", "duckdb", "pandas", "sphinx", "darshan"}
    assert len(part) < len(whole) / 3


def test_hashes_come_along() -> None:
    text = lock_part.part((ROOT / "requirements.lock").read_text(encoding="utf-8"), {"rich"})
    for entry in re.split(r"\n(?=[a-z])", text.strip()):
        assert "--hash=sha256:" in entry, entry


def test_a_package_that_is_not_locked_is_an_error() -> None:
    with pytest.raises(SystemExit, match="lacks nosuch: run make lock"):
        lock_part.part((ROOT / "requirements.lock").read_text(encoding="utf-8"), {"nosuch"})
