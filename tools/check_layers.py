#!/usr/bin/env python3
"""Checks that every #include and every Python import stays within what tools/layers.toml allows.

Lives here: reading the table, finding includes and imports, judging them. Not here: the table itself, and link
dependencies (CMake's ioweir_module states those, and the linker enforces them).
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SOURCE_SUFFIXES = frozenset({".hpp", ".h", ".hh", ".cpp", ".cc", ".c", ".inc", ".def"})
# `#include "x"`, `#include <x>` and the same inside __has_include.
INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)')
MPI_HEADERS = frozenset({"mpi.h", "mpio.h", "mpi-ext.h"})
GENERATED_PREFIX = "ioweir_generated/"
PYTHON = PurePosixPath("python")
"""Where the names of Python's modules begin."""
NAMED_MODULES = frozenset({"import_module", "__import__", "find_spec"})
"""Functions whose first argument is a module's name."""


class TableError(Exception):
    """The table contradicts itself or the checkout."""


@dataclass(frozen=True)
class Module:
    """One module, or one package of Python's: where it lies, and which others it may include or import."""

    name: str
    path: PurePosixPath
    uses: frozenset[str]
    mpi: bool


@dataclass(frozen=True)
class Table:
    """All modules, the module that each generated header counts to, and all packages."""

    modules: dict[str, Module]
    generated: dict[str, str]
    packages: dict[str, Module]

    def module_of(self, path: PurePosixPath) -> Module | None:
        """The innermost module that holds `path` (relative to the checkout)."""
        return _innermost(self.modules, path)

    def package_of(self, path: PurePosixPath) -> Module | None:
        """The innermost package that holds `path` (relative to the checkout)."""
        return _innermost(self.packages, path)


def _innermost(modules: dict[str, Module], path: PurePosixPath) -> Module | None:
    holding = [module for module in modules.values() if path.is_relative_to(module.path)]
    return max(holding, key=lambda module: len(module.path.parts), default=None)


@dataclass(frozen=True)
class Offence:
    """One line that breaks a rule."""

    path: PurePosixPath
    line: int
    text: str
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}\n    {self.rule}"


def parse_table(document: dict[str, Any]) -> Table:
    """Builds the table, refusing unknown modules and cycles: a cycle would make two modules one."""
    modules = _parse_modules(document["modules"], "modules")
    generated = dict(document.get("generated", {}))
    for header, name in generated.items():
        if name not in modules:
            raise TableError(f"generated header '{header}' belongs to unknown module '{name}'")
    return Table(modules, generated, _parse_modules(document.get("packages", {}), "packages"))


def _parse_modules(entries: dict[str, Any], kind: str) -> dict[str, Module]:
    modules = {
        name: Module(name, PurePosixPath(entry["path"]), frozenset(entry["uses"]), bool(entry.get("mpi", False)))
        for name, entry in entries.items()
    }
    for module in modules.values():
        unknown = module.uses - modules.keys()
        if unknown:
            raise TableError(
                f"{kind.removesuffix('s')} '{module.name}' uses unknown {kind}: {', '.join(sorted(unknown))}"
            )
    _refuse_cycles(modules, kind)
    return modules


def load_table(path: Path) -> Table:
    """Reads the table from a file."""
    return parse_table(tomllib.loads(path.read_text(encoding="utf-8")))


def _refuse_cycles(modules: dict[str, Module], kind: str) -> None:
    finished: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            raise TableError(f"{kind} use each other in a circle: " + " -> ".join((*trail[trail.index(name) :], name)))
        if name in finished:
            return
        for used in sorted(modules[name].uses):
            visit(used, (*trail, name))
        finished.add(name)

    for name in modules:
        visit(name, ())


def includes(text: str) -> Iterator[tuple[int, str, str, bool]]:
    """Line number, line, included name and whether it was quoted, for every #include outside of comments."""
    in_comment = False
    for number, line in enumerate(text.splitlines(), start=1):
        code = line
        if in_comment:
            _, end, code = line.partition("*/")
            if not end:
                continue
            in_comment = False
        opened = code.rfind("/*")
        if opened >= 0 and "*/" not in code[opened:] and "//" not in code[:opened]:
            in_comment = True
            code = code[:opened]
        match = INCLUDE.match(code)
        if match:
            quoted = match.group("quoted")
            yield number, line.strip(), quoted or match.group("angled"), quoted is not None


def check_file(table: Table, root: Path, path: PurePosixPath) -> Iterator[Offence]:
    """The offences of one source file."""
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    if table.module_of(path) is None:
        yield Offence(path, 1, str(path), "lies in no module: name its module in tools/layers.toml")
        return
    for line, code, name, quoted in includes(text):
        rule = _judge(table, root, path, name, quoted)
        if rule:
            yield Offence(path, line, code, rule)


def _judge(table: Table, root: Path, path: PurePosixPath, name: str, quoted: bool) -> str | None:
    module = table.module_of(path)
    assert module is not None, "check_file looked"
    if name in MPI_HEADERS:
        return (
            None
            if module.mpi
            else f"module '{module.name}' must not include {name} (use \"mpi/mpi.hpp\" where allowed)"
        )
    if name.startswith(GENERATED_PREFIX):
        header = name.removeprefix(GENERATED_PREFIX)
        if header not in table.generated:
            return f"generated header '{header}' has no module: name it under [generated] in tools/layers.toml"
        return _judge_pair(module, table.modules[table.generated[header]])
    target = _resolve(root, path, name)
    if target is None:
        # Not in the checkout: the system's or a library's header. A quoted one must not be a misspelt module.
        first = PurePosixPath(name).parts[0]
        if quoted and any(other.path == PurePosixPath("src") / first for other in table.modules.values()):
            return f"\"{name}\" does not exist in module '{first}'"
        return None
    other = table.module_of(target)
    if other is None:
        return f"{target} lies in no module: name its module in tools/layers.toml"
    return _judge_pair(module, other)


def _judge_pair(module: Module, other: Module) -> str | None:
    if other.name == module.name or other.name in module.uses:
        return None
    allowed = ", ".join(sorted(module.uses)) or "no other module"
    return f"{module.name} -> {other.name} is not allowed: module '{module.name}' may include {allowed}"


def _resolve(root: Path, path: PurePosixPath, name: str) -> PurePosixPath | None:
    """The included file relative to the checkout, searched as the compiler does: beside the file, then src, include."""
    for base in (path.parent, PurePosixPath("src"), PurePosixPath("include"), PurePosixPath(".")):
        candidate = root / base / name
        if candidate.is_file():
            return PurePosixPath(candidate.resolve().relative_to(root.resolve()).as_posix())
    return None


def imports(text: str, path: PurePosixPath) -> Iterator[tuple[int, str, str]]:
    """Line number, module and imported name ("": the module itself) of every import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                folder = path.relative_to(PYTHON).parts[: -node.level]
                module = ".".join([*folder, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, module, alias.name
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in NAMED_MODULES and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value, ""


def check_module(table: Table, root: Path, path: PurePosixPath) -> Iterator[Offence]:
    """The offences of one Python file."""
    text = (root / path).read_text(encoding="utf-8")
    package = table.package_of(path)
    if package is None:
        yield Offence(path, 1, str(path), "lies in no package: name its package in tools/layers.toml")
        return
    lines = text.splitlines()
    for line, module, name in sorted(set(imports(text, path))):
        if not (root / PYTHON / module.partition(".")[0]).is_dir():
            continue  # the standard library's, or a library's
        rule = _judge_import(table, root, package, module, name)
        if rule:
            yield Offence(path, line, lines[line - 1].strip(), rule)


def _judge_import(table: Table, root: Path, package: Module, module: str, name: str) -> str | None:
    target = _module_file(table, root, module)
    if target is None:
        return f"there is no module {module}"
    # `from package import module` names a module where there is one, and else what the package itself has.
    target = (name and _module_file(table, root, f"{module}.{name}")) or target
    other = table.package_of(target)
    if other is None:
        return f"{target} lies in no package: name its package in tools/layers.toml"
    if other.name == package.name or other.name in package.uses:
        return None
    allowed = ", ".join(sorted(package.uses)) or "no other package"
    return f"{package.name} -> {other.name} is not allowed: package '{package.name}' may import {allowed}"


def _module_file(table: Table, root: Path, module: str) -> PurePosixPath | None:
    """The file of a module relative to the checkout. A compiled one has none: it is where the table says."""
    place = PYTHON.joinpath(*module.split("."))
    for candidate in (place / "__init__.py", place.with_suffix(".py")):
        if (root / candidate).is_file():
            return candidate
    return place if any(package.path == place for package in table.packages.values()) else None


def modules(table: Table, root: Path) -> Iterator[PurePosixPath]:
    """Every Python file below python/, if the table has packages."""
    if table.packages:
        for file in sorted((root / PYTHON).rglob("*.py")):
            yield PurePosixPath(file.relative_to(root).as_posix())


def sources(table: Table, root: Path) -> Iterator[PurePosixPath]:
    """Every C and C++ file below src/ (also where the table knows no module) and below the modules elsewhere."""
    tops = sorted({module.path.parts[0] for module in table.modules.values()} | {"src"})
    for top in tops:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SOURCE_SUFFIXES and file.is_file():
                yield PurePosixPath(file.relative_to(root).as_posix())


def main(arguments: list[str] | None = None) -> int:
    """Prints every offence; the exit code is 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=Path, default=root, help="the checkout")
    parser.add_argument(
        "--table", type=Path, default=None, help="the table (default: tools/layers.toml of the checkout)"
    )
    options = parser.parse_args(arguments)
    table_path: Path = options.table or options.root / "tools" / "layers.toml"
    try:
        table = load_table(table_path)
    except (TableError, KeyError, tomllib.TOMLDecodeError) as error:
        print(f"{table_path}: {error}", file=sys.stderr)
        return 2
    files = list(sources(table, options.root))
    python = list(modules(table, options.root))
    offences = [offence for path in files for offence in check_file(table, options.root, path)]
    offences += [offence for path in python for offence in check_module(table, options.root, path)]
    for offence in offences:
        print(offence, file=sys.stderr)
    places = (
        f"{len(files)} files in {len(table.modules)} modules, {len(python)} modules in {len(table.packages)} packages"
    )
    print(f"layers: {places}, {len(offences)} offences")
    return 1 if offences or not files or (table.packages and not python) else 0


if __name__ == "__main__":
    sys.exit(main())
