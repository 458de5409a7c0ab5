// The table `hdf5` of a rule.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>

#include "ioweir_generated/plan_keys.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::policy {
using namespace planner;
namespace {

const std::string rule = "[[file]]\nmatch = \"*\"\n";

Hdf5Options wish_of(const std::string& table) {
    const auto plan = parse_plan_file(rule + table + "\n", "plan.toml");
    EXPECT_TRUE(plan) << plan.error().message();
    return plan ? plan.value().files[0].hdf5 : Hdf5Options{};
}

TEST(PlanFileHdf5, EachKeyStandsAlone) {
    EXPECT_EQ(wish_of(""), Hdf5Options{});
    EXPECT_FALSE(wish_of("hdf5 = {}").asks_for_anything());
    Hdf5Options options;
    options.alignment = 1 << 20;
    EXPECT_EQ(wish_of("hdf5 = { alignment = \"1 MiB\" }"), options);
    options.threshold = 65536;
    EXPECT_EQ(wish_of("hdf5 = { alignment = 1048576, threshold = \"64 KiB\" }"), options);
    options = {};
    options.alignment_by_layout = true;
    EXPECT_EQ(wish_of("hdf5 = { alignment = \"auto\" }"), options);
    options = {};
    options.hold_metadata = 128 << 20;
    EXPECT_EQ(wish_of("hdf5 = { hold_metadata = \"128 MiB\" }"), options);
    options = {};
    options.hold_all_metadata = true;
    EXPECT_EQ(wish_of("hdf5 = { hold_metadata = \"all\" }"), options);
    options = {};
    options.collective_metadata = Hdf5Collective::writes;
    EXPECT_EQ(wish_of("hdf5 = { collective_metadata = \"writes\" }"), options);
    options.collective_metadata = Hdf5Collective::all;
    EXPECT_EQ(wish_of("hdf5 = { collective_metadata = \"all\" }"), options);
    options = {};
    options.never_fill = true;
    EXPECT_EQ(wish_of("hdf5 = { fill = \"never\" }"), options);
    options = {};
    options.learn_chunks = true;
    EXPECT_EQ(wish_of("hdf5 = { chunks = \"learn\" }"), options);
    options = {};
    options.chunks = {{"*", {4, 5}}};
    EXPECT_EQ(wish_of("hdf5 = { chunks = [4, 5] }"), options);
    options.chunks = {{"a", {1}}, {"b*", {2, 3}}};
    EXPECT_EQ(wish_of("hdf5 = { chunks = { a = [1], \"b*\" = [2, 3] } }"), options);
    options = {};
    options.memory_in_file_shape = true;
    EXPECT_EQ(wish_of("hdf5 = { memory_shape = \"file\" }"), options);
    options = {};
    options.istore_k = 32767;
    EXPECT_EQ(wish_of("hdf5 = { istore_k = 32767 }"), options);
    options = {};
    options.istore_k_by_chunks = true;
    EXPECT_EQ(wish_of("hdf5 = { istore_k = \"auto\" }"), options);
    options = {};
    options.libver = "v110";
    EXPECT_EQ(wish_of("hdf5 = { libver = \"v110\" }"), options);
    options = {};
    options.page = 4096;
    options.page_buffer = 8192;
    EXPECT_EQ(wish_of("hdf5 = { page = 4096, page_buffer = 8192 }"), options);
    options = {};
    options.transfer = Hdf5Transfer::automatic;
    EXPECT_EQ(wish_of("hdf5 = { transfer = \"auto\" }"), options);
}

TEST(PlanFileHdf5, MayBeATableOfItsOwnBelowTheRule) {
    EXPECT_EQ(wish_of("[file.hdf5]\nalignment = 512"), wish_of("hdf5 = { alignment = 512 }"));
}

TEST(PlanFileHdf5, MistakesAreNamed) {
    std::string all_keys;
    for (const std::string_view name : hdf5_table.names) all_keys += (all_keys.empty() ? "" : ", ") + std::string(name);
    const std::pair<const char*, std::string> refused[] = {
        {"hdf5 = 8", "not a table: hdf5 = 8 (plan.toml:3); write hdf5 = { alignment = \"1 MiB\" }"},
        {"hdf5 = { alignement = 8 }",
         "unknown key: 'alignement' (plan.toml:3); did you mean 'alignment'? known: " + all_keys},
        {"hdf5 = { threshold = 8 }",
         "threshold without alignment: threshold = 8 (plan.toml:3); write alignment = \"1 MiB\" or \"auto\" beside it, "
         "or "
         "leave it out"},
        {"hdf5 = { hold_metadata = \"1 GiB\" }",
         "a value that HDF5 cannot have: hold_metadata = 1073741824 (plan.toml:3); HDF5's metadata cache takes 64 KiB "
         "to 128 MiB: write \"all\" for no bound"},
        {"hdf5 = { fill = \"always\" }", "unknown fill: 'always' (plan.toml:3); write \"never\""},
        {"hdf5 = { collective_metadata = true }",
         "unknown collective_metadata: true (plan.toml:3); write \"writes\" or \"all\""},
        {"hdf5 = { transfer = \"direct\" }",
         "unknown transfer: 'direct' (plan.toml:3); write \"independent\", \"collective\" or \"auto\""},
        {"hdf5 = { chunks = \"guess\" }",
         "no shape of chunks: chunks = 'guess' (plan.toml:3); write \"learn\", a list such as [64, 64, 64], or a table "
         "{ "
         "\"NAME\" = [64, 64, 64] }"},
        {"hdf5 = { chunks = { a = [4, 0] } }",
         "not the shape of a chunk: chunks of 'a' = [4, 0] (plan.toml:3); write 1 to 32 whole numbers from 1, with "
         "fewer than "
         "4294967296 elements together"},
        {"hdf5 = { chunks = [65536, 65536] }",
         "not the shape of a chunk: chunks = [65536, 65536] (plan.toml:3); write 1 to 32 whole numbers from 1, with "
         "fewer than "
         "4294967296 elements together"},
        {"hdf5 = { istore_k = 32768 }",
         "not half a number of chunks: istore_k = 32768 (plan.toml:3); write a whole number from 1 to 32767 (a node of "
         "HDF5's index has at most 65534 chunks), or \"auto\""},
        {"hdf5 = { istore_k = 1.5 }",
         "not half a number of chunks: istore_k = 1.5 (plan.toml:3); write a whole number from 1 to 32767 (a node of "
         "HDF5's index has at most 65534 chunks), or \"auto\""},
        {"hdf5 = { fill = true }", "unknown fill: true (plan.toml:3); write \"never\""},
        {"hdf5 = { alignment = \"Auto\" }",
         "not a size: alignment = 'Auto' (plan.toml:3); write a whole number and a unit, such as \"16 MiB\", or "
         "\"auto\""},
        {"hdf5 = { alignment = [1] }",
         "not a size: alignment = a list (plan.toml:3); write a text with a unit such as \"16 MiB\", or a number of "
         "bytes, or \"auto\""},
        {"hdf5 = { alignment = 0 }",
         "a size below 1 byte: alignment = 0 (plan.toml:3); leave the key out for the default"},
        {"hdf5 = { metadata_block = 9223372036854775807 }",
         "a value that HDF5 cannot have: metadata_block = 9223372036854775807 (plan.toml:3); write 1 TiB at most"},
        {"hdf5 = { page = 100 }",
         "a value that HDF5 cannot have: page = 100 (plan.toml:3); HDF5's pages have 512 B to 1 GiB"},
        {"istore_k = 4", "a key of the table hdf5 outside of it: 'istore_k' (plan.toml:3); write [file.hdf5] above it"},
        {"[hdf5]\nalignment = 8",
         "a table hdf5 outside of a rule: hdf5 (plan.toml:3); write [file.hdf5] below a [[file]]"},
        {"hdf5 = { page_buffer = 4096 }",
         "page_buffer without page: page_buffer = 4096 (plan.toml:3); write page = \"64 KiB\" beside it, or leave it "
         "out"},
        {"hdf5 = { page = 4096, page_buffer = 2048 }",
         "a page buffer smaller than a page: page_buffer = 2048 (plan.toml:3); make it a multiple of page"},
        {"hdf5 = { libver = \"v19\" }",
         "unknown libver: 'v19' (plan.toml:3); write \"v18\", \"v110\", \"v112\" or \"v114\""}};
    for (const auto& [line, why] : refused) {
        const auto plan = parse_plan_file(rule + line + "\n", "plan.toml");
        ASSERT_FALSE(plan) << line;
        EXPECT_EQ(plan.error().message(), why);
    }
}

RC_GTEST_PROP(PlanFileHdf5, WhatIsWrittenIsReadAgain, ()) {
    const auto size = [] { return *rc::gen::element<std::int64_t>(0, 65536, 1 << 20, 3 << 20); };
    Hdf5Options options;
    options.alignment_by_layout = *rc::gen::arbitrary<bool>();
    if (!options.alignment_by_layout) options.alignment = size();
    if (options.alignment > 0 || options.alignment_by_layout) options.threshold = size();
    options.hold_all_metadata = *rc::gen::arbitrary<bool>();
    if (!options.hold_all_metadata) options.hold_metadata = size();
    options.metadata_block = size();
    options.small_data_block = size();
    options.sieve_buffer = size();
    options.collective_metadata = static_cast<Hdf5Collective>(*rc::gen::inRange(0, 3));
    options.never_fill = *rc::gen::arbitrary<bool>();
    options.learn_chunks = *rc::gen::arbitrary<bool>();
    if (!options.learn_chunks && *rc::gen::arbitrary<bool>())
        options.chunks = {{"*", {*rc::gen::inRange(1, 100), 7}}, {"x \"y\"", {*rc::gen::inRange(1, 9)}}};
    options.istore_k = *rc::gen::inRange(0, 1000);
    options.istore_k_by_chunks = options.istore_k == 0;
    options.libver = *rc::gen::element<std::string>("", "v18", "v114");
    options.page = size();
    if (options.page > 0) options.page_buffer = *rc::gen::element<std::int64_t>(0, options.page, 4 * options.page);
    options.transfer = static_cast<Hdf5Transfer>(*rc::gen::inRange(0, 4));
    options.memory_in_file_shape = *rc::gen::arbitrary<bool>();
    PlanFile plan{"plan.toml", {FileRule{"*.h5", Strategy{}}}};
    plan.files[0].hdf5 = options;
    const auto read = parse_plan_file(to_toml(plan), "plan.toml");
    if (!read) RC_FAIL(read.error().message() + "\n" + to_toml(plan));
    RC_ASSERT((read.value().files[0].hdf5 == options));
}

}  // namespace
}  // namespace ioweir::policy
