// Where the time of accesses to divided variables goes, for the report.
#pragma once

#include <cstdint>

#include "base/ticks.hpp"

namespace ioweir::pnetcdf {

/// Nanoseconds of one rank.
struct Clocks {
    std::int64_t calls = 0;               ///< in accesses and sync, waiting for other ranks included
    std::int64_t exchange = 0;            ///< of these: cutting requests, packing, messages
    std::int64_t exchange_processor = 0;  ///< time of the processor in that
    std::int64_t storage = 0;             ///< the library's own calls for subfiles
};

/// Adds the time until its end.
class Timed {
public:
    explicit Timed(std::int64_t& wall, std::int64_t* processor = nullptr)
        : wall_(wall), processor_(processor), begun_(now(CLOCK_MONOTONIC)) {
        if (processor != nullptr) processor_begun_ = now(CLOCK_THREAD_CPUTIME_ID);
    }
    ~Timed() {
        wall_ += now(CLOCK_MONOTONIC) - begun_;
        if (processor_ != nullptr) *processor_ += now(CLOCK_THREAD_CPUTIME_ID) - processor_begun_;
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    static std::int64_t now(clockid_t clock) { return static_cast<std::int64_t>(clock_ns(clock)); }

    std::int64_t& wall_;
    std::int64_t* processor_;
    std::int64_t begun_;
    std::int64_t processor_begun_ = 0;
};

}  // namespace ioweir::pnetcdf
