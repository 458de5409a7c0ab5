#include "container/index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checksum.hpp"

namespace ioweir::container {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint32_t magic = 0x31584957;  // "WIX1"

struct Header {
    std::uint32_t magic;
    std::uint32_t count;
    std::uint32_t generation;
    std::uint32_t epoch;
    std::uint32_t rank;
    std::uint32_t zero;
    std::uint64_t checksum;  ///< of the header with 0 here, and the records
};
static_assert(sizeof(Header) == 32);
static_assert(sizeof(Record) == 24);

}  // namespace

std::string encode(const Batch& batch) {
    Header header{magic,
                  static_cast<std::uint32_t>(batch.records.size()),
                  batch.time.generation,
                  batch.time.epoch,
                  batch.time.rank,
                  0,
                  0};
    std::string bytes(sizeof header + batch.records.size() * sizeof(Record), '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!batch.records.empty())
        std::memcpy(bytes.data() + sizeof header, batch.records.data(), batch.records.size() * sizeof(Record));
    header.checksum = checksum(bytes.data(), bytes.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

Decoded decode(std::string_view bytes, std::int32_t source) {
    Decoded decoded;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto damaged = [&](const char* what) {
            decoded.damage = std::string(what) + " at byte " + std::to_string(at);
            return decoded;
        };
        Header header{};
        if (bytes.size() - at < sizeof header) return damaged("half a batch");
        std::memcpy(&header, bytes.data() + at, sizeof header);
        if (header.magic != magic || header.zero != 0) return damaged("no batch");
        const std::size_t length = sizeof header + std::size_t{header.count} * sizeof(Record);
        if (bytes.size() - at < length) return damaged("half a batch");
        std::string copy(bytes.substr(at, length));
        const std::uint64_t wanted = std::exchange(header.checksum, 0);
        std::memcpy(copy.data(), &header, sizeof header);
        if (checksum(copy.data(), copy.size()) != wanted) return damaged("a batch with a wrong checksum");
        Batch batch{{header.generation, header.epoch, header.rank}, source, std::vector<Record>(header.count)};
        if (header.count > 0)
            std::memcpy(batch.records.data(), copy.data() + sizeof header, header.count * sizeof(Record));
        for (const Record& record : batch.records) {
            const auto logical = layout::make_extent(record.logical.offset, record.logical.length);
            if (!logical || record.logical.offset < 0 || record.place < cut_here)
                return damaged("a record that is no range of bytes");
        }
        decoded.batches.push_back(std::move(batch));
        at += length;
    }
    return decoded;
}

Segments replay(std::vector<Batch> batches) {
    std::stable_sort(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) { return a.time < b.time; });
    Segments result;
    std::vector<Segment> writes;
    for (const Batch& batch : batches) {
        for (const Record& record : batch.records) {
            if (record.place != cut_here) {
                writes.push_back({record.logical, record.place, batch.source});
                continue;
            }
            writes.insert(writes.begin(), result.begin(), result.end());
            result = overlay(writes);
            writes.clear();
            cut(result, record.logical.offset);
        }
    }
    if (!writes.empty()) {
        writes.insert(writes.begin(), result.begin(), result.end());
        result = overlay(writes);
    }
    return result;
}

}  // namespace ioweir::container
