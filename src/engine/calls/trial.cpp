#include "engine/calls/trial.hpp"

#include <algorithm>
#include <cstdlib>

namespace ioweir::engine {
namespace {

struct Pair {
    std::int64_t engine_ns = 0, library_ns = 0, bytes = 0;

    /// A twentieth is left to the engine.
    [[nodiscard]] bool library_wins() const { return library_ns + library_ns / 20 < engine_ns; }
};

template <typename Figure>
std::int64_t median(std::span<const Pair> pairs, Figure figure) {
    std::array<std::int64_t, 16> sorted{};
    std::transform(pairs.begin(), pairs.end(), sorted.begin(), figure);
    const auto end = sorted.begin() + std::ssize(pairs);
    std::sort(sorted.begin(), end);
    return sorted[pairs.size() / 2];
}

}  // namespace

void Trial::add(std::int64_t ns, std::int64_t bytes) {
    const auto pair = static_cast<std::size_t>(calls_ / 2);
    const std::size_t whose = turn() == By::engine ? 0 : 1;
    figures_[4 * pair + whose] = ns;
    figures_[4 * pair + 2 + whose] = bytes;
    ++calls_;
}

bool Trial::may_end() const {
    const std::int64_t pairs = calls_ / 2 - 1;
    if (calls_ % 2 != 0 || pairs < 0) return false;
    if (doubts_) return pairs > 0;
    return pairs <= 1 || pairs == first_looks[0] || pairs == first_looks[1] || pairs >= most_pairs;
}

std::optional<Trial::Result> Trial::far_ahead() const {
    const std::int64_t tried = calls_ / 2 - 1;
    if (doubts_ || tried > 1) return std::nullopt;
    const std::int64_t* const said = figures_.data() + 4 * tried;
    const bool is_alike = std::abs(said[2] - said[3]) <= std::max(said[2], said[3]) / 8;
    if (!is_alike || said[1] < 4 * said[0]) return std::nullopt;
    return Result{.pairs = 1, .engine_ns = said[0], .library_ns = said[1], .bytes = said[2]};
}

std::optional<Trial::Result> Trial::result() const {
    if (const auto found = far_ahead()) return found;
    if (calls_ / 2 - 1 <= (doubts_ ? 0 : 1)) return std::nullopt;
    std::array<Pair, most_pairs> all{};
    std::size_t count = 0;
    for (std::size_t pair = 1; pair < static_cast<std::size_t>(calls_ / 2); ++pair) {
        const std::int64_t* const said = figures_.data() + 4 * pair;
        // Of calls that differ in size nothing can be said.
        if (std::abs(said[2] - said[3]) <= std::max(said[2], said[3]) / 8) all[count++] = {said[0], said[1], said[2]};
    }
    const std::span<const Pair> pairs(all.data(), count);
    const auto wins = std::count_if(pairs.begin(), pairs.end(), [](const Pair& one) { return one.library_wins(); });
    const auto ahead =
        std::count_if(pairs.begin(), pairs.end(), [](const Pair& one) { return one.engine_ns <= one.library_ns; });
    const auto compared = static_cast<std::int64_t>(count);
    Result result;
    result.pairs = compared;
    if (count > 0) {
        result.engine_ns = median(pairs, [](const Pair& one) { return one.engine_ns; });
        result.library_ns = median(pairs, [](const Pair& one) { return one.library_ns; });
        result.bytes = median(pairs, [](const Pair& one) { return one.bytes; });
    }
    const std::int64_t tried = calls_ / 2 - 1;
    // Of two equal ways one wins 7 pairs of 7 once in 128 times, 10 of 12 once in 52, 12 of 15 once in 57.
    const bool may_say_so = tried == first_looks[1] || tried >= most_pairs;  // who looks more often errs more often
    result.library_is_faster = may_say_so && ((compared >= first_looks[1] && wins == compared) ||
                                              (compared >= 12 && 5 * wins >= 4 * compared));
    if (result.library_is_faster || tried >= most_pairs) return result;
    if (doubts_) return 2 * wins <= compared ? std::optional(result) : std::nullopt;
    if (tried == first_looks[0] && compared == tried && ahead == tried) return result;
    if (tried == first_looks[1] && compared == tried && wins <= 1) return result;
    return std::nullopt;
}

}  // namespace ioweir::engine
