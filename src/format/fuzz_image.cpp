// What inputs of the fuzz targets of traces stand for.
//
// An input is a sparse file, because a real one is mostly zeros: 4 bytes of length (bits 21 to 23: which run's span is known, 31: checksums are made
// right), then pieces of 4 bytes of offset, 2 bytes of length and the bytes themselves (little-endian).
// What does not live here: whole traces (fuzz_seeds.cpp), and reading them (reader_fuzz.cpp, analysis/summary_fuzz.cpp).
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
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

std::span<const std::byte> image_of(const std::vector<std::uint8_t>& bytes) {
    the_image().begin(bytes.size());
    the_image().put(bytes.data(), bytes.size(), 0);
    return the_image().bytes();
}

PackedTrace image_of(const std::uint8_t* data, std::size_t size) {
    Ways found(0);
    for_each_piece(
        data, size,
        [&](const Ways& ways) {
            found = ways;
            the_image().begin(ways.bytes);
        },
        [](const std::uint8_t* from, std::size_t length, std::size_t place) { the_image().put(from, length, place); });
    if (found.seals) seal(the_image());
    return {the_image().bytes(), found.span};
}

}  // namespace ioweir::format
