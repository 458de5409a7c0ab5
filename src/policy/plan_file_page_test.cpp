// The reference page docs/reference/plan-file.md says what the code does: its examples parse, it names every value, and it marks
// as planned exactly what plan() makes plans of.
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "planner/testing.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::policy {
using namespace planner;
namespace {

std::vector<std::string> lines_of_the_page() {
    std::ifstream page(IOWEIR_PLAN_FILE_PAGE);
    if (!page) throw std::runtime_error("cannot read " IOWEIR_PLAN_FILE_PAGE);
    std::vector<std::string> lines;
    for (std::string line; std::getline(page, line);) lines.push_back(line);
    return lines;
}

std::string trimmed(std::string text) {
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

/// "| a | b |" to {"a", "b"}.
std::vector<std::string> cells_of(const std::string& row) {
    std::vector<std::string> cells;
    std::istringstream in(row.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
    return cells;
}

TEST(ReferencePage, ExamplesParse) {
    int examples = 0;
    std::string toml;
    bool inside = false;
    for (const std::string& line : lines_of_the_page()) {
        if (line == "```toml") {
            inside = true;
            toml.clear();
        } else if (line == "```" && inside) {
            inside = false;
            ++examples;
            const auto parsed = parse_plan_file(toml, "plan-file.md");
            EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message());
        } else if (inside) {
            toml += line + "\n";
        }
    }
    EXPECT_GT(examples, 0);
}

/// The strategy with one choice of it set, the others such that a plan can be made.
std::optional<Strategy> with_choice(const std::string& key, const std::string& value) {
    Strategy strategy;
    if (key == "domains" || key == "order") strategy.writers = {WritersKind::aggregators, 2};
    const auto set = [](auto parsed, auto& choice) {
        if (parsed) choice = parsed.value();
        return parsed.ok();
    };
    const bool known = key == "mapping"   ? set(parse_mapping(value), strategy.mapping)
                       : key == "writers" ? set(parse_writers(value), strategy.writers)
                       : key == "domains" ? set(parse_domains(value), strategy.domains)
                                          : set(parse_order(value), strategy.order);
    return known ? std::optional(strategy) : std::nullopt;
}

/// "subfiles:N or subfiles:auto" has two rows.
int rows_of(const std::vector<std::string>& forms) {
    int rows = 0;
    for (const std::string& form : forms) rows += form.find(" or ") == std::string::npos ? 1 : 2;
    return rows;
}

TEST(ReferencePage, MarksWhatCanBePlanned) {
    std::map<std::string, int> rows;
    std::string key;
    bool in_table = false;
    for (const std::string& line : lines_of_the_page()) {
        if (line.rfind("| key | value | meaning | planned |", 0) == 0) in_table = true;
        if (line.empty()) in_table = false;
        if (!in_table || line.rfind("| `", 0) != 0) {
            if (!in_table || line.rfind("| | `", 0) != 0) continue;
        }
        const auto cells = cells_of(line);
        ASSERT_EQ(cells.size(), 5U) << line;
        if (!cells[0].empty()) key = cells[0].substr(1, cells[0].size() - 2);
        std::string value = cells[1].substr(1, cells[1].find('`', 1) - 1);
        if (const auto letter = value.find('N'); letter != std::string::npos) value.replace(letter, 1, "2");
        const auto strategy = with_choice(key, value);
        ASSERT_TRUE(strategy.has_value()) << line;
        EXPECT_EQ(cells[3] == "yes", !why_not_executable(*strategy).has_value()) << line;
        ++rows[key];
    }
    const ChoiceForms forms = choice_forms();
    EXPECT_EQ(rows["mapping"], rows_of(forms.mapping));
    EXPECT_EQ(rows["writers"], rows_of(forms.writers));
    EXPECT_EQ(rows["domains"], rows_of(forms.domains));
    EXPECT_EQ(rows["order"], rows_of(forms.order));
}

TEST(ReferencePage, ListsEveryForm) {
    std::string page;
    for (const std::string& line : lines_of_the_page()) page += line + "\n";
    const auto forms = choice_forms();
    for (const auto* list : {&forms.mapping, &forms.writers, &forms.domains, &forms.order}) {
        for (const std::string& form : *list) {
            const std::string first = form.substr(0, form.find(" or "));
            EXPECT_NE(page.find("`" + first + "`"), std::string::npos) << form;
        }
    }
}

}  // namespace
}  // namespace ioweir::policy
