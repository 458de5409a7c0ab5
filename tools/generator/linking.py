"""The exported symbols -> what libioweir_trace.a is made from and linked with (src/linked).

A hook `X` is called `__wrap_X` there, and `ld --wrap=X` sends the program's calls to it; `__real_X` is what lies behind.
Names of the hooks come from the same list as the preload's exports.
"""

from __future__ import annotations

# Looking functions up by name stays what it is: a program with ioweir linked in has the hooks under their own names.
# And unloading matters to the hooks of HDF5, PnetCDF and netCDF only, which are not in the archive.
NOT_LINKED = {"dlsym", "dlclose"}
# Not every C library has these, nor every program the library: asking for them could stop the link.
NOT_EVERYWHERE = ("__isoc23_", "io_uring_", "__io_uring_", "_Fork", "MPI_Request_get_status_", "PMPI_Request_get_status_")
HEADER = "Generated from spec/functions.toml."
# src/preload/back_end_loader.hpp says what its number means.
NOTE = """
    .pushsection .note.ioweir, "a", %note
    .balign 4
    .long 7, 0, 0x102
    .asciz "ioweir"
    .balign 4
    .popsection
"""


def outputs(exported: list[str], slots: list[str]) -> dict[str, str]:
    """`exported`: the hooks of functions that every program has, and MPI's; `slots`: the MPI entries in the order of the jump table."""
    linked = [s for s in exported if s not in NOT_LINKED and not s.startswith(NOT_EVERYWHERE)]
    mpi = [s for s in linked if s.startswith(("MPI_", "PMPI_"))]
    others = [s for s in linked if s not in mpi]
    kinds = {"mpi": others + mpi, "posix": others}
    files: dict[str, str] = {"ioweir_generated/linked_rename.txt": "".join(f"{s} __wrap_{s}\n" for s in linked)}
    for kind, symbols in kinds.items():
        files |= {
            f"ioweir_generated/linked_{kind}_globals.txt": "".join(f"__wrap_{s}\n" for s in symbols) + "ioweir_linked\n",
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
