// Subfiles' bytes on their way before somebody waits for them. Written ones, which are flushed by the descriptors that are opened here, would
// stay in the page cache until sync or close otherwise, and targets would stand idle while requests are cut and sent; those of several
// subfiles that one rank reads would come from one target after the other.
// What does not live here: that bytes are on storage (the library's sync says so), reading and writing them (tasks.cpp).
#pragma once

#include <span>

#include "adapters/pnetcdf/file.hpp"
#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {

/// Opens the subfiles for begin_read() and flushes, on the first rank of the group on each node. For what cannot be opened they do nothing. Collective
/// over the group.
void open_early(File& file);
void close_early(File& file);

/// What tasks are about to read starts from storage, where this rank keeps several subfiles. Records are left to the kernel's read-ahead. `tasks`: as
/// by_subfile() sorts them.
void begin_read(const File& file, std::span<Task* const> tasks);

}  // namespace ioweir::pnetcdf
