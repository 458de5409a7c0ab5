// Files of a divided netCDF file from outside, without MPI and without a netCDF library: reading headers, and putting the one file together.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/guarded_files.hpp"
#include "ncsub/logical.hpp"

namespace ioweir::ncsub {

/// The file at a path that the user has named, which may be a link (guarded::follow_path); a prefix for MPI-IO is left out.
[[nodiscard]] Result<guarded::File> open_named(const std::string& path, int flags = O_RDONLY);

/// A subfile, whose path a master says: a file that its folder's owner, the user or root has put there, or what such a link leads to.
[[nodiscard]] Result<guarded::File> open_subfile(const std::string& path, int flags = O_RDONLY);

/// Removes what lies where a file of ours is to be made, of a link the link. An errno value.
[[nodiscard]] int clear_name(const std::string& path);

/// The header of the file at a path; a prefix for MPI-IO ("ufs:") is left out.
[[nodiscard]] Result<Header> read_header(const std::string& path);

/// The same of a subfile (open_subfile()).
[[nodiscard]] Result<Header> read_subfile_header(const std::string& path);

/// That of a master, if it is one; with the names of Son et al.'s figure 9 (plain_names.hpp) as if it had the usual ones.
[[nodiscard]] Result<Header> read_master(const std::string& path);

/// "ufs:data.nc" names data.nc for MPI-IO.
[[nodiscard]] std::string without_prefix(const std::string& path);

/// The subfiles of the file at a path; none: it is no master, or not there.
[[nodiscard]] std::vector<std::string> subfiles_of(const std::string& path);

/// What was made on a storage target for the subfile at a path, which is a link to it, and belongs to whom the link belongs; empty: there is
/// none.
[[nodiscard]] std::string target_of_subfile(const std::string& path);

/// Removes a subfile; where it is a link to one in another directory, that, too, if its name ends in the link's.
void remove_subfile(const std::string& path);

/// Bytes that are the same in the one file.
struct Copy {
    std::int64_t subfile = -1;  ///< -1: of the master
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const Copy&, const Copy&) = default;
};

/// Records of the one file: the most that one of its files has. An array whose records are fewer in one of them has zeros there.
[[nodiscard]] std::int64_t records_of(const Header& master, std::span<const Header> subfiles);

/// What one file has of one variable: pieces of equal length, `pieces` of them in each of `records` records (1: it has none).
struct Copies {
    Copy first;                                                ///< its bytes are those of each
    std::int64_t pieces = 1, piece_from = 0, piece_to = 0;     ///< and the distances from one to the next
    std::int64_t records = 1, record_from = 0, record_to = 0;  ///< the same of records

    [[nodiscard]] std::int64_t count() const { return pieces * records; }
    /// From 0; later ones lie further back in both files.
    [[nodiscard]] Copy at(std::int64_t number) const {
        const std::int64_t record = number / pieces, piece = number % pieces;
        return {first.subfile, first.from + record * record_from + piece * piece_from,
                first.to + record * record_to + piece * piece_to, first.bytes};
    }
};

/// Where all data of the one file come from, variable by variable and file by file, as far as there are any; an end where `visit` says false.
/// `subfiles`: the header of each. All headers, the logical one too, are such that check_sizes() takes them and check_subfile() the subfiles'. Pure.
void for_each_part(const Logical& logical, const Header& master, std::span<const Header> subfiles,
                   FunctionRef<bool(const Copies&)> visit);
/// The same, piece by piece: there may be very many.
void for_each_copy(const Logical& logical, const Header& master, std::span<const Header> subfiles,
                   FunctionRef<bool(const Copy&)> visit);

/// A divided array, for people.
struct Array {
    std::string name;
    std::string dimension;                 ///< along which it is divided
    std::vector<std::int64_t> boundaries;  ///< see Division
};

/// What the files of a divided netCDF file hold, and what is wrong with them.
struct Description {
    std::string id;          ///< empty: PnetCDF has written it
    std::int64_t bytes = 0;  ///< of the one file
    std::int64_t records = 0;
    std::vector<Array> arrays;
    std::vector<std::string> part_paths;   ///< the master, then subfile by subfile
    std::vector<std::int64_t> part_bytes;  ///< their lengths; -1: it is not there
    std::vector<std::string> problems;
    std::vector<std::string> unfinished;  ///< of the problems, those of writing that was begun and not ended
};

/// An error: it is no master, or one that contradicts itself.
[[nodiscard]] Result<Description> describe(const std::string& path);

/// Writes the one file to `output`, which appears whole or not at all; holes stay holes. With the master's own path it takes the master's
/// place, and the subfiles are removed; not where writing was begun and not ended (writing.hpp), unless `unfinished` and no job is known to
/// write it. Another output that exists is refused. Returns its length in bytes. Nobody may be writing the file.
[[nodiscard]] Result<std::int64_t> merge(const std::string& path, const std::string& output, bool unfinished = false);

}  // namespace ioweir::ncsub
