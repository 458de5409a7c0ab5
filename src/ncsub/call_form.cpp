#include "ncsub/call_form.hpp"

#include <array>

namespace ioweir::ncsub {
namespace {

template <typename Value>
struct Named {
    std::string_view name;
    Value value;
};

// The longer of two names of which one begins as the other stands first.
constexpr std::array<Named<Verb>, 7> verbs{{{"iput_", Verb::iput},
                                            {"iget_", Verb::iget},
                                            {"bput_", Verb::bput},
                                            {"mput_", Verb::mput},
                                            {"mget_", Verb::mget},
                                            {"put_", Verb::put},
                                            {"get_", Verb::get}}};
constexpr std::array<Named<Access>, 7> accesses{{{"var1", Access::var1},
                                                 {"vara", Access::vara},
                                                 {"vars", Access::vars},
                                                 {"varm", Access::varm},
                                                 {"varn", Access::varn},
                                                 {"vard", Access::vard},
                                                 {"var", Access::var}}};
constexpr std::array<Named<Element>, 13> element_names{{{"_text", Element::text},
                                                        {"_schar", Element::schar},
                                                        {"_uchar", Element::uchar},
                                                        {"_short", Element::int16},
                                                        {"_ushort", Element::uint16},
                                                        {"_int", Element::int32},
                                                        {"_uint", Element::uint32},
                                                        {"_longlong", Element::int64},
                                                        {"_long", Element::slong},
                                                        {"_float", Element::float32},
                                                        {"_double", Element::float64},
                                                        {"_ulonglong", Element::uint64},
                                                        {"", Element::described}}};

/// Takes the first of the names that the text begins with off it.
template <typename Value, std::size_t Count>
bool take(std::string_view& text, const std::array<Named<Value>, Count>& names, Value& value) {
    for (const Named<Value>& named : names) {
        if (!text.starts_with(named.name)) continue;
        text.remove_prefix(named.name.size());
        value = named.value;
        return true;
    }
    return false;
}

}  // namespace

std::int64_t bytes_of(Element element) {
    switch (element) {
        case Element::text:
        case Element::schar:
        case Element::uchar:
            return 1;
        case Element::int16:
        case Element::uint16:
            return 2;
        case Element::int32:
        case Element::uint32:
        case Element::float32:
            return 4;
        case Element::slong:
        case Element::float64:
        case Element::int64:
        case Element::uint64:
            return 8;
        case Element::described:
            return 0;
    }
    return 0;
}

int CallForm::buffer() const {
    switch (access) {
        case Access::var:
            return 2;
        case Access::var1:
        case Access::vard:
            return 3;
        case Access::vara:
            return 4;
        case Access::vars:
        case Access::varn:
            return 5;
        case Access::varm:
            return 6;
    }
    return -1;
}

std::optional<CallForm> parse_call(std::string_view symbol) {
    constexpr std::string_view library = "ncmpi_";
    CallForm form;
    if (!symbol.starts_with(library)) return std::nullopt;
    symbol.remove_prefix(library.size());
    if (!take(symbol, verbs, form.verb) || !take(symbol, accesses, form.access)) return std::nullopt;
    take(symbol, element_names, form.element);
    if (symbol == "_all")
        form.collective = true;
    else if (!symbol.empty())
        return std::nullopt;
    return form;
}

}  // namespace ioweir::ncsub
