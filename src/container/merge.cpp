#include "container/merge.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/size_text.hpp"
#include "container/data_files.hpp"
#include "container/data_header.hpp"
#include "container/generations.hpp"
#include "container/locks.hpp"
#include "container/map.hpp"
#include "container/subfiles.hpp"

namespace ioweir::container {
namespace {

constexpr std::int64_t copy_bytes = 4 << 20;

struct Whole {
    Stub stub;
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
    auto stub = read_stub(path);
    if (!stub) return stub.error();
    if (!stub.value()) {
        struct stat about{};
        const bool is_file = ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
        return Error{"not an ioweir container", path,
                     is_file ? "it is an ordinary file, in one piece"
                             : "name the file that the program wrote, not the directory beside it"};
    }
    Whole whole;
    whole.stub = *stub.take();
    whole.directory = directory_of(path, whole.stub);
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

/// Closes its descriptors, and removes the file unless it was kept.
class NewFile {
public:
    /// `flags`: O_EXCL or O_TRUNC.
    NewFile(storage::Backend& backend, std::string path, mode_t mode, int flags)
        : backend_(backend),
          path_(std::move(path)),
          opened_(backend.open(path_.c_str(), O_WRONLY | O_CREAT | flags, mode)) {}
    ~NewFile() {
        if (opened_.descriptor >= 0) backend_.close(opened_.descriptor);
        if (opened_.descriptor >= 0 && !kept_) ::unlink(path_.c_str());
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    [[nodiscard]] int descriptor() const { return opened_.descriptor; }
    [[nodiscard]] int error() const { return opened_.error; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// Under its final name from now on. An errno value.
    int keep_as(const std::string& name) {
        if (::rename(path_.c_str(), name.c_str()) != 0) return errno;
        kept_ = true;
        return 0;
    }

private:
    storage::Backend& backend_;
    std::string path_;
    storage::Opened opened_;
    bool kept_ = false;
};

bool is_same_file(const std::string& one, const std::string& other) {
    struct stat first{}, second{};
    return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/// Names in the directory of a file are on the disk. An errno value.
int flush_names(const std::string& file) {
    const std::size_t slash = file.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int error = ::fsync(descriptor) != 0 ? errno : 0;
    ::close(descriptor);
    return error == EINVAL ? 0 : error;  // not every file system has that
}

Error cannot(const std::string& what, const std::string& path, int error, int* number = nullptr) {
    if (number != nullptr) *number = error;
    return {"cannot " + what, path + ": " + std::strerror(error), "nothing was changed"};
}

/// Where a file that takes the place of its stub is written.
std::string place_of_whole(const Directory& directory) { return directory.path + "/whole"; }

/// The bytes of a subfile that are no hole, by stripes.
int visit_subfile(const Whole& whole, std::int64_t number, FunctionRef<void(const Segment&)> visitor) {
    const int descriptor = ::open(whole.subfiles.path(number).c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const std::int64_t stripe_bytes = whole.subfiles.stripe_bytes;
    off_t at = subfile_header_bytes;
    int error = 0;
    for (;;) {
        const off_t begin = ::lseek(descriptor, at, SEEK_DATA);
        const off_t end = begin < 0 ? begin : ::lseek(descriptor, begin, SEEK_HOLE);
        if (end < 0) {
            error = errno == ENXIO ? 0 : errno;  // nothing but holes is left
            break;
        }
        for (at = begin; at < end;) {
            const std::int64_t place = at - subfile_header_bytes;
            const std::int64_t bytes = std::min<std::int64_t>(end - at, stripe_bytes - place % stripe_bytes);
            visitor({{whole.subfiles.reach_of(number, place + 1) - 1, bytes}, at, number});
            at += bytes;
        }
    }
    ::close(descriptor);
    return error;
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
          files_(
              backend, [this](std::int64_t source) { return whole_.part(source); }, O_RDONLY),
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
            problem_ = cannot("open", from, data.error, &number_);
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
    const std::string path = whole.directory.path + "/about";
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return path + ": " + std::strerror(errno);
    const std::string wanted = to_text(whole.stub);
    std::string text(wanted.size(), '\0');
    ssize_t got = 0;
    do {
        got = ::pread(descriptor, text.data(), text.size(), 0);
    } while (got < 0 && errno == EINTR);
    ::close(descriptor);
    return got == std::ssize(wanted) && text == wanted ? "" : path + ": it is not this container's";
}

}  // namespace

Result<Description> describe(const std::string& path) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    Description description;
    description.stub = whole.stub;
    description.directory = whole.directory.path;
    description.bytes = whole.length;
    description.open = whole.open;
    description.problems = whole.torn;
    for (const std::uint32_t generation : whole.open) {
        description.problems.push_back(
            "writing was begun and not ended (generation " + std::to_string(generation) +
            "): a job still writes, or has died; what it wrote after its last sync is not there");
    }
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

namespace {

/// merge(); `alone`: with the stub's lock, in its place.
Result<std::int64_t> merge_now(storage::Backend& backend, const std::string& path, const std::string& output,
                               bool alone, int* number) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    struct stat stub{}, there{};
    if (::stat(path.c_str(), &stub) != 0) return cannot("read", path, errno, number);
    const bool exists = ::stat(output.c_str(), &there) == 0;
    const bool replaces = exists && there.st_dev == stub.st_dev && there.st_ino == stub.st_ino;
    if (exists && !replaces) return Error{"the output exists", output, "remove it, or name another"};
    if (replaces && !whole.open.empty())
        return Error{"the container was not closed", path,
                     "a job still writes it, or has died; to keep what is there, name an output, look at it, and "
                     "remove the container"};
    if (replaces && stub.st_nlink > 1)
        return Error{"the container has several names (hard links)", path,
                     "the others would be left without their bytes; name an output"};
    // With the lock nobody else is at it, and what somebody has left who has died is written over.
    NewFile made(backend,
                 replaces && alone ? place_of_whole(whole.directory) : output + ".ioweir-" + whole.stub.id.substr(0, 8),
                 stub.st_mode & 0777, replaces && alone ? O_TRUNC : O_EXCL);
    if (made.error() != 0) return cannot("make", made.path(), made.error(), number);
    Copier copier(backend, whole, made);
    const auto copy = [&](const Segment& segment) { copier.add(segment); };
    if (const int error = visit_bytes(whole, copy); error != 0)
        return cannot("read", whole.directory.path, error, number);
    if (const auto problem = copier.finish(number)) return *problem;
    if (::ftruncate(made.descriptor(), whole.length) != 0) return cannot("write", made.path(), errno, number);
    if (::fsync(made.descriptor()) != 0) return cannot("write", made.path(), errno, number);
    // Programs without ioweir know no locks.
    if (replaces && (::stat(output.c_str(), &there) != 0 || there.st_ino != stub.st_ino))
        return cannot("replace", output, ENOENT, number);
    if (const int error = made.keep_as(output); error != 0) return cannot("rename", made.path(), error, number);
    if (replaces) {
        // The bytes are removed only when nothing can bring the stub back.
        int error = flush_names(output);
        whole.hold = DirectoryHold();
        if (error == 0) error = let_go(whole.directory);
        if (error != 0)
            return Error{"the file is merged, but its container is still there",
                         whole.directory.path + ": " + std::strerror(error), "remove that directory"};
    }
    return whole.length;
}

}  // namespace

Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output, int* number) {
    if (number != nullptr) *number = EIO;
    if (!is_same_file(path, output)) return merge_now(backend, path, output, false, number);
    auto lock = StubLock::take(path, StubLock::Kind::exclusive);
    if (!lock) return lock.error();
    return merge_now(backend, path, output, lock.value().held(), number);
}

namespace {

/// The file that is to take the stub's place: as it is, or made.
std::uint64_t inode_of_whole(const std::string& path, const Directory& directory, int flags) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return 0;
    const int descriptor =
        ::open(place_of_whole(directory).c_str(), O_WRONLY | O_CLOEXEC | flags, status.st_mode & 0777);
    if (descriptor < 0) return 0;
    const bool known = ::fstat(descriptor, &status) == 0;
    ::close(descriptor);
    return known ? status.st_ino : 0;
}

}  // namespace

std::optional<Answer> ask(const std::string& path) {
    constexpr int most_tries = 1000;
    for (int tries = 0;; ++tries) {
        auto taken = StubLock::take(path, StubLock::Kind::shared, false);
        if (!taken || !taken.value().stub()) return std::nullopt;
        const StubLock lock = taken.take();
        const Directory directory = directory_of(path, *lock.stub());
        const auto bytes = length(directory);
        if (!lock.busy()) {
            if (!bytes) return std::nullopt;
            return Answer{bytes.value(), inode_of_whole(path, directory, O_CREAT)};
        }
        // Somebody puts it together, moves it or removes it, and may have done so by now.
        const std::uint64_t inode = inode_of_whole(path, directory, 0);
        const auto still = read_stub(path);
        const bool same = still && still.value() == lock.stub();
        if (same && bytes && (inode != 0 || tries >= most_tries)) return Answer{bytes.value(), inode};
        if (same && tries >= most_tries) return std::nullopt;
        if (same) ::usleep(1000);
    }
}

Refused make_ordinary(storage::Backend& backend, const std::string& path, std::int64_t most_bytes) {
    auto taken = StubLock::take(path, StubLock::Kind::exclusive);
    if (!taken) return {EIO, taken.error().message()};
    const StubLock lock = taken.take();
    if (!lock.stub()) return {};
    // Without locks somebody else may have made it one meanwhile.
    const auto refuse = [&](int error, const std::string& why) {
        const auto stub = read_stub(path);
        const bool ordinary = !lock.held() && stub.ok() && !stub.value();
        return ordinary ? Refused{} : Refused{error, why};
    };
    const Directory directory = directory_of(path, *lock.stub());
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
