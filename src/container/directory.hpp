// Directory: the files of a container and their names.
//
//   .ioweir-ID/about                        for a person, and for whoever looks for orphans: the stub's text and its name
//   .ioweir-ID/open.G, closed.G             generation G of writing is under way (or its job has died), or is complete
//   .ioweir-ID/whole                        the ordinary file that is to take the stub's place (merge.hpp)
//   .ioweir-ID/group.N/data                 the bytes of group N, each at its logical offset
//   .ioweir-ID/group.N/index.G.R            who wrote what of it: rank R in generation G (index.hpp)
//
// What does not live here: what the records mean (index.hpp), moving bytes (container.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "container/index.hpp"
#include "container/stub.hpp"

namespace ioweir::container {

struct Directory {
    std::string path;
    std::int64_t groups = 1;

    [[nodiscard]] std::string group(std::int64_t number) const { return path + "/group." + std::to_string(number); }
    [[nodiscard]] std::string data(std::int64_t number) const { return group(number) + "/data"; }
    [[nodiscard]] std::string index(std::int64_t number, Time time) const {
        return group(number) + "/index." + std::to_string(time.generation) + "." + std::to_string(time.rank);
    }
};

[[nodiscard]] Directory directory_of(const std::string& stub_path, const Stub& stub);

/// Makes the directory with its groups, all empty. Returns an errno value; what it has made is removed again after an error.
[[nodiscard]] int make(const Directory& directory, const std::string& stub_path, const Stub& stub);
/// Removes the directory with all that a container has in it. An errno value.
int remove(const Directory& directory);

/// The next generation of writing, for this caller alone, also when several processes ask at once.
[[nodiscard]] Result<std::uint32_t> begin_generation(const Directory& directory);
/// All of its indexes are written. An errno value.
int end_generation(const Directory& directory, std::uint32_t generation);
/// Generations that were begun and not ended: jobs that still write, or that have died.
[[nodiscard]] Result<std::vector<std::uint32_t>> open_generations(const Directory& directory);

struct Indexes {
    std::vector<Batch> batches;
    std::vector<std::uint32_t>
        open;  ///< generations that were never ended: what they wrote after their last sync is not there
    std::vector<std::string>
        torn;  ///< files of those in which the last batch is torn: what came before it is in `batches`
};
/// All indexes of all groups. Damage to what was complete is an Error that names the file; the directory or a group missing, too.
[[nodiscard]] Result<Indexes> read_indexes(const Directory& directory);

/// Of the logical file: the longest of the groups' files. An Error names the one that is missing.
[[nodiscard]] Result<std::int64_t> length(const Directory& directory);
/// Makes every group's file at most (`grow`: the first group's at least) so long. An errno value.
int set_length(const Directory& directory, std::int64_t bytes, bool grow);

}  // namespace ioweir::container
