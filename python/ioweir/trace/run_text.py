"""What run.json says of a run, as far as it can be: a value of another kind than ioweir writes is left out and said.

Reading the file is reader.py's; what its figures mean is report/figures.py's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.locate import RUN_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST_S: Final = float(1 << 33)
"""What nanoseconds can be counted in 64 bits."""
_MOST_CODE: Final = 1 << 32
_CLOCK_SLACK_S: Final = 2.0
_SHOWN: Final = 60


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_time(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -_LONGEST_S < value < _LONGEST_S
        and math.isfinite(value)
        and value >= 0
    )


def _is_code(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST_CODE)


def _is_signal(value: Any) -> bool:
    return value is None or (_is_code(value) and value >= 0)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_CODE


def _is_tracing(value: Any) -> bool:
    return isinstance(value, dict) and ("layers" not in value or _is_texts(value["layers"]))


def _is_launcher(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(entry is None or _is_text(entry) for entry in (value.get("path"), value.get("kind")))
    )


def _is_import(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(_is_text(value.get(key)) for key in ("tool", "log"))
        and all(_is_texts(value.get(key)) for key in ("unseen", "partial"))
    )


_SIMULATED_TEXTS: Final = ("machine", "what", "plan", "strategy")
_SIMULATED_SUMS: Final = (
    "calls", "written_bytes", "read_bytes", "operations", "stored_bytes", "fetched_bytes", "messages",
)  # fmt: skip


def _is_simulated(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(_is_text(value.get(key)) for key in _SIMULATED_TEXTS)
        and all(_is_count(value.get(key)) for key in ("ranks", "ranks_written"))
        and isinstance(value.get("sums"), dict)
        and all(_is_amount(value["sums"].get(key)) for key in _SIMULATED_SUMS)
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


_KINDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "command": (_is_texts, "a list of words"),
    "program": (_is_text, "a text"),
    "cwd": (_is_text, "a text"),
    "plan": (lambda value: value is None or _is_text(value), "a text or null"),
    "state": (_is_text, "a text"),
    "verify": (lambda value: isinstance(value, bool), "true or false"),
    "tracing": (_is_tracing, "an object with a list of layers"),
    "launcher": (_is_launcher, "an object with a path and a kind"),
    "started": (_is_time, "seconds since 1970"),
    "ended": (_is_time, "seconds since 1970"),
    "wall_s": (_is_time, "seconds"),
    "exit_code": (_is_code, "an exit code or null"),
    "signal": (_is_signal, "a signal or null"),
    "processors": (_is_count, "a whole number from 1"),
    "load_before": (_is_time, "a number"),
    "nodes": (_is_texts, "a list of names"),
    "imported": (_is_import, "an object with a tool, a log, and lists of texts"),
    "simulated": (_is_simulated, "an object with a machine, ranks and sums"),
}


def checked(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The entries that can be, and a line for each one that cannot."""
    run = dict(content)
    problems: list[str] = []
    for key, (holds, kind) in _KINDS.items():
        if key in run and not holds(run[key]):
            problems.append(f"{RUN_FILE}: '{key}' is left out: {_shown(run.pop(key))} is not {kind}")
    if "started" in run and "ended" in run:
        took_s = run["ended"] - run["started"]
        if took_s < -_CLOCK_SLACK_S:
            problems.append(f"{RUN_FILE}: 'ended' is left out: it lies before 'started'")
            del run["ended"]
        elif run.get("wall_s", 0) > max(took_s, 0) * 1.01 + _CLOCK_SLACK_S:
            problems.append(f"{RUN_FILE}: 'wall_s' is left out: it is longer than from 'started' to 'ended'")
            del run["wall_s"]
    return run, problems


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
