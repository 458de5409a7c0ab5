#include "kernels/replay/script.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace ioweir::replay {
namespace {

constexpr int most_numbers = 1 << 20;  ///< of handles, descriptors, requests

/// The words of a line, one after another.
class Words {
public:
    Words(std::string_view line, std::int64_t number) : rest_(line), number_(number) {}

    [[nodiscard]] bool more() const { return !rest_.empty(); }
    std::string_view word() {
        if (rest_.empty()) refuse("a word is missing");
        const std::size_t end = rest_.find(' ');
        const std::string_view found = rest_.substr(0, end);
        rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
        return found;
    }
    std::int64_t integer() {
        const std::string_view text = word();
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size())
            refuse("'" + std::string(text) + "' is no number");
        return value;
    }
    std::int64_t below(std::int64_t bound) {
        const std::int64_t value = integer();
        if (value < 0 || value >= bound) refuse(std::to_string(value) + " is not in 0 .. " + std::to_string(bound - 1));
        return value;
    }
    std::string_view all() {
        const std::string_view found = rest_;
        rest_ = {};
        return found;
    }
    [[noreturn]] void refuse(const std::string& why) const {
        throw std::runtime_error("line " + std::to_string(number_) + ": " + why);
    }

private:
    std::string_view rest_;
    std::int64_t number_;
};

/// A name stays below the target directory.
bool stays_below(std::string_view name) {
    if (name.empty() || name.front() == '/' || name.find('\0') != std::string_view::npos) return false;
    for (std::size_t at = 0; at <= name.size();) {
        const std::size_t end = std::min(name.find('/', at), name.size());
        const std::string_view part = name.substr(at, end - at);
        if (part.empty() || part == "." || part == "..") return false;
        at = end + 1;
    }
    return true;
}

/// A line of the tables that stand before the calls; false: it is none.
bool take_table_line(Script& script, std::string_view first, Words& words) {
    if (first == "rank") {
        script.ranks = static_cast<int>(words.below(1 << 30));
        script.rank = static_cast<int>(words.below(script.ranks));
    } else if (first == "seed") {
        script.seed = static_cast<std::uint64_t>(words.integer());
    } else if (first == "numbers") {
        for (int* count : {&script.handles, &script.descriptors, &script.streams, &script.requests})
            *count = static_cast<int>(words.below(most_numbers));
    } else if (first == "file") {
        const std::string_view name = words.all();
        if (!stays_below(name)) words.refuse("'" + std::string(name) + "' is no name below the target directory");
        script.files.emplace_back(name);
    } else if (first == "type") {
        TypeRow row;
        row.constructor = words.word();
        row.name = words.word();
        row.size = words.integer();
        const std::int64_t types = words.below(most_numbers);
        for (std::int64_t i = 0; i < types; ++i) row.types.push_back(words.below(std::ssize(script.types)));
        const std::int64_t values = words.below(most_numbers);
        for (std::int64_t i = 0; i < values; ++i) row.values.push_back(words.integer());
        script.types.push_back(std::move(row));
    } else if (first == "group") {
        Group& group = script.groups.emplace_back();
        group.number = static_cast<int>(words.below(most_numbers));
        while (words.more()) group.members.push_back(static_cast<int>(words.below(script.ranks)));
    } else {
        return false;
    }
    return true;
}

}  // namespace

Script parse(const std::string& text, Known (*find)(const std::string& name)) {
    Script script;
    std::int64_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        Words words(std::string_view(text).substr(at, end - at), ++number);
        at = end + 1;
        if (!words.more()) continue;
        const std::string_view first = words.word();
        if (number == 1) {
            if (first != "ioweir-replay" || words.integer() != 1) words.refuse("is no replay script of version 1");
            continue;
        }
        if (take_table_line(script, first, words)) continue;
        const Known known = find(std::string(first));
        if (known.call < 0) words.refuse("'" + std::string(first) + "' is no call that can be replayed");
        Step step;
        step.call = known.call;
        if (known.arguments < 0) {
            step.arguments[0] = std::ssize(script.lists);
            script.lists.push_back(0);
            while (words.more()) script.lists.push_back(words.integer());
            script.lists[static_cast<std::size_t>(step.arguments[0])] =
                std::ssize(script.lists) - step.arguments[0] - 1;
        }
        for (int i = 0; i < known.arguments; ++i) step.arguments[i] = words.integer();
        if (words.more()) words.refuse("'" + std::string(words.all()) + "' is too much");
        script.steps.push_back(step);
    }
    if (script.ranks == 0) throw std::runtime_error("there is no line `rank`");
    return script;
}

}  // namespace ioweir::replay
