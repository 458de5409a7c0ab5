// What a probe has found, kept for whoever asks again soon: a small text file of the user's own.
// What does not live here: probing (measure.hpp), choosing (selection.hpp), the command line's cache (python/ioweir/targets/probe.py).
//
// Where: $XDG_CACHE_HOME/ioweir, else $HOME/.cache/ioweir; one file for these targets, probed in this way from this machine.
// What is believed: a regular file that belongs to this user and that nobody else may write, whose check is right, and which is neither
// older than the caller says nor from the future. Anything else counts as not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/measure.hpp"
#include "storage/targets.hpp"

namespace ioweir::probe {

/// The file for these targets; empty where the environment names no place.
[[nodiscard]] std::string cache_file(const storage::Targets& targets, const Options& options);

struct Kept {
    std::vector<double> rates;  ///< bytes a second of each target; 0: it cannot be used
    std::int64_t age_s = 0;
};
/// What lies there of `targets` targets, at most `most_age_s` old at `now_s` (seconds since 1970).
[[nodiscard]] std::optional<Kept> read_cache(const std::string& path, std::size_t targets, std::int64_t now_s,
                                             std::int64_t most_age_s);
/// Puts it there, in one step: other jobs read the old or the new. Makes the directory, for this user alone. An errno value.
int write_cache(const std::string& path, const std::vector<double>& rates, std::int64_t now_s);

}  // namespace ioweir::probe
