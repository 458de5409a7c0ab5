// What files of a series are tried with, and by what a file is known to belong to one.
// Every alternative leaves the file one plain file, as the program named it.
// What does not live here: which of them is best (series.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/strategy.hpp"

namespace ioweir::engine {

/// What an alternative changes of a strategy; the first is the MPI library, and changes nothing.
struct Alternative {
    std::string name;  ///< as a plan has it: "everyone", "aggregators:2"
    planner::Writers writers = {};
    planner::Domains domains = planner::Domains::even;
};

/// For files that so many ranks open together.
[[nodiscard]] std::vector<Alternative> alternatives_for(int ranks);

/// The path of a file whatever it is called: links, "." and ".." are followed. Of a file that is not there its directory's; of a directory that
/// is not there the path as it is.
[[nodiscard]] std::string without_links(const std::string& path);

/// A path with each run of digits as one '#': "run_03/ckpt_0120.dat" is "run_#/ckpt_#.dat".
[[nodiscard]] std::string folded(std::string_view path);

/// Of a series, in the knowledge of earlier runs: 16 hexadecimal digits. `file_system`: its number, as statfs() has it.
[[nodiscard]] std::string digest_of(std::string_view folded_path, int access_mode, int ranks, std::int64_t file_system);

/// Lines of a plan's `known`: "0123456789abcdef everyone 0.61", an alternative's time as a share of the library's. Shares by alternative; 0: not
/// known. Lines that are not such, or of other series, are passed over.
[[nodiscard]] std::vector<double> known_shares(const std::vector<std::string>& known, std::string_view digest,
                                               const std::vector<Alternative>& alternatives);

}  // namespace ioweir::engine
