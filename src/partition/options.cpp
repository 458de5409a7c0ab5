#include "partition/options.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "base/nearest_name.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {
namespace {

template <typename Value>
struct Named {
    const char* name;
    Value value;
};

Failure wrong(const std::string& key, const std::string& value, const std::string& remedy) {
    return {IOWEIR_ERR_ARGUMENT, {"a value of " + key + " that is none", value, remedy}};
}

template <typename Value, std::size_t count>
std::optional<Failure> take(const std::string& key, const std::string& text, const Named<Value> (&known)[count],
                            Value& value) {
    std::string names;
    for (const auto& one : known) {
        if (text == one.name) {
            value = one.value;
            return std::nullopt;
        }
        names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
    return wrong(key, text, "it is one of " + names);
}

std::optional<Failure> take_bytes(const std::string& key, const std::string& text, std::int64_t& bytes) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < 1)
        return wrong(key, text, "a number of bytes, 1 or more");
    bytes = number;
    return std::nullopt;
}

constexpr Named<BlockLayout> layouts[] = {
    {"unaligned", BlockLayout::unaligned}, {"aligned", BlockLayout::aligned}, {"auto", BlockLayout::automatic}};
constexpr Named<WriteCalls> calls[] = {{"collective", WriteCalls::collective},
                                       {"split", WriteCalls::split},
                                       {"independent", WriteCalls::independent},
                                       {"direct", WriteCalls::direct},
                                       {"auto", WriteCalls::automatic}};
constexpr Named<bool> truths[] = {{"true", true}, {"false", false}};
constexpr std::string_view keys[] = {"ioweir_layout",      "ioweir_block",   "ioweir_buffer", "ioweir_write",
                                     "ioweir_directories", "ioweir_replace", "ioweir_durable"};
constexpr Named<bool> hosts[] = {{"ranks", false}, {"threads", true}};
constexpr Named<bool> processors[] = {{"any", true}, {"own", false}};
constexpr std::string_view service_keys[] = {"ioweir_delegates", "ioweir_delegate_processors", "ioweir_delegate_memory",
                                             "ioweir_worker_memory", "ioweir_set_bytes"};

std::optional<Failure> unknown(const std::string& key, std::span<const std::string_view> known) {
    return Failure{IOWEIR_ERR_ARGUMENT, {"an unknown key in MPI_Info", key, name_remedy(key, known)}};
}

std::optional<Failure> take_key(const std::string& key, const std::string& text, Options& options) {
    if (key == "ioweir_layout") return take(key, text, layouts, options.layout);
    if (key == "ioweir_block") return take_bytes(key, text, options.block_bytes);
    if (key == "ioweir_buffer") return take_bytes(key, text, options.buffer_bytes);
    if (key == "ioweir_write") return take(key, text, calls, options.calls);
    if (key == "ioweir_directories") return take(key, text, truths, options.directories);
    if (key == "ioweir_replace") return take(key, text, truths, options.replaces);
    if (key == "ioweir_durable") return take(key, text, truths, options.durable);
    return unknown(key, keys);
}

std::optional<Failure> take_key(const std::string& key, const std::string& text, ServiceOptions& options) {
    if (key == "ioweir_delegates") return take(key, text, hosts, options.threads);
    if (key == "ioweir_delegate_processors") return take(key, text, processors, options.anywhere);
    if (key == "ioweir_delegate_memory") return take_bytes(key, text, options.delegate_bytes);
    if (key == "ioweir_worker_memory") return take_bytes(key, text, options.worker_bytes);
    if (key == "ioweir_set_bytes") return take_bytes(key, text, options.set_bytes);
    return unknown(key, service_keys);
}

constexpr std::string_view ours = "ioweir_";

Hints all_of(MPI_Info info) {
    Hints all;
    if (info == MPI_INFO_NULL) return all;
    int count = 0;
    MPI_Info_get_nkeys(info, &count);
    for (int i = 0; i < count; ++i) {
        char key[MPI_MAX_INFO_KEY + 1] = "";
        MPI_Info_get_nthkey(info, i, key);
        int length = 0, there = 0;
        MPI_Info_get_valuelen(info, key, &length, &there);
        std::vector<char> value(static_cast<std::size_t>(length) + 1, '\0');
        MPI_Info_get(info, key, length, value.data(), &there);
        all.emplace_back(key, value.data());
    }
    return all;
}

/// Those of ioweir's keys; others are the MPI library's.
template <typename Any>
std::optional<Failure> take_all(MPI_Info info, Any& options) {
    for (const auto& [key, value] : all_of(info)) {
        if (!key.starts_with(ours)) continue;
        if (auto failure = take_key(key, value, options)) return failure;
    }
    return std::nullopt;
}

}  // namespace

std::string name_of(WriteCalls value) {
    const auto* const found =
        std::find_if(std::begin(calls), std::end(calls), [&](const auto& one) { return one.value == value; });
    return found->name;
}

WriteCalls calls_of_name(const std::string& name) {
    const auto* const found =
        std::find_if(std::begin(calls), std::end(calls), [&](const auto& one) { return one.name == name; });
    return found == std::end(calls) ? WriteCalls::automatic : found->value;
}

std::optional<Failure> check_reading(MPI_Info info) {
    for (const auto& [key, value] : all_of(info)) {
        if (key.starts_with(ours))
            return argument("a key of MPI_Info that reading does not have", key,
                            "keys of MPI_File_open are for reading");
    }
    return std::nullopt;
}

Hints hints_of(MPI_Info info) {
    Hints all = all_of(info);
    std::erase_if(all, [](const auto& one) { return one.first.starts_with(ours); });
    return all;
}

std::optional<Failure> read_options(MPI_Info info, Options& options) { return take_all(info, options); }

std::optional<Failure> read_options(MPI_Info info, ServiceOptions& options) { return take_all(info, options); }

}  // namespace ioweir::partition
