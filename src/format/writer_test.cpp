// What NodeWriter writes is what TraceFiles reads.
#include "format/writer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/testing.hpp"
#include "format/reader.hpp"
#include "ioweir_generated/functions.hpp"

namespace ioweir::format {
namespace {

TEST(NodeWriter, RandomEventsOfManyChunksComeBack) {
    std::mt19937_64 random(11);
    const TemporaryFolder folder;
    const std::string name = folder.file("trace");
    constexpr std::int64_t epoch_ns = 1'700'000'000'000'000'000;
    constexpr std::uint32_t shift = 3;
    std::vector<std::vector<EventFields>> written(3);
    {
        auto made = NodeWriter::create(name, "node-of-the-test", epoch_ns, shift);
        ASSERT_TRUE(made.ok());
        NodeWriter writer = made.take();
        for (std::uint32_t thread = 0; thread < written.size(); ++thread)
            ASSERT_EQ(writer.begin_thread(9, thread + 1, 70 + thread, 8000), thread);
        writer.record(0, ProcessRecord{{}, {}, {}, 9, 0, 5, 4, 8000}, "/bin/app");
        writer.record(1, FileRecord{{}, {}, {}, 1, 0}, std::string(100'000, 'x'));  // longer than a chunk
        std::vector<std::uint64_t> clock(written.size(), 1000);
        for (int i = 0; i < 60'000; ++i) {
            const auto thread = static_cast<std::uint32_t>(random() % written.size());
            EventFields event;
            event.function = static_cast<std::uint16_t>(1 + random() % (function_count - 1));
            event.origin = static_cast<std::uint8_t>(random() % 3);
            event.failed = random() % 10 == 0;
            event.file = static_cast<std::uint32_t>(random() % 2);
            event.sequence = static_cast<std::uint32_t>(written[thread].size() + 1);
            event.start = clock[thread] + random() % 1000;
            event.end = event.start + random() % 1000;
            event.offset = static_cast<std::int64_t>(random() >> (2 + random() % 60)) - 1;
            event.bytes = event.failed ? -EIO : static_cast<std::int64_t>(random() >> (14 + random() % 48));
            clock[thread] = event.end;
            writer.event(thread, event);
            written[thread].push_back(event);
        }
        writer.dropped(6);
        ASSERT_TRUE(writer.finish().ok());
    }
    auto opened = TraceFiles::open({name});
    ASSERT_TRUE(opened.ok());
    const TraceFiles& files = opened.value();
    EXPECT_TRUE(files.about().damage.empty());
    EXPECT_EQ(files.about().dropped, 6U);
    EXPECT_EQ(files.about().hosts, std::vector<std::string>{"node-of-the-test"});
    EXPECT_EQ(files.about().epoch_ns, epoch_ns + 8000);
    EXPECT_EQ(files.event_count(), 60'000U);
    ASSERT_EQ(files.threads().size(), written.size());
    for (std::uint32_t thread = 0; thread < written.size(); ++thread) {
        const std::uint32_t number = files.threads()[thread].kernel_id - 70;
        ThreadCursor cursor = files.cursor(thread);
        Event event;
        for (const EventFields& expected : written[number]) {
            ASSERT_TRUE(cursor.next(event));
            ASSERT_EQ(event.function, expected.function);
            ASSERT_EQ(event.origin, expected.origin);
            ASSERT_EQ(event.sequence, expected.sequence);
            ASSERT_EQ(event.start_ns, static_cast<std::int64_t>(expected.start << shift) - 8000);
            ASSERT_EQ(event.duration_ns, static_cast<std::int64_t>((expected.end - expected.start) << shift));
            ASSERT_EQ(event.offset, expected.offset);
            ASSERT_EQ(event.bytes, expected.failed ? 0 : expected.bytes);
            ASSERT_EQ(event.error, expected.failed ? EIO : 0);
            ASSERT_EQ(files.about().paths[event.path].size(), expected.file == 1 ? 100'000U : 0U);
        }
        EXPECT_FALSE(cursor.next(event));
    }
}

TEST(NodeWriter, AFileThatCannotBeWrittenIsAnError) {
    auto nowhere = NodeWriter::create("/nowhere/at-all.iowt", "node", 1);
    ASSERT_FALSE(nowhere.ok());
    EXPECT_NE(nowhere.error().message().find("/nowhere/at-all.iowt"), std::string::npos);
    auto full = NodeWriter::create("/dev/full", "node", 1);
    ASSERT_TRUE(full.ok());
    NodeWriter writer = full.take();
    writer.event(writer.begin_thread(1, 1, 1, 1), EventFields{.function = 1});
    EXPECT_FALSE(writer.finish().ok());
}

}  // namespace
}  // namespace ioweir::format
