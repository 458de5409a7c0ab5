// A fuzz target: a function that reads whatever bytes it is given and aborts where a reader breaks a promise. It runs under libFuzzer (`make
// fuzz`), and in `make test` over its seeds, over what was found (tests/corpus/NAME) and over changes of both that are the same in every run
// (fuzz_replay_test.cpp). ioweir_fuzz_target() in cmake/IoweirFuzz.cmake makes both programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ioweir {

/// Inputs that fuzzing begins with: each target defines it. Whole things, of each kind that its reader knows.
[[nodiscard]] std::vector<std::string> fuzz_seeds();

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "broken promise of a reader: %s\n", what);
    std::abort();
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
