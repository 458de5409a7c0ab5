// Sees which names are header files, by their size and their first bytes, and calls the library that knows containers.
// Free of the C++ library, as all of the preload. What happens to containers: container_host.cpp.
#include "preload/named_files.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "container/files/header_file.hpp"
#include "preload/container_calls.hpp"
#include "preload/real_symbols.hpp"
#include "tracer/ring/process.hpp"
#include "tracer/ring/scratch.hpp"

namespace ioweir::preload {
namespace {

using tracer::KeepErrno;
using tracer::NameCall;
using tracer::NameUse;
using tracer::process_tracer;
using tracer::Scratch;
using tracer::thread_stream;

std::int64_t merge_limit = 0;

// --------------------------------------------------------------------------------------------------- the library

/// Null when it cannot be had; said once.
const ContainerCalls* open_library() {
    Dl_info self{};
    ::dladdr(reinterpret_cast<void*>(&watch_named_files), &self);
    char path[4096];
    const char* const slash = self.dli_fname != nullptr ? std::strrchr(self.dli_fname, '/') : nullptr;
    const int directory = slash != nullptr ? static_cast<int>(slash - self.dli_fname + 1) : 0;
    std::snprintf(path, sizeof path, "%.*slibioweir_container.so", directory, self.dli_fname);
    void* const handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        tracer::complain("files in several cannot be read as one: cannot open", path, 0);
        return nullptr;
    }
    const auto give = reinterpret_cast<GiveContainerCalls>(real_dlsym()(handle, give_container_calls_name));
    const ContainerCalls* const calls = give != nullptr ? give() : nullptr;
    if (calls != nullptr && calls->version == container_calls_version) return calls;
    tracer::complain("files in several cannot be read as one: another version than the preload:", path, 0);
    return nullptr;
}

const ContainerCalls* library() {
    static const ContainerCalls* calls = nullptr;
    const ContainerCalls* known = __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
    if (known != nullptr) return known;
    known = open_library();  // the same, whichever thread is first
    __atomic_store_n(&calls, known, __ATOMIC_RELEASE);
    return known;
}

/// Room for an error's words, and saying them.
class Complaint {
public:
    [[nodiscard]] Words words() { return {text_ + lead, sizeof text_ - lead - 1}; }
    void say() {
        std::memcpy(text_, "ioweir: ", lead);
        std::size_t length = lead + ::strnlen(text_ + lead, sizeof text_ - lead - 1);
        if (process_tracer.active)
            process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::message), "", 0, text_ + lead);
        text_[length++] = '\n';
        say_line({text_, length});
    }

private:
    static constexpr std::size_t lead = 8;
    char text_[1024] = {};
};

// ------------------------------------------------------------------------------------------------- is it a header file?

/// Whose call is it? The engine's and, beneath the engine, the MPI library's mean the header file itself.
bool means_the_header_file() {
    if (thread_stream.depth == 0) [[likely]]
        return false;
    const format::Origin origin = tracer::context_of(thread_stream, __builtin_frame_address(0)).origin;
    return origin == format::Origin::engine || (origin == format::Origin::mpi_library && process_tracer.has_engine);
}

bool may_be_header_file(const struct stat& status) {
    return S_ISREG(status.st_mode) && status.st_size >= container::least_header_file_bytes &&
           status.st_size <= container::most_header_file_bytes;
}

/// Something has cut it, if it is one. Only opens look at such files: an ordinary one costs them a pread.
bool may_be_cut_header_file(const struct stat& status) {
    return S_ISREG(status.st_mode) && status.st_size < container::least_header_file_bytes &&
           status.st_size >= static_cast<off_t>(container::header_file_beginning.size());
}

enum class Beginning { header_file, other, unreadable };
Beginning beginning_of(int fd) {
    char text[container::header_file_beginning.size()];
    if (raw::pread(fd, text, sizeof text, 0) != static_cast<ssize_t>(sizeof text)) return Beginning::unreadable;
    return std::memcmp(text, container::header_file_beginning.data(), sizeof text) == 0 ? Beginning::header_file
                                                                                        : Beginning::other;
}

/// By a descriptor that this process has of the file already, other than `except`: -1 when it has none.
/// Opening and closing it again would drop the program's fcntl locks on the file.
int open_elsewhere(const struct stat& wanted, int except, Beginning& beginning) {
    const int list = raw::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (list < 0) return -1;
    alignas(8) char buffer[1024];
    int found = -1;
    raw::each_entry(list, buffer, [&](const char* name) {
        if (name[0] < '0' || name[0] > '9') return true;
        const int fd = std::atoi(name);
        struct stat status{};
        if (fd == list || fd == except || raw::fstat(fd, &status) != 0 || status.st_dev != wanted.st_dev ||
            status.st_ino != wanted.st_ino)
            return true;
        found = fd;
        beginning = beginning_of(fd);
        return beginning == Beginning::unreadable;
    });
    raw::close(list);
    return found;
}

bool is_same(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool status_of(int directory, const char* path, int flags, struct stat& status) {
    return raw::call(SYS_newfstatat, directory, raw::word(path), raw::word(&status), flags) == 0;
}

/// What is at a name whose file is as `status` says. `path` relative to `directory`; `except`: a descriptor of it that cannot be read.
enum class There { header_file, other, changed };
There look_at(const struct stat& status, int directory, const char* path, int except) {
    if (!may_be_header_file(status)) return There::other;
    Beginning beginning = Beginning::unreadable;
    if (open_elsewhere(status, except, beginning) >= 0)
        return beginning == Beginning::header_file ? There::header_file : There::other;
    const int fd = raw::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT ? There::changed : There::other;  // who may not read it finds out by its own call
    struct stat now{};
    beginning = beginning_of(fd);
    const bool same = raw::fstat(fd, &now) == 0 && is_same(now, status);
    raw::close(fd);
    if (!same) return There::changed;
    return beginning == Beginning::header_file ? There::header_file : There::other;
}

bool header_file_at(int directory, const char* path, bool follows) {
    struct stat status{};
    if (path == nullptr) return false;
    for (int tries = 0; tries < tracer::NamedFiles::most_tries; ++tries) {
        if (!status_of(directory, path, follows ? 0 : AT_SYMLINK_NOFOLLOW, status)) return false;
        const There there = look_at(status, directory, path, -1);
        if (there != There::changed) return there == There::header_file;
    }
    return false;
}

/// The name that the kernel gives an open file. False when it has none.
bool name_of(int fd, char* out) {
    char link[40];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const long length = raw::call(SYS_readlinkat, AT_FDCWD, raw::word(link), raw::word(out), Scratch::path_bytes - 1);
    if (length <= 0 || out[0] != '/') return false;
    out[length] = '\0';
    return true;
}

/// Absolute and without symbolic links. `flags`: of open(2), besides O_PATH.
bool real_path(int directory, const char* path, int flags, char* out) {
    const int fd = raw::openat(directory, path, O_PATH | O_CLOEXEC | flags, 0);
    if (fd < 0) return false;
    const bool known = name_of(fd, out);
    raw::close(fd);
    return known;
}

/// The directory in which a name lies.
bool real_directory(int directory, const char* path, char* out) {
    const char* const slash = std::strrchr(path, '/');
    if (slash == nullptr) return real_path(directory, ".", O_DIRECTORY, out);
    char parent[Scratch::path_bytes];
    const std::size_t length = slash == path ? 1 : static_cast<std::size_t>(slash - path);
    if (length >= sizeof parent) return false;
    std::memcpy(parent, path, length);
    parent[length] = '\0';
    return real_path(directory, parent, O_DIRECTORY, out);
}

/// Is `path` in this directory itself? Both absolute.
bool lies_in(const char* path, const char* directory) {
    const std::size_t length = static_cast<std::size_t>(std::strrchr(path, '/') - path);
    if (length == 0) return std::strcmp(directory, "/") == 0;
    return std::strlen(directory) == length && std::strncmp(path, directory, length) == 0;
}

// ------------------------------------------------------------------------------------------------ around the calls

int make_ordinary(const ContainerCalls& calls, const char* path) {
    Complaint complaint;
    const int error = calls.make_ordinary(path, merge_limit, complaint.words());
    if (error != 0) complaint.say();
    return error;
}

/// What ends with the call; a rename may have the first three.
struct Pending {
    void* held = nullptr;
    void* moved = nullptr;
    void* replaced = nullptr;
    void* changed = nullptr;
};

int end(const ContainerCalls& calls, void* pending, bool happened) {
    if (pending == nullptr) return 0;
    Complaint complaint;
    const int error = calls.end(pending, happened, complaint.words());
    if (error != 0) complaint.say();
    return error;
}

bool same_file(int directory, const char* path, int other_directory, const char* other) {
    struct stat one{}, two{};
    return status_of(directory, path, AT_SYMLINK_NOFOLLOW, one) &&
           status_of(other_directory, other, AT_SYMLINK_NOFOLLOW, two) && is_same(one, two);
}

/// What is there is a container, or gets the place of one.
int before_rename(const NameCall& call, bool from_header_file, bool to_header_file, Pending& pending) {
    const ContainerCalls* const calls = library();
    if (calls == nullptr) return EIO;
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) return ENOMEM;
    char* const other = path + Scratch::path_bytes;
    if (same_file(call.directory, call.path, call.to_directory, call.to)) return 0;  // nothing happens
    Complaint complaint;
    if (from_header_file && real_path(call.directory, call.path, O_NOFOLLOW, path) &&
        real_directory(call.to_directory, call.to, other) && !lies_in(path, other)) {
        if (call.use == NameUse::exchange) {
            if (const int error = make_ordinary(*calls, path); error != 0) return error;
        } else if (const int error = calls->move(path, other, &pending.moved, complaint.words()); error != 0) {
            if (error != EMLINK) complaint.say();
            return error;
        }
    }
    if (!to_header_file || !real_path(call.to_directory, call.to, O_NOFOLLOW, path)) return 0;
    if (call.use == NameUse::exchange) {
        if (!real_directory(call.directory, call.path, other) || lies_in(path, other)) return 0;
        return make_ordinary(*calls, path);
    }
    const int error = calls->leave(path, false, &pending.replaced, complaint.words());
    if (error != 0) complaint.say();
    return error;
}

/// Nobody else makes ordinary files of what is at both names of a rename, removes or renames it.
int hold_both(const NameCall& call, Pending& pending) {
    const ContainerCalls* const calls = library();
    if (calls == nullptr) return EIO;
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) return ENOMEM;
    char* const other = path + Scratch::path_bytes;
    if (!real_path(call.directory, call.path, O_NOFOLLOW, path)) return 0;
    const bool both = real_path(call.to_directory, call.to, O_NOFOLLOW, other);
    pending.held = calls->hold(path, both ? other : nullptr);
    return 0;
}

int make_ordinary_at(int directory, const char* path) {
    const ContainerCalls* const calls = library();
    const Scratch scratch;
    if (calls == nullptr || scratch.text() == nullptr) return calls == nullptr ? EIO : ENOMEM;
    return real_path(directory, path, O_NOFOLLOW, scratch.text()) ? make_ordinary(*calls, scratch.text()) : 0;
}

int before_of_header_file(const NameCall& call, bool from_header_file, bool to_header_file, Pending& pending) {
    const tracer::Scope scope(thread_stream, tracer::Layer::engine, 0);
    if (call.use == NameUse::rename) {
        if (const int error = hold_both(call, pending); error != 0) return error;
        const int error = before_rename(call, from_header_file, to_header_file, pending);
        if (error != EMLINK) return error;
        // Its bytes stay for another header file: it takes a copy of them with it.
        if (pending.held != nullptr) library()->release(pending.held);
        pending.held = nullptr;
        if (const int failure = make_ordinary_at(call.directory, call.path); failure != 0) return failure;
        if (!to_header_file) return 0;
        if (const int failure = hold_both(call, pending); failure != 0) return failure;
        return before_rename(call, false, to_header_file, pending);
    }
    if (call.use == NameUse::exchange) {
        // What has to become an ordinary file does so before, and what still is a header file stays one.
        if (const int error = before_rename(call, from_header_file, to_header_file, pending); error != 0) return error;
        return hold_both(call, pending);
    }
    const ContainerCalls* const calls = library();
    if (calls == nullptr) return EIO;
    const Scratch scratch;
    char* const path = scratch.text();
    if (path == nullptr) return ENOMEM;
    if (!real_path(call.directory, call.path, call.use == NameUse::remove ? O_NOFOLLOW : 0, path)) return 0;
    if (call.use == NameUse::change) return make_ordinary(*calls, path);
    pending.held = calls->hold(path, nullptr);
    Complaint complaint;
    const int error = calls->leave(path, call.use == NameUse::empty, &pending.replaced, complaint.words());
    if (error != 0) complaint.say();
    return error;
}

void finish(const Pending& pending, bool succeeded) {
    const tracer::Scope scope(thread_stream, tracer::Layer::engine, 0);
    const ContainerCalls& calls = *library();
    (void)end(calls, pending.replaced, succeeded);
    (void)end(calls, pending.moved, succeeded);
    (void)end(calls, pending.changed, succeeded);
    if (pending.held != nullptr) calls.release(pending.held);
}

/// Given to the caller, who calls after(). 0 or an errno value.
int keep_pending(const Pending& pending, int error, void** out) {
    auto* const kept = static_cast<Pending*>(error == 0 ? std::malloc(sizeof(Pending)) : nullptr);
    if (kept == nullptr) {
        finish(pending, false);
        return error != 0 ? error : ENOMEM;
    }
    *kept = pending;
    *out = kept;
    return 0;
}

/// May the file have its bytes in several? One that cannot be read yet may.
bool may_have_parts(const struct stat& status, int directory, const char* path) {
    constexpr std::string_view netcdf = "CDF";
    if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(netcdf.size())) return false;
    Beginning beginning = Beginning::unreadable;
    const int known = open_elsewhere(status, -1, beginning);
    if (beginning == Beginning::header_file) return true;
    // One of a header file's size that is open for writing only may be one that a job writes.
    if (known >= 0 && beginning == Beginning::unreadable) return may_be_header_file(status);
    const int fd = known >= 0 ? known : raw::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    if (fd < 0) return true;
    char text[container::header_file_beginning.size()] = {};
    (void)raw::pread(fd, text, sizeof text, 0);
    if (known < 0) raw::close(fd);
    const std::string_view begin(text, sizeof text);
    return begin.starts_with(netcdf) || begin == container::header_file_beginning;
}

int before_access(const NameCall& call, void** out) {
    struct stat status{};
    if (!status_of(call.directory, call.path, call.follows ? 0 : AT_SYMLINK_NOFOLLOW, status) ||
        !may_have_parts(status, call.directory, call.path)) [[likely]]
        return 0;
    const tracer::Scope scope(thread_stream, tracer::Layer::engine, 0);
    const ContainerCalls* const calls = library();
    const Scratch scratch;
    // The call happens in any case: what it closes is closed.
    if (calls == nullptr || scratch.text() == nullptr) return 0;
    if (!real_path(call.directory, call.path, call.follows ? 0 : O_NOFOLLOW, scratch.text())) return 0;
    Pending pending;
    Complaint complaint;
    if (calls->change_access(scratch.text(), &pending.changed, complaint.words()) != 0) complaint.say();
    if (pending.changed != nullptr) (void)keep_pending(pending, 0, out);
    return 0;
}

int before(const NameCall& call, void** out) {
    if (means_the_header_file()) return 0;
    if (call.use == NameUse::access) return before_access(call, out);
    const bool renames = call.use == NameUse::rename || call.use == NameUse::exchange;
    const bool from_header_file = header_file_at(call.directory, call.path, !renames && call.use != NameUse::remove);
    const bool to_header_file = renames && header_file_at(call.to_directory, call.to, false);
    if (!from_header_file && !to_header_file) [[likely]]
        return 0;
    Pending pending;
    const int error = before_of_header_file(call, from_header_file, to_header_file, pending);
    if (pending.held == nullptr && pending.moved == nullptr && pending.replaced == nullptr) return error;
    return keep_pending(pending, error, out);
}

void after(void* pending, bool succeeded) {
    auto* const kept = static_cast<Pending*>(pending);
    finish(*kept, succeeded);
    std::free(kept);
}

/// The descriptor becomes one of what is at the path now. 0, an errno value, or again where that is another header file or nothing.
int reopen(int fd, const char* path, int flags) {
    const long descriptor_flags = raw::fcntl(fd, F_GETFD, nullptr);
    const int close_on_exec = descriptor_flags > 0 && (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    const int now = raw::openat(AT_FDCWD, path, (flags & ~(O_CREAT | O_EXCL)) | close_on_exec, 0);
    if (now < 0) return errno == ENOENT ? tracer::NamedFiles::again : errno;
    struct stat status{};
    if (raw::fstat(now, &status) == 0 && look_at(status, AT_FDCWD, path, now) != There::other) {
        raw::close(now);
        return tracer::NamedFiles::again;
    }
    if ((flags & O_APPEND) != 0) raw::lseek(now, 0, SEEK_END);  // where a stream's opening has gone
    const int error = raw::dup3(now, fd, close_on_exec) < 0 ? errno : 0;
    raw::close(now);
    return error;
}

/// Does the name still stand for this file?
bool is_at(const char* path, const struct stat& status) {
    struct stat now{};
    return status_of(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, now) && is_same(now, status);
}

int opened(int fd) {
    struct stat status{};
    if (raw::fstat(fd, &status) != 0) return 0;
    const bool cut = may_be_cut_header_file(status);
    if (!cut && !may_be_header_file(status)) [[likely]]
        return 0;
    if (means_the_header_file()) return 0;
    // Who cannot read a cut one gets no wrong bytes.
    if (cut && beginning_of(fd) != Beginning::header_file) [[likely]]
        return 0;
    const int flags = raw::fcntl(fd, F_GETFL, nullptr);
    char link[40];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const bool header_file = (flags & O_ACCMODE) == O_WRONLY ? look_at(status, AT_FDCWD, link, fd) == There::header_file
                                                             : beginning_of(fd) == Beginning::header_file;
    if (!header_file) return 0;
    const tracer::Scope scope(thread_stream, tracer::Layer::engine, 0);
    const ContainerCalls* const calls = library();
    const Scratch scratch;
    char* const path = scratch.text();
    if (calls == nullptr || path == nullptr) return EIO;
    // Of a file that somebody has replaced, moved or removed since it was opened, the kernel says "/its/name (deleted)", or another name.
    if (!name_of(fd, path) || !is_at(path, status)) return tracer::NamedFiles::again;
    Complaint complaint;
    const int error = calls->make_ordinary(path, merge_limit, complaint.words());
    // The same file still: it has been emptied, or is only a copy of a header file's text.
    if (error == 0) return is_at(path, status) ? 0 : reopen(fd, path, flags);
    if (!is_at(path, status)) return tracer::NamedFiles::again;
    complaint.say();
    return error;
}

bool asked(int directory, const char* path, tracer::NameAnswer& answer) {
    constexpr std::int64_t block_bytes = 512;
    if (means_the_header_file()) return true;
    struct stat status{};
    const auto is_current = [&] {
        return status_of(directory, path, 0, status) && status.st_ino == answer.inode && status.st_size == answer.bytes;
    };
    if (!is_current()) return false;
    const There there = look_at(status, directory, path, -1);
    if (there != There::header_file) return there == There::other;
    const tracer::Scope scope(thread_stream, tracer::Layer::engine, 0);
    const ContainerCalls* const calls = library();
    const Scratch scratch;
    if (calls == nullptr || scratch.text() == nullptr) return true;
    if (!real_path(directory, path, 0, scratch.text())) return false;
    std::int64_t bytes = 0;
    std::uint64_t inode = 0;
    if (!calls->ask(scratch.text(), bytes, inode)) return is_current();
    // cp and others look whether the file that they have opened is the one that they have asked about.
    answer = {bytes, (bytes + block_bytes - 1) / block_bytes, inode != 0 ? inode : answer.inode};
    return true;
}

constexpr tracer::NamedFiles named_files{
    container::least_header_file_bytes, container::most_header_file_bytes, before, after, opened, asked};

}  // namespace

void watch_named_files(std::uint64_t merge_limit_bytes) {
    merge_limit = static_cast<std::int64_t>(merge_limit_bytes);
    process_tracer.named_files = &named_files;
}

}  // namespace ioweir::preload
