// Pacing: written bytes on their way to a storage target. Flushes are begun, waited for later, and timed, so that the target does not stand
// idle while bytes for it lie in the page cache, and somebody knows how fast it is.
// What does not live here: which bytes are flushed when (exchange_write.cpp, striped.cpp, indexed.cpp), when a target is slow
// (probe/stragglers.hpp), the token buckets of labs (paced.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "layout/core/extent.hpp"
#include "storage/backend.hpp"

namespace ioweir::storage {

using Moment = std::chrono::steady_clock::time_point;
[[nodiscard]] inline Moment now() { return std::chrono::steady_clock::now(); }
[[nodiscard]] inline std::int64_t ns_between(Moment begin, Moment end) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

/// Flushes that were begun and not waited for, oldest first, of bytes that go to one target; and the target's own time. For one thread at a
/// time. Allocates nothing within what was reserve()d.
class Flushes {
public:
    struct Waited {
        int error = 0;        ///< an errno value: of the target, for whichever bytes
        std::int64_t ns = 0;  ///< the target's own
    };

    void reserve(std::size_t count) { begun_.reserve(count); }
    /// `begun`: where the flush is one of several that count as one, when the first was.
    void begin(Backend& backend, int descriptor, layout::Extent bytes, Moment begun = now());
    /// The same for a flush that somebody else begins.
    void note(layout::Extent bytes, Moment begun);

    /// Waits for the oldest `count` as for one. They are on their way no longer, whatever comes of it. `counts`: as of add_waited().
    Waited wait(Backend& backend, int descriptor, std::size_t count, bool counts = false);
    /// Waits until what is on its way is 200 ms of the target's time, or between 2 and 64 MiB.
    Waited keep_near(Backend& backend, int descriptor);
    /// Somebody else has waited for these bytes, from `started` to `ended`. The target's own nanoseconds for them: since their flush was
    /// begun, or since those before them were through. What had not to be waited for may have been through long ago: it is taken to have
    /// been as fast as what was waited for last. `counts`: it is taken as it is.
    /// Example: two flushes begun at 0 ms that are waited for until 10 ms and 20 ms took 10 ms each.
    std::int64_t add_waited(layout::Extent bytes, Moment started, Moment ended, bool counts = false);

    [[nodiscard]] std::size_t count() const { return begun_.size(); }
    [[nodiscard]] Moment oldest() const { return begun_.front().begun; }
    /// What was waited for last took so long; 0: nothing was.
    [[nodiscard]] std::int64_t usual_ns() const { return usual_ns_; }
    /// Nobody waits for those on their way.
    void forget();
    /// Other bytes follow, for another target.
    void leave();

private:
    struct Flush {
        layout::Extent bytes;
        Moment begun;
    };
    std::int64_t add_time(std::int64_t bytes, Moment begun, Moment started, Moment ended, bool counts);

    std::vector<Flush> begun_;
    std::int64_t bytes_ = 0;  ///< of all of them
    Moment ended_;            ///< of those that had to be waited for
    std::int64_t usual_ns_ = 0;
    double ns_a_byte_ = 0;
};

/// Whatever of a file is written and not on its way yet starts for its storage. Waits for nothing, and tells of no error: a sync does.
void begin_flush_of_file(int descriptor);

/// How long a target took for a sync of what was on its way at `begun`, which was waited for from `started` to `ended`; 0: it had not to be
/// waited for, and nobody knows.
[[nodiscard]] std::int64_t sync_ns(Moment begun, Moment started, Moment ended);

}  // namespace ioweir::storage
