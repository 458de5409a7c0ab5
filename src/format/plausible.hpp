// What a record cannot say: the times of a run, and sizes and offsets. A checksum tells damage of whole chunks; this tells what
// damage has left in chunks without one, and what somebody has made up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "format/event_codec.hpp"
#include "ioweir_generated/functions.hpp"

namespace ioweir::format {

/// When the run was, by its own clock, in nanoseconds since 1970. What is not known lies at the end of the range.
struct RunSpan {
    std::int64_t begin_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();

    [[nodiscard]] bool known() const { return end_ns != std::numeric_limits<std::int64_t>::max(); }
};

/// More than any process has memory for, so that no call moves it.
inline constexpr std::int64_t most_bytes_of_a_call = std::int64_t{1} << 50;
/// More than there will be; what counts ranks must not run out of memory.
inline constexpr std::uint32_t most_ranks = 1U << 24;

/// What times may be, in ticks or units of them.
struct Bounds {
    std::uint64_t begin = 0;
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t longest = std::numeric_limits<std::uint64_t>::max();  ///< that one call can take

    [[nodiscard]] bool hold(std::uint64_t time) const { return begin <= time && time <= end; }
};

/// Whether the call moves bytes from `offset` on.
inline bool moves_bytes(std::uint16_t function) {
    static const auto table = [] {
        std::array<bool, function_count> result{};
        for (std::uint16_t i = 0; i < function_count; ++i) {
            const std::string_view op = functions[i].op;
            result[i] = op == "read" || op == "write";
        }
        return result;
    }();
    return table[function];
}

/// Offset and size of a call that moves bytes. -1: one that is not known.
inline bool has_plausible_place(const EventFields& event) {
    if (event.failed || !moves_bytes(event.function)) return true;
    return event.missing <= static_cast<std::uint64_t>(most_bytes_of_a_call) && event.bytes >= -1 &&
           event.bytes <= most_bytes_of_a_call && event.offset >= -1 &&
           event.offset <= std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(event.bytes, 0);
}

/// `units`: in the units of events.
inline bool is_plausible(const EventFields& event, const Bounds& units) {
    return units.begin <= event.start && event.start <= event.end && event.end <= units.end &&
           event.end - event.start <= units.longest && has_plausible_place(event);
}

}  // namespace ioweir::format
