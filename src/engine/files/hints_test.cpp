// What hints make of a rule. Handing them over, under MPI: tests/engine/engine_info_test.cpp.
#include "engine/files/hints.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace ioweir::engine {
namespace {

using Info = std::map<std::string, std::string>;

Chosen chosen(const std::string& keys, const Info& info) {
    const auto plan = policy::parse_plan_file("[[file]]\nmatch = \"*\"\n" + keys, "plan.toml");
    EXPECT_TRUE(plan.ok()) << plan.error().message();
    return choose(plan.value().files[0], [&](const char* hint) -> std::optional<std::string> {
        const auto found = info.find(hint);
        return found == info.end() ? std::nullopt : std::optional(found->second);
    });
}

std::string writers(const std::string& keys, const Info& info) {
    return planner::to_text(chosen(keys, info).strategy.writers);
}

TEST(Hints, SayWhoWritesWhereThePlanDoesNot) {
    EXPECT_EQ(writers("", {}), "everyone");
    EXPECT_EQ(writers("", {{"cb_nodes", "3"}}), "aggregators:3");
    EXPECT_EQ(writers("", {{"romio_cb_write", "enable"}}), "aggregators:auto");
    EXPECT_EQ(writers("", {{"romio_cb_write", "enable"}, {"cb_nodes", "3"}}), "aggregators:3");
    EXPECT_EQ(writers("", {{"romio_cb_write", "automatic"}}), "everyone");
    EXPECT_EQ(writers("", {{"romio_cb_write", "disable"}, {"cb_nodes", "3"}}), "everyone");
    EXPECT_EQ(writers("", {{"collective_buffering", "true"}}), "aggregators:auto");
    EXPECT_EQ(writers("", {{"collective_buffering", "true"}, {"romio_cb_write", "disable"}}), "everyone");
    EXPECT_EQ(writers("", {{"ioweir_writers", "aggregators:2"}, {"cb_nodes", "3"}, {"romio_cb_write", "disable"}}),
              "aggregators:2");
    EXPECT_EQ(writers("writers = \"everyone\"\n", {{"cb_nodes", "3"}, {"ioweir_writers", "aggregators:2"}}),
              "everyone");
    EXPECT_EQ(writers("writers = \"aggregators:5\"\n", {{"romio_cb_write", "disable"}}), "aggregators:5");
}

TEST(Hints, WhoLeavesTheTargetsToIoweirLeavesTheWritersToIt) {
    const auto strategy = [](const std::string& keys, const Info& info) {
        return planner::to_text(chosen(keys, info).strategy);
    };
    const std::string by_itself = "mapping subfiles:auto, writers auto, domains cyclic, order sequential";
    EXPECT_EQ(strategy("mapping = \"subfiles:auto\"\n", {}), by_itself);
    EXPECT_EQ(strategy("", {{"ioweir_mapping", "subfiles:auto"}}), by_itself);
    EXPECT_EQ(strategy("mapping = \"subfiles:auto\"\n", {{"ioweir_mapping", "shared"}}), by_itself);
    EXPECT_EQ(strategy("mapping = \"subfiles:auto\"\nwriters = \"everyone\"\n", {}),
              "mapping subfiles:auto, writers everyone, order sequential");
    EXPECT_EQ(strategy("mapping = \"subfiles:auto\"\n", {{"romio_cb_write", "disable"}}),
              "mapping subfiles:auto, writers everyone, order sequential");
    EXPECT_EQ(strategy("mapping = \"subfiles:auto\"\n", {{"cb_nodes", "3"}}),
              "mapping subfiles:auto, writers aggregators:3, domains cyclic, order sequential");
    EXPECT_EQ(strategy("mapping = \"subfiles:2\"\n", {}), "mapping subfiles:2, writers everyone, order sequential");
}

TEST(Hints, SetWhatIsOpenAndNothingElse) {
    const Info all{{"cb_buffer_size", "4194304"},       {"striping_factor", "8"},
                   {"striping_unit", "1048576"},        {"start_iodevice", "3"},
                   {"ioweir_domains", "cyclic"},        {"ioweir_order", "contention-free"},
                   {"ioweir_mapping", "subfiles:auto"}, {"romio_ds_read", "disable"},
                   {"romio_ds_write", "enable"},        {"romio_cb_read", "enable"},
                   {"access_style", "write_once"}};
    const Chosen open = chosen("", all);
    EXPECT_EQ(open.strategy.buffer_bytes, 4 << 20);
    EXPECT_EQ(open.strategy.stripe, (planner::Stripe{1 << 20, 8, 3}));
    EXPECT_EQ(open.strategy.domains, planner::Domains::cyclic);
    EXPECT_EQ(open.strategy.order, planner::Order::contention_free);
    EXPECT_EQ(planner::to_text(open.strategy.mapping), "subfiles:auto");
    EXPECT_FALSE(open.effects.reads_holes);
    EXPECT_TRUE(open.effects.reads_together);
    EXPECT_STREQ(open.effects.sieving_answer, "disable");
    EXPECT_TRUE(open.unused.empty());
    const std::string keys =
        "mapping = \"shared\"\nwriters = \"everyone\"\ndomains = \"even\"\norder = \"sequential\"\nbuffer = \"1 MiB\"\n"
        "stripe = { size = \"2 MiB\", count = 2, start = 0 }\n";
    const Chosen fixed = chosen(keys, all);
    EXPECT_EQ(fixed.strategy, chosen(keys, {}).strategy);
    EXPECT_TRUE(fixed.unused.empty()) << "the plan wins, and that is no mistake";
    const Chosen half = chosen("stripe = { count = 2 }\n", all);
    EXPECT_EQ(half.strategy.stripe, (planner::Stripe{1 << 20, 2, 3})) << "key by key";
}

TEST(Hints, SayMoreThanTheStrategy) {
    EXPECT_FALSE(chosen("", {{"romio_cb_read", "disable"}}).effects.reads_together);
    EXPECT_FALSE(chosen("", {}).effects.writers_chosen);
    EXPECT_FALSE(chosen("", {{"romio_cb_write", "automatic"}}).effects.writers_chosen);
    EXPECT_TRUE(chosen("", {{"romio_cb_write", "disable"}}).effects.writers_chosen);
    EXPECT_TRUE(chosen("writers = \"everyone\"\n", {}).effects.writers_chosen);
    EXPECT_STREQ(chosen("", {}).effects.sieving_answer, "automatic");
    EXPECT_STREQ(chosen("", {{"romio_ds_write", "automatic"}}).effects.sieving_answer, "automatic");
}

TEST(Hints, OfTwoForOneKeyTheLaterOneInTheTableWins) {
    EXPECT_EQ(chosen("", {{"start_iodevice", "3"}, {"romio_lustre_start_iodevice", "5"}}).strategy.stripe.start, 3);
    EXPECT_EQ(chosen("", {{"romio_lustre_start_iodevice", "5"}}).strategy.stripe.start, 5);
    EXPECT_EQ(chosen("", {{"cb_buffer_size", "1024"}, {"ioweir_buffer", "2 KiB"}}).strategy.buffer_bytes, 2048);
}

TEST(Hints, WrongValuesAreSaidAndNotUsed) {
    for (const auto& [hint, value] : Info{{"cb_nodes", "many"},
                                          {"cb_buffer_size", "0"},
                                          {"striping_factor", "-1"},
                                          {"striping_unit", "1 M"},
                                          {"start_iodevice", "-1"},
                                          {"romio_cb_write", "true"},
                                          {"collective_buffering", "1"},
                                          {"ioweir_order", "any"},
                                          {"ioweir_writers", "none"},
                                          {"romio_ds_read", ""},
                                          {"romio_ds_write", "no"},
                                          {"cb_nodes ", "3"}}) {
        const Chosen wrong = chosen("", {{hint, value}});
        EXPECT_EQ(wrong.strategy, planner::Strategy{}) << hint;
        EXPECT_TRUE(wrong.effects.reads_holes) << hint;
        if (hint == "cb_nodes ") {
            EXPECT_TRUE(wrong.unused.empty()) << "other keys are nobody's business";
            continue;
        }
        ASSERT_EQ(wrong.unused.size(), 1u) << hint;
        EXPECT_NE(wrong.unused[0].find("hint " + hint + " = '" + value + "'"), std::string::npos) << wrong.unused[0];
    }
}

}  // namespace
}  // namespace ioweir::engine
