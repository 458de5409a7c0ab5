#include "container/subfiles.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/checksum.hpp"

namespace ioweir::container {
namespace {

std::string with_check(const std::string& facts) {
    std::array<char, 32> check{};
    std::snprintf(check.data(), check.size(), "check %016llx\n",
                  static_cast<unsigned long long>(checksum(facts.data(), facts.size())));
    return facts + check.data();
}

/// The lines before the check, where that is right.
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

std::string header_text(const Directory& directory, std::int64_t number) {
    const std::string id = directory.path.substr(directory.path.rfind(".ioweir-") + 8);
    std::string text = with_check("ioweir subfile 1\nid " + id + "\nnumber " + std::to_string(number) + " of " +
                                  std::to_string(directory.shape.count) + "\nstripe " +
                                  std::to_string(directory.shape.stripe_bytes) + "\n");
    text.resize(static_cast<std::size_t>(subfile_header_bytes), '\0');
    return text;
}

int write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = ::pwrite(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written == 0 ? EIO : errno;
        done += static_cast<std::size_t>(written);
    }
    return 0;
}

int write_file(const std::string& path, int flags, const std::string& text) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (descriptor < 0) return errno;
    int error = write_all(descriptor, text);
    if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    return error;
}

Result<std::string> read_text(const std::string& path, std::size_t most) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return missing(path, errno);
    std::string text(most, '\0');
    ssize_t got = 0;
    do {
        got = ::pread(descriptor, text.data(), text.size(), 0);
    } while (got < 0 && errno == EINTR);
    const int error = errno;
    ::close(descriptor);
    if (got < 0) return missing(path, error);
    text.resize(static_cast<std::size_t>(got));
    return text;
}

std::string places_file(const Directory& directory) { return directory.path + "/places"; }
std::string sizes_file(const Directory& directory) { return directory.path + "/sizes"; }

Error damaged(const std::string& path) {
    return {"a damaged part of an ioweir container", path + ": it is not as ioweir writes it",
            "restore it from a copy"};
}

Subfiles subfiles_in(const Directory& directory, const std::vector<std::string>& places) {
    Subfiles subfiles;
    const std::string name = directory.path.substr(directory.path.rfind(".ioweir-"));
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const std::string file = "subfile." + std::to_string(number);
        subfiles.paths.push_back(places.empty() ? directory.path + "/" + file
                                                : places[static_cast<std::size_t>(number) % places.size()] + "/" +
                                                      name + "." + file);
    }
    return subfiles;
}

/// An errno value; none is left then.
int make_subfile(const Directory& directory, const std::string& path, std::int64_t number, const SubfileMaker& make) {
    if (make) {
        const storage::Opened made = make(number, path);
        if (made.error != 0) return made.error;
        ::close(made.descriptor);
    }
    const int error = write_file(path, make ? 0 : O_EXCL, header_text(directory, number));
    if (error != 0 && error != EEXIST) ::unlink(path.c_str());
    return error;
}

}  // namespace

Spot spot_of(const Shape& shape, std::int64_t offset) {
    const std::int64_t stripe = offset / shape.stripe_bytes, within = offset % shape.stripe_bytes;
    return {stripe % shape.count, stripe / shape.count * shape.stripe_bytes + within, shape.stripe_bytes - within};
}

std::int64_t bytes_in(const Shape& shape, std::int64_t file, std::int64_t bytes) {
    const std::int64_t whole = bytes / shape.stripe_bytes, rest = bytes % shape.stripe_bytes;
    const std::int64_t stripes = whole > file ? (whole - file + shape.count - 1) / shape.count : 0;
    return stripes * shape.stripe_bytes + (whole % shape.count == file ? rest : 0);
}

std::int64_t reach_of(const Shape& shape, std::int64_t file, std::int64_t bytes) {
    if (bytes <= 0) return 0;
    const std::int64_t last = bytes - 1;
    return (last / shape.stripe_bytes * shape.count + file) * shape.stripe_bytes + last % shape.stripe_bytes + 1;
}

Result<Subfiles> make_subfiles(const Directory& directory, const std::vector<std::string>& places,
                               const SubfileMaker& make) {
    std::vector<std::string> absolute;
    std::string text = "ioweir places 1\n";
    for (const std::string& place : places) {
        std::array<char, PATH_MAX> real{};
        struct stat info{};
        const bool there = ::realpath(place.c_str(), real.data()) != nullptr && ::stat(real.data(), &info) == 0;
        if (!there || !S_ISDIR(info.st_mode) || std::strchr(real.data(), '\n') != nullptr)
            return Error{"not a directory for subfiles", place,
                         "name directories that are there, in the plan's targets"};
        absolute.emplace_back(real.data());
        text += absolute.back() + "\n";
    }
    Subfiles subfiles = subfiles_in(directory, absolute);
    if (const int error = write_file(places_file(directory), O_EXCL, with_check(text)); error != 0)
        return missing(places_file(directory), error);
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const int error = make_subfile(directory, subfiles.path(number), number, make);
        if (error == 0) continue;
        for (std::int64_t made = 0; made < number; ++made) ::unlink(subfiles.path(made).c_str());
        ::unlink(places_file(directory).c_str());
        return Error{"a subfile cannot be made", subfiles.path(number) + ": " + std::strerror(error),
                     "the directories of the plan's targets must be writable and have room"};
    }
    return subfiles;
}

Result<Subfiles> read_subfiles(const Directory& directory) {
    const auto text = read_text(places_file(directory), std::size_t{1} << 24);
    if (!text) return text.error();
    auto lines = lines_of(text.value());
    if (!lines || lines->empty() || lines->front() != "ioweir places 1") return damaged(places_file(directory));
    lines->erase(lines->begin());
    return subfiles_in(directory, *lines);
}

int remove_subfiles(const Directory& directory) {
    int first = 0;
    const auto note = [&](int result) {
        if (result != 0 && errno != ENOENT && first == 0) first = errno;
    };
    if (const auto subfiles = read_subfiles(directory)) {
        for (const std::string& path : subfiles.value().paths) note(::unlink(path.c_str()));
    }
    note(::unlink(sizes_file(directory).c_str()));
    for (const std::string& name : names_in(directory.path).names) {
        if (number_after(name, "sizes.")) note(::unlink((directory.path + "/" + name).c_str()));
    }
    note(::unlink(places_file(directory).c_str()));
    return first;
}

std::string why_not_subfile(const Directory& directory, int descriptor, std::int64_t number) {
    std::string text(static_cast<std::size_t>(subfile_header_bytes), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(descriptor, text.data(), text.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return std::strerror(errno);
    if (got < std::ssize(text)) return "it is shorter than its first 4096 bytes, which say what it is";
    if (text == header_text(directory, number)) return {};
    std::int64_t other = -1;
    const std::size_t at = text.find("\nnumber ");
    if (at != std::string::npos) std::from_chars(text.data() + at + 8, text.data() + text.size(), other);
    if (other >= 0 && text == header_text(directory, other)) return "it is subfile " + std::to_string(other);
    return "its first 4096 bytes do not say that it is this subfile of this container";
}

Result<std::int64_t> length(const Directory& directory, const Subfiles& subfiles) {
    std::int64_t longest = 0;
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        struct stat info{};
        if (::stat(subfiles.path(number).c_str(), &info) != 0) return missing(subfiles.path(number), errno);
        longest = std::max(longest, reach_of(directory.shape, number, info.st_size - subfile_header_bytes));
    }
    return longest;
}

int set_length(const Directory& directory, const Subfiles& subfiles, std::int64_t bytes) {
    const std::int64_t last = bytes > 0 ? spot_of(directory.shape, bytes - 1).file : -1;
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const char* const path = subfiles.path(number).c_str();
        const std::int64_t wanted = subfile_header_bytes + bytes_in(directory.shape, number, bytes);
        struct stat info{};
        if (::stat(path, &info) != 0) return errno;
        const bool too_long = info.st_size > wanted;
        const bool too_short = number == last && info.st_size < wanted;
        if ((too_long || too_short) && ::truncate(path, wanted) != 0) return errno;
    }
    return 0;
}

int keep_sizes(const Directory& directory, const Subfiles& subfiles, std::uint32_t generation) {
    std::string text = "ioweir sizes 1\n";
    for (const std::string& path : subfiles.paths) {
        struct stat info{};
        if (::stat(path.c_str(), &info) != 0) return errno;
        text += std::to_string(info.st_size) + "\n";
    }
    const std::string written = sizes_file(directory) + "." + std::to_string(generation);  // several may end at once
    if (const int error = write_file(written, O_TRUNC, with_check(text)); error != 0) return error;
    return ::rename(written.c_str(), sizes_file(directory).c_str()) == 0 ? 0 : errno;
}

int forget_sizes(const Directory& directory) {
    return ::unlink(sizes_file(directory).c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

std::vector<std::string> problems_of(const Directory& directory, const Subfiles& subfiles, bool closed) {
    std::vector<std::string> problems;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(directory.shape.count), 0);
    if (closed && ::access(sizes_file(directory).c_str(), F_OK) == 0) {
        const auto text = read_text(sizes_file(directory), std::size_t{1} << 24);
        const auto lines = text ? lines_of(text.value()) : std::nullopt;
        if (!lines || lines->size() != sizes.size() + 1 || lines->front() != "ioweir sizes 1") {
            problems.push_back(damaged(sizes_file(directory)).message());
        } else {
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                const std::string& digits = (*lines)[i + 1];
                std::from_chars(digits.data(), digits.data() + digits.size(), sizes[i]);
            }
        }
    }
    for (std::int64_t number = 0; number < directory.shape.count; ++number) {
        const std::string& path = subfiles.path(number);
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) {
            problems.push_back(path + ": " + std::strerror(errno));
            continue;
        }
        struct stat info{};
        const std::string why = why_not_subfile(directory, descriptor, number);
        if (!why.empty()) {
            problems.push_back(path + ": " + why);
        } else if (::fstat(descriptor, &info) == 0 && info.st_size < sizes[static_cast<std::size_t>(number)]) {
            problems.push_back(path + ": it has " + std::to_string(info.st_size) + " bytes and had " +
                               std::to_string(sizes[static_cast<std::size_t>(number)]) + " when it was last closed");
        }
        ::close(descriptor);
    }
    return problems;
}

}  // namespace ioweir::container
