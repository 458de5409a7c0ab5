// WriteLog: what one process was told that it has written to one file through the engine, as checksums, for --verify; and what it was
// told that it has not. Knows nothing of MPI.
// What does not live here: the agreement between ranks about bytes that several of them wrote (verify.cpp), writes that the MPI library
// moved (left_out.hpp).
#pragma once

#include <cstdint>
#include <map>

#include "base/function_ref.hpp"
#include "exchange/direct.hpp"
#include "layout/core/extent.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

using namespace exchange;

/// Not thread safe: callers lock. Of each byte the log knows what became of the last write to it.
class WriteLog {
public:
    /// Reads bytes of the file as they are now: into memory, so many, from this offset on. How many there were.
    using Read = FunctionRef<std::int64_t(std::byte*, std::int64_t, std::int64_t)>;

    /// Before `bytes` bytes are written there (or cut off): what was written before and would be overwritten in part is read back, and
    /// logged as what it falls into, if it is as it was written. Otherwise nobody could compare what is left of it.
    void prepare(const FileRange& range, std::int64_t bytes, Read read);
    void prepare(layout::Extent extent, Read read);

    /// Notes the data in memory as written by `handle`. Call it in the order of the writes.
    void record(std::uint32_t handle, const Memory& memory, const FileRange& range);
    /// Notes `bytes` bytes that the program was told were not written: what lies there now, nobody knows.
    void record_failed(std::uint32_t handle, const FileRange& range, std::int64_t bytes);

    struct Report {
        std::int64_t checked_bytes = 0;    ///< read back, equal or not
        std::int64_t unchecked_bytes = 0;  ///< partly overwritten later, or beyond the log's memory limit
        std::int64_t beyond_bytes = 0;     ///< of these, those beyond the memory limit
        layout::ExtentList wrong;          ///< bytes whose checksum does not match: a normal list
        layout::ExtentList unsure;         ///< bytes partly overwritten later: a normal list
        layout::ExtentList failed;         ///< bytes that were not written, nor later: a normal list
    };
    /// Reads back what `handle` wrote and nobody in this process overwrote.
    [[nodiscard]] Report check(std::uint32_t handle, storage::Backend& backend, int descriptor);
    /// The same without reading: nothing is compared, and all that `handle` wrote is `unsure`.
    [[nodiscard]] Report left_by(std::uint32_t handle);

    /// The file was cut to this length: nothing is expected beyond any more.
    void cut(std::int64_t length);

    /// Every byte this process wrote through any handle except `wrong`: they may explain another rank's mismatch.
    [[nodiscard]] layout::ExtentList written_except(const layout::ExtentList& wrong) const;
    /// Of these, those of which the log still knows what was written.
    [[nodiscard]] layout::ExtentList known_except(const layout::ExtentList& wrong) const;
    /// Bytes of which it does not, by whichever handle: a normal list.
    [[nodiscard]] layout::ExtentList hazy() const;

    /// About 80 bytes of memory a record.
    static constexpr std::size_t max_records = std::size_t{1} << 21;
    /// A record covers at most this much, so that a partial overwrite costs little.
    static constexpr std::int64_t record_bytes = 65536;

private:
    enum class State : std::uint8_t {
        known,   ///< `checksum` is that of the bytes
        unsure,  ///< written, but the checksum is lost
        failed,  ///< not written
    };
    struct Record {
        std::int64_t length;
        std::uint64_t checksum;
        std::uint32_t handle;
        State state;
    };
    using Records = std::map<std::int64_t, Record>;  // by offset, disjoint

    class Splitter;
    [[nodiscard]] Records::iterator first_touching(std::int64_t offset);
    void add(layout::Extent extent, const Record& record);
    void cut_out(layout::Extent extent);
    Report report_of(std::uint32_t handle);
    template <typename Wanted>
    [[nodiscard]] layout::ExtentList extents_where(Wanted wanted) const;

    Records records_;
    std::int64_t beyond_bytes_ = 0;
};

}  // namespace ioweir::engine
