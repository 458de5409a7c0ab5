"""Stands in for a launcher inside of a traced script: hands the variables to the ranks and becomes the real launcher.

`ioweir run -- ./job.sh` puts a directory of these in front of PATH, so that a launcher called in the script is not
preloaded itself. Started by a few lines of shell that `write_shims` makes; imports little, for it delays every launch.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ioweir.base import plain_text
from ioweir.base.guarded_files import Folder
from ioweir.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, IoweirError
from ioweir.launch import clock, launchers, pnetcdf
from ioweir.launch.given_environment import given_environment
from ioweir.programs import sanitizers

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE_PREFIX: Final = "IOWEIR_"
PLAN_VARIABLE: Final = "IOWEIR_PLAN"

# Debian's sh drops variables whose names no shell can write, as those of functions that bash exports (`module`, `ml`):
# ranks that are scripts of bash would lack them. With -p bash hands them on, and reads no file of the user's.
_SHELLS: Final = (("/bin/bash", "/bin/bash -p"), ("/bin/sh", "/bin/sh"))

_SCRIPT = """#!{shell}
# Written by `ioweir run`: passes its variables to the ranks of the real {name}, and not to the launcher itself.
preload=$LD_PRELOAD
unset LD_PRELOAD
if [ -z "${{IOWEIR_GONE:-}}" ] && [ -x {python} ]; then exec {python} -I -c {code} {library} "$preload" "$0" "$@"; fi
# Somebody has removed ioweir, or is replacing it, while the job runs: the job goes on with the real launcher.
echo "ioweir: {name}: what it starts is not traced: ioweir is not complete any more in "{package} >&2
unset IOWEIR_GONE
preload=${{preload#{library}}}
preload=${{preload#:}}
if [ -n "$preload" ]; then export LD_PRELOAD="$preload"; fi
rest=
set -f
IFS=:
for folder in $PATH; do [ "$folder" = "${{0%/*}}" ] || rest=$rest:$folder; done
unset IFS
PATH=${{rest#:}}
exec {name} "$@"
"""
# Whatever keeps it from being loaded: the script decides anew, without it.
_CODE = """\
import os, sys
sys.path.insert(0, {package!r})
try:
    from ioweir.launch.shim import main
except Exception:
    os.environ["IOWEIR_GONE"] = "1"
    if sys.argv[2]:
        os.environ["LD_PRELOAD"] = sys.argv[2]
    os.execv(sys.argv[3], sys.argv[3:])
main(sys.argv[1:])
"""


def write_shims(directory: Path, library: Path, search_path: str) -> list[str]:
    """Make a shim for every launcher that `search_path` holds; returns their names."""
    names = [name for name in launchers.LAUNCHER_NAMES if shutil.which(name, path=search_path)]
    if not names:
        return names
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=0o700)
    shell = next((line for path, line in _SHELLS if Path(path).exists()), _SHELLS[-1][1])
    package = str(Path(__file__).resolve().parents[2])
    code = _CODE.format(package=package)
    with Folder.open(directory, own=True) as folder:
        for name in names:
            text = _SCRIPT.format(
                shell=shell,
                name=name,
                python=shlex.quote(sys.executable),
                code=shlex.quote(code),
                library=shlex.quote(str(library)),
                package=shlex.quote(package),
            )
            folder.write(name, text, 0o700)
    return names


def real_command(
    library: str, preload: str, shim: str, arguments: list[str], environment: Mapping[str, str]
) -> tuple[str, launchers.Rewritten, dict[str, str]]:
    """The launcher to become, its command, and the environment for it."""
    folder = os.path.realpath(Path(shim).parent)
    clean = dict(environment)
    entries = clean.get("PATH", os.defpath).split(os.pathsep)
    clean["PATH"] = os.pathsep.join(entry for entry in entries if os.path.realpath(entry) != folder)
    clean.pop(launchers.PRELOAD, None)
    theirs = launchers.without_preload(library, preload)
    if theirs:
        clean[launchers.PRELOAD] = theirs
    name = Path(shim).name
    real = shutil.which(name, path=clean["PATH"])
    if real is None:
        raise IoweirError(f"{name}: not found in PATH", EXIT_NOT_FOUND)
    variables = {launchers.PRELOAD: library}
    variables |= {key: value for key, value in clean.items() if key.startswith(VARIABLE_PREFIX)}
    if PLAN_VARIABLE in clean:
        variables |= pnetcdf.variables(clean)
    known = launchers.identify(real)
    words = [name, *arguments]
    needed, notes = sanitizers.variables_for(arguments, clean)
    variables |= needed
    if known is None:
        rewritten = launchers.inherit(words, variables, clean)
    else:
        rewritten = launchers.rewrite(known, words, variables, clean)
    rewritten = dataclasses.replace(rewritten, warnings=(*rewritten.warnings, *notes))
    return real, rewritten, clean | rewritten.environment


def main(arguments: list[str]) -> None:
    """Become the real launcher. `arguments`: our library, the preload list as it was, the shim, the launcher's own."""
    library, preload, shim, *rest = arguments
    plain_text.guard_standard_streams()
    try:
        variables = given_environment()
        if "IOWEIR_DIR" in variables and clock.VARIABLE not in variables:
            # A script with the variables of `ioweir env`: no `ioweir run` keeps the time.
            server = clock.start()
            if server is not None:
                variables[clock.VARIABLE] = server.variable()
                server.serve_beside_launcher()
        real, rewritten, environment = real_command(library, preload, shim, rest, variables)
        for warning in rewritten.warnings:
            plain_text.say(f"ioweir: {warning}")
        os.execve(real, rewritten.words, environment)
    except IoweirError as error:
        plain_text.say(f"ioweir: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        plain_text.say(f"ioweir: {Path(shim).name}: cannot be started: {error.strerror}")
        sys.exit(EXIT_NOT_EXECUTABLE)
