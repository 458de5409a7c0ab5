#include "engine/choice/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/mixed_bits.hpp"
#include "engine/choice/costs.hpp"

namespace ioweir::engine {
namespace {

/// Two files with less I/O than this in each: there is nothing to gain that trying would not cost.
constexpr double least_ns = 3e6;
/// Files whose sizes differ by more are not compared.
constexpr double like = 1.25;
constexpr int most_anew = 4;
/// Far more than a file has.
constexpr std::int64_t most_calls = std::int64_t{1} << 60;
/// What portions may cost in a loop's first file, after which nothing more may come.
constexpr double first_share = 0.02;
/// A library that took more than the best by as much need not have a whole file.
constexpr double far_ahead = 0.7;

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
    if (order_.empty()) return;
    std::vector<bool> left_out(alternatives_.size());
    const double least = known(order_.front());
    if (all_known && least > least_gain) {
        end("earlier runs found nothing faster");
        return;
    }
    if (all_known) {
        least_observed_ = 1;
        for (const std::size_t i : order_) left_out[i] = alternatives_[i].dropped = known(i) > least / least_gain;
    }
    begin_trial(left_out);
    next_ = decide();
}

/// Of the files that come next, before the first of them is opened or after something has changed.
void Series::begin_trial(const std::vector<bool>& left_out) {
    if (!options_.divides) return;
    const std::uint64_t seed = mixed_bits(options_.seed + static_cast<std::uint64_t>(++trials_));
    trial_.emplace(PortionTrial::Options{alternatives_.size(), seed, left_out});
    allow();
}

/// It has found the best, or that there is none.
void Series::end_trial() {
    if (ended_) return;
    trying_ns_ += trial_->excess_ns();
    if (!trial_->is_told_apart()) return end("no difference from the MPI library that is larger than chance");
    base_ = trial_->best();
    const std::vector<double> shares = trial_->shares();
    const double its = shares[base_];
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
        const bool is_near = base_ != library && shares[i] > 0 && shares[i] <= its / least_gain;
        alternatives_[i].dropped = i != base_ && (i == library ? its < far_ahead : !is_near);
    }
    least_observed_ = base_ == library ? 2 : 1;
    base_share_ = its > 0 ? its : 1;
    if (base_ != library) ++hits_;
    next_ = decide();
}

void Series::see(const PortionTrial::Divided& call) {
    for (const std::int64_t word : {call.bytes, call.units, std::int64_t{call.reads}})
        state_ = mixed_bits(state_ ^ static_cast<std::uint64_t>(word));
    if (call.bytes > 0) had_calls_ = true;
    if (!compares()) return;
    trial_->see(call);
    if (trial_->is_over()) end_trial();
}

void Series::add(const PortionTrial::Portion& portion) {
    for (const std::int64_t word : {static_cast<std::int64_t>(portion.alternative), portion.ns, portion.bytes})
        state_ = mixed_bits(state_ ^ static_cast<std::uint64_t>(word));
    if (!compares()) return;
    trial_->add(portion);
    if (trial_->is_over()) end_trial();
}

void Series::add_rest(const PortionTrial::Divided& call, std::int64_t bytes) {
    if (compares()) trial_->add_rest(call, bytes);
}

void Series::end(std::string why) {
    if (ended_) return;
    ended_ = true;
    why_ended_ = std::move(why);
    next_ = {library, Step::ended};
}

/// What the comparison may cost from now on. A program may write only once, after it has computed for long.
void Series::allow() {
    const double hundredth = 0.01 * elapsed_ns_, share = std::min(files_ > 1 ? 1.0 : first_share, options_.share);
    const double most = trial_->looks_hopeless() ? hundredth : std::numeric_limits<double>::infinity();
    trial_->allow({share, hundredth, most, files_ <= 1});
}

void Series::opened(std::int64_t elapsed_ns) {
    if (ended_) return;
    elapsed_ns_ = std::max(elapsed_ns_, static_cast<double>(elapsed_ns));
    ++files_;
    if (next_.step != Step::compared) ++alternatives_[next_.alternative].begun;
    if (compares()) allow();
    had_calls_ = false;
    next_ = decide();
}

std::size_t Series::best() const {
    std::size_t found = base_;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
        if (alternatives_[i].costs.empty() || alternatives_[i].dropped) continue;
        const double cost = median_cost(alternatives_[i].costs);
        if (cost < least) {
            least = cost;
            found = i;
        }
    }
    return found;
}

double Series::best_ns() const {
    const Alternative& one = alternatives_[best()];
    return one.costs.empty() ? 0 : median_cost(one.costs) * static_cast<double>(last_bytes_);
}

bool Series::may_try() const {
    if (trying_ns_ > options_.share * all_ns_) return false;
    // Three that were slower, and none that was faster: from now on it may not cost the run as a whole a hundredth.
    return misses_ < 3 || hits_ > 0 || against_ns_ <= 0.01 * elapsed_ns_;
}

std::size_t Series::next_untried() const {
    // After a change the library has its turn first.
    if (base_ != library && alternatives_[library].begun == 0 && !alternatives_[library].dropped) return library;
    const auto found = std::find_if(order_.begin(), order_.end(), [&](std::size_t i) {
        return alternatives_[i].begun == 0 && !alternatives_[i].dropped;
    });
    return found == order_.end() ? alternatives_.size() : *found;
}

/// From the library, by more than chance: all of its last files took less than the library's usual one.
bool Series::is_told_apart(std::size_t alternative) const {
    const std::vector<double>& others = alternatives_[library].costs;
    return others.empty() || are_told_apart(alternatives_[alternative].costs, others);
}

Series::Turn Series::decide() {
    if (compares()) return {trial_->best(), Step::compared};
    Alternative& base = alternatives_[base_];
    // With knowledge of earlier runs one file is enough, of which nothing is known yet when the second is opened.
    const bool waits = base.costs.empty() && least_observed_ > 1;
    if (base.begun < least_observed_ || waits) return {base_, base_ == library ? Step::observed : Step::kept};
    if (base_ == library && !base.costs.empty() &&
        median_cost(base.costs) * static_cast<double>(last_bytes_) < least_ns) {
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
                other.costs.front() < like * median_cost(one.costs) && may_try())
                return {i, Step::tried};
        }
        return {library, Step::kept};
    }
    const Alternative& its = alternatives_[library];
    if (one.costs.size() >= 3 && its.costs.size() < 2 && its.begun < 2 && !its.dropped && may_try())
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
        alternative.reference = median_cost(alternative.costs);
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
    begin_trial({});
}

/// A file that the library moves, or would move, in so much time.
void Series::look_at_size(double librarys_ns) {
    if (librarys_ns < least_ns && ++small_ >= 2) end("its files take too little time");
}

/// Its time is of all alternatives, and counts for none.
void Series::add_compared(double took_ns) {
    all_ns_ += took_ns;
    if (compares() && !had_calls_) trial_.reset();
    look_at_size(took_ns);
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
    const std::int64_t calls = std::clamp<std::int64_t>(repetition.calls, 0, most_calls);
    const bool is_another_pattern =
        last_bytes_ > 0 && (!are_alike(last_bytes_, repetition.bytes) || !are_alike(last_calls_ + 4, calls + 4));
    last_bytes_ = repetition.bytes;
    last_calls_ = calls;
    if (turn.step == Step::compared) return add_compared(static_cast<double>(repetition.ns));
    if (is_another_pattern) {
        alternatives_[library].costs.clear();
        begin_anew(library);
        if (ended_) return;
    }
    const auto took = static_cast<double>(repetition.ns), bytes = static_cast<double>(repetition.bytes);
    const double cost = took / bytes, before = best_ns();
    all_ns_ += took;
    if (turn.step == Step::tried && before > 0) trying_ns_ += std::max(took - before, 0.0);
    Alternative& one = alternatives_[turn.alternative];
    if (turn.alternative != library && !alternatives_[library].costs.empty()) {
        const double usual = median_cost(alternatives_[library].costs);
        against_ns_ += took - usual * bytes;
        if (one.costs.empty()) ++(cost < usual && !repetition.cut ? hits_ : misses_);
    }
    if (repetition.cut) one.dropped = true;
    one.costs.push_back(cost);
    if (one.costs.size() > most_samples) one.costs.erase(one.costs.begin());
    if (one.begun == 0) one.begun = 1;  // begun before all began anew
    if (turn.step != Step::kept) return;
    if (turn.alternative == base_ && base_ != library && alternatives_[library].costs.empty()) {
        look_at_size(took / base_share_);
        // Portions do not show everything: what a cache took in at once, a file may wait for. Later files are watched.
        if (one.reference <= 0 && trial_ && cost > trial_->librarys_cost()) alternatives_[library].dropped = false;
    }
    watch(one, cost);
    if (std::abs(one.outside) >= 3) begin_anew(turn.alternative);
}

}  // namespace ioweir::engine
