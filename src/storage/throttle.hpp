// A backend that makes fast storage behave like a few slow targets: each target moves its bytes at a given rate, one transfer after
// another, whichever processes ask. It needs no rights, and stands in for slow devices in tests and benchmarks: whatever is measured on
// it has to be called throttled.
// What does not live here: on which target a byte lies (layout/core/stripe_layout.hpp).
//
// Promises:
// - A target's queue is one number in memory that the processes share, the time at which the target is free. It only changes by
//   compare-and-swap: a process that dies anywhere locks nobody out; at worst its last transfer is still waited for.
// - A transfer of b bytes on an idle target takes b / rate; one that spans targets takes as long as the slowest of them. Bytes that
//   the backend below did not move (errors, ends of files) cost nothing. No burst is granted.
// - Offsets count from the start of each file: byte 0 of every file lies on target 0.
// - A rate in the shared file, where there is one, goes before the one that a process was told: it can be changed while programs run.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "layout/core/stripe_layout.hpp"
#include "storage/backend.hpp"

namespace ioweir::storage {

struct Throttle {
    std::int64_t stripe_bytes = 0;
    std::vector<std::int64_t> rates;  ///< bytes per second of each target
    std::string state;                ///< path of the file that the processes share; a new one for each run

    friend bool operator==(const Throttle&, const Throttle&) = default;
};

/// "stripe=1MiB rates=25MB,25MB,5MB state=/dev/shm/name": three targets, rates a second (the variable IOWEIR_TEST_THROTTLE).
Result<Throttle> parse_throttle(std::string_view text);

/// How results have to call it: "throttled storage: 3 targets of 25, 25 and 5 MB/s, stripes of 1 MiB".
[[nodiscard]] std::string describe(const Throttle& throttle);

/// Time as the throttle sees it; tests have their own.
class ThrottleClock {
public:
    virtual ~ThrottleClock() = default;
    [[nodiscard]] virtual std::int64_t now_ns() = 0;
    virtual void sleep_until(std::int64_t time_ns) = 0;
};

/// CLOCK_MONOTONIC, the same for all processes of a machine.
class MonotonicClock final : public ThrottleClock {
public:
    [[nodiscard]] std::int64_t now_ns() override;
    void sleep_until(std::int64_t time_ns) override;
};

/// The queues of all targets, in a file that is mapped by every process that uses them.
class TargetQueues {
public:
    /// Makes the file where it is missing. Refuses one of another size: it belongs to other targets. What `owner` has named, where that is
    /// somebody else, is not made, and has to be a file of theirs: nobody's file is written because somebody else has named it.
    [[nodiscard]] static Result<std::unique_ptr<TargetQueues>> open(const std::string& path, std::size_t targets,
                                                                    uid_t owner = ::geteuid());
    ~TargetQueues();
    TargetQueues(const TargetQueues&) = delete;
    TargetQueues& operator=(const TargetQueues&) = delete;

    /// Appends work of `duration_ns` (a day at most) to a target's queue; returns the time at which it will be done. What the file says of a queue
    /// that reaches more than a day ahead does not count.
    std::int64_t append(std::size_t target, std::int64_t now_ns, std::int64_t duration_ns);

    /// Bytes a second of a target: what set_rate() said last, in whichever process, else `otherwise`.
    [[nodiscard]] std::int64_t rate(std::size_t target, std::int64_t otherwise) const;
    /// 0: every process has its own again.
    void set_rate(std::size_t target, std::int64_t bytes_per_second);

    /// Appends `bytes` at that rate; returns the time at which they will be moved.
    std::int64_t append_bytes(std::size_t target, std::int64_t now_ns, std::int64_t bytes, std::int64_t otherwise);

private:
    /// A cache line each, so that targets do not slow each other down.
    struct alignas(64) Queue {
        std::atomic<std::int64_t> free_at_ns;
        std::atomic<std::int64_t> rate;  ///< 0: none was set
    };
    static_assert(std::atomic<std::int64_t>::is_always_lock_free);

    explicit TargetQueues(std::span<Queue> queues) : queues_(queues) {}

    std::span<Queue> queues_;
};

class ThrottledBackend final : public Backend {
public:
    /// `below`, `queues` and `clock` must outlive this object. `queues` has a queue for each rate.
    ThrottledBackend(Backend& below, const Throttle& throttle, TargetQueues& queues, ThrottleClock& clock);

    [[nodiscard]] Opened attempt_open(const char* path, int flags, mode_t mode) override;
    void note_opened(int descriptor, const char* path) override { below_.note_opened(descriptor, path); }
    int attempt_close(int descriptor) override;
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        return below_.attempt_flush(descriptor, bytes, offset);
    }
    int attempt_sync(int descriptor) override { return below_.attempt_sync(descriptor); }
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        below_.begin_flush(descriptor, bytes, offset);
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;

private:
    /// Waits until the targets have moved `moved` bytes at `offset`; returns `moved`.
    std::int64_t wait_for(std::int64_t offset, std::int64_t moved);

    Backend& below_;
    layout::StripeLayout layout_;
    std::vector<std::int64_t> rates_;
    TargetQueues& queues_;
    ThrottleClock& clock_;
};

}  // namespace ioweir::storage
