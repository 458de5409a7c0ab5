// Who waits for whom in collective calls. The ranks' calls number k on a file are one call of all: a meeting. Whoever comes before the
// last rank waits for it. Events come in order of their starts, so that the last to come is the last that is added.
// Not every collective call waits: where a rank moved data before the last one came, or returned before, it was none.
// What does not live here: meetings call by call, with all calls in memory (call_table.hpp), calls that no file belongs to (barriers;
// findings/columns.py looks at those).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ioweir::analysis {

/// Of a unit's calls of one slot.
struct Waited {
    std::int64_t wait_ns = 0;  ///< for the last rank of meetings
    std::int64_t held_ns = 0;  ///< it was the last: after the one before it
    std::uint64_t last = 0;    ///< how often that was
    std::uint64_t meetings = 0;
};

class Meetings {
    using Key = std::pair<std::uint32_t, std::uint64_t>;  // file, number

public:
    explicit Meetings(std::size_t threads) : current_(threads, Key{UINT32_MAX, UINT64_MAX}) {}

    struct Arrival {
        std::uint32_t unit;
        std::uint32_t slot;        ///< of the call
        std::uint32_t outer_slot;  ///< of the outermost call around it; the same where there is none
        std::int64_t start_ns;
        std::int64_t end_ns;
    };
    /// A rank comes. `ranks`: how many take part; 0: not known.
    void arrive(std::uint32_t thread, std::uint32_t file, std::uint32_t ranks, const Arrival& arrival);
    /// The thread moves data in the collective call that it is in, from `start_ns` on.
    void moves_data(std::uint32_t thread, std::int64_t start_ns);
    /// Meetings that nobody knows to be complete count with those that came. Afterwards the sums are whole.
    void finish();

    /// By unit and slot.
    [[nodiscard]] const std::map<std::pair<std::uint32_t, std::uint32_t>, Waited>& by_slot() const { return by_slot_; }
    /// By unit: each meeting once, whatever calls lie around it.
    [[nodiscard]] const std::map<std::uint32_t, Waited>& by_unit() const { return by_unit_; }

private:
    struct Meeting {
        std::vector<Arrival> arrivals;
        std::uint32_t expected = 0;
        std::int64_t data_ns = INT64_MAX;  ///< when somebody first moved data
    };
    struct Hash {
        std::size_t operator()(const Key& key) const {
            return static_cast<std::size_t>((key.first * 0x9E37'79B9'7F4A'7C15ULL) ^
                                            (key.second * 0xC2B2'AE3D'27D4'EB4FULL));
        }
    };
    void settle(const Meeting& meeting);

    std::unordered_map<Key, Meeting, Hash> open_;
    std::unordered_map<std::uint64_t, std::uint64_t> calls_;  ///< by file and unit: how many collective calls so far
    std::vector<Key> current_;  ///< by thread: the meeting that it is in, as long as that is open
    std::map<std::pair<std::uint32_t, std::uint32_t>, Waited> by_slot_;
    std::map<std::uint32_t, Waited> by_unit_;
};

}  // namespace ioweir::analysis
