// Plan files: what is read, what is refused and in which words, which rule applies to which path.
#include "policy/plan_file.hpp"

#include "ioweir_generated/plan_keys.hpp"
#include "planner/testing.hpp"

namespace ioweir::policy {
using namespace planner;
namespace {

std::string refusal(std::string_view toml) {
    const auto parsed = parse_plan_file(toml, "plan.toml");
    return parsed ? "accepted" : parsed.error().message();
}

PlanFile must_parse(std::string_view toml) {
    auto parsed = parse_plan_file(toml, "plan.toml");
    if (!parsed) throw std::runtime_error(parsed.error().message());
    return parsed.take();
}

/// "known: size, count, start"
std::string known(const KeyTable& table) {
    std::string text;
    for (const std::string_view name : table.names) text += (text.empty() ? "known: " : ", ") + std::string(name);
    return text;
}

TEST(PlanFile, ExampleOfTheDesign) {
    const auto plan = must_parse(R"(
[[file]]
match   = "*.chk*"
mapping = "shared"
writers = "aggregators:auto"
domains = "cyclic"
order   = "contention-free"
buffer  = "16 MiB"
stripe  = { size = "1 MiB", count = 8 }     # at creation, where the storage can
)");
    ASSERT_EQ(plan.files.size(), 1U);
    const FileRule& rule = plan.files[0];
    EXPECT_EQ(rule.match, "*.chk*");
    EXPECT_EQ(rule.line, 2);
    EXPECT_EQ(rule.strategy.mapping, (Mapping{MappingKind::shared, 0}));
    EXPECT_EQ(rule.strategy.writers, (Writers{WritersKind::aggregators, 0}));
    EXPECT_EQ(rule.strategy.domains, Domains::cyclic);
    EXPECT_EQ(rule.strategy.order, Order::contention_free);
    EXPECT_EQ(rule.strategy.buffer_bytes, 16 << 20);
    EXPECT_EQ(rule.strategy.stripe, (Stripe{1 << 20, 8}));
    EXPECT_EQ(plan.name, "plan.toml");
}

TEST(PlanFile, WhatIsLeftOutIsTheDefault) {
    const auto plan =
        must_parse("[[file]]\nmatch = \"a\"\n[[file]]\nmatch = \"b\"\nbuffer = 4096\n[file.stripe]\ncount = 2\n");
    ASSERT_EQ(plan.files.size(), 2U);
    EXPECT_EQ(plan.files[0].strategy, Strategy{});
    EXPECT_EQ(plan.files[1].strategy.buffer_bytes, 4096);
    EXPECT_EQ(plan.files[1].strategy.stripe, (Stripe{0, 2}));
}

TEST(PlanFile, AutoHasCyclicDomainsIfThePlanNamesNone) {
    EXPECT_EQ(to_text(Writers{WritersKind::automatic, 0}), "auto");
    const auto file = parse_plan_file(
        "[[file]]\nmatch = \"a\"\nwriters = \"auto\"\n"
        "[[file]]\nmatch = \"b\"\nwriters = \"auto\"\ndomains = \"even\"\n",
        "plan.toml");
    ASSERT_TRUE(file.ok()) << file.error().message();
    EXPECT_EQ(file.value().files.at(0).strategy.domains, Domains::cyclic);
    EXPECT_EQ(file.value().files.at(1).strategy.domains, Domains::even);
}

TEST(PlanFile, SubfilesOfNetcdfFilesHaveARule) {
    const PlanFile plan = with_subfile_rules(must_parse(
        "[[file]]\nmatch = \"*/a.nc\"\nnetcdf = { subfiles = 2 }\n"
        "[[file]]\nmatch = \"b*\"\nwriters = \"aggregators:3\"\nbuffer = \"1 MiB\"\nnetcdf = { subfiles = 2 }\n"
        "[[file]]\nmatch = \"c\"\n"));
    EXPECT_EQ(plan.files.size(), 5U);
    const FileRule* const of_a = plan.match("run/a.nc.subfile_1.nc");
    ASSERT_NE(of_a, nullptr);
    EXPECT_EQ(of_a->strategy.writers, (Writers{WritersKind::automatic, 0}));
    EXPECT_EQ(of_a->strategy.mapping.kind, MappingKind::shared);
    EXPECT_EQ(of_a->line, 1);
    EXPECT_EQ(of_a->netcdf, NetcdfOptions{});
    EXPECT_EQ(plan.match("run/a.nc"), &plan.files[0]);
    EXPECT_EQ(plan.match("b.nc.subfile_0.nc"), &plan.files[1]) << "its own pattern is wide enough";
    EXPECT_EQ(plan.files[4].strategy, plan.files[1].strategy);
    EXPECT_EQ(plan.match("c.subfile_0.nc"), nullptr);
}

TEST(PlanFile, KnowsWhichKeysStandInARule) {
    const auto plan = must_parse(
        "[[file]]\nmatch = \"a\"\nwriters = \"everyone\"\nstripe = { start = 0 }\nset_size = \"at-once\"\n"
        "[[file]]\nmatch = \"b\"\nvisibility = \"sync\"\n[[file]]\nmatch = \"c\"\nvisibility = \"call\"\n");
    const auto again = parse_plan_file(to_toml(plan), "again");
    const Visibility expected[] = {Visibility::unsaid, Visibility::sync, Visibility::call};
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(plan.files[i].visibility, expected[i]);
        EXPECT_EQ(again.value().files[i].visibility, expected[i]);
    }
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nvisibility = \"never\"\n"),
              "unknown visibility: 'never' (plan.toml:3); write \"sync\" or \"call\"");
    EXPECT_TRUE(plan.files[0].given.writers);
    EXPECT_TRUE(plan.files[0].given.stripe_start);
    EXPECT_FALSE(plan.files[0].given.stripe_count);
    EXPECT_FALSE(plan.files[0].given.domains);
    EXPECT_EQ(plan.files[0].strategy.stripe, (Stripe{0, 0, 0}));
    EXPECT_FALSE(plan.files[0].defers_set_size);
    EXPECT_FALSE(plan.files[1].given.writers);
    EXPECT_TRUE(plan.files[1].defers_set_size);
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nset_size = \"later\"\n"),
              "unknown set_size: 'later' (plan.toml:3); write \"deferred\" or \"at-once\"");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nstripe = { start = -1 }\n"),
              "not the number of a target: start = -1 (plan.toml:3); write a whole number from 0, or leave the key out "
              "for the "
              "default");
}

TEST(PlanFile, UnknownKeysNameTheirLineAndWhatWasMeant) {
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nwritrs = \"everyone\"\n"),
              "unknown key: 'writrs' (plan.toml:3); did you mean 'writers'? " + known(rule_table));
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nstripe = { sise = 4 }\n"),
              "unknown key: 'sise' (plan.toml:3); did you mean 'size'? " + known(stripe_table));
    EXPECT_EQ(refusal("[[files]]\nmatch = \"*\"\n"),
              "unknown key: 'files' (plan.toml:1); a plan file has [[file]] tables only");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\ncolour = 1\n"),
              "unknown key: 'colour' (plan.toml:3); " + known(rule_table));
}

TEST(PlanFile, UnknownValuesNameTheirLineAndWhatWasMeant) {
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\n\nwriters = \"evryone\"\n"),
              "unknown writers: 'evryone' (plan.toml:4); did you mean 'everyone'? known: everyone, aggregators, "
              "delegates, behind, library, auto");
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"*\"\nwriters = \"aggregators\"\n"),
        "malformed writers: 'aggregators' (plan.toml:3); write aggregators:N or aggregators:auto, with N = 1 or more");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nbuffer = \"16 mib\"\n"),
              "unknown unit of size: buffer = '16 mib' (plan.toml:3); did you mean 'MiB'? known: B, KiB, MiB, GiB, "
              "TiB, kB, MB, GB, TB");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nbuffer = 0\n"),
              "a size below 1 byte: buffer = 0 (plan.toml:3); leave the key out for the default");
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"*\"\nstripe = { count = 0 }\n"),
        "not a number of stripes: count = 0 (plan.toml:3); write a whole number from 1, or leave the key out for the "
        "default");
}

TEST(PlanFile, WrongTypesAndShapesAreRefused) {
    EXPECT_EQ(refusal("[[file]]\nmatch = 5\n"), "not a text: match = 5 (plan.toml:2); put the value in double quotes");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\norder = true\n"),
              "not a text: order = true (plan.toml:3); put the value in double quotes");
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"*\"\nbuffer = 1.5\n"),
        "not a size: buffer = 1.5 (plan.toml:3); write a text with a unit such as \"16 MiB\", or a number of bytes");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\nstripe = 8\n"),
              "not a table: stripe (plan.toml:3); write stripe = { size = \"1 MiB\", count = 8 }");
    EXPECT_EQ(refusal("[file]\nmatch = \"*\"\n"),
              "'file' is not an array of tables: plan.toml:1; write [[file]] with two brackets on either side");
    EXPECT_EQ(refusal("file = [1]\n"),
              "an element of 'file' is not a table: plan.toml:1; write [[file]] and the keys below it");
    EXPECT_EQ(refusal("[[file]]\nmapping = \"shared\"\n"),
              "a [[file]] table without 'match': plan.toml:1; say which files it is for, such as match = \"*.chk\"");
    EXPECT_EQ(refusal("[[file]]\nmatch = \"\"\n"),
              "an empty pattern: match (plan.toml:2); write a file name or a pattern such as \"*.chk\"");
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"a\"\n[[file]]\nmatch = \"a\"\n"),
        "a pattern stands in the plan twice: 'a' (plan.toml:3); the first match wins (line 1): remove one of the two");
    EXPECT_EQ(refusal("# nothing\n"),
              "a plan file without a [[file]] table: 'plan.toml'; write one [[file]] table with a match and what "
              "differs from the defaults");
}

TEST(PlanFile, BrokenTomlNamesLineAndColumn) {
    const std::string text = refusal("[[file]]\nmatch = \"*\n");
    EXPECT_EQ(text.rfind("a plan file is not valid TOML: plan.toml:2:", 0), 0U) << text;
    const std::string twice = refusal("[[file]]\nmatch = \"*\"\nmatch = \"b\"\n");
    EXPECT_EQ(twice.rfind("a plan file is not valid TOML: plan.toml:3:", 0), 0U) << twice;
}

TEST(PlanFile, ThreeBracketsAreAnErrorAndNoAssertion) {
    for (const char* text : {"[[[1]]]", "[[[a]]]\nmatch = 1\n", "[[[", "[[=", "[[", "[", "[[file]]\n[[["}) {
        EXPECT_EQ(refusal(text).rfind("a plan file is not valid TOML: plan.toml:", 0), 0U)
            << text << ": " << refusal(text);
    }
}

// The text may be anything: a trace directory with a damaged plan.toml must not bring a program down.
RC_GTEST_PROP(PlanFile, NoTextBringsTheParserDown, ()) {
    const std::string valid =
        "[[file]]\nmatch = \"*.chk\"\nwriters = \"aggregators:4\"\nstripe = { size = \"1 MiB\", count = 8 }\n";
    std::string text = *rc::gen::oneOf(rc::gen::just(valid), rc::gen::string<std::string>());
    const auto changes = *rc::gen::inRange(0, 4);
    for (int i = 0; i < changes && !text.empty(); ++i) {
        text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    }
    const auto parsed = parse_plan_file(text, "plan.toml");
    RC_ASSERT((parsed.ok() ? !parsed.value().files.empty() : !parsed.error().message().empty()));
}

rc::Gen<Strategy> any_strategy() {
    const auto count = [](std::int64_t least) { return rc::gen::inRange<std::int64_t>(least, 5000); };
    const auto mapping =
        rc::gen::oneOf(rc::gen::just(Mapping{}), rc::gen::just(Mapping{MappingKind::log, 0}),
                       rc::gen::map(count(1), [](std::int64_t n) { return Mapping{MappingKind::grouped, n}; }),
                       rc::gen::map(count(0), [](std::int64_t n) { return Mapping{MappingKind::subfiles, n}; }));
    const auto writers =
        rc::gen::oneOf(rc::gen::just(Writers{}),
                       rc::gen::map(count(0), [](std::int64_t n) { return Writers{WritersKind::aggregators, n}; }),
                       rc::gen::map(count(1), [](std::int64_t n) { return Writers{WritersKind::delegates, n}; }),
                       rc::gen::map(count(1), [](std::int64_t n) { return Writers{WritersKind::behind, n}; }));
    const auto size = rc::gen::inRange<std::int64_t>(0, INT64_MAX);
    return rc::gen::build<Strategy>(
        rc::gen::set(&Strategy::mapping, mapping), rc::gen::set(&Strategy::writers, writers),
        rc::gen::set(&Strategy::domains, rc::gen::map(rc::gen::elementOf(choice_forms().domains),
                                                      [](const auto& name) { return parse_domains(name).value(); })),
        rc::gen::set(&Strategy::order, rc::gen::map(rc::gen::elementOf(choice_forms().order),
                                                    [](const auto& name) { return parse_order(name).value(); })),
        rc::gen::set(&Strategy::buffer_bytes, size),
        rc::gen::set(&Strategy::stripe, rc::gen::build<Stripe>(rc::gen::set(&Stripe::size_bytes, size),
                                                               rc::gen::set(&Stripe::count, count(0)),
                                                               rc::gen::set(&Stripe::start, count(-1)))));
}

rc::Gen<ProbeOptions> any_probe_options() {
    const auto maybe = [](std::int64_t least, std::int64_t most) {
        return rc::gen::oneOf(rc::gen::just(std::optional<std::int64_t>()),
                              rc::gen::map(rc::gen::inRange<std::int64_t>(least, most),
                                           [](std::int64_t n) { return std::optional<std::int64_t>(n); }));
    };
    return rc::gen::build<ProbeOptions>(
        rc::gen::set(&ProbeOptions::discard_ms, maybe(0, 600'001)),
        rc::gen::set(&ProbeOptions::window_ms, maybe(1, 600'001)),
        rc::gen::set(&ProbeOptions::size_bytes, maybe(64 << 10, std::int64_t{1} << 40)),
        rc::gen::set(&ProbeOptions::threshold,
                     rc::gen::map(rc::gen::inRange(0, 21),
                                  [](int n) { return n == 0 ? std::nullopt : std::optional<double>((n - 1) / 20.0); })),
        rc::gen::set(&ProbeOptions::cache_s, rc::gen::inRange<std::int64_t>(0, 100'000)));
}

TEST(PlanFile, RoundsAreFewestOrShortest) {
    const auto goal_of = [](const char* rest) {
        const auto read =
            parse_plan_file(std::string("[[file]]\nmatch = \"*\"\norder = \"contention-free\"\n") + rest, "p");
        return read.value().files.front().strategy.goal;
    };
    EXPECT_EQ(goal_of(""), RoundGoal::fewest);
    EXPECT_EQ(goal_of("rounds = \"fewest\"\n"), RoundGoal::fewest);
    EXPECT_EQ(goal_of("rounds = \"shortest\"\n"), RoundGoal::shortest);
    const auto complaint = [](const char* text) { return parse_plan_file(text, "p").error().message(); };
    EXPECT_EQ(complaint("[[file]]\nmatch = \"*\"\norder = \"contention-free\"\nrounds = \"few\"\n"),
              "unknown rounds: 'few' (p:4); write \"shortest\" or \"fewest\"");
    EXPECT_EQ(complaint("[[file]]\nmatch = \"*\"\nrounds = \"shortest\"\n"),
              "rounds without the contention-free order: rounds (p:3); write order = \"contention-free\" too, or leave "
              "it out");
}

RC_GTEST_PROP(PlanFile, ReadsBackWhatItPrints, ()) {
    PlanFile plan{"plan.toml", {}};
    const auto rules = *rc::gen::inRange(1, 5);
    for (int i = 0; i < rules; ++i) {
        const auto odd = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
        plan.files.push_back({std::to_string(i) + odd, *any_strategy(), 0, {}, static_cast<Visibility>(i % 3)});
        if (Strategy& strategy = plan.files.back().strategy; strategy.order == Order::contention_free)
            strategy.goal = *rc::gen::element(RoundGoal::fewest, RoundGoal::shortest);
        if (plan.files.back().strategy.mapping.kind == MappingKind::subfiles && *rc::gen::arbitrary<bool>())
            plan.files.back().targets = {"/a", odd + "b"};
        if (plan.files.back().strategy.mapping.kind == MappingKind::subfiles) {
            plan.files.back().probe = *any_probe_options();
            plan.files.back().rebalance = *rc::gen::arbitrary<bool>();
        }
        if (plan.files.back().strategy.mapping.kind == MappingKind::log && *rc::gen::arbitrary<bool>()) {
            plan.files.back().chooses_targets = *rc::gen::arbitrary<bool>();
            if (plan.files.back().chooses_targets)
                plan.files.back().probe = *any_probe_options();
            else
                plan.files.back().targets = {"/a", odd + "b"};
            plan.files.back().rebalance = *rc::gen::arbitrary<bool>();
        }
        if (plan.files.back().strategy.mapping.kind == MappingKind::shared && *rc::gen::arbitrary<bool>())
            plan.files.back().netcdf = {*rc::gen::inRange<std::int64_t>(0, 1000), false,
                                        *rc::gen::inRange<std::int64_t>(0, 5),
                                        *rc::gen::element<std::string>("", "z", odd + "z")};
        NetcdfOptions& netcdf = plan.files.back().netcdf;
        netcdf.automatic = netcdf.subfiles == 0 && netcdf != NetcdfOptions{};
        if (netcdf != NetcdfOptions{}) {
            plan.files.back().probe = *any_probe_options();
            if (*rc::gen::arbitrary<bool>()) plan.files.back().targets = {odd + "c"};
        }
    }
    const auto parsed = parse_plan_file(to_toml(plan), "plan.toml");
    if (!parsed) RC_FAIL(parsed.error().message() + "\n" + to_toml(plan));
    RC_ASSERT(parsed.value().files.size() == plan.files.size());
    for (std::size_t i = 0; i < plan.files.size(); ++i) {
        RC_ASSERT(parsed.value().files[i].match == plan.files[i].match);
        RC_ASSERT((parsed.value().files[i].strategy == plan.files[i].strategy));
        RC_ASSERT(parsed.value().files[i].defers_set_size == plan.files[i].defers_set_size);
        RC_ASSERT(parsed.value().files[i].targets == plan.files[i].targets);
        RC_ASSERT(parsed.value().files[i].chooses_targets == plan.files[i].chooses_targets);
        RC_ASSERT((parsed.value().files[i].probe == plan.files[i].probe));
        RC_ASSERT(parsed.value().files[i].rebalance == plan.files[i].rebalance);
        RC_ASSERT((parsed.value().files[i].netcdf == plan.files[i].netcdf));
    }
}

bool matches(const std::string& pattern, std::string_view path) {
    PlanFile plan;
    plan.files.push_back({pattern, {}, 0});
    return plan.match(path) != nullptr;
}

TEST(PlanFileMatch, PatternsWithoutSlashAreForTheLastComponent) {
    EXPECT_TRUE(matches("*.chk", "a.chk"));
    EXPECT_TRUE(matches("*.chk", "/scratch/run.d/a.chk"));
    EXPECT_TRUE(matches("dump.?", "out/dump.7"));
    EXPECT_TRUE(matches("[ab]*", "x/alpha"));
    EXPECT_FALSE(matches("*.chk", "/scratch/a.chk/plot"));
    EXPECT_FALSE(matches("scratch", "/scratch/a"));
    EXPECT_FALSE(matches("*.chk", "a.CHK"));
    EXPECT_FALSE(matches("*.chk", ""));
}

TEST(PlanFileMatch, PatternsWithSlashAreForTheWholePathOrATail) {
    EXPECT_TRUE(matches("out/*.chk", "out/a.chk"));
    EXPECT_TRUE(matches("out/*.chk", "/scratch/out/a.chk"));
    EXPECT_TRUE(matches("*/out/*", "/scratch/out/deep/a.chk"));
    EXPECT_FALSE(matches("out/*.chk", "/scratch/layout/a.chk"));
    EXPECT_TRUE(matches("/scratch/*", "/scratch/out/a.chk"));
    EXPECT_FALSE(matches("/out/*", "/scratch/out/a.chk"));
}

TEST(PlanFile, TargetsAreDirectoriesForSubfiles) {
    const std::string rule = "[[file]]\nmatch = \"*\"\nmapping = \"subfiles:4\"\n";
    EXPECT_EQ(must_parse(rule + "targets = [\"/a\", \"b\"]\n").files[0].targets, (std::vector<std::string>{"/a", "b"}));
    EXPECT_TRUE(must_parse(rule).files[0].targets.empty());
    for (const char* const wrong : {"[]", "\"/a\"", "[1]", "[\"\"]", "[\"/a\", 2]"}) {
        EXPECT_EQ(refusal(rule + "targets = " + wrong + "\n"),
                  "not a list of directories: targets (plan.toml:4); write targets = [\"/fast/a\", \"/fast/b\"]");
    }
    EXPECT_EQ(refusal("[[file]]\nmatch = \"*\"\ntargets = [\"/a\"]\n"),
              "targets without subfiles or logs: targets (plan.toml:3); write mapping = \"subfiles:N\", "
              "\"subfiles:auto\" or \"log\" beside it, or leave the targets out");
    EXPECT_EQ(must_parse("[[file]]\nmatch = \"*\"\nmapping = \"log\"\ntargets = [\"/a\"]\n").files[0].targets,
              std::vector<std::string>{"/a"});
}

TEST(PlanFile, TargetsOfLogsMayBeChosenAndLeft) {
    const std::string rule = "[[file]]\nmatch = \"*\"\nmapping = \"log\"\n";
    const FileRule chosen =
        must_parse(rule + "targets = \"auto\"\nprobe = { window_ms = 50 }\nprobe_cache = 3\nrebalance = true\n")
            .files[0];
    EXPECT_TRUE(chosen.chooses_targets && chosen.targets.empty() && chosen.rebalance);
    EXPECT_EQ(chosen.probe.cache_s, 3);
    EXPECT_TRUE(must_parse(rule + "targets = [\"/a\", \"/b\"]\nrebalance = true\n").files[0].rebalance);
    EXPECT_EQ(
        refusal(rule + "rebalance = true\n"),
        "rebalance without targets to choose from: rebalance (plan.toml:4); write targets = \"auto\" beside it, or "
        "leave it out");
    EXPECT_EQ(
        refusal(rule + "targets = [\"/a\"]\nprobe_cache = 3\n"),
        "probe_cache without targets to choose from: probe_cache (plan.toml:5); write targets = \"auto\" beside it, "
        "or leave it out");
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"*\"\nmapping = \"subfiles:4\"\ntargets = \"auto\"\n"),
        "targets = \"auto\" without logs: targets (plan.toml:4); write mapping = \"log\" beside it; subfiles need no "
        "targets to have them chosen");
}

TEST(PlanFile, ArraysOfNetcdfFilesAreDividedOverSubfiles) {
    const std::string rule = "[[file]]\nmatch = \"*\"\n";
    EXPECT_EQ(must_parse(rule).files[0].netcdf, NetcdfOptions{});
    EXPECT_EQ(must_parse(rule + "netcdf = { subfiles = 8, min_ndims = 2, par_dim = \"z\" }\n").files[0].netcdf,
              (NetcdfOptions{8, false, 2, "z"}));
    const FileRule chosen =
        must_parse(rule + "netcdf = { subfiles = \"auto\" }\ntargets = [\"/a\"]\nprobe_cache = 5\n").files[0];
    EXPECT_EQ(chosen.netcdf, (NetcdfOptions{0, true, 0, ""}));
    EXPECT_EQ(chosen.targets, std::vector<std::string>{"/a"});
    EXPECT_EQ(chosen.probe.cache_s, 5);
    const std::pair<const char*, std::string> refused[] = {
        {"netcdf = 8", "not a table with subfiles: netcdf (plan.toml:3); write netcdf = { subfiles = 8 }"},
        {"netcdf = { min_ndims = 2 }",
         "not a table with subfiles: netcdf (plan.toml:3); write netcdf = { subfiles = 8 }"},
        {"netcdf = { subfile = 2 }",
         "unknown key: 'subfile' (plan.toml:3); did you mean 'subfiles'? " + known(netcdf_table)},
        {"netcdf = { subfiles = 0 }",
         "not a number of subfiles: subfiles = 0 (plan.toml:3); write a whole number from 1, or leave the key out for "
         "the "
         "default"},
        {"netcdf = { subfiles = \"some\" }",
         "not a number of subfiles: subfiles = 'some' (plan.toml:3); write a whole number from 1, or leave the key out "
         "for the "
         "default"},
        {"netcdf = { subfiles = 2000000 }", "too many subfiles: subfiles (plan.toml:3); write 1048576 at most"},
        {"netcdf = { subfiles = 8, min_dims = 2 }",
         "unknown key: 'min_dims' (plan.toml:3); did you mean 'min_ndims'? " + known(netcdf_table)},
        {"netcdf = { subfiles = 8, par_dim = \"\" }",
         "an empty name: par_dim (plan.toml:3); write the name of a dimension, or leave it out"}};
    for (const auto& [line, why] : refused) EXPECT_EQ(refusal(rule + line + "\n"), why);
    EXPECT_EQ(refusal(rule + "mapping = \"log\"\nnetcdf = { subfiles = 8 }\n"),
              "netcdf with another mapping than shared: netcdf (plan.toml:4); arrays are divided over subfiles or the "
              "bytes of one file are: leave out one of the two");
}

TEST(PlanFile, HowTargetsAreProbedCanBeSaid) {
    const std::string rule = "[[file]]\nmatch = \"*\"\nmapping = \"subfiles:auto\"\n";
    EXPECT_EQ(must_parse(rule).files[0].probe, ProbeOptions{});
    const ProbeOptions options =
        must_parse(rule +
                   "probe = { discard_ms = 0, window_ms = 50, size = \"16 MiB\", threshold = 0 }\nprobe_cache = 60\n")
            .files[0]
            .probe;
    EXPECT_EQ(options, (ProbeOptions{0, 50, 16 << 20, 0.0, 60}));
    const std::pair<const char*, std::string> refused[] = {
        {"probe = 3", "not a table: probe (plan.toml:4); write probe = { window_ms = 300, threshold = 0.05 }"},
        {"probe = { window = 3 }",
         "unknown key: 'window' (plan.toml:4); did you mean 'window_ms'? " + known(probe_table)},
        {"probe = { window_ms = 0 }",
         "not a number of milliseconds: window_ms = 0 (plan.toml:4); write a whole number from 1, or leave the key out "
         "for "
         "the default"},
        {"probe = { discard_ms = 600001 }",
         "a probe that takes too long: discard_ms (plan.toml:4); write 600000 (ten minutes) at most"},
        {"probe = { size = \"1 KiB\" }",
         "a size that no probe can be made with: size = 1024 (plan.toml:4); 64 KiB to 1 TiB, as Son et al. 16 MB and "
         "more"},
        {"probe = { threshold = 2 }",
         "not a share of what the targets are worth together: threshold (plan.toml:4); write a number from 0 to 1, or "
         "leave the key out for the default"},
        {"probe_cache = -1",
         "not a number of seconds: probe_cache = -1 (plan.toml:4); write a whole number from 0, or leave the key out "
         "for "
         "the "
         "default"},
        {"rebalance = 1", "neither true nor false: rebalance (plan.toml:4); write rebalance = true"}};
    for (const auto& [line, why] : refused) EXPECT_EQ(refusal(rule + line + "\n"), why);
    EXPECT_EQ(
        refusal("[[file]]\nmatch = \"*\"\nprobe_cache = 5\n"),
        "probe_cache without subfiles: probe_cache (plan.toml:3); write mapping = \"subfiles:auto\" beside it, or "
        "leave it out");
}

TEST(PlanFileMatch, FirstMatchWins) {
    const auto plan = must_parse("[[file]]\nmatch = \"a*\"\n[[file]]\nmatch = \"*\"\nwriters = \"behind:1\"\n");
    ASSERT_NE(plan.match("abc"), nullptr);
    EXPECT_EQ(plan.match("abc")->match, "a*");
    EXPECT_EQ(plan.match("xyz")->match, "*");
    EXPECT_EQ(PlanFile{}.match("abc"), nullptr);
}

}  // namespace
}  // namespace ioweir::policy
