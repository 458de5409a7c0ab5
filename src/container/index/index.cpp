#include "container/index/index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checksum.hpp"

namespace ioweir::container {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint32_t first_magic = 0x31584957;  // "WIX1", before stamps
constexpr std::uint32_t plain_magic = 0x32584957;  // "WIX2"
constexpr std::uint32_t named_magic = 0x33584957;  // "WIX3": the container's id follows the header

struct Header {
    std::uint32_t magic;
    std::uint32_t count;
    std::int64_t stamp;
    std::uint32_t generation;
    std::uint32_t rank;
    std::int64_t source;
    std::uint64_t checksum;  ///< of the header with 0 here, the id, and the entries
};
using Id = Identity::value_type;
static_assert(sizeof(Header) + sizeof(Id) == most_batch_header_bytes);
static_assert(sizeof(Run) == 48);

/// Before the entries; 0: no batch begins like that.
std::size_t header_bytes(std::uint32_t magic) {
    if (magic == named_magic) return sizeof(Header) + sizeof(Id);
    return magic == plain_magic ? sizeof(Header) : 0;
}

/// What another container's batch is; empty: it is of this one. `bytes`: the whole batch.
std::string why_foreign(std::string_view bytes, std::uint32_t magic, const Identity& identity) {
    if (magic == plain_magic) return identity ? "a batch of a container of an earlier version (WIX2)" : "";
    if (!identity) return "a batch of a container of a later version (WIX3)";
    Id id{};
    std::memcpy(id.data(), bytes.data() + sizeof(Header), sizeof id);
    if (id == *identity) return {};
    constexpr char digits[] = "0123456789abcdef";
    std::string text = "a batch of another container (";
    for (const std::uint8_t byte : id) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text + ")";
}

const char* why_no_entry(const Run& entry) {
    if (entry.place == cut_here || entry.place == grown_here)
        return entry.offset < 0 || entry.length != 0 || entry.count != 1 ? "a length that is none" : nullptr;
    if (entry.place < 0) return "a place before the beginning of the file";
    return why_no_run(entry);
}

}  // namespace

std::string encode(const Batch& batch, const Identity& identity, std::size_t most_entries) {
    std::string bytes;
    encode_behind(bytes, batch.time, batch.source, batch.entries, identity, most_entries);
    return bytes;
}

void encode_behind(std::string& bytes, const Time& time, std::int64_t source, std::span<const Run> entries,
                   const Identity& identity, std::size_t most_entries) {
    const std::uint32_t magic = identity ? named_magic : plain_magic;
    const std::size_t before = header_bytes(magic), all = entries.size();
    const std::size_t batches = all == 0 ? 1 : (all - 1) / most_entries + 1;
    const std::size_t wanted = bytes.size() + batches * before + all * sizeof(Run);
    if (bytes.capacity() < wanted) bytes.reserve(std::max(wanted, 2 * bytes.capacity()));
    for (std::size_t i = 0, first = 0; i < batches; ++i, first += most_entries) {
        const std::size_t count = std::min(most_entries, all - first), at = bytes.size();
        Header header{magic, static_cast<std::uint32_t>(count), time.stamp, time.generation, time.rank, source, 0};
        bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
        if (identity) bytes.append(reinterpret_cast<const char*>(identity->data()), identity->size());
        if (count > 0) bytes.append(reinterpret_cast<const char*>(entries.data() + first), count * sizeof(Run));
        header.checksum = checksum(bytes.data() + at, bytes.size() - at);
        std::memcpy(bytes.data() + at, &header, sizeof header);
    }
}

BatchHead read_head(std::string_view bytes) {
    Header header{};
    if (bytes.size() < sizeof header) return {};
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::size_t before = header_bytes(header.magic);
    if (before == 0 || header.stamp < 0) return {};
    return {header.stamp, static_cast<std::int64_t>(before + std::size_t{header.count} * sizeof(Run))};
}

Decoded decode(std::string_view bytes, const Identity& identity, std::int64_t place) {
    Decoded decoded;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto damaged = [&](const std::string& what) {
            decoded.damage = what + " at byte " + std::to_string(place + static_cast<std::int64_t>(at));
            return decoded;
        };
        Header header{};
        if (bytes.size() - at < sizeof header) return damaged("half a batch");
        std::memcpy(&header, bytes.data() + at, sizeof header);
        if (header.magic == first_magic)
            return damaged("an index of an earlier version (WIX1), which this ioweir does not read,");
        const std::size_t before = header_bytes(header.magic);
        if (before == 0 || header.stamp < 0) return damaged("no batch");
        const std::size_t length = before + std::size_t{header.count} * sizeof(Run);
        if (bytes.size() - at < length) return damaged("half a batch");
        std::string copy(bytes.substr(at, length));
        const std::uint64_t wanted = std::exchange(header.checksum, 0);
        std::memcpy(copy.data(), &header, sizeof header);
        if (checksum(copy.data(), copy.size()) != wanted) return damaged("a batch with a wrong checksum");
        if (const std::string why = why_foreign(copy, header.magic, identity); !why.empty()) {
            decoded.foreign = true;
            return damaged(why);
        }
        Batch batch{{header.stamp, header.generation, header.rank}, header.source, std::vector<Run>(header.count)};
        if (header.count > 0) std::memcpy(batch.entries.data(), copy.data() + before, header.count * sizeof(Run));
        for (const Run& entry : batch.entries) {
            if (const char* const why = why_no_entry(entry)) return damaged(std::string("an entry with ") + why);
        }
        decoded.batches.push_back(std::move(batch));
        at += length;
    }
    return decoded;
}

}  // namespace ioweir::container
