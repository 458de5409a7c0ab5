#include "format/reader.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>

#include "base/utf8_text.hpp"
#include "format/access_records.hpp"
#include "format/call_sites.hpp"
#include "format/event_codec.hpp"
#include "format/load.hpp"
#include "format/mapped_file.hpp"
#include "format/node_clock.hpp"
#include "format/seal.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t damage_lines_a_file = 20;  ///< a file full of rubbish must not make a report of its own

constexpr std::size_t file_header_bytes = sizeof(FileHeader);

constexpr std::uint32_t first_sealed_version = 2;                   ///< from which on there are checksums
constexpr std::uint64_t chunk_magic_unsealed = 0x314B4E4843574F49;  ///< "IOWCHNK1", of version 1
constexpr std::uint64_t most_lost = std::uint64_t{1} << 48;         ///< events or processes that a node can have lost

/// How far a run's times may be off: the clocks of machines, and the time that a run takes to begin and to end.
constexpr std::int64_t clock_slack_ns = 2'000'000'000;
constexpr std::int64_t day_ns = 86'400'000'000'000;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}
std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

struct ChunkView {
    const std::byte* data;
    ChunkHeader header;
};

/// What a process of this file needs while it is read.
struct ImageState {
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

}  // namespace

/// One trace file: its chunks, its clock, its processes, and where each thread's records lie.
class NodeFile {
public:
    NodeFile(Trace& trace, std::unordered_map<std::string, std::uint32_t>& path_index, SiteNumbers& site_numbers,
             AccessNumbers& access_numbers, std::string name, std::shared_ptr<MappedFile> file, const RunSpan& span)
        : trace_(trace),
          path_index_(path_index),
          site_numbers_(site_numbers),
          access_numbers_(access_numbers),
          name_(std::move(name)),
          file_(std::move(file)),
          span_(span) {}

    Result<bool> open() {
        if (file_->size() < file_header_bytes) return Error{"not a trace file (too short)", name_, ""};
        header_ = load<FileHeader>(file_->data());
        if (header_.magic != file_magic) return Error{"not a trace file (no ioweir mark at its start)", name_, ""};
        if (header_.version > format_version)
            return Error{"the trace is of a newer format version",
                         name_ + " (version " + std::to_string(header_.version) + ")",
                         "read it with a newer ioweir; this one reads up to version " + std::to_string(format_version)};
        if (header_.version == 0) return Error{"damaged header (format version 0)", name_, ""};
        if (is_sealed() && header_.constants != checksum_of_constants(header_))
            return Error{"damaged header (its checksum does not match)", name_, ""};
        if (header_.time_shift > 32) return Error{"damaged header (time unit)", name_, ""};
        header_.host[sizeof header_.host - 1] = '\0';
        host_ = static_cast<std::uint32_t>(trace_.hosts.size());
        trace_.hosts.push_back(utf8_text(header_.host));
        trace_.version = std::max(trace_.version, header_.version);
        count_lost();
        find_chunks();
        for (const ChunkView& chunk : chunks_) {
            add_sample({chunk.header.sample_tick, chunk.header.sample_monotonic_ns, chunk.header.sample_realtime_ns},
                       chunk.header.sealed_bytes != 0);
            index_chunk(chunk);
        }
        for (Stream& stream : streams_)
            std::stable_sort(stream.segments.begin(), stream.segments.end(),
                             [](const Segment& a, const Segment& b) { return a.tick < b.tick; });
        if (damage_count_ > damage_lines_a_file)
            trace_.damage.push_back(name_ + ": and " + std::to_string(damage_count_ - damage_lines_a_file) +
                                    " more places like these");
        take_samples();
        if (!clock_.settle(header_.tick_is_tsc == 0) && !chunks_.empty())
            trace_.damage.push_back(
                name_ + ": the clock's rate is unknown (too few samples, or damaged ones); times are in ticks");
        find_bounds();
        check_events();
        trace_.clocks.push_back(
            {clock_.aligned(), clock_.first_offset_ns(), clock_.last_offset_ns(), clock_.uncertainty_ns()});
        return true;
    }

    /// Earliest moment in this file, nanoseconds since 1970; the maximum when there is none.
    [[nodiscard]] std::int64_t earliest_ns() const {
        std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
        for (const auto& [image, tick] : start_ticks_) earliest = std::min(earliest, clock_.time_ns(tick));
        return earliest;
    }

    /// Everything but the events. After every file is open, because times count from the trace's epoch.
    void read_meta() {
        for (const auto& [image, tick] : start_ticks_)
            trace_.processes[images_.at(image).process].start_ns = time(tick);
        for (const MetaPlace& place : meta_)
            read_meta_record(place.image, load<std::uint16_t>(place.record), place.record,
                             load<std::uint32_t>(place.record + 4));
        sites_.settle(site_numbers_);
        settle_accesses();
        if (left_out_records_ == 0) return;
        trace_.left_out_records += left_out_records_;
        trace_.damage.push_back(name_ + ": " + std::to_string(left_out_records_) +
                                " records are left out: their times lie outside of the run, or their sizes or offsets "
                                "cannot be");
    }

    [[nodiscard]] std::size_t stream_count() const { return streams_.size(); }
    [[nodiscard]] const Stream& stream(std::size_t number) const { return streams_[number]; }
    /// The process of a stream; null when nothing describes it.
    [[nodiscard]] const ImageState* image_of(const Stream& stream) const {
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
    std::uint32_t path_of(const ImageState& image, std::uint32_t file) const {
        if (file == 0) return 0;
        const ImageState* state = &image;
        for (std::size_t steps = 0; steps <= images_.size(); ++steps) {
            if (file < state->paths.size() && state->paths[file] != 0) return state->paths[file];
            const auto parent = images_.find(trace_.processes[state->process].parent_image);
            if (parent == images_.end()) return 0;
            state = &parent->second;
        }
        return 0;
    }

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

    struct Sample {
        std::uint64_t tick, monotonic_ns, realtime_ns;
    };

    [[nodiscard]] bool is_sealed() const { return header_.version >= first_sealed_version; }

    void count_lost() {
        for (const auto& [count, to] : {std::pair{header_.dropped_events, &trace_.dropped},
                                        std::pair{header_.disabled_processes, &trace_.disabled_processes}}) {
            if (count <= most_lost)
                *to += count;
            else
                ++left_out_records_;
        }
    }

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
    void take_samples() {
        const Line line = has_sealed_ && last_sealed_.tick != first_sealed_.tick
                              ? Line{first_sealed_, rate_between(first_sealed_, last_sealed_)}
                              : line_of_most();
        for (const Sample& sample : unsealed_samples_) {
            if (line.rate == 0 || line.holds(sample))
                clock_.add(sample.tick, sample.monotonic_ns, sample.realtime_ns);
            else
                ++left_out_records_;
        }
    }
    static double passed(std::uint64_t from, std::uint64_t to) {
        return static_cast<double>(codec::difference(static_cast<std::int64_t>(to), static_cast<std::int64_t>(from)));
    }
    static double rate_between(const Sample& a, const Sample& b) {
        return passed(a.monotonic_ns, b.monotonic_ns) / passed(a.tick, b.tick);
    }
    /// How the clock went: from a sample on so many nanoseconds a tick; 0: not known.
    struct Line {
        Sample from{};
        double rate = 0;
        [[nodiscard]] bool holds(const Sample& sample) const {
            constexpr double part = 0.01, steps_ns = 2e9, noise_ns = 1e6;  // a node's CLOCK_REALTIME may be set anew
            const double expected = rate * passed(from.tick, sample.tick);
            const double allowed = part * std::abs(expected);
            return std::abs(passed(from.monotonic_ns, sample.monotonic_ns) - expected) <= allowed + noise_ns &&
                   std::abs(passed(from.realtime_ns, sample.realtime_ns) - expected) <= allowed + steps_ns;
        }
    };
    /// Of unsealed samples: the line through one of them and another on which most lie.
    [[nodiscard]] Line line_of_most() const {
        constexpr std::size_t enough = 3, tried = 16;  // two samples do not say which of them is damaged
        if (unsealed_samples_.size() < enough) return {};
        const std::size_t step = (unsealed_samples_.size() + tried - 1) / tried;
        Line best;
        std::size_t most = 0;
        for (std::size_t i = 0; i < unsealed_samples_.size(); i += step) {
            for (std::size_t j = i + step; j < unsealed_samples_.size(); j += step) {
                const Sample &a = unsealed_samples_[i], &b = unsealed_samples_[j];
                if (a.tick == b.tick) continue;
                const Line line{a, rate_between(a, b)};
                if (!(line.rate > 0)) continue;
                const auto held =
                    static_cast<std::size_t>(std::count_if(unsealed_samples_.begin(), unsealed_samples_.end(),
                                                           [&](const Sample& sample) { return line.holds(sample); }));
                if (held > most) {
                    most = held;
                    best = line;
                }
            }
        }
        return 2 * most > unsealed_samples_.size() ? best : Line{};
    }

    /// Between which ticks anything can have been recorded. A run's own begin and end count where this node's clock is known to be
    /// the run's, or says nothing else; of a clock that is elsewhere only how long the run took counts.
    void find_bounds() {
        const auto [first_ns, last_ns] = sampled_ns();
        const std::int64_t slack = clock_slack_ns + clock_.uncertainty_ns();
        const std::int64_t begin_ns = saturated_sum(span_.begin_ns, -slack);
        const std::int64_t end_ns = saturated_sum(span_.end_ns, slack);
        const bool spans =
            span_.known() && (clock_.aligned() || (first_ns <= last_ns && begin_ns <= first_ns && last_ns <= end_ns));
        const std::uint64_t last_sample = has_sealed_ ? last_sealed_.tick : 0;
        if (spans) {
            ticks_.begin = clock_.tick_at(begin_ns);
            ticks_.end = clock_.tick_at(end_ns);
        } else if (span_.known() && first_ns <= last_ns) {
            ticks_.begin = clock_.tick_at(saturated_sum(last_ns, begin_ns - end_ns));
            ticks_.end = clock_.tick_at(saturated_sum(first_ns, end_ns - begin_ns));
        } else {
            ticks_.end = clock_.tick_at(saturated_sum(now_ns(), day_ns));
        }
        ticks_.end = std::max(last_sample, ticks_.end);
        bool whole_families = true;  // an image's first call may have begun before its fork was noticed
        std::uint64_t first = ~std::uint64_t{0};
        for (auto& [image, tick] : start_ticks_) {
            if (!ticks_.hold(tick)) {
                ++left_out_records_;
                tick = std::clamp(tick, ticks_.begin, ticks_.end);
            }
            first = std::min(first, tick);
            const std::uint64_t parent = trace_.processes[images_.at(image).process].parent_image;
            whole_families = whole_families && (parent == 0 || start_ticks_.contains(parent));
        }
        for (const Stream& stream : streams_)
            for (const Segment& segment : stream.segments) first = std::min(first, segment.tick);
        if (whole_families && !start_ticks_.empty()) ticks_.begin = std::max(ticks_.begin, first);
        units_ = {.begin = ticks_.begin >> header_.time_shift, .end = ticks_.end >> header_.time_shift};
        if (span_.known()) units_.longest = clock_.ticks(longest_call_ns()) >> header_.time_shift;
    }
    /// Between which moments of this node's clock its samples lie: those of sealed chunks, else most of the others. The first
    /// is after the last where there are none.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> sampled_ns() const {
        if (has_sealed_) return {clock_.time_ns(first_sealed_.tick), clock_.time_ns(last_sealed_.tick)};
        if (unsealed_samples_.empty()) return {1, 0};
        std::vector<std::uint64_t> moments;
        moments.reserve(unsealed_samples_.size());
        for (const Sample& sample : unsealed_samples_) moments.push_back(sample.realtime_ns);
        const auto middle = moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 2);
        std::nth_element(moments.begin(), middle, moments.end());
        return {static_cast<std::int64_t>(*middle), static_cast<std::int64_t>(*middle)};
    }
    /// No call takes longer than the run; durations do not depend on how clocks are set.
    [[nodiscard]] std::int64_t longest_call_ns() const {
        constexpr std::int64_t rate_error = 100, noise_ns = 10'000'000;  // one part in so many
        const std::int64_t run = span_.end_ns - span_.begin_ns;
        return run + run / rate_error + noise_ns;
    }

    /// Segments in which something is not plausible are gone through once more, and what is not plausible is not counted.
    void check_events() {
        for (Stream& stream : streams_) {
            for (Segment& segment : stream.segments) {
                if (segment.times.begin > segment.times.end && !segment.backwards) continue;  // no events
                segment.checks = segment.backwards || segment.misplaced || segment.times.begin < units_.begin ||
                                 segment.times.end > units_.end || segment.longest > units_.longest;
                if (!segment.checks) continue;
                codec_->reset(segment.tick >> header_.time_shift);
                for (const std::byte* at = segment.begin; at != segment.end;) {
                    const auto tag = static_cast<std::uint8_t>(*at);
                    if (tag < codec::first_tag) {
                        at += tag == padding_tag ? 1 : meta_size(at, segment.end);
                        continue;
                    }
                    EventFields fields;
                    at = codec::decode(*codec_, fields, at, segment.end);
                    if (is_plausible(fields, units_)) continue;
                    ++left_out_records_;
                    --stream.events;
                }
            }
        }
    }

    void find_chunks() {
        bool seeking = false;  // behind a chunk that is left out: its own records look like anything
        std::size_t offset = chunk_alignment;
        while (offset + sizeof(ChunkHeader) <= file_->size()) {
            auto header = load<ChunkHeader>(file_->data() + offset);
            if (!is_sealed()) header.sealed_bytes = 0;
            const bool plausible = header.magic == (is_sealed() ? chunk_magic : chunk_magic_unsealed) &&
                                   header.self_offset == offset && header.size_bytes >= chunk_alignment &&
                                   header.size_bytes % chunk_alignment == 0;
            if (!plausible) {
                // All zero: handed out, but its process ended before it was used.
                if (header.magic != 0 && !seeking) damaged(offset, "is no chunk");
                offset += chunk_alignment;
                // A file may be much longer than what is in it.
                offset = std::max(offset, file_->next_data(offset) / chunk_alignment * chunk_alignment);
                continue;
            }
            if (header.sealed_bytes != 0 && !matches(header, offset)) {
                ++trace_.left_out_chunks;
                damaged(offset, "begins a chunk whose checksum does not match: it is left out");
                seeking = true;
                offset += chunk_alignment;  // its size may be what is damaged
                continue;
            }
            seeking = false;
            ChunkView view{file_->data() + offset, header};
            if (offset + header.size_bytes > file_->size()) {
                damaged(offset, "is cut off by the end of the file");
                view.header.sealed_bytes = 0;
                view.header.size_bytes = static_cast<std::uint32_t>(file_->size() - offset);
            }
            chunks_.push_back(view);
            offset += header.size_bytes;
        }
    }

    [[nodiscard]] bool matches(const ChunkHeader& header, std::size_t offset) const {
        // Cut off by the end of the file: what is there cannot be checked, and is read as far as it goes.
        if (offset + header.sealed_bytes > file_->size()) return offset + header.size_bytes > file_->size();
        return header.sealed_bytes >= sizeof header && header.sealed_bytes <= header.size_bytes &&
               header.checksum == checksum_of_chunk(header, file_->data() + offset);
    }

    /// Finds the threads' segments and the meta records. Everything is decoded once, to know where records begin and what
    /// of them is whole; a cursor reads only what was found whole here.
    void index_chunk(const ChunkView& chunk) {
        const std::byte* at = chunk.data + sizeof(ChunkHeader);
        const std::byte* const end = chunk.data + chunk.header.size_bytes;
        Stream* stream = nullptr;  // events have a meaning from the first StreamRecord on
        bool damage = false;
        while (at != end && *at != std::byte{0}) {
            const auto tag = static_cast<std::uint8_t>(*at);
            if (tag == padding_tag) {
                ++at;
                continue;
            }
            if (tag < codec::first_tag) {
                const std::size_t size = meta_size(at, end);
                damage = size == 0;
                if (damage) break;
                const auto kind = load<std::uint16_t>(at);
                if (kind == StreamRecord::record_kind && size >= sizeof(StreamRecord)) {
                    if (stream != nullptr) stream->segments.back().end = at;
                    stream = &begin_segment(chunk.header.image, at);
                } else {
                    index_meta(chunk, kind, at, size);
                }
                at += size;
                continue;
            }
            EventFields fields;
            const std::byte* next = stream != nullptr ? codec::decode(*codec_, fields, at, end) : nullptr;
            damage = next == nullptr || fields.function == 0 || fields.function >= function_count;
            if (damage) break;
            ++stream->events;
            Segment& segment = stream->segments.back();
            segment.times.begin = std::min(segment.times.begin, fields.start);
            segment.times.end = std::max(segment.times.end, fields.end);
            segment.backwards = segment.backwards || fields.end < fields.start;
            if (fields.end > fields.start) segment.longest = std::max(segment.longest, fields.end - fields.start);
            segment.misplaced = segment.misplaced || !has_plausible_place(fields);
            at = next;
        }
        if (stream != nullptr) stream->segments.back().end = at;
        if (damage)
            damaged(chunk.header.self_offset + static_cast<std::size_t>(at - chunk.data),
                    "is no record; the rest of its chunk is left out");
    }

    Stream& begin_segment(std::uint64_t image, const std::byte* data) {
        const auto record = load<StreamRecord>(data);
        const auto [place, fresh] = stream_index_[image].try_emplace(record.stream, streams_.size());
        if (fresh) streams_.push_back(Stream{image, record.thread, 0, {}});
        Stream& stream = streams_[place->second];
        stream.segments.push_back(Segment{.begin = data, .end = data, .tick = record.tick});
        codec_->reset(record.tick >> header_.time_shift);
        return stream;
    }

    void index_meta(const ChunkView& chunk, std::uint16_t kind, const std::byte* data, std::size_t size) {
        if (kind == ProcessRecord::record_kind && size >= sizeof(ProcessRecord)) {
            begin_process(data);
        } else if (kind == ClockRecord::record_kind && size >= sizeof(ClockRecord)) {
            const auto sample = load<ClockRecord>(data);
            const bool sealed = static_cast<std::size_t>(data - chunk.data) + size <= chunk.header.sealed_bytes;
            add_sample({sample.tick, sample.monotonic_ns, sample.realtime_ns}, sealed);
        } else if (kind == AlignRecord::record_kind && size >= sizeof(AlignRecord)) {
            const auto alignment = load<AlignRecord>(data);
            clock_.align(alignment.tick, alignment.reference_ns, alignment.round_trip_ticks,
                         alignment.how == static_cast<std::uint32_t>(AlignKind::same_machine));
        } else {
            meta_.push_back(MetaPlace{chunk.header.image, data});
        }
    }

    void damaged(std::size_t offset, const char* what) {
        if (++damage_count_ > damage_lines_a_file) return;
        trace_.damage.push_back(name_ + ": byte " + std::to_string(offset) + " " + what);
    }

    void begin_process(const std::byte* data) {
        const auto record = load<ProcessRecord>(data);
        if (record.size_bytes < sizeof(ProcessRecord) || images_.contains(record.image)) return;
        Process process;
        process.pid = record.pid;
        process.ppid = record.ppid;
        process.image = record.image;
        process.parent_image = record.parent_image;
        process.host = host_;
        process.executable = text_of<ProcessRecord>(data, record.size_bytes);
        images_[record.image] = ImageState{static_cast<std::uint32_t>(trace_.processes.size()), {}};
        start_ticks_[record.image] = record.start_tick;
        sites_.add_image(record.image, record.parent_image);
        accesses_.add_image(record.image, record.parent_image);
        trace_.processes.push_back(std::move(process));
    }

    void read_meta_record(std::uint64_t image, std::uint16_t kind, const std::byte* data, std::size_t size) {
        const auto found = images_.find(image);
        if (found == images_.end()) return;
        Process& process = trace_.processes[found->second.process];
        if (kind == FileRecord::record_kind && size >= sizeof(FileRecord)) {
            const std::uint32_t file = load<FileRecord>(data).file;
            auto& paths = found->second.paths;
            if (!is_dense(file)) return;
            if (paths.size() <= file) paths.resize(file + 1, 0);
            paths[file] = path_number(text_of<FileRecord>(data, size));
        } else if (kind == RankRecord::record_kind && size >= sizeof(RankRecord)) {
            const auto record = load<RankRecord>(data);
            if (!in_time(record.tick)) return;
            if (record.ranks > most_ranks || record.rank >= record.ranks) {
                ++left_out_records_;
                return;
            }
            process.rank = static_cast<std::int32_t>(record.rank);
            process.ranks = static_cast<std::int32_t>(record.ranks);
            process.mpi_init_ns = time(record.tick);
            process.mpi_library = text_of<RankRecord>(data, size);
        } else if (kind == FinalizeRecord::record_kind && size >= sizeof(FinalizeRecord)) {
            const std::uint64_t tick = load<FinalizeRecord>(data).tick;
            if (in_time(tick)) process.mpi_finalize_ns = time(tick);
        } else if (kind == EndRecord::record_kind && size >= sizeof(EndRecord)) {
            const std::uint64_t tick = load<EndRecord>(data).tick;
            if (in_time(tick)) process.end_ns = time(tick);
        } else if (kind == ModuleRecord::record_kind && size >= sizeof(ModuleRecord)) {
            sites_.add_module(image, data, size, site_numbers_);
        } else if (kind == SiteRecord::record_kind && size >= sizeof(SiteRecord)) {
            sites_.add_site(image, data, size);
        } else if (kind == TypeRecord::record_kind && size >= sizeof(TypeRecord)) {
            accesses_.add_type(image, data, size);
        } else if (kind == ViewRecord::record_kind && size >= sizeof(ViewRecord)) {
            accesses_.add_view(image, data, size);
        } else if (kind == AccessRecord::record_kind && size >= sizeof(AccessRecord)) {
            if (is_dense(load<AccessRecord>(data).access)) accesses_.add_access(image, data, size);
        } else if (kind == NoteRecord::record_kind && size >= sizeof(NoteRecord)) {
            const auto record = load<NoteRecord>(data);
            if (!in_time(record.tick) || !can_be(record.value)) return;
            auto [path, text] = words_of<NoteRecord>(data, size);
            trace_.notes.push_back({found->second.process, record.code, record.value, time(record.tick),
                                    std::move(path), std::move(text)});
        } else if (kind == VerdictRecord::record_kind && size >= sizeof(VerdictRecord)) {
            const auto record = load<VerdictRecord>(data);
            if (!in_time(record.tick) || !can_be(record.calls) || !can_be(record.bytes) || !can_be(record.offset))
                return;
            auto [path, text] = words_of<VerdictRecord>(data, size);
            trace_.verdicts.push_back({found->second.process, record.outcome, record.calls, record.bytes, record.offset,
                                       std::move(path), std::move(text)});
        } else if (kind == EngineRecord::record_kind && size >= sizeof(EngineRecord)) {
            const auto record = load<EngineRecord>(data);
            bool holds = in_time(record.tick);
            EngineFigures<std::int64_t>::for_each(record.figures, [&](const char*, bool, std::int64_t figure) {
                // Differences of two clocks may be below zero.
                holds = holds && can_be(figure < -1 ? -(figure + 1) : figure);
            });
            if (!holds) return;
            auto [path, text] = words_of<EngineRecord>(data, size);
            trace_.engine_work.push_back({found->second.process, std::move(path), record.figures});
        }
    }

    /// File ids are dense: one that lies far beyond the records there are is damage.
    [[nodiscard]] bool is_dense(std::uint32_t file) const { return file <= file_->size() / sizeof(FileRecord); }

    /// An access has its file's path.
    void settle_accesses() {
        accesses_.settle(access_numbers_, [this](const AccessRecords::Found& found) {
            Access access;
            const auto image = images_.find(found.image);
            if (image == images_.end()) return access;
            access.process = image->second.process;
            access.path = path_of(image->second, found.file);
            auto& paths = image->second.paths;
            if (paths.size() <= found.access) paths.resize(found.access + 1, 0);
            paths[found.access] = access.path;
            return access;
        });
    }

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

    template <typename Record>
    static std::string text_of(const std::byte* data, std::size_t size) {
        const char* text = reinterpret_cast<const char*>(data) + sizeof(Record);
        return utf8_text({text, ::strnlen(text, size - sizeof(Record))});
    }

    struct Words {
        std::string path, text;
    };
    /// Of a record whose text is a path, a zero byte and words.
    template <typename Record>
    static Words words_of(const std::byte* data, std::size_t size) {
        const char* text = reinterpret_cast<const char*>(data) + sizeof(Record);
        const std::size_t room = size - sizeof(Record);
        const std::size_t path_bytes = ::strnlen(text, room);
        Words words{utf8_text({text, path_bytes}), ""};
        if (path_bytes + 1 < room) {
            text += path_bytes + 1;
            words.text = utf8_text({text, ::strnlen(text, room - path_bytes - 1)});
        }
        return words;
    }

    std::uint32_t path_number(const std::string& path) {
        const auto [place, fresh] = path_index_.try_emplace(path, static_cast<std::uint32_t>(trace_.paths.size()));
        if (fresh) trace_.paths.push_back(path);
        return place->second;
    }

    Trace& trace_;
    std::unordered_map<std::string, std::uint32_t>& path_index_;
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
    std::unordered_map<std::uint64_t, ImageState> images_;
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

ThreadCursor::ThreadCursor(const NodeFile& file, std::uint32_t thread, std::size_t stream)
    : file_(&file), thread_(thread), stream_(stream) {}
ThreadCursor::ThreadCursor(ThreadCursor&&) noexcept = default;
ThreadCursor& ThreadCursor::operator=(ThreadCursor&&) noexcept = default;
ThreadCursor::~ThreadCursor() = default;

bool ThreadCursor::next_segment() {
    const std::vector<Segment>& segments = file_->stream(stream_).segments;
    if (segment_ == segments.size()) {
        codec_.reset();
        return false;
    }
    if (codec_ == nullptr) codec_ = std::make_unique<codec::State>();
    const Segment& segment = segments[segment_++];
    codec_->reset(segment.tick >> file_->time_shift());
    checks_ = segment.checks;
    at_ = segment.begin;
    end_ = segment.end;
    return true;
}

bool ThreadCursor::next(Event& event) {
    for (;;) {
        while (at_ != end_) {
            const auto tag = static_cast<std::uint8_t>(*at_);
            if (tag == padding_tag) {
                ++at_;
                continue;
            }
            if (tag < codec::first_tag) {
                at_ += NodeFile::meta_size(at_, end_);
                continue;
            }
            EventFields fields;
            at_ = codec::decode(*codec_, fields, at_, end_);
            if (checks_ && !is_plausible(fields, file_->event_bounds())) continue;
            if (fields.file != last_file_) {
                last_file_ = fields.file;
                last_path_ = file_->path_of(*file_->image_of(file_->stream(stream_)), fields.file);
                last_access_ = file_->access_of(file_->stream(stream_), fields.file);
            }
            if (fields.site != last_site_) {
                last_site_ = fields.site;
                last_site_number_ = file_->site_of(file_->stream(stream_), fields.site);
            }
            event.thread = thread_;
            event.sequence = fields.sequence;
            event.parent = fields.parent;
            event.path = last_path_;
            event.start_ns = file_->time(fields.start << file_->time_shift());
            event.duration_ns = file_->duration(fields.end - fields.start);
            event.offset = fields.offset;
            event.bytes = fields.failed ? 0 : fields.bytes;
            event.error = fields.failed ? static_cast<std::int32_t>(codec::difference(0, fields.bytes)) : 0;
            event.function = fields.function;
            event.origin = fields.origin;
            event.failed = fields.failed;
            event.missing = fields.failed ? 0 : fields.missing;
            event.site = last_site_number_;
            event.access = last_access_;
            return true;
        }
        if (!next_segment()) return false;
    }
}

TraceFiles::TraceFiles() : about_(std::make_unique<Trace>()) {}
TraceFiles::TraceFiles(TraceFiles&&) noexcept = default;
TraceFiles& TraceFiles::operator=(TraceFiles&&) noexcept = default;
TraceFiles::~TraceFiles() = default;

struct TraceFiles::Source {
    std::string name;
    std::shared_ptr<MappedFile> file;
};

Result<TraceFiles> TraceFiles::open(const std::vector<std::string>& files, const RunSpan& span) {
    std::vector<Source> sources;
    for (const std::string& name : files) {
        auto file = MappedFile::open(name);
        if (!file) return file.error();
        sources.push_back({name, file.take()});
    }
    return index(std::move(sources), span);
}

Result<TraceFiles> TraceFiles::read(std::span<const TraceBytes> files, const RunSpan& span) {
    std::vector<Source> sources;
    for (const TraceBytes& one : files) sources.push_back({one.name, MappedFile::of(one.bytes)});
    return index(std::move(sources), span);
}

Result<TraceFiles> TraceFiles::index(std::vector<Source> sources, const RunSpan& span) {
    TraceFiles result;
    Trace& trace = *result.about_;
    trace.paths.emplace_back();
    std::unordered_map<std::string, std::uint32_t> path_index;
    SiteNumbers site_numbers(trace);
    AccessNumbers access_numbers(trace);
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    for (Source& source : sources) {
        result.files_.push_back(std::make_unique<NodeFile>(trace, path_index, site_numbers, access_numbers,
                                                           std::move(source.name), std::move(source.file), span));
        if (auto opened = result.files_.back()->open(); !opened) return opened.error();
        earliest = std::min(earliest, result.files_.back()->earliest_ns());
    }
    trace.epoch_ns = earliest == std::numeric_limits<std::int64_t>::max() ? 0 : earliest;
    for (std::uint32_t file = 0; file < result.files_.size(); ++file) {
        NodeFile& node = *result.files_[file];
        node.read_meta();
        for (std::uint32_t number = 0; number < node.stream_count(); ++number) {
            const Stream& stream = node.stream(number);
            const ImageState* image = node.image_of(stream);
            if (image == nullptr) {
                node.leave_out(stream);
                continue;
            }
            result.threads_.push_back(Thread{image->process, stream.kernel_id, stream.events});
            result.places_.push_back(Place{file, number});
            result.event_count_ += stream.events;
        }
    }
    return result;
}

ThreadCursor TraceFiles::cursor(std::uint32_t thread) const {
    const Place& place = places_[thread];
    return {*files_[place.file], thread, place.stream};
}

Events TraceFiles::read_events() const {
    Events out;
    out.reserve(event_count_);
    for (std::uint32_t thread = 0; thread < threads_.size(); ++thread) {
        ThreadCursor events = cursor(thread);
        Event event;
        while (events.next(event)) {
            out.push_back(event, threads_[thread].process);
        }
    }
    return out;
}

void Events::reserve(std::size_t count) {
    process.reserve(count);
    thread.reserve(count);
    sequence.reserve(count);
    parent.reserve(count);
    function.reserve(count);
    origin.reserve(count);
    flags.reserve(count);
    path.reserve(count);
    start_ns.reserve(count);
    duration_ns.reserve(count);
    offset.reserve(count);
    bytes.reserve(count);
    error.reserve(count);
    site.reserve(count);
    access.reserve(count);
}

void Events::push_back(const Event& event, std::uint32_t of_process) {
    process.push_back(of_process);
    thread.push_back(event.thread);
    sequence.push_back(event.sequence);
    parent.push_back(event.parent);
    function.push_back(event.function);
    origin.push_back(event.origin);
    flags.push_back(event.failed ? flag_failed : event.missing != 0 ? flag_short : 0);
    path.push_back(event.path);
    start_ns.push_back(event.start_ns);
    duration_ns.push_back(event.duration_ns);
    offset.push_back(event.offset);
    bytes.push_back(event.bytes);
    error.push_back(event.error);
    site.push_back(event.site);
    access.push_back(event.access);
}

Result<Trace> read_trace(const std::vector<std::string>& files) {
    auto opened = TraceFiles::open(files);
    if (!opened) return opened.error();
    Trace trace = opened.value().about();
    trace.events = opened.value().read_events();
    return trace;
}

}  // namespace ioweir::format
