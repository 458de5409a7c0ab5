#include "engine/choice/alternatives.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/checksum.hpp"

namespace ioweir::engine {
using namespace planner;

std::vector<Alternative> alternatives_for(int ranks) {
    std::vector<Alternative> all{{"library"}, {"everyone", {WritersKind::everyone, 0}}};
    if (ranks < 2) return all;
    const auto aggregators = [&](std::int64_t count) {
        const Writers writers{WritersKind::aggregators, count};
        all.push_back({to_text(writers), writers});
    };
    aggregators(0);
    if (ranks > 2) aggregators((ranks + 1) / 2);
    if (ranks <= 64) aggregators(ranks);
    return all;
}

std::string without_links(const std::string& path) {
    const auto resolved = [](const std::string& name) {
        char* const found = ::realpath(name.c_str(), nullptr);
        const std::string text = found != nullptr ? found : "";
        std::free(found);
        return text;
    };
    if (const std::string whole = resolved(path); !whole.empty()) return whole;
    const std::size_t slash = path.rfind('/');
    const std::string directory = resolved(slash == std::string::npos ? "." : path.substr(0, slash + 1));
    if (directory.empty()) return path;
    return (directory == "/" ? "" : directory) + '/' + path.substr(slash + 1);  // npos + 1 is 0
}

std::string folded(std::string_view path) {
    std::string text;
    for (const char c : path) {
        const bool digit = c >= '0' && c <= '9';
        if (!digit)
            text += c;
        else if (text.empty() || text.back() != '#')
            text += '#';
    }
    return text;
}

std::string digest_of(std::string_view folded_path, int access_mode, int ranks, std::int64_t file_system) {
    // Of directories nothing: jobs have their own.
    const std::string_view name = folded_path.substr(folded_path.rfind('/') + 1);
    const std::string text = std::string(name) + '\n' + std::to_string(access_mode) + '\n' + std::to_string(ranks) +
                             '\n' + std::to_string(file_system);
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx",
                  static_cast<unsigned long long>(checksum(text.data(), text.size())));
    return digits;
}

std::vector<double> known_shares(const std::vector<std::string>& known, std::string_view digest,
                                 const std::vector<Alternative>& alternatives) {
    std::vector<double> shares(alternatives.size());
    for (const std::string& line : known) {
        const std::string_view text = line;
        const std::size_t first = text.find(' '), second = text.rfind(' ');
        if (first == std::string_view::npos || first == second || text.substr(0, first) != digest) continue;
        const std::string_view name = text.substr(first + 1, second - first - 1), share = text.substr(second + 1);
        const auto found =
            std::find_if(alternatives.begin(), alternatives.end(), [&](const auto& one) { return one.name == name; });
        double value = 0;
        const auto read = std::from_chars(share.data(), share.data() + share.size(), value);
        if (found == alternatives.end() || read.ec != std::errc{} || read.ptr != share.data() + share.size()) continue;
        // What no measurement gives is passed over, infinities too.
        if (value > 1e-6 && value < 1e6) shares[static_cast<std::size_t>(found - alternatives.begin())] = value;
    }
    return shares;
}

}  // namespace ioweir::engine
