#include "engine/choice/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/mixed_bits.hpp"

namespace ioweir::engine {
namespace {

/// Two files with less I/O than this in each: there is nothing to gain that trying would not cost.
constexpr double least_ns = 3e6;
/// As in Trial: less is not said to be a gain.
constexpr double gain = 20.0 / 21;
/// Files whose sizes differ by more are not compared.
constexpr double like = 1.25;
constexpr int most_anew = 4;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bool are_alike(std::int64_t one, std::int64_t other) {
    const auto less = static_cast<double>(std::min(one, other)), more = static_cast<double>(std::max(one, other));
    return more <= like * less;
}

}  // namespace

Series::Series(Options options) : options_(std::move(options)), alternatives_(options_.alternatives), state_(1) {
    for (std::size_t i = 1; i < alternatives_.size(); ++i) order_.push_back(i);
    std::uint64_t random = options_.seed;
    for (std::size_t left = order_.size(); left > 1; --left) {
        random = mixed_bits(random);
        std::swap(order_[left - 1], order_[random % left]);
    }
    options_.known.resize(alternatives_.size());
    const auto known = [&](std::size_t i) { return options_.known[i] > 0 ? options_.known[i] : 1.0; };
    std::stable_sort(order_.begin(), order_.end(), [&](auto one, auto other) { return known(one) < known(other); });
    const bool all_known = std::all_of(order_.begin(), order_.end(), [&](auto i) { return options_.known[i] > 0; });
    if (order_.empty() || !all_known) return;
    const double least = known(order_.front());
    if (least > gain) {
        end("earlier runs found nothing faster");
        return;
    }
    least_observed_ = 1;
    for (const std::size_t i : order_) alternatives_[i].dropped = known(i) > least / gain;
}

void Series::end(std::string why) {
    if (ended_) return;
    ended_ = true;
    why_ended_ = std::move(why);
    next_ = {library, Step::ended};
}

void Series::opened() {
    if (ended_) return;
    ++alternatives_[next_.alternative].begun;
    next_ = decide();
}

std::size_t Series::best() const {
    std::size_t found = base_;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
        if (alternatives_[i].costs.empty() || alternatives_[i].dropped) continue;
        const double cost = median(alternatives_[i].costs);
        if (cost < least) {
            least = cost;
            found = i;
        }
    }
    return found;
}

double Series::best_ns() const {
    const Alternative& one = alternatives_[best()];
    return one.costs.empty() ? 0 : median(one.costs) * static_cast<double>(last_bytes_);
}

bool Series::may_try() const {
    if (trying_ns_ > options_.share * all_ns_) return false;
    // Three that were slower, and none that was faster: from now on it may not cost the run as a whole a hundredth.
    return misses_ < 3 || hits_ > 0 || against_ns_ <= 0.01 * elapsed_ns_;
}

std::size_t Series::next_untried() const {
    // After a change the library has its turn first.
    if (base_ != library && alternatives_[library].begun == 0) return library;
    const auto found = std::find_if(order_.begin(), order_.end(), [&](std::size_t i) {
        return alternatives_[i].begun == 0 && !alternatives_[i].dropped;
    });
    return found == order_.end() ? alternatives_.size() : *found;
}

/// From the library, by more than chance: all of its last files took less than the library's usual one.
bool Series::is_told_apart(std::size_t alternative) const {
    const std::vector<double>& mine = alternatives_[alternative].costs;
    const std::vector<double>& others = alternatives_[library].costs;
    if (others.empty()) return true;
    const double middle = median(mine), usual = median(others);
    return middle < gain * usual && (*std::max_element(mine.begin(), mine.end()) < usual ||
                                     middle < *std::min_element(others.begin(), others.end()));
}

Series::Turn Series::decide() {
    Alternative& base = alternatives_[base_];
    // With knowledge of earlier runs one file is enough, of which nothing is known yet when the second is opened.
    const bool waits = base.costs.empty() && least_observed_ > 1;
    if (base.begun < least_observed_ || waits) return {base_, base_ == library ? Step::observed : Step::kept};
    if (base_ == library && !base.costs.empty() && median(base.costs) * static_cast<double>(last_bytes_) < least_ns) {
        if (++small_ >= 2) {
            end("its files take too little time");
            return next_;
        }
        return {library, Step::observed};
    }
    const std::size_t untried = next_untried();
    if (untried < alternatives_.size() && may_try()) return {untried, Step::tried};
    const std::size_t chosen = best();
    Alternative& one = alternatives_[chosen];
    if (chosen == library) {
        // One file may have been unlucky.
        for (const std::size_t i : order_) {
            Alternative& other = alternatives_[i];
            if (other.begun == 1 && other.costs.size() == 1 && !other.dropped &&
                other.costs.front() < like * median(one.costs) && may_try())
                return {i, Step::tried};
        }
        return {library, Step::kept};
    }
    if (one.costs.size() >= 3 && alternatives_[library].costs.size() < 2 && alternatives_[library].begun < 2 &&
        may_try())
        return {library, Step::tried};
    if (one.costs.size() >= 4 && !is_told_apart(chosen)) {
        end("no difference from the MPI library that is larger than chance");
        return next_;
    }
    return {chosen, Step::kept};
}

/// Three files in a row that took longer, or less, than the best did when it was found, by more than its own spread: the storage has changed.
void Series::watch(Alternative& alternative, double cost) {
    if (alternative.reference <= 0) {
        if (alternative.costs.size() < 3) return;
        const auto [least, most] = std::minmax_element(alternative.costs.begin(), alternative.costs.end());
        alternative.reference = median(alternative.costs);
        alternative.spread = std::max(*most - *least, (like - 1) * alternative.reference);
        return;
    }
    const double off = cost - alternative.reference;
    if (std::abs(off) <= alternative.spread)
        alternative.outside = 0;
    else if (off > 0)
        alternative.outside = std::max(alternative.outside, 0) + 1;
    else
        alternative.outside = std::min(alternative.outside, 0) - 1;
}

/// Of the base the last files are kept, of the others nothing.
void Series::begin_anew(std::size_t base) {
    if (++anew_ > most_anew) return end("it changes too often");
    std::vector<double> costs = std::exchange(alternatives_[base].costs, {});
    const auto kept = std::min<std::size_t>(costs.size(), 3);
    costs.erase(costs.begin(), costs.end() - static_cast<std::ptrdiff_t>(kept));
    for (Alternative& one : alternatives_) one = {};
    alternatives_[base].costs = std::move(costs);
    alternatives_[base].begun = static_cast<std::int64_t>(kept);
    base_ = base;
    least_observed_ = base == library ? 2 : 1;
    misses_ = hits_ = small_ = 0;
    against_ns_ = 0;
}

void Series::add(const Turn& turn, const Repetition& repetition, std::int64_t elapsed_ns) {
    for (const std::int64_t word : {static_cast<std::int64_t>(turn.alternative), repetition.ns, repetition.bytes})
        state_ = mixed_bits(state_ ^ static_cast<std::uint64_t>(word));
    if (ended_) return;
    elapsed_ns_ = static_cast<double>(elapsed_ns);
    if (repetition.bytes <= 0 || repetition.ns <= 0) {
        if (++empty_ == 3) end("its files hold nothing that can be compared");
        return;
    }
    if (last_bytes_ > 0 &&
        (!are_alike(last_bytes_, repetition.bytes) || !are_alike(2 * last_calls_ + 8, 2 * repetition.calls + 8))) {
        alternatives_[library].costs.clear();
        begin_anew(library);  // another pattern
        if (ended_) return;
    }
    last_bytes_ = repetition.bytes;
    last_calls_ = repetition.calls;
    const auto took = static_cast<double>(repetition.ns), bytes = static_cast<double>(repetition.bytes);
    const double cost = took / bytes, before = best_ns();
    all_ns_ += took;
    if (turn.step == Step::tried && before > 0) trying_ns_ += std::max(took - before, 0.0);
    Alternative& one = alternatives_[turn.alternative];
    if (turn.alternative != library && !alternatives_[library].costs.empty()) {
        const double usual = median(alternatives_[library].costs);
        against_ns_ += took - usual * bytes;
        if (one.costs.empty()) ++(cost < usual && !repetition.cut ? hits_ : misses_);
    }
    if (repetition.cut) one.dropped = true;
    one.costs.push_back(cost);
    if (one.costs.size() > most_samples) one.costs.erase(one.costs.begin());
    if (one.begun == 0) one.begun = 1;  // begun before all began anew
    if (turn.step != Step::kept) return;
    watch(one, cost);
    if (std::abs(one.outside) >= 3) begin_anew(turn.alternative);
}

}  // namespace ioweir::engine
