// Every strategy survives being printed and read; mistakes are answered with what was meant.
#include "planner/strategy.hpp"

#include "planner/testing.hpp"

namespace ioweir::planner {
namespace {

std::string message(const Error& error) { return error.message(); }

RC_GTEST_PROP(StrategyText, ReadsBackWhatItPrints, ()) {
    const auto number = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
    for (const Mapping mapping :
         {Mapping{MappingKind::shared, 0}, Mapping{MappingKind::grouped, number},
          Mapping{MappingKind::subfiles, number}, Mapping{MappingKind::subfiles, 0}, Mapping{MappingKind::log, 0}}) {
        RC_ASSERT(parse_mapping(to_text(mapping)).value() == mapping);
    }
    for (const Writers writers : {Writers{WritersKind::everyone, 0}, Writers{WritersKind::aggregators, number},
                                  Writers{WritersKind::aggregators, 0}, Writers{WritersKind::delegates, number},
                                  Writers{WritersKind::behind, number}}) {
        RC_ASSERT(parse_writers(to_text(writers)).value() == writers);
    }
}

TEST(StrategyText, NamesAreThoseOfTheDesign) {
    EXPECT_EQ(to_text(Writers{WritersKind::delegates, 16}), "delegates:1/16");
    EXPECT_EQ(to_text(Mapping{MappingKind::subfiles, 0}), "subfiles:auto");
    for (const std::string& name : choice_forms().domains) EXPECT_EQ(to_text(parse_domains(name).value()), name);
    for (const std::string& name : choice_forms().order) EXPECT_EQ(to_text(parse_order(name).value()), name);
}

TEST(StrategyText, WholeStrategyInOneLine) {
    Strategy strategy;
    EXPECT_EQ(to_text(strategy), "mapping shared, writers everyone, order sequential");
    strategy.writers = {WritersKind::aggregators, 0};
    strategy.domains = Domains::group_cyclic;
    strategy.buffer_bytes = 3 << 20;
    strategy.stripe = {1 << 20, 8, 2};
    EXPECT_EQ(to_text(strategy),
              "mapping shared, writers aggregators:auto, domains group-cyclic, order sequential, buffer 3 MiB, stripe "
              "size 1 MiB, stripe count 8, stripe start 2");
}

TEST(StrategyText, MistakesAreAnsweredWithWhatWasMeant) {
    EXPECT_EQ(
        message(parse_writers("agregators:4").error()),
        "unknown writers: 'agregators:4'; did you mean 'aggregators'? known: everyone, aggregators, delegates, behind, "
        "library, auto");
    EXPECT_EQ(message(parse_order("contention_free").error()),
              "unknown order: 'contention_free'; did you mean 'contention-free'? known: sequential, contention-free, "
              "arrival");
    EXPECT_EQ(message(parse_mapping("zzz").error()), "unknown mapping: 'zzz'; known: shared, grouped, subfiles, log");
    EXPECT_EQ(message(parse_domains("").error()),
              "unknown domains: ''; known: even, aligned, cyclic, group-cyclic, cooperative, dimension, group");
}

TEST(StrategyText, CountsMustBeThereAndBePositive) {
    for (const char* text : {"aggregators", "aggregators:", "aggregators:0", "aggregators:-1", "aggregators:4x",
                             "aggregators:1/4", "aggregators: 4", "aggregators:99999999999999999999"}) {
        ASSERT_FALSE(parse_writers(text).ok()) << text;
        EXPECT_EQ(parse_writers(text).error().remedy, "write aggregators:N or aggregators:auto, with N = 1 or more")
            << text;
    }
    EXPECT_EQ(parse_writers("everyone:4").error().remedy, "write everyone");
    EXPECT_EQ(parse_writers("delegates:16").error().remedy, "write delegates:1/N, with N = 1 or more");
    EXPECT_EQ(parse_mapping("grouped:auto").error().remedy, "write grouped:N, with N = 1 or more");
}

TEST(StrategyText, FormsListEveryValue) {
    const auto forms = choice_forms();
    EXPECT_EQ(forms.mapping, (std::vector<std::string>{"shared", "grouped:N", "subfiles:N or subfiles:auto", "log"}));
    EXPECT_EQ(forms.writers, (std::vector<std::string>{"everyone", "aggregators:N or aggregators:auto", "delegates:1/N",
                                                       "behind:N", "library", "auto"}));
    EXPECT_EQ(forms.domains, (std::vector<std::string>{"even", "aligned", "cyclic", "group-cyclic", "cooperative",
                                                       "dimension", "group"}));
    EXPECT_EQ(forms.order, (std::vector<std::string>{"sequential", "contention-free", "arrival"}));
}

}  // namespace
}  // namespace ioweir::planner
