#include "container/files/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/function_ref.hpp"
#include "container/files/access.hpp"
#include "container/files/data_header.hpp"
#include "container/files/origin.hpp"
#include "container/files/placed_log.hpp"
#include "container/files/subfiles.hpp"
#include "container/sharing/generations.hpp"
#include "container/sharing/replaced.hpp"

namespace ioweir::container {
namespace {

constexpr std::string_view index_prefix = "index.", data_prefix = "data.", logs_prefix = "logs.";
constexpr std::uint32_t log_folders = 64;

/// A file's bytes, asked for from front to back: few at a time are taken from many that were read at once.
class Ahead {
public:
    explicit Ahead(const guarded::File& file) : file_(file) {}

    /// As many of the `bytes` from `offset` on as are there; good until the next one.
    Result<std::string_view> get(std::int64_t offset, std::int64_t bytes) {
        if (offset < begin_ || offset + bytes > begin_ + std::ssize(text_)) {
            auto text = file_.read_part(offset, std::max(bytes, std::min(at_once, file_.bytes() - offset)));
            if (!text) return text.error();
            text_ = text.take();
            begin_ = offset;
        }
        const std::string_view all = text_;
        return all.substr(static_cast<std::size_t>(offset - begin_), static_cast<std::size_t>(bytes));
    }
    /// What was read is looked at anew.
    void forget() { text_.clear(); }

private:
    static constexpr std::int64_t at_once = 256 << 10;
    const guarded::File& file_;
    std::string text_;
    std::int64_t begin_ = 0;
};

bool is_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

/// Are there only zeros from `offset` to the end? Room that a writer has made for what it appends (own_index.hpp).
Result<bool> ends_in_zeros(Ahead& ahead, std::int64_t offset, std::int64_t end) {
    constexpr std::int64_t some = 64 << 10;
    for (std::int64_t at = offset; at < end; at += some) {
        const auto text = ahead.get(at, std::min(some, end - at));
        if (!text) return text.error();
        if (!is_zero(text.value())) return false;
    }
    return true;
}

Result<Walked> walk_batches(const Identity& identity, const guarded::File& file, FunctionRef<void(Batch)> visitor) {
    Ahead ahead(file);
    Walked walked;
    std::int64_t zeros_at = -1;
    while (walked.bytes < file.bytes()) {
        const auto head = ahead.get(walked.bytes, most_batch_header_bytes);
        if (!head) return head.error();
        if (is_zero(head.value()) && zeros_at != walked.bytes && file.bytes() - walked.bytes <= most_room_bytes) {
            zeros_at = walked.bytes;
            const auto ends = ends_in_zeros(ahead, walked.bytes, file.bytes());
            if (!ends) return ends.error();
            if (ends.value()) break;
            ahead.forget();  // its writer may have appended it meanwhile
            continue;
        }
        const std::int64_t wanted = read_head(head.value()).bytes;
        // Nothing that is not there: the number of entries may be damaged.
        const bool whole = wanted > 0 && wanted <= file.bytes() - walked.bytes && wanted <= most_batch_bytes;
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

/// As it is, where it cannot be told.
std::string absolute(const std::string& given) {
    const std::string path = without_link(given);
    std::array<char, PATH_MAX> folder{};
    if (::realpath(guarded::folder_name_of(path).c_str(), folder.data()) == nullptr) return path;
    return std::string(folder.data()) + "/" + guarded::file_name_of(path);
}

/// An errno value.
int make_folders(const Directory& directory, const guarded::Folder& folder, const std::string& header_file_path,
                 const HeaderFile& header_file) {
    const About about{to_text(header_file), absolute(header_file_path), line_of_directory(directory)};
    if (const int error = folder.write_new("about", to_text(about)); error != 0) return error;
    if (!directory.has_index() || directory.is_log()) return 0;
    for (std::int64_t group = 0; group < directory.shape.count; ++group) {
        if (const int error = folder.make_folder(directory.folder_name(group)); error != 0) return error;
        const int error = folder.write_new(directory.data_name(group), data_header(directory, group));
        if (error != 0) return error;
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
    if (directory.folder_name(batch.source) != guarded::folder_name_of(file.name))
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
    Left left;
    for (const IndexFile& file : files.value()) {
        const std::string path = directory.path_of(file.name);
        std::string wrong;
        const auto take = [&](Batch batch) {
            if (wrong.empty()) wrong = why_not_its(directory, file, batch);
            all.last = std::max(all.last, batch.time.stamp);
            all.map.add(std::move(batch));
        };
        const auto walked = walk_index(directory, file, take);
        if (!walked) return missing(path, walked.error());
        if (!wrong.empty()) return damaged(path, wrong);
        const std::string& damage = walked.value().damage;
        const bool unfinished = std::binary_search(then.open.begin(), then.open.end(), file.generation);
        const bool replaced = std::binary_search(then.replaced.begin(), then.replaced.end(), file.generation);
        if (!damage.empty() && (!(unfinished || replaced) || walked.value().foreign)) return damaged(path, damage);
        if (!damage.empty() && unfinished) all.torn.push_back(path + ": " + damage);
        if (unfinished || replaced) continue;
        if (file.generation > then.last)
            return damaged(path, "nothing says that its generation was closed; closed." +
                                     std::to_string(file.generation) + " or a later one is not there");
        left += Left::of(file.generation, file.rank, walked.value().bytes);
    }
    if (const std::string why = why_not_all(then.left, left); !why.empty()) return damaged(directory.path, why);
    all.map.settle();
    return all;
}

}  // namespace

Result<std::shared_ptr<const guarded::Folder>> Directory::opened() const {
    const std::lock_guard guard(held->lock);
    // A program may close every descriptor that it finds.
    if (held->folder && held->folder->is_intact()) return held->folder;
    auto found = guarded::Folder::open(path);
    if (!found) return found.error();
    const uid_t owner = found.value().owners().folder;
    const bool own_header_file = !header_file_owner || *header_file_owner == owner || *header_file_owner == 0 ||
                                 *header_file_owner == ::geteuid();
    if (!own_header_file)
        return Error{"the directory of an ioweir container belongs to somebody else than its header file",
                     path + ": it belongs to user " + std::to_string(owner) + ", the header file to user " +
                         std::to_string(*header_file_owner),
                     "if that is right, give the one to the other's owner (chown -R)", EPERM};
    auto folder = std::make_shared<guarded::Folder>(found.take());
    folder->believe(guarded::Owners::of_shared(folder->status()));
    folder->pass_on(*folder);
    folder->keep();
    held->folder = std::move(folder);
    return held->folder;
}

Result<std::int64_t> Directory::look(FunctionRef<Result<std::int64_t>(const guarded::Folder&)> question) const {
    std::shared_ptr<const guarded::Folder> known;
    {
        const std::lock_guard guard(held->lock);
        known = held->folder;
    }
    if (known) {
        auto answer = question(*known);
        if (answer || known->is_intact()) return answer;
    }
    const auto folder = opened();
    if (!folder) return missing(path, folder.error());
    return question(*folder.value());
}

Result<guarded::File> open_data(const Directory& directory, std::int64_t source, int flags) {
    const auto folder = directory.opened();
    if (!folder) return folder.error();
    auto file = folder.value()->file(directory.data_name(source), flags);
    if (file || file.error().number != ELOOP || !directory.is_log()) return file;
    return open_placed_log(directory, *folder.value(), source, flags);
}

Result<std::vector<std::string>> names_in(const Directory& directory, const std::string& folder) {
    const auto opened = directory.opened();
    if (!opened) return missing(directory.path, opened.error());
    if (folder.empty()) {
        guarded::Names found = opened.value()->names();
        if (found.error != 0) return missing(directory.path, found.error);
        return std::move(found.names);
    }
    const auto inner = opened.value()->folder(folder);
    if (!inner) return missing(directory.path_of(folder), inner.error());
    guarded::Names found = inner.value().names();
    if (found.error != 0) return missing(directory.path_of(folder), found.error);
    return std::move(found.names);
}

std::optional<std::uint32_t> number_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    std::uint32_t number = 0;
    const auto [rest, code] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    if (code != std::errc{} || rest != name.data() + name.size()) return std::nullopt;
    return number;
}

std::optional<FileWriter> writer_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    const std::string_view digits = name.substr(prefix.size());
    const std::size_t dot = digits.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto generation = number_after(digits.substr(0, dot), "");
    const auto rank = number_after(digits.substr(dot + 1), "");
    if (!generation || !rank) return std::nullopt;
    return FileWriter{*generation, *rank};
}

Result<Walked> walk_index(const Directory& directory, const IndexFile& file, FunctionRef<void(Batch)> visitor) {
    const auto folder = directory.opened();
    if (!folder) return folder.error();
    const auto opened = folder.value()->file(file.name);
    if (!opened) return opened.error();
    return walk_batches(directory.identity(), opened.value(), visitor);
}

std::optional<std::int64_t> source_of_log(std::string_view name) {
    const auto writer = writer_after(name, data_prefix);
    if (!writer) return std::nullopt;
    return log_source(writer->generation, writer->rank);
}

Result<std::vector<std::string>> folders(const Directory& directory) {
    std::vector<std::string> all;
    if (!directory.has_index()) return all;
    if (!directory.is_log()) {
        for (std::int64_t group = 0; group < directory.shape.count; ++group)
            all.push_back(directory.folder_name(group));
        return all;
    }
    const auto there = names_in(directory);
    if (!there) return there.error();
    for (const std::string& name : there.value()) {
        if (number_after(name, logs_prefix)) all.push_back(name);
    }
    return all;
}

int make_folder_of_log(const Directory& directory, std::int64_t source) {
    const auto folder = directory.opened();
    if (!folder) return folder.error().number;
    const int error = folder.value()->make_folder(directory.folder_name(source));
    return error == EEXIST ? 0 : error;
}

Error missing(const std::string& path, int error) {
    return {"a part of an ioweir container cannot be read", path + ": " + std::strerror(error),
            "the directory belongs beside the file of which it holds the bytes; was one of them moved or removed?",
            error};
}

Error missing(const std::string& path, const Error& why) {
    // What stands there is something else: that is to be said.
    for (const int number : {ELOOP, ENXIO, EISDIR, EPERM, EMLINK, EFBIG}) {
        if (why.number == number) return why;
    }
    return missing(path, why.number != 0 ? why.number : EIO);
}

std::string Directory::folder_name(std::int64_t source) const {
    if (!is_log()) return "group." + std::to_string(source);
    return std::string(logs_prefix) + std::to_string(static_cast<std::uint32_t>(source) % log_folders);
}

std::string Directory::data_name(std::int64_t source) const {
    if (!is_log()) return folder_name(source) + "/data";
    return folder_name(source) + "/" + std::string(data_prefix) + std::to_string(source >> 32) + "." +
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

Directory directory_of(const std::string& header_file_path, const HeaderFile& header_file) {
    return {directory_of(header_file_path, header_file.id), header_file.shape, header_file.version, header_file.owner};
}

int make(const Directory& directory, const std::string& header_file_path, const HeaderFile& header_file,
         int header_file_descriptor) {
    const auto beside = guarded::Folder::follow(guarded::folder_name_of(directory.path));
    if (!beside) return beside.error().number;
    const std::string name = guarded::file_name_of(directory.path);
    if (const int error = beside.value().make_folder(name, header_file_descriptor < 0 ? 0777 : 0700); error != 0)
        return error;
    if (header_file_descriptor >= 0) begin_access(directory, header_file_descriptor);
    const auto folder = directory.opened();
    const int error =
        folder ? make_folders(directory, *folder.value(), header_file_path, header_file) : folder.error().number;
    if (error != 0) remove(directory);
    return error;
}

namespace {

/// The first thing that is in the way of a removal; what is not there is not.
class FirstError {
public:
    void note(int error) {
        if (error != 0 && error != ENOENT && first_ == 0) first_ = error;
    }
    [[nodiscard]] int first() const { return first_; }

private:
    int first_ = 0;
};

/// A group's folder, or one of logs, with what a container has in it. Behind a link, nothing.
/// `elsewhere`: logs on storage targets, too.
void remove_folder(const Directory& directory, const guarded::Folder& in, const std::string& name, bool elsewhere,
                   FirstError& errors) {
    const auto folder = in.folder(name);
    if (!folder) return errors.note(folder.error().number);
    for (const std::string& file : folder.value().names().names) {
        const auto log = directory.is_log() ? source_of_log(file) : std::nullopt;
        if (log)
            errors.note(remove_log(directory, *log, elsewhere));
        else if (file == "data" || writer_after(file, index_prefix))
            errors.note(folder.value().remove(file));
    }
    errors.note(in.remove_folder(name));
}

}  // namespace

int remove(const Directory& directory) {
    const auto opened = directory.opened();
    if (!opened) return opened.error().number == ENOENT ? 0 : opened.error().number;
    const guarded::Folder& in = *opened.value();
    // Parts elsewhere may be those of another directory.
    const Origin origin = origin_of(directory);
    if (origin == Origin::unknown) return EXDEV;
    const bool elsewhere = origin == Origin::own;
    FirstError errors;
    // Only what a container has, and no other tree that may have come there.
    if (!directory.has_index()) errors.note(remove_subfiles(directory, elsewhere));
    const auto there = folders(directory);
    for (const std::string& folder : there ? there.value() : std::vector<std::string>{})
        remove_folder(directory, in, folder, elsewhere, errors);
    for (const std::string& name : in.names().names) {
        if (name == "whole" || name == "gone" || is_locked_file(name) || number_after(name, "open.") ||
            number_after(name, "closed.") || number_after(name, "replaced.") || is_written_file(name))
            errors.note(in.remove(name));
    }
    // Last: without it nobody knows whose the rest is, should this process die meanwhile.
    if (errors.first() == 0) errors.note(in.remove("about"));
    const auto beside = guarded::Folder::follow(guarded::folder_name_of(directory.path));
    errors.note(beside ? beside.value().remove_folder(guarded::file_name_of(directory.path)) : beside.error().number);
    return errors.first();
}

namespace {
/// Calls visit(folder, name) for each file in the folders of a container.
template <typename Visit>
std::optional<Error> each_file(const Directory& directory, Visit&& visit) {
    const auto all = folders(directory);
    if (!all) return all.error();
    for (const std::string& folder : all.value()) {
        const auto there = names_in(directory, folder);
        if (!there) return there.error();
        for (const std::string& name : there.value()) visit(folder, name);
    }
    return std::nullopt;
}
}  // namespace

Result<std::vector<IndexFile>> index_files(const Directory& directory) {
    std::vector<IndexFile> files;
    const auto error = each_file(directory, [&](const std::string& folder, const std::string& name) {
        if (const auto writer = writer_after(name, index_prefix))
            files.push_back({folder + "/" + name, writer->generation, writer->rank});
    });
    if (error) return *error;
    return files;
}

Result<Named> last_named(const Directory& directory) {
    Named last;
    const auto error = each_file(directory, [&](const std::string& folder, const std::string& name) {
        auto writer = writer_after(name, index_prefix);
        if (!writer) writer = writer_after(name, data_prefix);
        if (writer && writer->generation > last.generation) last = {writer->generation, folder + "/" + name};
    });
    if (error) return *error;
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
    return directory.look([&](const guarded::Folder& folder) -> Result<std::int64_t> {
        std::int64_t longest = 0;
        for (std::int64_t group = 0; group < directory.shape.count; ++group) {
            struct stat info{};
            int error = folder.status_of(directory.data_name(group), info);
            if (error == 0 && !S_ISREG(info.st_mode)) error = S_ISDIR(info.st_mode) ? EISDIR : ENXIO;
            if (error != 0) return missing(directory.data(group), error);
            longest = std::max<std::int64_t>(longest, info.st_size - directory.data_begin());
        }
        return longest;
    });
}

int set_length(const Directory& directory, std::int64_t bytes, bool grow) {
    if (bytes > INT64_MAX - directory.data_begin()) return EFBIG;
    const std::int64_t wanted = directory.data_begin() + bytes;
    for (std::int64_t group = 0; group < (grow ? 1 : directory.shape.count); ++group) {
        const auto file = open_data(directory, group, O_WRONLY);
        if (!file) return file.error().number;
        if (grow ? file.value().bytes() >= wanted : file.value().bytes() <= wanted) continue;
        if (::ftruncate(file.value().descriptor(), wanted) != 0) return errno;
    }
    return 0;
}

}  // namespace ioweir::container
