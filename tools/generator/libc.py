"""spec/functions*.toml -> the hooks of the C library's functions ([[posix]], [[stdio]]), one .inc file for each unit.

A hook passes the real call as `call` to a body of src/tracer/hooks. Variadic functions say what their `...` stands for:
mode (open), pointer (fcntl), list (the symbol's `forward` takes a va_list), six (syscall: six words).

In unit posix a hook makes the system call itself (raw_NAME) until the real function is known. Elsewhere the real function
is looked up at its first use: system calls cannot stand in for a FILE*.
"""

from __future__ import annotations

from generator.names import HEADER, enumerator
from generator.spec import LibcFunction, Spec, Symbol

SYSTEM_CALLS = "posix"


def outputs(spec: Spec) -> dict[str, str]:
    units = dict.fromkeys(function.unit for function in spec.libc)
    return {f"ioweir_generated/{unit}_hooks.inc": hooks(spec, unit) for unit in units}


def hooks(spec: Spec, unit: str) -> str:
    functions = [function for function in spec.libc if function.unit == unit]
    out = [HEADER, f"// Included once, by tracer/hooks/{unit}_hooks.cpp."]
    # Forms with a va_list that are not hooked themselves are needed all the same.
    hooked = {symbol.name for function in functions for symbol in function.symbols}
    others = {s.forward for f in functions for s in f.symbols if s.forward} - hooked
    if others:
        raise ValueError(f"spec: {unit}: {', '.join(sorted(others))} must be hooked too: variadic forms go through it")
    for function in functions:
        out += [pointer(function, symbol) for symbol in function.symbols if not symbol.forward]
    for function in functions:
        for symbol in function.symbols:
            out.append(hook(function, symbol))
    if unit == SYSTEM_CALLS:
        out.append("\nstatic const RealFunction real_functions[] = {")
        for function in functions:
            for symbol in function.symbols:
                out.append(f'    {{"{symbol.name}", reinterpret_cast<void**>(&real_{symbol.name})}},')
        out.append("};\n")
    return "\n".join(out)


def pointer(function: LibcFunction, symbol: Symbol) -> str:
    initial = f"raw_{symbol.name}" if function.unit == SYSTEM_CALLS else "nullptr"
    return f"static {function.returns} (*real_{symbol.name})({symbol.declarations}) = {initial};"


def hook(function: LibcFunction, symbol: Symbol) -> str:
    # Under a name of its own: the C library's headers give some of these other names in the object file (scanf).
    signature = f"{function.returns} hook_{symbol.name}({symbol.declarations})"
    lines = [f'\nextern "C" IOWEIR_EXPORT {signature} __asm__("{symbol.name}");', f"{signature} {{"]
    behind = symbol.forward or symbol.name
    if function.unit != SYSTEM_CALLS:
        lines += [f'    if (!find_real(real_{behind}, "{behind}")) [[unlikely]]',
                  f"        return{' ' + function.missing if function.missing else ''};"]
    fixed = [p.name for p in symbol.parameters if p.type != "..."]
    arguments = list(fixed)
    told = list(fixed)
    if symbol.variadic:
        start = [f"    va_list list;\n    va_start(list, {fixed[-1]});"]
        end = ["    va_end(list);"]
        match function.variadic:
            case "mode":
                lines += ["    mode_t mode = 0;", "    if (open_needs_mode(flags)) {", *start,
                          "        mode = va_arg(list, mode_t);", *end, "    }"]
                arguments.append("mode")
            case "pointer":
                lines += [*start, "    void* argument = va_arg(list, void*);", *end]
                arguments.append("argument")
                told.append("argument")
            case "six":
                lines += [*start, "    long words[6];", "    for (long& word : words) word = va_arg(list, long);", *end]
                arguments += [f"words[{i}]" for i in range(6)]
                told.append("words")
            case "list":
                lines += start
                arguments.append("list")
                told.append("list")
            case other:
                raise ValueError(f"spec: {function.name}: variadic is {other!r}; give mode, pointer, six or list")
    # A function with several kinds of event leaves the choice to its body.
    event = [f"Function::{enumerator(function.events[0].name)}"] if len(function.events) == 1 else []
    call = f"[&] {{ return real_{behind}({', '.join(arguments)}); }}"
    made = f"traced_{symbol.body or function.body}({', '.join([*event, call, *told])});"
    if symbol.variadic and function.variadic == "list":
        lines += [f"    const auto result = {made}", "    va_end(list);", "    return result;", "}"]
    else:
        lines += [f"    {'' if function.returns == 'void' else 'return '}{made}", "}"]
    return "\n".join(lines)
