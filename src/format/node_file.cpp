#include "format/node_file.hpp"

#include <cstring>

#include "base/utf8_text.hpp"
#include "format/seal.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t damage_lines_a_file = 20;  ///< a file full of rubbish must not make a report of its own

constexpr std::size_t file_header_bytes = sizeof(FileHeader);

constexpr std::uint32_t first_sealed_version = 2;                   ///< from which on there are checksums
constexpr std::uint64_t chunk_magic_unsealed = 0x314B4E4843574F49;  ///< "IOWCHNK1", of version 1
constexpr std::uint64_t most_lost = std::uint64_t{1} << 48;         ///< events or processes that a node can have lost

template <typename Record>
std::string_view bytes_of(const std::byte* data, std::size_t size) {
    const char* text = reinterpret_cast<const char*>(data) + sizeof(Record);
    return {text, ::strnlen(text, size - sizeof(Record))};
}

template <typename Record>
std::string text_of(const std::byte* data, std::size_t size) {
    return utf8_text(bytes_of<Record>(data, size));
}

struct Words {
    std::string path, text;
};
/// Of a record whose text is a path, a zero byte and words.
template <typename Record>
Words words_of(const std::byte* data, std::size_t size) {
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

}  // namespace

bool NodeFile::is_sealed() const { return header_.version >= first_sealed_version; }

Result<bool> NodeFile::open() {
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
        trace_.damage.push_back(name_ +
                                ": the clock's rate is unknown (too few samples, or damaged ones); times are in ticks");
    find_bounds();
    check_events();
    trace_.clocks.push_back(
        {clock_.aligned(), clock_.first_offset_ns(), clock_.last_offset_ns(), clock_.uncertainty_ns()});
    return true;
}

void NodeFile::read_meta() {
    for (const auto& [image, tick] : start_ticks_) trace_.processes[images_.at(image).process].start_ns = time(tick);
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

void NodeFile::count_lost() {
    for (const auto& [count, to] : {std::pair{header_.dropped_events, &trace_.dropped},
                                    std::pair{header_.disabled_processes, &trace_.disabled_processes}}) {
        if (count <= most_lost)
            *to += count;
        else
            ++left_out_records_;
    }
}

void NodeFile::find_chunks() {
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

bool NodeFile::matches(const ChunkHeader& header, std::size_t offset) const {
    // Cut off by the end of the file: what is there cannot be checked, and is read as far as it goes.
    if (offset + header.sealed_bytes > file_->size()) return offset + header.size_bytes > file_->size();
    return header.sealed_bytes >= sizeof header && header.sealed_bytes <= header.size_bytes &&
           header.checksum == checksum_of_chunk(header, file_->data() + offset);
}

void NodeFile::index_chunk(const ChunkView& chunk) {
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

NodeFile::Stream& NodeFile::begin_segment(std::uint64_t image, const std::byte* data) {
    const auto record = load<StreamRecord>(data);
    const auto [place, fresh] = stream_index_[image].try_emplace(record.stream, streams_.size());
    if (fresh) streams_.push_back(Stream{image, record.thread, 0, {}});
    Stream& stream = streams_[place->second];
    stream.segments.push_back(Segment{.begin = data, .end = data, .tick = record.tick});
    codec_->reset(record.tick >> header_.time_shift);
    return stream;
}

void NodeFile::index_meta(const ChunkView& chunk, std::uint16_t kind, const std::byte* data, std::size_t size) {
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

void NodeFile::damaged(std::size_t offset, const char* what) {
    if (++damage_count_ > damage_lines_a_file) return;
    trace_.damage.push_back(name_ + ": byte " + std::to_string(offset) + " " + what);
}

void NodeFile::begin_process(const std::byte* data) {
    const auto record = load<ProcessRecord>(data);
    if (record.size_bytes < sizeof(ProcessRecord) || images_.contains(record.image)) return;
    Process process;
    process.pid = record.pid;
    process.ppid = record.ppid;
    process.image = record.image;
    process.parent_image = record.parent_image;
    process.host = host_;
    process.executable = text_of<ProcessRecord>(data, record.size_bytes);
    images_[record.image] = Image{static_cast<std::uint32_t>(trace_.processes.size()), {}};
    start_ticks_[record.image] = record.start_tick;
    sites_.add_image(record.image, record.parent_image);
    accesses_.add_image(record.image, record.parent_image);
    trace_.processes.push_back(std::move(process));
}

void NodeFile::read_meta_record(std::uint64_t image, std::uint16_t kind, const std::byte* data, std::size_t size) {
    const auto found = images_.find(image);
    if (found == images_.end()) return;
    Process& process = trace_.processes[found->second.process];
    if (kind == FileRecord::record_kind && size >= sizeof(FileRecord)) {
        const std::uint32_t file = load<FileRecord>(data).file;
        auto& paths = found->second.paths;
        if (!is_dense(file)) return;
        if (paths.size() <= file) paths.resize(file + 1, 0);
        paths[file] = path_number(bytes_of<FileRecord>(data, size));
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
    } else {
        read_said_record(found->second.process, kind, data, size);
    }
}

void NodeFile::read_said_record(std::uint32_t process, std::uint16_t kind, const std::byte* data, std::size_t size) {
    if (kind == NoteRecord::record_kind && size >= sizeof(NoteRecord)) {
        const auto record = load<NoteRecord>(data);
        if (!in_time(record.tick) || !can_be(record.value)) return;
        auto [path, text] = words_of<NoteRecord>(data, size);
        trace_.notes.push_back(
            {process, record.code, record.value, time(record.tick), std::move(path), std::move(text)});
    } else if (kind == VerdictRecord::record_kind && size >= sizeof(VerdictRecord)) {
        const auto record = load<VerdictRecord>(data);
        if (!in_time(record.tick) || !can_be(record.calls) || !can_be(record.bytes) || !can_be(record.offset)) return;
        auto [path, text] = words_of<VerdictRecord>(data, size);
        trace_.verdicts.push_back(
            {process, record.outcome, record.calls, record.bytes, record.offset, std::move(path), std::move(text)});
    } else if (kind == EngineRecord::record_kind && size >= sizeof(EngineRecord)) {
        const auto record = load<EngineRecord>(data);
        bool holds = in_time(record.tick);
        EngineFigures<std::int64_t>::for_each(record.figures, [&](const char*, bool, std::int64_t figure) {
            // Differences of two clocks may be below zero.
            holds = holds && can_be(figure < -1 ? -(figure + 1) : figure);
        });
        if (!holds) return;
        auto [path, text] = words_of<EngineRecord>(data, size);
        trace_.engine_work.push_back({process, std::move(path), record.figures});
    } else if (kind == WeighedRecord::record_kind && size >= sizeof(WeighedRecord)) {
        const auto record = load<WeighedRecord>(data);
        bool holds = in_time(record.tick);
        WeighedFigures<std::int64_t>::for_each(
            record.figures, [&](const char*, bool, std::int64_t figure) { holds = holds && can_be(figure); });
        if (!holds) return;
        auto [path, text] = words_of<WeighedRecord>(data, size);
        trace_.weighed_calls.push_back({process, std::move(path), record.call, record.chosen, record.figures});
    } else if (kind == ChosenRecord::record_kind && size >= sizeof(ChosenRecord)) {
        const auto record = load<ChosenRecord>(data);
        bool holds = in_time(record.tick);
        ChosenFigures<std::int64_t>::for_each(
            record.figures, [&](const char*, bool, std::int64_t figure) { holds = holds && can_be(figure); });
        if (!holds) return;
        auto [series, words] = words_of<ChosenRecord>(data, size);
        trace_.chosen_files.push_back(
            {process, std::move(series), std::move(words), record.step, record.ranks, record.figures});
    }
}

void NodeFile::settle_accesses() {
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

std::uint32_t NodeFile::path_of(const Image& image, std::uint32_t file) const {
    if (file == 0) return 0;
    const Image* state = &image;
    for (std::size_t steps = 0; steps <= images_.size(); ++steps) {
        if (file < state->paths.size() && state->paths[file] != 0) return state->paths[file];
        const auto parent = images_.find(trace_.processes[state->process].parent_image);
        if (parent == images_.end()) return 0;
        state = &parent->second;
    }
    return 0;
}

std::uint32_t NodeFile::path_number(std::string_view name) {
    if (const auto known = name_index_.find(name); known != name_index_.end()) return known->second;
    std::string text = utf8_text(name);
    const auto [place, fresh] =
        path_index_.try_emplace(std::move(text), static_cast<std::uint32_t>(trace_.paths.size()));
    if (fresh) trace_.paths.push_back(place->first);
    name_index_.emplace(name, place->second);
    return place->second;
}

}  // namespace ioweir::format
