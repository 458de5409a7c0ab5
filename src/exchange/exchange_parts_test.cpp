// The parts of the exchange that need no other process, each against a brute-force oracle: lists of runs, maps of granules, places
// of file offsets in a view's data.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "exchange/direct.hpp"
#include "exchange/messages.hpp"
#include "exchange/slot_map.hpp"
#include "layout/core/testing.hpp"

namespace ioweir::exchange {
namespace {

using layout::Extent;
using layout::ExtentList;
using layout::testing::random_extents;

TEST(Runs, AreReadAsTheyWereWritten) {
    EXPECT_TRUE(rc::check([] {
        const ExtentList list = random_extents(0, false);
        auto writer = std::make_unique<RunWriter>();
        writer->clear();
        for (const Extent& extent : list) RC_ASSERT(writer->add({extent.offset, extent.length}));
        writer->finish();
        RunReader reader(writer->data(), writer->size(), INT64_MAX);
        ExtentList back;
        for (exchange::Run run; reader.next(run);) back.push_back({run.at, run.bytes});
        RC_ASSERT(back == list);
    }));
}

TEST(Runs, AThousandOfOneShapeTakeAFewBytes) {
    auto writer = std::make_unique<RunWriter>();
    writer->clear();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(writer->add({i * 4096LL + 100, 512}));
    writer->finish();
    EXPECT_LE(writer->size(), 16);
}

TEST(Runs, AFullListSaysSoAndLosesNothing) {
    auto writer = std::make_unique<RunWriter>();
    writer->clear();
    std::int64_t at = 0;
    std::int64_t added = 0;
    while (writer->add({at, 1 + added % 7 * 1000})) {
        at += 1 + added % 7 * 1000 + added % 5 * 100;
        ++added;
    }
    writer->finish();
    EXPECT_LE(writer->size(), RunWriter::capacity);
    RunReader reader(writer->data(), writer->size(), INT64_MAX);
    std::int64_t read = 0;
    for (exchange::Run run; reader.next(run);) ++read;
    EXPECT_EQ(read, added);
}

TEST(Runs, ReadingForeignBytesStaysWithinTheBuffer) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& bytes) {
        constexpr std::int64_t limit = 1000;
        RunReader reader(reinterpret_cast<const std::byte*>(bytes.data()), static_cast<std::int64_t>(bytes.size()),
                         limit);
        std::int64_t end = 0;
        for (exchange::Run run; reader.next(run);) {
            RC_ASSERT(run.at >= end && run.bytes > 0 && run.at + run.bytes <= limit);
            end = run.at + run.bytes;
        }
    }));
}

TEST(SlotMap, FindsWhatWasMarked) {
    EXPECT_TRUE(rc::check([] {
        std::vector<MapWord> map(20);
        std::vector<bool> oracle(map.size() * 64);
        const int marks = *rc::gen::inRange(0, 12);
        for (int i = 0; i < marks; ++i) {
            const auto first = *rc::gen::inRange<std::int64_t>(0, 1200);
            const auto count = std::min<std::int64_t>(*rc::gen::inRange<std::int64_t>(0, 300), 1280 - first);
            mark_granules(map.data(), first, count);
            std::fill_n(oracle.begin() + first, count, true);
        }
        const auto from = *rc::gen::inRange<std::int64_t>(0, 1280);
        const auto end = *rc::gen::inRange<std::int64_t>(from, 1281);
        for (const bool wanted : {true, false}) {
            const auto expected = std::find(oracle.begin() + from, oracle.begin() + end, wanted) - oracle.begin();
            RC_ASSERT(find_granule(map.data(), from, end, wanted) == expected);
        }
    }));
}

TEST(View, KnowsHowMuchOfItsDataLiesBeforeAnOffset) {
    EXPECT_TRUE(rc::check([] {
        // A nest of two loops, then single runs: ascending.
        auto builder = layout::FlatTypeBuilder::run(*rc::gen::inRange<std::int64_t>(0, 50),
                                                    *rc::gen::inRange<std::int64_t>(1, 20));
        RC_ASSERT(builder.repeat(*rc::gen::inRange<std::int64_t>(1, 5), *rc::gen::inRange<std::int64_t>(20, 40)));
        RC_ASSERT(builder.repeat(*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange<std::int64_t>(200, 260)));
        for (const Extent& run : random_extents(1200, false)) RC_ASSERT(builder.append(run));
        const auto type =
            std::make_shared<layout::FlatType>(builder.build(0, 9000 + *rc::gen::inRange<std::int64_t>(0, 100)));
        RC_ASSERT(type->ascending);
        const layout::FileView view{*rc::gen::inRange<std::int64_t>(0, 100), 1, type};
        const std::int64_t bytes = 3 * type->size;
        const std::int64_t position = *rc::gen::inRange<std::int64_t>(0, 28'000);
        std::int64_t before = 0;
        layout::PieceCursor pieces = view.pieces(0, bytes);
        for (Extent piece; pieces.next(piece);)
            before += std::clamp<std::int64_t>(position - piece.offset, 0, piece.length);
        RC_ASSERT(std::min(view.data_before(position), bytes) == before);
    }));
}

}  // namespace
}  // namespace ioweir::exchange
