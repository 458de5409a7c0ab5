#include "container/merge.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

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
    NewFile(storage::Backend& backend, std::string path, mode_t mode)
        : backend_(backend),
          path_(std::move(path)),
          opened_(backend.open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode)) {}
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

Error cannot(const std::string& what, const std::string& path, int error) {
    return {"cannot " + what, path + ": " + std::strerror(error), "nothing was changed"};
}

/// The bytes of one group into the new file.
Result<bool> copy_group(storage::Backend& backend, const std::string& from, const Segments& segments,
                        std::int32_t group, const NewFile& to, std::vector<char>& buffer) {
    const storage::Opened data = backend.open(from.c_str(), O_RDONLY);
    if (data.descriptor < 0) return cannot("open", from, data.error);
    Error problem;
    for (const Segment& segment : segments) {
        for (std::int64_t done = 0; segment.source == group && done < segment.logical.length;) {
            const std::int64_t bytes = std::min(segment.logical.length - done, copy_bytes);
            const auto got = backend.read_at(data.descriptor, buffer.data(), bytes, segment.place + done);
            if (got.error != 0 || got.bytes < bytes) {
                problem = cannot("read", from, got.error != 0 ? got.error : ENODATA);
                break;
            }
            const auto put = backend.write_at(to.descriptor(), buffer.data(), bytes, segment.logical.offset + done);
            if (put.error != 0) {
                problem = cannot("write", to.path(), put.error);
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

Result<std::int64_t> merge(storage::Backend& backend, const std::string& path, const std::string& output) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    Whole whole = loaded.take();
    struct stat stub{}, there{};
    if (::stat(path.c_str(), &stub) != 0) return cannot("read", path, errno);
    const bool exists = ::stat(output.c_str(), &there) == 0;
    const bool replaces = exists && there.st_dev == stub.st_dev && there.st_ino == stub.st_ino;
    if (exists && !replaces) return Error{"the output exists", output, "remove it, or name another"};
    if (replaces && !whole.indexes.open.empty())
        return Error{"the container was not closed", path,
                     "a job still writes it, or has died; to keep what is there, name an output, look at it, and "
                     "remove the container"};
    const Segments segments = replay(std::move(whole.indexes.batches));
    NewFile made(backend, output + ".ioweir-" + whole.stub.id.substr(0, 8), stub.st_mode & 0777);
    if (made.error() != 0) return cannot("make", made.path(), made.error());
    std::vector<char> buffer(static_cast<std::size_t>(copy_bytes));
    for (std::int64_t group = 0; group < whole.directory.groups; ++group) {
        const auto copied =
            copy_group(backend, whole.directory.data(group), segments, static_cast<std::int32_t>(group), made, buffer);
        if (!copied) return copied.error();
    }
    if (::ftruncate(made.descriptor(), whole.length) != 0) return cannot("write", made.path(), errno);
    if (::fsync(made.descriptor()) != 0) return cannot("write", made.path(), errno);
    if (const int error = made.keep_as(output); error != 0) return cannot("rename", made.path(), error);
    if (replaces) {
        if (const int error = remove(whole.directory); error != 0)
            return Error{"the file is merged, but its container is still there",
                         whole.directory.path + ": " + std::strerror(error), "remove that directory"};
    }
    return whole.length;
}

}  // namespace ioweir::container
