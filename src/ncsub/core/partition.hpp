// How arrays and ranks are divided over netCDF subfiles (Son et al. 2016, sections 3.2 and 3.3). Pure: no MPI, no file.
// What does not live here: what a request becomes (request.hpp), how the files say it (names.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ioweir::ncsub {

/// Indices [begin, begin + count).
struct Part {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    [[nodiscard]] std::int64_t end() const { return begin + count; }
    [[nodiscard]] bool contains(std::int64_t index) const { return index >= begin && index < end(); }
    friend bool operator==(const Part&, const Part&) = default;
};

/// Part `index` of `parts` parts of [0, length): from ceil(index * length / parts) on, so that counts differ by one at most. PnetCDF's own
/// subfiling divides dimensions and ranks in this way. For 0 <= index < parts < 2^31.
/// part_of(10, 3, 0) == {0, 4}, part_of(10, 3, 1) == {4, 3}, part_of(10, 3, 2) == {7, 3}.
[[nodiscard]] Part part_of(std::int64_t length, std::int64_t parts, std::int64_t index);

/// The part that holds `at`, for 0 <= at < length. part_holding(10, 3, 6) == 1.
[[nodiscard]] std::int64_t part_holding(std::int64_t length, std::int64_t parts, std::int64_t at);

/// Where the parts begin, and the end of the last: boundaries_of(10, 3) == {0, 4, 7, 10}.
[[nodiscard]] std::vector<std::int64_t> boundaries_of(std::int64_t length, std::int64_t parts);

/// An array as it is about to be divided.
struct Shape {
    std::vector<std::int64_t> lengths;  ///< of a record dimension: any
    std::vector<int> dimension_ids;
    bool record = false;  ///< the first dimension is the unlimited one
};

struct DimensionOptions {
    std::int64_t subfiles = 1;
    std::int64_t min_ndims = 0;          ///< arrays of so many dimensions or fewer stay whole
    std::optional<int> par_dim_id = {};  ///< the dimension along which the array is to be divided, by its id
};

struct Choice {
    int dimension = -1;  ///< index into the shape; -1: the array stays whole
    std::string why;     ///< it stays whole, or another dimension than the asked one was taken; else empty
};

/// The dimension along which an array is divided: the asked one where the array has it and it has a length, else the most significant one
/// that has. The array stays whole where that is shorter than the number of subfiles.
[[nodiscard]] Choice choose_dimension(const Shape& shape, const DimensionOptions& options);

/// Which ranks keep which subfiles. Every subfile has at least one rank, which all hold it open; a rank keeps one subfile, or several where
/// there are more subfiles than ranks.
class Groups {
public:
    /// Both at least 1.
    Groups(std::int64_t ranks, std::int64_t subfiles) : ranks_(ranks), subfiles_(subfiles) {}

    [[nodiscard]] Part ranks_of(std::int64_t subfile) const;
    [[nodiscard]] Part subfiles_of(std::int64_t rank) const;

    /// The rank through which `source` reaches a subfile: itself where it keeps it, else one of those that do. The other ranks are dealt
    /// round over them, so that none serves more than one rank more than another (Son et al.: any process can be a delegate, so that none
    /// has more to do than the others).
    [[nodiscard]] std::int64_t delegate_of(std::int64_t source, std::int64_t subfile) const;

private:
    std::int64_t ranks_;
    std::int64_t subfiles_;
};

}  // namespace ioweir::ncsub
