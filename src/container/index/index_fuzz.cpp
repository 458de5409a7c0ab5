// Fuzzes indexes and the map that is made of them: what decode() takes is what encode() writes, and of each byte the map says what a look at
// all entries, one after the other, says. Memory stays within bounds however many pieces entries claim to have.
// An input: a byte of flags (1: batches are built of the input and sealed, else it is the index's bytes; 2: with an identity; 4: small numbers;
// 8, 16, 32: how many pieces a window may have), and the rest. One input in 128 is looked at closely: at maps of many
// pieces, too, and one in 2048 with as many pieces in a window as containers have: either takes up to a thousand times as long as the others.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "container/index/index.hpp"
#include "container/index/map.hpp"

namespace ioweir {
namespace {

using container::Batch;
using container::cut_here;
using container::grown_here;
using container::Identity;
using container::LogicalMap;
using container::Run;
using container::Segment;

constexpr int built = 1, named = 2, small = 4, few_pieces = 8, one_piece = 16, usual_pieces = 32;
constexpr std::size_t most_entries = 24;

/// How much of a map is looked at.
struct Look {
    bool closely = false;
    std::int64_t most_pieces = 0;
};

/// Where a byte lies, without a map.
Segment look(const std::vector<Batch>& by_time, std::int64_t offset) {
    Segment found{{offset, 1}, 0, -1};
    for (const Batch& batch : by_time) {
        for (const Run& entry : batch.entries) {
            if (entry.place < 0) {
                if (entry.place == cut_here && offset >= entry.offset) found = {{offset, 1}, 0, -1};
                continue;
            }
            if (entry.length == 0 || offset < entry.offset || offset >= entry.end()) continue;
            const std::int64_t number = entry.count == 1 ? 0 : (offset - entry.offset) / entry.stride;
            const std::int64_t within = offset - entry.offset - number * entry.stride;
            if (within < entry.length)
                found = {{offset, 1}, entry.place + number * entry.place_stride + within, batch.source};
        }
    }
    return found;
}

void check_at(const LogicalMap& map, const std::vector<Batch>& by_time, std::int64_t offset) {
    if (offset < 0 || offset == INT64_MAX) return;
    const Segment found = map.locate(offset);
    require(found.logical.offset == offset && found.logical.length > 0 && found.source >= -1, "a segment at an offset");
    for (const std::int64_t at : {offset, offset + found.logical.length / 2, offset + found.logical.length - 1}) {
        const Segment wanted = look(by_time, at);
        require(wanted.source == found.source, "the source of a byte");
        require(wanted.source < 0 || wanted.place == found.place + (at - offset), "the place of a byte");
    }
}

void check_map(std::vector<Batch> batches, const Look& how) {
    std::stable_sort(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) { return a.time < b.time; });
    const LogicalMap map(batches, how.most_pieces);
    std::int64_t length = 0;
    std::vector<std::int64_t> places;
    for (const Batch& batch : batches) {
        for (const Run& entry : batch.entries) {
            const bool is_length = entry.place < 0;
            if (is_length && entry.place == cut_here) length = entry.offset;
            if (is_length || entry.length > 0) length = std::max(length, is_length ? entry.offset : entry.end());
            for (const std::int64_t at :
                 {entry.offset, entry.end() - 1, entry.end(), entry.offset + entry.count / 2 * entry.stride})
                places.push_back(at);
        }
    }
    require(map.length() == length, "the length of the logical file");
    // Not all: each may take a window of its own.
    constexpr std::int64_t many_pieces = 64;
    const bool has_many = map.pieces() > many_pieces;
    const std::size_t most_places = how.closely ? (has_many ? 1 : 16) : has_many ? 0 : 4;
    const std::size_t step = most_places > 0 ? places.size() / most_places + 1 : 2 * places.size() + 1;
    for (std::size_t i = step / 2; i < places.size(); i += step) check_at(map, batches, places[i]);
    for (const std::int64_t end : map.ends(4)) require(end >= 0, "the end of a source");
    require(map.pieces() >= 0 && map.runs() >= 0, "the number of pieces");
    if (map.pieces() > 64) return;
    std::int64_t last = 0;
    map.visit([&](const Segment& segment) {
        require(segment.logical.offset >= last && segment.logical.length > 0 && segment.source >= 0,
                "a segment behind the one before it");
        last = segment.logical.end();
    });
}

/// As the container's reader has them: each source below 2^63 and none negative.
bool has_sources(const std::vector<Batch>& batches) {
    return std::all_of(batches.begin(), batches.end(), [](const Batch& batch) { return batch.source >= 0; });
}

std::vector<Batch> build(FuzzInput& input, bool of_small_numbers) {
    const auto number = [&]() -> std::int64_t {
        const auto low = input.number<std::uint8_t>();
        if (of_small_numbers || low < 0x80) return low;
        if (low < 0xc0) return input.number<std::uint16_t>();
        if (low < 0xe0) return std::int64_t{1} << (low & 62);
        return input.number<std::int64_t>();
    };
    // Numbers that no run can have are for decode() to refuse.
    const auto sum = [](std::int64_t a, std::int64_t b) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    };
    std::vector<Batch> batches;
    for (std::size_t entries = 0; !input.empty() && entries < most_entries;) {
        const auto what = input.number<std::uint8_t>();
        Batch batch{{what & 7, static_cast<std::uint32_t>(what >> 3 & 1), static_cast<std::uint32_t>(what >> 4 & 1)},
                    what >> 5 & 3,
                    {}};
        for (int left = input.number<std::uint8_t>() % 6; left > 0; --left, ++entries) {
            Run run;
            run.offset = number();
            run.length = number();
            run.place = input.number<std::uint8_t>() < 16 ? (run.length % 2 == 0 ? cut_here : grown_here) : number();
            if (run.place < 0) {
                run.length = 0;
            } else if (input.number<std::uint8_t>() < 128) {
                run.count = sum(1, number());
                run.stride = sum(run.length, number());
                run.place_stride = number();
            }
            batch.entries.push_back(run);
        }
        batches.push_back(std::move(batch));
    }
    return batches;
}

void read_index(const std::string& bytes, const Identity& identity, const std::vector<Batch>* wanted, const Look& how) {
    const container::Decoded decoded = container::decode(bytes, identity, 1000);
    std::string again;
    for (const Batch& batch : decoded.batches) again += container::encode(batch, identity);
    require(again.size() <= bytes.size() && bytes.compare(0, again.size(), again) == 0,
            "what is read is what is written");
    require(decoded.damage.empty() == (again.size() == bytes.size()), "damage is said");
    require(decoded.damage.size() < 300, "an error as long as a file");
    if (!decoded.batches.empty()) {
        const container::BatchHead head = container::read_head(bytes);
        require(head.stamp == decoded.batches[0].time.stamp && head.bytes > 0, "the head of a batch");
    }
    if (wanted != nullptr && decoded.damage.empty())
        require(decoded.batches == *wanted, "batches as they were written");
    std::size_t entries = 0;
    for (const Batch& batch : decoded.batches) entries += batch.entries.size();
    if (entries <= most_entries && has_sources(decoded.batches)) check_map(decoded.batches, how);
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const Identity identity = Identity::value_type{1, 2, 3};
    const std::vector<Batch> batches{
        {{7, 1, 0}, 0, {{0, 100, 0, 0, 0, 1}, {100, 10, 100, 20, 10, 5}}},
        {{8, 1, 1}, 1, {{50, 30, 0, 0, 0, 1}, {300, 0, grown_here, 0, 0, 1}}},
        {{9, 2, 0}, 2, {{60, 0, cut_here, 0, 0, 1}, {4096, 1, 7, 2, 1, 5000}}},
    };
    std::string plain, with_id;
    for (const Batch& batch : batches) {
        plain += container::encode(batch);
        with_id += container::encode(batch, identity);
    }
    std::string built_of;
    for (int i = 0; i < 80; ++i) built_of += static_cast<char>(i * 37 % 128);
    std::vector<std::string> seeds{std::string(1, '\0') + plain, std::string(1, static_cast<char>(named)) + with_id};
    for (const int flags :
         {built, built | small, built | usual_pieces, built | named | few_pieces, built | small | one_piece})
        seeds.push_back(std::string(1, static_cast<char>(flags)) + built_of);
    return seeds;
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    const auto flags = input.number<std::uint8_t>();
    const Identity identity = (flags & named) != 0 ? Identity(Identity::value_type{1, 2, 3}) : std::nullopt;
    const bool closely = is_one_in(128, data, size), hugely = is_one_in(2048, data, size);
    const Look how{closely, (flags & one_piece) != 0                ? 1
                            : (flags & few_pieces) != 0             ? 40
                            : (flags & usual_pieces) != 0 && hugely ? LogicalMap::usual_pieces
                                                                    : 500};
    if ((flags & built) == 0) {
        read_index(input.rest(), identity, nullptr, how);
        return 0;
    }
    const std::vector<Batch> batches = build(input, (flags & small) != 0);
    std::string bytes;
    for (const Batch& batch : batches) bytes += container::encode(batch, identity);
    read_index(bytes, identity, &batches, how);
    return 0;
}
