"""How commands that start other commands tell their own options from the command: tables, and the ways to read them.

The tables are launchers.toml and wrappers.toml beside this file. Looks at words only. What to do with the command that
is found is launchers.py's and wrappers.py's.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base import toml_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ATTACHED: Final = "attached"
"""In a table: the option's value, if any, hangs on to it."""


class Style(Enum):
    """A way in which commands read their options."""

    OPAL = "opal"
    """Open MPI up to 4: exact names behind one or two dashes, no "=", several letters behind one dash."""
    PRRTE = "prrte"
    """Open MPI 5: one dash before more than a letter counts as two; then as GETOPT does, without joined letters."""
    HYDRA = "hydra"
    """Exact names behind any number of dashes, the first value in the same word behind "=" or in the next word."""
    GETOPT = "getopt"
    """getopt_long: names may be cut short, values hang on with "=" (names) or as they are (letters)."""


@dataclass(frozen=True)
class Table:
    """The options of one command."""

    title: str
    """What messages call the command."""
    style: Style
    counts: Mapping[str, int]
    """Words that an option takes, by name; an option whose value hangs on takes none."""
    attached: frozenset[str] = frozenset()
    """Options that may have a value, and only one that hangs on."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """Letters that stand for a name."""


@dataclass(frozen=True)
class Option:
    """An option in a command: its whole name without dashes, its values, and the words [first, end) it takes."""

    name: str
    values: tuple[str, ...]
    first: int
    end: int


def load(file: str) -> dict[str, dict[str, Any]]:
    """The tables of one of the files beside this one, as they stand there."""
    # importlib.resources would load tempfile and what that draws names with.
    tables: dict[str, dict[str, Any]] = toml_text.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return tables


def table_of(entry: Mapping[str, Any], title: str) -> Table:
    """The table that an entry of a file describes."""
    options: dict[str, int | str] = entry.get("options", {})
    return Table(
        title=entry.get("title", title),
        style=Style(entry.get("style", Style.GETOPT.value)),
        counts={name: count if isinstance(count, int) else 0 for name, count in options.items() if _counted(count)},
        attached=frozenset(name for name, count in options.items() if count == ATTACHED),
        letters={name: target for name, target in options.items() if isinstance(target, str) and target != ATTACHED},
    )


def _counted(count: int | str) -> bool:
    return isinstance(count, int) or count == ATTACHED


@functools.cache
def launcher_table(name: str) -> Table:
    """The options of a launcher, by its name in launchers.toml."""
    return table_of(load("launchers.toml")[name], name)


def read(table: Table, words: Sequence[str], at: int, end: int) -> tuple[Option, ...]:
    """The options in words[at], which begins with "-", with their values, in words[:end]; none when the table lacks it.

    More than one only for joined letters: in ("-lN", "2") they are l, and N with the value 2.
    """
    match table.style:
        case Style.OPAL:
            return _read_opal(table, words, at, end)
        case Style.HYDRA:
            return _read_hydra(table, words, at, end)
        case Style.PRRTE:
            dashes = "--" if len(words[at]) > len("-n") else "-"
            return _read_getopt(table, dashes + words[at].lstrip("-"), words, at, end)
        case Style.GETOPT:
            return _read_getopt(table, words[at], words, at, end)


def _take(table: Table, name: str, words: Sequence[str], at: int, after: int, end: int) -> Option:
    """The option `name` in words[at], whose values begin at words[after]."""
    last = min(after + table.counts[name], end)
    return Option(name, tuple(words[after:last]), at, last)


def _read_opal(table: Table, words: Sequence[str], at: int, end: int) -> tuple[Option, ...]:
    word = words[at]
    name = word.removeprefix("-").removeprefix("-")
    if name in table.counts:
        return (_take(table, name, words, at, at + 1, end),)
    if word.startswith("--") or any(letter not in table.counts for letter in name):
        return ()
    options: list[Option] = []
    after = at + 1
    for letter in name:
        options.append(_take(table, letter, words, at, after, end))
        after = options[-1].end
    return tuple(options)


def _read_hydra(table: Table, words: Sequence[str], at: int, end: int) -> tuple[Option, ...]:
    name, attached, value = words[at].lstrip("-").partition("=")
    count = table.counts.get(name)
    if count is None:
        return ()
    after = at + 1
    values = [value] if attached else []
    while len(values) < count:
        if name in _HYDRA_PAIRS and values and "=" in values[0]:
            # -env NAME=VALUE is as good as -env NAME VALUE.
            values = values[0].split("=", 1)
        elif after < end:
            values.append(words[after])
            after += 1
        else:
            break
    return (Option(name, tuple(values), at, after),)


_HYDRA_PAIRS: Final = frozenset({"env", "genv"})


def _read_getopt(table: Table, word: str, words: Sequence[str], at: int, end: int) -> tuple[Option, ...]:
    if not word.startswith("--"):
        return _read_letters(table, word, words, at, end)
    given, attached, value = word[2:].partition("=")
    name = whole_name(table, given)
    if name is None:
        return ()
    if not attached or name in table.attached:
        option = _take(table, name, words, at, at + 1, end)
        return (Option(name, (value,), at, at + 1) if attached else option,)
    more = max(table.counts[name] - 1, 0)
    after = min(at + 1 + more, end)
    return (Option(name, (value, *words[at + 1 : after]), at, after),)


def whole_name(table: Table, given: str) -> str | None:
    """The long option that `given` names or begins; None if there is none, or several that differ in what they take."""
    if given in table.counts and len(given) > 1:
        return given
    candidates = [name for name in table.counts if len(name) > 1 and name.startswith(given)] if given else []
    kinds = {(table.counts[name], name in table.attached) for name in candidates}
    return candidates[0] if len(kinds) == 1 else None


def _read_letters(table: Table, word: str, words: Sequence[str], at: int, end: int) -> tuple[Option, ...]:
    options: list[Option] = []
    for place in range(1, len(word)):
        letter, rest = word[place], word[place + 1 :]
        name = table.letters.get(letter, letter)
        if name not in table.counts:
            return ()
        if rest and (table.counts[name] or name in table.attached):
            # The rest of the word is the value.
            more = max(table.counts[name] - 1, 0)
            after = min(at + 1 + more, end)
            return (*options, Option(name, (rest, *words[at + 1 : after]), at, after))
        options.append(Option(name, (), at, at + 1) if rest else _take(table, name, words, at, at + 1, end))
    return tuple(options)
