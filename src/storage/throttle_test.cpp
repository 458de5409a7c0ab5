// The throttle under clocks of its own: rates over a window, queues that several clients and processes share.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "storage/throttle.hpp"

namespace ioweir::storage {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

class FakeClock final : public ThrottleClock {
public:
    std::int64_t time_ns = 5 * second_ns;
    [[nodiscard]] std::int64_t now_ns() override { return time_ns; }
    void sleep_until(std::int64_t until_ns) override { time_ns = std::max(time_ns, until_ns); }
};

/// Moves everything at once, or what `result` says.
class InstantBackend final : public Backend {
public:
    std::function<std::int64_t(std::int64_t)> result = [](std::int64_t bytes) { return bytes; };
    Opened attempt_open(const char*, int, mode_t) override { return {3, 0}; }
    int attempt_close(int) override { return 0; }
    std::int64_t attempt_write(int, const iovec* pieces, int, std::int64_t) override {
        return result(static_cast<std::int64_t>(pieces->iov_len));
    }
    int attempt_flush(int, std::int64_t, std::int64_t) override { return 0; }
    std::int64_t attempt_read(int, const iovec* pieces, int, std::int64_t) override {
        return result(static_cast<std::int64_t>(pieces->iov_len));
    }
};

class StateFile {
public:
    StateFile() : path_(testing::TempDir() + "ioweir-throttle-" + std::to_string(::getpid())) {
        ::unlink(path_.c_str());
    }
    ~StateFile() { ::unlink(path_.c_str()); }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

/// One process's view of the targets: its own mapping, backend and clock.
struct Client {
    Client(const Throttle& throttle, const std::string& path)
        : queues(TargetQueues::open(path, throttle.rates.size()).take()), backend(instant, throttle, *queues, clock) {}

    void write(std::int64_t bytes, std::int64_t offset) {
        ASSERT_EQ(backend.write_at(3, memory.data(), bytes, offset).bytes, bytes);
    }

    std::vector<char> memory = std::vector<char>(1 << 22);
    FakeClock clock;
    InstantBackend instant;
    std::unique_ptr<TargetQueues> queues;
    ThrottledBackend backend;
};

/// Lets the client whose clock is behind go first, as they would run, until all have come `seconds` far; returns the bytes moved.
template <typename Offset>
std::int64_t run_clients(std::vector<std::unique_ptr<Client>>& clients, std::int64_t bytes, std::int64_t seconds,
                         Offset offset) {
    const std::int64_t begin = clients.front()->clock.time_ns;
    std::int64_t moved = 0;
    for (int step = 0;; ++step) {
        const auto next = std::min_element(clients.begin(), clients.end(), [](const auto& a, const auto& b) {
            return a->clock.time_ns < b->clock.time_ns;
        });
        if ((*next)->clock.time_ns - begin >= seconds * second_ns) return moved;
        (*next)->write(bytes, offset(next - clients.begin(), step));
        moved += bytes;
    }
}

std::vector<std::unique_ptr<Client>> make_clients(int count, const Throttle& throttle, const StateFile& state) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<Client>(throttle, state.path()));
    return clients;
}

TEST(Throttle, OneClientHasTheRate) {
    for (const std::int64_t bytes : {1 << 12, 100'000, 1 << 20, 1 << 22}) {
        const StateFile state;
        const Throttle throttle{std::int64_t{1} << 30, {25'000'000}, state.path()};
        auto clients = make_clients(1, throttle, state);
        const auto moved = run_clients(clients, bytes, 3, [](auto, int) { return 0; });
        EXPECT_NEAR(static_cast<double>(moved), 3 * 25e6, static_cast<double>(bytes) + 3 * 25e6 * 0.001) << bytes;
    }
}

TEST(Throttle, ClientsOfOneTargetShareItsRate) {
    const StateFile state;
    const Throttle throttle{std::int64_t{1} << 30, {25'000'000}, state.path()};
    auto clients = make_clients(4, throttle, state);
    const auto moved = run_clients(clients, 1 << 16, 2, [](auto, int) { return 0; });
    EXPECT_NEAR(static_cast<double>(moved), 2 * 25e6, 4 * (1 << 16) + 2 * 25e6 * 0.001);
}

TEST(Throttle, TargetsAreIndependentAndMayDiffer) {
    const StateFile state;
    const Throttle throttle{1 << 20, {25'000'000, 10'000'000, 40'000'000}, state.path()};
    auto clients = make_clients(3, throttle, state);
    // Client i only touches stripes of target i.
    const auto moved = run_clients(clients, 1 << 16, 2, [](auto client, int) { return client << 20; });
    EXPECT_NEAR(static_cast<double>(moved), 2 * 75e6, 3 * (1 << 16) + 2 * 75e6 * 0.001);
}

TEST(Throttle, ATransferOverTargetsTakesAsLongAsTheSlowest) {
    const StateFile state;
    Client client({1 << 20, {25'000'000, 10'000'000}, state.path()}, state.path());
    const std::int64_t begin = client.clock.time_ns;
    client.write(3 << 20, 1 << 19);  // half a stripe on target 0, one on 1, one on 0, half on 1
    EXPECT_EQ(client.clock.time_ns - begin, (3 << 19) * 100LL);
    // Target 0 was free before: a transfer that begins now does not wait.
    const std::int64_t then = client.clock.time_ns;
    client.write(1 << 20, 0);
    EXPECT_EQ(client.clock.time_ns - then, (1 << 20) * 40LL);
}

TEST(Throttle, ARateIsChangedForAllProcesses) {
    const StateFile state;
    Client client({1 << 20, {1'000'000, 1'000'000}, state.path()}, state.path());
    const auto other = TargetQueues::open(state.path(), 2).take();
    const auto seconds = [&](std::int64_t offset) {
        const std::int64_t begin = client.clock.time_ns;
        client.write(1'000'000, offset);
        return static_cast<double>(client.clock.time_ns - begin) / second_ns;
    };
    other->set_rate(1, 250'000);
    EXPECT_EQ(seconds(1 << 20), 4);
    EXPECT_EQ(seconds(0), 1);
    other->set_rate(1, 0);
    EXPECT_EQ(seconds(1 << 20), 1);
}

TEST(Throttle, AnIdleTargetSavesNothingUp) {
    const StateFile state;
    Client client({1 << 20, {1'000'000}, state.path()}, state.path());
    client.write(1000, 0);
    client.clock.time_ns += 100 * second_ns;
    const std::int64_t begin = client.clock.time_ns;
    client.write(1'000'000, 0);
    EXPECT_EQ(client.clock.time_ns - begin, second_ns);
}

TEST(Throttle, WhatWasNotMovedCostsNothing) {
    const StateFile state;
    Client client({1 << 20, {1'000'000}, state.path()}, state.path());
    const std::int64_t begin = client.clock.time_ns;
    client.instant.result = [](std::int64_t) { return -ENOSPC; };
    EXPECT_EQ(client.backend.write_at(3, client.memory.data(), 1000, 0).error, ENOSPC);
    client.instant.result = [](std::int64_t) { return 0; };
    EXPECT_EQ(client.backend.read_at(3, client.memory.data(), 1000, 0).bytes, 0);
    EXPECT_EQ(client.clock.time_ns, begin);
    client.instant.result = [](std::int64_t bytes) { return std::min<std::int64_t>(bytes, 100); };
    EXPECT_EQ(client.backend.write_at(3, client.memory.data(), 1000, 0).bytes, 1000);  // ten short writes
    EXPECT_EQ(client.clock.time_ns - begin, second_ns / 1000);
}

/// Appends `times` units to queue 0 in a child process; a child that is to be killed goes on until it is.
pid_t start_child(const std::string& path, int times) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    auto queues = TargetQueues::open(path, 1);
    for (int i = 0; times < 0 || i < times; ++i) queues.value()->append(0, 0, 1);
    ::_exit(0);
}

TEST(Throttle, ProcessesLoseNoTransferToEachOther) {
    const StateFile state;
    constexpr int children = 4;
    constexpr int times = 20'000;
    std::vector<pid_t> pids;
    for (int i = 0; i < children; ++i) pids.push_back(start_child(state.path(), times));
    for (const pid_t pid : pids) {
        int status = 0;
        ASSERT_EQ(::waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_EQ(TargetQueues::open(state.path(), 1).value()->append(0, 0, 1), children * times + 1);
}

TEST(Throttle, AKilledProcessLocksNobodyOut) {
    const StateFile state;
    const pid_t killed = start_child(state.path(), -1);
    auto queues = TargetQueues::open(state.path(), 1).take();
    while (queues->append(0, 0, 1) < 1000) {  // it is in the middle of its work
    }
    ::kill(killed, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(killed, &status, 0), killed);
    const std::int64_t before = queues->append(0, 0, 1);
    const pid_t other = start_child(state.path(), 1000);
    ASSERT_EQ(::waitpid(other, &status, 0), other);
    EXPECT_EQ(queues->append(0, 0, 1), before + 1001);
}

TEST(Throttle, TheRealClockSleepsUntilThen) {
    MonotonicClock clock;
    const std::int64_t until = clock.now_ns() + 2'000'000;
    clock.sleep_until(until);
    EXPECT_GE(clock.now_ns(), until);
}

TEST(Throttle, IsParsedAndNamed) {
    const auto parsed = parse_throttle("stripe=1MiB rates=26214400,5MB state=/dev/shm/x");
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value(), (Throttle{1 << 20, {26214400, 5'000'000}, "/dev/shm/x"}));
    EXPECT_EQ(describe(parsed.value()),
              "throttled storage: 2 targets of 25 MiB and 4.77 MiB a second, stripes of 1 MiB");
    EXPECT_EQ(describe({4096, {1 << 20, 1 << 20, 1 << 20}, "x"}),
              "throttled storage: 3 targets of 1 MiB a second, stripes of 4 KiB");
    EXPECT_EQ(parse_throttle("stripe=1MiB rate=5MB state=x").error().message(),
              "unknown word in a throttle: 'rate'; did you mean 'rates'? known: stripe, rates, state");
    EXPECT_EQ(parse_throttle("stripe=1MiB state=x").error().what, "a throttle needs stripe, rates and state");
    EXPECT_EQ(parse_throttle("stripe=1MiB rates=5MB,0 state=x").error().what, "a size of nothing in a throttle");
    EXPECT_EQ(parse_throttle("stripe=1M rates=5MB state=x").error().value, "'1M'");
}

TEST(Throttle, AStateThatSaysAnythingKeepsNobodyWaiting) {
    constexpr std::int64_t day_ns = std::int64_t{24} * 3600 * 1'000'000'000;
    const StateFile state;
    for (const std::int64_t free_at :
         {std::int64_t{INT64_MAX}, std::int64_t{INT64_MIN}, std::int64_t{-1}, 2 * day_ns}) {
        const std::int64_t queue[8] = {free_at, 1};  // a byte a second
        std::ofstream(state.path(), std::ios::binary).write(reinterpret_cast<const char*>(queue), sizeof queue);
        const auto queues = TargetQueues::open(state.path(), 1).take();
        EXPECT_EQ(queues->append(0, 5, 7), 12) << free_at;
        EXPECT_EQ(queues->append_bytes(0, 5, std::int64_t{1} << 50, 1), 12 + day_ns) << free_at;
    }
}

TEST(Throttle, StateOfOtherTargetsIsRefused) {
    const StateFile state;
    ASSERT_TRUE(TargetQueues::open(state.path(), 2).ok());
    ASSERT_TRUE(TargetQueues::open(state.path(), 2).ok());
    const auto other = TargetQueues::open(state.path(), 3);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().what, "the throttle's state is of another number of targets");
    EXPECT_EQ(TargetQueues::open("/nowhere/x", 1).error().what, "the throttle's state cannot be opened");
}

}  // namespace
}  // namespace ioweir::storage
