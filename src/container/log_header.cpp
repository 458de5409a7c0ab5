#include "container/log_header.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checksum.hpp"

namespace ioweir::container {

std::string log_header(const Directory& directory, std::int64_t source) {
    const std::string id = directory.path.substr(directory.path.rfind(".ioweir-") + 8);
    std::string text = "ioweir log 1\nid " + id + "\ngeneration " + std::to_string(source >> 32) + "\nrank " +
                       std::to_string(static_cast<std::uint32_t>(source)) + "\n";
    std::array<char, 32> check{};
    std::snprintf(check.data(), check.size(), "check %016llx\n",
                  static_cast<unsigned long long>(checksum(text.data(), text.size())));
    text += check.data();
    text.resize(static_cast<std::size_t>(log_header_bytes), '\0');
    return text;
}

std::string why_not_log(const Directory& directory, int descriptor, std::int64_t source) {
    std::string text(static_cast<std::size_t>(log_header_bytes), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(descriptor, text.data(), text.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return std::strerror(errno);
    if (got < std::ssize(text)) return "it is shorter than its first 4096 bytes, which say what it is";
    if (text == log_header(directory, source)) return {};
    unsigned long long generation = 0, rank = 0;
    const std::size_t at = text.find("\ngeneration ");
    const bool says = at != std::string::npos &&
                      std::sscanf(text.c_str() + at, "\ngeneration %llu\nrank %llu\n", &generation, &rank) == 2;
    const std::int64_t other = log_source(static_cast<std::uint32_t>(generation), static_cast<std::uint32_t>(rank));
    if (says && text == log_header(directory, other))
        return "it is data." + std::to_string(generation) + "." + std::to_string(rank);
    return "its first 4096 bytes do not say that it is this log of this container";
}

}  // namespace ioweir::container
