// Paths without names: every component becomes a keyed hash of itself, so that the same path has the same name throughout a
// run and nothing can be read from it. A file's extension stays, since it says what kind of file it is.
//
// What the MPI runtime makes for itself keeps the beginning of its name, by which python/ioweir/trace/runtime_files.py
// tells it.
// What does not live here: the choice (IOWEIR_ANONYMISE, preload.cpp), run.json (python/ioweir/launch/run.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ioweir::tracer {

/// SipHash-2-4 (Aumasson and Bernstein 2012), under a key of 128 bits.
struct HashKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};
std::uint64_t keyed_hash(const HashKey& key, std::string_view text);

/// The key in 32 hexadecimal digits; false when they are none.
bool parse_key(std::string_view text, HashKey& key);

/// Writes the name for `path` into `out`, terminated; its length. Components that do not fit are left out.
std::size_t anonymise(const HashKey& key, std::string_view path, char* out, std::size_t capacity);

}  // namespace ioweir::tracer
