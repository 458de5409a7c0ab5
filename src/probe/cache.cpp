#include "probe/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/checksum.hpp"
#include "base/guarded_files.hpp"
#include "base/random_hex.hpp"

namespace ioweir::probe {
namespace {

constexpr const char* first_line = "ioweir probe 1\n";
constexpr std::size_t most_bytes = 1 << 20;

std::string hex(std::uint64_t number) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
    return text.data();
}

std::string with_check(const std::string& facts) {
    return facts + "check " + hex(checksum(facts.data(), facts.size())) + "\n";
}

/// Bytes of a second as text that reads back as the same number.
std::string rate_text(double rate) {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), rate).ptr;
    return {text.data(), end};
}

/// The whole file, if it may be believed.
std::optional<std::string> trusted_text(const std::string& path) {
    const auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
    if (!folder) return std::nullopt;
    const auto file = folder.value().file(guarded::file_name_of(path));
    if (!file) return std::nullopt;
    const struct stat& info = file.value().status();
    if (info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return std::nullopt;
    auto text = file.value().read_all(static_cast<std::int64_t>(most_bytes));
    return text ? std::optional(text.take()) : std::nullopt;
}

template <typename T>
bool take_number(std::string_view& text, T& number) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end == text.data() + text.size() || *end != '\n') return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
}

}  // namespace

std::string cache_file(const storage::Targets& targets, const Options& options) {
    const auto absolute = [](const char* name) {
        const char* const value = std::getenv(name);
        return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
    };
    std::string directory = absolute("XDG_CACHE_HOME");
    if (directory.empty()) {
        directory = absolute("HOME");
        if (directory.empty()) return {};
        directory += "/.cache";
    }
    utsname machine{};
    std::string key = ::uname(&machine) == 0 ? machine.nodename : "";
    key += std::string("\n") + targets.kind();
    for (const storage::Target& target : targets.list()) key += "\n" + target.name + "\t" + target.directory;
    for (const std::int64_t number : {options.discard_ns, options.window_ns, options.bytes,
                                      std::int64_t{options.repetitions}, std::int64_t{options.confirmations}})
        key += "\n" + std::to_string(number);
    return directory + "/ioweir/job-probe-" + hex(checksum(key.data(), key.size()));
}

std::optional<Kept> read_cache(const std::string& path, std::size_t targets, std::int64_t now_s,
                               std::int64_t most_age_s) {
    const auto text = trusted_text(path);
    constexpr std::size_t check_bytes = 23;
    if (!text || text->size() < check_bytes) return std::nullopt;
    const std::string facts = text->substr(0, text->size() - check_bytes);
    if (with_check(facts) != *text || !facts.starts_with(first_line)) return std::nullopt;
    std::string_view left = std::string_view(facts).substr(std::strlen(first_line));
    std::int64_t at_s = 0;
    if (!take_number(left, at_s) || at_s < 0 || at_s > now_s || now_s - at_s > most_age_s) return std::nullopt;
    Kept kept{{}, now_s - at_s};
    while (!left.empty()) {
        double rate = 0;
        if (!take_number(left, rate) || !(rate >= 0)) return std::nullopt;
        kept.rates.push_back(rate);
    }
    if (kept.rates.size() != targets) return std::nullopt;
    return kept;
}

int write_cache(const std::string& path, const std::vector<double>& rates, std::int64_t now_s) {
    const std::filesystem::path file(path);
    std::error_code failure;
    std::filesystem::create_directories(file.parent_path().parent_path(), failure);
    if (::mkdir(file.parent_path().c_str(), 0700) != 0 && errno != EEXIST) return errno;
    std::string text = first_line + std::to_string(now_s) + "\n";
    for (const double rate : rates) text += rate_text(rate) + "\n";
    text = with_check(text);
    const auto folder = guarded::Folder::follow(file.parent_path().string());
    if (!folder) return folder.error().number;
    // For this user alone; another process may write its own at the same time.
    const std::string name = file.filename().string();
    return folder.value().replace(name, name + "." + random_hex(8), text, 0600);
}

}  // namespace ioweir::probe
