"""Defaults of options and plans, written down by a site and by a user: `defaults.toml` (docs/reference/defaults.md).

Lives here: where the files are, who may have written them, and what they say. Whether there are such commands and
options is the command line's matter (cli/defaults.py).
"""

from __future__ import annotations

import fnmatch
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder
from ioweir.errors import EXIT_USAGE, IoweirError

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = "defaults.toml"
SITE_VARIABLE: Final = "IOWEIR_SITE_DEFAULTS"
_SITE: Final = Path("/etc/ioweir") / FILE
_PLANS: Final = "plans"
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class PlanOf:
    """The plan of programs whose names match."""

    program: str
    plan: Path
    file: Path


@dataclass
class Defaults:
    """What the files say, in the order in which they were read: a later one counts more."""

    sections: list[tuple[Path, dict[str, Any]]] = field(default_factory=list)
    plans: list[PlanOf] = field(default_factory=list)

    def plan_of(self, program: str) -> PlanOf | None:
        """The user's before the site's, and of one file the first that matches."""
        files = [path for path, _ in self.sections]
        for file in reversed(files):
            for one in self.plans:
                if one.file == file and fnmatch.fnmatchcase(program, one.program):
                    return one
        return None


def places(environment: Mapping[str, str]) -> list[Path]:
    """Where the files may be: the site's first."""
    configuration = environment.get("XDG_CONFIG_HOME") or ""
    home = environment.get("HOME") or ""
    user = Path(configuration) if configuration else Path(home) / ".config" if home else None
    site = Path(environment[SITE_VARIABLE]) if environment.get(SITE_VARIABLE) else _SITE
    return [site, *([user / "ioweir" / FILE] if user is not None else [])]


def load(environment: Mapping[str, str]) -> Defaults:
    """What the files say; a file that is not there says nothing. IoweirError names what is wrong, and where."""
    found = Defaults()
    for path in places(environment):
        content = _read(path)
        if content is None:
            continue
        found.plans += _plans(content.pop(_PLANS, {}), path)
        for name, section in content.items():
            if not isinstance(section, dict):
                raise IoweirError(f"'{path}': '{name}' is no table: write [run] and below it {name} = ...", EXIT_USAGE)
        found.sections.append((path, content))
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        above = Folder.open(path.parent)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # of somebody else, whose HOME this process still has
    except OSError as error:
        raise IoweirError(f"'{path}' is not read: {error.strerror}", EXIT_USAGE) from error
    try:
        with above as folder:
            found = folder.status(path.name)
            # People keep such files elsewhere. A link in a folder that nobody else writes into is their own word.
            linked = found is not None and stat.S_ISLNK(found.st_mode) and not folder.why_not_own()
            text = "" if linked else folder.read_text(path.name, _MOST_BYTES, own=True)
        if linked:
            real = path.resolve(strict=True)
            with Folder.open(real.parent) as folder:
                text = folder.read_text(real.name, _MOST_BYTES, own=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise IoweirError(f"'{path}' is not read: it {error.strerror}", EXIT_USAGE) from error
    except ValueError:
        raise IoweirError(f"'{path}' is no text (UTF-8)", EXIT_USAGE) from None
    from ioweir.base import toml_text  # noqa: PLC0415 (mostly there is no such file)

    try:
        content: dict[str, Any] = toml_text.loads(text)
    except toml_text.TOMLDecodeError as error:
        raise IoweirError(f"'{path}': {error}", EXIT_USAGE) from error
    return content


def _plans(section: Any, file: Path) -> list[PlanOf]:
    if not isinstance(section, dict):
        raise IoweirError(f"'{file}': [{_PLANS}] is a table of programs and plan files", EXIT_USAGE)
    found = []
    for program, plan in section.items():
        path = _absolute(plan)
        if path is None:
            raise IoweirError(
                f"'{file}': [{_PLANS}] '{program}' is {plan!r}; it must be the absolute path of a plan file", EXIT_USAGE
            )
        found.append(PlanOf(program, path, file))
    return found


def _absolute(plan: Any) -> Path | None:
    """Also of `~/plan.toml`; None of a user's folder that nobody knows."""
    if not isinstance(plan, str):
        return None
    try:
        path = Path(plan).expanduser()
    except RuntimeError:
        return None
    return path if path.is_absolute() else None
