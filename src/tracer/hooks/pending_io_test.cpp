// Requests that are pending: a signal handler may ask for them at any moment.
#include "tracer/hooks/pending_io.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

namespace ioweir::tracer {
namespace {

PendingIoTable table;
std::atomic<int> asked{0};

void ask(int) {
    (void)table.find(0, 1, true);
    (void)table.take(0, 2);
    ++asked;
}

TEST(PendingIoTable, ASignalHandlerDoesNotWaitForWhatItInterrupts) {
    constexpr int most_rounds = 2'000'000, enough = 2'000;
    struct sigaction action{};
    action.sa_handler = ask;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
    ::alarm(60);  // ends the test where it hangs
    const pthread_t worker = ::pthread_self();
    std::atomic<bool> done{false};
    std::thread sender([&] {
        while (!done) ::pthread_kill(worker, SIGUSR1);
    });
    table.add(0, 1, {.file = 1, .sequence = 1});
    for (int i = 0; i < most_rounds && asked < enough; ++i) {
        table.replace(0, 2, {.file = 2, .sequence = 2});
        const PendingIo taken = table.take(0, 2);
        EXPECT_TRUE(taken.file == 2 || taken.file == 0) << "the handler has taken it";
    }
    done = true;
    sender.join();
    ::alarm(0);
    EXPECT_GT(asked, 0);
    EXPECT_EQ(table.take(0, 1).file, 1U);
    while (table.take(0, 2).file != 0) {
    }
    EXPECT_FALSE(table.any());
}

TEST(PendingIoTable, OfSeveralOfANameNobodyKnowsWhich) {
    const auto own = std::make_unique<PendingIoTable>();
    own->add(1, 7, {.file = 3, .sequence = 5, .kind = IoKind::write, .written = 10});
    EXPECT_EQ(own->find(1, 7).sequence, 5U);
    EXPECT_EQ(own->find(2, 7).file, 0U);
    own->replace(1, 7, {.file = 3, .sequence = 6, .kind = IoKind::write, .written = 10});
    own->add(1, 7, {.file = 3, .sequence = 7, .kind = IoKind::write, .written = 10});
    EXPECT_EQ(own->take(1, 7).sequence, 0U);
    const PendingIo last = own->take(1, 7);
    EXPECT_EQ(last.file, 3U);
    EXPECT_EQ(last.missing(4), 6U);
    EXPECT_FALSE(own->any());
}

}  // namespace
}  // namespace ioweir::tracer
