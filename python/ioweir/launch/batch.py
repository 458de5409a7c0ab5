"""`ioweir env`: what a batch script needs so that the ranks it starts are traced, and nothing else.

The script itself gets no preload: stand-ins for the launchers, first in its PATH, hand it to the ranks (shim.py). A
place where one rank is started by hand gets the preload itself (`--rank`).
"""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.locate import RUN_FILE
from ioweir.base.version import ioweir_version
from ioweir.errors import EXIT_USAGE, IoweirError
from ioweir.launch import choices, launchers, shim
from ioweir.launch.run import (
    SHIM_DIRECTORY,
    anonymous_names,
    copy_plan,
    make_directory,
    rank_variables,
    require_preload,
    write_json,
)
from ioweir.launch.tracing_options import nearest
from ioweir.plan.plan_check import check_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioweir.launch.tracing_options import Tracing

SHELLS: Final = ("sh", "csh")


@dataclass(frozen=True)
class BatchVariables:
    """The variables of a batch script, and those of a rank."""

    directory: Path
    script: dict[str, str]
    ranks: dict[str, str]
    launchers: tuple[str, ...]
    """The launchers that have a stand-in."""

    def described(self) -> dict[str, Any]:
        """For --json."""
        return {
            "directory": str(self.directory),
            "script": self.script,
            "ranks": self.ranks,
            "launchers": list(self.launchers),
        }


def prepare(
    output: Path,
    plan: Path | None,
    verify: bool,
    tracing: Tracing,
    environment: Mapping[str, str],
    *,
    auto: bool = False,
) -> BatchVariables:
    """Make the trace directory with the stand-ins, and say which variables lead there."""
    library = require_preload()
    if verify and plan is None and not auto:
        raise IoweirError("--verify checks what ioweir's engine wrote: add --plan PLAN.toml", EXIT_USAGE)
    if plan is not None and tracing.anonymise_key is not None:
        raise IoweirError(
            "--anonymise and --plan: a plan names files, and its copy has to stay in the trace directory until the job "
            "ends. Use `ioweir run`, which removes it, or leave one of them out",
            EXIT_USAGE,
        )
    plan_text = check_plan(plan, None) if plan is not None else None
    if auto:
        plan_text = choices.plan_text()
    directory = make_directory(output, "env", time.time(), tracing.group)
    plan_copy = copy_plan(plan_text, directory)
    names: dict[str, Any] = {"command": [], "cwd": str(Path.cwd()), "plan": str(plan) if plan else None}
    if tracing.anonymise_key is not None:
        names = anonymous_names(names)
    write_json(
        directory / RUN_FILE,
        {
            **names,
            "state": "environment",
            "verify": verify,
            "auto": auto,
            "tracing": tracing.described(),
            "ioweir_version": ioweir_version(),
            "started": time.time(),
        },
    )
    ranks = rank_variables(library, directory, plan_copy, verify, tracing, environment)
    if auto:
        ranks |= choices.variables(environment)
    script = {name: value for name, value in ranks.items() if name != launchers.PRELOAD}
    shims = directory / SHIM_DIRECTORY
    search = environment.get("PATH", os.defpath)
    stand_ins = shim.write_shims(shims, library, search)
    if stand_ins:
        script["PATH"] = f"{shims}{os.pathsep}{search}"
    return BatchVariables(directory, script, ranks, tuple(stand_ins))


def script(variables: Mapping[str, str], shell: str) -> str:
    """Lines that set `variables` in a shell; what is preloaded already stays, behind ours."""
    if shell not in SHELLS:
        raise IoweirError(
            f"--shell: '{shell}' is not known{nearest(shell, SHELLS)}. There are {', '.join(SHELLS)}; "
            "bash, zsh and ksh understand sh's",
            EXIT_USAGE,
        )
    lines: list[str] = []
    preload = launchers.PRELOAD
    for name, value in variables.items():
        if shell == "sh":
            kept = f"${{{name}:+:${name}}}" if name == preload else ""
            lines.append(f"export {name}={shlex.quote(value)}{kept};")
        else:
            # Within '...' csh still replaces !history; '\!' is the way to write one.
            quoted = value.replace("'", "'\\''").replace("!", "\\!")
            if name == preload:  # an empty entry at the end is none
                lines.append(f"if (! $?{name}) setenv {name} '';")
            kept = f':"${name}"' if name == preload else ""
            lines.append(f"setenv {name} '{quoted}'{kept};")
    return "\n".join(lines)
