// toml++, set up for a library that is preloaded into programs: header-only, without exceptions of its own, and without three
// defects of its parser that malformed text reaches (found by plan_file_test.cpp; upstream: marzer/tomlplusplus, issues 190 and
// 295, pull request 301). Include it in source files only, never in a header: it takes seconds to compile.
// What does not live here: what readers have in common (base/toml_reader.hpp).
#pragma once

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0

// "[[[" fails an assertion in a debug build; with NDEBUG Clang is told that it cannot happen. The code behind it reports an error
// by itself, so neither is wanted.
#define TOML_ASSERT(condition) static_cast<void>(0)
#pragma push_macro("NDEBUG")
#undef NDEBUG

// "Is this letter white space" has undefined behaviour for some letters outside of ASCII. The answer is no. The first headers of
// toml++ are included one by one so that the macro has another meaning in the one that needs it.
#if __has_include(<toml++/impl/unicode.hpp>)
#include <toml++/impl/forward_declarations.hpp>
#else
#include <toml++/impl/forward_declarations.h>
#endif
#pragma push_macro("TOML_UNREACHABLE")
#undef TOML_UNREACHABLE
#define TOML_UNREACHABLE return false
#if __has_include(<toml++/impl/unicode.hpp>)
#include <toml++/impl/unicode.hpp>
#else
#include <toml++/impl/unicode.h>
#endif
#pragma pop_macro("TOML_UNREACHABLE")
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
