"""Programs built with a sanitizer's shared runtime: what that needs to run behind a preloaded library.

The address sanitizer's runtime ends a program at once unless it is the first library; the thread sanitizer's takes what
ioweir does in threads for the program's races. An option of each says otherwise. Imports little: shim.py needs it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base.guarded_files import named_holds, open_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PRELOAD: Final = "LD_PRELOAD"


@dataclass(frozen=True)
class Sanitizer:
    """A sanitizer, the names of its shared runtimes (GCC's, clang's), and the option that its programs need."""

    name: str
    runtimes: tuple[bytes, ...]
    variable: str
    option: str
    value: str

    @property
    def setting(self) -> str:
        """The option as it stands in the variable."""
        return f"{self.option}={self.value}"


SANITIZERS: Final = (
    Sanitizer("address", (b"libasan.so", b"libclang_rt.asan"), "ASAN_OPTIONS", "verify_asan_link_order", "0"),
    Sanitizer(
        "thread", (b"libtsan.so", b"libclang_rt.tsan"), "TSAN_OPTIONS", "ignore_noninstrumented_modules", "1"
    ),
)  # fmt: skip


def used_by(path: str) -> tuple[Sanitizer, ...]:
    """The sanitizers whose runtime an executable names. One that only mentions it gets an option it never reads."""
    try:
        with open_named(path) as file:
            if file.read(4) != b"\x7fELF":
                return ()
        names = tuple(b"\0" + name for each in SANITIZERS for name in each.runtimes)
        found = named_holds(path, names)
        return tuple(s for s in SANITIZERS if any(b"\0" + name in found for name in s.runtimes))
    except OSError:
        return ()


def variables_for(words: Iterable[str], environment: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What the ranks of a command need beside the preload, and what to say of it. What the user has set stays.

    Every word that names an executable counts: a launcher may start several programs. So does a runtime that the user
    preloads.
    """
    variables: dict[str, str] = {}
    notes: list[str] = []
    for word in (*words, *environment.get(_PRELOAD, "").replace(":", " ").split()):
        if word.startswith("-"):
            continue
        path = shutil.which(word, path=environment.get("PATH"))
        if path is None:
            continue
        named = [s for s in SANITIZERS if os.fsencode(Path(path).name).startswith(s.runtimes)]
        for sanitizer in (*used_by(path), *named):
            before = environment.get(sanitizer.variable, "")
            if sanitizer.variable in variables or f"{sanitizer.option}=" in before:
                continue
            variables[sanitizer.variable] = f"{before}:{sanitizer.setting}" if before else sanitizer.setting
            notes.append(
                f"{word} runs with the {sanitizer.name} sanitizer: the ranks get "
                f"{sanitizer.variable}={variables[sanitizer.variable]}"
            )
    return variables, tuple(notes)
