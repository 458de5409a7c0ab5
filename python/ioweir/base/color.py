"""Whether output is coloured: what `--color` says, else whether it goes to a terminal, and the variable NO_COLOR.

Not by the environment: programs that ioweir runs would inherit that.
"""

from __future__ import annotations

from typing import Final, Literal

AUTO: Final = "auto"
ALWAYS: Final = "always"
NEVER: Final = "never"
CHOICES: Final = (AUTO, ALWAYS, NEVER)

_wanted = AUTO


def choose(word: str) -> None:
    """From here on, in this process: one of CHOICES."""
    global _wanted  # noqa: PLW0603 (one command line has one answer)
    if word not in CHOICES:
        raise ValueError(f"'{word}': write {', '.join(CHOICES[:-1])} or {CHOICES[-1]}")
    _wanted = word


def always() -> bool:
    """Also where no terminal reads it."""
    return _wanted == ALWAYS


def on_terminal() -> Literal["auto", "standard"] | None:
    """The kind of colours, as Rich's Console takes it. None: no bold text either."""
    kinds: dict[str, Literal["auto", "standard"] | None] = {AUTO: "auto", ALWAYS: "standard", NEVER: None}
    return kinds[_wanted]


def no_color() -> bool | None:
    """As Rich's Console takes it. None: as NO_COLOR says."""
    return {AUTO: None, ALWAYS: False, NEVER: True}[_wanted]
