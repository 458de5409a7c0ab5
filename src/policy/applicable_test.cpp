#include "policy/applicable.hpp"

#include <gtest/gtest.h>

#include <string>

#include "planner/plan.hpp"

namespace ioweir::policy {
using namespace planner;
namespace {

/// What a command says about a plan of one rule with these lines; empty: it goes ahead.
std::string verdict(const std::string& lines) {
    const auto plan = parse_plan_file("[[file]]\nmatch = \"*.chk\"\n" + lines, "plan.toml");
    EXPECT_TRUE(plan.ok()) << plan.error().message();
    const auto error = why_not_applied(plan.value());
    return error ? error->message() : "";
}

TEST(Applicable, WhatTheEngineCarriesOutGoesAhead) {
    for (const char* lines : {
             "",
             "writers = \"everyone\"\ndomains = \"even\"\norder = \"sequential\"\nbuffer = \"1 MiB\"\n",
             "domains = \"cyclic\"\n",  // the program's hints may ask for aggregators
             "writers = \"aggregators:auto\"\ndomains = \"group-cyclic\"\n",
             "writers = \"aggregators:2\"\norder = \"contention-free\"\nthreshold = 0.25\nrounds = \"shortest\"\n",
             "writers = \"auto\"\ndomains = \"aligned\"\n",
             "writers = \"behind:1\"\nvisibility = \"sync\"\nbuffer = 4096\n",
             "mapping = \"grouped:2\"\nwriters = \"aggregators:1\"\norder = \"contention-free\"\n",
             "mapping = \"log\"\norder = \"arrival\"\n",
             "mapping = \"log\"\nwriters = \"auto\"\norder = \"arrival\"\n",
             "mapping = \"subfiles:auto\"\n",
             "mapping = \"subfiles:3\"\nwriters = \"aggregators:auto\"\ndomains = \"cyclic\"\n",
             "netcdf = { subfiles = 2, par_dim = \"z\" }\n",
             "hdf5 = { alignment = 4096 }\n",
         })
        EXPECT_EQ(verdict(lines), "") << lines;
}

TEST(Applicable, TheMpiLibraryMayKeepAFile) {
    for (const char* more :
         {"", "hdf5 = { alignment = 4096 }\n", "netcdf = { subfiles = 2 }\n", "stripe = { count = 4 }\n"})
        EXPECT_EQ(verdict(std::string("writers = \"library\"\n") + more), "") << more;
    const auto refused = [](const std::string& more) { return verdict("writers = \"library\"\n" + more); };
    EXPECT_EQ(
        refused("mapping = \"log\"\n"),
        "the MPI library for a file in several parts: writers = \"library\" (plan.toml:1, the rule for \"*.chk\"); "
        "the MPI library knows one file: write mapping = \"shared\", or other writers with mapping = \"log\"");
    EXPECT_EQ(refused("buffer = \"1 MiB\"\n").find("buffer for bytes that the MPI library moves"), 0U);
    EXPECT_EQ(refused("visibility = \"sync\"\n").find("visibility for bytes that"), 0U);
    EXPECT_EQ(refused("set_size = \"at-once\"\n").find("set_size for bytes that"), 0U);
    EXPECT_EQ(refused("domains = \"cyclic\"\n").find("domains without meaning for their writers"), 0U);
    EXPECT_EQ(refused("order = \"contention-free\"\n").find("an order without meaning for its writers"), 0U);
}

TEST(Applicable, DelegatesAreAProgramsOwn) {
    EXPECT_EQ(verdict("writers = \"delegates:1/4\"\n"),
              "writers that no plan can give a program: writers = \"delegates:1/4\" (plan.toml:1, the rule for "
              "\"*.chk\"); a program that gives up ranks for writing says so itself, by the library for partitioned "
              "files (ioweir_split in docs/reference/partitioned-files.md). Under a program as it is, threads write "
              "while it computes on: writers = \"behind:N\"");
}

TEST(Applicable, DomainsThatNobodyCarriesOutNameWhatDoes) {
    EXPECT_NE(verdict("domains = \"dimension\"\n").find("netcdf = { subfiles = N, par_dim"), std::string::npos);
    EXPECT_NE(verdict("writers = \"aggregators:2\"\ndomains = \"group\"\n").find("mapping = \"grouped:N\""),
              std::string::npos);
    EXPECT_NE(verdict("netcdf = { subfiles = 2 }\ndomains = \"dimension\"\n"), "");
    for (const char* writers : {"everyone", "behind:1"})
        EXPECT_NE(verdict("writers = \"" + std::string(writers) + "\"\ndomains = \"cyclic\"\n")
                      .find("domains without meaning for their writers: domains = \"cyclic\" (plan.toml:1"),
                  std::string::npos);
}

TEST(Applicable, AnOrderNeedsWritersThatKeepIt) {
    for (const char* lines : {"order = \"contention-free\"\n", "writers = \"auto\"\norder = \"contention-free\"\n",
                              "writers = \"everyone\"\norder = \"contention-free\"\n",
                              "writers = \"behind:1\"\norder = \"contention-free\"\n",
                              "mapping = \"grouped:2\"\norder = \"contention-free\"\n",
                              "mapping = \"subfiles:2\"\norder = \"contention-free\"\n"})
        EXPECT_EQ(verdict(lines).find("an order without meaning for its writers: order = \"contention-free\""), 0U)
            << lines;
    EXPECT_EQ(verdict("mapping = \"log\"\nwriters = \"auto\"\norder = \"contention-free\"\n")
                  .find("an order without meaning for logs"),
              0U);
    for (const char* lines : {"order = \"arrival\"\n", "writers = \"aggregators:2\"\norder = \"arrival\"\n",
                              "mapping = \"grouped:2\"\norder = \"arrival\"\n"})
        EXPECT_EQ(verdict(lines).find("an order that only logs have"), 0U) << lines;
    EXPECT_EQ(verdict("writers = \"auto\"\nthreshold = 0.1\n").find("a threshold without the contention-free order"),
              0U);
}

TEST(Applicable, TheRuleAtFaultIsNamedWhereverItStands) {
    const auto plan = parse_plan_file(
        "[[file]]\nmatch = \"a\"\n\n[[file]]\nmatch = \"b\"\nmapping = \"log\"\nwriters = \"behind:2\"\n", "p");
    ASSERT_TRUE(plan.ok());
    const auto error = why_not_applied(plan.value());
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(
        error->message().find("write-behind into several files: writers = \"behind:2\" (p:4, the rule for \"b\")"), 0U)
        << error->message();
}

/// Nothing that goes ahead is refused by the engine, whatever is combined.
TEST(Applicable, IsAtLeastAsStrictAsTheEngine) {
    const std::string mappings[] = {"shared", "grouped:2", "subfiles:2", "subfiles:auto", "log"};
    const std::string writers[] = {"everyone",      "aggregators:2", "aggregators:auto",
                                   "delegates:1/2", "behind:1",      "auto"};
    const ChoiceForms forms = choice_forms();
    int ahead = 0;
    for (const auto& mapping : mappings)
        for (const auto& writer : writers)
            for (const auto& domain : forms.domains)
                for (const auto& order : forms.order) {
                    const std::string text = "[[file]]\nmatch = \"*\"\nmapping = \"" + mapping + "\"\nwriters = \"" +
                                             writer + "\"\ndomains = \"" + domain + "\"\norder = \"" + order + "\"\n";
                    const auto plan = parse_plan_file(text, "p");
                    ASSERT_TRUE(plan.ok()) << text;
                    if (why_not_applied(plan.value())) continue;
                    ++ahead;
                    EXPECT_FALSE(why_not_executable(plan.value().files[0].strategy)) << text;
                }
    EXPECT_GE(ahead, 100);
}

}  // namespace
}  // namespace ioweir::policy
