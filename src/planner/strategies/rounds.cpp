// Both orders (see rounds.hpp).
#include "planner/strategies/rounds.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "base/checked.hpp"
#include "planner/contention_free.hpp"

namespace ioweir::planner {

namespace {

using layout::ExtentVisitor;
using layout::StripeComb;
using layout::StripeLayout;
using layout::TargetProfile;

class Sequential final : public Rounds {
public:
    Sequential(FileDomains domains, std::int64_t buffer_bytes)
        : domains_(std::move(domains)), buffer_bytes_(buffer_bytes) {}

    [[nodiscard]] std::int64_t of(std::int64_t writer) const override {
        return ceil_divide(domains_.of(writer).bytes(), buffer_bytes_);
    }
    void visit(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        // A round that would overflow lies behind the last one.
        if (round >= of(writer)) return;
        const std::int64_t begin = round * buffer_bytes_;
        domains_.of(writer).visit(begin, checked_add(begin, buffer_bytes_).value_or(INT64_MAX), visitor);
    }
    [[nodiscard]] std::int64_t most_bytes() const override { return buffer_bytes_; }

private:
    FileDomains domains_;
    std::int64_t buffer_bytes_;
};

/// What one writer has on one target, as far as ranks cover it, in file order.
class Group {
public:
    void add(const StripeComb& comb) {
        const std::int64_t bytes = comb.bytes();
        if (bytes == 0) return;
        bytes_ += bytes;
        parts_.push_back({comb, bytes_});
    }
    [[nodiscard]] std::int64_t bytes() const { return bytes_; }
    /// File extents of the local positions [begin, end): a normal list, as parts do not overlap.
    void visit(std::int64_t begin, std::int64_t end, ExtentVisitor visitor) const {
        auto part = std::upper_bound(parts_.begin(), parts_.end(), begin,
                                     [](std::int64_t value, const Part& its) { return value < its.end; });
        for (; part != parts_.end() && begin < end; ++part) {
            const std::int64_t first = part == parts_.begin() ? 0 : (part - 1)->end;
            part->comb.visit(begin - first, std::min(end, part->end) - first, visitor);
            begin = part->end;
        }
    }

private:
    struct Part {
        StripeComb comb;
        std::int64_t end = 0;  ///< local position
    };
    std::vector<Part> parts_;
    std::int64_t bytes_ = 0;
};

/// What is scheduled of a group, in one unit after the other: with the fewest rounds items of a buffer by the paper's rule, one a
/// round; with the shortest ones stripes or parts of them, as many in a round as a buffer takes.
struct Cut {
    std::int64_t unit_bytes = 1;
    std::int64_t most_units = 1;  ///< of a round
    ItemRule rule;

    [[nodiscard]] static Cut into_items(const ItemRule& rule) { return {rule.buffer_bytes, 1, rule}; }
    [[nodiscard]] static Cut into_units(std::int64_t buffer_bytes, std::int64_t unit_bytes) {
        return {unit_bytes, buffer_bytes / unit_bytes, {unit_bytes, 0}};
    }
    [[nodiscard]] std::int64_t units(const Group& group) const { return rule.items(group.bytes()); }
};

/// Parts of stripes are not made smaller than this: an operation costs as much as some of them.
constexpr std::int64_t least_unit_bytes = 64 << 10;
/// The last unit of a group may be short, and its round waits for whole ones: units are halved while that costs more than one part in ...
constexpr std::int64_t tolerated_part = 50;

/// Ranks may lie apart in more places than are worth looking at for each writer and target.
constexpr std::size_t most_parts = 256;

/// The list with all but its widest gaps closed.
layout::ExtentList with_widest_gaps(const layout::ExtentList& covered) {
    if (covered.size() <= most_parts) return covered;
    const auto gap_before = [&](std::size_t i) { return covered[i].offset - covered[i - 1].end(); };
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < covered.size(); ++i) gaps.push_back(gap_before(i));
    const auto narrowest = gaps.begin() + (most_parts - 2);
    std::nth_element(gaps.begin(), narrowest, gaps.end(), std::greater<>());
    layout::ExtentList parts{covered.front()};
    for (std::size_t i = 1; i < covered.size(); ++i) {
        const bool splits = gap_before(i) >= *narrowest && parts.size() < most_parts;
        if (splits)
            parts.push_back(covered[i]);
        else
            parts.back() = hull(parts.back(), covered[i]);
    }
    return parts;
}

class ContentionFree final : public Rounds {
public:
    ContentionFree(const ItemRule& rule, RoundGoal goal) : goal_(goal), cut_(Cut::into_items(rule)) {}

    std::optional<Error> schedule(const FileDomains& domains, const layout::ExtentList& covered,
                                  const StripeLayout& layout, const TargetProfile& targets, std::int64_t unit_bytes) {
        ItemTable table;
        table.writers = static_cast<std::int32_t>(domains.writers());
        add_targets(table, layout, targets);
        groups_.resize(static_cast<std::size_t>(domains.writers()));
        slots_.resize(groups_.size());
        const std::int64_t count = layout.stripe_count();
        for (std::int64_t writer = 0; writer < domains.writers(); ++writer) {
            auto& groups = groups_[static_cast<std::size_t>(writer)];
            groups.reserve(static_cast<std::size_t>(count));
            for (std::int64_t dealt = 0; dealt < count; ++dealt) {
                Group& group = groups.emplace_back();
                const layout::Extent range = domains.of(writer).range;
                for (const layout::Extent& part : touching(covered, range))
                    group.add(intersect(domains.of(writer),
                                        StripeComb{unit_bytes, dealt, count, layout::intersect(part, range)}));
            }
        }
        if (goal_ == RoundGoal::shortest)
            if (auto error = choose_units(table, unit_bytes)) return error;
        count_units(table);
        auto error = visit_contention_free(table, [&](const RoundPattern& pattern) { append(pattern); });
        target_domains_ = std::move(table.target_domains);
        domain_of_target_ = std::move(table.domain_of_target);
        return error;
    }

    [[nodiscard]] std::int64_t of(std::int64_t writer) const override {
        const auto& slots = slots_[static_cast<std::size_t>(writer)];
        return slots.empty() ? 0 : slots.back().first_round + slots.back().rounds;
    }

    void visit(std::int64_t writer, std::int64_t round, ExtentVisitor visitor) const override {
        const auto& slots = slots_[static_cast<std::size_t>(writer)];
        const auto after =
            std::upper_bound(slots.begin(), slots.end(), round,
                             [](std::int64_t value, const Slot& slot) { return value < slot.first_round; });
        if (after == slots.begin()) return;
        const Slot& slot = *(after - 1);
        if (round >= slot.first_round + slot.rounds) return;
        const Group& group = groups_[static_cast<std::size_t>(writer)][slot.group];
        const std::int64_t begin = slot.first_unit + (round - slot.first_round) * slot.units_a_round;
        const std::int64_t end = begin + slot.units_a_round;
        group.visit(begin * cut_.unit_bytes, end == cut_.units(group) ? group.bytes() : end * cut_.unit_bytes, visitor);
    }

    // A turn on a domain comes after all turns of the last round in which the domain was busy, which came after those before.
    void visit_before(Turn turn, TurnVisitor visitor) const override {
        const std::size_t here = stretch_of(turn.round);
        visit_domains(here, turn.writer, [&](std::int32_t domain) {
            if (turn.round > stretches_[here].first_round)
                return visit_busy(here, domain, turn, turn.round - 1, visitor);
            for (std::size_t i = here; i-- > 0;) {
                const Stretch& stretch = stretches_[i];
                if (is_busy(stretch, domain))
                    return visit_busy(i, domain, turn, stretch.first_round + stretch.pattern.rounds - 1, visitor);
            }
        });
    }
    void visit_after(Turn turn, TurnVisitor visitor) const override {
        const std::size_t here = stretch_of(turn.round);
        visit_domains(here, turn.writer, [&](std::int32_t domain) {
            const Stretch& now = stretches_[here];
            if (turn.round + 1 < now.first_round + now.pattern.rounds)
                return visit_busy(here, domain, turn, turn.round + 1, visitor);
            for (std::size_t i = here + 1; i < stretches_.size(); ++i) {
                if (is_busy(stretches_[i], domain))
                    return visit_busy(i, domain, turn, stretches_[i].first_round, visitor);
            }
        });
    }

    [[nodiscard]] std::int64_t most_bytes() const override {
        return checked_add(cut_.most_units * cut_.unit_bytes, cut_.rule.joins_up_to).value_or(INT64_MAX);
    }

private:
    /// A run of rounds in which a writer moves consecutive units of one group.
    struct Slot {
        std::int64_t first_round = 0;
        std::int64_t rounds = 0;
        std::size_t group = 0;
        std::int64_t first_unit = 0;
        std::int64_t units_a_round = 1;
    };

    /// A pattern and when it is due.
    struct Stretch {
        std::int64_t first_round = 0;
        RoundPattern pattern;
    };

    [[nodiscard]] std::size_t stretch_of(std::int64_t round) const {
        const auto after = std::partition_point(stretches_.begin(), stretches_.end(),
                                                [&](const Stretch& stretch) { return stretch.first_round <= round; });
        return static_cast<std::size_t>(after - stretches_.begin()) - 1;
    }
    /// The target's own domain and those that it lies in.
    template <typename Visit>
    void visit_domains_of(std::int32_t target, Visit visit) const {
        for (std::int32_t domain = domain_of_target_[static_cast<std::size_t>(target)]; domain >= 0;
             domain = target_domains_[static_cast<std::size_t>(domain)].parent)
            visit(domain);
    }
    /// Those of the target that a writer serves in a stretch; none when it serves none.
    template <typename Visit>
    void visit_domains(std::size_t stretch, std::int64_t writer, Visit visit) const {
        for (const RoundPattern::Move& move : stretches_[stretch].pattern.moves) {
            if (move.writer == writer) visit_domains_of(move.target, visit);
        }
    }
    [[nodiscard]] bool lies_in(std::int32_t target, std::int32_t domain) const {
        bool found = false;
        visit_domains_of(target, [&](std::int32_t its) { found = found || its == domain; });
        return found;
    }
    [[nodiscard]] bool is_busy(const Stretch& stretch, std::int32_t domain) const {
        return std::any_of(stretch.pattern.moves.begin(), stretch.pattern.moves.end(),
                           [&](const RoundPattern::Move& move) { return lies_in(move.target, domain); });
    }
    /// The turns of other writers on a domain in a round of a stretch.
    void visit_busy(std::size_t stretch, std::int32_t domain, Turn turn, std::int64_t round,
                    TurnVisitor visitor) const {
        for (const RoundPattern::Move& move : stretches_[stretch].pattern.moves) {
            if (move.writer != turn.writer && lies_in(move.target, domain)) visitor({move.writer, round});
        }
    }

    /// The profile's tree with parents first; a target of the layout that the profile does not know stands alone.
    static void add_targets(ItemTable& table, const StripeLayout& layout, const TargetProfile& targets) {
        std::vector<std::int32_t> place(targets.domains.size(), -1);
        const auto add = [&](auto&& self, std::int32_t domain) -> std::int32_t {
            auto& found = place[static_cast<std::size_t>(domain)];
            if (found >= 0) return found;
            const auto& about = targets.domains[static_cast<std::size_t>(domain)];
            const std::int32_t parent = about.parent < 0 ? -1 : self(self, about.parent);
            found = static_cast<std::int32_t>(table.target_domains.size());
            table.target_domains.push_back({about.capacity_writers, parent});
            return found;
        };
        const std::int64_t count = layout.stripe_count();
        for (std::int64_t dealt = 0; dealt < count; ++dealt) {
            const auto id =
                static_cast<std::size_t>(layout.targets()[static_cast<std::size_t>((dealt + layout.start()) % count)]);
            if (id < targets.domain_of_target.size()) {
                table.domain_of_target.push_back(add(add, targets.domain_of_target[id]));
            } else {
                table.domain_of_target.push_back(static_cast<std::int32_t>(table.target_domains.size()));
                table.target_domains.push_back({1, -1});
            }
        }
    }

    void count_units(ItemTable& table) const {
        table.pairs.clear();
        for (std::size_t writer = 0; writer < groups_.size(); ++writer) {
            for (std::size_t dealt = 0; dealt < groups_[writer].size(); ++dealt) {
                const Group& group = groups_[writer][dealt];
                if (group.bytes() > 0)
                    table.pairs.push_back(
                        {static_cast<std::int32_t>(writer), static_cast<std::int32_t>(dealt), cut_.units(group)});
            }
        }
    }

    /// The coarsest of a stripe, half a stripe and so on that is almost as good as the finest.
    std::optional<Error> choose_units(ItemTable& table, std::int64_t stripe_bytes) {
        const std::int64_t buffer = cut_.rule.buffer_bytes;
        std::vector<std::pair<Cut, std::int64_t>> found;  // and the bytes that follow each other in its rounds
        for (std::int64_t unit = std::min(buffer, stripe_bytes);; unit /= 2) {
            cut_ = Cut::into_units(buffer, unit);
            count_units(table);
            const auto rounds = fewest_rounds(table);
            if (!rounds && found.empty()) return rounds.error();
            if (!rounds) break;  // too many units
            found.emplace_back(cut_, rounds.value() * unit);
            if (unit % 2 != 0 || unit / 2 < least_unit_bytes) break;
        }
        const std::int64_t least = found.back().second;
        cut_ = std::find_if(found.begin(), found.end(), [&](const auto& its) {
                   return its.second - least <= least / tolerated_part;
               })->first;
        return std::nullopt;
    }

    /// A unit of each move, as often as the pattern says: in the fewest rounds that buffers allow, all of about the same size.
    void append(const RoundPattern& pattern) {
        const std::int64_t units = pattern.rounds;
        const std::int64_t rounds = ceil_divide(units, cut_.most_units);
        append(pattern, units % rounds, units / rounds + 1);
        append(pattern, rounds - units % rounds, units / rounds);
    }
    void append(const RoundPattern& pattern, std::int64_t rounds, std::int64_t units_a_round) {
        if (rounds == 0) return;
        for (const RoundPattern::Move& move : pattern.moves) {
            auto& slots = slots_[static_cast<std::size_t>(move.writer)];
            const auto group = static_cast<std::size_t>(move.target);
            std::int64_t& next = next_unit_[{move.writer, move.target}];
            Slot* const last = slots.empty() ? nullptr : &slots.back();
            if (last != nullptr && last->group == group && last->units_a_round == units_a_round &&
                last->first_round + last->rounds == scheduled_)
                last->rounds += rounds;
            else
                slots.push_back({scheduled_, rounds, group, next, units_a_round});
            next += rounds * units_a_round;
        }
        stretches_.push_back({scheduled_, {rounds, pattern.moves}});
        scheduled_ += rounds;
    }

    RoundGoal goal_;
    Cut cut_;
    std::vector<std::vector<Group>> groups_;  // by writer, then target as dealt
    std::vector<std::vector<Slot>> slots_;    // by writer, by rising round
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> next_unit_;
    std::int64_t scheduled_ = 0;  // rounds
    std::vector<Stretch> stretches_;
    std::vector<SharedDomain> target_domains_;
    std::vector<std::int32_t> domain_of_target_;
};

}  // namespace

std::unique_ptr<const Rounds> sequential_rounds(FileDomains domains, std::int64_t buffer_bytes) {
    return std::make_unique<Sequential>(std::move(domains), buffer_bytes);
}

Result<std::unique_ptr<const Rounds>> contention_free_rounds(const FileDomains& domains,
                                                             const layout::ExtentList& covered,
                                                             const StripeLayout& layout, const TargetProfile& targets,
                                                             std::int64_t unit_bytes, const ItemRule& rule,
                                                             RoundGoal goal) {
    auto rounds = std::make_unique<ContentionFree>(rule, goal);
    if (auto error = rounds->schedule(domains, with_widest_gaps(covered), layout, targets, unit_bytes)) return *error;
    return std::unique_ptr<const Rounds>(std::move(rounds));
}

}  // namespace ioweir::planner
