// Pieces of memory, as MPI moves them in one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "mpi/mpi.hpp"

namespace ioweir::partition {

/// Memory that goes to one place in the file, one behind the other.
struct MemoryPiece {
    const void* data = nullptr;
    std::int64_t bytes = 0;
};

[[nodiscard]] inline std::int64_t total(const std::vector<MemoryPiece>& pieces) {
    std::int64_t bytes = 0;
    for (const MemoryPiece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

/// A datatype of some memory, by its addresses; to be used with MPI_BOTTOM and count 1.
class MemoryType {
public:
    explicit MemoryType(const std::vector<MemoryPiece>& pieces) {
        constexpr std::int64_t most = std::int64_t{1} << 30;  // lengths are int
        std::vector<int> lengths;
        std::vector<MPI_Aint> places;
        for (const MemoryPiece& piece : pieces) {
            MPI_Aint place = 0;
            MPI_Get_address(const_cast<void*>(piece.data), &place);
            for (std::int64_t at = 0; at < piece.bytes; at += most) {
                lengths.push_back(static_cast<int>(std::min(most, piece.bytes - at)));
                places.push_back(MPI_Aint_add(place, at));
            }
        }
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
    }
    ~MemoryType() { MPI_Type_free(&type_); }
    MemoryType(const MemoryType&) = delete;
    MemoryType& operator=(const MemoryType&) = delete;
    [[nodiscard]] MPI_Datatype get() const { return type_; }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace ioweir::partition
