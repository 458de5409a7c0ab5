"""Reads spec/*.toml into plain values and checks what the generators rely on."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from generator.libraries import LibraryFunction

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str

    @property
    def declaration(self) -> str:
        return f"{self.type} {self.name}" if self.type != "..." else "..."


@dataclass(frozen=True)
class Symbol:
    name: str
    parameters: tuple[Parameter, ...]
    forward: str = ""  # a variadic function's form that takes a va_list
    body: str = ""  # where it is not the function's

    @property
    def declarations(self) -> str:
        return ", ".join(p.declaration for p in self.parameters)

    @property
    def names(self) -> str:
        return ", ".join(p.name for p in self.parameters if p.type != "...")

    @property
    def variadic(self) -> bool:
        return any(p.type == "..." for p in self.parameters)


@dataclass(frozen=True)
class Event:
    """What one kind of record stands for."""

    id: int
    name: str
    layer: str
    op: str
    collective: bool
    symbols: tuple[str, ...]
    completes: bool = False  # ends an operation that another call began: time, but neither a call nor bytes
    begins: bool = False  # asynchronous: what it begins goes on behind its return
    late: bool = False  # found ended: when is not known


@dataclass(frozen=True)
class LibcFunction:
    """A function of the C library ([[posix]], [[stdio]]) or of liburing."""

    name: str
    layer: str
    unit: str  # which source file has the hooks: src/tracer/hooks/UNIT_hooks.cpp
    body: str
    returns: str
    missing: str  # what a hook returns, with errno ENOSYS, when there is no real function
    variadic: str  # what the `...` of its symbols stands for: tools/generator/libc.py
    events: tuple[Event, ...]
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class MpiFunction:
    name: str  # MPI_File_write_at
    event: Event
    position: str
    large_count: bool
    parameters: tuple[Parameter, ...]

    @property
    def short(self) -> str:
        return self.name.removeprefix("MPI_")

    def forms(self) -> list[tuple[str, tuple[Parameter, ...]]]:
        """(short name, parameters) of the form with int counts and, where there is one, of that with MPI_Count."""
        result = [(self.short, self.parameters)]
        if self.large_count:
            types = {"count": "MPI_Count", "extent": "MPI_Count*"}
            large = tuple(Parameter(types.get(p.name, p.type), p.name) for p in self.parameters)
            result.append((self.short + "_c", large))
        return result


@dataclass(frozen=True)
class RequestFunction:
    """A call that may complete non-blocking MPI-IO: one event for writing and one for reading."""

    name: str  # MPI_Waitall
    writing: Event
    reading: Event
    parameters: tuple[Parameter, ...]
    waits: bool = False  # it may wait, for messages too: WaitFunction of the same name

    @property
    def short(self) -> str:
        return self.name.removeprefix("MPI_")


@dataclass(frozen=True)
class WaitFunction:
    """A call in which a rank may wait for others outside of I/O."""

    name: str  # MPI_Barrier
    event: Event
    arguments: int
    forms: tuple[str, ...]  # without MPI_: Bcast, Bcast_c; none of functions that RequestFunction hooks


@dataclass(frozen=True)
class Spec:
    libc: tuple[LibcFunction, ...]
    mpi: tuple[MpiFunction, ...]
    requests: tuple[RequestFunction, ...]
    waits: tuple[WaitFunction, ...] = ()
    layers: tuple[dict[str, Any], ...] = ()
    ops: tuple[dict[str, Any], ...] = ()
    records: dict[str, Any] = field(default_factory=dict)
    libraries: tuple[LibraryFunction, ...] = ()
    library_events: tuple[Event, ...] = ()
    hints: tuple[dict[str, str], ...] = ()
    plan_tables: tuple[dict[str, Any], ...] = ()

    @property
    def events(self) -> list[Event]:
        """All of them, in the order of their ids."""
        found = [e for f in self.libc for e in f.events] + [f.event for f in self.mpi] + [
            e for f in self.requests for e in (f.writing, f.reading)
        ] + list(self.library_events) + [f.event for f in self.waits]
        return sorted(found, key=lambda event: event.id)

    def mpi_symbols(self) -> list[str]:
        """Every exported MPI symbol, in slot order: MPI_X then PMPI_X of each form."""
        return [
            prefix + short
            for function in self.mpi
            for short, _ in function.forms()
            for prefix in ("MPI_", "PMPI_")
        ] + [prefix + function.short for function in self.requests for prefix in ("MPI_", "PMPI_")] + [
            prefix + form for function in self.waits for form in function.forms for prefix in ("MPI_", "PMPI_")
        ]


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    if text == "void":
        return ()
    for part in (p.strip() for p in text.split(",")):
        if part == "...":
            parameters.append(Parameter("...", "..."))
            continue
        match = re.fullmatch(r"(.+?[\s*])(\w+)", part)
        if match is None:
            raise ValueError(f"spec/functions*.toml: cannot read parameter {part!r}; write 'type name'")
        parameters.append(Parameter(match[1].strip(), match[2]))
    return tuple(parameters)


# Tables of the C library's functions, called as the layers' words are. Ids follow this order.
LIBC_TABLES = ("posix", "stdio")
# What a failed call of a type returns, where the table says nothing else.
MISSING = {"int": "-1", "long": "-1", "ssize_t": "-1", "off_t": "-1", "size_t": "0", "void": ""}


def libc_function(entry: dict[str, Any], table: str, layer: str, first_id: int) -> LibcFunction:
    symbols = tuple(
        Symbol(s["name"], parse_parameters(s["params"]), s.get("forward", ""), s.get("body", "")) for s in entry["symbols"]
    )
    kinds = entry.get("events") or [{"name": entry["name"], "op": entry["op"]}]
    events = tuple(
        Event(
            first_id + i, kind["name"], layer, kind["op"], False, tuple(s.name for s in symbols),
            bool(kind.get("completes", entry.get("completes", False))), bool(kind.get("begins", entry.get("begins", False))),
            bool(kind.get("late", False)),
        )
        for i, kind in enumerate(kinds)
    )  # fmt: skip
    returns = entry["returns"]
    return LibcFunction(
        entry["name"], layer, entry.get("unit", table), entry["body"], returns,
        entry.get("missing", MISSING.get(returns, "nullptr")), entry.get("variadic", "mode"), events, symbols,
    )  # fmt: skip


class Names:
    """spec/layers.toml."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.layers: tuple[dict[str, Any], ...] = tuple(table["layer"])
        self.ops: tuple[dict[str, Any], ...] = tuple(table["op"])

    def layer(self, word: str) -> str:
        return next(str(layer["name"]) for layer in self.layers if layer["word"] == word)

    @property
    def waiting(self) -> str:
        return next(str(layer["name"]) for layer in self.layers if layer.get("waiting", False))


def libc_functions(
    functions: dict[str, list[dict[str, Any]]], names: Names, appended: int, next_id: int
) -> list[LibcFunction]:
    """Those that were appended at that time (0: not at all), numbered from `next_id`."""
    found: list[LibcFunction] = []
    for table in LIBC_TABLES:
        for entry in (e for e in functions.get(table, []) if int(e.get("appended", 0)) == appended):
            found.append(libc_function(entry, table, names.layer(table), next_id))
            next_id += len(found[-1].events)
    return found


def behind(events: Iterable[Event], otherwise: int) -> int:
    """The number behind those of the events."""
    return max((event.id for event in events), default=otherwise - 1) + 1


def waiting_entries(functions: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Those of functions_mpi_wait.toml, behind what completes requests and may wait for messages."""
    completing = [{"name": e["name"], "hooked": True} for e in functions["mpi_request"] if e.get("waits", False)]
    return completing + functions["mpi_wait"]


def wait_function(entry: dict[str, Any], layer: str, number: int) -> WaitFunction:
    name = entry["name"]
    short = name.removeprefix("MPI_")
    forms = (short, short + "_c") if entry.get("large_count", False) else (short,)
    symbols = tuple(prefix + form for form in forms for prefix in ("MPI_", "PMPI_"))
    event = Event(number, name, layer, "wait", bool(entry.get("collective", False)), symbols)
    return WaitFunction(name, event, entry.get("arguments", 0), () if entry.get("hooked", False) else forms)


def load(directory: Path) -> Spec:
    functions: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(directory.glob("functions*.toml")):
        for table, entries in tomllib.loads(path.read_text()).items():
            functions.setdefault(table, []).extend(entries)
    records = tomllib.loads((directory / "records.toml").read_text())
    names = Names(tomllib.loads((directory / "layers.toml").read_text()))
    mpi_io = names.layer("mpiio")
    libc = libc_functions(functions, names, 0, 1)
    next_id = behind((event for function in libc for event in function.events), 1)
    mpi: list[MpiFunction] = []
    for entry in functions["mpi"]:
        large = bool(entry.get("large_count", False))
        forms = [entry["name"]] + ([entry["name"] + "_c"] if large else [])
        symbols = tuple(p + f.removeprefix("MPI_") for f in forms for p in ("MPI_", "PMPI_"))
        event = Event(next_id, entry["name"], mpi_io, entry["op"], entry["collective"], symbols)
        next_id += 1
        mpi.append(
            MpiFunction(
                entry["name"], event, entry.get("position", "none"), large, parse_parameters(entry["parameters"])
            )
        )
    requests: list[RequestFunction] = []
    for entry in functions["mpi_request"]:
        name = entry["name"]
        kinds = [
            Event(next_id + i, f"{name} ({op})", mpi_io, op, False, (name, "P" + name), True)
            for i, op in enumerate(("write", "read"))
        ]
        next_id += len(kinds)
        waits_too = bool(entry.get("waits", False))
        requests.append(RequestFunction(name, kinds[0], kinds[1], parse_parameters(entry["parameters"]), waits_too))
    from generator import libraries  # noqa: PLC0415 (it builds on this module)

    first_of_libraries = next_id
    library_table = tomllib.loads((directory / "libraries.toml").read_text())
    next_id = libraries.first_free(library_table, names, next_id)
    appended = libc_functions(functions, names, 1, next_id)
    next_id = behind((event for function in appended for event in function.events), next_id)
    library_functions, library_events = libraries.load(library_table, names, first_of_libraries, next_id)
    next_id = behind(library_events, next_id)
    waits = [wait_function(entry, names.waiting, next_id + at) for at, entry in enumerate(waiting_entries(functions))]
    libc += appended + libc_functions(functions, names, 2, behind((f.event for f in waits), next_id))
    seen: set[str] = set()
    for symbol in [s.name for f in libc for s in f.symbols]:
        if symbol in seen:
            raise ValueError(f"spec/functions*.toml: symbol {symbol!r} is declared twice")
        seen.add(symbol)
    hints = tomllib.loads((directory / "hints.toml").read_text())["hint"]
    plan_tables = [t for path in sorted(directory.glob("plan_keys*.toml")) for t in tomllib.loads(path.read_text())["table"]]
    plan_tables.sort(key=lambda table: str(table["name"]) == "rule")  # behind the tables that it refers to
    return Spec(
        tuple(libc), tuple(mpi), tuple(requests), tuple(waits), names.layers, names.ops, records, tuple(library_functions), tuple(library_events), tuple(hints),
        tuple(plan_tables),
    )  # fmt: skip
