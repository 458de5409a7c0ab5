#include "container/files/data_header.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/checked_text.hpp"

namespace ioweir::container {
namespace {

/// The number that a header claims to have; -1: none.
std::int64_t claimed(const Directory& directory, const std::string& text) {
    unsigned long long generation = 0, rank = 0;
    long long group = 0;
    const std::size_t at = text.find('\n', text.find("\nid ") + 1);  // the end of the id's line
    if (at == std::string::npos) return -1;
    if (!directory.is_log()) return std::sscanf(text.c_str() + at, "\nnumber %lld of ", &group) == 1 ? group : -1;
    if (std::sscanf(text.c_str() + at, "\ngeneration %llu\nrank %llu\n", &generation, &rank) != 2) return -1;
    return log_source(static_cast<std::uint32_t>(generation), static_cast<std::uint32_t>(rank));
}

}  // namespace

std::string data_header(const Directory& directory, std::int64_t source) {
    std::string text;
    if (directory.is_log()) {
        text = "ioweir log 1\nid " + directory.id() + "\ngeneration " + std::to_string(source >> 32) + "\nrank " +
               std::to_string(static_cast<std::uint32_t>(source)) + "\n";
    } else {
        if (directory.data_begin() == 0) return {};
        text = "ioweir group 1\nid " + directory.id() + "\nnumber " + std::to_string(source) + " of " +
               std::to_string(directory.shape.count) + "\n";
    }
    text = with_check(text);
    text.resize(static_cast<std::size_t>(data_header_bytes), '\0');
    return text;
}

std::string why_not_header(int descriptor, const std::string& wanted, const std::string& part,
                           FunctionRef<OtherPart(const std::string&)> claimed) {
    std::string text(wanted.size(), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(descriptor, text.data(), text.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return std::strerror(errno);
    if (got < std::ssize(text))
        return "it is shorter than its first " + std::to_string(wanted.size()) + " bytes, which say what it is";
    if (text == wanted) return {};
    const OtherPart other = claimed(text);
    if (!other.name.empty() && text == other.header) return "it is " + other.name;
    return "its first " + std::to_string(wanted.size()) + " bytes do not say that it is this " + part +
           " of this container";
}

std::string why_not_data(const Directory& directory, int descriptor, std::int64_t source) {
    const std::string wanted = data_header(directory, source);
    if (wanted.empty()) return {};
    return why_not_header(descriptor, wanted, directory.is_log() ? "log" : "group's file",
                          [&](const std::string& text) -> OtherPart {
                              const std::int64_t other = claimed(directory, text);
                              if (other < 0) return {};
                              return {data_header(directory, other), directory.data_name(other)};
                          });
}

std::string why_not_whole(const Directory& directory, std::int64_t source, std::int64_t needed) {
    const auto file = open_data(directory, source);
    if (!file) return missing(directory.data(source), file.error()).value;
    const std::string why = why_not_data(directory, file.value().descriptor(), source);
    if (!why.empty()) return directory.data(source) + ": " + why;
    if (needed > 0 && file.value().bytes() < directory.data_begin() + needed)
        return directory.data(source) + " is shorter than its indexes say";
    return {};
}

bool may_be_removed(const guarded::File& file, const std::string& header) {
    if (file.bytes() == 0) return true;  // its job has died before it could say what it is
    const auto text = file.read_part(0, std::ssize(header));
    return text && header.starts_with(text.value());
}

}  // namespace ioweir::container
