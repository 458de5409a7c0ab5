#include "engine/choice/portions.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/mixed_bits.hpp"
#include "engine/choice/costs.hpp"

namespace ioweir::engine {
namespace {

/// Smaller units would show what a call costs, not its bytes; in rounds that count a portion has more of them.
constexpr std::int64_t least_unit_bytes = 128 << 10, least_portion_bytes = 512 << 10;
/// After the first round, which also has what each way makes once, whoever took so many times as long as the best is out.
constexpr double far_behind = 4;
/// The same after each round that counts, by the shortest of its portions; the last of them for all rounds after it.
constexpr std::array<double, 4> behind = {2, 1.5, 1.3, 1.2};
constexpr double clearly_faster = 0.7;
/// Rounds whose portions were not of one size, or that were given up.
constexpr std::size_t most_wasted = 8;
/// A round is given up that has waited through so many calls of other sizes.
constexpr std::size_t most_passed_by = 4;
/// So many times as many bytes the other way: that is what the program does more of.
constexpr double far_more = 2;

/// A sum that is too large stays as it is.
void join(PortionTrial::Portion& sum, const PortionTrial::Portion& portion) {
    std::int64_t ns = 0, bytes = 0;
    if (__builtin_add_overflow(sum.ns, portion.ns, &ns) || __builtin_add_overflow(sum.bytes, portion.bytes, &bytes))
        return;
    sum.ns = ns;
    sum.bytes = bytes;
}

bool are_of_one_size(std::int64_t one, std::int64_t other) {
    const auto [least, most] = std::minmax(one, other);
    return least > 0 && most - least <= most / 8;
}

bool are_alike(const std::vector<PortionTrial::Portion>& portions) {
    const auto [least, most] = std::minmax_element(
        portions.begin(), portions.end(), [](const auto& one, const auto& other) { return one.bytes < other.bytes; });
    return are_of_one_size(least->bytes, most->bytes);
}

}  // namespace

PortionTrial::PortionTrial(Options options)
    : left_out_(std::move(options.left_out)), alternatives_(options.alternatives), random_(options.seed) {
    compare_direction(false);
    if (present().size() < 2) is_over_ = true;
}

/// From the beginning.
void PortionTrial::compare_direction(bool reads) {
    reads_ = reads;
    is_warm_ = false;
    rounds_ = 0;
    best_ = library;
    all_.assign(alternatives_.size(), {});
    counted_.assign(alternatives_.size(), {});
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
        alternatives_[i] = {};
        alternatives_[i].is_out = i != library && i < left_out_.size() && left_out_[i];
        all_[i].alternative = counted_[i].alternative = i;
    }
    begin_round();
}

bool PortionTrial::fits_round(const Divided& call) const {
    if (call.bytes <= 0 || call.reads != reads_) return false;
    return round_.empty() || are_of_one_size(call.bytes / call.units * width(call), round_.front().bytes);
}

void PortionTrial::see(const Divided& call) {
    if (is_over_ || call.bytes <= 0) return;
    const std::size_t mine = call.reads ? 1 : 0;
    seen_[mine] += static_cast<double>(call.bytes);
    if (call.reads != reads_ && seen_[mine] > far_more * seen_[1 - mine]) {
        const bool has_any = !round_.empty() || is_warm_;
        compare_direction(call.reads);
        if (has_any) waste();
    }
    if (call.reads != reads_ || fits_round(call)) return;
    if (++passed_by_ < most_passed_by) return;
    waste();
    if (!is_over_) begin_round();
}

void PortionTrial::waste() {
    if (++wasted_ == most_wasted) end();
}

std::vector<std::size_t> PortionTrial::present() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
        if (!alternatives_[i].is_out) all.push_back(i);
    }
    return all;
}

/// In an order of chance, but that the library is the first of all.
void PortionTrial::begin_round() {
    round_.clear();
    passed_by_ = 0;
    order_ = present();
    const std::size_t kept = is_warm_ ? 0 : 1;
    for (std::size_t left = order_.size(); left > kept + 1; --left) {
        random_ = mixed_bits(random_);
        std::swap(order_[left - 1], order_[kept + random_ % (left - kept)]);
    }
}

std::int64_t PortionTrial::units_for(std::int64_t bytes) {
    return std::clamp<std::int64_t>(bytes / least_unit_bytes, 1, most_units);
}

std::int64_t PortionTrial::width(const Divided& call) const {
    if (!is_warm_ || call.bytes <= 0) return 1;
    const std::int64_t unit_bytes = std::max<std::int64_t>(1, call.bytes / call.units);
    const std::int64_t wanted = std::max(call.bytes / 32, std::min(call.bytes, least_portion_bytes));
    return std::clamp<std::int64_t>((wanted + unit_bytes - 1) / unit_bytes, 1, call.units);
}

std::optional<std::size_t> PortionTrial::next(const Divided& call, std::int64_t units_left) const {
    const std::int64_t units = width(call);
    if (is_over_ || call.bytes <= 0 || units > units_left) return std::nullopt;
    if (!fits_round(call)) return std::nullopt;
    const std::size_t whose = order_[round_.size()];
    const double usual = alternatives_[library].last;
    if (whose == library || usual <= 0) return whose;
    const double unit_bytes = static_cast<double>(call.bytes) / static_cast<double>(call.units);
    const Alternative& one = alternatives_[whose];
    const double bytes = unit_bytes * static_cast<double>(units);
    // Twice the library's time is expected of what was never tried, and no more of what only made its plans so far.
    const double known = one.last > 0 ? one.last : 2 * usual;
    const double expected = one.costs.empty() ? std::min(known, 2 * usual) : known;
    const double more = std::max(expected - usual, 0.0) * bytes;
    const double left = unit_bytes * static_cast<double>(units_left);
    const double allowed =
        std::min(limits_.most_ns, std::max(limits_.least_ns, limits_.share * (all_ns_ + usual * left)));
    if (more <= 0 || (excess_ns_ + (limits_.with_next ? more : 0) <= allowed && limits_.share > 0)) return whose;
    // What the library takes may be another time by now.
    const bool may_be_next = std::find(order_.begin() + std::ssize(round_), order_.end(), library) != order_.end();
    return may_be_next ? std::optional(library) : std::nullopt;
}

void PortionTrial::add(const Portion& portion) {
    if (is_over_) return;
    const auto place = order_.begin() + std::ssize(round_), its = std::find(place, order_.end(), portion.alternative);
    if (its == order_.end()) return;
    std::iter_swap(place, its);
    passed_by_ = 0;
    const auto took = static_cast<double>(portion.ns), bytes = static_cast<double>(portion.bytes);
    all_ns_ += took;
    join(all_[portion.alternative], portion);
    Alternative& one = alternatives_[portion.alternative];
    one.last = bytes > 0 ? std::max(took, 1.0) / bytes : 0;
    const double usual = alternatives_[library].last;
    if (portion.alternative != library) excess_ns_ += std::max(took - usual * bytes, 0.0);
    round_.push_back(portion);
    if (round_.size() < order_.size()) return;
    end_round();
    if (!is_over_) begin_round();
}

bool PortionTrial::looks_hopeless() const {
    const double usual = alternatives_[library].last;
    int slower = 0, faster = 0;
    for (std::size_t i = 1; i < alternatives_.size(); ++i) {
        if (const double cost = alternatives_[i].last; cost > 0) ++(cost < usual ? faster : slower);
    }
    return slower >= 2 && faster == 0;
}

void PortionTrial::add_rest(const Divided& call, std::int64_t bytes) {
    if (call.reads == reads_) all_ns_ += alternatives_[best_].last * static_cast<double>(bytes);
}

void PortionTrial::end_round() {
    if (!are_alike(round_)) return waste();
    const bool counts = std::exchange(is_warm_, true);
    for (const Portion& portion : round_) {
        Alternative& one = alternatives_[portion.alternative];
        if (counts) one.costs.push_back(one.last);
        if (counts) join(counted_[portion.alternative], portion);
    }
    if (counts) ++rounds_;
    compare();
    if (rounds_ == most_rounds || present().size() < 2) end();
}

std::size_t PortionTrial::cheapest() const {
    const std::vector<std::size_t> all = present();
    const auto cost = [&](std::size_t i) {
        return alternatives_[i].costs.empty() ? alternatives_[i].last : median_cost(alternatives_[i].costs);
    };
    return *std::min_element(all.begin(), all.end(), [&](auto one, auto other) { return cost(one) < cost(other); });
}

/// After a round: who is the best so far, and who is out.
void PortionTrial::compare() {
    const std::size_t cheapest_one = cheapest();
    const Alternative& best = alternatives_[cheapest_one];
    const double usual = best.costs.empty() ? best.last : median_cost(best.costs);
    const double limit = rounds_ == 0 ? far_behind : behind[std::min(rounds_, behind.size()) - 1];
    for (const std::size_t i : present()) {
        Alternative& one = alternatives_[i];
        const double shortest = one.costs.empty() ? one.last : *std::min_element(one.costs.begin(), one.costs.end());
        one.against_best = (one.costs.empty() ? one.last : median_cost(one.costs)) / usual;
        // The library's first portion is the first of all, and has what the machine makes once, too.
        if (i != cheapest_one && (i != library || rounds_ > 0)) one.is_out = shortest > limit * usual;
    }
    // One portion that also has what is made once says little.
    const bool is_clear = rounds_ > 0 || best.last < clearly_faster * alternatives_[library].last;
    best_ = is_clear ? cheapest_one : library;
}

/// From the library, by more than chance; an alternative that is out was told apart when it went.
void PortionTrial::end() {
    is_over_ = true;
    const Alternative& usual = alternatives_[library];
    if (rounds_ == 0) {
        // Portions are never of one size, or the library is the only one that is not far behind.
        is_told_apart_ = best_ == library && present().size() < 2;
        if (best_ != library) is_told_apart_ = usual.is_out;
        if (!is_told_apart_) best_ = library;
        return;
    }
    if (best_ == library || usual.is_out) {
        is_told_apart_ = true;
        return;
    }
    is_told_apart_ = are_told_apart(alternatives_[best_].costs, usual.costs);
    if (!is_told_apart_) best_ = library;
}

std::vector<PortionTrial::Portion> PortionTrial::sums() const {
    std::vector<Portion> sums = counted_;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].bytes == 0) sums[i] = all_[i];
    }
    return sums;
}

double PortionTrial::librarys_cost() const {
    const Portion sum = sums()[library];
    return sum.bytes > 0 ? static_cast<double>(sum.ns) / static_cast<double>(sum.bytes) : 0;
}

std::vector<double> PortionTrial::shares() const {
    std::vector<double> shares(alternatives_.size());
    const double its = alternatives_[library].against_best;
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = its > 0 ? alternatives_[i].against_best / its : 0;
    return shares;
}

}  // namespace ioweir::engine
