#include "container/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

namespace ioweir::container {
namespace {

constexpr std::string_view open_prefix = "open.", closed_prefix = "closed.", index_prefix = "index.";

struct DirectoryCloser {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

/// Names in a directory, or an errno value.
struct Names {
    std::vector<std::string> names;
    int error = 0;
};

Names names_in(const std::string& path) {
    Names found;
    const std::unique_ptr<DIR, DirectoryCloser> stream(::opendir(path.c_str()));
    if (!stream) return {{}, errno};
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(stream.get());
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") found.names.emplace_back(name);
    }
    found.error = errno;
    return found;
}

std::optional<std::uint32_t> number_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    std::uint32_t number = 0;
    const auto [rest, code] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    if (code != std::errc{} || rest != name.data() + name.size()) return std::nullopt;
    return number;
}

Error missing(const std::string& path, int error) {
    return {"a part of an ioweir container cannot be read", path + ": " + std::strerror(error),
            "the directory belongs beside the file of which it holds the bytes; was one of them moved or removed?"};
}

/// A new file with this text. An errno value.
int write_new(const std::string& path, const std::string& text) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) return errno;
    int error = 0;
    for (std::size_t done = 0; done < text.size() && error == 0;) {
        const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
        if (written > 0) done += static_cast<std::size_t>(written);
        if (written == 0 || (written < 0 && errno != EINTR)) error = written == 0 ? EIO : errno;
    }
    if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    return error;
}

Result<std::string> read_whole(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return missing(path, errno);
    std::string text;
    char buffer[65536];
    for (;;) {
        const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int error = errno;
            ::close(descriptor);
            return missing(path, error);
        }
        if (got == 0) break;
        text.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(descriptor);
    return text;
}

int make_groups(const Directory& directory, const std::string& stub_path, const Stub& stub) {
    if (const int error = write_new(directory.path + "/about", to_text(stub) + "file " + stub_path + "\n"); error != 0)
        return error;
    for (std::int64_t group = 0; group < directory.groups; ++group) {
        if (::mkdir(directory.group(group).c_str(), 0777) != 0) return errno;
        if (const int error = write_new(directory.data(group), ""); error != 0) return error;
    }
    return 0;
}

}  // namespace

Directory directory_of(const std::string& stub_path, const Stub& stub) {
    return {directory_of(stub_path, stub.id), stub.shape.groups};
}

int make(const Directory& directory, const std::string& stub_path, const Stub& stub) {
    if (::mkdir(directory.path.c_str(), 0777) != 0) return errno;
    const int error = make_groups(directory, stub_path, stub);
    if (error != 0) remove(directory);
    return error;
}

int remove(const Directory& directory) {
    int first = 0;
    const auto note = [&](int result) {
        if (result != 0 && errno != ENOENT && first == 0) first = errno;
    };
    // Only what a container has, and no other tree that may have come there.
    for (std::int64_t group = 0; group < directory.groups; ++group) {
        const std::string path = directory.group(group);
        for (const std::string& name : names_in(path).names) {
            if (name == "data" || name.starts_with(index_prefix)) note(::unlink((path + "/" + name).c_str()));
        }
        note(::rmdir(path.c_str()));
    }
    for (const std::string& name : names_in(directory.path).names) {
        if (name == "about" || name == "whole" || number_after(name, open_prefix) || number_after(name, closed_prefix))
            note(::unlink((directory.path + "/" + name).c_str()));
    }
    note(::rmdir(directory.path.c_str()));
    return first;
}

Result<std::uint32_t> begin_generation(const Directory& directory) {
    const Names there = names_in(directory.path);
    if (there.error != 0) return missing(directory.path, there.error);
    std::uint32_t last = 0;
    for (const std::string& name : there.names) {
        last = std::max(last, number_after(name, open_prefix).value_or(0));
        last = std::max(last, number_after(name, closed_prefix).value_or(0));
    }
    for (;;) {
        const int error = write_new(directory.path + "/" + std::string(open_prefix) + std::to_string(++last), "");
        if (error == 0) return last;
        if (error != EEXIST) return missing(directory.path, error);
    }
}

int end_generation(const Directory& directory, std::uint32_t generation) {
    const auto path = [&](std::string_view prefix, std::uint32_t number) {
        return directory.path + "/" + std::string(prefix) + std::to_string(number);
    };
    if (::rename(path(open_prefix, generation).c_str(), path(closed_prefix, generation).c_str()) != 0) return errno;
    // The last one says which number comes next; those before it say nothing.
    for (const std::string& name : names_in(directory.path).names) {
        const auto number = number_after(name, closed_prefix);
        if (number && *number < generation) ::unlink(path(closed_prefix, *number).c_str());
    }
    return 0;
}

Result<std::vector<std::uint32_t>> open_generations(const Directory& directory) {
    const Names there = names_in(directory.path);
    if (there.error != 0) return missing(directory.path, there.error);
    std::vector<std::uint32_t> open;
    for (const std::string& name : there.names) {
        if (const auto number = number_after(name, open_prefix)) open.push_back(*number);
    }
    std::sort(open.begin(), open.end());
    return open;
}

Result<Indexes> read_indexes(const Directory& directory) {
    Indexes all;
    auto open = open_generations(directory);
    if (!open) return open.error();
    all.open = open.take();
    for (std::int64_t group = 0; group < directory.groups; ++group) {
        const Names there = names_in(directory.group(group));
        if (there.error != 0) return missing(directory.group(group), there.error);
        for (const std::string& name : there.names) {
            if (!name.starts_with(index_prefix)) continue;
            const std::string path = directory.group(group) + "/" + name;
            const auto text = read_whole(path);
            if (!text) return text.error();
            Decoded decoded = decode(text.value(), static_cast<std::int32_t>(group));
            // "index.G.R"
            const std::string_view digits = std::string_view(name).substr(index_prefix.size());
            const auto generation = number_after(digits.substr(0, digits.find('.')), "");
            const bool unfinished = generation && std::binary_search(all.open.begin(), all.open.end(), *generation);
            if (!decoded.damage.empty() && unfinished) {
                all.torn.push_back(path + ": " + decoded.damage);
            } else if (!decoded.damage.empty()) {
                return Error{"a damaged index of an ioweir container", path + ": " + decoded.damage,
                             "what was written since the sync or close before it is lost; restore it from a copy"};
            }
            std::move(decoded.batches.begin(), decoded.batches.end(), std::back_inserter(all.batches));
        }
    }
    return all;
}

Result<std::int64_t> length(const Directory& directory) {
    std::int64_t longest = 0;
    for (std::int64_t group = 0; group < directory.groups; ++group) {
        struct stat info{};
        if (::stat(directory.data(group).c_str(), &info) != 0) return missing(directory.data(group), errno);
        longest = std::max<std::int64_t>(longest, info.st_size);
    }
    return longest;
}

int set_length(const Directory& directory, std::int64_t bytes, bool grow) {
    for (std::int64_t group = 0; group < (grow ? 1 : directory.groups); ++group) {
        struct stat info{};
        if (::stat(directory.data(group).c_str(), &info) != 0) return errno;
        if (grow ? info.st_size >= bytes : info.st_size <= bytes) continue;
        if (::truncate(directory.data(group).c_str(), bytes) != 0) return errno;
    }
    return 0;
}

}  // namespace ioweir::container
