// WriteLog: what one process has written to one file through the engine, as checksums, for --verify. Knows nothing of MPI.
// What does not live here: the agreement between ranks about bytes that several of them wrote (verify.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/direct.hpp"
#include "layout/core/extent.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

/// Not thread safe: callers lock.
class WriteLog {
public:
    /// Notes the data in memory as written by `handle`. Call it in the order of the writes.
    void record(std::uint32_t handle, const Memory& memory, const FileRange& range);
    struct Report {
        std::int64_t checked_bytes = 0;
        std::int64_t unchecked_bytes = 0;  ///< partly overwritten later, or beyond the log's memory limit
        layout::ExtentList wrong;          ///< bytes whose checksum does not match: a normal list
    };
    /// Reads back what `handle` wrote and nobody in this process overwrote.
    [[nodiscard]] Report check(std::uint32_t handle, storage::Backend& backend, int descriptor);

    /// The file was cut to this length: nothing is expected beyond any more.
    void cut(std::int64_t length);

    /// Every byte this process wrote through any handle except `wrong`: they may explain another rank's mismatch.
    [[nodiscard]] layout::ExtentList written_except(const layout::ExtentList& wrong) const;

    /// About 40 bytes of memory a record.
    static constexpr std::size_t max_records = std::size_t{1} << 22;
    /// A record covers at most this much, so that a partial overwrite costs little certainty.
    static constexpr std::int64_t record_bytes = 65536;

private:
    struct Record {
        layout::Extent extent;
        std::uint64_t checksum;
        std::uint64_t sequence;
        std::uint32_t handle;
        bool whole;  ///< no later write of this process has touched it
    };
    void add(std::uint32_t handle, layout::Extent extent, const void* data);
    void resolve();

    std::vector<Record> records_;
    std::uint64_t sequence_ = 0;
    std::int64_t unrecorded_bytes_ = 0;
    std::size_t resolved_ = 0;  ///< records before this index are sorted and known to be disjoint or not whole
};

}  // namespace ioweir::engine
