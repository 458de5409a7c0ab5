// StopSign: does somebody want a simulation to end before its time? Asked between pieces of its work, some thousands of them apart.
// What does not live here: who wants it (the caller: bindings/signals.hpp).
#pragma once

#include <functional>
#include <utility>

namespace ioweir::sim {

/// Thrown out of a simulation that is to end; simulate() makes an Error of it.
struct Stopped {};

class StopSign {
public:
    explicit StopSign(std::function<bool()> is_up) : is_up_(std::move(is_up)) {}

    /// Before a piece of work. Throws Stopped.
    void pass() {
        if (--left_ == 0) look();
    }

private:
    /// A piece takes about a microsecond.
    static constexpr int pieces = 4096;

    void look() {
        left_ = pieces;
        if (is_up_ && is_up_()) throw Stopped{};
    }

    std::function<bool()> is_up_;
    int left_ = pieces;
};

}  // namespace ioweir::sim
