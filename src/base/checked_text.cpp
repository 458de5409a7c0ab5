#include "base/checked_text.hpp"

#include <array>
#include <cstdio>

#include "base/checksum.hpp"

namespace ioweir {

std::string with_check(const std::string& facts) {
    std::array<char, 32> check{};
    std::snprintf(check.data(), check.size(), "check %016llx\n",
                  static_cast<unsigned long long>(checksum(facts.data(), facts.size())));
    return facts + check.data();
}

std::optional<std::vector<std::string>> lines_of(const std::string& text) {
    constexpr std::size_t check_bytes = 23;
    if (text.size() < check_bytes) return std::nullopt;
    const std::string facts = text.substr(0, text.size() - check_bytes);
    if (with_check(facts) != text) return std::nullopt;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < facts.size();) {
        const std::size_t end = facts.find('\n', at);
        if (end == std::string::npos) return std::nullopt;
        lines.push_back(facts.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

}  // namespace ioweir
