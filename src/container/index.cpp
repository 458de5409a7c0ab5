#include "container/index.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include "base/checksum.hpp"

namespace ioweir::container {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint32_t magic = 0x32584957;          // "WIX2"
constexpr std::uint32_t earlier_magic = 0x31584957;  // "WIX1", before stamps

struct Header {
    std::uint32_t magic;
    std::uint32_t count;
    std::int64_t stamp;
    std::uint32_t generation;
    std::uint32_t rank;
    std::int64_t source;
    std::uint64_t checksum;  ///< of the header with 0 here, and the entries
};
static_assert(sizeof(Header) == batch_header_bytes);
static_assert(sizeof(Run) == 48);

const char* why_no_entry(const Run& entry) {
    if (entry.place == cut_here || entry.place == grown_here)
        return entry.offset < 0 || entry.length != 0 || entry.count != 1 ? "a length that is none" : nullptr;
    if (entry.place < 0) return "a place before the beginning of the file";
    return why_no_run(entry);
}

}  // namespace

std::string encode(const Batch& batch) {
    Header header{magic,
                  static_cast<std::uint32_t>(batch.entries.size()),
                  batch.time.stamp,
                  batch.time.generation,
                  batch.time.rank,
                  batch.source,
                  0};
    std::string bytes(sizeof header + batch.entries.size() * sizeof(Run), '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!batch.entries.empty())
        std::memcpy(bytes.data() + sizeof header, batch.entries.data(), batch.entries.size() * sizeof(Run));
    header.checksum = checksum(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

BatchHead read_head(std::string_view bytes) {
    Header header{};
    if (bytes.size() < sizeof header) return {};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != magic || header.stamp < 0) return {};
    return {header.stamp, static_cast<std::int64_t>(sizeof header + std::size_t{header.count} * sizeof(Run))};
}

Decoded decode(std::string_view bytes, std::int64_t place) {
    Decoded decoded;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto damaged = [&](const std::string& what) {
            decoded.damage = what + " at byte " + std::to_string(place + static_cast<std::int64_t>(at));
            return decoded;
        };
        Header header{};
        if (bytes.size() - at < sizeof header) return damaged("half a batch");
        std::memcpy(&header, bytes.data() + at, sizeof header);
        if (header.magic == earlier_magic)
            return damaged("an index of an earlier version (WIX1), which this ioweir does not read,");
        if (header.magic != magic || header.stamp < 0) return damaged("no batch");
        const std::size_t length = sizeof header + std::size_t{header.count} * sizeof(Run);
        if (bytes.size() - at < length) return damaged("half a batch");
        std::string copy(bytes.substr(at, length));
        const std::uint64_t wanted = std::exchange(header.checksum, 0);
        std::memcpy(copy.data(), &header, sizeof header);
        if (checksum(copy.data(), copy.size()) != wanted) return damaged("a batch with a wrong checksum");
        Batch batch{{header.stamp, header.generation, header.rank}, header.source, std::vector<Run>(header.count)};
        if (header.count > 0)
            std::memcpy(batch.entries.data(), copy.data() + sizeof header, header.count * sizeof(Run));
        for (const Run& entry : batch.entries) {
            if (const char* const why = why_no_entry(entry)) return damaged(std::string("an entry with ") + why);
        }
        decoded.batches.push_back(std::move(batch));
        at += length;
    }
    return decoded;
}

}  // namespace ioweir::container
