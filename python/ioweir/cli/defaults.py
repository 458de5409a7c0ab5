"""From defaults.toml to options: which commands and options there are, and `ioweir defaults`.

What the files say, and who may have written them, is launch/defaults.py's.
"""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, Any, Final

from ioweir.cli.arguments import JsonOption
from ioweir.cli.printing import print_result
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ioweir.launch.defaults import Defaults

NOT_BY_DEFAULT: Final = {"help", "json", "output", "plan", "version"}
"""Of one run at a time; plans of programs stand in [plans]."""


def default_map(all_commands: Callable[[], Any]) -> dict[str, Any]:
    """Values by command and parameter, as click takes them. The group of all commands is made where a file needs it."""
    from ioweir.launch import defaults  # noqa: PLC0415

    merged: dict[str, Any] = {}
    loaded = [(path, sections) for path, sections in defaults.load(os.environ).sections if sections]
    group = all_commands() if loaded else None
    for path, sections in loaded:
        _merge(merged, _of_group(group, sections, path, ()))
    return merged


def _of_group(group: Any, sections: dict[str, Any], file: Path, above: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, section in sections.items():
        command = group.commands.get(name)
        where = f"'{file}': [{'.'.join((*above, name))}]"
        if command is None or not isinstance(section, dict):
            raise IoweirError(f"{where} is no command of ioweir{_nearest(name, group.commands)}", EXIT_USAGE)
        if hasattr(command, "commands"):
            found[name] = _of_group(command, section, file, (*above, name))
        else:
            found[name] = dict(_values(command, section, where))
    return found


def _values(command: Any, section: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    options = {
        option.removeprefix("--"): param
        for param in command.params
        for option in param.opts
        if option.startswith("--") and option.removeprefix("--") not in NOT_BY_DEFAULT
    }
    for name, value in section.items():
        param = options.get(name)
        if param is None:
            raise IoweirError(f"{where} has '{name}', which has no default there{_nearest(name, options)}", EXIT_USAGE)
        if getattr(param, "is_flag", False) is not isinstance(value, bool):
            wanted = "true or false" if getattr(param, "is_flag", False) else "a word or a number"
            raise IoweirError(f"{where} {name} = {value!r}: it takes {wanted}", EXIT_USAGE)
        several = getattr(param, "multiple", False)
        words = value if several and isinstance(value, list) else [value]
        if not all(isinstance(word, (bool, str, int, float)) for word in words):
            raise IoweirError(f"{where} {name} = {value!r}: it takes a word or a number", EXIT_USAGE)
        texts = [word if isinstance(word, bool) else str(word) for word in words]
        yield param.name, texts if several else texts[0]


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(sorted(known))}"


def _merge(into: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def defaults(as_json: JsonOption = False) -> None:
    """Say which options and plans have defaults here, and in which file they stand."""
    from ioweir.launch import defaults as files  # noqa: PLC0415

    found = files.load(os.environ)
    looked = files.places(os.environ)
    result = {
        "files": [{"file": str(path), "read": path in {one for one, _ in found.sections}} for path in looked],
        "options": list(_rows(found)),
        "plans": [{"program": one.program, "plan": str(one.plan), "file": str(one.file)} for one in found.plans],
    }
    print_result(as_json, result, lambda: _lines(result))


def _rows(found: Defaults) -> Iterator[dict[str, Any]]:
    """Those that count, each once."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for path, sections in found.sections:
        for command, option, value in _flat(sections, ()):
            last[command, option] = {"command": command, "option": option, "value": value, "file": str(path)}
    yield from last.values()


def _flat(section: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, name))
        else:
            words = list(map(_shown, value)) if isinstance(value, list) else _shown(value)
            yield " ".join(above), name, words


def _shown(value: Any) -> Any:
    """What TOML has and JSON has not, such as a day, as text."""
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _lines(result: dict[str, Any]) -> Iterator[str]:
    for one in result["files"]:
        yield f"{one['file']}: {'read' if one['read'] else 'not there'}"
    for one in result["options"]:
        yield f"ioweir {one['command']} --{one['option']}: {one['value']}    ({one['file']})"
    for one in result["plans"]:
        yield f"plan of {one['program']}: {one['plan']}    ({one['file']})"
