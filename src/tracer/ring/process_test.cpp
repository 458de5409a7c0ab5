// The tracer of a process without hooks around it: many threads, chunks handed on from threads that end to threads that
// begin, signal handlers that record, and at the end everything is in the file. Runs under the thread sanitizer too.
#include "tracer/ring/process.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/testing.hpp"
#include "format/reader.hpp"

namespace ioweir::tracer {
namespace {

using format::Function;

constexpr std::size_t threads_at_once = 8;
constexpr std::size_t generations = 5;
constexpr std::int64_t calls = 20'000;
constexpr std::int64_t nested_every = 16;  // of them, so many are inside an MPI-IO call

std::uint32_t signal_file = 0;
std::atomic<std::int64_t> signals_recorded{0};
std::atomic<bool> handlers_may_record{true};

void on_signal(int) {
    if (!handlers_may_record.load()) return;
    const std::uint64_t now = ticks(process_tracer.use_tsc);
    record_leaf(process_tracer, Function::pread, signal_file, now, now, 0, 1);
    signals_recorded.fetch_add(1);
}

void work(std::uint32_t file) {
    for (std::int64_t i = 0; i < calls; ++i) {
        const auto one_call = [&] {
            const std::uint64_t start = ticks(process_tracer.use_tsc);
            record_leaf(process_tracer, Function::pwrite, file, start, ticks(process_tracer.use_tsc), 100 * i, i % 7);
        };
        if (i % nested_every != 0) {
            one_call();
            continue;
        }
        ThreadStream& stream = *process_tracer.thread();
        const Context context = context_of(stream, __builtin_frame_address(0));
        const std::uint32_t sequence = next_sequence(stream);
        const std::uint64_t start = ticks(process_tracer.use_tsc);
        {
            const Scope scope(stream, Layer::mpi_io, sequence);
            std::thread::id here = std::this_thread::get_id();  // something between the two, as a library would do
            if (here != std::thread::id{}) one_call();
        }
        record_event(process_tracer, stream, Function::MPI_File_write_at, context, sequence, file, start,
                     ticks(process_tracer.use_tsc), 100 * i, i % 7, false);
    }
}

TEST(ProcessTest, EveryCallOfEveryThreadAndHandlerIsInTheFile) {
    const TemporaryFolder folder;
    prepare();
    Settings settings;
    settings.directory = folder.path().c_str();
    settings.limits.buffer_bytes = 1 << 20;
    start(settings);
    ASSERT_TRUE(process_tracer.active);
    signal_file = process_tracer.register_file(thread_stream, "/data/signals");

    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    std::atomic<int> unfinished{0};
    for (std::size_t generation = 0; generation < generations; ++generation) {
        std::vector<std::thread> threads;
        unfinished = threads_at_once;
        std::atomic<bool> leave{false};
        for (std::size_t i = 0; i < threads_at_once; ++i) {
            threads.emplace_back([&unfinished, &leave, generation, i] {
                const std::string path = "/data/" + std::to_string(generation) + "." + std::to_string(i);
                work(process_tracer.register_file(thread_stream, path.c_str()));
                unfinished.fetch_sub(1);
                while (!leave.load()) ::usleep(100);  // so that a signal never meets a thread that is gone
            });
        }
        while (unfinished.load() > 0) {
            for (std::thread& thread : threads) ::pthread_kill(thread.native_handle(), SIGUSR1);
            ::usleep(50);
        }
        leave = true;
        for (std::thread& thread : threads) thread.join();
    }
    handlers_may_record = false;
    EXPECT_GT(signals_recorded.load(), 0);
    stop();

    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.push_back(entry.path().string());
    auto read = format::read_trace(files);
    ASSERT_TRUE(read);
    const format::Trace trace = read.take();
    EXPECT_TRUE(trace.damage.empty()) << trace.damage.front();
    EXPECT_EQ(trace.dropped, 0U);
    const format::Events& events = trace.events;
    std::map<std::uint32_t, std::vector<std::int64_t>> offsets;  // of pwrite, by path
    std::map<std::uint32_t, std::int64_t> outer_calls;
    std::set<std::pair<std::uint32_t, std::uint32_t>> numbers;
    std::int64_t handlers = 0;
    std::int64_t without_parent = 0;
    for (std::size_t i = 0; i < events.path.size(); ++i) {
        EXPECT_TRUE(numbers.emplace(events.thread[i], events.sequence[i]).second) << "a number was given twice";
        const auto function = static_cast<Function>(events.function[i]);
        if (function == Function::pread) {
            ++handlers;
        } else if (function == Function::pwrite) {
            offsets[events.path[i]].push_back(events.offset[i]);
            const std::int64_t call = events.offset[i] / 100;
            EXPECT_EQ(events.bytes[i], call % 7);
            if (call % nested_every == 0 && events.parent[i] == 0) ++without_parent;
            EXPECT_TRUE(call % nested_every == 0 || events.parent[i] == 0);
        } else {
            ++outer_calls[events.path[i]];
        }
    }
    EXPECT_EQ(handlers, signals_recorded.load());
    EXPECT_EQ(without_parent, 0);
    EXPECT_EQ(offsets.size(), threads_at_once * generations);
    for (const auto& [path, of_thread] : offsets) {
        ASSERT_EQ(of_thread.size(), static_cast<std::size_t>(calls)) << trace.paths[path];
        for (std::size_t i = 0; i < of_thread.size(); ++i)
            ASSERT_EQ(of_thread[i], 100 * static_cast<std::int64_t>(i)) << trace.paths[path];
        EXPECT_EQ(outer_calls[path], calls / nested_every);
    }
}

}  // namespace
}  // namespace ioweir::tracer
