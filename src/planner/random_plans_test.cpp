// Every promise of a plan at once, on many random plans: IOWEIR_TEST_PLANS of them (default 10,000; `make test-long` takes 100,000).
// What is expected is counted here by definition, byte by byte and round by round, without the code under test.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

using layout::DomainKind;
using layout::StripeLayout;
using layout::TargetProfile;
using layout::testing::lists_of_ranks;
using layout::testing::pattern_of;
using testing::Cell;
using testing::Extent;
using testing::ExtentList;
using testing::Judge;
using testing::must_plan;
using testing::table_of;
using testing::TableSchedule;

struct Striping {
    std::int64_t stripe_bytes = 0;  ///< 0: none
    std::int32_t count = 1;
    std::int32_t start = 0;

    [[nodiscard]] StripeLayout layout() const {
        if (stripe_bytes == 0) return StripeLayout::unstriped();
        std::vector<std::int32_t> targets(static_cast<std::size_t>(count));
        std::iota(targets.begin(), targets.end(), 0);
        return StripeLayout::make(stripe_bytes, targets, start).take();
    }
    /// Round robin from the first target on.
    [[nodiscard]] std::int32_t target_of(std::int64_t offset) const {
        return stripe_bytes == 0 ? 0 : static_cast<std::int32_t>((offset / stripe_bytes + start) % count);
    }
};

struct RandomPlan {
    std::vector<ExtentList> lists;
    Striping striping;
    TargetProfile profile;
    Strategy strategy;
};

/// True in one of `n` cases, also in the small ones that RapidCheck begins with.
bool chance(int n) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n)) == 0; }

Strategy random_strategy() {
    Strategy strategy;
    if (chance(8)) return strategy;  // everyone
    strategy.writers = {WritersKind::aggregators, *rc::gen::inRange<std::int64_t>(0, 9)};
    strategy.buffer_bytes = *rc::gen::element<std::int64_t>(1, 3, 16, 50, 1000);
    strategy.domains = *rc::gen::element(Domains::even, Domains::aligned, Domains::cyclic, Domains::group_cyclic,
                                         Domains::cooperative);
    strategy.order = *rc::gen::element(Order::sequential, Order::contention_free);
    strategy.threshold = *rc::gen::element<std::optional<double>>(std::nullopt, 0.0, 0.25, 1.0);
    if (strategy.order == Order::contention_free)
        strategy.goal = *rc::gen::element(RoundGoal::fewest, RoundGoal::shortest);
    return strategy;
}

/// Nothing known, or targets of two servers of one router, with capacities of their own.
TargetProfile random_profile(std::int32_t targets) {
    TargetProfile profile;
    if (*rc::gen::arbitrary<bool>()) return profile;
    const auto capacity = [] { return *rc::gen::inRange<std::int32_t>(1, 4); };
    profile.domains.push_back({DomainKind::router, "router", -1, 0, 0, capacity() + 1});
    for (int server = 0; server < 2; ++server)
        profile.domains.push_back({DomainKind::server, "server", 0, 0, 0, capacity()});
    for (std::int32_t target = 0; target < targets; ++target) {
        profile.domain_of_target.push_back(static_cast<std::int32_t>(profile.domains.size()));
        profile.domains.push_back(
            {DomainKind::target, "target", *rc::gen::inRange<std::int32_t>(1, 3), 0, 0, capacity()});
    }
    return profile;
}

RandomPlan random_plan() {
    RandomPlan random;
    random.lists = *lists_of_ranks(*rc::gen::element(1, 2, 3, 11), *rc::gen::arbitrary<bool>());
    if (!chance(5)) {
        random.striping.stripe_bytes = *rc::gen::inRange<std::int64_t>(1, 20);
        random.striping.count = *rc::gen::inRange<std::int32_t>(1, 6);
        random.striping.start = *rc::gen::inRange(0, random.striping.count);
    }
    random.profile = random_profile(random.striping.count);
    random.strategy = random_strategy();
    return random;
}

/// The contention domains that a target lies in, its own first; -1 - target where the profile knows nothing of it.
std::vector<std::int32_t> domains_of(const TargetProfile& profile, std::int32_t target) {
    if (static_cast<std::size_t>(target) >= profile.domain_of_target.size()) return {-1 - target};
    std::vector<std::int32_t> all;
    for (std::int32_t at = profile.domain_of_target[static_cast<std::size_t>(target)]; at >= 0;
         at = profile.domains[static_cast<std::size_t>(at)].parent)
        all.push_back(at);
    return all;
}

std::int64_t capacity_of(const TargetProfile& profile, std::int32_t domain) {
    return domain < 0 ? 1 : profile.domains[static_cast<std::size_t>(domain)].capacity_writers;
}

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// In no round is a domain served by more writers than saturate it, and no writer serves two targets. Empty when that holds.
std::string overload(const RandomPlan& random, const std::vector<std::vector<Cell>>& cells) {
    std::map<std::pair<std::size_t, std::int32_t>, std::int64_t> writers;  // by round and domain
    for (const auto& rounds : cells) {
        for (std::size_t round = 0; round < rounds.size(); ++round) {
            std::int32_t target = -1;
            for (const Extent& extent : rounds[round].operations) {
                for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) {
                    const std::int32_t here = random.striping.target_of(byte);
                    if (target >= 0 && target != here) return "a writer with two targets in a round";
                    target = here;
                }
            }
            if (target < 0) continue;
            for (const std::int32_t domain : domains_of(random.profile, target)) {
                if (++writers[{round, domain}] > capacity_of(random.profile, domain))
                    return "domain " + std::to_string(domain) + " over its capacity in round " + std::to_string(round);
            }
        }
    }
    return "";
}

/// What each writer is responsible for on each target, in bytes, and in how many rounds it moves that. Domains are cut along the file,
/// so the windows of all rounds say it.
struct Share {
    std::int64_t bytes = 0;
    std::int64_t rounds = 0;
};
struct Shares {
    std::map<std::pair<std::int64_t, std::int32_t>, Share> of;  ///< by writer and target
    std::map<std::int64_t, std::int64_t> largest;               ///< bytes that any writer moves in a round
};
Shares shares_of(const Plan& made, const Striping& striping) {
    Shares shares;
    for (std::int64_t writer = 0; writer < made.schedule->writers(); ++writer) {
        for (std::int64_t round = 0; round < made.schedule->rounds(writer); ++round) {
            std::map<std::int32_t, std::int64_t> here;
            made.schedule->visit_windows(writer, round, [&](Extent window) {
                for (std::int64_t byte = window.offset; byte < window.end(); ++byte) ++here[striping.target_of(byte)];
            });
            for (const auto& [target, bytes] : here) {
                shares.of[{writer, target}].bytes += bytes;
                ++shares.of[{writer, target}].rounds;
                shares.largest[round] = std::max(shares.largest[round], bytes);
            }
        }
    }
    return shares;
}

/// Of a share in the contention-free order: full buffers, and what is left over by the paper's rule (Wang et al. 2014, III-B).
std::int64_t items_of(const Strategy& strategy, std::int64_t bytes) {
    const std::int64_t full = bytes / strategy.buffer_bytes;
    const auto joins =
        static_cast<std::int64_t>(strategy.threshold.value_or(0.5) * static_cast<double>(strategy.buffer_bytes));
    const bool own_item = bytes % strategy.buffer_bytes > joins || full == 0;
    return full + (own_item ? 1 : 0);
}

/// max(most of a writer, over all domains the largest ceil(load / capacity)).
std::int64_t least_for(const RandomPlan& random, const std::map<std::int64_t, std::int64_t>& of_writer,
                       const std::map<std::int32_t, std::int64_t>& on_domain) {
    std::int64_t least = 0;
    for (const auto& [writer, load] : of_writer) least = std::max(least, load);
    for (const auto& [domain, load] : on_domain)
        least = std::max(least, ceil_of(load, capacity_of(random.profile, domain)));
    return least;
}

/// The shortest rounds: with stripes of the same length (a part of one counts whole), the sum over rounds of the most that a
/// writer moves is the most stripes of any writer, or of any domain divided by its capacity. Empty when that holds.
std::string longer_than_need_be(const RandomPlan& random, const Shares& shares) {
    const std::int64_t stripe = random.striping.stripe_bytes;
    const std::int64_t unit =
        stripe == 0 ? random.strategy.buffer_bytes : std::min(stripe, random.strategy.buffer_bytes);
    std::map<std::int64_t, std::int64_t> of_writer;
    std::map<std::int32_t, std::int64_t> on_domain;
    for (const auto& [key, share] : shares.of) {
        const std::int64_t units = ceil_of(share.bytes, unit);
        of_writer[key.first] += units;
        for (const std::int32_t domain : domains_of(random.profile, key.second)) on_domain[domain] += units;
    }
    const std::int64_t least = least_for(random, of_writer, on_domain) * unit;
    std::int64_t needed = 0;
    for (const auto& [round, bytes] : shares.largest) needed += bytes;
    return needed <= least ? ""
                           : std::to_string(needed) + " bytes one after the other instead of " + std::to_string(least);
}

/// Contention-free: R = max(most items of a writer, over all domains the largest ceil(items / capacity)), exactly. Sequential: as many
/// buffers as the longest part has (ROMIO's max_ntimes, for the plan's own parts). Empty when that holds.
std::string wrong_rounds(const RandomPlan& random, const Plan& made) {
    const Shares shares = shares_of(made, random.striping);
    const bool ordered = random.strategy.order == Order::contention_free;
    if (ordered && random.strategy.goal == RoundGoal::shortest) return longer_than_need_be(random, shares);
    std::map<std::int64_t, std::int64_t> bytes_of_writer, items_of_writer;
    std::map<std::int32_t, std::int64_t> items_on_domain;
    for (const auto& [key, share] : shares.of) {
        bytes_of_writer[key.first] += share.bytes;
        if (!ordered) continue;
        const std::int64_t items = items_of(random.strategy, share.bytes);
        if (items != share.rounds) return std::to_string(share.rounds) + " items instead of " + std::to_string(items);
        items_of_writer[key.first] += items;
        for (const std::int32_t domain : domains_of(random.profile, key.second)) items_on_domain[domain] += items;
    }
    std::int64_t least = 0;
    if (ordered) {
        least = least_for(random, items_of_writer, items_on_domain);
    } else {
        for (const auto& [writer, bytes] : bytes_of_writer)
            least = std::max(least, ceil_of(bytes, random.strategy.buffer_bytes));
    }
    if (made.rounds() == least) return "";
    return std::to_string(made.rounds()) + " rounds instead of " + std::to_string(least);
}

/// The same plan for ranks with other numbers, up to their names. Empty when that holds.
std::string depends_on_numbers(const RandomPlan& random, const std::vector<int>& new_name) {
    std::vector<ExtentList> renamed(random.lists.size());
    for (std::size_t rank = 0; rank < renamed.size(); ++rank)
        renamed[static_cast<std::size_t>(new_name[rank])] = random.lists[rank];
    const auto before = pattern_of(random.lists);
    const auto after = pattern_of(renamed);
    const auto plan_of = [&](const layout::AccessPattern& pattern) {
        return table_of(must_plan(pattern, random.strategy, random.striping.layout(), random.profile), pattern);
    };
    TableSchedule expected = plan_of(before);
    for (auto& rounds : expected.cells) {
        for (Cell& cell : rounds) {
            std::map<int, ExtentList> messages;
            for (const auto& [rank, extents] : cell.messages)
                messages[new_name[static_cast<std::size_t>(rank)]] = extents;
            cell.messages = messages;
        }
    }
    if (random.strategy.writers.kind == WritersKind::everyone) {  // writers are ranks, and go with them
        auto cells = expected.cells;
        for (std::size_t rank = 0; rank < cells.size(); ++rank)
            expected.cells[static_cast<std::size_t>(new_name[rank])] = cells[rank];
    }
    return plan_of(after).cells == expected.cells ? "" : "another plan for the same ranks with other numbers";
}

/// With a single target for the stripes, even and cyclic parts are the same.
std::string differs_on_one_target(const RandomPlan& random) {
    Strategy even = random.strategy;
    even.writers = {WritersKind::aggregators, 0};
    if (even.buffer_bytes == 0) even.buffer_bytes = 16;
    even.domains = Domains::even;
    Strategy cyclic = even;
    cyclic.domains = Domains::cyclic;
    const auto pattern = pattern_of(random.lists);
    const Striping one{std::max<std::int64_t>(1, random.striping.stripe_bytes), 1, 0};
    const auto cells = [&](const Strategy& strategy) {
        return table_of(must_plan(pattern, strategy, one.layout()), pattern).cells;
    };
    return cells(even) == cells(cyclic) ? "" : "even and cyclic parts differ on one target";
}

void keeps_every_promise() {
    const RandomPlan random = random_plan();
    const bool planned = random.strategy.writers.kind == WritersKind::aggregators && random.lists.size() > 1;
    RC_TAG(planned ? to_text(random.strategy.domains) + ", " + to_text(random.strategy.order) : "everyone");
    const auto pattern = pattern_of(random.lists);
    const Plan made = must_plan(pattern, random.strategy, random.striping.layout(), random.profile);
    const auto verified = verify(made, pattern);
    if (!verified) RC_FAIL(verified.error().message());
    RC_ASSERT(Judge(made, pattern).approves());  // every byte exactly once, by whoever may move it
    if (planned) {
        if (random.strategy.order == Order::contention_free)
            RC_ASSERT(overload(random, table_of(made, pattern).cells) == "");
        RC_ASSERT(wrong_rounds(random, made) == "");
    }
    std::vector<int> new_name(random.lists.size());
    std::iota(new_name.begin(), new_name.end(), 0);
    for (std::size_t i = new_name.size(); i > 1; --i)
        std::swap(new_name[i - 1], new_name[*rc::gen::inRange<std::size_t>(0, i)]);
    RC_ASSERT(depends_on_numbers(random, new_name) == "");
    RC_ASSERT(differs_on_one_target(random) == "");
}

TEST(RandomPlans, KeepEveryPromise) {
    const char* const given = std::getenv("IOWEIR_TEST_PLANS");
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    params.maxSuccess = given != nullptr ? std::atoi(given) : 10'000;
    ASSERT_GT(params.maxSuccess, 0) << "IOWEIR_TEST_PLANS = " << given;
    const auto result = rc::detail::checkTestable(keeps_every_promise, rc::detail::TestMetadata{}, params);
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    if (!result.is<rc::detail::SuccessResult>()) FAIL() << text.str();
    EXPECT_EQ(result.get<rc::detail::SuccessResult>().numSuccess, params.maxSuccess);
    std::cout << text.str() << "\n";
}

// The counting above is worth something only if it can say no.
TEST(RandomPlans, TheCountsSeeADamagedPlan) {
    RandomPlan random;
    random.lists = {{{0, 40}}, {{40, 40}}};
    random.striping = {10, 2, 0};
    random.strategy.writers = {WritersKind::aggregators, 2};
    random.strategy.buffer_bytes = 10;
    random.strategy.order = Order::contention_free;
    const auto pattern = pattern_of(random.lists);
    const Plan sound = must_plan(pattern, random.strategy, random.striping.layout());
    EXPECT_EQ(overload(random, table_of(sound, pattern).cells), "");
    EXPECT_EQ(wrong_rounds(random, sound), "");

    TableSchedule crowded = table_of(sound, pattern);
    std::size_t other = 0;  // a round of the second writer on the target that the first writer serves in round 0
    for (std::size_t round = 0; round < crowded.cells[1].size(); ++round) {
        if (random.striping.target_of(crowded.cells[1][round].operations.front().offset) ==
            random.striping.target_of(crowded.cells[0][0].operations.front().offset))
            other = round;
    }
    std::swap(crowded.cells[1][0], crowded.cells[1][other]);
    EXPECT_EQ(overload(random, crowded.cells).substr(0, 7), "domain ");

    RandomPlan idle = random;
    idle.strategy.buffer_bytes = 20;  // a plan for smaller buffers has too many rounds for it
    EXPECT_NE(wrong_rounds(idle, sound), "");
    RandomPlan wide = random;
    wide.striping = {5, 2, 0};
    EXPECT_EQ(overload(wide, table_of(sound, pattern).cells), "a writer with two targets in a round");
}

}  // namespace
}  // namespace ioweir::planner
