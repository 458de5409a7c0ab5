// What later generations have written over: a job that has died leaves its generation unfinished, and bytes that it has written may be
// missing. They are missing no longer when every byte of the file was written by generations that came after it and were ended, or is one
// that these have cut off.
//
// How this is known: with groups and logs from the indexes of these generations. Subfiles have none: as long as a generation is unfinished,
// each process that writes keeps what it has written in memory, and leaves it in a file of the directory, written.G.R, which is like an
// index.
// What does not live here: which generations there are, and whether their jobs live (generations.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "container/files/directory.hpp"
#include "container/sharing/generations.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::container {

/// The first bytes of the logical file, which has `length` of them, that no ended generation from `first` on has written or cut off;
/// empty: there are none. An Error: what says so cannot be read.
[[nodiscard]] Result<layout::Extent> first_kept(const Directory& directory, const Generations& generations,
                                                std::uint32_t first, std::int64_t length);

/// Unfinished generations of which nothing is missing any more become `replaced`. Does nothing where that is not known.
void put_aside_replaced(const Directory& directory);

/// For a person: whether the job of an unfinished generation still writes, and what later ones have not written over.
[[nodiscard]] std::string unfinished_text(const Directory& directory, std::uint32_t generation, std::int64_t length);

/// The name of the file in which a process leaves what it has written to subfiles.
[[nodiscard]] std::string written_file(std::uint32_t generation, std::uint32_t rank);
/// Of the names in a container's directory.
[[nodiscard]] bool is_written_file(const std::string& name);

}  // namespace ioweir::container
