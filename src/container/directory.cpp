#include "container/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/function_ref.hpp"
#include "container/generations.hpp"
#include "container/subfiles.hpp"

namespace ioweir::container {
namespace {

constexpr std::string_view index_prefix = "index.", data_prefix = "data.", logs_prefix = "logs.";
constexpr std::uint32_t log_folders = 64;

struct DirectoryCloser {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

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

/// A file's bytes from `offset` on: as many as are there, and at most `bytes`.
Result<std::string> read_part(int descriptor, const std::string& path, std::int64_t offset, std::int64_t bytes) {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    std::int64_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(descriptor, text.data() + done, static_cast<std::size_t>(bytes - done), offset + done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return missing(path, errno);
        if (got == 0) break;
        done += got;
    }
    text.resize(static_cast<std::size_t>(done));
    return text;
}

/// What an index has, batch by batch: one that a writer has spread over the whole file may be large.
struct Walked {
    std::int64_t bytes = 0;
    std::string damage;  ///< empty: none
};
Result<Walked> walk_batches(int descriptor, const std::string& path, FunctionRef<void(Batch)> visitor) {
    struct stat info{};
    if (::fstat(descriptor, &info) != 0) return missing(path, errno);
    Walked walked;
    while (walked.bytes < info.st_size) {
        const auto head = read_part(descriptor, path, walked.bytes, batch_header_bytes);
        if (!head) return head.error();
        const std::int64_t wanted = read_head(head.value()).bytes;
        // Nothing that is not there: the number of entries may be damaged.
        const bool whole = wanted > 0 && wanted <= info.st_size - walked.bytes;
        const auto text = read_part(descriptor, path, walked.bytes, whole ? wanted : batch_header_bytes);
        if (!text) return text.error();
        if (text.value().empty()) break;  // somebody has cut it meanwhile
        Decoded decoded = decode(text.value(), walked.bytes);
        walked.damage = std::move(decoded.damage);
        if (!walked.damage.empty()) return walked;
        walked.bytes += std::ssize(text.value());
        for (Batch& batch : decoded.batches) visitor(std::move(batch));
    }
    return walked;
}

/// "7.3" of "index.7.3".
struct Writer {
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;
};
std::optional<Writer> writer_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    const std::string_view digits = name.substr(prefix.size());
    const std::size_t dot = digits.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto generation = number_after(digits.substr(0, dot), "");
    const auto rank = number_after(digits.substr(dot + 1), "");
    if (!generation || !rank) return std::nullopt;
    return Writer{*generation, *rank};
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// Folders of data and indexes that should be there.
std::vector<std::string> folders(const Directory& directory) {
    std::vector<std::string> all;
    if (!directory.has_index()) return all;
    const std::int64_t count = directory.is_log() ? log_folders : directory.shape.count;
    for (std::int64_t source = 0; source < count; ++source) all.push_back(directory.folder(source));
    return all;
}

int make_folders(const Directory& directory, const std::string& stub_path, const Stub& stub) {
    if (const int error = write_new(directory.path + "/about", to_text(stub) + "file " + stub_path + "\n"); error != 0)
        return error;
    for (const std::string& folder : folders(directory)) {
        if (::mkdir(folder.c_str(), 0777) != 0) return errno;
        if (directory.is_log()) continue;
        if (const int error = write_new(folder + "/data", ""); error != 0) return error;
    }
    return 0;
}

Error damaged(const std::string& path, const std::string& what) {
    return {"a damaged index of an ioweir container", path + ": " + what,
            "what was written since the sync or close before it is lost; restore it from a copy"};
}

/// Whether nothing changed meanwhile is for the caller to find out.
Result<Indexes> read_once(const Directory& directory, const Generations& then) {
    Indexes all;
    all.open = then.open;
    const auto files = index_files(directory);
    if (!files) return files.error();
    Left left;
    for (const IndexFile& file : files.value()) {
        std::int64_t other = -1;  // whose bytes it says to have, if they are not in its folder
        const auto take = [&](Batch batch) {
            if (directory.folder(batch.source) != folder_of(file.path)) other = batch.source;
            all.last = std::max(all.last, batch.time.stamp);
            all.map.add(std::move(batch));
        };
        const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return missing(file.path, errno);
        const auto walked = walk_batches(descriptor, file.path, take);
        ::close(descriptor);
        if (!walked) return walked.error();
        if (other >= 0) return damaged(file.path, "it is of another file (source " + std::to_string(other) + ")");
        const std::string& damage = walked.value().damage;
        const bool unfinished = std::binary_search(then.open.begin(), then.open.end(), file.generation);
        if (!damage.empty() && !unfinished) return damaged(file.path, damage);
        if (!damage.empty()) all.torn.push_back(file.path + ": " + damage);
        if (unfinished) continue;
        ++left.files;
        left.bytes += walked.value().bytes;
    }
    if (left.files < then.left.files)
        return damaged(directory.path, std::to_string(then.left.files - left.files) + " of " +
                                           std::to_string(then.left.files) + " index files are not there");
    if (left.files == then.left.files && left.bytes < then.left.bytes)
        return damaged(directory.path, "its index files are " + std::to_string(then.left.bytes - left.bytes) +
                                           " bytes shorter than they were at close");
    all.map.settle();
    return all;
}

}  // namespace

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

std::string Directory::folder(std::int64_t source) const {
    if (!is_log()) return path + "/group." + std::to_string(source);
    return path + "/" + std::string(logs_prefix) + std::to_string(static_cast<std::uint32_t>(source) % log_folders);
}

std::string Directory::data(std::int64_t source) const {
    if (!is_log()) return folder(source) + "/data";
    return folder(source) + "/" + std::string(data_prefix) + std::to_string(source >> 32) + "." +
           std::to_string(static_cast<std::uint32_t>(source));
}

Directory directory_of(const std::string& stub_path, const Stub& stub) {
    return {directory_of(stub_path, stub.id), stub.shape};
}

int make(const Directory& directory, const std::string& stub_path, const Stub& stub) {
    if (::mkdir(directory.path.c_str(), 0777) != 0) return errno;
    const int error = make_folders(directory, stub_path, stub);
    if (error != 0) remove(directory);
    return error;
}

int remove(const Directory& directory) {
    int first = 0;
    const auto note = [&](int result) {
        if (result != 0 && errno != ENOENT && first == 0) first = errno;
    };
    // Only what a container has, and no other tree that may have come there.
    if (!directory.has_index()) {
        if (const int error = remove_subfiles(directory); error != 0) first = error;
    }
    for (const std::string& folder : folders(directory)) {
        for (const std::string& name : names_in(folder).names) {
            const bool data = directory.is_log() ? writer_after(name, data_prefix).has_value() : name == "data";
            if (data || writer_after(name, index_prefix)) note(::unlink((folder + "/" + name).c_str()));
        }
        note(::rmdir(folder.c_str()));
    }
    for (const std::string& name : names_in(directory.path).names) {
        if (name == "about" || name == "whole" || name == "gone" || number_after(name, "open.") ||
            number_after(name, "closed."))
            note(::unlink((directory.path + "/" + name).c_str()));
    }
    note(::rmdir(directory.path.c_str()));
    return first;
}

Result<std::vector<IndexFile>> index_files(const Directory& directory) {
    std::vector<IndexFile> files;
    for (const std::string& folder : folders(directory)) {
        const Names there = names_in(folder);
        if (there.error != 0) return missing(folder, there.error);
        for (const std::string& name : there.names) {
            if (const auto writer = writer_after(name, index_prefix))
                files.push_back({folder + "/" + name, writer->generation, writer->rank});
        }
    }
    return files;
}

Result<Indexes> read_indexes(const Directory& directory) {
    for (int attempt = 0;; ++attempt) {
        const auto before = generations_in(directory);
        if (!before) return before.error();
        auto read = read_once(directory, before.value());
        if (read || attempt == 10) return read;
        // Another job or handle may have begun or ended meanwhile, and left what could not be understood.
        const auto after = generations_in(directory);
        if (!after) return after.error();
        if (after.value() == before.value()) return read;
    }
}

Result<std::int64_t> length(const Directory& directory) {
    if (!directory.has_index()) {
        const auto subfiles = read_subfiles(directory);
        if (!subfiles) return subfiles.error();
        return length(directory, subfiles.value());
    }
    if (directory.is_log()) {
        auto indexes = read_indexes(directory);
        if (!indexes) return indexes.error();
        return indexes.value().map.length();
    }
    std::int64_t longest = 0;
    for (std::int64_t group = 0; group < directory.shape.count; ++group) {
        struct stat info{};
        if (::stat(directory.data(group).c_str(), &info) != 0) return missing(directory.data(group), errno);
        longest = std::max<std::int64_t>(longest, info.st_size);
    }
    return longest;
}

int set_length(const Directory& directory, std::int64_t bytes, bool grow) {
    for (std::int64_t group = 0; group < (grow ? 1 : directory.shape.count); ++group) {
        struct stat info{};
        if (::stat(directory.data(group).c_str(), &info) != 0) return errno;
        if (grow ? info.st_size >= bytes : info.st_size <= bytes) continue;
        if (::truncate(directory.data(group).c_str(), bytes) != 0) return errno;
    }
    return 0;
}

}  // namespace ioweir::container
