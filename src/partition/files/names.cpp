#include "partition/files/names.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "partition/files/posix_file.hpp"

namespace ioweir::partition {

std::string SetName::stem() const {
    const std::size_t slash = base.rfind('/');
    return (slash == std::string::npos ? base : base.substr(slash + 1)) + "-dat." + std::to_string(step);
}

std::string SetName::directory() const { return base + "-dat." + std::to_string(step) + ".d"; }

std::string SetName::manifest() const {
    return directories ? directory() + "/manifest" : base + "-dat." + std::to_string(step) + ".set";
}

std::string SetName::file(std::int64_t number) const {
    const std::string last = std::to_string(number + 1);
    if (!directories) return base + "-dat." + std::to_string(step) + "." + last;
    return directory() + "/" + last + "/" + stem() + "." + last;
}

std::optional<SetName> set_of_path(const std::string& path) {
    // BASE-dat.STEP.d, BASE-dat.STEP.set or BASE-dat.STEP.NUMBER; in the first the other two may follow.
    std::string name = path;
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    if (const std::size_t inside = name.rfind(".d/"); inside != std::string::npos) {
        const auto around = set_of_path(name.substr(0, inside + 2));
        std::int64_t number = 0;
        std::from_chars(name.data() + inside + 3, name.data() + name.size(), number);
        if (around && (name == around->manifest() || name == around->file(number - 1))) return around;
    }
    const std::size_t dash = name.rfind("-dat.");
    if (dash == std::string::npos || name.find('/', dash) != std::string::npos) return std::nullopt;
    const std::size_t begin = dash + 5, dot = name.find('.', begin);
    SetName set{name.substr(0, dash), 0, false};
    if (dot == std::string::npos) return std::nullopt;
    const auto parsed = std::from_chars(name.data() + begin, name.data() + dot, set.step);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + dot) return std::nullopt;
    const std::string last = name.substr(dot + 1);
    set.directories = last == "d";
    const bool numbered = !last.empty() && last.find_first_not_of("0123456789") == std::string::npos;
    if (!set.directories && last != "set" && !numbered) return std::nullopt;
    return set;
}

Result<std::vector<std::int64_t>> steps_at(const std::string& base) {
    const std::string folder = directory_of(base);
    const std::size_t slash = base.rfind('/');
    const std::string beginning = (slash == std::string::npos ? base : base.substr(slash + 1)) + "-dat.";
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    if (error)
        return Error{"no directory to look for sets in", folder + ": " + error.message(), "is the base name right?"};
    std::vector<std::int64_t> steps;
    for (const auto& entry : entries) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(beginning)) continue;
        std::int64_t step = 0;
        const char* const begin = name.data() + beginning.size();
        const char* const end = name.data() + name.size();
        const auto parsed = std::from_chars(begin, end, step);
        if (parsed.ec != std::errc{} || parsed.ptr == end || *parsed.ptr != '.') continue;
        steps.push_back(step);
    }
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
}

}  // namespace ioweir::partition
