"""What `make install` puts under PREFIX/share: tools/shell_files.py [--no-modules] PREFIX.

Man pages and the completion of bash, zsh and fish, made from the command line itself; environment modules, and the
scripts of `ioweir-watch` and for each night (modules/), which name PREFIX: a wheel has none of them.
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any, Final

import typer
from click_man.man import ManPage
from ioweir.base.version import ioweir_version
from ioweir.cli.app import app
from ioweir.cli.start import COMPLETION
from typer.completion import get_completion_script  # type: ignore[attr-defined]

PROGRAM: Final = "ioweir"
COMPLETIONS: Final = {
    "bash": "share/bash-completion/completions/ioweir",
    "zsh": "share/zsh/site-functions/_ioweir",
    "fish": "share/fish/vendor_completions.d/ioweir.fish",
}

MODULES: Final = Path(__file__).parent / "modules"
PLACES: Final = {
    "ioweir": "share/modulefiles/ioweir",
    "ioweir-watch": "share/modulefiles/ioweir-watch",
    "ioweir-watch.lua": "share/modulefiles/ioweir-watch.lua",
    "watch.sh": "share/ioweir/watch.sh",
    "nightly.sh": "share/ioweir/nightly.sh",
}
EXECUTABLE: Final = {"nightly.sh"}
UNSAFE: Final = set('"\\$`[]{};\n')
"""What a shell, Tcl or Lua would take for more than a character of a name in quotes."""


def roff(text: str) -> str:
    """As running text of a man page: nothing in it is taken for a request, and \\b, click's mark, is none of it."""
    lines = text.replace("\b\n", "").replace("\\", r"\e").splitlines()
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in lines)


def first_sentence(text: str) -> str:
    """Of a help text, on one line."""
    words = " ".join(text.split())
    return words.split("; ")[0].split(". ")[0].rstrip(".")


def page_of(context: Any) -> str:
    """The man page of a command."""
    command = context.command
    text = "\n\n".join(inspect.cleandoc(part) for part in (command.help, command.epilog) if part)
    page = ManPage(context.command_path)
    page.version = f"{PROGRAM} {ioweir_version()}"
    page.short_help = roff(first_sentence(text))
    page.synopsis = " ".join(command.collect_usage_pieces(context))
    page.description = roff(text)
    records = [param.get_help_record(context) for param in command.get_params(context)]
    page.options = [(option, roff(words)) for option, words in filter(None, records)]
    page.commands = [(name, roff(first_sentence(child.help or ""))) for name, child in children(command).items()]
    return str(page)


def children(command: Any) -> dict[str, Any]:
    """The commands below one, by name; hidden ones left out."""
    below = getattr(command, "commands", {})
    return {name: child for name, child in below.items() if not child.hidden}


def write_pages(context: Any, directory: Path) -> None:
    """Of a command and of all below it."""
    name = context.command_path.replace(" ", "-")
    (directory / f"{name}.1").write_text(page_of(context), encoding="utf-8")
    for below, command in children(context.command).items():
        write_pages(type(context)(command, info_name=below, parent=context), directory)


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", type=Path, help="as of `make install`")
    parser.add_argument("--no-modules", action="store_true", help="man pages and completion alone")
    options = parser.parse_args()
    prefix = options.prefix
    pages = prefix / "share" / "man" / "man1"
    pages.mkdir(parents=True, exist_ok=True)
    group = typer.main.get_command(app)
    write_pages(group.context_class(group, info_name=PROGRAM), pages)
    for shell, place in COMPLETIONS.items():
        script = prefix / place
        script.parent.mkdir(parents=True, exist_ok=True)
        text = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION, shell=shell)
        script.write_text(text + "\n", encoding="utf-8")
    if not options.no_modules:
        write_modules(prefix.resolve())


def write_modules(prefix: Path) -> None:
    """With the name of the place in them; none where it has characters that cannot stand there."""
    if UNSAFE & set(str(prefix)):
        print(f"no environment modules are installed: {prefix} has one of {' '.join(sorted(UNSAFE - {chr(10)}))}")
        return
    for name, place in PLACES.items():
        file = prefix / place
        file.parent.mkdir(parents=True, exist_ok=True)
        text = (MODULES / name).read_text(encoding="utf-8")
        file.write_text(text.replace("@PREFIX@", str(prefix)), encoding="utf-8")
        if name in EXECUTABLE:
            file.chmod(0o755)


if __name__ == "__main__":
    main()
