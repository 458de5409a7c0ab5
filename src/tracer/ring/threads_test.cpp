// The whole ring in one process with many threads: long-lived ones, short ones that hand their chunks on, files registered and
// notes written meanwhile. Under the thread sanitizer (`make sanitize`) this says that recording races with nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/testing.hpp"
#include "format/reader.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {
namespace {

using format::Function;

void record(std::uint32_t file, std::int64_t offset) {
    ThreadStream& stream = thread_stream;
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    const Scope outer(stream, Layer::mpi_io, 0);
    record_event(process_tracer, stream, Function::pwrite, context_of(stream, __builtin_frame_address(0)),
                 next_sequence(stream), file, start, ticks(process_tracer.use_tsc), offset, 8, false);
}

TEST(RingThreads, EveryEventOfEveryThreadIsInTheTrace) {
    constexpr int long_threads = 16;
    constexpr int rounds = 40;
    constexpr int calls_a_round = 250;
    constexpr int short_threads = 60;
    const TemporaryFolder folder;
    prepare();
    Settings settings;
    settings.directory = folder.path().c_str();
    start(settings);
    ASSERT_TRUE(process_tracer.active);

    std::atomic<int> waiting{long_threads};
    std::vector<std::thread> threads;
    for (int t = 0; t < long_threads; ++t)
        threads.emplace_back([t, &waiting] {
            --waiting;
            while (waiting != 0) std::this_thread::yield();  // all begin at once
            for (int round = 0; round < rounds; ++round) {
                const std::string path = "/data/" + std::to_string(t) + "." + std::to_string(round);
                const std::uint32_t file = process_tracer.register_file(thread_stream, path.c_str());
                for (int i = 0; i < calls_a_round; ++i) record(file, 8 * i);
                sample_clock(thread_stream);
                if (round % 10 == 0) process_tracer.note(0, path.c_str(), t, "a note");
            }
        });
    for (int t = 0; t < short_threads; ++t)
        std::thread([t] {
            const std::string path = "/short/" + std::to_string(t);
            record(process_tracer.register_file(thread_stream, path.c_str()), t);
        }).join();
    for (std::thread& thread : threads) thread.join();
    stop();
    process_tracer.active = false;

    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.push_back(entry.path().string());
    ASSERT_EQ(files.size(), 1U);
    const auto trace = format::read_trace(files);
    ASSERT_TRUE(trace) << trace.error().message();
    EXPECT_EQ(trace.value().dropped, 0U);
    EXPECT_TRUE(trace.value().damage.empty());
    EXPECT_EQ(trace.value().notes.size(), static_cast<std::size_t>(long_threads * rounds / 10));
    std::map<std::string, int> calls;
    std::map<std::string, std::uint32_t> thread_of;
    const format::Events& events = trace.value().events;
    for (std::size_t i = 0; i < events.path.size(); ++i) {
        const std::string& path = trace.value().paths[events.path[i]];
        if (calls[path]++ == 0) thread_of[path] = events.thread[i];
        ASSERT_EQ(events.thread[i], thread_of[path]) << path;
        ASSERT_EQ(events.bytes[i], 8);
    }
    EXPECT_EQ(calls.size(), static_cast<std::size_t>(long_threads * rounds + short_threads));
    for (const auto& [path, count] : calls) EXPECT_EQ(count, path.starts_with("/short/") ? 1 : calls_a_round) << path;
}

}  // namespace
}  // namespace ioweir::tracer
