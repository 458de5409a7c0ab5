// Random plans made of spec/plan_keys.toml: what it allows is read, written and read again; what it does not is refused by name.
// What does not live here: words of messages (plan_file_test.cpp), the schema (tests/python/test_plan_keys.py).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/size_text.hpp"
#include "ioweir_generated/plan_keys.hpp"
#include "ioweir_generated/strategy_names.hpp"
#include "planner/testing.hpp"

namespace ioweir::policy {
namespace {

template <std::size_t count, typename Kind>
std::string any_choice(const std::array<planner::Name<Kind>, count>& names) {
    const auto& name = names[*rc::gen::inRange<std::size_t>(0, count)];
    const std::string number = std::to_string(*rc::gen::inRange(1, 5000));
    switch (name.count) {
        case planner::CountForm::none:
            return std::string(name.text);
        case planner::CountForm::number:
            return std::string(name.text) + ":" + number;
        case planner::CountForm::number_or_auto:
            return std::string(name.text) + ":" + (*rc::gen::arbitrary<bool>() ? "auto" : number);
        case planner::CountForm::one_in:
            return std::string(name.text) + ":1/" + number;
    }
    return {};
}

std::string any_choice_of(std::string_view key) {
    return key == "mapping"   ? any_choice(planner::mapping_names)
           : key == "writers" ? any_choice(planner::writers_names)
           : key == "domains" ? any_choice(planner::domains_names)
                              : any_choice(planner::order_names);
}

std::string any_shape() { return *rc::gen::element<std::string>("[1]", "[4, 5]", "[32, 64, 128]"); }

std::string any_text() {
    return toml_string(*rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127))));
}

std::int64_t within(const Key& key) {
    const std::int64_t near = key.most - key.least > 1000 ? key.least + 1000 : key.most;
    return *rc::gen::oneOf(rc::gen::just(key.least), rc::gen::just(key.most),
                           rc::gen::inRange<std::int64_t>(key.least, near + 1));
}

std::string any_keys(const KeyTable& table);

/// A value that the declaration allows, as it is written in a plan.
std::string any_value(const Key& key) {
    if (!key.besides.empty() && *rc::gen::inRange(0, 3) == 0) return toml_string(key.besides);
    switch (key.type) {
        case KeyType::text:
            return any_text();
        case KeyType::choice:
            return toml_string(any_choice_of(key.name));
        case KeyType::word:
            return toml_string(key.words[*rc::gen::inRange<std::size_t>(0, key.words.size())]);
        case KeyType::size: {
            const std::int64_t bytes = within(key);
            return *rc::gen::arbitrary<bool>() ? std::to_string(bytes) : toml_string(exact_size_text(bytes));
        }
        case KeyType::number:
            return std::to_string(within(key));
        case KeyType::share:
            return *rc::gen::element<std::string>("0", "0.25", "1.0", "0.0625");
        case KeyType::truth:
            return *rc::gen::element<std::string>("true", "false");
        case KeyType::list:
            return "[" + any_text() + ", " + any_text() + "]";
        case KeyType::table:
            return "{ " + any_keys(*key.table) + " }";
        case KeyType::chunks:
            return *rc::gen::arbitrary<bool>() ? any_shape() : "{ " + any_text() + " = " + any_shape() + " }";
    }
    return {};
}

using Lines = std::vector<std::pair<std::string_view, std::string>>;

/// Some of a table's keys with values.
Lines any_lines(const KeyTable& table) {
    Lines lines;
    for (const Key& key : table.keys)
        if (key.required || *rc::gen::inRange(0, 3) == 0) lines.emplace_back(key.name, any_value(key));
    return lines;
}

std::string joined(const Lines& lines, std::string_view separator) {
    std::string text;
    for (const auto& [key, value] : lines)
        text += (text.empty() ? "" : std::string(separator)) + std::string(key) + " = " + value;
    return text;
}

std::string any_keys(const KeyTable& table) { return joined(any_lines(table), ", "); }

/// Values that the declaration does not allow.
std::vector<std::string> wrong_values(const Key& key) {
    std::vector<std::string> wrong{"1979-05-27", "[[1]]"};
    if (key.type != KeyType::truth) wrong.emplace_back("true");
    if (key.type != KeyType::share) wrong.emplace_back("0.5");
    if (key.type != KeyType::share && key.type != KeyType::number && key.type != KeyType::size) wrong.emplace_back("1");
    if (key.type != KeyType::table) wrong.emplace_back("{}");
    if (key.type != KeyType::text) wrong.insert(wrong.end(), {"\"\"", "\"no such word\""});
    if (key.type == KeyType::text) wrong.emplace_back("\"\"");
    if (key.type == KeyType::share) wrong.insert(wrong.end(), {"-0.1", "1.01", "2", "nan"});
    if (key.type != KeyType::number && key.type != KeyType::size) return wrong;
    wrong.push_back(std::to_string(key.least - 1));
    if (key.most == std::numeric_limits<std::int64_t>::max()) return wrong;
    wrong.push_back(std::to_string(key.most + 1));
    if (key.type == KeyType::size) wrong.push_back(toml_string(std::to_string(key.most + 1) + " B"));
    return wrong;
}

std::string rule_with(const std::string& keys) { return "[[file]]\n" + keys + "\n"; }

/// The key of a rule without which a combination would not have been refused; empty: the refusal is none of a combination.
std::string_view key_at_fault(const std::string& what) {
    for (const Combination& one : rule_table.to_read)
        if (one.what == what) return one.key;
    for (const Combination& one : hdf5_table.to_read)
        if (one.what == what) return "hdf5";
    return what == "a page buffer smaller than a page" ? "hdf5" : "";
}

/// But for the line, and which keys stood there.
bool same(const FileRule& a, FileRule b) {
    b.line = a.line;
    b.given = a.given;
    return a == b;
}

RC_GTEST_PROP(PlanKeys, WhatIsAllowedIsReadWrittenAndReadAgain, ()) {
    Lines lines = any_lines(rule_table);
    auto read = parse_plan_file(rule_with(joined(lines, "\n")), "plan.toml");
    // Only combinations may be refused; without the keys at fault the rest is a plan.
    while (!read) {
        const std::string_view key = key_at_fault(read.error().what);
        if (std::erase_if(lines, [&](const auto& line) { return line.first == key; }) != 1)
            RC_FAIL(joined(lines, "\n") + "\n" + read.error().message());
        read = parse_plan_file(rule_with(joined(lines, "\n")), "plan.toml");
    }
    RC_TAG(std::to_string(lines.size()) + " keys");
    const std::string written = to_toml(read.value());
    const auto again = parse_plan_file(written, "again.toml");
    if (!again) RC_FAIL(written + again.error().message());
    if (!same(read.value().files.at(0), again.value().files.at(0)))
        RC_FAIL(joined(lines, "\n") + "\nis written as\n" + written);
}

TEST(PlanKeys, WhatIsNotAllowedIsRefusedWithTheKeysName) {
    for (const Key& key : rule_table.keys) {
        for (const std::string& wrong : wrong_values(key)) {
            const std::string pattern = key.name == "match" ? "" : "match = \"*\"\n";
            const auto read = parse_plan_file(rule_with(pattern + std::string(key.name) + " = " + wrong), "plan.toml");
            ASSERT_FALSE(read) << key.name << " = " << wrong;
            EXPECT_NE(read.error().message().find(key.name), std::string::npos) << read.error().message();
        }
        if (key.table == nullptr) continue;
        for (const Key& inner : key.table->keys) {
            for (const std::string& wrong : wrong_values(inner)) {
                std::string needed;  // the table's required keys, but for this one
                for (const Key& one : key.table->keys)
                    if (one.required && one.name != inner.name) needed += std::string(one.name) + " = 1, ";
                const std::string table = "{ " + needed + std::string(inner.name) + " = " + wrong + " }";
                const auto read =
                    parse_plan_file(rule_with("match = \"*\"\n" + std::string(key.name) + " = " + table), "plan.toml");
                ASSERT_FALSE(read) << key.name << " = " << table;
                EXPECT_NE(read.error().message().find(inner.name), std::string::npos) << read.error().message();
            }
        }
    }
}

TEST(PlanKeys, EveryUnknownKeyIsRefusedAndKeysInTheWrongPlaceNameTheRightOne) {
    for (const Key& key : rule_table.keys) {
        if (key.table == nullptr) continue;
        const std::string name(key.name);
        const auto outside = parse_plan_file("[" + name + "]\n", "plan.toml");
        EXPECT_EQ(outside.error().message(), "a table " + name + " outside of a rule: " + name +
                                                 " (plan.toml:1); write [file." + name + "] below a [[file]]");
        EXPECT_FALSE(parse_plan_file(rule_with("match = \"*\"\n" + name + " = { colour = 1 }"), "plan.toml"));
    }
    EXPECT_EQ(parse_plan_file("[[file]]\nmatch = \"*\"\nwindow_ms = 4\n", "plan.toml").error().message(),
              "a key of the table probe outside of it: 'window_ms' (plan.toml:3); write [file.probe] above it");
}

/// The declared default of a key is what a rule has without it, wherever the key may stand.
TEST(PlanKeys, DefaultsAreWhatLeavingThemOutMeans) {
    int compared = 0;
    for (const Key& key : rule_table.keys) {
        if (key.usual.empty()) continue;
        for (const std::string beside :
             {"", "order = \"contention-free\"\n", "mapping = \"subfiles:2\"\n", "mapping = \"log\"\n"}) {
            const std::string line = std::string(key.name) + " = " + std::string(key.usual);
            if (beside.starts_with(key.name)) continue;
            const auto with = parse_plan_file(rule_with("match = \"*\"\n" + beside + line), "plan.toml");
            const auto without = parse_plan_file(rule_with("match = \"*\"\n" + beside), "plan.toml");
            if (!with) continue;
            EXPECT_TRUE(same(with.value().files.at(0), without.value().files.at(0))) << beside << line;
            ++compared;
            break;
        }
    }
    EXPECT_EQ(compared, std::count_if(rule_table.keys.begin(), rule_table.keys.end(),
                                      [](const Key& key) { return !key.usual.empty(); }));
}

TEST(PlanKeys, AnEmptyListOfRulesIsNoPlan) {
    EXPECT_EQ(parse_plan_file("file = []\n", "plan.toml").error().what, "a plan file without a [[file]] table");
}

}  // namespace
}  // namespace ioweir::policy
