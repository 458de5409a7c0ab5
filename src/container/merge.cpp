#include "container/merge.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/size_text.hpp"

namespace ioweir::container {
namespace {

constexpr std::int64_t copy_bytes = 4 << 20;

struct Whole {
    Stub stub;
    Directory directory;
    Indexes indexes;
    std::int64_t length = 0;
};

Result<Whole> load(const std::string& path) {
    auto stub = read_stub(path);
    if (!stub) return stub.error();
    if (!stub.value())
        return Error{"not an ioweir container", path,
                     "name the file that the program wrote, not the directory beside it"};
    Whole whole;
    whole.stub = *stub.take();
    whole.directory = directory_of(path, whole.stub);
    auto indexes = read_indexes(whole.directory);
    if (!indexes) return indexes.error();
    whole.indexes = indexes.take();
    auto bytes = length(whole.directory);
    if (!bytes) return bytes.error();
    whole.length = bytes.value();
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

/// Of a stub, so that one process at a time makes it an ordinary file. Where the file system has no locks, a second one meets the first
/// one's new file instead.
class StubLock {
public:
    explicit StubLock(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        int result = -1;
        do {
            result = descriptor_ >= 0 ? ::flock(descriptor_, LOCK_EX) : -1;
        } while (result != 0 && descriptor_ >= 0 && errno == EINTR);
        held_ = result == 0;
    }
    ~StubLock() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    StubLock(const StubLock&) = delete;
    StubLock& operator=(const StubLock&) = delete;
    [[nodiscard]] bool held() const { return held_; }

private:
    int descriptor_;
    bool held_ = false;
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

Error cannot(const std::string& what, const std::string& path, int error, int* number) {
    if (number != nullptr) *number = error;
    return {"cannot " + what, path + ": " + std::strerror(error), "nothing was changed"};
}

/// Where a file that takes the place of its stub is written.
std::string place_of_whole(const Directory& directory) { return directory.path + "/whole"; }

/// The bytes of one group into the new file.
Result<bool> copy_group(storage::Backend& backend, const std::string& from, const Segments& segments,
                        std::int32_t group, const NewFile& to, std::vector<char>& buffer, int* number) {
    const storage::Opened data = backend.open(from.c_str(), O_RDONLY);
    if (data.descriptor < 0) return cannot("open", from, data.error, number);
    Error problem;
    for (const Segment& segment : segments) {
        for (std::int64_t done = 0; segment.source == group && done < segment.logical.length;) {
            const std::int64_t bytes = std::min(segment.logical.length - done, copy_bytes);
            const auto got = backend.read_at(data.descriptor, buffer.data(), bytes, segment.place + done);
            if (got.error != 0 || got.bytes < bytes) {
                problem = cannot("read", from, got.error != 0 ? got.error : ENODATA, number);
                break;
            }
            const auto put = backend.write_at(to.descriptor(), buffer.data(), bytes, segment.logical.offset + done);
            if (put.error != 0) {
                problem = cannot("write", to.path(), put.error, number);
                break;
            }
            done += bytes;
        }
        if (!problem.what.empty()) break;
    }
    backend.close(data.descriptor);
    if (!problem.what.empty()) return problem;
    return true;
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
    description.open = whole.indexes.open;
    description.problems = whole.indexes.torn;
    for (const std::uint32_t generation : whole.indexes.open) {
        description.problems.push_back(
            "writing was begun and not ended (generation " + std::to_string(generation) +
            "): a job still writes, or has died; what it wrote after its last sync is not there");
    }
    const Segments segments = replay(std::move(whole.indexes.batches));
    description.segments = std::ssize(segments);
    description.group_bytes.assign(static_cast<std::size_t>(whole.directory.groups), 0);
    std::vector<std::int64_t> needed(description.group_bytes);
    for (const Segment& segment : segments) {
        const auto group = static_cast<std::size_t>(segment.source);
        description.held_bytes += segment.logical.length;
        description.group_bytes[group] += segment.logical.length;
        needed[group] = std::max(needed[group], segment.place + segment.logical.length);
    }
    for (std::size_t group = 0; group < needed.size(); ++group) {
        const std::string data = whole.directory.data(static_cast<std::int64_t>(group));
        struct stat info{};
        if (::stat(data.c_str(), &info) != 0 || info.st_size < needed[group])
            description.problems.push_back(data + " is shorter than its indexes say");
    }
    return description;
}

Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output, int* number) {
    if (number != nullptr) *number = EIO;
    std::optional<StubLock> lock;
    if (is_same_file(path, output)) lock.emplace(path);
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    struct stat stub{}, there{};
    if (::stat(path.c_str(), &stub) != 0) return cannot("read", path, errno, number);
    const bool exists = ::stat(output.c_str(), &there) == 0;
    const bool replaces = exists && there.st_dev == stub.st_dev && there.st_ino == stub.st_ino;
    if (exists && !replaces) return Error{"the output exists", output, "remove it, or name another"};
    if (replaces && !whole.indexes.open.empty())
        return Error{"the container was not closed", path,
                     "a job still writes it, or has died; to keep what is there, name an output, look at it, and "
                     "remove the container"};
    if (replaces && stub.st_nlink > 1)
        return Error{"the container has several names (hard links)", path,
                     "the others would be left without their bytes; name an output"};
    const Segments segments = replay(std::move(whole.indexes.batches));
    // With the lock nobody else is at it, and what somebody has left who has died is written over.
    const bool alone = replaces && lock && lock->held();
    NewFile made(backend, alone ? place_of_whole(whole.directory) : output + ".ioweir-" + whole.stub.id.substr(0, 8),
                 stub.st_mode & 0777, alone ? O_TRUNC : O_EXCL);
    if (made.error() != 0) return cannot("make", made.path(), made.error(), number);
    std::vector<char> buffer(static_cast<std::size_t>(copy_bytes));
    for (std::int64_t group = 0; group < whole.directory.groups; ++group) {
        const auto copied = copy_group(backend, whole.directory.data(group), segments, static_cast<std::int32_t>(group),
                                       made, buffer, number);
        if (!copied) return copied.error();
    }
    if (::ftruncate(made.descriptor(), whole.length) != 0) return cannot("write", made.path(), errno, number);
    if (::fsync(made.descriptor()) != 0) return cannot("write", made.path(), errno, number);
    if (const int error = made.keep_as(output); error != 0) return cannot("rename", made.path(), error, number);
    if (replaces) {
        // The bytes are removed only when nothing can bring the stub back.
        int error = flush_names(output);
        if (error == 0) error = remove(whole.directory);
        if (error != 0)
            return Error{"the file is merged, but its container is still there",
                         whole.directory.path + ": " + std::strerror(error), "remove that directory"};
    }
    return whole.length;
}

std::uint64_t inode_to_be(const std::string& path) {
    const auto stub = read_stub(path);
    struct stat status{};
    if (!stub || !stub.value() || ::stat(path.c_str(), &status) != 0) return 0;
    const std::string whole = place_of_whole(directory_of(path, *stub.value()));
    const int descriptor = ::open(whole.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, status.st_mode & 0777);
    if (descriptor < 0) return 0;
    const bool known = ::fstat(descriptor, &status) == 0;
    ::close(descriptor);
    return known ? status.st_ino : 0;
}

Refused make_ordinary(storage::Backend& backend, const std::string& path, std::int64_t most_bytes) {
    const auto is_ordinary = [&] {
        const auto stub = read_stub(path);
        return stub.ok() && !stub.value();
    };
    // Somebody else may have made it one meanwhile.
    const auto refuse = [&](int error, const std::string& why) {
        return is_ordinary() ? Refused{} : Refused{error, why};
    };
    const auto stub = read_stub(path);
    if (!stub) return {EIO, stub.error().message()};
    if (!stub.value()) return {};
    const Directory directory = directory_of(path, *stub.value());
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
    const auto merged = merge(backend, path, path, &number);
    return merged ? Refused{} : refuse(number, merged.error().message());
}

}  // namespace ioweir::container
