#include "format/reader.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>

#include "format/node_file.hpp"

namespace ioweir::format {

ThreadCursor::ThreadCursor(const NodeFile& file, std::uint32_t thread, std::size_t stream)
    : file_(&file), thread_(thread), stream_(stream) {}
ThreadCursor::ThreadCursor(ThreadCursor&&) noexcept = default;
ThreadCursor& ThreadCursor::operator=(ThreadCursor&&) noexcept = default;
ThreadCursor::~ThreadCursor() = default;

bool ThreadCursor::next_segment() {
    const std::vector<NodeFile::Segment>& segments = file_->stream(stream_).segments;
    if (segment_ == segments.size()) {
        codec_.reset();
        return false;
    }
    if (codec_ == nullptr) codec_ = std::make_unique<codec::State>();
    const NodeFile::Segment& segment = segments[segment_++];
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

Result<TraceFiles> TraceFiles::open(const std::vector<std::string>& files, const RunSpan& span,
                                    const std::vector<std::string>& shown) {
    std::vector<Source> sources;
    for (std::size_t i = 0; i < files.size(); ++i) {
        auto file = MappedFile::open(files[i]);
        if (!file) return file.error();
        sources.push_back({i < shown.size() ? shown[i] : files[i], file.take()});
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
            const NodeFile::Stream& stream = node.stream(number);
            const NodeFile::Image* image = node.image_of(stream);
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
