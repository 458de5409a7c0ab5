// The contention-free order: the paper's two examples, and its promises on random tables.
#include "planner/contention_free.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace ioweir::planner {
namespace {

/// Targets without servers above them.
ItemTable flat(std::int32_t writers, const std::vector<std::vector<std::int64_t>>& items_by_target,
               std::int64_t capacity = 1) {
    ItemTable table;
    table.writers = writers;
    for (std::size_t target = 0; target < items_by_target.size(); ++target) {
        table.target_domains.push_back({capacity, -1});
        table.domain_of_target.push_back(static_cast<std::int32_t>(target));
        for (std::int32_t writer = 0; writer < writers; ++writer) {
            const std::int64_t items = items_by_target[target][static_cast<std::size_t>(writer)];
            if (items > 0) table.pairs.push_back({writer, static_cast<std::int32_t>(target), items});
        }
    }
    return table;
}

std::vector<RoundPattern> order_of(const ItemTable& table,
                                   ContentionFreeMethod method = ContentionFreeMethod::automatic) {
    std::vector<RoundPattern> patterns;
    const auto error =
        visit_contention_free(table, [&](const RoundPattern& pattern) { patterns.push_back(pattern); }, method);
    EXPECT_FALSE(error) << error->message();
    return patterns;
}

/// One line a writer, one character a round: the number of the target, from 1; "." for a round without an item.
std::string picture(const ItemTable& table, const std::vector<RoundPattern>& patterns) {
    std::string text;
    for (std::int32_t writer = 0; writer < table.writers; ++writer) {
        for (const RoundPattern& pattern : patterns) {
            char mark = '.';
            for (const auto& move : pattern.moves)
                if (move.writer == writer) mark = static_cast<char>('1' + move.target);
            text += std::string(static_cast<std::size_t>(pattern.rounds), mark);
        }
        text += "\n";
    }
    return text;
}

std::int64_t rounds_of(const std::vector<RoundPattern>& patterns) {
    std::int64_t sum = 0;
    for (const RoundPattern& pattern : patterns) sum += pattern.rounds;
    return sum;
}

/// Judges an order by counting, without the code under test. Empty when it keeps every promise.
std::string judge(const ItemTable& table, const std::vector<RoundPattern>& patterns) {
    std::map<std::pair<int, int>, std::int64_t> left;
    for (const auto& pair : table.pairs) left[{pair.writer, pair.target}] += pair.items;
    for (const RoundPattern& pattern : patterns) {
        if (pattern.rounds < 1) return "a pattern without a round";
        std::map<int, int> of_writer;
        std::vector<std::int64_t> on_targets(table.target_domains.size(), 0);
        std::vector<std::int64_t> on_writers(table.writer_domains.size(), 0);
        for (const auto& move : pattern.moves) {
            if (++of_writer[move.writer] > 1) return "a writer with two items in a round";
            std::int64_t& items = left[{move.writer, move.target}];
            items -= pattern.rounds;
            if (items < 0) return "an item that does not exist";
            for (int at = table.domain_of_target[static_cast<std::size_t>(move.target)]; at >= 0;
                 at = table.target_domains[static_cast<std::size_t>(at)].parent)
                ++on_targets[static_cast<std::size_t>(at)];
            if (table.domain_of_writer.empty()) continue;
            for (int at = table.domain_of_writer[static_cast<std::size_t>(move.writer)]; at >= 0;
                 at = table.writer_domains[static_cast<std::size_t>(at)].parent)
                ++on_writers[static_cast<std::size_t>(at)];
        }
        for (std::size_t i = 0; i < on_targets.size(); ++i)
            if (on_targets[i] > table.target_domains[i].capacity) return "a target domain over its capacity";
        for (std::size_t i = 0; i < on_writers.size(); ++i)
            if (on_writers[i] > table.writer_domains[i].capacity) return "a writer domain over its capacity";
    }
    for (const auto& [pair, items] : left)
        if (items != 0) return "items are left over";
    return "";
}

/// The lower bound that nothing can beat, by its definition.
std::int64_t bound(const ItemTable& table) {
    std::vector<std::int64_t> writers(static_cast<std::size_t>(table.writers), 0);
    std::vector<std::int64_t> targets(table.target_domains.size(), 0);
    std::vector<std::int64_t> nodes(table.writer_domains.size(), 0);
    for (const auto& pair : table.pairs) {
        writers[static_cast<std::size_t>(pair.writer)] += pair.items;
        for (int at = table.domain_of_target[static_cast<std::size_t>(pair.target)]; at >= 0;
             at = table.target_domains[static_cast<std::size_t>(at)].parent)
            targets[static_cast<std::size_t>(at)] += pair.items;
        if (table.domain_of_writer.empty()) continue;
        for (int at = table.domain_of_writer[static_cast<std::size_t>(pair.writer)]; at >= 0;
             at = table.writer_domains[static_cast<std::size_t>(at)].parent)
            nodes[static_cast<std::size_t>(at)] += pair.items;
    }
    std::int64_t most = 0;
    for (const std::int64_t load : writers) most = std::max(most, load);
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const std::int64_t capacity = table.target_domains[i].capacity;
        most = std::max(most, (targets[i] + capacity - 1) / capacity);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::int64_t capacity = table.writer_domains[i].capacity;
        most = std::max(most, (nodes[i] + capacity - 1) / capacity);
    }
    return most;
}

/// `most`: items of a pair; few, where a pattern a round is to be made.
ItemTable random_table(std::int64_t most = 100'000) {
    ItemTable table;
    table.writers = *rc::gen::inRange(1, 7);
    const int targets = *rc::gen::inRange(1, 7);
    const int servers = *rc::gen::inRange(0, 4);
    const bool router = servers > 0 && *rc::gen::arbitrary<bool>();
    if (router) table.target_domains.push_back({*rc::gen::inRange<std::int64_t>(1, 6), -1});
    for (int i = 0; i < servers; ++i)
        table.target_domains.push_back({*rc::gen::inRange<std::int64_t>(1, 4), router ? 0 : -1});
    for (int i = 0; i < targets; ++i) {
        const int server = servers > 0 ? *rc::gen::inRange(-1, servers) : -1;
        table.domain_of_target.push_back(static_cast<std::int32_t>(table.target_domains.size()));
        table.target_domains.push_back(
            {*rc::gen::inRange<std::int64_t>(1, 4), server < 0 ? (router ? 0 : -1) : server + (router ? 1 : 0)});
    }
    const int nodes = *rc::gen::inRange(0, 4);
    for (int i = 0; i < nodes; ++i)
        table.writer_domains.push_back({*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange(-1, std::max(i, 1))});
    if (nodes > 0) {
        table.writer_domains[0].parent = -1;
        for (int i = 0; i < table.writers; ++i) table.domain_of_writer.push_back(*rc::gen::inRange(-1, nodes));
    }
    for (std::int32_t writer = 0; writer < table.writers; ++writer)
        for (std::int32_t target = 0; target < targets; ++target)
            if (const auto items =
                    *rc::gen::weightedOneOf<std::int64_t>({{2, rc::gen::just<std::int64_t>(0)},
                                                           {3, rc::gen::inRange<std::int64_t>(1, 6)},
                                                           {1, rc::gen::inRange<std::int64_t>(1, most)}});
                items > 0)
                table.pairs.push_back({writer, target, items});
    return table;
}

// Wang et al. 2014, figures 1 to 4: 18 stripes over 3 OSTs, 3 aggregators with 6 stripes each, buffer of two stripes: each has one
// item (two stripes) of each OST.
TEST(ContentionFree, PaperFigure4ThreeRounds) {
    const ItemTable table = flat(3, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
    const auto order = order_of(table);
    EXPECT_EQ(rounds_of(order), 3);
    EXPECT_EQ(judge(table, order), "");
    for (const RoundPattern& pattern : order) EXPECT_EQ(pattern.moves.size(), 3U) << "a writer is idle";
}

// Figures 6 and 7, Table I: buffer of one stripe; OST 1 has 3, 2, 2 items of the three aggregators, and so on.
TEST(ContentionFree, PaperTable1SevenRounds) {
    const ItemTable table = flat(3, {{3, 2, 2}, {2, 3, 2}, {2, 2, 3}});
    const auto order = order_of(table);
    EXPECT_EQ(rounds_of(order), 7);
    EXPECT_EQ(judge(table, order), "");
    for (const RoundPattern& pattern : order) EXPECT_EQ(pattern.moves.size(), 3U) << "a writer is idle";
    const std::string text = picture(table, order);
    for (std::size_t round = 0; round < 7; ++round) {
        std::string column{text[round], text[8 + round], text[16 + round]};
        std::sort(column.begin(), column.end());
        EXPECT_EQ(column, "123") << text;
    }
}

// Greedy rules fail here: writer 0 has to begin with target 0, which is the bottleneck.
TEST(ContentionFree, TheBottleneckIsNeverPutOff) {
    const ItemTable table = flat(2, {{1, 2}, {2, 0}});
    const auto order = order_of(table);
    EXPECT_EQ(rounds_of(order), 3);
    EXPECT_EQ(judge(table, order), "");
}

TEST(ContentionFree, CapacitiesLetSeveralWritersShareATarget) {
    const ItemTable table = flat(4, {{2, 2, 2, 2}}, 2);
    const auto order = order_of(table);
    EXPECT_EQ(rounds_of(order), 4);
    EXPECT_EQ(judge(table, order), "");
}

TEST(ContentionFree, CostDoesNotDependOnTheNumberOfItems) {
    std::vector<std::vector<std::int64_t>> few(24, std::vector<std::int64_t>(24));
    std::vector<std::vector<std::int64_t>> many = few;
    for (std::size_t i = 0; i < 24; ++i)
        for (std::size_t j = 0; j < 24; ++j) {
            few[i][j] = static_cast<std::int64_t>((i * 7 + j * 5) % 11);
            many[i][j] = few[i][j] * 100'000;
        }
    const auto order_of_few = order_of(flat(24, few));
    const auto order_of_many = order_of(flat(24, many));
    EXPECT_EQ(rounds_of(order_of_many), rounds_of(order_of_few) * 100'000);
    EXPECT_EQ(order_of_many.size(), order_of_few.size());
}

// Large enough for the automatic choice to halve: 120 writers, 120 targets behind 8 servers that 12 writers saturate.
TEST(ContentionFree, LargeTablesTakeTheFewestRoundsToo) {
    ItemTable table;
    table.writers = 120;
    for (int server = 0; server < 8; ++server) table.target_domains.push_back({12, -1});
    for (std::int32_t target = 0; target < 120; ++target) {
        table.domain_of_target.push_back(static_cast<std::int32_t>(table.target_domains.size()));
        table.target_domains.push_back({1 + target % 2, target % 8});
        for (std::int32_t writer = 0; writer < 120; ++writer)
            if (const int items = (writer * 7 + target * 13 + writer * target) % 6; items > 0)
                table.pairs.push_back({writer, target, items});
    }
    for (const auto method : {ContentionFreeMethod::automatic, ContentionFreeMethod::step_by_step}) {
        const auto order = order_of(table, method);
        EXPECT_EQ(rounds_of(order), bound(table));
        EXPECT_EQ(judge(table, order), "");
    }
    EXPECT_EQ(order_of(table).size(), order_of(table, ContentionFreeMethod::halving).size()) << "it has halved";
}

TEST(ContentionFree, NothingToDoTakesNoRounds) {
    EXPECT_TRUE(order_of(flat(3, {{0, 0, 0}})).empty());
    EXPECT_EQ(fewest_rounds(flat(3, {{0, 0, 0}})).value(), 0);
}

TEST(ContentionFree, RefusesUnsoundTables) {
    const auto message = [](const ItemTable& table) {
        const auto rounds = fewest_rounds(table);
        return rounds ? std::string("accepted") : rounds.error().message();
    };
    ItemTable table = flat(1, {{1}});
    table.pairs.push_back({0, 0, 1});
    EXPECT_NE(message(table).find("stands twice"), std::string::npos) << message(table);
    table = flat(1, {{1}});
    table.target_domains[0].capacity = 0;
    EXPECT_NE(message(table).find("capacity 0"), std::string::npos) << message(table);
    table = flat(1, {{1}});
    table.pairs[0].target = 1;
    EXPECT_NE(message(table).find("target 1"), std::string::npos) << message(table);
    table = flat(1, {{1}});
    table.pairs[0].items = -1;
    EXPECT_NE(message(table).find("-1 items"), std::string::npos) << message(table);
    table = flat(1, {{1}});
    table.target_domains[0].parent = 0;
    EXPECT_NE(message(table).find("parents first"), std::string::npos) << message(table);
}

RC_GTEST_PROP(ContentionFree, FewestRoundsNoDomainOverItsCapacityEveryItemOnce, ()) {
    const ItemTable table = random_table();
    const auto order = order_of(table);
    RC_LOG() << picture(table, order).substr(0, 400);
    RC_ASSERT(judge(table, order) == "");
    RC_ASSERT(rounds_of(order) == bound(table));
    RC_ASSERT(fewest_rounds(table).value() == bound(table));
    RC_ASSERT(order.size() <= table.pairs.size() + table.target_domains.size() + table.writer_domains.size() +
                                  static_cast<std::size_t>(table.writers));
}

RC_GTEST_PROP(ContentionFree, HalvingKeepsEveryPromiseButTheNumberOfPatterns, ()) {
    const ItemTable table = random_table(200);
    const auto order = order_of(table, ContentionFreeMethod::halving);
    RC_ASSERT(judge(table, order) == "");
    RC_ASSERT(rounds_of(order) == bound(table));
    RC_ASSERT(static_cast<std::int64_t>(order.size()) <= std::max<std::int64_t>(1, bound(table)));
}

}  // namespace
}  // namespace ioweir::planner
