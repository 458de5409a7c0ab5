#include "engine/verify/write_log.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "exchange/scratch.hpp"

namespace ioweir::engine {

using layout::Extent;
using layout::ExtentList;
using layout::PieceCursor;

namespace {

std::uint64_t checksum_of(const std::byte* data, std::int64_t bytes) {
    return checksum(data, static_cast<std::size_t>(bytes));
}

}  // namespace

/// Splits records that what comes next covers in part. Pieces mostly rise, so that each such record is read once.
class WriteLog::Splitter {
public:
    Splitter(WriteLog& log, Read read) : log_(log), read_(read) {}
    ~Splitter() { close(); }
    Splitter(const Splitter&) = delete;
    Splitter& operator=(const Splitter&) = delete;

    void add(Extent piece) {
        if (open_) {
            if (const Extent common = layout::intersect(piece, extent_); !common.empty()) covered_.push_back(common);
        }
        for (auto at = log_.first_touching(piece.offset); at != log_.records_.end() && at->first < piece.end();) {
            const Extent extent{at->first, at->second.length};
            const bool whole = piece.offset <= extent.offset && extent.end() <= piece.end();
            if (whole || at->second.state != State::known) {
                ++at;
                continue;
            }
            const Record record = at->second;
            at = log_.records_.erase(at);
            close();
            open_ = record;
            extent_ = extent;
            covered_ = {layout::intersect(piece, extent)};
        }
    }

private:
    /// What is covered and what is left of the open record become records of their own.
    void close() {
        if (!open_) return;
        const Record whole = *std::exchange(open_, std::nullopt);
        if (!buffer_) buffer_.emplace(record_bytes);
        const std::int64_t there = read_(buffer_->data(), extent_.length, extent_.offset);
        const bool sound = there == extent_.length && checksum_of(buffer_->data(), extent_.length) == whole.checksum;
        layout::normalize(covered_);
        const ExtentList left = layout::subtract(ExtentList{extent_}, covered_);
        for (const ExtentList& parts : {covered_, left}) {
            for (const Extent& part : parts) {
                Record record{part.length, 0, whole.handle, State::unsure};
                if (sound) {
                    record.state = State::known;
                    record.checksum = checksum_of(buffer_->data() + (part.offset - extent_.offset), part.length);
                }
                log_.add(part, record);
            }
        }
    }

    WriteLog& log_;
    Read read_;
    std::optional<Record> open_;
    Extent extent_;
    ExtentList covered_;
    std::optional<Scratch> buffer_;
};

/// The first record that reaches beyond the offset.
WriteLog::Records::iterator WriteLog::first_touching(std::int64_t offset) {
    auto at = records_.upper_bound(offset);
    if (at != records_.begin() && std::prev(at)->first + std::prev(at)->second.length > offset) --at;
    return at;
}

void WriteLog::prepare(const FileRange& range, std::int64_t bytes, Read read) {
    if (records_.empty() || bytes == 0) return;
    Splitter splitter(*this, read);
    PieceCursor pieces = range.view->pieces(range.first_byte, bytes);
    Extent piece;
    while (pieces.next(piece)) splitter.add(piece);
}

void WriteLog::prepare(Extent extent, Read read) { Splitter(*this, read).add(extent); }

/// Nothing is known of these bytes any more.
void WriteLog::cut_out(Extent extent) {
    for (auto at = first_touching(extent.offset); at != records_.end() && at->first < extent.end();) {
        const Extent old{at->first, at->second.length};
        Record rest = at->second;
        if (rest.state == State::known) rest.state = State::unsure;
        at = records_.erase(at);
        if (old.offset < extent.offset) {
            rest.length = extent.offset - old.offset;
            records_.emplace_hint(at, old.offset, rest);
        }
        if (old.end() > extent.end()) {
            rest.length = old.end() - extent.end();
            records_.emplace_hint(at, extent.end(), rest);
        }
    }
}

void WriteLog::add(Extent extent, const Record& record) {
    if (records_.size() >= max_records) {
        beyond_bytes_ += extent.length;
        return;
    }
    records_.emplace(extent.offset, record);
}

void WriteLog::record(std::uint32_t handle, const Memory& memory, const FileRange& range) {
    PieceCursor file_pieces = range.view->pieces(range.first_byte, memory.bytes);
    PieceCursor memory_pieces(*memory.type, 0, 0, memory.bytes);
    Scratch buffer(record_bytes);
    Extent file, in_memory;
    while (file_pieces.next(file)) {
        cut_out(file);
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
            add({file.offset, bytes}, {bytes, checksum_of(data, bytes), handle, State::known});
            file = {file.offset + bytes, file.length - bytes};
        }
    }
}

void WriteLog::record_failed(std::uint32_t handle, const FileRange& range, std::int64_t bytes) {
    PieceCursor pieces = range.view->pieces(range.first_byte, bytes);
    Extent piece;
    while (pieces.next(piece)) {
        cut_out(piece);
        add(piece, {piece.length, 0, handle, State::failed});
    }
}

/// All of it but what reading tells.
WriteLog::Report WriteLog::report_of(std::uint32_t handle) {
    Report report;
    report.beyond_bytes = std::exchange(beyond_bytes_, 0);
    report.unchecked_bytes = report.beyond_bytes;
    for (const auto& [offset, record] : records_) {
        if (record.handle != handle || record.state == State::known) continue;
        if (record.state == State::unsure) report.unchecked_bytes += record.length;
        (record.state == State::unsure ? report.unsure : report.failed).push_back({offset, record.length});
    }
    layout::normalize(report.unsure);
    layout::normalize(report.failed);
    return report;
}

WriteLog::Report WriteLog::left_by(std::uint32_t handle) {
    Report report = report_of(handle);
    for (const auto& [offset, record] : records_)
        if (record.handle == handle && record.state == State::known) report.unsure.push_back({offset, record.length});
    layout::normalize(report.unsure);
    report.unchecked_bytes = report.beyond_bytes + layout::total_bytes(report.unsure).value_or(0);
    return report;
}

WriteLog::Report WriteLog::check(std::uint32_t handle, storage::Backend& backend, int descriptor) {
    Report report = report_of(handle);
    // Neighbours are read together.
    constexpr std::int64_t window_bytes = 1 << 20;
    constexpr std::int64_t longest_hole_bytes = 4096;
    Scratch buffer(window_bytes);
    struct Expected {
        Extent extent;
        std::uint64_t checksum;
    };
    std::vector<Expected> window;
    const auto compare = [&] {
        if (window.empty()) return;
        const std::int64_t start = window.front().extent.offset;
        const std::int64_t there =
            backend.read_at(descriptor, buffer.data(), window.back().extent.end() - start, start).bytes;
        for (const auto& [extent, checksum] : window) {
            const bool same = extent.end() - start <= there &&
                              checksum_of(buffer.data() + (extent.offset - start), extent.length) == checksum;
            report.checked_bytes += extent.length;
            if (!same) report.wrong.push_back(extent);
        }
        window.clear();
    };
    for (const auto& [offset, record] : records_) {
        if (record.handle != handle || record.state != State::known) continue;
        const Extent extent{offset, record.length};
        if (!window.empty() && (offset - window.back().extent.end() > longest_hole_bytes ||
                                extent.end() - window.front().extent.offset > window_bytes))
            compare();
        window.push_back({extent, record.checksum});
    }
    compare();
    layout::normalize(report.wrong);
    return report;
}

void WriteLog::cut(std::int64_t length) { cut_out({length, INT64_MAX - length}); }

template <typename Wanted>
ExtentList WriteLog::extents_where(Wanted wanted) const {
    ExtentList extents;
    for (const auto& [offset, record] : records_)
        if (wanted(record.state)) extents.push_back({offset, record.length});
    layout::normalize(extents);
    return extents;
}

ExtentList WriteLog::written_except(const ExtentList& wrong) const {
    return layout::subtract(extents_where([](State state) { return state != State::failed; }), wrong);
}

ExtentList WriteLog::known_except(const ExtentList& wrong) const {
    return layout::subtract(extents_where([](State state) { return state == State::known; }), wrong);
}

ExtentList WriteLog::hazy() const {
    return extents_where([](State state) { return state != State::known; });
}

}  // namespace ioweir::engine
