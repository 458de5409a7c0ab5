// ArrayPlan: which rank carries out what of a rank's accesses to divided netCDF arrays, on which subfile, in which round (Son et al. 2016,
// sections 3.2 and 3.3). Where the arrays are cut is given with the requests. Pure: each rank makes its own, and those of all are the whole.
// What does not live here: what is cut where (ncsub/core/request.hpp), carrying it out (adapters/pnetcdf/exchange.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ncsub/core/partition.hpp"
#include "planner/array_rounds.hpp"

namespace ioweir::planner {

/// What a part of a request wants of one subfile, and the rank that carries it out.
struct ArrayMessage {
    std::size_t part = 0;  ///< its number among those of the round
    std::int64_t subfile = 0;
    std::int64_t owner = 0;
    ncsub::RequestView piece;  ///< valid during the visit only; its first index along the divided dimension is `first`
    std::int64_t first = 0;    ///< in the subfile's own indices
    ncsub::Slice slice;        ///< of the part
};

class ArrayPlan {
public:
    /// Of the requests of `rank`, whose numbers stay where they are as long as the plan lives. What is read comes in one round. `keepers`: of 1 rank where
    /// it carries out everything by itself.
    ArrayPlan(std::span<const DividedRequest> requests, std::int64_t rank, const ncsub::Groups& keepers, bool writes,
              RoundLimits limits = {});
    // Parts lead into it: a copy's would lead into the original.
    ArrayPlan(const ArrayPlan&) = delete;
    ArrayPlan& operator=(const ArrayPlan&) = delete;

    [[nodiscard]] std::int64_t rounds() const { return std::ssize(rounds_.parts); }
    /// None in rounds behind the last: others may have more.
    [[nodiscard]] std::span<const RoundPart> parts(std::int64_t round) const;

    /// Calls visit(ArrayMessage) for each, by rising part and subfile.
    template <typename Visit>
    void visit_messages(std::int64_t round, Visit&& visit) const {
        const std::span<const RoundPart> all = parts(round);
        for (std::size_t number = 0; number < all.size(); ++number) {
            const DividedRequest& whole = requests_[all[number].whose];
            for_each_piece(
                all[number].request, whole.dimension, whole.boundaries,
                [&](std::int64_t subfile, const ncsub::RequestView& piece, ncsub::Slice slice, std::int64_t first) {
                    visit(ArrayMessage{number, subfile, keepers_.delegate_of(rank_, subfile), piece, first, slice});
                });
        }
    }

private:
    std::vector<DividedRequest> requests_;
    std::int64_t rank_;
    ncsub::Groups keepers_;
    ArrayRounds rounds_;
};

}  // namespace ioweir::planner
