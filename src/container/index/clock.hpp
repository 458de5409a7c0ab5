// Clock: gives each batch of an index its place in the order of writes (index.hpp).
// What does not live here: who tells whom which stamps there are (container.hpp, engine).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace ioweir::container {

/// Nanoseconds since 1970 where clocks agree, and otherwise only an order. Below 2^63.
using Stamp = std::int64_t;

/// CLOCK_REALTIME in nanoseconds.
[[nodiscard]] std::int64_t realtime_ns();

/// A hybrid logical clock (Kulkarni, Demirbas et al. 2014, "Logical Physical Clocks", section 3, with time and counter in one number): never
/// gives a stamp twice, and none below one that it has been told of, however wrong the clock of this node is. What happened before,
/// through a message that carried a stamp, has the smaller one; what nobody was told of is ordered by the time of day.
/// Thread safe.
class Clock {
public:
    explicit Clock(std::function<std::int64_t()> time_ns = realtime_ns) : time_ns_(std::move(time_ns)) {}

    /// Above all that were given or adopted.
    [[nodiscard]] Stamp next();
    /// There is such a stamp.
    void adopt(Stamp known);
    /// The time of day that stamps are made of. Nanoseconds since 1970.
    [[nodiscard]] std::int64_t time_ns() const { return time_ns_(); }
    /// The largest that was given or adopted, 0 for none.
    [[nodiscard]] Stamp last() const { return last_.load(); }

private:
    std::function<std::int64_t()> time_ns_;
    std::atomic<Stamp> last_{0};
};

}  // namespace ioweir::container
