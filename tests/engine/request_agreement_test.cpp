// What ranks agree on in a collective call, against what each works out from all ranks' requests, and what that costs them. Run under
// mpiexec, with IOWEIR_TEST_RANKS_PER_NODE for several nodes.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/calls/agreement.hpp"

namespace ioweir::engine {
namespace {

using layout::FileView;
using layout::FlatType;
using layout::FlatTypeBuilder;

/// One rank's request in a call; every rank knows all of them.
struct Wanted {
    FileView view;
    std::int64_t first_byte = 0;
    std::int64_t bytes = 0;
};

FileView strided(std::int64_t displacement, std::int64_t length, std::int64_t count, std::int64_t stride) {
    FlatTypeBuilder builder = FlatTypeBuilder::run(0, length);
    EXPECT_TRUE(builder.repeat(count, stride));
    return {displacement, 1, std::make_shared<const FlatType>(builder.build(0, count * stride))};
}

/// The same view of another datatype, whose data begin `by` bytes further on in it.
FileView made_anew(const FileView& view, std::int64_t by) {
    auto type = std::make_shared<FlatType>(*view.filetype);
    for (FlatType::Block& block : type->blocks) block.first.offset += by;
    type->bounds.offset += by;
    return {view.displacement - by, view.etype_bytes, std::move(type)};
}

planner::RankSummary summary_of(const Wanted& wanted) {
    planner::RankSummary summary;
    summary.bytes = wanted.bytes;
    if (wanted.bytes == 0) return summary;
    layout::PieceCursor pieces = wanted.view.pieces(wanted.first_byte, wanted.bytes);
    for (layout::Extent piece; pieces.next(piece);) summary.add(piece);
    return summary;
}

class World {
public:
    World() {
        std::string why;
        group = exchange::Group::make(MPI_COMM_WORLD, why);
        agreement = std::make_unique<Agreement>(static_cast<std::size_t>(group->size()));
    }
    ~World() { group->free(); }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    void agree(const Wanted& wanted) {
        mine.set({&wanted.view, wanted.first_byte}, wanted.bytes);
        agreement->agree(*group, mine, true);
    }

    std::unique_ptr<exchange::Group> group;
    std::unique_ptr<Agreement> agreement;
    OwnRequest mine;
};

void expect_same(const planner::RequestSummary& agreed, const std::vector<Wanted>& all) {
    std::vector<planner::RankSummary> said;
    for (const Wanted& wanted : all) said.push_back(summary_of(wanted));
    const auto truth = planner::RequestSummary::of(said, true);
    EXPECT_EQ(agreed.region, truth.region);
    EXPECT_EQ(agreed.bytes, truth.bytes);
    EXPECT_EQ(agreed.pieces, truth.pieces);
    EXPECT_EQ(agreed.dense, truth.dense);
    EXPECT_EQ(agreed.covered(), truth.covered());
    EXPECT_EQ(truth.granule_bytes % agreed.granule_bytes, 0) << agreed.granule_bytes << " of " << truth.granule_bytes;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (said[rank].bytes == 0) continue;
        EXPECT_EQ(agreed.hull(static_cast<int>(rank)), said[rank].hull) << "rank " << rank;
    }
}

TEST(RequestAgreement, IsWhatEachRankAsksForInAnySequenceOfCalls) {
    World world;
    const auto ranks = static_cast<std::size_t>(world.group->size());
    std::mt19937_64 random(ranks);
    const auto below = [&](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
    std::vector<Wanted> all(ranks);
    for (int call = 0; call < 400; ++call) {
        const std::int64_t kind = below(8);
        if (kind == 0 || call == 0) {  // all ask for something else
            const std::int64_t length = 1 + below(64);
            const std::int64_t count = 1 + below(4);
            const auto stride = length * static_cast<std::int64_t>(ranks);
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                const std::int64_t at = below(3) * 64 + static_cast<std::int64_t>(rank) * length;
                all[rank] = {strided(at, length, count, stride), 0, below(5) == 0 ? 0 : length * count};
            }
        } else if (kind == 1) {  // one of them asks for more or less, or nothing
            all[random() % ranks].bytes = below(100);
        } else if (kind == 2) {  // one of them goes on alone
            Wanted& one = all[random() % ranks];
            one.first_byte += one.view.filetype->size;
        } else if (kind == 3) {  // by no whole instance of the filetype
            for (Wanted& one : all) one.first_byte += 1;
        } else if (kind == 4) {  // a view that begins elsewhere
            const std::int64_t by = below(1000);
            for (Wanted& one : all) one.view.displacement += by;
        } else if (kind == 5) {  // datatypes made anew, of the same content, which begins elsewhere in them
            const std::int64_t by = below(100);
            for (Wanted& one : all) one.view = made_anew(one.view, by);
        } else if (kind > 5) {  // the next step of a loop
            for (Wanted& one : all) one.first_byte += one.view.filetype->size;
        }
        world.agree(all[static_cast<std::size_t>(world.group->rank())]);
        expect_same(world.agreement->request(true), all);
        if (testing::Test::HasFailure()) FAIL() << "call " << call << ", kind " << kind;
    }
    EXPECT_GT(world.group->told().reductions, 50);
    EXPECT_GT(world.group->told().meetings, 50);
}

TEST(RequestAgreement, CostsTheSameForAnyNumberOfRanksWhereNothingChanges) {
    World world;
    const int ranks = world.group->size();
    Wanted wanted{strided(world.group->rank() * 512, 512, 1, 512 * ranks), 0, 512};
    const auto next_call = [&] {
        world.agree(wanted);
        wanted.first_byte += 512;
    };
    next_call();
    next_call();  // all ranks see that they repeat themselves
    const exchange::Told before = world.group->told();
    constexpr int calls = 20;
    for (int i = 0; i < calls; ++i) next_call();
    const exchange::Told& after = world.group->told();
    EXPECT_EQ(after.meetings, before.meetings);
    EXPECT_EQ(after.reductions, before.reductions + calls);
    // Two words to the node, and two from its first rank to the others'.
    EXPECT_LE(after.bytes - before.bytes, calls * 32);
    EXPECT_EQ(world.agreement->request(true).region.offset, (calls + 1) * 512 * ranks);
}

// As HDF5 does it: a filetype for each call, in which the place in the dataset is told.
TEST(RequestAgreement, TakesDatatypesMadeAnewForWhatTheyHold) {
    World world;
    const int ranks = world.group->size();
    const std::int64_t step = 4 * 64 * ranks;
    const auto call = [&](std::int64_t number, std::int64_t length) {
        FlatTypeBuilder builder = FlatTypeBuilder::run(number * step + world.group->rank() * 64, length);
        EXPECT_TRUE(builder.repeat(4, 64 * ranks));
        // One instance is all that is asked for, so that the dataset's extent, which may grow, does not matter.
        world.agree({{0, 1, std::make_shared<const FlatType>(builder.build(0, (number + 2) * step))}, 0, 4 * length});
    };
    call(0, 64);
    call(1, 64);
    const exchange::Told before = world.group->told();
    for (std::int64_t number = 2; number < 12; ++number) call(number, 64);
    EXPECT_EQ(world.group->told().meetings, before.meetings);
    EXPECT_EQ(world.group->told().reductions, before.reductions + 10);
    EXPECT_EQ(world.agreement->request(true).region, (layout::Extent{11 * step, step}));
    EXPECT_TRUE(world.agreement->request(true).dense);
    call(12, 32);  // of the same extent, and other bytes
    EXPECT_EQ(world.group->told().meetings, before.meetings + 1);
    EXPECT_EQ(world.agreement->request(true).bytes, 4 * 32 * ranks);
}

TEST(RequestAgreement, TellsTwoOffsetsARankWhereSomethingChanges) {
    World world;
    const int ranks = world.group->size();
    const int nodes = world.group->nodes();
    const exchange::Told before = world.group->told();
    constexpr int calls = 10;
    for (int i = 0; i < calls; ++i) world.agree({strided(world.group->rank() * 512, 512, 1, 512 * ranks), 0, 512 - i});
    const exchange::Told& after = world.group->told();
    EXPECT_EQ(after.reductions, before.reductions);
    EXPECT_LE(after.bytes - before.bytes,
              calls * (16 * (ranks + 1) + static_cast<int>(sizeof(exchange::Sums)) * (nodes + 1)));
}

}  // namespace
}  // namespace ioweir::engine
