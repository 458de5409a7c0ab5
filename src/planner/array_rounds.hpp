// What a rank writes to divided arrays, in rounds: parts of its requests, so that an exchange takes little memory, and every subfile's
// storage gets something from the first round on. Pure: no MPI, no file.
// What does not live here: which rank carries out what a subfile gets (array_plan.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "ncsub/core/request.hpp"

namespace ioweir::planner {

/// A valid request, for at least one element, for an array that is divided along `dimension` at `boundaries` (as split() has them).
struct DividedRequest {
    ncsub::RequestView request;
    std::int64_t element_bytes = 1;
    int dimension = 0;
    std::span<const std::int64_t> boundaries;

    /// What describes a small request takes more memory than its elements.
    [[nodiscard]] std::int64_t bytes_in_round(const ncsub::RequestView& part) const {
        return elements_of(part) * element_bytes +
               static_cast<std::int64_t>(part.dimensions * 2 * sizeof(std::int64_t));
    }
};

struct RoundLimits {
    /// A rank gives away at most so much in a round: its subfiles' storage begins early, and so much is what an exchange takes of memory.
    std::int64_t round_bytes = 4 << 20;
    /// A round has no less than this for a subfile, if there is so much for it.
    std::int64_t least_share = 256 << 10;
};

/// A part of a request, in the array's own indices. Its elements lie in one piece among the request's packed ones, from byte `place` on.
struct RoundPart {
    std::size_t whose = 0;       ///< the number of its request
    ncsub::RequestView request;  ///< which leads into ArrayRounds, or to where the whole request leads
    std::int64_t place = 0;
};
struct ArrayRounds {
    std::vector<std::vector<RoundPart>> parts;  ///< of each round; at least one
    std::deque<ncsub::Request> kept;            ///< which stay where they are
};

/// Promises:
/// - Every element is in one part of one round; parts for one subfile are in the order of the requests and their elements.
/// - Elements of a round, and what describes its parts, take at most round_bytes, and one description more for each subfile.
/// - A round has something for every subfile that gets something in a later one: else the storage of some would stand idle while others have
///   all. Not where there are more than round_bytes / least_share subfiles, nor where what a request has for one subfile lies in several
///   pieces of memory.
/// Example: 4 MiB a round, and 2 subfiles for each of which there are 3 MiB: two rounds, of 2 MiB and 1 MiB for each.
[[nodiscard]] ArrayRounds array_rounds(std::span<const DividedRequest> requests, RoundLimits limits = {});

}  // namespace ioweir::planner
