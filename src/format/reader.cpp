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

#include "base/guarded_files.hpp"
#include "base/utf8_text.hpp"
#include "format/call_sites.hpp"
#include "format/event_codec.hpp"
#include "format/node_clock.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t damage_lines_a_file = 20;  ///< a file full of rubbish must not make a report of its own

constexpr std::size_t file_header_bytes = sizeof(FileHeader);

/// A file mapped for reading; unmapped when it goes.
class MappedFile {
public:
    static Result<std::shared_ptr<MappedFile>> open(const std::string& path) {
        const auto opened = open_file(path);
        if (!opened) return opened.error();
        auto file = std::make_shared<MappedFile>();
        file->size_ = static_cast<std::size_t>(opened.value().bytes());
        if (file->size_ != 0) {
            void* mapped = file->map(opened.value().descriptor());
            if (mapped == MAP_FAILED) return Error{"cannot map the trace file", path, std::strerror(errno), errno};
            file->data_ = static_cast<const std::byte*>(mapped);
            ::madvise(mapped, file->size_, MADV_SEQUENTIAL);
        }
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
    /// The first byte from `offset` on that is in no hole; the file's length where there is none.
    [[nodiscard]] std::size_t next_data(std::size_t offset) const {
        const auto extent = std::upper_bound(extents_.begin(), extents_.end(), offset,
                                             [](std::size_t at, const Extent& one) { return at < one.end; });
        return extent == extents_.end() ? size_ : std::max(extent->begin, offset);
    }

private:
    struct Extent {
        std::size_t begin, end;
    };

    static Result<guarded::File> open_file(const std::string& path) {
        constexpr std::string_view handed_over = "/proc/self/fd/";
        if (path.starts_with(handed_over)) {  // what this process has open is no link that somebody could have planted
            const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
            struct stat status{};
            if (fd < 0) return guarded::cannot_use(path, errno);
            guarded::File file(fd, status, path);
            if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
                return guarded::cannot_use(path, ENXIO, guarded::Fault::not_a_file, &status);
            return guarded::File(file.release(), status, path);
        }
        const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
        if (!folder) return guarded::cannot_use(path, folder.error().number);
        return folder.value().file(guarded::file_name_of(path));
    }

    /// Zero pages with the file's data mapped over them. The holes that the tracer gives back are left out: on tmpfs, looking into
    /// a hole takes memory from the file system, and when that is full the look ends in SIGBUS.
    void* map(int fd) {
        const std::size_t size = size_;
        void* whole = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (whole == MAP_FAILED) return whole;
        const auto end = static_cast<off_t>(size);
        const auto page = static_cast<off_t>(::sysconf(_SC_PAGESIZE));
        for (off_t at = 0; at < end;) {
            off_t data = ::lseek(fd, at, SEEK_DATA);
            if (data < 0 && errno == ENXIO) break;  // a hole up to the end
            off_t hole = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
            if (data < 0 || hole < 0) {  // a file system that does not tell
                data = at;
                hole = end;
            }
            data -= data % page;
            hole = std::min((hole + page - 1) / page * page, end);
            if (data >= hole) break;
            if (::mmap(static_cast<std::byte*>(whole) + data, static_cast<std::size_t>(hole - data), PROT_READ,
                       MAP_PRIVATE | MAP_FIXED, fd, data) == MAP_FAILED) {
                const int error = errno;
                ::munmap(whole, size);
                errno = error;
                return MAP_FAILED;
            }
            extents_.push_back({static_cast<std::size_t>(data), static_cast<std::size_t>(hole)});
            at = hole;
        }
        return whole;
    }

    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::vector<Extent> extents_;  ///< of data, in order
};

template <typename T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
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
             std::string name, std::shared_ptr<MappedFile> file)
        : trace_(trace),
          path_index_(path_index),
          site_numbers_(site_numbers),
          name_(std::move(name)),
          file_(std::move(file)) {}

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
        trace_.hosts.push_back(utf8_text(header_.host));
        trace_.version = std::max(trace_.version, header_.version);
        trace_.dropped += header_.dropped_events;
        trace_.disabled_processes += header_.disabled_processes;
        find_chunks();
        for (const ChunkView& chunk : chunks_) {
            clock_.add(chunk.header.sample_tick, chunk.header.sample_monotonic_ns, chunk.header.sample_realtime_ns);
            index_chunk(chunk);
        }
        for (Stream& stream : streams_)
            std::stable_sort(stream.segments.begin(), stream.segments.end(),
                             [](const Segment& a, const Segment& b) { return a.tick < b.tick; });
        if (damage_count_ > damage_lines_a_file)
            trace_.damage.push_back(name_ + ": and " + std::to_string(damage_count_ - damage_lines_a_file) +
                                    " more places like these");
        if (!clock_.settle(header_.tick_is_tsc == 0) && !chunks_.empty())
            trace_.damage.push_back(name_ + ": the clock's rate is unknown (too few samples); times are in ticks");
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
                // A file may be much longer than what is in it.
                offset = std::max(offset, file_->next_data(offset) / chunk_alignment * chunk_alignment);
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
                    index_meta(chunk.header.image, kind, at, size);
                }
                at += size;
                continue;
            }
            EventFields fields;
            const std::byte* next = stream != nullptr ? codec::decode(*codec_, fields, at, end) : nullptr;
            damage = next == nullptr || fields.function == 0 || fields.function >= function_count;
            if (damage) break;
            ++stream->events;
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
        stream.segments.push_back(Segment{data, data, record.tick});
        codec_->reset(record.tick >> header_.time_shift);
        return stream;
    }

    void index_meta(std::uint64_t image, std::uint16_t kind, const std::byte* data, std::size_t size) {
        if (kind == ProcessRecord::record_kind && size >= sizeof(ProcessRecord)) {
            begin_process(data);
        } else if (kind == ClockRecord::record_kind && size >= sizeof(ClockRecord)) {
            const auto sample = load<ClockRecord>(data);
            clock_.add(sample.tick, sample.monotonic_ns, sample.realtime_ns);
        } else if (kind == AlignRecord::record_kind && size >= sizeof(AlignRecord)) {
            const auto alignment = load<AlignRecord>(data);
            clock_.align(alignment.tick, alignment.reference_ns, alignment.round_trip_ticks,
                         alignment.how == static_cast<std::uint32_t>(AlignKind::same_machine));
        } else {
            meta_.push_back(MetaPlace{image, data});
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
        } else if (kind == ModuleRecord::record_kind && size >= sizeof(ModuleRecord)) {
            sites_.add_module(image, data, size, site_numbers_);
        } else if (kind == SiteRecord::record_kind && size >= sizeof(SiteRecord)) {
            sites_.add_site(image, data, size);
        } else if (kind == NoteRecord::record_kind && size >= sizeof(NoteRecord)) {
            const auto record = load<NoteRecord>(data);
            auto [path, text] = words_of<NoteRecord>(data, size);
            trace_.notes.push_back({found->second.process, record.code, record.value, time(record.tick),
                                    std::move(path), std::move(text)});
        } else if (kind == VerdictRecord::record_kind && size >= sizeof(VerdictRecord)) {
            const auto record = load<VerdictRecord>(data);
            auto [path, text] = words_of<VerdictRecord>(data, size);
            trace_.verdicts.push_back({found->second.process, record.outcome, record.calls, record.bytes, record.offset,
                                       std::move(path), std::move(text)});
        }
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
    std::string name_;
    std::shared_ptr<MappedFile> file_;
    FileHeader header_{};
    std::uint32_t host_ = 0;
    NodeClock clock_;
    CallSites sites_;
    std::vector<ChunkView> chunks_;
    std::unordered_map<std::uint64_t, ImageState> images_;
    std::unordered_map<std::uint64_t, std::uint64_t> start_ticks_;
    std::vector<MetaPlace> meta_;
    std::vector<Stream> streams_;
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::size_t>>
        stream_index_;  ///< by image, number
    std::size_t damage_count_ = 0;
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
            if (fields.file != last_file_) {
                last_file_ = fields.file;
                last_path_ = file_->path_of(*file_->image_of(file_->stream(stream_)), fields.file);
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
            event.site = last_site_number_;
            return true;
        }
        if (!next_segment()) return false;
    }
}

TraceFiles::TraceFiles() : about_(std::make_unique<Trace>()) {}
TraceFiles::TraceFiles(TraceFiles&&) noexcept = default;
TraceFiles& TraceFiles::operator=(TraceFiles&&) noexcept = default;
TraceFiles::~TraceFiles() = default;

Result<TraceFiles> TraceFiles::open(const std::vector<std::string>& files) {
    TraceFiles result;
    Trace& trace = *result.about_;
    trace.paths.emplace_back();
    std::unordered_map<std::string, std::uint32_t> path_index;
    SiteNumbers site_numbers(trace);
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    for (const std::string& name : files) {
        auto file = MappedFile::open(name);
        if (!file) return file.error();
        result.files_.push_back(std::make_unique<NodeFile>(trace, path_index, site_numbers, name, file.take()));
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
}

void Events::push_back(const Event& event, std::uint32_t of_process) {
    process.push_back(of_process);
    thread.push_back(event.thread);
    sequence.push_back(event.sequence);
    parent.push_back(event.parent);
    function.push_back(event.function);
    origin.push_back(event.origin);
    flags.push_back(event.failed ? 1 : 0);
    path.push_back(event.path);
    start_ns.push_back(event.start_ns);
    duration_ns.push_back(event.duration_ns);
    offset.push_back(event.offset);
    bytes.push_back(event.bytes);
    error.push_back(event.error);
    site.push_back(event.site);
}

Result<Trace> read_trace(const std::vector<std::string>& files) {
    auto opened = TraceFiles::open(files);
    if (!opened) return opened.error();
    Trace trace = opened.value().about();
    trace.events = opened.value().read_events();
    return trace;
}

}  // namespace ioweir::format
