#include "engine/files/hints.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/size_text.hpp"
#include "ioweir_generated/hints.hpp"

namespace ioweir::engine {
namespace {

using planner::Writers;
using planner::WritersKind;

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || number < least) return std::nullopt;
    return number;
}

/// A hint's value, read as its form asks for.
struct Value {
    bool readable = true;
    std::optional<bool> on;  ///< switch, truth; `automatic` says nothing
    std::int64_t number = 0;
};

Value read_value(HintValue form, const std::string& text) {
    Value value;
    std::optional<std::int64_t> number;
    switch (form) {
        case HintValue::count:
        case HintValue::index:
            number = whole_number(text, form == HintValue::count ? 1 : 0);
            break;
        case HintValue::size:
            if (const auto bytes = parse_size(text); bytes.ok() && bytes.value() > 0) number = bytes.value();
            break;
        case HintValue::switch_:
        case HintValue::truth: {
            const bool truth = form == HintValue::truth;
            if (text == (truth ? "true" : "enable")) value.on = true;
            if (text == (truth ? "false" : "disable")) value.on = false;
            value.readable = value.on.has_value() || (!truth && text == "automatic");
            return value;
        }
        case HintValue::text:
            return value;
    }
    value.readable = number.has_value();
    value.number = number.value_or(0);
    return value;
}

/// Applies one hint after another.
class Chooser {
public:
    explicit Chooser(const policy::FileRule& rule) : given_(rule.given) { chosen_.strategy = rule.strategy; }

    void apply(const HintSpec& hint, const std::string& text) {
        const Value value = read_value(hint.value, text);
        if (!value.readable) return refuse(hint, text, "a value that it does not have");
        planner::Strategy& strategy = chosen_.strategy;
        switch (hint.sets) {
            case HintSets::mapping:
                return parse(hint, text, planner::parse_mapping, given_.mapping, strategy.mapping);
            case HintSets::domains:
                domains_named_ = true;
                return parse(hint, text, planner::parse_domains, given_.domains, strategy.domains);
            case HintSets::order:
                return parse(hint, text, planner::parse_order, given_.order, strategy.order);
            case HintSets::writers:
                return writers(hint, text, value);
            case HintSets::buffer:
                return set(given_.buffer, strategy.buffer_bytes, value.number);
            case HintSets::stripe_size:
                return set(given_.stripe_size, strategy.stripe.size_bytes, value.number);
            case HintSets::stripe_count:
                return set(given_.stripe_count, strategy.stripe.count, value.number);
            case HintSets::stripe_start:
                return set(given_.stripe_start, strategy.stripe.start, value.number);
            case HintSets::read_holes:
                chosen_.effects.reads_holes = value.on.value_or(true);
                return;
            case HintSets::read_together:
                chosen_.effects.reads_together = value.on.value_or(true);
                return;
            case HintSets::nothing:  // romio_ds_write
                chosen_.effects.sieving_answer = value.on ? "disable" : "automatic";
                return;
        }
    }

    Chosen finish() {
        chosen_.effects.writers_chosen = given_.writers || named_ || collective_ || nodes_ > 0;
        if (!given_.writers) {
            Writers& writers = chosen_.strategy.writers;
            if (named_) {
                writers = *named_;
            } else if (collective_ == false) {
                writers = {};
            } else if (collective_ == true || nodes_ > 0) {
                writers = {WritersKind::aggregators, nodes_};
            } else if (planner::asks_for_targets(chosen_.strategy.mapping)) {
                writers = {WritersKind::automatic, 0};
            }
            if (writers.kind == WritersKind::automatic && !given_.domains && !domains_named_)
                chosen_.strategy.domains = planner::Domains::cyclic;  // its default
        }
        return std::move(chosen_);
    }

private:
    void refuse(const HintSpec& hint, const std::string& text, const std::string& why) {
        chosen_.unused.push_back(std::string("hint ") + hint.name + " = '" + text + "': " + why);
    }

    template <typename T>
    static void set(bool given, T& choice, T value) {
        if (!given) choice = value;
    }

    template <typename T>
    void parse(const HintSpec& hint, const std::string& text, Result<T> (*parser)(std::string_view), bool given,
               T& choice) {
        const Result<T> parsed = parser(text);
        if (!parsed) return refuse(hint, text, parsed.error().remedy);
        set(given, choice, parsed.value());
    }

    /// Several hints speak about writers, and only all of them together say who writes.
    void writers(const HintSpec& hint, const std::string& text, const Value& value) {
        if (hint.value == HintValue::count) {
            nodes_ = value.number;
        } else if (hint.value != HintValue::text) {
            if (value.on) collective_ = value.on;
        } else if (const Result<Writers> parsed = planner::parse_writers(text); parsed) {
            named_ = parsed.value();
        } else {
            refuse(hint, text, parsed.error().remedy);
        }
    }

    const policy::GivenKeys given_;
    Chosen chosen_;
    std::optional<bool> collective_;
    std::int64_t nodes_ = 0;
    std::optional<Writers> named_;
    bool domains_named_ = false;
};

void put(MPI_Info info, const char* key, const std::string& value) { PMPI_Info_set(info, key, value.c_str()); }

/// Deleting a key that is not there is an error, which ends the program unless it has asked for errors to be returned.
void remove(MPI_Info info, const char* key) {
    if (info_value(info, key)) PMPI_Info_delete(info, key);
}

}  // namespace

Chosen choose(const policy::FileRule& rule, FunctionRef<std::optional<std::string>(const char*)> value_of) {
    Chooser chooser(rule);
    for (const HintSpec& hint : known_hints) {
        if (const std::optional<std::string> text = value_of(hint.name)) chooser.apply(hint, *text);
    }
    return chooser.finish();
}

std::optional<std::string> info_value(MPI_Info info, const char* key) {
    if (info == MPI_INFO_NULL) return std::nullopt;
    char value[256] = {};  // longer ones than any hint has; MPI cuts them off
    int found = 0;
    if (PMPI_Info_get(info, key, sizeof value - 1, value, &found) != MPI_SUCCESS || found == 0) return std::nullopt;
    return value;
}

LibraryInfo::LibraryInfo(MPI_Info given, const planner::Stripe& stripe, Sieving sieving) : info_(given) {
    const int made = given == MPI_INFO_NULL ? PMPI_Info_create(&own_) : PMPI_Info_dup(given, &own_);
    if (made != MPI_SUCCESS) return;
    owned_ = true;
    info_ = own_;
    if (sieving != Sieving::as_given) put(own_, "romio_ds_write", sieving == Sieving::off ? "disable" : "automatic");
    if (stripe.size_bytes > 0) put(own_, "striping_unit", std::to_string(stripe.size_bytes));
    if (stripe.count > 0) put(own_, "striping_factor", std::to_string(stripe.count));
    if (stripe.start < 0) return;
    for (const char* key : {"start_iodevice", "romio_lustre_start_iodevice"})
        put(own_, key, std::to_string(stripe.start));
}

LibraryInfo::~LibraryInfo() {
    if (owned_) PMPI_Info_free(&own_);
}

void show_hints(const Handle& handle, MPI_Info info) {
    const planner::Strategy& strategy = handle.strategy;
    const HintEffects& effects = handle.effects;
    if (strategy.writers.kind == WritersKind::aggregators) {
        if (strategy.writers.count > 0) {
            put(info, "cb_nodes", std::to_string(std::min<std::int64_t>(strategy.writers.count, handle.size)));
        } else {
            remove(info, "cb_nodes");  // found anew for each call
        }
        if (strategy.buffer_bytes > 0) put(info, "cb_buffer_size", std::to_string(strategy.buffer_bytes));
        put(info, "romio_cb_write", "enable");
        put(info, "romio_cb_read", effects.reads_together ? "enable" : "disable");
    } else if (strategy.writers.kind == WritersKind::automatic) {
        put(info, "romio_cb_write", "automatic");
        put(info, "romio_cb_read", effects.reads_together ? "automatic" : "disable");
    } else if (effects.writers_chosen) {
        put(info, "romio_cb_write", "disable");
    }
    if (handle.stored.size_bytes > 0) put(info, "striping_unit", std::to_string(handle.stored.size_bytes));
    if (handle.stored.count > 0) put(info, "striping_factor", std::to_string(handle.stored.count));
    put(info, "romio_ds_write", effects.sieving_answer);
    put(info, "ioweir_mapping", planner::to_text(strategy.mapping));
    put(info, "ioweir_writers", planner::to_text(strategy.writers));
    put(info, "ioweir_domains", planner::to_text(strategy.domains));
    put(info, "ioweir_order", planner::to_text(strategy.order));
}

}  // namespace ioweir::engine
