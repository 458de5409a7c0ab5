// Delivery: bytes of any length from every rank of a communicator to every other one, where each knows what comes to it. Calls on several
// files or arrays go to the ranks that carry them out in this way, and their answers come back (adapters/pnetcdf/exchange.cpp).
// What does not live here: bytes through the buffers of writers, as a Plan says (exchange.hpp); bytes that a rank hands over and goes on
// (hand_over.hpp).
//
// Every function is collective over its communicator. False: MPI has lost something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"

namespace ioweir::exchange {

/// MPI counts in int: longer messages go in parts.
inline constexpr std::int64_t most_message_bytes = 1 << 30;

/// What goes to each rank, and where that belongs which comes from each, which is as long as what that rank sends. A rank's own stays where
/// it is.
struct Shipment {
    std::vector<std::span<const std::byte>> to;
    std::vector<std::span<std::byte>> from;
    explicit Shipment(std::size_t ranks) : to(ranks), from(ranks) {}
};

/// Every rank tells every other one the same number of words: `mine` and `theirs` have those for and from rank 0 first, then rank 1's.
[[nodiscard]] bool tell_each(MPI_Comm comm, std::span<const std::int64_t> mine, std::span<std::int64_t> theirs);

/// Carries out all shipments. Nothing is copied: the bytes must stay until it returns.
[[nodiscard]] bool deliver(MPI_Comm comm, std::span<const Shipment> shipments,
                           std::int64_t most_bytes = most_message_bytes);

/// The bytes of rank `root`, on all ranks.
[[nodiscard]] bool broadcast(MPI_Comm comm, std::string& bytes, int root = 0,
                             std::int64_t most_bytes = most_message_bytes);

}  // namespace ioweir::exchange
