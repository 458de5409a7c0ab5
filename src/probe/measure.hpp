// How fast a storage target takes data at this moment: random data is written to a file without a name for a fraction of a second
// (Son et al. 2016, section 3.1). Leaves nothing behind, also when its process is killed.
// What does not live here: which targets are worth using (selection.hpp), finding and placing (storage/targets.hpp).
//
// Two ways to measure:
// - a window of time (the default): what is written in the first 100 ms is not counted, what is completed in the 300 ms after that is.
//   A slow target costs no more time than a fast one. The paper writes a fixed size, with which the slowest target costs the most.
// - a size, as in the paper (16 MB and more): bytes over the time until they are on the storage.
// Past the page cache with O_DIRECT where the file system has it; else every write is followed by fdatasync(2), and the result says so.
//
// What disturbs a probe, on the storage or on the way there, makes a target look slow and never fast. So targets that would be left out
// are probed once more, and the better figure counts; if the two differ much, a third time. That is not in the paper.
//
// Two jobs that probe at a time would each find half the bandwidth of the targets at which they meet, and full bandwidth at the others.
// So whoever probes a directory holds a lock on it (flock(2), which goes with its holder), and others wait for a few windows. Storage
// where the targets are not directories of their own (Lustre, CephFS) has no such lock: jobs there may meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "base/result.hpp"
#include "probe/selection.hpp"
#include "storage/targets.hpp"
#include "storage/throttle.hpp"

namespace ioweir::probe {

struct Options {
    std::int64_t discard_ns = 100'000'000;  ///< written and not counted at the start of a window
    std::int64_t window_ns = 300'000'000;   ///< counted
    std::int64_t bytes = 0;                 ///< above 0: this much instead of a window
    std::int32_t repetitions = 1;           ///< the median counts
    std::int64_t largest_write =
        4 << 20;  ///< bytes; writes begin with 64 KiB and grow to this while they are short for the window
    std::int32_t at_once = 64;       ///< targets probed at a time by probe_all()
    std::int32_t confirmations = 2;  ///< how often targets that would be left out are probed again, at most
};

/// Windows below a millisecond, sizes below a write, and the like.
[[nodiscard]] std::optional<Error> check(const Options& options);

struct Measured {
    double bytes_per_second = 0;  ///< the median of the repetitions, of the best probe; 0 where there is a problem
    std::vector<double> each;     ///< bytes a second of every repetition of every probe
    bool confirmed = false;       ///< two probes found about the same
    std::int64_t bytes = 0;       ///< written in all, whether counted or not
    std::int64_t elapsed_ns = 0;  ///< in all, with waiting for other probes
    std::int64_t token_bucket_rate = 0;  ///< bytes a second, 0: the target has none
    bool direct = false;                 ///< past the page cache; else flushed after every write
    bool alone = false;                  ///< nobody else was probing this target: it was locked
    std::string problem;                 ///< why the target cannot be used; empty if it can
};

/// Writes `bytes` at `offset` of a target so that they are on its storage on return. An errno value.
using Writer = FunctionRef<int(std::int64_t bytes, std::int64_t offset)>;

/// What one repetition came to. `counted_ns` lies between two completions, so that no part of a write is counted.
struct Window {
    std::int64_t counted_bytes = 0;
    std::int64_t counted_ns = 0;
    std::int64_t bytes = 0;
    int error = 0;
};
/// Repeats writes as the options say. Offsets stay below `span`: after that it begins at 0 again.
[[nodiscard]] Window time_writes(Writer write, storage::ThrottleClock& clock, const Options& options);
inline constexpr std::int64_t span = std::int64_t{256} << 20;

/// Probes one target, once. In a job: on one rank for each target, at the same time on all of them; the ranks gather what they found,
/// select(), and do the same for those that are doubtful(). Options have been checked.
[[nodiscard]] Measured measure(storage::Targets& targets, std::int32_t target, const Options& options,
                               storage::ThrottleClock& clock);

/// Which targets to probe again: those that can be used, are not chosen, and are not confirmed.
[[nodiscard]] std::vector<std::int32_t> doubtful(const std::vector<Measured>& all, const Selection& selection);
/// Adds another probe of the same target: the better bandwidth counts. Confirms it if they differ by a quarter at most.
void add(Measured& known, const Measured& again);

/// All targets from this process, a thread each, `at_once` at a time; then the doubtful ones again.
[[nodiscard]] std::vector<Measured> probe_all(storage::Targets& targets, const Options& options,
                                              double threshold = default_threshold);

/// The rates, 0 for targets with a problem: what select() wants.
[[nodiscard]] std::vector<double> rates_of(const std::vector<Measured>& all);

}  // namespace ioweir::probe
