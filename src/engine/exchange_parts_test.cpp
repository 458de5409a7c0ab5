// The parts of the exchange that need no other process, each against a brute-force oracle: lists of runs, maps of granules, the
// proof that a region is dense, places of file offsets in a view's data.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "engine/census.hpp"
#include "engine/division.hpp"
#include "engine/messages.hpp"
#include "engine/placement.hpp"
#include "engine/slot_map.hpp"

namespace ioweir::engine {
namespace {

using layout::Extent;
using layout::ExtentList;

/// Rising extents with gaps; short repetitions of the same shape are frequent.
ExtentList random_extents(std::int64_t start, bool gapless) {
    ExtentList list;
    std::int64_t at = start;
    const int groups = *rc::gen::inRange(0, 6);
    for (int group = 0; group < groups; ++group) {
        const std::int64_t gap = gapless ? 0 : *rc::gen::inRange<std::int64_t>(0, 200);
        const std::int64_t length = *rc::gen::inRange<std::int64_t>(1, 300);
        const int repeats = *rc::gen::inRange(1, 5);
        for (int i = 0; i < repeats; ++i) {
            list.push_back({at + gap, length});
            at += gap + length;
        }
    }
    return list;
}

TEST(Runs, AreReadAsTheyWereWritten) {
    EXPECT_TRUE(rc::check([] {
        const ExtentList list = random_extents(0, false);
        auto writer = std::make_unique<RunWriter>();
        writer->clear();
        for (const Extent& extent : list) RC_ASSERT(writer->add({extent.offset, extent.length}));
        writer->finish();
        RunReader reader(writer->data(), writer->size(), INT64_MAX);
        ExtentList back;
        for (engine::Run run; reader.next(run);) back.push_back({run.at, run.bytes});
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
    for (engine::Run run; reader.next(run);) ++read;
    EXPECT_EQ(read, added);
}

TEST(Runs, ReadingForeignBytesStaysWithinTheBuffer) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& bytes) {
        constexpr std::int64_t limit = 1000;
        RunReader reader(reinterpret_cast<const std::byte*>(bytes.data()), static_cast<std::int64_t>(bytes.size()),
                         limit);
        std::int64_t end = 0;
        for (engine::Run run; reader.next(run);) {
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

layout::FlatType listed_type(const ExtentList& list, std::int64_t extent) {
    layout::FlatTypeBuilder builder;
    for (const Extent& run : list) {
        if (!builder.append(run)) ADD_FAILURE() << "too many blocks";
    }
    return builder.build(0, extent);
}

/// A rank's pieces as a view of one instance.
Survey survey_of(const ExtentList& list) {
    const std::int64_t end = list.empty() ? 1 : list.back().end();
    const layout::FileView view{0, 1, std::make_shared<layout::FlatType>(listed_type(list, end))};
    return Survey::of({&view, 0}, view.filetype->size);
}

TEST(Census, ARegionIsDenseIfAndOnlyIfEachByteIsWantedOnce) {
    EXPECT_TRUE(rc::check([] {
        // Mostly a dense region dealt out to some ranks; then, often, one extent is changed.
        const ExtentList all = random_extents(*rc::gen::inRange<std::int64_t>(0, 1000), *rc::gen::arbitrary<bool>());
        const int ranks = *rc::gen::inRange(1, 5);
        std::vector<ExtentList> lists(static_cast<std::size_t>(ranks));
        for (const Extent& extent : all) lists[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))].push_back(extent);
        if (!all.empty() && *rc::gen::arbitrary<bool>()) {
            ExtentList& list = lists[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))];
            const Extent extra = *rc::gen::elementOf(all);
            list.push_back({extra.offset + *rc::gen::inRange<std::int64_t>(0, 5), extra.length});
        }
        for (ExtentList& list : lists) layout::normalize(list);
        std::vector<Contribution> said;
        std::vector<int> wanted(20'000);
        Extent region;
        std::int64_t bytes = 0;
        for (const ExtentList& list : lists) {
            said.push_back(survey_of(list).contribution());
            for (const Extent& extent : list) {
                region = layout::hull(region, extent);
                bytes += extent.length;
                for (std::int64_t i = extent.offset; i < extent.end(); ++i) ++wanted[static_cast<std::size_t>(i)];
            }
        }
        const Census census = Census::of(said);
        RC_ASSERT(census.region == region);
        RC_ASSERT(census.bytes == bytes);
        const bool dense = bytes > 0 && std::all_of(wanted.begin() + region.offset, wanted.begin() + region.end(),
                                                    [](int count) { return count == 1; });
        RC_ASSERT(census.dense == dense);
        for (const ExtentList& list : lists) {
            for (const Extent& extent : list) {
                RC_ASSERT(extent.offset % census.granule_bytes == 0);
                RC_ASSERT(extent.end() % census.granule_bytes == 0);
            }
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

TEST(Placement, SpreadsWritersOverNodesAndThenOverTheirRanks) {
    EXPECT_EQ(place_writers(std::vector<int>{0, 0, 0, 1}, 2), (std::vector<int>{0, 3}));
    EXPECT_EQ(place_writers(std::vector<int>{0, 0, 0, 0}, 3), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(place_writers(std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}, 4), (std::vector<int>{0, 2, 4, 6}));
    EXPECT_EQ(place_writers(std::vector<int>{0, 1, 2, 3, 4, 5}, 2), (std::vector<int>{0, 3}));
    EXPECT_EQ(place_writers(std::vector<int>{0, 1, 1, 1, 1, 1}, 4), (std::vector<int>{0, 1, 2, 4}));
}

TEST(Placement, KeepsNodesLevelAsFarAsTheyHaveRanks) {
    EXPECT_TRUE(rc::check([] {
        const int nodes = *rc::gen::inRange(1, 7);
        std::vector<int> node_of, sizes;
        for (int node = 0; node < nodes; ++node) {
            sizes.push_back(*rc::gen::inRange(1, 6));
            node_of.insert(node_of.end(), static_cast<std::size_t>(sizes.back()), node);
        }
        const std::int64_t writers = *rc::gen::inRange<std::int64_t>(1, std::ssize(node_of) + 1);
        const std::vector<int> placed = place_writers(node_of, writers);
        RC_ASSERT(std::ssize(placed) == writers);
        RC_ASSERT(std::adjacent_find(placed.begin(), placed.end(), std::greater_equal<>()) == placed.end());
        RC_ASSERT(placed.front() >= 0 && placed.back() < std::ssize(node_of));
        std::vector<int> share(static_cast<std::size_t>(nodes), 0);
        for (const int rank : placed) ++share[static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)])];
        const int most = *std::max_element(share.begin(), share.end());
        for (std::size_t node = 0; node < share.size(); ++node)
            RC_ASSERT(share[node] >= most - 1 || share[node] == sizes[node]);
    }));
}

/// What ranks with these extents say.
std::vector<Contribution> said_by(const ExtentList& hulls) {
    std::vector<Contribution> said;
    for (const Extent& hull : hulls) said.push_back(Survey{hull, hull.length, 0, 0}.contribution());
    return said;
}

TEST(Divisions, RanksOneBehindTheOtherGoWithTheirWriters) {
    // Eight ranks with 100 bytes each, four writers: two ranks a writer.
    ExtentList hulls;
    for (int rank = 0; rank < 8; ++rank) hulls.push_back({1000 + 100 * rank, 100});
    std::vector<Contribution> said = said_by(hulls);
    Divider divider(8);
    EXPECT_EQ(divider.divide(Census::of(said), 4, 0), (Division{{0, 0, 1, 1, 2, 2, 3, 3}, {1, 1, 1, 1}}));
    EXPECT_EQ(divider.divide(Census::of(said), 1, 0).groups(), 1);
    // Three writers: domains of 267 bytes would have to end 67 bytes away from where ranks meet.
    EXPECT_EQ(divider.divide(Census::of(said), 3, 0).groups(), 1);
    // Stripes of 700 from offset 0: of the places where domains meet only 1400 is a boundary.
    EXPECT_EQ(divider.divide(Census::of(said), 4, 700), (Division{{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2}}));
    // A rank without bytes goes with the one before it; the order of ranks in the file may be any.
    hulls[3] = {};
    std::swap(hulls[0], hulls[7]);
    said = said_by(hulls);
    EXPECT_EQ(divider.divide(Census::of(said), 2, 0), (Division{{1, 0, 0, 0, 1, 1, 1, 0}, {1, 1}}));
}

TEST(Divisions, InterleavedRanksStayTogether) {
    ExtentList hulls;
    for (int rank = 0; rank < 6; ++rank) hulls.push_back({10 * rank, 1000});
    const std::vector<Contribution> said = said_by(hulls);
    EXPECT_EQ(Divider(6).divide(Census::of(said), 3, 0).groups(), 1);
}

TEST(Divisions, NoGroupReachesIntoAnotherAndAllWritersHaveRanks) {
    EXPECT_TRUE(rc::check([] {
        const int ranks = *rc::gen::inRange(1, 12);
        const std::int64_t writers = *rc::gen::inRange(1, ranks + 1);
        const std::int64_t unit = *rc::gen::element<std::int64_t>(0, 0, 8, 64);
        ExtentList hulls;
        std::int64_t at = *rc::gen::inRange<std::int64_t>(0, 100);
        const bool regular = *rc::gen::arbitrary<bool>();
        for (int rank = 0; rank < ranks; ++rank) {
            const std::int64_t length = regular ? 64 : *rc::gen::element<std::int64_t>(0, 64, 64, 64, 128, 200);
            const std::int64_t back = regular ? 0 : *rc::gen::element<std::int64_t>(0, 0, 0, 0, 30);
            hulls.push_back({std::max<std::int64_t>(0, at - back), length});
            at = hulls.back().end() + (regular ? 0 : *rc::gen::element<std::int64_t>(0, 0, 0, 7));
        }
        std::swap(hulls[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))], hulls[0]);
        const std::vector<Contribution> said = said_by(hulls);
        const Census census = Census::of(said);
        RC_PRE(census.bytes > 0);
        Divider divider(static_cast<std::size_t>(ranks));
        const Division& division = divider.divide(census, writers, unit);
        RC_TAG(division.groups() > 1 ? "divided" : "together");
        std::int64_t all = 0;
        for (const std::int64_t its : division.writers) all += its;
        RC_ASSERT(all == writers);
        for (int group = 0; group < division.groups(); ++group) {
            RC_ASSERT(division.writers[static_cast<std::size_t>(group)] >= 1);
            std::int64_t members = 0;
            for (std::size_t rank = 0; rank < hulls.size(); ++rank) {
                members += division.group_of[rank] == group && hulls[rank].length > 0;
                for (std::size_t other = 0; other < hulls.size(); ++other) {
                    if (division.group_of[rank] >= division.group_of[other] || hulls[rank].empty() ||
                        hulls[other].empty())
                        continue;
                    RC_ASSERT(hulls[rank].end() <= hulls[other].offset);
                    if (unit > 0) RC_ASSERT((hulls[rank].end() + unit - 1) / unit * unit <= hulls[other].offset);
                }
            }
            RC_ASSERT(division.groups() == 1 || members >= division.writers[static_cast<std::size_t>(group)]);
        }
    }));
}

}  // namespace
}  // namespace ioweir::engine
