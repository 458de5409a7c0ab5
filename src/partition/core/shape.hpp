// Shape: how the parts of a partitioned solver's data are dealt over ranks and files. Pure.
// Source: Liu, Fu, Carothers et al., "Massively Parallel I/O for Partitioned Solver Systems", section 2 (groups of ranks, a file each); the order of parts in
// PHASTA's syncIO files, version 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ioweir::partition {

/// A run of things with consecutive numbers, from 0.
struct Span {
    std::int64_t first = 0;
    std::int64_t count = 0;
    [[nodiscard]] std::int64_t end() const { return first + count; }
    friend bool operator==(const Span&, const Span&) = default;
};

/// Parts are numbered through: those of rank 0 first. A file holds those of consecutive ranks, ranks and files as level as they can be: where
/// they do not divide, the first files have a rank more each, so that no file differs from another by more than one rank.
///
/// What PHASTA's own library reads needs more: as many parts on each rank, and a number of ranks that is a multiple of the number of files, for it finds part
/// g in file (g - 1) / parts of a file.
class Shape {
public:
    /// `parts_of_rank`: how many parts each rank has, 0 included. `files`: from 1 to the number of ranks.
    [[nodiscard]] static Result<Shape> make(const std::vector<std::int64_t>& parts_of_rank, std::int64_t files);

    [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(first_part_.size()) - 1; }
    [[nodiscard]] std::int64_t files() const { return files_; }
    [[nodiscard]] std::int64_t parts() const { return first_part_.back(); }
    [[nodiscard]] std::int64_t file_of_rank(std::int64_t rank) const;
    [[nodiscard]] Span ranks_of_file(std::int64_t file) const;
    [[nodiscard]] Span parts_of_rank(std::int64_t rank) const;
    [[nodiscard]] Span parts_of_file(std::int64_t file) const;

private:
    std::vector<std::int64_t> first_part_;  ///< of each rank, and their number
    std::int64_t files_ = 1;
};

/// `total` things dealt over `owners`, as level as can be, the first ones with one more: those of owner `index`.
/// Example: 10 over 4 are 3, 3, 2, 2.
[[nodiscard]] Span level_share(std::int64_t total, std::int64_t owners, std::int64_t index);
/// Whose thing number `thing` is in that.
[[nodiscard]] std::int64_t level_owner(std::int64_t total, std::int64_t owners, std::int64_t thing);

}  // namespace ioweir::partition
