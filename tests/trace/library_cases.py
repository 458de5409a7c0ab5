"""A library that stands in for HDF5, PnetCDF and netCDF, and a program that calls every function of it: both as C text
made from spec/libraries.toml, with the types that the real headers have.

The library's functions remember what they were given. The program gives each argument a value of its own and looks
whether it arrived, whether the result came back, and whether errno is what the library left there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from generator import spec  # noqa: E402

if TYPE_CHECKING:
    from generator.libraries import LibraryFunction

_TYPES: Final = """
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int64_t hid_t;
typedef int herr_t, htri_t;
typedef uint64_t hsize_t, haddr_t;
typedef long long MPI_Offset;
typedef HANDLE any_handle;
typedef any_handle MPI_Comm, MPI_Info, MPI_Datatype;
struct echo { int number, count; uint64_t given[12]; };
"""

# What ioweir asks a library before it passes a call on. The stand-in knows of no object.
_QUERIES: Final = """
int H5Iget_type(hid_t id) { (void)id; return -1; }
int ncmpi_inq_path(int id, int* length, char* path) { (void)id; (void)length; (void)path; return -33; }
int ncmpi_inq_varndims(int id, int v, int* n) { (void)id; (void)v; (void)n; return -33; }
int ncmpi_inq_vartype(int id, int v, int* n) { (void)id; (void)v; (void)n; return -33; }
int nc_inq_path(int id, size_t* length, char* path) { (void)id; (void)length; (void)path; return -33; }
int nc_inq_varndims(int id, int v, int* n) { (void)id; (void)v; (void)n; return -33; }
int nc_inq_vartype(int id, int v, int* n) { (void)id; (void)v; (void)n; return -33; }
int H5get_libversion(unsigned* a, unsigned* b, unsigned* c) { *a = 1; *b = 10; *c = 0; return 0; }
const char* ncmpi_inq_libvers(void) { return "stand-in"; }
const char* nc_inq_libvers(void) { return "stand-in"; }
"""


def functions() -> tuple[LibraryFunction, ...]:
    """Every function of spec/libraries.toml that is recorded."""
    return tuple(function for function in spec.load(ROOT / "spec").libraries if function.body != "plain")


def _prototype(function: LibraryFunction) -> str:
    inside = ", ".join(f"{p.type} p{i}" for i, p in enumerate(function.parameters)) or "void"
    return f"{function.returns} {function.symbol}({inside})"


def _as_word(type_name: str, value: str) -> str:
    if type_name in {"MPI_Comm", "MPI_Info", "MPI_Datatype"}:
        return f"handle_word({value})"
    if type_name.endswith("*"):
        return f"(uint64_t)(uintptr_t){value}"
    return f"(uint64_t){value}"


_HANDLE_WORD: Final = "static uint64_t handle_word(HANDLE h) { return (uint64_t)(intptr_t)h; }\n"


def library_text() -> str:
    """The stand-in."""
    out = [
        _TYPES,
        "struct echo last;",
        "int fails;",
        '#pragma GCC diagnostic ignored "-Wunused-parameter"',
        _HANDLE_WORD,
    ]
    out.append(_QUERIES)
    for number, function in enumerate(functions()):
        out.append(
            f"{_prototype(function)} {{\n    last.number = {number};\n    last.count = {len(function.parameters)};"
        )
        out += [f"    last.given[{i}] = {_as_word(p.type, f'p{i}')};" for i, p in enumerate(function.parameters)]
        result = f"fails ? {_failure(number)} : {_success(function, number)}"
        out.append(f"    errno = {number % 100 + 1};\n    return {result};\n}}")
    return "\n".join(out)


def _failure(number: int) -> int:
    return -1 - number


def _success(function: LibraryFunction, number: int) -> str:
    if function.returns == "hid_t":
        return f"((hid_t)1 << 40) + {number}"
    return str(number) if function.api == "hdf5" else "0"


def _value(type_name: str, place: int, number: int) -> str:
    """An argument that no other place of the call has. In careful calls pointers lead to zeros, and numbers are low."""
    if type_name.endswith("*"):
        return f"({type_name})pointer({place})"
    if type_name in {"MPI_Comm", "MPI_Info", "MPI_Datatype"}:
        return f"handle({place})"
    if type_name in {"int", "unsigned", "uint32_t"}:
        return f"(careful ? {place + 1} : ({type_name})0x{0x81234000 + 16 * place + number % 16:x}u)"
    return f"(careful ? {place + 1} : ({type_name})0x{0x8123456789AB0000 + 16 * place + number % 16:x}u)"


def program_text() -> str:
    """The program. Its arguments: careful (1) or wild (0) values, and whether the library's functions fail."""
    out = [_TYPES, _HANDLE_WORD, "extern struct echo last;", "extern int fails;", "static int careful, wrong;",
           "static char zeros[1 << 16] __attribute__((aligned(64)));",
           "static uint64_t pointer(int place) { return careful ? (uint64_t)(uintptr_t)(zeros + 4096 * (place + 1))",
           "    : UINT64_C(0x8123456789ab1000) + (uint64_t)place; }",
           "static HANDLE handle(int place) { return (HANDLE)(intptr_t)pointer(place); }",
           "static void wants(const char* name, const char* what, uint64_t got, uint64_t expected) {",
           "    if (got == expected) return;",
           '    printf("%s: %s is %llx, not %llx\\n", name, what, (unsigned long long)got,',
           "        (unsigned long long)expected);",
           "    wrong = 1;\n}"]  # fmt: skip
    out += [f"{_prototype(function)};" for function in functions()]
    out.append("int main(int argc, char** argv) {\n    if (argc != 3) return 2;\n    careful = atoi(argv[1]);")
    out.append("    fails = atoi(argv[2]);")
    for number, function in enumerate(functions()):
        given = [_value(p.type, i, number) for i, p in enumerate(function.parameters)]
        name = f'"{function.symbol}"'
        out.append("    {\n        last.number = -1;\n        errno = 0;")
        out.append(
            f"        {function.returns} result = {function.symbol}({', '.join(given)});\n        int error = errno;"
        )
        out.append(f'        wants({name}, "function", (uint64_t)last.number, {number});')
        out.append(f'        wants({name}, "errno", (uint64_t)error, {number % 100 + 1});')
        expected = f"(fails ? {_failure(number)} : {_success(function, number)})"
        out.append(f'        wants({name}, "result", (uint64_t)result, (uint64_t)({function.returns}){expected});')
        for i, (parameter, value) in enumerate(zip(function.parameters, given, strict=True)):
            out.append(
                f'        wants({name}, "argument {i}", last.given[{i}], {_as_word(parameter.type, f"({value})")});'
            )
        out.append("    }")
    out.append("    return wrong;\n}\n")
    return "\n".join(out)
