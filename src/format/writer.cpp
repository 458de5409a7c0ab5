#include "format/writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "format/seal.hpp"

namespace ioweir::format {
namespace {

/// Tick 0 itself would be taken for "no sample": see ChunkHeader in spec/records.toml.
constexpr std::uint64_t first_tick = 1;

}  // namespace

Result<NodeWriter> NodeWriter::create(const std::string& path, std::string_view host, std::int64_t epoch_ns,
                                      std::uint32_t time_shift) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return Error{"cannot write the trace file", path, std::strerror(errno)};
    NodeWriter writer(path, fd);
    FileHeader& header = writer.header_;
    header.magic = file_magic;
    header.version = format_version;
    header.alignment = chunk_alignment;
    header.time_shift = time_shift;
    host.copy(header.host, sizeof header.host - 1);
    writer.epoch_ns_ = epoch_ns;
    return writer;
}

NodeWriter::NodeWriter(NodeWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      error_(other.error_),
      epoch_ns_(other.epoch_ns_),
      header_(other.header_),
      threads_(std::move(other.threads_)) {}

NodeWriter::~NodeWriter() {
    if (fd_ >= 0) ::close(fd_);
}

std::uint32_t NodeWriter::begin_thread(std::uint64_t image, std::uint32_t number, std::uint32_t kernel_id,
                                       std::uint64_t tick) {
    threads_.push_back(Thread{image, number, kernel_id, {}, 0, 0, std::make_unique<codec::State>()});
    threads_.back().codec->previous.end = tick >> header_.time_shift;
    return static_cast<std::uint32_t>(threads_.size() - 1);
}

void NodeWriter::event(std::uint32_t thread, const EventFields& event) {
    Thread& to = threads_[thread];
    make_room(to, codec::longest_event);
    to.latest = std::max(to.latest, event.end);
    std::byte* const at = to.chunk.data() + to.used;
    to.used += static_cast<std::size_t>(codec::encode(*to.codec, event, at) - at);
}

void NodeWriter::meta(std::uint32_t thread, std::string bytes) {
    Thread& to = threads_[thread];
    make_room(to, bytes.size() + 32);
    put_meta(to, std::move(bytes));
}

void NodeWriter::make_room(Thread& thread, std::size_t bytes) {
    if (!thread.chunk.empty() && thread.used + bytes <= thread.chunk.size()) return;
    flush(thread);
    const std::size_t needed = sizeof(ChunkHeader) + sizeof(StreamRecord) + 16 + bytes;
    thread.chunk.assign((needed + chunk_alignment - 1) / chunk_alignment * chunk_alignment, std::byte{0});
    thread.used = sizeof(ChunkHeader);
    const std::uint64_t tick = thread.codec->previous.end << header_.time_shift;
    StreamRecord begin{{}, {}, {}, thread.number, thread.kernel_id, tick};
    begin.kind = StreamRecord::record_kind;
    put_meta(thread, std::string(reinterpret_cast<const char*>(&begin), sizeof begin));
    thread.codec->reset(tick >> header_.time_shift);
}

void NodeWriter::put_meta(Thread& thread, std::string bytes) {
    while (thread.used % 8 != 0) thread.chunk[thread.used++] = static_cast<std::byte>(padding_tag);
    bytes.resize((bytes.size() + 15) / 16 * 16);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data() + 4, &size, sizeof size);
    std::memcpy(thread.chunk.data() + thread.used, bytes.data(), bytes.size());
    thread.used += bytes.size();
}

void NodeWriter::flush(Thread& thread) {
    if (thread.chunk.empty()) return;
    ChunkHeader header{};
    header.magic = chunk_magic;
    header.self_offset = chunk_alignment + header_.next_offset;
    header.image = thread.image;
    header.size_bytes = static_cast<std::uint32_t>(thread.chunk.size());
    header.sealed_bytes = static_cast<std::uint32_t>(thread.used);
    header.sample_tick = std::max(first_tick, thread.latest << header_.time_shift);
    header.sample_monotonic_ns = header.sample_tick;
    header.sample_realtime_ns = static_cast<std::uint64_t>(epoch_ns_) + header.sample_tick;
    header.checksum = checksum_of_chunk(header, thread.chunk.data());
    std::memcpy(thread.chunk.data(), &header, sizeof header);
    write(thread.chunk.data(), thread.chunk.size(), header.self_offset);
    header_.next_offset += thread.chunk.size();
    thread.chunk.clear();
}

void NodeWriter::write(const void* data, std::size_t size, std::uint64_t offset) {
    const char* from = static_cast<const char*>(data);
    while (size != 0 && error_ == 0) {
        const ssize_t written = ::pwrite(fd_, from, size, static_cast<off_t>(offset));
        if (written < 0) {
            if (errno != EINTR) error_ = errno;
            continue;
        }
        from += written;
        size -= static_cast<std::size_t>(written);
        offset += static_cast<std::uint64_t>(written);
    }
}

Result<bool> NodeWriter::finish() {
    for (Thread& thread : threads_) flush(thread);
    header_.constants = checksum_of_constants(header_);
    std::vector<std::byte> first(chunk_alignment, std::byte{0});
    std::memcpy(first.data(), &header_, sizeof header_);
    write(first.data(), first.size(), 0);
    if (error_ != 0) return Error{"cannot write the trace file", path_, std::strerror(error_)};
    return true;
}

}  // namespace ioweir::format
