#include "format/reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>

#include "format/event_codec.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t file_header_bytes = sizeof(FileHeader);

/// A file mapped for reading; unmapped when it goes.
class MappedFile {
public:
    static Result<std::shared_ptr<MappedFile>> open(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return Error{"cannot open the trace file", path, std::strerror(errno)};
        struct stat status{};
        if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
            ::close(fd);
            return Error{"not a trace file", path, "give a directory that 'ioweir run' made"};
        }
        auto file = std::make_shared<MappedFile>();
        file->size_ = static_cast<std::size_t>(status.st_size);
        if (file->size_ != 0) {
            void* mapped = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
            if (mapped == MAP_FAILED) {
                const int error = errno;
                ::close(fd);
                return Error{"cannot map the trace file", path, std::strerror(error)};
            }
            file->data_ = static_cast<const std::byte*>(mapped);
            ::madvise(mapped, file->size_, MADV_SEQUENTIAL);
        }
        ::close(fd);
        return file;
    }
    MappedFile() = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
    }
    [[nodiscard]] const std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

template <typename T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Ticks to nanoseconds, from samples of the clocks. With one node's time stamp counters in step, the two samples
/// farthest apart give the best rate.
class NodeClock {
public:
    void add(std::uint64_t tick, std::uint64_t monotonic_ns, std::uint64_t realtime_ns) {
        if (monotonic_ns == 0) return;
        if (!known_ || tick < first_.tick) first_ = {tick, monotonic_ns, realtime_ns};
        if (!known_ || tick > last_.tick) last_ = {tick, monotonic_ns, realtime_ns};
        known_ = true;
    }
    [[nodiscard]] bool known() const { return known_; }
    /// Nanoseconds since 1970.
    [[nodiscard]] std::int64_t realtime_ns(std::uint64_t tick) const {
        return static_cast<std::int64_t>(first_.realtime_ns) + duration(static_cast<std::int64_t>(tick - first_.tick));
    }
    [[nodiscard]] std::int64_t duration(std::int64_t tick_difference) const {
        return static_cast<std::int64_t>(static_cast<double>(tick_difference) * ns_per_tick_);
    }
    /// Call once, when every sample is in. False when the rate cannot be told: a tick then counts as a nanosecond.
    bool settle(bool ticks_are_ns) {
        if (ticks_are_ns) return true;
        if (!known_ || last_.tick == first_.tick) return false;
        ns_per_tick_ = static_cast<double>(last_.monotonic_ns - first_.monotonic_ns) /
                       static_cast<double>(last_.tick - first_.tick);
        return true;
    }

private:
    struct Sample {
        std::uint64_t tick, monotonic_ns, realtime_ns;
    };
    Sample first_{}, last_{};
    double ns_per_tick_ = 1.0;
    bool known_ = false;
};

struct ChunkView {
    const std::byte* data;
    ChunkHeader header;
};

/// What a process of this file needs while it is read.
struct ImageState {
    std::uint32_t process;
    std::vector<std::uint32_t> paths;  ///< by file id
};

class FileReader {
public:
    FileReader(Trace& trace, std::unordered_map<std::string, std::uint32_t>& path_index, std::string name,
               std::shared_ptr<MappedFile> file)
        : trace_(trace), path_index_(path_index), name_(std::move(name)), file_(std::move(file)) {}

    Result<bool> open() {
        if (file_->size() < file_header_bytes) return Error{"not a trace file (too short)", name_, ""};
        header_ = load<FileHeader>(file_->data());
        if (header_.magic != file_magic) return Error{"not a trace file (no ioweir mark at its start)", name_, ""};
        if (header_.version > format_version)
            return Error{"the trace is of a newer format version",
                         name_ + " (version " + std::to_string(header_.version) + ")",
                         "read it with a newer ioweir; this one reads up to version " + std::to_string(format_version)};
        if (header_.time_shift > 32) return Error{"damaged header (time unit)", name_, ""};
        header_.host[sizeof header_.host - 1] = '\0';
        host_ = static_cast<std::uint32_t>(trace_.hosts.size());
        trace_.hosts.emplace_back(header_.host);
        trace_.version = std::max(trace_.version, header_.version);
        trace_.dropped += header_.dropped_events;
        trace_.disabled_processes += header_.disabled_processes;
        find_chunks();
        for (const ChunkView& chunk : chunks_) {
            clock_.add(chunk.header.sample_tick, chunk.header.sample_monotonic_ns, chunk.header.sample_realtime_ns);
            for_each_record(
                chunk, true,
                [&](std::uint16_t kind, const std::byte* record, std::size_t size) {
                    if (kind == ProcessRecord::record_kind && size >= sizeof(ProcessRecord)) begin_process(record);
                    if (kind == ClockRecord::record_kind && size >= sizeof(ClockRecord)) {
                        const auto sample = load<ClockRecord>(record);
                        clock_.add(sample.tick, sample.monotonic_ns, sample.realtime_ns);
                    }
                },
                [&](const EventFields&) { ++event_count_; });
        }
        if (!clock_.settle(header_.tick_is_tsc == 0) && !chunks_.empty())
            trace_.damage.push_back(name_ + ": the clock's rate is unknown (too few samples); times are in ticks");
        return true;
    }

    [[nodiscard]] std::size_t event_count() const { return event_count_; }
    /// Earliest moment in this file, nanoseconds since 1970; the maximum when there is none.
    [[nodiscard]] std::int64_t earliest_ns() const {
        std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
        for (const auto& [image, tick] : start_ticks_) earliest = std::min(earliest, clock_.realtime_ns(tick));
        return earliest;
    }

    /// Everything but the events. After every file is open, because times count from the trace's epoch.
    void read_meta() {
        for (const auto& [image, tick] : start_ticks_)
            trace_.processes[images_.at(image).process].start_ns = time(tick);
        for (const ChunkView& chunk : chunks_) {
            for_each_record(
                chunk, false,
                [&](std::uint16_t kind, const std::byte* record, std::size_t size) {
                    read_meta_record(chunk.header.image, kind, record, size);
                },
                [](const EventFields&) {});
        }
    }

    void read_events(std::uint32_t& next_thread) {
        std::unordered_map<std::uint64_t, std::uint32_t> threads;  // (process, stream) -> index
        const auto thread_of = [&](std::uint32_t process, std::uint32_t stream) {
            const auto [place, fresh] =
                threads.try_emplace((static_cast<std::uint64_t>(process) << 32) | stream, next_thread);
            if (fresh) ++next_thread;
            return place->second;
        };
        Events& out = trace_.events;
        for (const ChunkView& chunk : chunks_) {
            const auto image = images_.find(chunk.header.image);
            if (image == images_.end()) {
                trace_.damage.push_back(name_ + ": chunk at " + std::to_string(chunk.header.self_offset) +
                                        ": its process is not described; its events are left out");
                continue;
            }
            const std::uint32_t process = image->second.process;
            std::uint32_t thread = thread_of(process, chunk.header.stream);
            for_each_record(
                chunk, false,
                [&](std::uint16_t kind, const std::byte* data, std::size_t size) {
                    if (kind == StreamRecord::record_kind && size >= sizeof(StreamRecord))
                        thread = thread_of(process, load<StreamRecord>(data).stream);
                },
                [&](const EventFields& event) {
                    out.process.push_back(process);
                    out.thread.push_back(thread);
                    out.sequence.push_back(event.sequence);
                    out.parent.push_back(event.parent);
                    out.function.push_back(event.function);
                    out.origin.push_back(event.origin);
                    out.flags.push_back(event.failed ? 1 : 0);
                    out.path.push_back(path_of(image->second, event.file));
                    out.start_ns.push_back(time(event.start << header_.time_shift));
                    out.duration_ns.push_back(
                        clock_.duration(static_cast<std::int64_t>((event.end - event.start) << header_.time_shift)));
                    out.offset.push_back(event.offset);
                    out.bytes.push_back(event.failed ? 0 : event.bytes);
                    out.error.push_back(event.failed ? static_cast<std::int32_t>(-event.bytes) : 0);
                });
        }
    }

private:
    [[nodiscard]] std::int64_t time(std::uint64_t tick) const { return clock_.realtime_ns(tick) - trace_.epoch_ns; }

    void find_chunks() {
        std::size_t offset = chunk_alignment;
        while (offset + sizeof(ChunkHeader) <= file_->size()) {
            const auto header = load<ChunkHeader>(file_->data() + offset);
            const bool plausible = header.magic == chunk_magic && header.self_offset == offset &&
                                   header.size_bytes >= chunk_alignment && header.size_bytes % chunk_alignment == 0;
            if (!plausible) {
                // All zero: handed out, but its process ended before it was used.
                if (header.magic != 0) damaged(offset, "is no chunk");
                offset += chunk_alignment;
                continue;
            }
            ChunkView view{file_->data() + offset, header};
            if (offset + header.size_bytes > file_->size()) {
                damaged(offset, "is cut off by the end of the file");
                view.header.size_bytes = static_cast<std::uint32_t>(file_->size() - offset);
            }
            chunks_.push_back(view);
            offset += header.size_bytes;
        }
    }

    /// `meta(kind, record, size)` and `event(fields)` for each whole record, in order. `report`: say where a chunk is damaged
    /// (once a file).
    template <typename Meta, typename Event>
    void for_each_record(const ChunkView& chunk, bool report, Meta&& meta, Event&& event) {
        const std::byte* at = chunk.data + sizeof(ChunkHeader);
        const std::byte* const end = chunk.data + chunk.header.size_bytes;
        codec_->reset(0);
        bool begun = false;  // events have a meaning from the first StreamRecord on
        while (at != end && *at != std::byte{0}) {
            const auto tag = static_cast<std::uint8_t>(*at);
            if (tag == padding_tag) {
                ++at;
                continue;
            }
            if (tag < codec::first_tag) {
                const std::size_t size = meta_size(at, end);
                if (size != 0) {
                    const auto kind = load<std::uint16_t>(at);
                    if (kind == StreamRecord::record_kind && size >= sizeof(StreamRecord)) {
                        codec_->reset(load<StreamRecord>(at).tick >> header_.time_shift);
                        begun = true;
                    }
                    meta(kind, at, size);
                    at += size;
                    continue;
                }
            } else if (begun) {
                EventFields fields;
                const std::byte* next = codec::decode(*codec_, fields, at, end);
                if (next != nullptr && fields.function != 0 && fields.function < function_count) {
                    event(fields);
                    at = next;
                    continue;
                }
            }
            if (report)
                damaged(chunk.header.self_offset + static_cast<std::size_t>(at - chunk.data),
                        "is no record; the rest of its chunk is left out");
            return;
        }
    }

    /// Size of the meta record at `at`; 0 when there is none.
    static std::size_t meta_size(const std::byte* at, const std::byte* end) {
        if (end - at < 16 || load<std::uint16_t>(at) < first_meta_kind) return 0;
        const std::size_t size = load<std::uint32_t>(at + 4);
        return size < 16 || size % 16 != 0 || size > static_cast<std::size_t>(end - at) ? 0 : size;
    }

    void damaged(std::size_t offset, const char* what) {
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
        trace_.processes.push_back(std::move(process));
    }

    void read_meta_record(std::uint64_t image, std::uint16_t kind, const std::byte* data, std::size_t size) {
        const auto found = images_.find(image);
        if (found == images_.end()) return;
        Process& process = trace_.processes[found->second.process];
        if (kind == FileRecord::record_kind && size >= sizeof(FileRecord)) {
            const std::uint32_t file = load<FileRecord>(data).file;
            auto& paths = found->second.paths;
            // Ids are dense: one that lies far beyond the records there are is damage.
            if (file > file_->size() / sizeof(FileRecord)) return;
            if (paths.size() <= file) paths.resize(file + 1, 0);
            paths[file] = path_number(text_of<FileRecord>(data, size));
        } else if (kind == RankRecord::record_kind && size >= sizeof(RankRecord)) {
            const auto record = load<RankRecord>(data);
            process.rank = static_cast<std::int32_t>(record.rank);
            process.ranks = static_cast<std::int32_t>(record.ranks);
            process.mpi_init_ns = time(record.tick);
            process.mpi_library = text_of<RankRecord>(data, size);
        } else if (kind == FinalizeRecord::record_kind && size >= sizeof(FinalizeRecord)) {
            process.mpi_finalize_ns = time(load<FinalizeRecord>(data).tick);
        } else if (kind == EndRecord::record_kind && size >= sizeof(EndRecord)) {
            process.end_ns = time(load<EndRecord>(data).tick);
        } else if (kind == NoteRecord::record_kind && size >= sizeof(NoteRecord)) {
            const auto record = load<NoteRecord>(data);
            const char* text = reinterpret_cast<const char*>(data) + sizeof(NoteRecord);
            const std::size_t room = size - sizeof(NoteRecord);
            Note note{found->second.process,
                      record.code,
                      record.value,
                      time(record.tick),
                      std::string(text, ::strnlen(text, room)),
                      ""};
            if (note.path.size() + 1 < room) {
                text += note.path.size() + 1;
                note.text.assign(text, ::strnlen(text, room - note.path.size() - 1));
            }
            trace_.notes.push_back(std::move(note));
        }
    }

    template <typename Record>
    static std::string text_of(const std::byte* data, std::size_t size) {
        const char* text = reinterpret_cast<const char*>(data) + sizeof(Record);
        return {text, ::strnlen(text, size - sizeof(Record))};
    }

    std::uint32_t path_number(const std::string& path) {
        const auto [place, fresh] = path_index_.try_emplace(path, static_cast<std::uint32_t>(trace_.paths.size()));
        if (fresh) trace_.paths.push_back(path);
        return place->second;
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

    Trace& trace_;
    std::unordered_map<std::string, std::uint32_t>& path_index_;
    std::string name_;
    std::shared_ptr<MappedFile> file_;
    FileHeader header_{};
    std::uint32_t host_ = 0;
    NodeClock clock_;
    std::vector<ChunkView> chunks_;
    std::unordered_map<std::uint64_t, ImageState> images_;
    std::unordered_map<std::uint64_t, std::uint64_t> start_ticks_;
    std::size_t event_count_ = 0;
    std::unique_ptr<codec::State> codec_ = std::make_unique<codec::State>();
};

void reserve(Events& events, std::size_t count) {
    events.process.reserve(count);
    events.thread.reserve(count);
    events.sequence.reserve(count);
    events.parent.reserve(count);
    events.function.reserve(count);
    events.origin.reserve(count);
    events.flags.reserve(count);
    events.path.reserve(count);
    events.start_ns.reserve(count);
    events.duration_ns.reserve(count);
    events.offset.reserve(count);
    events.bytes.reserve(count);
    events.error.reserve(count);
}

}  // namespace

Result<Trace> read_trace(const std::vector<std::string>& files) {
    Trace trace;
    trace.paths.emplace_back();
    std::unordered_map<std::string, std::uint32_t> path_index;
    std::vector<FileReader> readers;
    std::size_t event_count = 0;
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    for (const std::string& name : files) {
        auto file = MappedFile::open(name);
        if (!file) return file.error();
        readers.emplace_back(trace, path_index, name, file.take());
        if (auto opened = readers.back().open(); !opened) return opened.error();
        event_count += readers.back().event_count();
        earliest = std::min(earliest, readers.back().earliest_ns());
    }
    trace.epoch_ns = earliest == std::numeric_limits<std::int64_t>::max() ? 0 : earliest;
    reserve(trace.events, event_count);
    std::uint32_t next_thread = 0;
    for (FileReader& reader : readers) reader.read_meta();
    for (FileReader& reader : readers) reader.read_events(next_thread);
    return trace;
}

}  // namespace ioweir::format
