"""spec/libraries.toml -> what the hooks of these libraries know of each function.

Lives here: the expansion of families of functions, and the table and wrappers made from it. Not here: what is recorded
(src/tracer/hooks/library_*.cpp), the libraries' own headers, which nothing of ours includes.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from generator.names import enumerator
from generator.spec import Event, Parameter, parse_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generator.spec import Names

HEADER = "// Generated from spec/libraries.toml.\n"
# What the asynchronous form of a function of HDF5 has before its arguments; behind them there is an event set.
BEFORE = parse_parameters("const char* app_file, const char* app_func, unsigned app_line")
# Functions that are hooked and not recorded (body "plain") are of no use to programs that ioweir is linked with.
PRELOAD_ONLY = "#if !defined(IOWEIR_LINKED)"
APIS = ("hdf5", "pnetcdf", "netcdf")  # tables, called as the layers' words are
# Which argument plays a part, by the parameter's name. The field of LibraryFunction that takes its place.
ROLES = {
    "path": ("filename", "path"), "made": ("ncidp",), "location": ("target_loc_id",), "variable": ("varid", "varids"),
    "start": ("start", "index", "starts"), "counts": ("count", "counts"), "stride": ("stride", "strides"),
    "number": ("num",), "buffer_count": ("bufcount", "bufcounts"), "buffer_type": ("buftype", "buftypes"),
    "request": ("request",),
}  # fmt: skip


@dataclass(frozen=True)
class LibraryFunction:
    """One exported symbol of a library."""

    symbol: str
    api: str
    body: str
    returns: str
    parameters: tuple[Parameter, ...]
    shape: str
    element_bytes: int
    events: tuple[Event, ...]  # none, one, or for completions that of writing and that of reading

    @property
    def asynchronous(self) -> bool:
        """It has arguments before (the program's source line) and behind (an event set) those of another function."""
        return self.parameters[: len(BEFORE)] == BEFORE

    def role(self, name: str) -> int:
        """The place of the argument that plays a part, not counting BEFORE; -1: there is none."""
        own = self.parameters[len(BEFORE) if self.asynchronous else 0 :]
        places = [i for i, parameter in enumerate(own) if parameter.name in ROLES[name]]
        return places[0] if places else -1


@dataclass(frozen=True)
class _Form:
    """A function of the table with everything but its id."""

    symbol: str
    event: str
    prototype: str
    op: str
    shape: str
    element_bytes: int


def load(
    functions: dict[str, Any], names: Names, next_id: int, next_appended: int
) -> tuple[list[LibraryFunction], list[Event]]:
    """The functions of all libraries, and their events: from `next_id`, of appended groups from `next_appended` on."""
    result, events = _load(functions, names, next_id, appended=False)
    others, other_events = _load(functions, names, next_appended, appended=True)
    result += others
    result.sort(key=lambda function: function.body == "plain")  # behind those that programs are linked with
    seen: set[str] = set()
    for function in result:
        if function.symbol in seen:
            raise ValueError(f"spec/libraries.toml: symbol {function.symbol!r} is declared twice")
        seen.add(function.symbol)
    return result, events + other_events


def first_free(functions: dict[str, Any], names: Names, next_id: int) -> int:
    """The id behind those of the groups that are not appended."""
    return next_id + len(_load(functions, names, next_id, appended=False)[1])


def _load(functions: dict[str, Any], names: Names, next_id: int, *, appended: bool) -> tuple[list[LibraryFunction], list[Event]]:
    result: list[LibraryFunction] = []
    events: list[Event] = []
    for api in APIS:
        layer = names.layer(api)
        for group in (g for g in functions.get(api, []) if bool(g.get("appended", False)) == appended):
            collective = bool(group.get("collective", False))
            forms = [form for prototype in group["functions"] for form in _expand(api, group, prototype, functions)]
            by_event: dict[str, list[_Form]] = {}
            for form in forms:
                by_event.setdefault(form.event, []).append(form)
            for name, members in by_event.items():
                symbols = tuple(form.symbol for form in members)
                made = [
                    Event(next_id + i, title, layer, op, collective or name.endswith("_all"), symbols, completes)
                    for i, (title, op, completes) in enumerate(_kinds(name, members[0].op))
                ]
                next_id += len(made)
                events += made
                result += [_function(api, group["body"], form, tuple(made)) for form in members]
    return result, events


def _kinds(name: str, op: str) -> list[tuple[str, str, bool]]:
    """Names and ops of the events of a function, and whether they complete what another call began."""
    if op == "none":
        return []
    if op == "completion":
        return [(f"{name} ({kind})", kind, True) for kind in ("write", "read")]
    return [(name, op, False)]


def _expand(api: str, group: dict[str, Any], prototype: str, functions: dict[str, Any]) -> Iterator[_Form]:
    """All functions that a prototype with names in braces stands for."""
    names = list(group.get("expand", {}))
    for values in itertools.product(*(group["expand"][name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        shape = chosen.get("shape", "none")
        text = prototype.replace("{shape}{type}", f"{shape}{{type}}").replace("{shape}(", f"{shape}(")
        text = text.replace("{shape}", functions["library_shapes"].get(shape, ""))
        text = text.replace("{shapes}", functions["library_shapes_of_several"].get(shape, ""))
        for name, value in chosen.items():
            text = text.replace(f"{{{name}}}", value)
        text = text.replace(", ,", ",")
        op = group["op"] if isinstance(group["op"], str) else group["op"][chosen["verb"]]
        if "{type}" not in text:
            symbol = _name(text)
            yield _Form(symbol, symbol, text, op, shape, 0)
            continue
        event = _name(text.replace("{type}", ""))
        for type_name, element_bytes in functions[f"{api}_types"].items():
            if type_name not in group.get("without", []):
                typed = text.replace("{type}", f"_{type_name}")
                yield _Form(_name(typed), event, typed, op, shape, element_bytes)
        if "flexible" in group:
            untyped = text.replace("{type}", "")
            if group["flexible"]:
                untyped = re.sub(r"(\bbufs?)\b", rf"\1, {group['flexible']}", untyped)
            yield _Form(event, event, untyped, op, shape, 0)


def _name(prototype: str) -> str:
    match = re.fullmatch(r"(\w+)\s+([\w{}]+)\((.*)\)", prototype)
    if match is None:
        raise ValueError(f"spec/libraries.toml: cannot read {prototype!r}; write 'type name(type name, ...)'")
    return match[2]


def _function(api: str, body: str, form: _Form, events: tuple[Event, ...]) -> LibraryFunction:
    returns, _, rest = form.prototype.partition(" ")
    inner = rest[rest.index("(") + 1 : -1].strip()
    parameters = parse_parameters(inner) if inner else ()
    return LibraryFunction(form.symbol, api, body, returns, parameters, form.shape, form.element_bytes, events)


def outputs(functions: tuple[LibraryFunction, ...]) -> dict[str, str]:
    """The generated files."""
    return {
        "ioweir_generated/library_functions.inc": table(functions),
        "ioweir_generated/library_hooks.inc": hooks(functions),
    }


def table(functions: tuple[LibraryFunction, ...]) -> str:
    """The rows of tracer/hooks/library.hpp's table."""
    out = [HEADER, "// The rows of library_functions: included once, by tracer/hooks/library_hooks.cpp."]
    for function in functions:
        if function.body == "plain" and PRELOAD_ONLY not in out:
            out.append(PRELOAD_ONLY)
        ids = [f"format::Function::{enumerator(event.name)}" for event in function.events] or ["format::Function::none"]
        fields = [f'"{function.symbol}"', ids[0], ids[-1], f"Api::{function.api}", f"Body::{function.body}"]
        returns = "integer" if function.returns == "int" else function.returns
        fields += [f"Returns::{returns}", f"Shape::{function.shape}"]
        fields += [str(len(function.parameters)), str(function.asynchronous).lower(), str(function.element_bytes)]
        fields += [str(function.role(name)) for name in ROLES]
        out.append(f"    {{{', '.join(fields)}}},")
    return "\n".join([*out, *_end(out)])


def hooks(functions: tuple[LibraryFunction, ...]) -> str:
    """The exported wrappers: every argument is passed on as the register or stack slot that it came in."""
    out = [HEADER, "// Included once, by tracer/hooks/library_hooks.cpp."]
    for number, function in enumerate(functions):
        if function.body == "plain" and PRELOAD_ONLY not in out:
            out.append(PRELOAD_ONLY)
        count = len(function.parameters)
        declared = ", ".join(f"Word a{i}" for i in range(count))
        given = ", ".join(f"a{i}" for i in range(count)) or "0"
        out.append(
            f'extern "C" IOWEIR_EXPORT Word {function.symbol}({declared}) {{\n    const Word given[] = {{{given}}};\n'
            f"    return library_call({number}, __builtin_return_address(0), given);\n}}"
        )
    return "\n".join([*out, *_end(out)])


def _end(out: list[str]) -> list[str]:
    return ["#endif", ""] if PRELOAD_ONLY in out else [""]
