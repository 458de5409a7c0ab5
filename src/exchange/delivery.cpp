#include "exchange/delivery.hpp"

#include <algorithm>

namespace ioweir::exchange {
namespace {

/// Calls start(place, bytes) for each part.
template <typename Start>
bool in_parts(std::int64_t bytes, std::int64_t most, Start&& start) {
    bool all = true;
    for (std::int64_t at = 0; at < bytes; at += most)
        all = start(at, static_cast<int>(std::min(most, bytes - at))) == MPI_SUCCESS && all;
    return all;
}

}  // namespace

bool tell_each(MPI_Comm comm, std::span<const std::int64_t> mine, std::span<std::int64_t> theirs) {
    int ranks = 1;
    PMPI_Comm_size(comm, &ranks);
    const int each = static_cast<int>(std::ssize(mine) / ranks);
    return PMPI_Alltoall(mine.data(), each, MPI_INT64_T, theirs.data(), each, MPI_INT64_T, comm) == MPI_SUCCESS;
}

bool deliver(MPI_Comm comm, std::span<const Shipment> shipments, std::int64_t most_bytes) {
    int me = 0, ranks = 1;
    PMPI_Comm_rank(comm, &me);
    PMPI_Comm_size(comm, &ranks);
    std::vector<MPI_Request> requests;
    bool all = true;
    // Receives first, so that what comes has a place. Ranks begin with different ones.
    for (const bool sends : {false, true})
        for (int i = 1; i < ranks; ++i)
            for (std::size_t number = 0; number < shipments.size(); ++number) {
                const int other = (me + i) % ranks, tag = static_cast<int>(number);
                const std::span<const std::byte> to = shipments[number].to[static_cast<std::size_t>(other)];
                const std::span<std::byte> from = shipments[number].from[static_cast<std::size_t>(other)];
                const auto begin = [&](std::int64_t at, int count) {
                    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
                    return sends ? PMPI_Isend(to.data() + at, count, MPI_BYTE, other, tag, comm, &request)
                                 : PMPI_Irecv(from.data() + at, count, MPI_BYTE, other, tag, comm, &request);
                };
                all = in_parts(sends ? std::ssize(to) : std::ssize(from), most_bytes, begin) && all;
            }
    return PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS && all;
}

bool broadcast(MPI_Comm comm, std::string& bytes, int root, std::int64_t most_bytes) {
    std::int64_t size = std::ssize(bytes);
    if (PMPI_Bcast(&size, 1, MPI_INT64_T, root, comm) != MPI_SUCCESS) return false;
    bytes.resize(static_cast<std::size_t>(size));
    return in_parts(size, most_bytes, [&](std::int64_t at, int count) {
        return PMPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, comm);
    });
}

}  // namespace ioweir::exchange
