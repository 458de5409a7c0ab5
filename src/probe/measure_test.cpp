// Probing under a clock of the test's own, with storage whose rate is known; on real directories, and with a process that is killed.
#include "probe/measure.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/testing.hpp"
#include "probe/selection.hpp"
#include "storage/manifest.hpp"

namespace ioweir::probe {
namespace {

namespace fs = std::filesystem;
constexpr double MB = 1e6;

class FakeClock final : public storage::ThrottleClock {
public:
    std::int64_t time_ns = 1'000'000'000;
    [[nodiscard]] std::int64_t now_ns() override { return time_ns; }
    void sleep_until(std::int64_t until_ns) override { time_ns = std::max(time_ns, until_ns); }
};

/// Storage of a rate that may change: `rate(time)` bytes a second at a time in seconds from the start, and a time for every write.
template <typename Rate>
Window on_storage(Rate rate, double seconds_a_write, const Options& options) {
    FakeClock clock;
    const std::int64_t begin = clock.time_ns;
    return time_writes(
        [&](std::int64_t bytes, std::int64_t) {
            const double at = static_cast<double>(clock.time_ns - begin) / 1e9;
            clock.time_ns += std::llround((seconds_a_write + static_cast<double>(bytes) / rate(at)) * 1e9);
            return 0;
        },
        clock, options);
}

double rate_of(const Window& window) {
    return static_cast<double>(window.counted_bytes) * 1e9 / static_cast<double>(window.counted_ns);
}

TEST(Window, FindsTheRateOfSlowAndFastStorageInTheSameTime) {
    for (const double rate : {0.2 * MB, 3 * MB, 25 * MB, 400 * MB, 5000 * MB}) {
        const Window window = on_storage([&](double) { return rate; }, 0, {});
        EXPECT_NEAR(rate_of(window), rate, rate * 1e-4);
        // 100 ms discarded and 300 ms measured, and what the last write of each takes longer.
        const double seconds = static_cast<double>(window.bytes) / rate;
        EXPECT_GE(seconds, 0.4);
        EXPECT_LE(seconds, 0.4 + std::max(0.2, 2 * 65536 / rate)) << rate;
    }
}

TEST(Window, DoesNotCountTheStart) {
    // A cache takes the first 50 ms at a gigabyte a second.
    const Window window = on_storage([](double at) { return at < 0.05 ? 1000 * MB : 20 * MB; }, 0, {});
    EXPECT_NEAR(rate_of(window), 20 * MB, 20 * MB * 1e-4);
}

TEST(Window, WritesGrowUntilTheirOwnTimeCountsLittle) {
    // 1 ms a write and 100 MB/s: writes of 64 KiB would find 40 MB/s.
    const Window window = on_storage([](double) { return 100 * MB; }, 0.001, {});
    EXPECT_GT(rate_of(window), 90 * MB);
}

TEST(Window, ASizeIsWrittenAndCountedWhole) {
    Options options;
    options.bytes = 16'000'000;
    const Window window = on_storage([](double) { return 25 * MB; }, 0, options);
    EXPECT_EQ(window.counted_bytes, window.bytes);
    EXPECT_GE(window.bytes, options.bytes);
    EXPECT_LT(window.bytes, options.bytes + 4096);
    EXPECT_NEAR(rate_of(window), 25 * MB, 1);
}

TEST(Window, StaysWithinItsSpanAndAligned) {
    FakeClock clock;
    std::int64_t furthest = 0, total = 0;
    const Window window = time_writes(
        [&](std::int64_t bytes, std::int64_t offset) {
            EXPECT_EQ(offset % 4096, 0);
            EXPECT_EQ(bytes % 4096, 0);
            furthest = std::max(furthest, offset + bytes);
            total += bytes;
            clock.time_ns += bytes / 10;  // 10 GB/s
            return 0;
        },
        clock, {});
    EXPECT_LE(furthest, span);
    EXPECT_GT(total, 4 * span);
    EXPECT_EQ(window.bytes, total);
}

TEST(Window, AnErrorEndsIt) {
    FakeClock clock;
    int calls = 0;
    const Window window = time_writes([&](std::int64_t, std::int64_t) { return ++calls == 3 ? ENOSPC : 0; }, clock, {});
    EXPECT_EQ(window.error, ENOSPC);
    EXPECT_EQ(calls, 3);
}

TEST(Window, AClockThatStandsStillEndsToo) {
    FakeClock clock;
    Options options;
    options.discard_ns = 0;
    options.bytes = 8 << 20;
    const Window window = time_writes([](std::int64_t, std::int64_t) { return 0; }, clock, options);
    EXPECT_EQ(window.counted_bytes, 8 << 20);
    EXPECT_GT(window.counted_ns, 0);
}

TEST(Options, NonsenseIsRefused) {
    EXPECT_FALSE(check({}).has_value());
    const auto refused = [](auto change) {
        Options options;
        change(options);
        return check(options).has_value();
    };
    EXPECT_TRUE(refused([](Options& o) { o.window_ns = 10; }));
    EXPECT_TRUE(refused([](Options& o) { o.discard_ns = -1; }));
    EXPECT_TRUE(refused([](Options& o) { o.bytes = 1; }));
    EXPECT_TRUE(refused([](Options& o) { o.repetitions = 0; }));
    EXPECT_TRUE(refused([](Options& o) { o.largest_write = 65537; }));
    EXPECT_TRUE(refused([](Options& o) { o.at_once = 0; }));
}

/// Directories t0.. with token buckets in a folder of the test's own.
class Lab {
public:
    explicit Lab(const std::vector<double>& rates) {
        std::ofstream manifest(folder_.file(storage::manifest_name));
        manifest << "state='" << folder_.file("state") << "'\n";
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const std::string name = "t" + std::to_string(i);
            fs::create_directory(folder_.file(name));
            manifest << "[[target]]\nname='" << name << "'\ndirectory='" << name << "'\n";
            if (rates[i] > 0) manifest << "rate='" << std::llround(rates[i]) << " B'\n";
        }
        manifest.close();
        targets_ = storage::find_targets(folder_.path()).take();
    }
    [[nodiscard]] storage::Targets& targets() { return *targets_; }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
    [[nodiscard]] std::ptrdiff_t entries(const std::string& name) const {
        return std::distance(fs::directory_iterator(folder_.file(name)), {});
    }

private:
    TemporaryFolder folder_;
    std::unique_ptr<storage::Targets> targets_;
};

TEST(Measure, FindsTokenBucketsAndLeavesNothing) {
    Lab lab({20 * MB, 2 * MB, 0});
    FakeClock clock;
    for (const std::int32_t target : {0, 1}) {
        Options options;
        options.repetitions = 3;
        const Measured found = measure(lab.targets(), target, options, clock);
        EXPECT_EQ(found.problem, "");
        EXPECT_NEAR(found.bytes_per_second, target == 0 ? 20 * MB : 2 * MB, MB / 100);
        EXPECT_EQ(found.token_bucket_rate, std::llround(target == 0 ? 20 * MB : 2 * MB));
        EXPECT_EQ(found.each.size(), 3U);
        EXPECT_TRUE(found.alone);
        EXPECT_EQ(lab.entries("t" + std::to_string(target)), 0);
    }
    // No bucket: a real device's rate, whatever it is.
    Options brief;
    brief.discard_ns = 0;
    brief.window_ns = 5'000'000;
    storage::MonotonicClock real;
    const Measured found = measure(lab.targets(), 2, brief, real);
    EXPECT_EQ(found.problem, "");
    EXPECT_GT(found.bytes_per_second, 0);
    EXPECT_EQ(found.token_bucket_rate, 0);
}

TEST(Measure, ATargetThatCannotBeUsedHasAProblemAndTheOthersARate) {
    Lab lab({5000 * MB, 5000 * MB, 5000 * MB});
    fs::remove(lab.file("t1"));
    const auto targets = storage::find_targets(lab.file("")).take();
    Options brief;
    brief.discard_ns = 0;
    brief.window_ns = 2'000'000;
    const auto all = probe_all(*targets, brief);
    ASSERT_EQ(all.size(), 3U);
    EXPECT_NE(all[1].problem.find("No such file or directory"), std::string::npos);
    EXPECT_EQ(rates_of(all)[1], 0);
    for (const std::size_t i : {0U, 2U}) {
        EXPECT_EQ(all[i].problem, "");
        EXPECT_GT(all[i].bytes_per_second, 0);
    }
    EXPECT_EQ(select(rates_of(all), 1).value().targets(), (std::vector<std::int32_t>{0, 2}));
}

Measured found(double rate) {
    Measured result;
    result.bytes_per_second = rate;
    result.each = {rate};
    result.bytes = 100;
    result.direct = true;
    return result;
}

TEST(Confirmation, TheBetterFigureCountsAndTwoLikeItConfirm) {
    Measured known = found(3 * MB);
    add(known, found(10 * MB));
    EXPECT_EQ(known.bytes_per_second, 10 * MB);
    EXPECT_FALSE(known.confirmed);
    EXPECT_EQ(known.each, (std::vector<double>{3 * MB, 10 * MB}));
    EXPECT_EQ(known.bytes, 200);
    add(known, found(8 * MB));
    EXPECT_EQ(known.bytes_per_second, 10 * MB);
    EXPECT_TRUE(known.confirmed);
    Measured broken = found(0);
    broken.problem = "full";
    add(known, broken);
    EXPECT_EQ(known.bytes_per_second, 0);
    EXPECT_EQ(known.problem, "full");
}

TEST(Confirmation, OnlyWhatWouldBeLeftOutIsProbedAgain) {
    std::vector<Measured> all{found(10 * MB), found(1 * MB), found(10 * MB), found(2 * MB), found(0)};
    all[3].confirmed = true;
    EXPECT_EQ(doubtful(all, select(rates_of(all)).value()), std::vector<std::int32_t>{1});
    EXPECT_EQ(doubtful(all, select(rates_of(all), 1).value()), std::vector<std::int32_t>{});
}

TEST(Confirmation, ASlowTargetIsProbedTwiceTheOthersOnce) {
    Lab lab({40 * MB, 40 * MB, 4 * MB});
    Options brief;
    brief.discard_ns = 0;
    brief.window_ns = 100'000'000;
    const auto all = probe_all(lab.targets(), brief);
    EXPECT_EQ(select(rates_of(all)).value().targets(), (std::vector<std::int32_t>{0, 1}));
    EXPECT_GE(all[2].each.size(), 2U);
    brief.confirmations = 0;
    for (const Measured& one : probe_all(lab.targets(), brief)) EXPECT_EQ(one.each.size(), 1U);
}

TEST(Measure, WaitsForAnotherProbeOfTheSameTargetButNotForEver) {
    Lab lab({20 * MB});
    FakeClock clock;
    const int other = ::open(lab.file("t0").c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(::flock(other, LOCK_EX), 0);
    const std::int64_t begin = clock.time_ns;
    const Measured late = measure(lab.targets(), 0, {}, clock);
    EXPECT_FALSE(late.alone);
    EXPECT_NEAR(late.bytes_per_second, 20 * MB, MB / 100);
    EXPECT_NEAR(static_cast<double>(clock.time_ns - begin), 1.6e9 + 0.45e9, 0.1e9);  // four probes' time, then its own
    ::close(other);
    EXPECT_TRUE(measure(lab.targets(), 0, {}, clock).alone);
}

TEST(Measure, KilledItLeavesNothing) {
    Lab lab({4 * MB});
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        class Signalling final : public storage::ThrottleClock {
        public:
            explicit Signalling(int descriptor) : descriptor_(descriptor) {}
            [[nodiscard]] std::int64_t now_ns() override { return clock_.now_ns(); }
            void sleep_until(std::int64_t) override {  // the first block is written: stay there
                if (::write(descriptor_, "x", 1) == 1) ::pause();
            }

        private:
            storage::MonotonicClock clock_;
            int descriptor_;
        } clock(ready[1]);
        static_cast<void>(measure(lab.targets(), 0, {}, clock));
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_EQ(lab.entries("t0"), 0);  // while it runs
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(lab.entries("t0"), 0);
    FakeClock clock;
    EXPECT_TRUE(measure(lab.targets(), 0, {}, clock).alone);  // nor does its lock outlive it
    ::close(ready[0]);
    ::close(ready[1]);
}

// Labs of 4 to 16 targets, up to a third of them slower by a factor of 2 to 12, the others equal to 3 per cent; each write is disturbed by
// up to a tenth, and 3 probes of 100 find a quarter of the rate from the middle on. What is right is known from how the lab was made.
int right_of_1000_labs(std::int32_t confirmations) {
    std::mt19937 random(20161001);
    const auto between = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random);
    };
    int right = 0;
    for (int lab = 0; lab < 1000; ++lab) {
        const int count = std::uniform_int_distribution<int>(4, 16)(random);
        const int slow = std::uniform_int_distribution<int>(0, count / 3)(random);
        const double rate = between(5, 500) * MB;
        std::vector<double> rates;
        for (int i = 0; i < count; ++i) rates.push_back(rate * between(0.97, 1.03) / (i < slow ? between(2, 12) : 1));
        std::shuffle(rates.begin(), rates.end(), random);
        const auto probed = [&](std::size_t target) {
            const double stall_at = between(0, 1) < 0.03 ? 0.15 : 1e9;
            const auto now = [&](double at) {
                return rates[target] * (at < stall_at ? between(0.9, 1) : between(0.2, 0.3));
            };
            return found(rate_of(on_storage(now, 0, {})));
        };
        std::vector<Measured> all;
        std::vector<std::int32_t> expected;
        for (std::size_t i = 0; i < rates.size(); ++i) {
            if (rates[i] > rate * 0.9) expected.push_back(static_cast<std::int32_t>(i));
            all.push_back(probed(i));
        }
        EXPECT_EQ(static_cast<int>(expected.size()), count - slow);
        for (std::int32_t round = 0; round < confirmations; ++round) {
            for (const std::int32_t target : doubtful(all, select(rates_of(all)).value()))
                add(all[static_cast<std::size_t>(target)], probed(static_cast<std::size_t>(target)));
        }
        if (select(rates_of(all)).value().targets() == expected) ++right;
    }
    return right;
}

TEST(Labs, TheRightSetIsChosenInAtLeastNinetyNineOfAHundred) {
    EXPECT_GE(right_of_1000_labs(Options{}.confirmations), 990);
    EXPECT_LT(right_of_1000_labs(0), 900);  // it is the confirmation that does it
}

}  // namespace
}  // namespace ioweir::probe
