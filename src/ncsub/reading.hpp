// Requests that read one array, so that no element of it is read twice at a time: the library (PnetCDF 1.12) fills only one of two buffers that want
// the same elements in one wait. Linear in the requests, or n log n, and in what overlaps of them. Pure.
// What does not live here: reading (adapters/pnetcdf/tasks.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ncsub/core/request.hpp"

namespace ioweir::ncsub {

/// Elements of what is read together that a request wants: `from` is their place there, `to` among the request's, both in elements.
struct Shared {
    std::size_t request = 0;
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t elements = 0;
};

/// Elements that several requests want, each once, in the order of these requests.
struct Together {
    std::vector<Request> requests;
    std::int64_t elements = 0;
    std::vector<Shared> shared;
};

/// A request that wants what another one does.
struct Same {
    std::size_t request = 0;
    std::size_t as = 0;
};

struct Reading {
    static constexpr int not_by_itself = -1;
    std::vector<int> rounds;  ///< of each request: in which round it is read as it is; or it is not
    int count = 1;            ///< of rounds
    std::vector<Same> same;
    std::vector<Together> together;  ///< all in the first round
};

/// What an array's readers want of it.
struct Wants {
    std::span<const RequestView> requests;  ///< each of one element at least
    std::span<const int> kinds;             ///< of each: the type that its elements have in memory
    int plain_kind = 0;                     ///< the one that is not converted
    std::span<const std::int64_t>
        lengths;  ///< of the array; the first one is not looked at, it may be the unlimited one
};

/// Requests that meet are read together, where nothing is converted. Where something is, values that do not fit are an error of one request and not
/// of its neighbour: those that meet are in different rounds then.
[[nodiscard]] Reading plan_reading(const Wants& wants);

}  // namespace ioweir::ncsub
