// One trace file while it is read: its chunks, its clock, its processes, and where each thread's records lie.
// What does not live here: events one after the other, and several files together (reader.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "format/access_records.hpp"
#include "format/call_sites.hpp"
#include "format/event_codec.hpp"
#include "format/load.hpp"
#include "format/mapped_file.hpp"
#include "format/node_clock.hpp"
#include "format/plausible.hpp"
#include "format/reader.hpp"

namespace ioweir::format {

/// One trace file: its chunks, its clock, its processes, and where each thread's records lie.
class NodeFile {
public:
    struct ChunkView {
        const std::byte* data;
        ChunkHeader header;
    };

    /// What a process of this file needs while it is read.
    struct Image {
        std::uint32_t process;
        std::vector<std::uint32_t> paths;  ///< by file id
    };

    /// Records of one thread that lie together: from a StreamRecord to the next one, or to the end of the chunk's records.
    struct Segment {
        const std::byte* begin;
        const std::byte* end;
        std::uint64_t tick;  ///< where the thread's time was; segments of a thread follow each other by it
        Bounds times{.begin = ~std::uint64_t{0}, .end = 0};  ///< of its events, in units: the first begin, the last end
        std::uint64_t longest = 0;                           ///< of its events' durations, in units
        bool backwards = false;                              ///< an event ends before it begins
        bool misplaced = false;                              ///< an event has an offset or a size that cannot be
        bool checks = false;                                 ///< not all of its events are plausible
    };

    /// The records of one thread in this file.
    struct Stream {
        std::uint64_t image;
        std::uint32_t kernel_id;
        std::uint64_t events = 0;
        std::vector<Segment> segments;
    };
    /// The same moment on three clocks of the node.
    struct Sample {
        std::uint64_t tick, monotonic_ns, realtime_ns;
    };

    NodeFile(Trace& trace, std::unordered_map<std::string, std::uint32_t>& path_index, SiteNumbers& site_numbers,
             AccessNumbers& access_numbers, std::string name, std::shared_ptr<MappedFile> file, const RunSpan& span)
        : trace_(trace),
          path_index_(path_index),
          site_numbers_(site_numbers),
          access_numbers_(access_numbers),
          name_(std::move(name)),
          file_(std::move(file)),
          span_(span) {}

    Result<bool> open();

    /// Earliest moment in this file, nanoseconds since 1970; the maximum when there is none.
    [[nodiscard]] std::int64_t earliest_ns() const {
        std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
        for (const auto& [image, tick] : start_ticks_) earliest = std::min(earliest, clock_.time_ns(tick));
        return earliest;
    }

    /// Everything but the events. After every file is open, because times count from the trace's epoch.
    void read_meta();

    [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }
    [[nodiscard]] const Stream& stream(std::size_t number) const { return streams_[number]; }
    /// The process of a stream; null when nothing describes it.
    [[nodiscard]] const Image* image_of(const Stream& stream) const {
        const auto found = images_.find(stream.image);
        return found == images_.end() ? nullptr : &found->second;
    }
    void leave_out(const Stream& stream) const {
        trace_.damage.push_back(name_ + ": image " + std::to_string(stream.image) + " is not described; its " +
                                std::to_string(stream.events) + " events are left out");
    }
    [[nodiscard]] std::uint32_t time_shift() const { return header_.time_shift; }
    [[nodiscard]] const Bounds& event_bounds() const { return units_; }
    [[nodiscard]] std::int64_t time(std::uint64_t tick) const {
        return codec::difference(clock_.time_ns(tick), trace_.epoch_ns);
    }
    [[nodiscard]] std::int64_t duration(std::uint64_t units) const {
        return clock_.duration(static_cast<std::int64_t>(units << header_.time_shift));
    }

    /// A file id is named in its own image or, for descriptors inherited over fork, in an ancestor.
    std::uint32_t path_of(const Image& image, std::uint32_t file) const;

    /// Index into Trace::accesses of what an image calls `file`; 0 when it is no access.
    [[nodiscard]] std::uint32_t access_of(const Stream& stream, std::uint32_t file) const {
        return accesses_.number(stream.image, file);
    }

    /// Index into Trace::sites of what an image calls `site`.
    [[nodiscard]] std::uint32_t site_of(const Stream& stream, std::uint32_t site) const {
        return sites_.number(stream.image, site);
    }

    /// Size of the meta record at `at`; 0 when there is none.
    static std::size_t meta_size(const std::byte* at, const std::byte* end) {
        if (end - at < 16 || load<std::uint16_t>(at) < first_meta_kind) return 0;
        const std::size_t size = load<std::uint32_t>(at + 4);
        return size < 16 || size % 16 != 0 || size > static_cast<std::size_t>(end - at) ? 0 : size;
    }

private:
    struct MetaPlace {
        std::uint64_t image;
        const std::byte* record;
    };

    [[nodiscard]] bool is_sealed() const;

    void count_lost();

    /// A sample of a sealed chunk is as it was taken; another one may be damaged.
    void add_sample(const Sample& sample, bool sealed) {
        if (sample.monotonic_ns == 0) return;
        if (!sealed) {
            unsealed_samples_.push_back(sample);
            return;
        }
        clock_.add(sample.tick, sample.monotonic_ns, sample.realtime_ns);
        if (!has_sealed_ || sample.tick < first_sealed_.tick) first_sealed_ = sample;
        if (!has_sealed_ || sample.tick > last_sealed_.tick) last_sealed_ = sample;
        has_sealed_ = true;
    }
    /// Those of unsealed chunks, as far as they agree with those of sealed ones, or where there are none, with most of themselves.
    void take_samples();
    struct Line;
    /// Of unsealed samples: the line through one of them and another on which most lie.
    [[nodiscard]] Line line_of_most() const;

    /// Between which ticks anything can have been recorded. A run's own begin and end count where this node's clock is known to be
    /// the run's, or says nothing else; of a clock that is elsewhere only how long the run took counts.
    void find_bounds();
    /// Between which moments of this node's clock its samples lie: those of sealed chunks, else most of the others. The first
    /// is after the last where there are none.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> sampled_ns() const;
    /// No call takes longer than the run; durations do not depend on how clocks are set.
    [[nodiscard]] std::int64_t longest_call_ns() const {
        constexpr std::int64_t rate_error = 100, noise_ns = 10'000'000;  // one part in so many
        const std::int64_t run = span_.end_ns - span_.begin_ns;
        return run + run / rate_error + noise_ns;
    }

    /// Segments in which something is not plausible are gone through once more, and what is not plausible is not counted.
    void check_events();

    void find_chunks();

    [[nodiscard]] bool matches(const ChunkHeader& header, std::size_t offset) const;

    /// Finds the threads' segments and the meta records. Everything is decoded once, to know where records begin and what
    /// of them is whole; a cursor reads only what was found whole here.
    void index_chunk(const ChunkView& chunk);

    Stream& begin_segment(std::uint64_t image, const std::byte* data);

    void index_meta(const ChunkView& chunk, std::uint16_t kind, const std::byte* data, std::size_t size);

    void damaged(std::size_t offset, const char* what);

    void begin_process(const std::byte* data);

    void read_meta_record(std::uint64_t image, std::uint16_t kind, const std::byte* data, std::size_t size);
    /// What the preload said: notes, verdicts, what the engine did.
    void read_said_record(std::uint32_t process, std::uint16_t kind, const std::byte* data, std::size_t size);

    /// File ids are dense: one that lies far beyond the records there are is damage.
    [[nodiscard]] bool is_dense(std::uint32_t file) const { return file <= file_->size() / sizeof(FileRecord); }

    /// An access has its file's path.
    void settle_accesses();

    /// False, and counted, for a moment that was not in the run.
    bool in_time(std::uint64_t tick) {
        const bool holds = ticks_.hold(tick);
        if (!holds) ++left_out_records_;
        return holds;
    }
    /// False, and counted, for no number of calls or bytes, and for no offset.
    bool can_be(std::int64_t value) {
        constexpr std::int64_t most = std::int64_t{1} << 60;
        const bool holds = value >= -1 && value <= most;
        if (!holds) ++left_out_records_;
        return holds;
    }

    /// Of a name as it stands in the file.
    std::uint32_t path_number(std::string_view name);

    Trace& trace_;
    /// Names are looked up as they are, without a copy: each rank has its own record of a file that all use.
    struct NameHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
    };

    std::unordered_map<std::string, std::uint32_t>& path_index_;  ///< by text
    std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> name_index_;
    SiteNumbers& site_numbers_;
    AccessNumbers& access_numbers_;
    std::string name_;
    std::shared_ptr<MappedFile> file_;
    FileHeader header_{};
    std::uint32_t host_ = 0;
    NodeClock clock_;
    CallSites sites_;
    AccessRecords accesses_;
    std::vector<ChunkView> chunks_;
    std::unordered_map<std::uint64_t, Image> images_;
    std::unordered_map<std::uint64_t, std::uint64_t> start_ticks_;
    std::vector<MetaPlace> meta_;
    std::vector<Stream> streams_;
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::size_t>>
        stream_index_;  ///< by image, number
    std::size_t damage_count_ = 0;
    std::uint64_t left_out_records_ = 0;
    RunSpan span_;
    Bounds ticks_;  ///< of this node's records
    Bounds units_;  ///< the same, of its events
    std::vector<Sample> unsealed_samples_;
    Sample first_sealed_{}, last_sealed_{};
    bool has_sealed_ = false;
    std::unique_ptr<codec::State> codec_ = std::make_unique<codec::State>();
};

}  // namespace ioweir::format
