// The text form of strategies (see strategy.hpp).
#include "planner/strategy.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "base/nearest_name.hpp"
#include "base/size_text.hpp"
#include "ioweir_generated/strategy_names.hpp"

namespace ioweir::planner {

namespace {

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

template <typename Kind>
std::string form_of(const Name<Kind>& name) {
    const std::string text(name.text);
    switch (name.count) {
        case CountForm::none:
            return text;
        case CountForm::number:
            return text + ":N";
        case CountForm::number_or_auto:
            return text + ":N or " + text + ":auto";
        case CountForm::one_in:
            return text + ":1/N";
    }
    return text;
}

std::optional<std::int64_t> positive_number(std::string_view digits) {
    std::int64_t number = 0;
    const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || rest != digits.data() + digits.size() || number < 1) return std::nullopt;
    return number;
}

std::optional<std::int64_t> parse_count(CountForm form, bool has_count, std::string_view count) {
    switch (form) {
        case CountForm::none:
            return has_count ? std::nullopt : std::optional<std::int64_t>(0);
        case CountForm::number:
            return has_count ? positive_number(count) : std::nullopt;
        case CountForm::number_or_auto:
            if (has_count && count == "auto") return 0;
            return has_count ? positive_number(count) : std::nullopt;
        case CountForm::one_in:
            if (!has_count || !count.starts_with("1/")) return std::nullopt;
            return positive_number(count.substr(2));
    }
    return std::nullopt;
}

template <typename Kind>
struct Parsed {
    Kind kind;
    std::int64_t count;
};

template <typename Kind>
Result<Parsed<Kind>> parse_named(std::string_view choice, std::string_view text, std::span<const Name<Kind>> names) {
    const std::size_t colon = text.find(':');
    const bool has_count = colon != std::string_view::npos;
    const std::string_view head = text.substr(0, colon);
    for (const Name<Kind>& name : names) {
        if (name.text != head) continue;
        const auto count = parse_count(name.count, has_count, has_count ? text.substr(colon + 1) : std::string_view{});
        if (count) return Parsed<Kind>{name.kind, *count};
        const std::string numbers = name.count == CountForm::none ? "" : ", with N = 1 or more";
        return Error{"malformed " + std::string(choice), in_quotes(text), "write " + form_of(name) + numbers};
    }
    std::vector<std::string_view> heads;
    for (const Name<Kind>& name : names) heads.push_back(name.text);
    return Error{"unknown " + std::string(choice), in_quotes(text), name_remedy(head, heads)};
}

template <typename Kind>
std::string named_text(Kind kind, std::int64_t count, std::span<const Name<Kind>> names) {
    for (const Name<Kind>& name : names) {
        if (name.kind != kind) continue;
        const std::string text(name.text);
        switch (name.count) {
            case CountForm::none:
                return text;
            case CountForm::number:
                return text + ":" + std::to_string(count);
            case CountForm::number_or_auto:
                return text + ":" + (count == 0 ? "auto" : std::to_string(count));
            case CountForm::one_in:
                return text + ":1/" + std::to_string(count);
        }
    }
    return "?";
}

template <typename Kind>
std::vector<std::string> forms_of(std::span<const Name<Kind>> names) {
    std::vector<std::string> forms;
    for (const Name<Kind>& name : names) forms.push_back(form_of(name));
    return forms;
}

}  // namespace

ChoiceForms choice_forms() {
    return {forms_of<MappingKind>(mapping_names), forms_of<WritersKind>(writers_names),
            forms_of<Domains>(domains_names), forms_of<Order>(order_names)};
}

Result<Mapping> parse_mapping(std::string_view text) {
    auto parsed = parse_named<MappingKind>("mapping", text, mapping_names);
    if (!parsed) return parsed.error();
    return Mapping{parsed.value().kind, parsed.value().count};
}

Result<Writers> parse_writers(std::string_view text) {
    auto parsed = parse_named<WritersKind>("writers", text, writers_names);
    if (!parsed) return parsed.error();
    return Writers{parsed.value().kind, parsed.value().count};
}

Result<Domains> parse_domains(std::string_view text) {
    auto parsed = parse_named<Domains>("domains", text, domains_names);
    if (!parsed) return parsed.error();
    return parsed.value().kind;
}

Result<Order> parse_order(std::string_view text) {
    auto parsed = parse_named<Order>("order", text, order_names);
    if (!parsed) return parsed.error();
    return parsed.value().kind;
}

std::string to_text(const Mapping& mapping) {
    return named_text<MappingKind>(mapping.kind, mapping.count, mapping_names);
}
std::string to_text(const Writers& writers) {
    return named_text<WritersKind>(writers.kind, writers.count, writers_names);
}
std::string to_text(Domains domains) { return named_text<Domains>(domains, 0, domains_names); }
std::string to_text(Order order) { return named_text<Order>(order, 0, order_names); }

// The shortest decimal text that reads back as the same number.
std::string share_text(double share) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), share).ptr;
    return {digits.data(), end};
}

std::string to_text(const Strategy& strategy) {
    std::string text = "mapping " + to_text(strategy.mapping) + ", writers " + to_text(strategy.writers);
    if (strategy.writers.kind != WritersKind::everyone) text += ", domains " + to_text(strategy.domains);
    text += ", order " + to_text(strategy.order);
    if (strategy.buffer_bytes > 0) text += ", buffer " + exact_size_text(strategy.buffer_bytes);
    if (strategy.threshold) text += ", threshold " + share_text(*strategy.threshold);
    if (strategy.goal == RoundGoal::shortest) text += ", shortest rounds";
    if (strategy.stripe.size_bytes > 0) text += ", stripe size " + exact_size_text(strategy.stripe.size_bytes);
    if (strategy.stripe.count > 0) text += ", stripe count " + std::to_string(strategy.stripe.count);
    if (strategy.stripe.start >= 0) text += ", stripe start " + std::to_string(strategy.stripe.start);
    return text;
}

}  // namespace ioweir::planner
