"""spec/functions*.toml -> one test per symbol of the C library: result, errno and event."""

from __future__ import annotations

from generator.spec import Spec


def outputs(spec: Spec) -> dict[str, str]:
    out = ["// Generated from spec/functions*.toml: every exported symbol of the C library, with the id of the event it must make.",
           "#pragma once", "", '#include "ioweir_generated/functions.hpp"', "",
           "struct SymbolCase {", "    const char* symbol;", "    const char* body;", "    const char* event;", "};", "",
           "inline constexpr SymbolCase symbol_cases[] = {"]
    for function in spec.libc:
        for symbol in function.symbols:
            out.append(f'    {{"{symbol.name}", "{function.body}", "{function.events[0].name}"}},')
    out += ["};", ""]
    return {"ioweir_generated/symbol_cases.hpp": "\n".join(out)}
