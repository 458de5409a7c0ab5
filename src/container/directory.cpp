#include "container/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/function_ref.hpp"
#include "container/data_header.hpp"
#include "container/generations.hpp"
#include "container/placed_log.hpp"
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

/// A file's bytes, asked for from front to back: few at a time are taken from many that were read at once.
class Ahead {
public:
    Ahead(int descriptor, const std::string& path, std::int64_t end)
        : descriptor_(descriptor), path_(path), end_(end) {}

    /// As many of the `bytes` from `offset` on as are there; good until the next one.
    Result<std::string_view> get(std::int64_t offset, std::int64_t bytes) {
        if (offset < begin_ || offset + bytes > begin_ + std::ssize(text_)) {
            auto text = read_part(descriptor_, path_, offset, std::max(bytes, std::min(at_once, end_ - offset)));
            if (!text) return text.error();
            text_ = text.take();
            begin_ = offset;
        }
        const std::string_view all = text_;
        return all.substr(static_cast<std::size_t>(offset - begin_), static_cast<std::size_t>(bytes));
    }

private:
    static constexpr std::int64_t at_once = 256 << 10;
    const int descriptor_;
    const std::string& path_;
    const std::int64_t end_;
    std::string text_;
    std::int64_t begin_ = 0;
};

/// What an index has, batch by batch: one that a writer has spread over the whole file may be large.
struct Walked {
    std::int64_t bytes = 0;
    std::string damage;    ///< empty: none
    bool foreign = false;  ///< it is a batch of another container
};
Result<Walked> walk_batches(const Identity& identity, int descriptor, const std::string& path,
                            FunctionRef<void(Batch)> visitor) {
    struct stat info{};
    if (::fstat(descriptor, &info) != 0) return missing(path, errno);
    Ahead ahead(descriptor, path, info.st_size);
    Walked walked;
    while (walked.bytes < info.st_size) {
        const auto head = ahead.get(walked.bytes, most_batch_header_bytes);
        if (!head) return head.error();
        const std::int64_t wanted = read_head(head.value()).bytes;
        // Nothing that is not there: the number of entries may be damaged.
        const bool whole = wanted > 0 && wanted <= info.st_size - walked.bytes;
        const auto text = ahead.get(walked.bytes, whole ? wanted : most_batch_header_bytes);
        if (!text) return text.error();
        if (text.value().empty()) break;  // somebody has cut it meanwhile
        Decoded decoded = decode(text.value(), identity, walked.bytes);
        walked.damage = std::move(decoded.damage);
        walked.foreign = decoded.foreign;
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

int make_folders(const Directory& directory, const std::string& stub_path, const Stub& stub) {
    if (const int error = write_new(directory.path + "/about", to_text(stub) + "file " + stub_path + "\n"); error != 0)
        return error;
    if (!directory.has_index() || directory.is_log()) return 0;
    for (std::int64_t group = 0; group < directory.shape.count; ++group) {
        if (::mkdir(directory.folder(group).c_str(), 0777) != 0) return errno;
        if (const int error = write_new(directory.data(group), data_header(directory, group)); error != 0) return error;
    }
    return 0;
}

Error damaged(const std::string& path, const std::string& what) {
    return {"a damaged index of an ioweir container", path + ": " + what,
            "what was written since the sync or close before it is lost; restore it from a copy"};
}

std::string name_of(std::uint32_t generation, std::uint32_t rank) {
    return std::string(index_prefix) + std::to_string(generation) + "." + std::to_string(rank);
}

/// What an index has that should not be in it; empty: nothing.
std::string why_not_its(const Directory& directory, const IndexFile& file, const Batch& batch) {
    if (batch.time.generation != file.generation || batch.time.rank != file.rank)
        return "it is " + name_of(batch.time.generation, batch.time.rank);
    if (directory.folder(batch.source) != folder_of(file.path))
        return "it is of another file (source " + std::to_string(batch.source) + ")";
    return {};
}

/// What was closed and is not there; empty: it all is.
std::string why_not_all(const Left& closed, const Left& there) {
    const Left gone = closed - there;
    const auto writer = gone.only_one();
    if (gone.files > 0) {
        const std::string which = writer ? " (" + name_of(writer->generation, writer->rank) + ")" : std::string();
        return std::to_string(gone.files) + " of " + std::to_string(closed.files) + " index files are not there" +
               which;
    }
    if (gone.files < 0 || gone.bytes <= 0) return {};
    const std::string which = writer ? name_of(writer->generation, writer->rank) + " is " : "its index files are ";
    return which + std::to_string(gone.bytes) + " bytes shorter than at close";
}

/// Whether nothing changed meanwhile is for the caller to find out.
Result<Indexes> read_once(const Directory& directory, const Generations& then) {
    Indexes all;
    all.open = then.open;
    const auto files = index_files(directory);
    if (!files) return files.error();
    const Identity identity = directory.identity();
    Left left;
    for (const IndexFile& file : files.value()) {
        std::string wrong;
        const auto take = [&](Batch batch) {
            if (wrong.empty()) wrong = why_not_its(directory, file, batch);
            all.last = std::max(all.last, batch.time.stamp);
            all.map.add(std::move(batch));
        };
        const int descriptor = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) return missing(file.path, errno);
        const auto walked = walk_batches(identity, descriptor, file.path, take);
        ::close(descriptor);
        if (!walked) return walked.error();
        if (!wrong.empty()) return damaged(file.path, wrong);
        const std::string& damage = walked.value().damage;
        const bool unfinished = std::binary_search(then.open.begin(), then.open.end(), file.generation);
        if (!damage.empty() && (!unfinished || walked.value().foreign)) return damaged(file.path, damage);
        if (!damage.empty()) all.torn.push_back(file.path + ": " + damage);
        if (unfinished) continue;
        if (file.generation > then.last)
            return damaged(file.path, "nothing says that its generation was closed; closed." +
                                          std::to_string(file.generation) + " or a later one is not there");
        left += Left::of(file.generation, file.rank, walked.value().bytes);
    }
    if (const std::string why = why_not_all(then.left, left); !why.empty()) return damaged(directory.path, why);
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

Result<std::vector<std::string>> folders(const Directory& directory) {
    std::vector<std::string> all;
    if (!directory.has_index()) return all;
    if (!directory.is_log()) {
        for (std::int64_t group = 0; group < directory.shape.count; ++group) all.push_back(directory.folder(group));
        return all;
    }
    const Names there = names_in(directory.path);
    if (there.error != 0) return missing(directory.path, there.error);
    for (const std::string& name : there.names) {
        if (number_after(name, logs_prefix)) all.push_back(directory.path + "/" + name);
    }
    return all;
}

int make_folder_of_log(const Directory& directory, std::int64_t source) {
    return ::mkdir(directory.folder(source).c_str(), 0777) == 0 || errno == EEXIST ? 0 : errno;
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

Identity Directory::identity() const {
    if (version < 3) return std::nullopt;
    const std::string digits = id();
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size() && 2 * i + 2 <= digits.size(); ++i)
        std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, bytes[i], 16);
    return bytes;
}

Directory directory_of(const std::string& stub_path, const Stub& stub) {
    return {directory_of(stub_path, stub.id), stub.shape, stub.version};
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
    const auto there = folders(directory);
    for (const std::string& folder : there ? there.value() : std::vector<std::string>{}) {
        for (const std::string& name : names_in(folder).names) {
            const auto log = directory.is_log() ? writer_after(name, data_prefix) : std::nullopt;
            if (log) {
                const int error = remove_log(directory, log_source(log->generation, log->rank));
                if (error != 0 && first == 0) first = error;
            } else if (name == "data" || writer_after(name, index_prefix)) {
                note(::unlink((folder + "/" + name).c_str()));
            }
        }
        note(::rmdir(folder.c_str()));
    }
    for (const std::string& name : names_in(directory.path).names) {
        if (name == "about" || name == "whole" || name == "gone" || name == "atomic" || name.starts_with("pointer.") ||
            number_after(name, "open.") || number_after(name, "closed."))
            note(::unlink((directory.path + "/" + name).c_str()));
    }
    note(::rmdir(directory.path.c_str()));
    return first;
}

Result<std::vector<IndexFile>> index_files(const Directory& directory) {
    std::vector<IndexFile> files;
    const auto all = folders(directory);
    if (!all) return all.error();
    for (const std::string& folder : all.value()) {
        const Names there = names_in(folder);
        if (there.error != 0) return missing(folder, there.error);
        for (const std::string& name : there.names) {
            if (const auto writer = writer_after(name, index_prefix))
                files.push_back({folder + "/" + name, writer->generation, writer->rank});
        }
    }
    return files;
}

Result<Named> last_named(const Directory& directory) {
    Named last;
    const auto all = folders(directory);
    if (!all) return all.error();
    for (const std::string& folder : all.value()) {
        const Names there = names_in(folder);
        if (there.error != 0) return missing(folder, there.error);
        for (const std::string& name : there.names) {
            auto writer = writer_after(name, index_prefix);
            if (!writer) writer = writer_after(name, data_prefix);
            if (writer && writer->generation > last.generation) last = {writer->generation, folder + "/" + name};
        }
    }
    return last;
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
        longest = std::max<std::int64_t>(longest, info.st_size - directory.data_begin());
    }
    return longest;
}

int set_length(const Directory& directory, std::int64_t bytes, bool grow) {
    if (bytes > INT64_MAX - directory.data_begin()) return EFBIG;
    for (std::int64_t group = 0; group < (grow ? 1 : directory.shape.count); ++group) {
        struct stat info{};
        if (::stat(directory.data(group).c_str(), &info) != 0) return errno;
        const std::int64_t wanted = directory.data_begin() + bytes;
        if (grow ? info.st_size >= wanted : info.st_size <= wanted) continue;
        if (::truncate(directory.data(group).c_str(), wanted) != 0) return errno;
    }
    return 0;
}

}  // namespace ioweir::container
