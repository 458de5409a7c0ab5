"""The exported symbols -> what libioweir_trace.a is made from and linked with (src/linked).

A hook `X` is called `__wrap_X` there, and `ld --wrap=X` sends the program's calls to it; `__real_X` is what lies behind.
Names of the hooks come from the same list as the preload's exports.

HDF5, PnetCDF and netCDF need not be linked with, so that nothing may refer to their functions unless the program does: each
of their `__wrap_X` is an archive member of its own, which the program's call of X brings in (library_members()).
"""

from __future__ import annotations

# Looking functions up by name stays what it is: a program with ioweir linked in has the hooks under their own names.
# And unloading matters to the hooks of HDF5, PnetCDF and netCDF only, which here know one library of each.
NOT_LINKED = {"dlsym", "dlclose"}
# Not every C library has these, nor every program the library: asking for them could stop the link.
NOT_EVERYWHERE = ("__isoc23_", "io_uring_", "__io_uring_", "_Fork", "MPI_Request_get_status_", "PMPI_Request_get_status_")
HEADER = "Generated from spec/functions.toml."
# src/preload/back_end_loader.hpp says what the numbers mean.
NOTE = """
    .pushsection .note.ioweir, "a", %note
    .balign 4
    .long 7, 0, 0x102
    .asciz "ioweir"
    .balign 4
    .popsection
"""
LIBRARY_NOTES = {"hdf5": 0x104, "pnetcdf": 0x105, "netcdf": 0x106}


# What the hooks ask a library (src/tracer/hooks/library.hpp, IOWEIR_LIBRARY_QUERIES), and last a function that only versions
# have whose calls are understood; "?": an older version need not have it.
QUERIES = {
    "hdf5": ["H5Iget_type", "H5Fget_name", "H5Tget_size", "H5Sget_select_npoints", "H5Sget_simple_extent_npoints",
             "H5Sclose", "H5Dget_space", "?H5Dget_chunk_storage_size", "?H5ESget_count", "?H5Dflush"],
    "pnetcdf": ["ncmpi_inq_varndims", "ncmpi_inq_vardimid", "ncmpi_inq_dimlen", "ncmpi_inq_vartype", "?ncmpi_inq_path",
                "ncmpi_inq_libvers"],
    "netcdf": ["nc_inq_varndims", "nc_inq_vardimid", "nc_inq_dimlen", "nc_inq_vartype", "nc_inq_type", "?nc_inq_path",
               "nc_inq_libvers"],
}  # fmt: skip


def outputs(exported: list[str], slots: list[str], libraries: list[tuple[str, str]]) -> dict[str, str]:
    """`exported`: the hooks of functions that every program has, and MPI's; `slots`: the MPI entries in the order of the jump
    table; `libraries`: the functions of HDF5, PnetCDF and netCDF with the name of the library, in the order of their table."""
    linked = [s for s in exported if s not in NOT_LINKED and not s.startswith(NOT_EVERYWHERE)]
    mpi = [s for s in linked if s.startswith(("MPI_", "PMPI_"))]
    others = [s for s in linked if s not in mpi]
    kinds = {"mpi": others + mpi, "posix": others}
    rename = [f"{s} __wrap_{s}\n" for s in linked] + [f"{s} ioweir_hook_{s}\n" for s, _ in libraries]
    files: dict[str, str] = {
        "ioweir_generated/linked_rename.txt": "".join(rename),
        "ioweir_generated/linked_libraries.txt": library_members(libraries),
        "ioweir_generated/linked_libraries_wrap.txt": "".join(f"--wrap={s}\n" for s, _ in libraries),
        "ioweir_generated/linked_libraries.hpp": library_count(len(libraries)),
    }
    for kind, symbols in kinds.items():
        files |= {
            f"ioweir_generated/linked_{kind}_globals.txt": "".join(f"__wrap_{s}\n" for s in symbols)
            + "".join(f"ioweir_hook_{s}\n" for s, _ in libraries) + "ioweir_linked\n",
            f"ioweir_generated/linked_{kind}_wrap.txt": wrap_options(symbols),
            f"ioweir_generated/linked_{kind}_reals.inc": reals(symbols, slots if kind == "mpi" else []),
            f"ioweir_generated/linked_{kind}_interpose.S": interpose(symbols),
        }
    return files


def wrap_options(symbols: list[str]) -> str:
    """A response file of ld. `--undefined` brings the real function in from an archive, though it is only referred to
    weakly: a function that a library does not have must not stop the link."""
    return "".join(f"--wrap={s}\n--undefined={s}\n" for s in symbols) + "--undefined=ioweir_linked\n"


def reals(symbols: list[str], slots: list[str]) -> str:
    out = [f"// {HEADER} What lies behind each hook; null where the program's libraries have no such function."]
    declared = sorted({*symbols, *slots})
    out += [f'extern "C" void __real_{s}() __attribute__((weak));' for s in declared]
    out += ["", "namespace {", "const RealFunction real_functions[] = {"]
    out += [f'    {{"{s}", &__real_{s}}},' for s in declared]
    out += ["};", "}  // namespace", ""]
    return "\n".join(out)


def interpose(symbols: list[str]) -> str:
    """Definitions under the functions' own names, for the shared libraries of a program: jumps to the hooks."""
    out = [f"/* {HEADER} For programs with shared libraries: their calls arrive at the hooks as well. */", "",
           "#if defined(__x86_64__)",
           ".macro IOWEIR_ENTRY name", "    .globl \\name", "    .type \\name, @function", "    .balign 16", "\\name:",
           "    endbr64", "    jmp __wrap_\\name", "    .size \\name, . - \\name", ".endm",
           "#elif defined(__aarch64__)",
           ".macro IOWEIR_ENTRY name", "    .globl \\name", "    .type \\name, %function", "    .balign 16", "\\name:",
           "    bti c", "    b __wrap_\\name", "    .size \\name, . - \\name", ".endm",
           "#endif", "", "    .text"]
    out += [f"    IOWEIR_ENTRY {s}" for s in symbols]
    out += ["", "    .data", "    .globl ioweir_interposing", "    .hidden ioweir_interposing", "ioweir_interposing:", "    .byte 1",
            NOTE, '    .section .note.GNU-stack,"",%progbits', ""]
    return "\n".join(out)


def library_count(count: int) -> str:
    return (f"// {HEADER.replace('functions', 'libraries')}\n#pragma once\n\nnamespace ioweir::preload {{\n\n"
            f"/// Rows of tracer::library::functions.\ninline constexpr int library_function_count = {count};\n"
            "/// What each library is asked, in the order of its member; last what tells whether its calls are understood.\n"
            "inline constexpr const char* library_questions[] = {\n" + "".join(
                f'    "{name.removeprefix("?")}",\n' for names in QUERIES.values() for name in names
            ) + "};\n\n"
            "}  // namespace ioweir::preload\n")


def library_members(libraries: list[tuple[str, str]]) -> str:
    """Sources of archive members for src/linked/make_members.sh: "=== NAME", then what the assembler is given.

    A member of a function defines __wrap_X as a jump to its hook, and an entry {row, real function, questions} of the section
    that src/linked/library_symbols.cpp goes through. The member of a library's questions comes with the first of them.
    """
    out: list[str] = []
    for api, names in QUERIES.items():
        out += [f"=== ioweir_queries_{api}", "    .data", "    .balign 8", f"    .globl ioweir_queries_{api}",
                f"    .hidden ioweir_queries_{api}", f"ioweir_queries_{api}:"]
        for name in names:
            out += [f"    .weak {name[1:]}"] if name.startswith("?") else []
            out.append(f"    .quad {name.removeprefix('?')}")
        out += NOTE.replace("0x102", hex(LIBRARY_NOTES[api])).strip("\n").splitlines()
        out.append('    .section .note.GNU-stack,"",%progbits')
    for row, (symbol, api) in enumerate(libraries):
        out += [f"=== wrap_{symbol}", "    .text", f"    .globl __wrap_{symbol}", f"    .type __wrap_{symbol}, %function",
                "    .balign 16", f"__wrap_{symbol}:", f"    IOWEIR_JUMP ioweir_hook_{symbol}",
                f"    .size __wrap_{symbol}, . - __wrap_{symbol}",
                '    .section ioweir_reals,"aw",%progbits', "    .balign 8", f"    .quad {row}", f"    .quad __real_{symbol}",
                f"    .quad ioweir_queries_{api}", '    .section .note.GNU-stack,"",%progbits']
    return "\n".join([*out, ""])
