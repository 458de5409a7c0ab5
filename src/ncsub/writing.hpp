// Whether the files of a divided netCDF file are complete: marks on the disk that a job which dies leaves behind.
//
// - The master says it in an attribute (Writing, logical.hpp): begun before data are written, and on the disk by then; ended when all ranks
//   have closed all files.
// - Of a master without that attribute, which is opened for writing, a file beside it says so: that of the logical header (logical_path()),
//   which also is there while a new file is written. One that is left was left by a job that has died.
// - The first rank of the job has a lock (flock(2), shared) of the master, which ends with it however that ends.
// What does not live here: when that is done (adapters/pnetcdf), what is said of it (files.cpp).
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "ncsub/logical.hpp"

namespace ioweir::ncsub {

/// A descriptor with the lock, which ends when it is closed; -1: there is none.
[[nodiscard]] int hold_writing(const std::string& path);
/// Has a process of this node the lock? Where the file system has none, nobody has.
[[nodiscard]] bool is_written_now(const std::string& path);

/// The attribute of the master at a path says from now on that writing was ended. Nobody has it open.
[[nodiscard]] std::optional<Error> end_writing(const std::string& path);

/// A file beside the master that says so, on the disk. An errno value; EEXIST: somebody has left one.
[[nodiscard]] int make_mark(const std::string& path);
void remove_mark(const std::string& path);
/// Before a new file is made: takes away what a job that has died has left in that place. Why not, for a person, where something else lies
/// there (a link, a pipe, another's file); empty: nothing lies there any more.
[[nodiscard]] std::string clear_mark(const std::string& path);
/// Is it, or the logical header of a job, there?
[[nodiscard]] bool has_mark(const std::string& path);

/// What jobs that have died leave of such files, by a name that they have.
struct Leftover {
    std::string file;     ///< of the file that they belong to
    std::string problem;  ///< why it may not go; empty: it may
    bool in_use = false;
};
/// Nothing: it is none. A subfile whose master is there, and is its own, is none; neither is a link.
[[nodiscard]] std::optional<Leftover> leftover_at(const std::string& path);

/// Was writing begun and not ended?
[[nodiscard]] bool is_unfinished(const std::string& path, const Header& master);

/// The end of the last byte that a file of the set has by its header: of fixed variables and of its records.
[[nodiscard]] std::int64_t end_of_data(const Header& header);

}  // namespace ioweir::ncsub
