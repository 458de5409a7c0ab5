// Clocks, runs and the index's bytes.
#include "container/index/index.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

namespace ioweir::container {
namespace {

using Entry = Run;  // in a test, Run is a member of its class

TEST(Clock, NeverGoesBackWhateverTheTimeOfDay) {
    std::int64_t time = 100;
    Clock clock([&] { return time; });
    EXPECT_EQ(clock.last(), 0);
    EXPECT_EQ(clock.next(), 100);
    EXPECT_EQ(clock.next(), 101) << "the time of day stands still";
    time = 50;
    EXPECT_EQ(clock.next(), 102) << "or is set back";
    clock.adopt(1000);
    clock.adopt(7);
    EXPECT_EQ(clock.last(), 1000);
    EXPECT_EQ(clock.next(), 1001) << "above what others have";
    time = 2000;
    EXPECT_EQ(clock.next(), 2000);
    EXPECT_GT(realtime_ns(), std::int64_t{1'700'000'000} * 1'000'000'000);
}

TEST(Runs, StridedWritesAreOne) {
    RunBuilder builder;
    for (std::int64_t i = 0; i < 1000; ++i) builder.add({10 + i * 64, 16}, i * 16);
    EXPECT_EQ(builder.runs(), (std::vector<Entry>{{10, 16, 0, 64, 16, 1000}}));
    builder.clear();
    EXPECT_TRUE(builder.empty());
    // The same, each in two calls.
    for (std::int64_t i = 0; i < 1000; ++i) {
        builder.add({10 + i * 64, 12}, i * 16);
        builder.add({22 + i * 64, 4}, i * 16 + 12);
    }
    EXPECT_EQ(builder.runs(), (std::vector<Entry>{{10, 16, 0, 64, 16, 1000}}));
    builder.clear();
    for (std::int64_t i = 0; i < 1000; ++i) builder.add({i * 8, 8}, i * 8);
    EXPECT_EQ(builder.runs(), (std::vector<Entry>{{0, 8000, 0, 0, 0, 1}})) << "neighbours are one piece";
}

TEST(Runs, PiecesWithinARange) {
    const Entry run{100, 10, 0, 30, 10, 4};  // [100, 110) [130, 140) [160, 170) [190, 200)
    EXPECT_EQ(run.end(), 200);
    for (std::int64_t begin = 90; begin < 210; ++begin) {
        for (std::int64_t end = begin; end < 210; ++end) {
            std::int64_t first = -1, count = 0;
            for (std::int64_t i = 0; i < run.count; ++i) {
                const layout::Extent piece = run.piece(i, 0).logical;
                if (piece.end() <= begin || piece.offset >= end || begin == end) continue;
                if (count++ == 0) first = i;
            }
            const Pieces within = pieces_within(run, begin, end);
            ASSERT_EQ(within.count, count) << begin << " " << end;
            if (count > 0) {
                ASSERT_EQ(within.first, first) << begin << " " << end;
            }
        }
    }
}

/// Writes in their order and after any number of compactions leave the same bytes.
RC_GTEST_PROP(Runs, KeepTheBytesAndTheOrder, ()) {
    constexpr std::int64_t end = 200;
    RunBuilder builder;
    std::vector<std::int64_t> model(end, -1);
    std::int64_t place = 0;
    for (int step = 0; step < *rc::gen::inRange(0, 12); ++step) {
        // Strided, as programs write, or anywhere.
        const auto length = *rc::gen::inRange<std::int64_t>(1, 12);
        const auto stride = *rc::gen::inRange<std::int64_t>(1, 24);
        auto offset = *rc::gen::inRange<std::int64_t>(0, end);
        const int times = *rc::gen::inRange(1, 6);
        for (int i = 0; i < times && offset + length <= end; ++i, offset += stride) {
            builder.add({offset, length}, place);
            for (std::int64_t at = 0; at < length; ++at) model[static_cast<std::size_t>(offset + at)] = place + at;
            place += length;
        }
        if (*rc::gen::inRange(0, 4) == 0) builder.assign(compacted(builder.runs()));
    }
    std::vector<std::int64_t> seen(end, -1);
    for (const Entry& run : builder.runs()) {
        RC_ASSERT(why_no_run(run) == nullptr);
        for (std::int64_t i = 0; i < run.count; ++i) {
            const Segment piece = run.piece(i, 0);
            for (std::int64_t at = 0; at < piece.logical.length; ++at)
                seen[static_cast<std::size_t>(piece.logical.offset + at)] = piece.place + at;
        }
    }
    RC_ASSERT(seen == model);
}

TEST(Runs, OverwritingIsForgotten) {
    RunBuilder builder;
    for (int time = 0; time < 50; ++time) {
        for (std::int64_t i = 0; i < 10; ++i) builder.add({i * 100, 10}, time * 100 + i * 10);
    }
    EXPECT_EQ(compacted(builder.runs()), (std::vector<Entry>{{0, 10, 4900, 100, 10, 10}}));
    EXPECT_EQ(compacted(builder.runs(), 100), builder.runs()) << "not with so many pieces";
}

const Identity ours{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

/// Of a container that says its id in each batch, and of an earlier one.
class Index : public testing::TestWithParam<Identity> {
protected:
    static std::string encode(const Batch& batch) { return container::encode(batch, GetParam()); }
    static Decoded decode(std::string_view bytes) { return container::decode(bytes, GetParam()); }
};

TEST_P(Index, ReadsBackUpToTheDamage) {
    const Batch first{{17, 1, 2}, 5, {{0, 10, 0, 0, 0, 1}, {100, 1, 100, 8, 8, 40}}};
    const Batch second{{18, 1, 2}, 5, {{7, 0, cut_here, 0, 0, 1}, {9, 0, grown_here, 0, 0, 1}}};
    const std::string bytes = encode(first) + encode(second);
    const Decoded whole = decode(bytes);
    EXPECT_EQ(whole.damage, "");
    EXPECT_EQ(whole.batches, (std::vector<Batch>{first, second}));
    EXPECT_EQ(read_head(bytes).stamp, 17);
    EXPECT_EQ(read_head(bytes).bytes, std::ssize(encode(first)));
    EXPECT_EQ(read_head(bytes.substr(1)).bytes, 0);
    EXPECT_EQ(read_head(bytes).bytes, (GetParam() ? 56 : 40) + 2 * 48);
    EXPECT_EQ(read_head(bytes.substr(0, 39)).bytes, 0);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const Decoded part = decode(std::string_view(bytes).substr(0, length));
        const std::size_t complete = length >= encode(first).size() ? 1 : 0;
        EXPECT_EQ(part.batches.size(), complete) << length;
        EXPECT_EQ(part.damage.empty(), length == 0 || length == encode(first).size()) << length;
        EXPECT_FALSE(part.foreign) << length;
    }
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string damaged = bytes;
        for (const int bit : {0x10, 1}) {
            damaged[at] = static_cast<char>(bytes[at] ^ bit);
            EXPECT_FALSE(decode(damaged).damage.empty()) << at;
        }
    }
}

/// What readers take for damage, writers never write.
TEST_P(Index, MoreEntriesThanABatchMayHaveAreSeveral) {
    Batch batch{{17, 1, 2}, 5, {}};
    for (std::int64_t i = 0; i < 7; ++i) batch.entries.push_back({i * 20, 3, i * 3, 0, 0, 1});
    const Decoded all = decode(container::encode(batch, GetParam(), 3));
    EXPECT_EQ(all.damage, "");
    ASSERT_EQ(all.batches.size(), 3U);
    std::vector<Entry> entries;
    for (const Batch& part : all.batches) {
        EXPECT_EQ(part.time, batch.time);
        EXPECT_EQ(part.source, batch.source);
        EXPECT_LE(part.entries.size(), 3U);
        entries.insert(entries.end(), part.entries.begin(), part.entries.end());
    }
    EXPECT_EQ(entries, batch.entries);
    for (const std::size_t one : {7U, 8U}) EXPECT_EQ(container::encode(batch, GetParam(), one), encode(batch));
}

TEST(LargeIndex, HasNoBatchThatReadersRefuse) {
    const Batch batch{{17, 1, 2}, 5, std::vector<Entry>(most_batch_entries + 2, Entry{0, 1, 0, 0, 0, 1})};
    const std::string bytes = encode(batch, ours);
    std::int64_t batches = 0;
    for (std::int64_t at = 0; at < std::ssize(bytes); ++batches) {
        const std::int64_t length = read_head(std::string_view(bytes).substr(static_cast<std::size_t>(at))).bytes;
        ASSERT_GT(length, 0);
        ASSERT_LE(length, most_batch_bytes);
        at += length;
    }
    EXPECT_EQ(batches, 2);
}

TEST_P(Index, OfAnotherContainerIsForeign) {
    const Batch batch{{17, 1, 2}, 5, {{0, 10, 0, 0, 0, 1}}};
    Identity other = ours;
    (*other)[15] ^= 1;
    for (const Identity& writer : {Identity(), ours, other}) {
        const Decoded decoded = decode(container::encode(batch, writer));
        EXPECT_EQ(decoded.foreign, writer != GetParam());
        EXPECT_EQ(decoded.batches.size(), writer == GetParam() ? 1U : 0U);
        EXPECT_EQ(decoded.damage.empty(), writer == GetParam());
    }
    EXPECT_NE(
        container::decode(container::encode(batch, other), ours).damage.find("(0102030405060708090a0b0c0d0e0f11)"),
        std::string::npos);
}

TEST_P(Index, EntriesThatAreNoneAndEarlierVersionsAreRefused) {
    const Entry wrong[] = {{-1, 1, 0, 0, 0, 1},
                           {0, -1, 0, 0, 0, 1},
                           {0, 1, 0, 0, 0, 0},
                           {0, 4, 0, 3, 4, 2},
                           {0, 0, 0, 1, 1, 2},
                           {INT64_MAX, 1, 0, 0, 0, 1},
                           {0, 1, -3, 0, 0, 1},
                           {0, 1, 4, 8, -8, 2},
                           {0, 1, 0, INT64_MAX / 2, 1, 9},
                           {5, 1, cut_here, 0, 0, 1},
                           {0, 1, 0, 1, INT64_MAX / 2, 9}};
    for (const Entry& entry : wrong) {
        EXPECT_NE(decode(encode({{1, 1, 0}, 0, {entry}})).damage, "") << entry.offset << " " << entry.length;
    }
    std::string earlier = encode({{1, 1, 0}, 0, {}});
    std::memcpy(earlier.data(), "WIX1", 4);
    EXPECT_NE(decode(earlier).damage.find("WIX1"), std::string::npos);
    EXPECT_NE(decode(encode({{-1, 1, 0}, 0, {}})).damage, "");
}

INSTANTIATE_TEST_SUITE_P(Versions, Index, testing::Values(Identity(), ours),
                         [](const testing::TestParamInfo<Identity>& one) {
                             return std::string(one.param ? "three" : "two");
                         });

}  // namespace
}  // namespace ioweir::container
