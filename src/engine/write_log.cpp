#include "engine/write_log.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checksum.hpp"
#include "engine/scratch.hpp"

namespace ioweir::engine {

using layout::Extent;
using layout::ExtentList;
using layout::PieceCursor;

void WriteLog::add(std::uint32_t handle, Extent extent, const void* data) {
    if (records_.size() >= max_records) resolve();
    if (records_.size() >= max_records) {
        unrecorded_bytes_ += extent.length;
        return;
    }
    records_.push_back({extent, checksum(data, static_cast<std::size_t>(extent.length)), ++sequence_, handle, true});
}

void WriteLog::record(std::uint32_t handle, const Memory& memory, const FileRange& range) {
    PieceCursor file_pieces = range.view->pieces(range.first_byte, memory.bytes);
    PieceCursor memory_pieces(*memory.type, 0, 0, memory.bytes);
    Scratch buffer(record_bytes);
    Extent file, in_memory;
    while (file_pieces.next(file)) {
        while (file.length > 0) {
            // Records end at multiples of record_bytes, so that writes of other sizes to the same place give the same ones.
            const std::int64_t bytes = std::min(file.length, record_bytes - file.offset % record_bytes);
            std::int64_t copied = 0;
            const std::byte* data = buffer.data();
            while (copied < bytes) {
                if (in_memory.length == 0 && !memory_pieces.next(in_memory)) return;
                const auto* from =
                    reinterpret_cast<const std::byte*>(reinterpret_cast<std::intptr_t>(memory.base) + in_memory.offset);
                const std::int64_t take = std::min(in_memory.length, bytes - copied);
                if (take == bytes) {
                    data = from;
                } else {
                    std::copy_n(from, take, buffer.data() + copied);
                }
                copied += take;
                in_memory = {in_memory.offset + take, in_memory.length - take};
            }
            add(handle, {file.offset, bytes}, data);
            file = {file.offset + bytes, file.length - bytes};
        }
    }
}

/// Leaves each record either whole (nothing later touched it), or not whole, or drops it (completely overwritten).
void WriteLog::resolve() {
    if (resolved_ == records_.size()) return;
    std::sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) {
        return a.extent.offset != b.extent.offset ? a.extent.offset < b.extent.offset : a.sequence < b.sequence;
    });
    std::vector<Record> kept;
    kept.reserve(records_.size());
    for (std::size_t begin = 0, end = 0; begin < records_.size(); begin = end) {
        // A cluster of records that overlap in a chain; usually a single one.
        std::int64_t reach = records_[begin].extent.end();
        for (end = begin + 1; end < records_.size() && records_[end].extent.offset < reach; ++end) {
            reach = std::max(reach, records_[end].extent.end());
        }
        if (end == begin + 1) {
            kept.push_back(records_[begin]);
            continue;
        }
        std::sort(records_.begin() + begin, records_.begin() + end,
                  [](const Record& a, const Record& b) { return a.sequence > b.sequence; });
        ExtentList covered;  // by later writes: a normal list
        for (std::size_t i = begin; i < end; ++i) {
            Record record = records_[i];
            const ExtentList own{record.extent};
            if (layout::covers(covered, own)) continue;
            if (layout::overlaps(covered, own)) record.whole = false;
            kept.push_back(record);
            covered = layout::unite(covered, own);
        }
    }
    records_ = std::move(kept);
    std::sort(records_.begin(), records_.end(),
              [](const Record& a, const Record& b) { return a.extent.offset < b.extent.offset; });
    resolved_ = records_.size();
}

WriteLog::Report WriteLog::check(std::uint32_t handle, storage::Backend& backend, int descriptor) {
    resolve();
    Report report;
    report.unchecked_bytes = std::exchange(unrecorded_bytes_, 0);
    std::vector<Record> mine;
    for (const Record& record : records_) {
        if (record.handle != handle) continue;
        if (record.whole) {
            mine.push_back(record);
        } else {
            report.unchecked_bytes += record.extent.length;
        }
    }
    // Neighbours are read together.
    constexpr std::int64_t window_bytes = 1 << 20;
    constexpr std::int64_t longest_hole_bytes = 4096;
    Scratch buffer(window_bytes);
    for (std::size_t begin = 0, end = 0; begin < mine.size(); begin = end) {
        const std::int64_t start = mine[begin].extent.offset;
        for (end = begin + 1; end < mine.size(); ++end) {
            const std::int64_t hole = mine[end].extent.offset - mine[end - 1].extent.end();
            if (hole > longest_hole_bytes || mine[end].extent.end() - start > window_bytes) break;
        }
        const std::int64_t there =
            backend.read_at(descriptor, buffer.data(), mine[end - 1].extent.end() - start, start).bytes;
        for (std::size_t i = begin; i < end; ++i) {
            const Extent& extent = mine[i].extent;
            const bool same =
                extent.end() - start <= there && checksum(buffer.data() + (extent.offset - start),
                                                          static_cast<std::size_t>(extent.length)) == mine[i].checksum;
            report.checked_bytes += extent.length;
            if (!same) report.wrong.push_back(extent);
        }
    }
    layout::normalize(report.wrong);
    return report;
}

void WriteLog::cut(std::int64_t length) {
    resolve();
    std::erase_if(records_, [&](const Record& record) { return record.extent.offset >= length; });
    for (Record& record : records_) {
        if (record.extent.end() <= length) continue;
        record.extent.length = length - record.extent.offset;
        record.whole = false;
    }
    resolved_ = records_.size();
}

ExtentList WriteLog::written_except(const ExtentList& wrong) const {
    ExtentList written;
    for (const Record& record : records_) written.push_back(record.extent);
    layout::normalize(written);
    return layout::subtract(written, wrong);
}

}  // namespace ioweir::engine
