// How long a storage target takes, from bytes that were sent on to it and waited for later.
// What does not live here: sending and waiting (striped.cpp, sent_pieces.cpp), when a target is slow (probe/stragglers.hpp).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace ioweir::container {

class TargetTime {
public:
    using Moment = std::chrono::steady_clock::time_point;

    /// The target's own nanoseconds for `bytes` whose flush was begun at `begun`, and waited for from `started` to `ended`: from the beginning
    /// on, or from when those before them were through. What had not to be waited for may have been through long ago: it is taken to have
    /// been as fast as what was waited for last.
    /// Example: two flushes begun at 0 ms that are waited for until 10 ms and 20 ms took 10 ms each.
    std::int64_t add(Moment begun, Moment started, Moment ended, std::int64_t bytes) {
        constexpr std::chrono::microseconds no_wait(100);
        std::int64_t ns = between(std::max(begun, ended_), ended);
        if (ended - started >= no_wait || begun == started) {
            ended_ = ended;
            ns_a_byte_ = static_cast<double>(ns) / static_cast<double>(bytes);
        } else if (ns_a_byte_ > 0) {
            ns = std::min(ns, static_cast<std::int64_t>(ns_a_byte_ * static_cast<double>(bytes)));
        }
        return ns;
    }
    /// Of what was waited for last; 0: nothing was.
    [[nodiscard]] double ns_a_byte() const { return ns_a_byte_; }

private:
    static std::int64_t between(Moment begin, Moment end) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
    }
    Moment ended_;
    double ns_a_byte_ = 0;
};

}  // namespace ioweir::container
