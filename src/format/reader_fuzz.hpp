// What the fuzz target of traces shares with tests of damaged ones: inputs are sparse files (see fuzz_image.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/plausible.hpp"

namespace ioweir::format {

/// When the whole traces begin, nanoseconds since 1970.
inline constexpr std::int64_t seed_epoch_ns = 1'700'000'000'000'000'000;

/// The trace file that an input stands for, and the shortest input for a file.
std::vector<std::uint8_t> unpack(const std::uint8_t* data, std::size_t size);
std::vector<std::uint8_t> pack(const std::vector<std::uint8_t>& bytes);

/// What an input stands for, in memory until the next one; the address sanitizer sees what is read behind its end.
struct PackedTrace {
    std::span<const std::byte> bytes;
    RunSpan span;
};
PackedTrace image_of(const std::uint8_t* data, std::size_t size);
/// The same of a file's bytes.
std::span<const std::byte> image_of(const std::vector<std::uint8_t>& bytes);

/// Reads a trace file and aborts when the reader breaks a promise.
void read_everything(const std::vector<std::uint8_t>& bytes);
/// The same of the file that an input stands for.
void read_packed(const std::uint8_t* data, std::size_t size);

/// Whole traces of various kinds, made without a program.
std::vector<std::vector<std::uint8_t>> whole_traces();

}  // namespace ioweir::format
