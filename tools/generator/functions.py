"""spec/functions*.toml -> event ids, MPI jump table, back end wrappers, export list, reference page."""

from __future__ import annotations

from generator import libc, libraries, linking
from generator.names import HEADER, enumerator
from generator.spec import MpiFunction, Parameter, RequestFunction, Spec

# Exported beside the hooks of the table, and written by hand in src/preload: the MPI start functions and dlsym; what
# moves a FILE without being an event (tracer/hooks/stdio_hooks.cpp); what leaves calls without returning (jump_hooks.cpp).
BUFFER_SYMBOLS = ["__overflow", "__uflow"]
# What makes processes that share open files (spawn_hooks.cpp); system calls by number (tracer/hooks/syscall_hooks.cpp).
SPAWN_SYMBOLS = ["_Fork", "clone", "popen", "posix_spawn", "posix_spawnp", "system", "vfork"]
SYSCALL_SYMBOLS = ["syscall"]
# What changes a file's ACL (src/preload/access_hooks.cpp): not in programs that ioweir is linked into.
ACCESS_SYMBOLS = ["fremovexattr", "fsetxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr"]
# Beside those of the table (tracer/hooks/uring_hooks.cpp).
URING_SYMBOLS = ["io_uring_peek_batch_cqe", "io_uring_queue_exit"]
JUMP_SYMBOLS = ["longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"]
START_SYMBOLS = ["MPI_Init", "PMPI_Init", "MPI_Init_thread", "PMPI_Init_thread", "MPI_Session_init",
                 "PMPI_Session_init", "dlsym", "dlclose"]


def outputs(spec: Spec) -> dict[str, str]:
    library_symbols = [f.symbol for f in spec.libraries]
    by_hand = START_SYMBOLS + BUFFER_SYMBOLS + JUMP_SYMBOLS + SPAWN_SYMBOLS + SYSCALL_SYMBOLS + URING_SYMBOLS
    linked = sorted([s.name for f in spec.libc for s in f.symbols] + spec.mpi_symbols() + by_hand)
    exported = sorted(linked + library_symbols + ACCESS_SYMBOLS)
    return libc.outputs(spec) | libraries.outputs(spec.libraries) | linking.outputs(
        linked, spec.mpi_symbols(), [(f.symbol, f.api) for f in spec.libraries if f.body != "plain"]
    ) | {
        "ioweir_generated/functions.hpp": function_ids(spec),
        "ioweir_generated/mpi_file_calls.hpp": mpi_file_calls(spec),
        "ioweir_generated/mpi_wrappers.inc": mpi_wrappers(spec),
        "ioweir_generated/mpi_request_calls.hpp": mpi_request_calls(spec),
        "ioweir_generated/mpi_request_wrappers.inc": mpi_request_wrappers(spec),
        "ioweir_generated/mpi_wait_wrappers.inc": mpi_wait_wrappers(spec),
        "ioweir_generated/mpi_slots.hpp": mpi_slots(spec),
        "ioweir_generated/trampolines.S": trampolines(spec),
        "ioweir_generated/preload.map": "{\n  global:\n" + "".join(f"    {s};\n" for s in exported) + "  local: *;\n};\n",
        "ioweir_generated/exported_symbols.txt": "\n".join(exported) + "\n",
    }


def function_ids(spec: Spec) -> str:
    positions = {f.event.id: "given" if f.position == "explicit" else f.position or "none" for f in spec.mpi}
    out = [HEADER + "#pragma once", "", "#include <cstdint>", "", "namespace ioweir::format {", "",
           "/// Event ids.", "enum class Function : std::uint16_t {", "    none = 0,"]
    out += [f"    {enumerator(e.name)} = {e.id}," for e in spec.events]
    out += ["};", "", f"inline constexpr std::uint16_t function_count = {len(spec.events) + 1};", "",
            "/// Where in the file, or in its view, an MPI-IO call moves data: at the offset that it is given, at its handle's own",
            "/// pointer, or at the one that all ranks share.",
            "enum class Position : std::uint8_t { none, given, individual, shared };", "",
            "/// What a report needs to know of a function.", "struct FunctionInfo {", "    const char* name;",
            "    const char* layer;", "    const char* op;", "    bool collective;",
            "    bool begins;     ///< asynchronous: what it begins goes on behind its return",
            "    bool completes;  ///< ends an operation that another call began: time, but neither a call nor bytes",
            "    bool late;       ///< all that is known is that the operation had ended by then",
            "    Position position;",
            "    const char* symbols;  ///< exported symbols, separated by spaces", "};",
            "inline constexpr FunctionInfo functions[function_count] = {", '    {"", "", "", false, false, false, false, Position::none, ""},']
    out += [f'    {{"{e.name}", "{e.layer}", "{e.op}", {str(e.collective).lower()}, {str(e.begins).lower()}, {str(e.completes).lower()}, {str(e.late).lower()}, Position::{positions.get(e.id, "none")}, "{" ".join(e.symbols)}"}},'
            for e in spec.events]
    out += ["};", "", "}  // namespace ioweir::format", ""]
    return "\n".join(out)


# ------------------------------------------------------------------------------------------------------------ MPI
def declarations(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(p.declaration for p in parameters)


def names(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(p.name for p in parameters)


def mpi_file_calls(spec: Spec) -> str:
    out = [HEADER + "// The hooked MPI-IO functions as a table: what a layer calls is what lies below it.", "#pragma once", "",
           '#include "mpi/mpi.hpp"', "", "namespace ioweir::mpi {", "", "struct FileCalls {"]
    for function in spec.mpi:
        for short, parameters in function.forms():
            out.append(f"    int (*{short})({declarations(parameters)}) = nullptr;")
    out += ["};", "", "/// For each member, in order: name and where it lies (find: name -> address, null when there is none).",
            "template <typename Find>", "void fill(FileCalls& calls, const char* prefix, Find&& find) {"]
    for function in spec.mpi:
        for short, _ in function.forms():
            out.append(f'    calls.{short} = reinterpret_cast<decltype(calls.{short})>(find(prefix, "{short}"));')
    out += ["}", "", "}  // namespace ioweir::mpi", ""]
    return "\n".join(out)


def mpi_wrappers(spec: Spec) -> str:
    out = [HEADER, "// Included once, by tracer/hooks/mpi_hooks.cpp: two entries a function, differing in what lies below them."]
    for function in spec.mpi:
        for short, parameters in function.forms():
            for prefix in ("MPI", "PMPI"):
                out.append(mpi_wrapper(function, short, parameters, prefix))
    out.append("\n/// A slot whose real function does not exist is left alone: it goes on returning an error.")
    out.append("static void fill_slots(void** slots) {")
    for function in spec.mpi:
        for short, _ in function.forms():
            for prefix in ("MPI", "PMPI"):
                out.append(f"    if (below_{prefix.lower()}.{short} != nullptr)\n        slots[static_cast<int>(preload::Slot::"
                           f"{prefix}_{short})] = reinterpret_cast<void*>(&traced_{prefix}_{short});")
    out.append("}\n")
    return "\n".join(out)


def mpi_wrapper(function: MpiFunction, short: str, parameters: tuple[Parameter, ...], prefix: str) -> str:
    arguments = names(parameters)
    body, described = mpi_body(function)
    status = any(p.name == "status" for p in parameters)
    call_arguments = arguments.replace("status", "status_used") if status else arguments
    lambda_parameters = "MPI_Status* status_used" if status else ""
    call = f"[&]({lambda_parameters}) {{ return next_{prefix.lower()}.{short}({call_arguments}); }}, {described.format(next=f'next_{prefix.lower()}')}"
    name = f"{prefix}_{short}"
    # Data moves have a second form, for the plain call: mpi_hooks.cpp.
    plain = (
        f"\nstatic int traced_{name}({declarations(parameters)}) {{\n"
        f"    ThreadStream& stream = *tracer->thread();\n"
        f"    if (!is_plain_call(stream)) [[unlikely]] return traced_{name}_inside({arguments});\n"
        f"    return {body}(Function::{function.name}, {{stream, nullptr, true}},\n        {call});\n}}"
    )
    return (
        f"\n{'[[gnu::noinline]] ' if body == 'traced_transfer' else ''}"
        f"static int traced_{name}{'_inside' if body == 'traced_transfer' else ''}({declarations(parameters)}) {{\n"
        f"    const Around around = enclosing_call();\n"
        f"    if (is_inside(around.outer, Layer::mpi_io)) return library_calls.{short}({arguments});\n"
        f"    return {body}(Function::{function.name}, around,\n        {call});\n}}"
    ) + (f"\n{plain}" if body == "traced_transfer" else "")


def mpi_body(function: MpiFunction) -> tuple[str, str]:
    """Which body of mpi_hooks.cpp records a function, and what it is told."""
    given = {p.name for p in function.parameters}
    offset = "offset" if function.position == "explicit" else "-1"
    if function.event.op == "open":
        return "traced_open", "{next}.File_get_position, comm, filename, amode, fh"
    if function.event.op == "close":
        return "traced_close", "fh"
    if function.name == "MPI_File_delete":
        return "traced_delete", "filename"
    if "request" in given:
        return "traced_start", f"fh, {offset}, count, datatype, request"
    if function.event.op == "split":
        return "traced_begin", f"fh, {offset}, count, datatype"
    if function.name.endswith("_end"):
        return "traced_end", "fh, status"
    if function.name == "MPI_File_set_view":
        return "traced_set_view", "fh, disp, etype, filetype, datarep"
    if function.name == "MPI_File_seek":
        return "traced_seek", "{next}.File_get_position, fh, offset, whence"
    if "status" in given:
        return "traced_transfer", f"fh, {offset}, count, datatype, status"
    values = [p.name for p in function.parameters if p.type == "MPI_Offset"]
    return "traced_other", f"fh, {values[0] if values else '-1'}"


def mpi_request_calls(spec: Spec) -> str:
    out = [HEADER + "// The functions that may complete non-blocking MPI-IO, as a table.", "#pragma once", "",
           '#include "mpi/mpi.hpp"', "", "namespace ioweir::mpi {", "", "struct RequestCalls {"]
    out += [f"    int (*{f.short})({declarations(f.parameters)}) = nullptr;" for f in spec.requests]
    out += ["};", "", "/// As that of FileCalls.", "template <typename Find>",
            "void fill(RequestCalls& calls, const char* prefix, Find&& find) {"]
    out += [f'    calls.{f.short} = reinterpret_cast<decltype(calls.{f.short})>(find(prefix, "{f.short}"));'
            for f in spec.requests]
    out += ["}", "", "}  // namespace ioweir::mpi", ""]
    return "\n".join(out)


def mpi_request_wrappers(spec: Spec) -> str:
    out = [HEADER, "// Included once, by tracer/hooks/request_hooks.cpp: two entries a function, differing in what lies below them."]
    out += [mpi_request_wrapper(f, prefix) for f in spec.requests for prefix in ("MPI", "PMPI")]
    out.append("\n/// A slot whose real function does not exist is left alone: it goes on returning an error.")
    out.append("static void fill_request_slots(void** slots) {")
    for function in spec.requests:
        for prefix in ("MPI", "PMPI"):
            out.append(f"    if (next_{prefix.lower()}.{function.short} != nullptr)\n        slots[static_cast<int>(preload::Slot::"
                       f"{prefix}_{function.short})] = reinterpret_cast<void*>(&traced_{prefix}_{function.short});")
    out.append("}\n")
    return "\n".join(out)


def mpi_request_wrapper(function: RequestFunction, prefix: str) -> str:
    arguments = names(function.parameters)
    by_type = {p.type: p.name for p in function.parameters}
    if "MPI_Request" in by_type:
        body, described = "traced_question", f"{by_type['MPI_Request']}, flag"
    elif "const MPI_Request*" in by_type:
        answers = {p.name for p in function.parameters}
        answer = ("listed(indices, done, at)" if "done" in answers else
                  "*flag != 0 && *index == at" if "index" in answers else "*flag != 0")
        asked = "int at" if " at" in answer else "int"
        body, described = "traced_questions", f"requests, count, [&]({asked}) {{ return {answer}; }}"
    else:
        counts = [p.name for p in function.parameters if p.type == "int"]
        body, described = "traced_requests", f"{by_type['MPI_Request*']}, {counts[0] if counts else '1'}"
    kinds = ", ".join(f"Function::{enumerator(e.name)}" for e in (function.writing, function.reading))
    plain = f"next_{prefix.lower()}.{function.short}({arguments})"
    if function.waits:
        plain = f"waited(Function::{enumerator(function.name)}, [&] {{ return {plain}; }})"
    return (
        f"\nstatic int traced_{prefix}_{function.short}({declarations(function.parameters)}) {{\n"
        f"    if (!pending.any()) [[likely]]\n        return {plain};\n"
        f"    if (inside_mpi_io()) return library_calls.{function.short}({arguments});\n"
        f"    return {body}({{{kinds}}}, __builtin_frame_address(0),\n"
        f"        [&] {{ return next_{prefix.lower()}.{function.short}({arguments}); }}, {described});\n}}"
    )


def mpi_wait_wrappers(spec: Spec) -> str:
    """The hooks of calls that may wait: what a call came in is passed on, whatever it means."""
    forms = [(f, form, prefix) for f in spec.waits for form in f.forms for prefix in ("MPI", "PMPI")]
    out = [HEADER, "// Included once, by tracer/hooks/wait_hooks.cpp.", "",
           f"static void* behind[{len(forms)}];  // by hook: the next tool's function, or the MPI library's"]
    for at, (function, form, prefix) in enumerate(forms):
        declared = ", ".join(f"Word a{i}" for i in range(function.arguments))
        given = ", ".join(f"a{i}" for i in range(function.arguments))
        types = ", ".join(["Word"] * function.arguments)
        out.append(f"\nstatic int traced_{prefix}_{form}({declared}) {{\n"
                   f"    return waited(Function::{enumerator(function.name)},\n"
                   f"                  [&] {{ return reinterpret_cast<int (*)({types})>(behind[{at}])({given}); }});\n}}")
    out += ["", "static const WaitHook wait_hooks[] = {"]
    out += [f'    {{"{prefix}_{form}", preload::Slot::{prefix}_{form}, reinterpret_cast<void*>(&traced_{prefix}_{form})}},'
            for _, form, prefix in forms]
    out += ["};", ""]
    return "\n".join(out)


def mpi_slots(spec: Spec) -> str:
    symbols = spec.mpi_symbols()
    out = [HEADER + "// The jump table of the MPI entries: every exported MPI symbol jumps through one slot.", "#pragma once", "",
           "namespace ioweir::preload {", "", "enum class Slot : int {"]
    out += [f"    {s}," for s in symbols]
    out += ["};", f"inline constexpr int slot_count = {len(symbols)};",
            "inline constexpr const char* slot_names[slot_count] = {"]
    out += [f'    "{s}",' for s in symbols]
    out += ["};", "", "/// A large-count form, the form with int counts, and the position of `count` among the parameters; -1: it has none.",
            "struct LargeCount {", "    Slot large;", "    Slot plain;", "    int count_position;", "};",
            "inline constexpr LargeCount large_counts[] = {"]
    for function in spec.mpi:
        if function.large_count:
            given = [p.name for p in function.parameters]
            position = given.index("count") if "count" in given else -1
            out += [f"    {{Slot::{prefix}{function.short}_c, Slot::{prefix}{function.short}, {position}}},"
                    for prefix in ("MPI_", "PMPI_")]
    out += ["};", "", "}  // namespace ioweir::preload", ""]
    return "\n".join(out)


def trampolines(spec: Spec) -> str:
    symbols = spec.mpi_symbols()
    out = ["/* Generated from spec/functions*.toml. Each exported MPI symbol jumps through its slot. A slot first leads to",
           "   ioweir_resolve_slot, which finds the real function, with every argument register kept. */", "",
           '#include "preload/trampoline_macros.h"']
    for section, table in ((".data", "ioweir_slots"), ('.section .data.rel.ro,"aw"', "ioweir_lazy_entries")):
        out += ["", f"    {section}", "    .balign 8", f"    .globl {table}", f"    .hidden {table}", f"{table}:"]
        out += [f"    .quad ioweir_lazy_{i}" for i in range(len(symbols))]
    out += ["", "    .text"]
    for index, symbol in enumerate(symbols):
        out += [f"IOWEIR_TRAMPOLINE({symbol}, {index})", f"IOWEIR_LAZY(ioweir_lazy_{index}, {index})"]
    out += ["", '    .section .note.GNU-stack,"",%progbits', ""]
    return "\n".join(out)


def pages(spec: Spec) -> dict[str, str]:
    out = ["# Intercepted functions", "", "Generated from spec/functions*.toml.", "",
           "`begins`: what it began goes on behind its return, until a call that completes it: all of that is its time. `completes`: ends an",
           "operation that another call began; its time counts, but neither calls nor bytes. `late`: all that is known is that the operation had",
           "ended by then. Calls of the layer MPI make events when they take longer than 10 us, outside of MPI-IO calls.", "",
           "| id | event | layer | counted as | collective | begins, completes | symbols |", "|---|---|---|---|---|---|---|"]
    for e in spec.events:
        out.append(f"| {e.id} | {e.name} | {e.layer} | {e.op} | {'yes' if e.collective else ''} | {'late' if e.late else 'completes' if e.completes else 'begins' if e.begins else ''} | {', '.join(e.symbols)} |")
    out += ["", "MPI starts are seen through MPI_Init, MPI_Init_thread and MPI_Session_init (and their PMPI forms);",
            "Fortran programs arrive at these C entries through the bindings of Open MPI and MPICH.", "",
            f"{', '.join(BUFFER_SYMBOLS)} are what the inline forms of getc_unlocked and putc_unlocked call: seen, without an event.", "",
            f"{', '.join(SPAWN_SYMBOLS)} and fork are seen, because offsets of read and write are not known once another",
            "process has the same open files. syscall makes the event of the function whose number it is given.", "",
            f"{', '.join(ACCESS_SYMBOLS)} are seen, without an event, for files whose bytes lie in several.", ""]
    return {"functions.md": "\n".join(out)}
