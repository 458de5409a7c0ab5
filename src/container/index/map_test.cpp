// Where each byte lies: against an array with one entry a byte, and 100 million pieces in a bounded memory.
#include "container/index/map.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ioweir::container {
namespace {

using Entry = Run;  // in a test, Run is a member of its class

using Byte = std::pair<std::int64_t, std::int64_t>;  // source and place
constexpr Byte nowhere{-1, 0};

RC_GTEST_PROP(LogicalMap, SaysOfEachByteWhoWroteItLast, ()) {
    constexpr std::int64_t unit = 512;  // windows have at least 4 KiB
    constexpr std::int64_t end = 100;
    std::vector<Byte> model(2 * end, nowhere);
    std::int64_t length = 0;
    std::vector<Batch> batches;
    for (int i = 0; i < *rc::gen::inRange(0, 12); ++i) {
        Batch batch{{i + 1, 1, 0}, *rc::gen::inRange<std::int64_t>(0, 3), {}};
        for (int entry = 0; entry < *rc::gen::inRange(0, 4); ++entry) {
            if (*rc::gen::inRange(0, 8) == 0) {
                const auto at = *rc::gen::inRange<std::int64_t>(0, end);
                const bool cuts = *rc::gen::arbitrary<bool>();
                batch.entries.push_back({at * unit, 0, cuts ? cut_here : grown_here, 0, 0, 1});
                length = cuts ? at : std::max(length, at);
                if (cuts) std::fill(model.begin() + at, model.end(), nowhere);
                continue;
            }
            Entry run;
            run.length = *rc::gen::inRange<std::int64_t>(1, 20);
            run.offset = *rc::gen::inRange<std::int64_t>(0, end);
            run.count = *rc::gen::inRange<std::int64_t>(1, 6);
            run.stride = run.count > 1 ? run.length + *rc::gen::inRange<std::int64_t>(0, 10) : 0;
            run.place_stride = run.count > 1 ? run.length : 0;
            run.place = *rc::gen::inRange<std::int64_t>(0, 50);
            while (run.end() > 2 * end) --run.count;
            if (run.count < 1) continue;
            for (std::int64_t piece = 0; piece < run.count; ++piece) {
                const Segment one = run.piece(piece, batch.source);
                for (std::int64_t at = 0; at < one.logical.length; ++at)
                    model[static_cast<std::size_t>(one.logical.offset + at)] = {batch.source, one.place + at};
            }
            length = std::max(length, run.end());
            batch.entries.push_back({run.offset * unit, run.length * unit, run.place * unit, run.stride * unit,
                                     run.place_stride * unit, run.count});
        }
        batches.push_back(std::move(batch));
    }
    std::reverse(batches.begin(), batches.end());  // their stamps count
    const LogicalMap map(std::move(batches), *rc::gen::element<std::int64_t>(1, 40, 1 << 20));
    RC_ASSERT(map.length() == length * unit);
    for (std::int64_t at = 0; at < 2 * end; ++at) {
        const Segment found = map.locate(at * unit);
        RC_ASSERT(found.logical.offset == at * unit);
        RC_ASSERT(found.logical.length > 0);
        for (std::int64_t on = at; on < std::min(2 * end, found.logical.end() / unit); ++on) {
            const Byte expected = model[static_cast<std::size_t>(on)];
            RC_ASSERT(expected.first == found.source);
            if (found.source >= 0) RC_ASSERT(expected.second * unit == found.place + (on - at) * unit);
        }
    }
    std::vector<Byte> seen(2 * end, nowhere);
    std::int64_t last = 0;
    map.visit([&](const Segment& segment) {
        RC_ASSERT(segment.logical.offset >= last);
        last = segment.logical.end();
        for (std::int64_t at = 0; at < segment.logical.length / unit; ++at)
            seen[static_cast<std::size_t>(segment.logical.offset / unit + at)] = {segment.source,
                                                                                  segment.place / unit + at};
    });
    RC_ASSERT(seen == model);
}

std::int64_t peak_bytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

/// 10,000 writers, each with 10,000 pieces that go round: what BT-like programs leave in logs.
TEST(LogicalMap, AHundredMillionStridedPiecesTakeLittleMemory) {
    constexpr std::int64_t writers = 10'000, each = 10'000, piece = 1640;
    const std::int64_t before = peak_bytes();
    std::vector<Batch> batches;
    for (std::int64_t writer = 0; writer < writers; ++writer) {
        RunBuilder builder;
        for (std::int64_t i = 0; i < each; ++i) builder.add({(i * writers + writer) * piece, piece}, i * piece);
        ASSERT_EQ(builder.size() - 1, 1U);
        batches.push_back({{1 + writer, 1, static_cast<std::uint32_t>(writer)}, writer, builder.runs()});
        ASSERT_EQ(batches.back().entries.size(), 1U);
    }
    // The last one writes its first piece again, elsewhere in its log.
    batches.push_back({{writers + 1, 1, 0}, 0, {{0, piece, each * piece, 0, 0, 1}}});
    const LogicalMap map(std::move(batches));
    EXPECT_EQ(map.pieces(), writers * each + 1);
    EXPECT_EQ(map.runs(), writers + 1);
    EXPECT_EQ(map.length(), writers * each * piece);
    EXPECT_EQ(map.locate(5), (Segment{{5, piece - 5}, each * piece + 5, 0}));
    for (const std::int64_t i : {1L, 77L, 5'000L, 9'999L}) {
        for (const std::int64_t writer : {0L, 1L, 4'242L, 9'999L}) {
            const std::int64_t offset = (i * writers + writer) * piece;
            EXPECT_EQ(map.locate(offset), (Segment{{offset, piece}, i * piece, writer}));
            EXPECT_EQ(map.locate(offset + 600), (Segment{{offset + 600, piece - 600}, i * piece + 600, writer}));
        }
    }
    EXPECT_EQ(map.locate(map.length()).source, -1);
    EXPECT_LT(peak_bytes() - before, std::int64_t{200} << 20);
}

/// Writers whose pieces of any length lie anywhere, and join in no pattern. IOWEIR_TEST_PIECES says how many of each of 1000 writers: with 100000
/// there are 100 million.
TEST(LogicalMap, IrregularPiecesTakeAFewBytesEach) {
    const char* const given = std::getenv("IOWEIR_TEST_PIECES");
    constexpr std::int64_t writers = 1000, room = 1 << 12;
    const std::int64_t each = given != nullptr ? std::atoll(given) : 200, all = writers * each;
    const auto slot = [&](std::int64_t writer, std::int64_t i) { return (i * writers + writer) * 7'368'787 % all; };
    const auto bytes_at = [](std::int64_t place) { return 1 + place * 2'654'435'761 % 1000; };
    LogicalMap map;
    for (std::int64_t writer = 0; writer < writers; ++writer) {
        Batch batch{{1 + writer, 1, static_cast<std::uint32_t>(writer)}, writer, {}};
        std::int64_t place = 0;
        for (std::int64_t i = 0; i < each; ++i) {
            const std::int64_t bytes = bytes_at(slot(writer, i));
            batch.entries.push_back({slot(writer, i) * room, bytes, place, 0, 0, 1});
            place += bytes;
        }
        map.add(std::move(batch));
    }
    map.settle(given != nullptr ? LogicalMap::usual_pieces : 1 << 17);
    EXPECT_EQ(map.runs(), all);
    EXPECT_EQ(map.pieces(), all);
    EXPECT_LT(map.memory_bytes(), 15 * all + (std::int64_t{4} << 20));
    for (std::int64_t writer = 0; writer < writers; writer += 123) {
        std::int64_t place = 0;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(each, 20); ++i) {
            const std::int64_t at = slot(writer, i), bytes = bytes_at(at);
            EXPECT_EQ(map.locate(at * room), (Segment{{at * room, bytes}, place, writer}));
            EXPECT_EQ(map.locate(at * room + bytes).source, -1);
            place += bytes;
        }
    }
    std::int64_t seen = 0, last = -1;
    map.visit([&](const Segment& segment) {
        const std::int64_t at = segment.logical.offset / room;
        ASSERT_GT(at, last);
        ASSERT_EQ(segment.logical, (layout::Extent{at * room, bytes_at(at)}));
        last = at;
        ++seen;
    });
    EXPECT_EQ(seen, all);
}

#ifndef __SANITIZE_ADDRESS__  // which takes memory of its own
/// As an index may have it that nobody has written in order: 6 million pieces in 4 KiB. All of them at once would take 200 MB.
TEST(LogicalMap, PiecesThatLieUponEachOtherTakeLittleMemory) {
    constexpr std::int64_t runs = 3000, count = 2048;
    LogicalMap map;
    for (std::int64_t i = 0; i < runs; ++i) map.add({{1 + i, 1, 0}, i, {{0, 1, 0, 2, 1, count}}});
    map.settle();
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    EXPECT_EQ(map.pieces(), runs * count);
    EXPECT_EQ(map.locate(2046), (Segment{{2046, 1}, 1023, runs - 1}));
    EXPECT_EQ(map.locate(2047).source, -1);
    ::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 48 << 10) << "KiB";
}
#endif

/// No index of a program says so, but nothing keeps one from it.
TEST(LogicalMap, LongPiecesUponEachOtherAreFewWindows) {
    constexpr std::int64_t long_bytes = std::int64_t{1} << 60, batches = 100;
    std::vector<Batch> all;
    for (std::int64_t i = 0; i < batches; ++i) all.push_back({{i + 1, 1, 0}, i, {{i * 8192, long_bytes, 0, 0, 0, 1}}});
    // More of them than a window may have pieces.
    const LogicalMap map(std::move(all), batches / 2);
    std::int64_t bytes = 0, parts = 0;
    Segment last;
    map.visit([&](const Segment& segment) {
        bytes += segment.logical.length;
        ++parts;
        last = segment;
    });
    EXPECT_EQ(bytes, (batches - 1) * 8192 + long_bytes);
    EXPECT_LT(parts, 1000);
    EXPECT_EQ(last.source, batches - 1);
    EXPECT_EQ(map.locate(8192 * 7 + 5).source, 7);
    EXPECT_EQ(map.locate(long_bytes / 2).source, batches - 1);
}

TEST(LogicalMap, NumbersOfPiecesEndAt63Bits) {
    constexpr std::int64_t many = std::int64_t{1} << 61;
    LogicalMap map;
    for (std::int64_t i = 0; i < 6; ++i) map.add({{1 + i, 1, 0}, 0, {{0, 1, 0, 2, 1, many}, {0, 1, 0, 2, 1, many}}});
    map.settle();
    EXPECT_EQ(map.pieces(), INT64_MAX);
    EXPECT_EQ(map.locate(4).place, 2);
}

/// Any runs come back as they were.
RC_GTEST_PROP(PackedRuns, AreTheSameUnpacked, ()) {
    PackedRuns packed;
    std::vector<std::pair<PackedRuns::Spot, std::vector<Entry>>> kept;
    for (int time = 0; time < *rc::gen::inRange(1, 5); ++time) {
        std::vector<Entry> runs;
        for (int i = 0; i < *rc::gen::inRange(0, static_cast<int>(PackedRuns::most_runs) + 1); ++i) {
            const int shift = *rc::gen::inRange(0, 40);
            Entry run;
            run.offset = *rc::gen::inRange<std::int64_t>(0, 1 << 20) << shift;
            run.length = *rc::gen::inRange<std::int64_t>(0, 1 << 12);
            run.place = *rc::gen::inRange<std::int64_t>(0, 1 << 20) << *rc::gen::inRange(0, 40);
            if (*rc::gen::arbitrary<bool>() && run.length > 0) {
                run.count = *rc::gen::inRange<std::int64_t>(2, 1000);
                run.stride = run.length + *rc::gen::inRange<std::int64_t>(0, 1 << 30);
                run.place_stride = *rc::gen::inRange<std::int64_t>(-1000, 1 << 30);
            }
            runs.push_back(run);
        }
        const PackedRuns::Spot spot = packed.put(runs);
        kept.emplace_back(spot, std::move(runs));
    }
    for (const auto& [spot, runs] : kept) {
        std::vector<Entry> back;
        packed.get(spot, runs.size(), [&](const Entry& run) { back.push_back(run); });
        RC_ASSERT(back == runs);
    }
}

}  // namespace
}  // namespace ioweir::container
