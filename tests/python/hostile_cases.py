"""Every file of a thing, every attack in its place, every command that takes it: run, and judged.

`make test` runs a part of them, tools/long_tests.sh all (IOWEIR_TEST_ALL=1); what must hold for all: hostile.Outcome,
hostile.Outside, Subject.leaks.
What does not live here: the things, and their commands (test_hostile_files.py, test_hostile_containers.py).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import hostile
import ioweir
import typer
from ioweir.cli import app
from ioweir.errors import EXIT_DIFFERENT, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, EXIT_NOT_STARTED, EXIT_USAGE

EVERY: Final = bool(os.environ.get("IOWEIR_TEST_ALL"))
SAMPLE: Final = 4

REFUSALS: Final = (EXIT_USAGE, EXIT_DIFFERENT, EXIT_NOT_STARTED, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND)

Words = tuple[str | Path, ...]


def command(*words: str | Path) -> Callable[[], object]:
    """What runs this command line in a child."""

    def work() -> None:
        sys.argv = ["ioweir", *map(str, words)]
        app.main()

    return work


@functools.cache
def warm_up() -> None:
    """What every command loads and makes, before there are children: nine tenths of a short one's time."""
    for module in pkgutil.walk_packages(ioweir.__path__, "ioweir."):
        if module.name not in ("ioweir.__main__", "ioweir.launch.shim"):
            importlib.import_module(module.name)
    typer.main.get_command = functools.cache(typer.main.get_command)
    words = sys.argv
    nothing = io.StringIO()
    with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing), contextlib.suppress(SystemExit):
        command("check", "/nowhere")()
    sys.argv = words


def cases(
    subject: hostile.Subject, commands: list[Words], more: tuple[str, ...], sample: int, but: tuple[str, ...]
) -> Iterator[tuple[Path, str, Words]]:
    """Every file, attack and command; by default every so many of them."""
    every = [
        (path, attack, words)
        for path in [*subject.paths(), *map(Path, more)]
        if str(path) not in but
        for attack in hostile.ATTACKS
        for words in commands
    ]
    step = 1 if EVERY else max(1, len(every) // (sample * len(commands)) | 1)
    return iter(every[::step])


def try_all(
    subject: hostile.Subject,
    commands: list[Words],
    tmp_path: Path,
    more: tuple[str, ...] = (),
    sample: int = SAMPLE,
    but: tuple[str, ...] = (),
) -> int:
    """How many were tried; what was found is an assertion of all of them together.

    `more`: names that are not there; `but`: those that nobody else can replace.
    """
    warm_up()
    found, tried = [], 0
    for path, attack, words in cases(subject, commands, more, sample, but):
        try:
            with hostile.spoil(subject, path, attack, tmp_path / "outside") as outside:
                tried += 1
                outcome = hostile.run(command(*words), tmp_path / "log")
                if outcome.code in REFUSALS:
                    outcome = replace(outcome, code=1)
                leaks = [hostile.PRECIOUS.decode()] if hostile.PRECIOUS.decode() in outcome.text else []
                why = outcome.why_bad() or ", ".join([*outside.touched, *leaks, *subject.leaks()])
                if why:
                    found.append(f"{path}: {attack}: ioweir {' '.join(map(str, words))}: {why}\n{outcome.text[-500:]}")
        except hostile.ImpossibleError:
            continue
    print("\n".join([*found, f"{subject.name}: {tried} combinations, {len(found)} found"]), flush=True)
    assert not found, "\n".join(found)
    return tried
