#include "storage/pacing.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <string>
#include <thread>

namespace ioweir::storage {
namespace {

using layout::Extent;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t mebi = 1 << 20;

Moment at(double milliseconds_since) {
    return Moment(nanoseconds(std::llround(milliseconds_since * static_cast<double>(ms))));
}

/// A flush of `bytes`, waited for by somebody else: the target's time.
std::int64_t add(Flushes& flushes, std::int64_t bytes, Moment begun, Moment started, Moment ended,
                 bool counts = false) {
    flushes.note({0, bytes}, begun);
    return flushes.add_waited({0, bytes}, started, ended, counts);
}

TEST(TargetTime, CountsFromTheBeginningOrFromTheEndOfTheOneBefore) {
    Flushes flushes;
    EXPECT_EQ(add(flushes, 100, at(1), at(5), at(11)), 10 * ms);
    EXPECT_EQ(add(flushes, 100, at(1), at(11), at(21)), 10 * ms);
    EXPECT_EQ(add(flushes, 100, at(31), at(31), at(34)), 3 * ms);
    EXPECT_EQ(flushes.usual_ns(), 3 * ms);
}

TEST(TargetTime, TakesWhatHadNotToBeWaitedForAsNoSlowerThanTheLastOne) {
    Flushes flushes;
    EXPECT_EQ(add(flushes, 100, at(0), at(10), at(10.01)), 10'010'000) << "nothing is known";
    EXPECT_EQ(flushes.usual_ns(), 0);
    EXPECT_EQ(add(flushes, 100, at(20), at(20), at(22)), 2 * ms);
    EXPECT_EQ(add(flushes, 200, at(22), at(50), at(50.01)), 4 * ms) << "by the byte";
    EXPECT_EQ(add(flushes, 200, at(50), at(51), at(51.01)), 1'010'000) << "no longer than since";
    EXPECT_EQ(flushes.usual_ns(), 2 * ms) << "of the one that was waited for";
}

TEST(TargetTime, TakesOneAsItIsWhereItIsToldTo) {
    Flushes flushes;
    EXPECT_EQ(add(flushes, 100, at(1), at(5), at(5.01), true), 4'010'000);
    EXPECT_EQ(flushes.usual_ns(), 4'010'000);
    EXPECT_EQ(add(flushes, 100, at(1), at(6), at(7.01)), 2 * ms);
}

TEST(SyncTime, IsKnownWhereItHadToBeWaitedFor) {
    EXPECT_EQ(sync_ns(at(0), at(5), at(7)), 7 * ms);
    EXPECT_EQ(sync_ns(at(0), at(5), at(5.5)), 0);
}

/// Writes down which flushes were begun and waited for: "+offset:bytes -offset:bytes".
class Recorder final : public Backend {
public:
    std::string said;
    nanoseconds takes{0};
    std::int64_t fails_at = -1;

    Opened attempt_open(const char*, int, mode_t) override { return {}; }
    int attempt_close(int) override { return 0; }
    std::int64_t attempt_write(int, const iovec*, int, std::int64_t) override { return 0; }
    std::int64_t attempt_read(int, const iovec*, int, std::int64_t) override { return 0; }
    int attempt_flush(int, std::int64_t bytes, std::int64_t offset) override {
        say('-', bytes, offset);
        std::this_thread::sleep_for(takes);
        return offset == fails_at ? -EIO : 0;
    }
    void begin_flush(int, std::int64_t bytes, std::int64_t offset) override { say('+', bytes, offset); }

private:
    void say(char what, std::int64_t bytes, std::int64_t offset) {
        said += (said.empty() ? "" : " ") + std::string(1, what) + std::to_string(offset) + ":" + std::to_string(bytes);
    }
};

TEST(Flushes, AreWaitedForOldestFirst) {
    Recorder backend;
    Flushes flushes;
    for (std::int64_t i = 0; i < 4; ++i) flushes.begin(backend, 3, {10 * i, 5 + i});
    EXPECT_EQ(flushes.wait(backend, 3, 2).error, 0);
    EXPECT_EQ(flushes.count(), 2U);
    EXPECT_EQ(flushes.wait(backend, 3, 1).error, 0);
    EXPECT_EQ(backend.said, "+0:5 +10:6 +20:7 +30:8 -0:5 -10:6 -20:7");
    flushes.forget();
    EXPECT_EQ(flushes.wait(backend, 3, 0).ns, 0);
    EXPECT_EQ(flushes.count(), 0U);
}

TEST(Flushes, ThatAreWaitedForTogetherCountAsOne) {
    Recorder backend;
    backend.takes = milliseconds(2);
    Flushes flushes;
    const Moment begun = now() - milliseconds(100);
    flushes.begin(backend, 3, {0, 10}, begun);
    flushes.begin(backend, 3, {50, 30}, begun);
    EXPECT_EQ(flushes.oldest(), begun);
    const Flushes::Waited waited = flushes.wait(backend, 3, 2);
    EXPECT_GE(waited.ns, 104 * ms);
    EXPECT_EQ(waited.ns, flushes.usual_ns());
    flushes.leave();
    EXPECT_EQ(flushes.usual_ns(), 0);
}

TEST(Flushes, StopAtAnErrorAndForgetWhatTheyWereToldToWaitFor) {
    Recorder backend;
    backend.fails_at = 10;
    Flushes flushes;
    for (std::int64_t i = 0; i < 4; ++i) flushes.begin(backend, 3, {10 * i, 5});
    backend.said.clear();
    EXPECT_EQ(flushes.wait(backend, 3, 3).error, EIO);
    EXPECT_EQ(backend.said, "-0:5 -10:5");
    EXPECT_EQ(flushes.count(), 1U);
}

TEST(Flushes, LetAWriterGetFourMebibytesAheadOfATargetThatNobodyKnows) {
    Recorder backend;
    Flushes flushes;
    for (std::int64_t i = 0; i < 4; ++i) {
        flushes.begin(backend, 3, {i * mebi, mebi});
        EXPECT_EQ(flushes.keep_near(backend, 3).ns, 0);
    }
    EXPECT_EQ(flushes.count(), 4U);
    flushes.begin(backend, 3, {4 * mebi, mebi});
    EXPECT_GT(flushes.keep_near(backend, 3).ns, 0);
    EXPECT_EQ(flushes.count(), 4U);
}

TEST(Flushes, LetAWriterGetTwoMebibytesAheadOfASlowTargetAndTellOfItsErrors) {
    Recorder backend;
    backend.takes = milliseconds(200);  // of a mebibyte
    Flushes flushes;
    for (std::int64_t i = 0; i < 5; ++i) flushes.begin(backend, 3, {i * mebi, mebi});
    const Flushes::Waited waited = flushes.keep_near(backend, 3);
    EXPECT_EQ(waited.error, 0);
    EXPECT_GE(waited.ns, 600 * ms);
    EXPECT_EQ(flushes.count(), 2U);
    backend.takes = {};
    backend.fails_at = 3 * mebi;
    flushes.begin(backend, 3, {5 * mebi, 2 * mebi});
    EXPECT_EQ(flushes.keep_near(backend, 3).error, EIO);
}

TEST(Flushes, OfSomebodyElseAreKnownByTheirPlace) {
    Flushes flushes;
    flushes.note({100, 10}, at(1));
    flushes.note({200, 10}, at(2));
    EXPECT_EQ(flushes.add_waited({200, 10}, at(5), at(12)), 10 * ms);
    EXPECT_EQ(flushes.count(), 1U);
    EXPECT_EQ(flushes.add_waited({300, 10}, at(20), at(23)), 3 * ms) << "nobody has begun it before";
    flushes.note({100, 10}, at(30));
    EXPECT_EQ(flushes.add_waited({100, 10}, at(35), at(40)), 10 * ms) << "the last one that begins there";
    EXPECT_EQ(flushes.count(), 0U);
}

}  // namespace
}  // namespace ioweir::storage
