#include "container/merge.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/file_access.hpp"
#include "base/size_text.hpp"
#include "container/data_files.hpp"
#include "container/files/access.hpp"
#include "container/files/data_header.hpp"
#include "container/files/subfiles.hpp"
#include "container/index/map.hpp"
#include "container/sharing/generations.hpp"
#include "container/sharing/locks.hpp"
#include "container/sharing/replaced.hpp"

namespace ioweir::container {
namespace {

constexpr std::int64_t copy_bytes = 4 << 20;

struct Whole {
    HeaderFile header_file;
    Directory directory;
    DirectoryHold hold;  ///< its files stay until they are read
    std::vector<std::uint32_t> open;
    std::vector<std::string> torn;
    LogicalMap map;     ///< where there is an index
    Subfiles subfiles;  ///< where there is none
    std::int64_t length = 0;

    [[nodiscard]] std::string part(std::int64_t source) const {
        return directory.has_index() ? directory.data(source) : subfiles.path(source);
    }
    [[nodiscard]] Result<guarded::File> open_part(std::int64_t source) const {
        return directory.has_index() ? open_data(directory, source) : open_subfile(directory, subfiles, source);
    }
};

Result<Whole> load_subfiles(Whole whole) {
    auto generations = generations_in(whole.directory);
    if (!generations) return generations.error();
    whole.open = std::move(generations.value().open);
    auto subfiles = read_subfiles(whole.directory);
    if (!subfiles) return subfiles.error();
    whole.subfiles = subfiles.take();
    const auto problems = problems_of(whole.directory, whole.subfiles);
    if (!problems.empty())
        return Error{"a damaged ioweir container", problems.front(),
                     "was one of its files moved, shortened or written by something else?"};
    auto bytes = length(whole.directory, whole.subfiles);
    if (!bytes) return bytes.error();
    whole.length = bytes.value();
    return whole;
}

Result<Whole> load(const std::string& path) {
    auto header_file = read_header_file(path);
    if (!header_file) return header_file.error();
    if (!header_file.value()) {
        struct stat about{};
        const bool is_file = ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
        return Error{"not an ioweir container", path,
                     is_file ? "it is an ordinary file, in one piece"
                             : "name the file that the program wrote, not the directory beside it"};
    }
    Whole whole;
    whole.header_file = *header_file.take();
    whole.directory = directory_of(path, whole.header_file);
    whole.hold = DirectoryHold(whole.directory);
    if (!whole.directory.has_index()) return load_subfiles(std::move(whole));
    auto indexes = read_indexes(whole.directory);
    if (!indexes) return indexes.error();
    Indexes read = indexes.take();
    whole.open = std::move(read.open);
    whole.torn = std::move(read.torn);
    whole.map = std::move(read.map);
    whole.length = whole.map.length();
    if (!whole.directory.is_log()) {
        auto bytes = length(whole.directory);
        if (!bytes) return bytes.error();
        whole.length = bytes.value();
    }
    return whole;
}

/// A file that takes another's place when it is complete; removed unless it was kept.
class NewFile {
public:
    /// `folder` must outlive it.
    NewFile(storage::Backend& backend, const guarded::Folder& folder, std::string name, Result<guarded::File> opened)
        : backend_(backend), folder_(folder), name_(std::move(name)) {
        if (!opened) {
            error_ = opened.error();
            return;
        }
        file_ = opened.take();
        backend_.note_opened(file_.descriptor(), path().c_str());
    }
    ~NewFile() {
        if (file_.descriptor() < 0) return;
        backend_.close(file_.release());
        if (!kept_) (void)folder_.remove(name_);
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    [[nodiscard]] int descriptor() const { return file_.descriptor(); }
    /// Why there is none.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    [[nodiscard]] std::string path() const { return folder_.path_of(name_); }
    /// Under its final name from now on. An errno value.
    int keep_as(const guarded::Folder& folder, const std::string& name) {
        const int error = folder_.move(name_, folder, name);
        kept_ = error == 0;
        return error;
    }

private:
    storage::Backend& backend_;
    const guarded::Folder& folder_;
    const std::string name_;
    guarded::File file_;
    std::optional<Error> error_;
    bool kept_ = false;
};

bool is_same_file(const std::string& one, const std::string& other) {
    struct stat first{}, second{};
    return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

Error cannot(const std::string& what, const std::string& path, int error, int* number = nullptr) {
    if (number != nullptr) *number = error;
    return {"cannot " + what, path + ": " + std::strerror(error), "nothing was changed", error};
}

Error cannot(const std::string& what, const Error& why, int* number) {
    if (number != nullptr) *number = why.number != 0 ? why.number : EIO;
    return {"cannot " + what, why.value, "nothing was changed; " + why.remedy, why.number};
}

/// Where a file that takes the place of its header file is written, in the container's directory.
constexpr const char* whole_name = "whole";

/// With the header file's lock: what somebody has left who has died is written over, so that the file keeps the inode that programs have been
/// told (ask()). Anything but such a file makes room for a new one.
Result<guarded::File> open_whole(const guarded::Folder& folder) {
    auto file = folder.file(whole_name, O_WRONLY | O_CREAT | O_TRUNC);
    if (file) return file;
    if (const int error = folder.remove(whole_name); error != 0) return file;
    return folder.file(whole_name, O_WRONLY | O_CREAT | O_EXCL);
}

/// Of the header file that `status` is of; ESTALE where another file is there by now.
guarded::FoundAccess access_at(const std::string& path, const struct stat& status) {
    const int descriptor = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (descriptor < 0) return {errno};
    const guarded::File file(descriptor, status, path);
    struct stat now{};
    if (::fstat(descriptor, &now) != 0) return {errno};
    if (now.st_dev != status.st_dev || now.st_ino != status.st_ino) return {ESTALE};
    return guarded::access_of(descriptor);
}

/// The bytes of a subfile that are no hole, by stripes.
int visit_subfile(const Whole& whole, std::int64_t number, FunctionRef<void(const Segment&)> visitor) {
    const auto file = whole.open_part(number);
    if (!file) return file.error().number;
    const int descriptor = file.value().descriptor();
    const std::int64_t stripe_bytes = whole.subfiles.stripe_bytes;
    off_t at = subfile_header_bytes;
    for (;;) {
        const off_t begin = ::lseek(descriptor, at, SEEK_DATA);
        const off_t end = begin < 0 ? begin : ::lseek(descriptor, begin, SEEK_HOLE);
        if (end < 0) return errno == ENXIO ? 0 : errno;  // nothing but holes is left
        for (at = begin; at < end;) {
            const std::int64_t place = at - subfile_header_bytes;
            const std::int64_t bytes = std::min<std::int64_t>(end - at, stripe_bytes - place % stripe_bytes);
            visitor({{whole.subfiles.reach_of(number, place + 1) - 1, bytes}, at, number});
            at += bytes;
        }
    }
}

/// Everything that somebody wrote. An errno value.
int visit_bytes(const Whole& whole, FunctionRef<void(const Segment&)> visitor) {
    if (whole.directory.has_index()) {
        whole.map.visit(visitor);
        return 0;
    }
    for (std::int64_t number = 0; number < whole.subfiles.count(); ++number) {
        if (const int error = visit_subfile(whole, number, visitor); error != 0) return error;
    }
    return 0;
}

/// Copies bytes from where they lie into the new file, some at a time, so that each file is opened a few times only.
class Copier {
public:
    Copier(storage::Backend& backend, const Whole& whole, const NewFile& to)
        : backend_(backend),
          whole_(whole),
          to_(to),
          files_(backend, [this](std::int64_t source) { return whole_.open_part(source); }),
          buffer_(static_cast<std::size_t>(copy_bytes)) {}

    void add(const Segment& segment) {
        waiting_.push_back(segment);
        if (waiting_.size() == most_waiting) copy_all();
    }
    /// What went wrong, if anything did.
    [[nodiscard]] std::optional<Error> finish(int* number) {
        copy_all();
        if (problem_ && number != nullptr) *number = number_;
        return problem_;
    }

private:
    static constexpr std::size_t most_waiting = std::size_t{1} << 16;

    void copy_all() {
        std::sort(waiting_.begin(), waiting_.end(), [](const Segment& a, const Segment& b) {
            return a.source != b.source ? a.source < b.source : a.place < b.place;
        });
        for (const Segment& segment : waiting_) {
            if (!problem_) copy(segment);
        }
        waiting_.clear();
    }
    void copy(const Segment& segment) {
        const std::string from = whole_.part(segment.source);
        const DataFiles::Got data = files_.get(segment.source);
        if (!data.file) {
            number_ = data.error;
            problem_ = Error{"cannot open", data.why, "nothing was changed", data.error};
            return;
        }
        if (data.is_new && whole_.directory.has_index()) {
            const std::string why = why_not_data(whole_.directory, data.file->descriptor(), segment.source);
            if (!why.empty()) {
                files_.forget(segment.source);
                number_ = EIO;
                problem_ = Error{"a damaged part of an ioweir container", from + ": " + why,
                                 "was it moved, shortened or written by something else?"};
                return;
            }
        }
        for (std::int64_t done = 0; done < segment.logical.length;) {
            const std::int64_t bytes = std::min(segment.logical.length - done, copy_bytes);
            const auto got = backend_.read_at(data.file->descriptor(), buffer_.data(), bytes,
                                              whole_.directory.data_begin() + segment.place + done);
            if (got.error != 0 || got.bytes < bytes) {
                problem_ = cannot("read", from, got.error != 0 ? got.error : ENODATA, &number_);
                return;
            }
            const auto put = backend_.write_at(to_.descriptor(), buffer_.data(), bytes, segment.logical.offset + done);
            if (put.error != 0) {
                problem_ = cannot("write", to_.path(), put.error, &number_);
                return;
            }
            done += bytes;
        }
    }

    storage::Backend& backend_;
    const Whole& whole_;
    const NewFile& to_;
    DataFiles files_;
    std::vector<char> buffer_;
    std::vector<Segment> waiting_;
    std::optional<Error> problem_;
    int number_ = 0;  ///< an errno value
};

}  // namespace

namespace {

/// Whoever comes upon the directory alone, and `ioweir gc`, go by it.
std::string why_not_about(const Whole& whole) {
    const std::string path = whole.directory.path_of("about");
    const std::string wanted = to_text(whole.header_file);
    const auto folder = whole.directory.opened();
    if (!folder) return missing(path, folder.error()).value;
    const auto file = folder.value()->file("about");
    if (!file) return missing(path, file.error()).value;
    const auto text = file.value().read_part(0, std::ssize(wanted));
    return text && text.value() == wanted ? "" : path + ": it is not this container's";
}

}  // namespace

Result<Description> describe(const std::string& path) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    Description description;
    description.header_file = whole.header_file;
    description.directory = whole.directory.path;
    description.bytes = whole.length;
    description.open = whole.open;
    description.problems = whole.torn;
    for (const std::uint32_t generation : whole.open)
        description.problems.push_back(unfinished_text(whole.directory, generation, whole.length));
    struct Part {
        std::int64_t bytes = 0;
        std::int64_t needed = 0;  ///< length of its file
    };
    std::map<std::int64_t, Part> parts;
    if (whole.directory.shape.kind != Shape::Kind::log) {
        const std::int64_t all = whole.directory.has_index() ? whole.directory.shape.count : whole.subfiles.count();
        for (std::int64_t group = 0; group < all; ++group) parts[group] = {};
    }
    Segment last{{0, 0}, 0, -1};
    const auto count = [&](const Segment& segment) {
        const bool goes_on = last.source == segment.source && last.logical.end() == segment.logical.offset &&
                             last.place + last.logical.length == segment.place;
        if (!goes_on) ++description.segments;
        last = segment;
        description.held_bytes += segment.logical.length;
        Part& part = parts[segment.source];
        part.bytes += segment.logical.length;
        part.needed = std::max(part.needed, segment.place + segment.logical.length);
    };
    if (const int error = visit_bytes(whole, count); error != 0) return cannot("read", whole.directory.path, error);
    description.entries = whole.map.runs();
    for (const auto& [source, part] : parts) {
        description.part_bytes.push_back(part.bytes);
        description.part_paths.push_back(whole.part(source));
        if (!whole.directory.has_index()) continue;  // load() has looked at them
        const std::string why = why_not_whole(whole.directory, source, part.needed);
        if (!why.empty()) description.problems.push_back(why);
    }
    if (const std::string why = why_not_about(whole); !why.empty()) description.problems.push_back(why);
    return description;
}

std::vector<std::string> unfinished_of(const std::string& path) {
    std::vector<std::string> texts;
    const auto header_file = read_header_file(path);
    if (!header_file || !header_file.value()) return texts;
    const Directory directory = directory_of(path, *header_file.value());
    const auto open = open_generations(directory);
    if (!open || open.value().empty()) return texts;
    const auto bytes = length(directory);
    for (const std::uint32_t generation : open.value())
        texts.push_back(unfinished_text(directory, generation, bytes ? bytes.value() : 0));
    return texts;
}

namespace {

/// Why a container is not made an ordinary file in its place.
std::optional<Error> why_unfinished(const Whole& whole, const std::string& path, bool unfinished) {
    for (const std::uint32_t generation : whole.open) {
        if (life_of(whole.directory, generation) == Life::alive)
            return Error{"the container was not closed", path, "a job still writes it; wait until it is done"};
    }
    if (whole.open.empty() || unfinished) return std::nullopt;
    return Error{
        "the container was not closed", path,
        "a job still writes it, or has died (`ioweir check` says more): to keep what is there, name an output, or say "
        "--unfinished"};
}

/// merge(); `alone`: with the header file's lock, in its place.
Result<std::int64_t> merge_now(storage::Backend& backend, const std::string& path, const std::string& output,
                               bool alone, int* number, bool unfinished = false) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    struct stat header_file{}, there{};
    if (::stat(path.c_str(), &header_file) != 0) return cannot("read", path, errno, number);
    guarded::FoundAccess of_header_file = access_at(path, header_file);
    if (of_header_file.error != 0) return cannot("read", path, of_header_file.error, number);
    const bool exists = ::stat(output.c_str(), &there) == 0;
    const bool replaces = exists && there.st_dev == header_file.st_dev && there.st_ino == header_file.st_ino;
    if (exists && !replaces) return Error{"the output exists", output, "remove it, or name another"};
    if (replaces) {
        if (auto problem = why_unfinished(whole, path, unfinished)) return *problem;
    }
    if (replaces && header_file.st_nlink > 1)
        return Error{"the container has several names (hard links)", path,
                     "the others would be left without their bytes; name an output"};
    const auto inside = whole.directory.opened();
    if (!inside) return cannot("make", inside.error(), number);
    const auto beside = guarded::Folder::follow(guarded::folder_name_of(output));
    if (!beside) return cannot("make", beside.error(), number);
    const bool in_place = replaces && alone;
    const guarded::Folder& folder = in_place ? *inside.value() : beside.value();
    const std::string name =
        in_place ? whole_name : guarded::file_name_of(output) + ".ioweir-" + whole.header_file.id.substr(0, 8);
    NewFile made(backend, folder, name,
                 in_place ? open_whole(folder) : folder.file(name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (made.error()) return cannot("make", *made.error(), number);
    // A copy is its maker's. Before a byte is in it. Where it cannot have the group, or the ACL, it is less open than that.
    if (!replaces) of_header_file.access.owner = ::geteuid();
    (void)follow_header_file_at(path);
    (void)guarded::give_access(made.descriptor(), of_header_file.access);
    Copier copier(backend, whole, made);
    const auto copy = [&](const Segment& segment) { copier.add(segment); };
    if (const int error = visit_bytes(whole, copy); error != 0)
        return cannot("read", whole.directory.path, error, number);
    if (const auto problem = copier.finish(number)) return *problem;
    if (::ftruncate(made.descriptor(), whole.length) != 0) return cannot("write", made.path(), errno, number);
    if (::fsync(made.descriptor()) != 0) return cannot("write", made.path(), errno, number);
    // Programs without ioweir know no locks.
    if (replaces && (::stat(output.c_str(), &there) != 0 || there.st_ino != header_file.st_ino))
        return cannot("replace", output, ENOENT, number);
    if (const int error = made.keep_as(beside.value(), guarded::file_name_of(output)); error != 0)
        return cannot("rename", made.path(), error, number);
    if (replaces) {
        // The bytes are removed only when nothing can bring the header file back.
        int error = beside.value().make_durable();
        whole.hold = DirectoryHold();
        if (error == 0) error = let_go(whole.directory);
        if (error != 0)
            return Error{"the file is merged, but its container is still there",
                         whole.directory.path + ": " + why_left(error), "remove that directory"};
    }
    return whole.length;
}

}  // namespace

Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output, int* number,
                           bool unfinished) {
    if (number != nullptr) *number = EIO;
    if (!is_same_file(path, output)) return merge_now(backend, path, output, false, number);
    // What takes the header file's place must not take that of a link to it.
    struct stat own{};
    if (guarded::status_of_path(path, own) == 0 && S_ISLNK(own.st_mode)) {
        std::array<char, PATH_MAX> real{};
        if (::realpath(path.c_str(), real.data()) == nullptr) return cannot("find", path, errno, number);
        return merge(backend, real.data(), real.data(), number);
    }
    auto lock = HeaderFileLock::take(path, HeaderFileLock::Kind::exclusive);
    if (!lock) return lock.error();
    return merge_now(backend, path, output, lock.value().held(), number, unfinished);
}

namespace {

/// The file that is to take the header file's place: as it is, or made. 0: what is there is none.
std::uint64_t inode_of_whole(const std::string& path, const Directory& directory, int flags) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return 0;
    const auto folder = directory.opened();
    if (!folder) return 0;
    const auto file = folder.value()->file(whole_name, O_WRONLY | flags);
    return file ? file.value().status().st_ino : 0;
}

}  // namespace

std::optional<Answer> ask(const std::string& path) {
    constexpr int most_tries = 1000;
    for (int tries = 0;; ++tries) {
        auto taken = HeaderFileLock::take(path, HeaderFileLock::Kind::shared, false);
        if (!taken || !taken.value().header_file()) return std::nullopt;
        const HeaderFileLock lock = taken.take();
        const Directory directory = directory_of(path, *lock.header_file());
        const auto bytes = length(directory);
        if (!lock.busy()) {
            if (!bytes) return std::nullopt;
            return Answer{bytes.value(), inode_of_whole(path, directory, O_CREAT)};
        }
        // Somebody puts it together, moves it or removes it, and may have done so by now.
        const std::uint64_t inode = inode_of_whole(path, directory, 0);
        const auto still = read_header_file(path);
        const bool same = still && still.value() == lock.header_file();
        if (same && bytes && (inode != 0 || tries >= most_tries)) return Answer{bytes.value(), inode};
        if (same && tries >= most_tries) return std::nullopt;
        if (same) ::usleep(1000);
    }
}

Refused make_ordinary(storage::Backend& backend, const std::string& path, std::int64_t most_bytes) {
    auto taken = HeaderFileLock::take(path, HeaderFileLock::Kind::exclusive);
    if (!taken) return {taken.error().number == EAGAIN ? EAGAIN : EIO, taken.error().message()};
    const HeaderFileLock lock = taken.take();
    if (!lock.header_file()) return {};
    // Without locks somebody else may have made it one meanwhile.
    const auto refuse = [&](int error, const std::string& why) {
        const auto header_file = read_header_file(path);
        const bool ordinary = !lock.held() && header_file.ok() && !header_file.value();
        return ordinary ? Refused{} : Refused{error, why};
    };
    const Directory directory = directory_of(path, *lock.header_file());
    const auto open = open_generations(directory);
    if (!open) return refuse(EIO, open.error().message());
    if (!open.value().empty())
        return refuse(EBUSY, path +
                                 ": its bytes lie in several files, and a job still writes them, or has died; "
                                 "`ioweir check` says more, and `ioweir merge -o OTHER` keeps what is there");
    const auto bytes = length(directory);
    if (!bytes) return refuse(EIO, bytes.error().message());
    if (bytes.value() > most_bytes)
        return {EFBIG, path + ": its bytes lie in several files, and its " + rough_size_text(bytes.value()) +
                           " are more than are put together because a program opens it (" +
                           rough_size_text(most_bytes) + "); run `ioweir merge`, or set IOWEIR_MERGE_LIMIT"};
    int number = EIO;
    const auto merged = merge_now(backend, path, path, lock.held(), &number);
    return merged ? Refused{} : refuse(number, merged.error().message());
}

}  // namespace ioweir::container
