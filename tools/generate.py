#!/usr/bin/env python3
"""Generates code from spec/*.toml into a directory.

Uses the standard library only (tomli on Python 3.10), but for --docs.

generate.py --out DIR     writes every file (only those whose text changed, so that builds stay incremental)
generate.py --list        prints the names, relative to DIR
generate.py --docs DIR    writes the reference pages, or their generated parts, and generated Python modules
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from generator import functions, hints, layers, plan_key_pages, plan_keys, records, tests
from generator.spec import load


def main() -> int:
    """Writes or lists what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    spec = load(root / "spec")
    outputs: dict[str, str] = {}
    for generator in (functions, records, tests, hints, plan_keys, layers):
        outputs |= generator.outputs(spec)
    if arguments.list:
        print("\n".join(sorted(outputs)))
    if arguments.out:
        write_all(arguments.out, outputs)
    if arguments.docs:
        made = {**functions.pages(spec), **records.pages(spec), **hints.pages(spec)}
        made |= plan_key_pages.pages(spec, root / "docs" / "reference" / "plan-file.md")
        write_all(root / "python", layers.modules(spec))  # before it is imported
        write_all(root / "python", help_of_all(root))
        write_all(arguments.docs, {**made, **findings_page(root)})
    return 0


def help_of_all(root: Path) -> dict[str, str]:
    """What `ioweir --help` prints, kept ready beside the console script, which loads nothing for it; needs typer."""
    sys.path.insert(0, str(root / "python"))
    from ioweir.cli.app import help_page  # noqa: PLC0415
    from ioweir.cli.start import HELP  # noqa: PLC0415

    return {f"ioweir/cli/{HELP}": help_page()}


def findings_page(root: Path) -> dict[str, str]:
    """The page of findings, made by the package that finds them; needs numpy, as .venv has."""
    sys.path.insert(0, str(root / "python"))
    from ioweir.findings import page  # noqa: PLC0415

    return {page.PAGE: page.page()}


def write_all(directory: Path, outputs: dict[str, str]) -> None:
    """Writes the files whose text changed, and leaves the others' times alone: Ninja (restat) then rebuilds little."""
    for name, text in outputs.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    raise SystemExit(main())
