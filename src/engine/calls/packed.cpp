#include "engine/calls/packed.hpp"

#include <algorithm>
#include <cerrno>

#include "exchange/scratch.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::engine {
namespace {

constexpr char external32[] = "external32";

/// Nothing is so much larger in external32 that MPI would find no room, which ends a program by default.
constexpr std::int64_t spare = 4;

/// Instances of the call's datatype, which MPI packs into `packed` or out of it.
struct Packer {
    const Call& call;
    const Packing& packing;
    std::byte* packed;

    /// Bytes that were packed; -1 after an error.
    [[nodiscard]] std::int64_t pack(const void* memory, int instances) const {
        if (packing.external32) {
            MPI_Aint place = 0;
            const auto room = static_cast<MPI_Aint>(spare * instances * packing.bytes);
            const int code = PMPI_Pack_external(external32, memory, instances, call.datatype, packed, room, &place);
            return code == MPI_SUCCESS ? place : -1;
        }
        int place = 0;
        const auto room = static_cast<int>(instances * packing.bytes);
        const int code = PMPI_Pack(memory, instances, call.datatype, packed, room, &place, MPI_COMM_SELF);
        return code == MPI_SUCCESS ? place : -1;
    }
    [[nodiscard]] bool unpack(void* memory, int instances) const {
        if (packing.external32) {
            MPI_Aint place = 0;
            const auto there = static_cast<MPI_Aint>(instances * packing.bytes);
            return PMPI_Unpack_external(external32, packed, there, &place, memory, instances, call.datatype) ==
                   MPI_SUCCESS;
        }
        int place = 0;
        const auto there = static_cast<int>(instances * packing.bytes);
        return PMPI_Unpack(packed, there, &place, memory, instances, call.datatype, MPI_COMM_SELF) == MPI_SUCCESS;
    }
};

}  // namespace

Outcome move_packed(const Call& call, const Packing& packing, FunctionRef<Outcome(const Memory&, std::int64_t)> move) {
    constexpr std::int64_t buffer_bytes = 16 << 20;
    MPI_Count lower = 0, extent = 0;
    PMPI_Type_get_extent_x(call.datatype, &lower, &extent);
    const std::int64_t size = packing.bytes;
    const std::int64_t room = packing.external32 ? spare * size : size;
    const std::int64_t instances =
        std::clamp<std::int64_t>(buffer_bytes / std::max<std::int64_t>(1, room), 1, call.count);
    Scratch buffer(std::max(buffer_bytes, room));
    const Packer packer{call, packing, buffer.data()};
    const auto bytes_type = layout::flatten(MPI_BYTE).value();
    Outcome sum;
    for (std::int64_t i = 0; i < call.count && sum.error == 0; i += instances) {
        const int now = static_cast<int>(std::min<std::int64_t>(instances, call.count - i));
        auto* memory = reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(call.buffer) + i * extent);
        const Memory chunk{buffer.data(), bytes_type.get(), now * size};
        // Also before reading: what the file does not have comes back as it was.
        const std::int64_t packed = packer.pack(memory, now);
        if (packed < 0 || packed > chunk.bytes) return {sum.bytes, packed < 0 ? EIO : EOPNOTSUPP, sum.operations};
        std::fill_n(buffer.data() + packed, chunk.bytes - packed, std::byte{0});
        const Outcome outcome = move(chunk, i * size);
        sum = {sum.bytes + outcome.bytes, outcome.error, sum.operations + outcome.operations};
        if (call.direction == Direction::read && outcome.bytes > 0) {
            // Numbers that do not fit into 4 bytes would not come back as they were.
            const std::int64_t there = packed == chunk.bytes ? now : outcome.bytes / size;
            if (!packer.unpack(memory, static_cast<int>(there))) return {sum.bytes, EIO, sum.operations};
        }
        if (outcome.bytes < chunk.bytes) break;
    }
    return sum;
}

}  // namespace ioweir::engine
