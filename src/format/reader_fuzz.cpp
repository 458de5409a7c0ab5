// Fuzzes the trace reader: whatever the bytes, it returns (with an Error, or with the damage named), every index it hands out
// is valid, and reading twice gives the same. A fuzz target, see base/fuzz_target.hpp.
//
// An input is a sparse file, because a real one is mostly zeros: 4 bytes of length (bits 21 to 23: which run's span is known, 31: checksums are made
// right), then pieces of 4 bytes of offset, 2 bytes of length and the bytes themselves (little-endian). It is read in memory; one in 8 also twice,
// as two nodes', and one in 64 from a file. tests/corpus holds what was found; fuzz_seeds.cpp makes whole traces.
// What does not live here: a main().
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "format/reader.hpp"
#include "format/reader_fuzz.hpp"
#include "format/seal.hpp"

namespace ioweir::format {
namespace {

constexpr std::size_t longest_file = 1U << 20;

#if defined(__SANITIZE_ADDRESS__)
#define IOWEIR_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IOWEIR_POISONS 1
#endif
#endif
#ifdef IOWEIR_POISONS
#include <sanitizer/asan_interface.h>
void open_to(const std::byte* begin, std::size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(begin, bytes); }
void close_to(const std::byte* begin, std::size_t bytes) { ASAN_POISON_MEMORY_REGION(begin, bytes); }
#else
void open_to(const std::byte*, std::size_t) {}
void close_to(const std::byte*, std::size_t) {}
#endif

/// The bytes of a trace file, the same memory again and again; the address sanitizer sees what is read behind their end.
class Image {
public:
    Image()
        : memory_(static_cast<std::byte*>(
              ::mmap(nullptr, longest_file, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        require(memory_ != MAP_FAILED, "memory for a file");
        close_to(memory_, longest_file);
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    ~Image() { open_to(memory_, longest_file); }
    /// Zeros, so many.
    void begin(std::size_t bytes) {
        for (const Piece& piece : put_) std::memset(memory_ + piece.begin, 0, piece.bytes);
        put_.clear();
        if (bytes > bytes_) open_to(memory_ + bytes_, bytes - bytes_);
        if (bytes < bytes_) close_to(memory_ + bytes, bytes_ - bytes);
        bytes_ = bytes;
    }
    void put(const void* data, std::size_t bytes, std::size_t at) {
        if (bytes == 0) return;
        std::memcpy(memory_ + at, data, bytes);
        put_.push_back({at, bytes});
    }
    [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_, bytes_}; }

private:
    struct Piece {
        std::size_t begin, bytes;
    };

    std::byte* memory_;
    std::size_t bytes_ = 0;
    std::vector<Piece> put_;
};

Image& the_image() {
    static Image image;
    return image;
}

/// A file in memory, readable under a path: the same one again and again.
class MemoryFile {
public:
    MemoryFile() : fd_(::memfd_create("trace", MFD_CLOEXEC)) { require(fd_ >= 0, "a file in memory"); }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    void hold(std::span<const std::byte> bytes) const {
        require(::ftruncate(fd_, 0) == 0 && ::ftruncate(fd_, std::ssize(bytes)) == 0, "a file of that length");
        constexpr std::size_t page = 4096;
        for (std::size_t at = 0; at < bytes.size(); at += page) {  // pages of zeros stay holes
            const std::span<const std::byte> part = bytes.subspan(at, std::min(page, bytes.size() - at));
            static constexpr std::byte zeros[page] = {};
            if (std::memcmp(part.data(), zeros, part.size()) == 0) continue;
            require(::pwrite(fd_, part.data(), part.size(), static_cast<off_t>(at)) == std::ssize(part),
                    "room for the file");
        }
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

void check(const TraceFiles& files) {
    const Trace& about = files.about();
    require(!about.paths.empty() && about.paths[0].empty(), "path 0 is the unknown one");
    require(!about.sites.empty() && about.sites[0].empty(), "site 0 is none");
    for (const Process& process : about.processes) require(process.host < about.hosts.size(), "a process's host");
    for (const Verdict& one : about.verdicts) require(one.process < about.processes.size(), "a verdict's process");
    for (const Note& note : about.notes) require(note.process < about.processes.size(), "a note's process");
    for (const auto& site : about.sites)
        for (const SiteFrame& frame : site)
            require(frame.module >= -1 && frame.module < static_cast<std::int64_t>(about.modules.size()),
                    "a call's module");
    std::uint64_t count = 0;
    for (std::uint32_t number = 0; number < files.threads().size(); ++number) {
        const Thread& thread = files.threads()[number];
        require(thread.process < about.processes.size(), "a thread's process");
        ThreadCursor cursor = files.cursor(number);
        Event event;
        std::uint64_t of_thread = 0;
        while (cursor.next(event)) {
            ++of_thread;
            require(event.thread == number, "an event's thread");
            require(event.function != 0 && event.function < function_count, "an event's function");
            require(event.path < about.paths.size(), "an event's path");
            require(event.site < about.sites.size(), "an event's call site");
        }
        require(of_thread == thread.events, "a thread's number of events");
        count += of_thread;
    }
    require(count == files.event_count(), "the number of events");
    require(files.read_events().function.size() == count, "the number of entries in the columns");
}

/// What an input's first number says: the length of the file, and how it is read.
struct Ways {
    std::size_t bytes = 0;
    bool seals = false;  ///< checksums are made right, as far as there are any
    RunSpan span;

    explicit Ways(std::uint32_t number) : bytes((number & 0x1f'ffff) % (longest_file + 1)), seals((number >> 31) != 0) {
        const std::uint32_t known = number >> 21 & 7;
        if (known == 0) return;
        span.begin_ns = seed_epoch_ns - (known & 1) * 1'000;
        span.end_ns = span.begin_ns + (std::int64_t{1} << 7 * (known >> 1));
    }
};

/// Hands over how the file that an input stands for is read, then its pieces.
template <typename Begin, typename Piece>
void for_each_piece(const std::uint8_t* data, std::size_t size, Begin begin, Piece visit) {
    std::uint32_t number = 0;
    const Ways ways(take(data, size, number) ? number : 0);
    begin(ways);
    std::uint32_t offset = 0;
    std::uint16_t piece = 0;
    while (ways.bytes > 0 && take(data, size, offset) && take(data, size, piece)) {
        const std::size_t taken = piece < size ? piece : size;
        const std::size_t place = offset % ways.bytes;
        visit(data, std::min(taken, ways.bytes - place), place);
        data += taken;
        size -= taken;
    }
}

template <typename T>
T at(std::span<const std::byte> bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// As writers do it: else next to no changed input of the newest version comes further than its checksums.
void seal(Image& image) {
    const std::span<const std::byte> bytes = image.bytes();
    if (bytes.size() < sizeof(FileHeader)) return;
    auto header = at<FileHeader>(bytes, 0);
    header.constants = checksum_of_constants(header);
    image.put(&header, sizeof header, 0);
    for (std::size_t offset = chunk_alignment; offset + sizeof(ChunkHeader) <= bytes.size();
         offset += chunk_alignment) {
        auto chunk = at<ChunkHeader>(bytes, offset);
        if (chunk.magic != chunk_magic || chunk.sealed_bytes < sizeof chunk ||
            chunk.sealed_bytes > bytes.size() - offset)
            continue;
        chunk.checksum = checksum_of_chunk(chunk, bytes.data() + offset);
        image.put(&chunk, sizeof chunk, offset);
    }
}

/// In memory; `twice`: also as two nodes', `mapped`: also from a file.
void read_image(const Image& image, const RunSpan& span, bool twice, bool mapped) {
    const TraceBytes one{"trace", image.bytes()};
    const Result<TraceFiles> files = TraceFiles::read({&one, 1}, span);
    if (files) check(files.value());
    if (twice) {
        const TraceBytes two[] = {one, one};
        const Result<TraceFiles> pair = TraceFiles::read(two, span);
        require(pair.ok() == files.ok(), "a second file changes whether the first can be read");
        if (pair) check(pair.value());
    }
    if (!mapped) return;
    static const MemoryFile file;
    file.hold(image.bytes());
    const Result<TraceFiles> from_file = TraceFiles::open({file.path()}, span);
    require(from_file.ok() == files.ok(), "a file and its bytes");
    if (!from_file) return;
    check(from_file.value());
    require(from_file.value().event_count() == files.value().event_count() &&
                from_file.value().about().damage.size() == files.value().about().damage.size(),
            "a file is read as its bytes are");
}

}  // namespace

std::vector<std::uint8_t> unpack(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> bytes;
    for_each_piece(
        data, size, [&](const Ways& ways) { bytes.resize(ways.bytes); },
        [&](const std::uint8_t* from, std::size_t length, std::size_t at) {
            std::copy_n(from, length, bytes.begin() + static_cast<std::ptrdiff_t>(at));
        });
    return bytes;
}

std::vector<std::uint8_t> pack(const std::vector<std::uint8_t>& bytes) {
    std::vector<std::uint8_t> out;
    const auto put = [&out](const void* value, std::size_t size) {
        const auto* from = static_cast<const std::uint8_t*>(value);
        out.insert(out.end(), from, from + size);
    };
    const auto length = static_cast<std::uint32_t>(bytes.size());
    put(&length, sizeof length);
    constexpr std::size_t longest_hole = 16;  // shorter ones cost less inside of a piece
    for (std::size_t begin = 0; begin < bytes.size();) {
        if (bytes[begin] == 0) {
            ++begin;
            continue;
        }
        std::size_t end = begin;
        for (std::size_t at = begin; at < bytes.size() && at - end <= longest_hole && at - begin < UINT16_MAX; ++at)
            if (bytes[at] != 0) end = at + 1;
        const auto offset = static_cast<std::uint32_t>(begin);
        const auto piece = static_cast<std::uint16_t>(end - begin);
        put(&offset, sizeof offset);
        put(&piece, sizeof piece);
        put(bytes.data() + begin, piece);
        begin = end;
    }
    return out;
}

void read_everything(const std::vector<std::uint8_t>& bytes) {
    the_image().begin(bytes.size());
    the_image().put(bytes.data(), bytes.size(), 0);
    read_image(the_image(), {}, true, true);
}

void read_packed(const std::uint8_t* data, std::size_t size) {
    Ways found(0);
    for_each_piece(
        data, size,
        [&](const Ways& ways) {
            found = ways;
            the_image().begin(ways.bytes);
        },
        [](const std::uint8_t* from, std::size_t length, std::size_t place) { the_image().put(from, length, place); });
    if (found.seals) seal(the_image());
    read_image(the_image(), found.span, is_one_in(8, data, size), is_one_in(64, data, size));
}

}  // namespace ioweir::format

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ioweir::format::read_packed(data, size);
    return 0;
}
