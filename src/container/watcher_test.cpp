// What a container's watchers hear: when something is in no index, and when it is; which stamps there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "container/testing.hpp"
#include "storage/fault.hpp"

namespace ioweir::container {
namespace {

struct Heard final : IndexWatcher {
    int written_calls = 0, indexed_calls = 0;
    bool unindexed = false;
    Stamp last = 0;

    void written() override {
        ++written_calls;
        unindexed = true;
    }
    void indexed() override {
        ++indexed_calls;
        unindexed = false;
    }
    void learned(Stamp stamp) override { last = std::max(last, stamp); }
};

class WatcherTest : public testing::TestWithParam<Shape> {};

TEST_P(WatcherTest, HearsOfWhatOthersCannotRead) {
    Place place(GetParam());
    const auto generation = place.begin();
    Role role{true, true, 0, 0, generation};
    role.waits = true;
    auto writer = place.open(role);
    Heard first, second;
    writer->add_watcher(first);
    EXPECT_EQ(first.written_calls, 0);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(writer->write_at(-1, "abc", 3, 3 * i).error, 0);
    EXPECT_TRUE(first.unindexed);
    EXPECT_EQ(first.written_calls, 1) << "of a batch once";
    writer->add_watcher(second);
    EXPECT_TRUE(second.unindexed) << "of what was written before";
    EXPECT_EQ(read_all(*writer, 3), "abc");
    EXPECT_TRUE(first.unindexed) << "it reads that itself, others cannot";

    for (const bool shows : {true, false}) {
        EXPECT_EQ(shows ? writer->show() : writer->flush(false), 0);
        EXPECT_FALSE(first.unindexed);
        EXPECT_FALSE(second.unindexed);
        EXPECT_EQ(first.last, place.clock.last()) << "that of the batch";
        const int before = first.indexed_calls;
        EXPECT_EQ(writer->show(), 0);
        EXPECT_EQ(first.indexed_calls, before) << "there was nothing more";
        EXPECT_EQ(writer->write_at(-1, "d", 1, 0).error, 0);
        EXPECT_TRUE(first.unindexed);
    }
    const Stamp later = place.clock.last() + 1000;
    writer->adopt(later);
    EXPECT_EQ(first.last, later);
    EXPECT_TRUE(first.unindexed);

    writer->remove_watcher(first);
    EXPECT_EQ(writer->flush(true), 0);
    EXPECT_TRUE(first.unindexed) << "it hears no more";
    EXPECT_FALSE(second.unindexed);
}

/// As a rank that runs out of memory for what is in no index.
TEST_P(WatcherTest, HearsOfWhatGoesIntoTheIndexByItself) {
    Place place(GetParam());
    const auto generation = place.begin();
    auto writer = place.open({true, true, 0, 0, generation});
    Heard heard;
    writer->add_watcher(heard);
    // Pieces that make no runs.
    std::int64_t offset = 0;
    for (std::int64_t i = 0; heard.indexed_calls == 0 && i < 3'000'000; ++i) {
        offset += 3 + i * i % 7;
        ASSERT_EQ(writer->write_at(-1, "x", 1, offset).error, 0);
    }
    EXPECT_EQ(heard.indexed_calls, 1);
    EXPECT_TRUE(heard.unindexed) << "what was written after that";
    EXPECT_EQ(heard.written_calls, 2);
}

TEST_P(WatcherTest, AFailedFlushIsNone) {
    Place place(GetParam());
    const bool log = GetParam().kind == Shape::Kind::log;
    storage::FaultBackend faulty(place.backend, {storage::FaultKind::error, log ? 3 : 2, ENOSPC});
    const auto generation = place.begin();
    auto writer = Container::open(faulty, place.clock, place.directory, {true, true, 0, 0, generation}).take();
    Heard heard;
    writer->add_watcher(heard);
    EXPECT_EQ(writer->write_at(-1, "one", 3, 0).error, 0);
    EXPECT_EQ(writer->show(), ENOSPC);
    EXPECT_TRUE(heard.unindexed);
    EXPECT_EQ(writer->show(), 0);
    EXPECT_FALSE(heard.unindexed);
}

INSTANTIATE_TEST_SUITE_P(Shapes, WatcherTest, testing::Values(Shape{0, Shape::Kind::log}, Shape{2}),
                         [](const auto& shape) { return shape.param.kind == Shape::Kind::log ? "Log" : "Grouped"; });

}  // namespace
}  // namespace ioweir::container
