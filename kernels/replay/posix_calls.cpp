// POSIX and stdio calls, by the name that a trace gives them.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernels/replay/calls.hpp"

namespace ioweir::replay {
namespace {

using Arguments = const std::int64_t*;

int descriptor(Job& job, std::int64_t number) { return Job::at(job.descriptors, number, "descriptor"); }
std::FILE* stream(Job& job, std::int64_t number) {
    std::FILE* const found = Job::at(job.streams, number, "stream");
    if (found == nullptr) fail("stream " + std::to_string(number) + " is not open");
    return found;
}

void must(Job& job, bool good, const Call& call) {
    if (!good) job.note_failure(call.name, std::strerror(errno));
}
void moved(Job& job, std::int64_t result, std::int64_t asked, const Call& call) {
    if (result < 0) {
        job.note_failure(call.name, std::strerror(errno));
        return;
    }
    (call.counts == Counts::write ? job.written_bytes : job.read_bytes) += result;
    if (result < asked)
        job.note_failure(call.name, "moved " + std::to_string(result) + " of " + std::to_string(asked) + " bytes");
}
void* data(Job& job, std::int64_t bytes, const Call& call) { return job.bytes(bytes, call.counts == Counts::write); }

void open_file(Job& job, Arguments a, const Call& call) {  // D FILE FLAGS
    int& opened = Job::at(job.descriptors, a[0], "descriptor");
    const std::string path = job.path(a[1]);
    constexpr int allowed = O_ACCMODE | O_CREAT | O_TRUNC | O_EXCL | O_APPEND | O_DSYNC;
    opened = ::open(path.c_str(), (static_cast<int>(a[2]) & allowed) | O_CLOEXEC, 0666);
    must(job, opened >= 0, call);
}
void create_file(Job& job, Arguments a, const Call& call) {  // D FILE
    int& opened = Job::at(job.descriptors, a[0], "descriptor");
    opened = ::creat(job.path(a[1]).c_str(), 0666);
    must(job, opened >= 0, call);
}
void close_file(Job& job, Arguments a, const Call& call) {
    int& opened = Job::at(job.descriptors, a[0], "descriptor");
    must(job, ::close(opened) == 0, call);
    opened = -1;
}
/// D BYTES
template <auto function>
void transfer(Job& job, Arguments a, const Call& call) {
    moved(job, function(descriptor(job, a[0]), data(job, a[1], call), static_cast<std::size_t>(a[1])), a[1], call);
}
template <auto function>
void transfer_pieces(Job& job, Arguments a, const Call& call) {
    const iovec piece{data(job, a[1], call), static_cast<std::size_t>(a[1])};
    moved(job, function(descriptor(job, a[0]), &piece, 1), a[1], call);
}
/// D BYTES OFFSET
template <auto function>
void transfer_at(Job& job, Arguments a, const Call& call) {
    moved(job, function(descriptor(job, a[0]), data(job, a[1], call), static_cast<std::size_t>(a[1]), a[2]), a[1],
          call);
}
template <auto function>
void transfer_pieces_at(Job& job, Arguments a, const Call& call) {
    const iovec piece{data(job, a[1], call), static_cast<std::size_t>(a[1])};
    moved(job, function(descriptor(job, a[0]), &piece, 1, a[2]), a[1], call);
}
template <auto function>
void transfer_pieces_at2(Job& job, Arguments a, const Call& call) {
    const iovec piece{data(job, a[1], call), static_cast<std::size_t>(a[1])};
    moved(job, function(descriptor(job, a[0]), &piece, 1, a[2], 0), a[1], call);
}
/// D
template <auto function>
void plain(Job& job, Arguments a, const Call& call) {
    must(job, function(descriptor(job, a[0])) == 0, call);
}
void seek_file(Job& job, Arguments a, const Call& call) {  // D PLACE
    must(job, ::lseek(descriptor(job, a[0]), a[1], SEEK_SET) >= 0, call);
}
void set_size(Job& job, Arguments a, const Call& call) {  // D SIZE
    must(job, ::ftruncate(descriptor(job, a[0]), a[1]) == 0, call);
}
void allocate(Job& job, Arguments a, const Call& call) {  // D OFFSET LENGTH
    must(job, ::fallocate(descriptor(job, a[0]), 0, a[1], a[2]) == 0, call);
}
void allocate_portably(Job& job, Arguments a, const Call& call) {
    errno = ::posix_fallocate(descriptor(job, a[0]), a[1], a[2]);
    must(job, errno == 0, call);
}
void ask_status(Job& job, Arguments a, const Call& call) {
    struct stat answer{};
    must(job, ::fstat(descriptor(job, a[0]), &answer) == 0, call);
}
void ask_status_by_name(Job& job, Arguments a, const Call& call) {  // FILE
    struct stat answer{};
    must(job, ::stat(job.path(a[0]).c_str(), &answer) == 0, call);
}
void set_size_by_name(Job& job, Arguments a, const Call& call) {  // FILE SIZE
    must(job, ::truncate(job.path(a[0]).c_str(), a[1]) == 0, call);
}
void ask_access(Job& job, Arguments a, const Call& call) {
    must(job, ::access(job.path(a[0]).c_str(), F_OK) == 0, call);
}
void unlink_file(Job& job, Arguments a, const Call& call) { must(job, ::unlink(job.path(a[0]).c_str()) == 0, call); }
void remove_file(Job& job, Arguments a, const Call& call) { must(job, ::remove(job.path(a[0]).c_str()) == 0, call); }
void rename_file(Job& job, Arguments a, const Call& call) {  // FILE FILE
    must(job, ::rename(job.path(a[0]).c_str(), job.path(a[1]).c_str()) == 0, call);
}
void set_lock(Job& job, Arguments a, const Call& call, short kind) {  // D OFFSET LENGTH
    struct flock lock{};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = a[1];
    lock.l_len = a[2];
    must(job, ::fcntl(descriptor(job, a[0]), F_SETLKW, &lock) == 0, call);
}
void lock_part(Job& job, Arguments a, const Call& call) { set_lock(job, a, call, F_WRLCK); }
void unlock_part(Job& job, Arguments a, const Call& call) { set_lock(job, a, call, F_UNLCK); }
void lock_file(Job& job, Arguments a, const Call& call) {
    must(job, ::flock(descriptor(job, a[0]), LOCK_EX) == 0, call);
}
void unlock_file(Job& job, Arguments a, const Call& call) {
    must(job, ::flock(descriptor(job, a[0]), LOCK_UN) == 0, call);
}

void open_stream(Job& job, Arguments a, const Call& call) {  // S FILE MODE
    const char* const modes[] = {"r", "w", "a", "r+", "w+", "a+"};
    if (a[2] < 0 || a[2] > 5) fail("there is no mode " + std::to_string(a[2]));
    std::FILE*& opened = Job::at(job.streams, a[0], "stream");
    opened = std::fopen(job.path(a[1]).c_str(), modes[a[2]]);
    if (opened == nullptr) fail(std::string(call.name) + ": " + job.path(a[1]) + ": " + std::strerror(errno));
}
void close_stream(Job& job, Arguments a, const Call& call) {
    must(job, std::fclose(stream(job, a[0])) == 0, call);
    job.streams[static_cast<std::size_t>(a[0])] = nullptr;
}
void read_stream(Job& job, Arguments a, const Call& call) {  // S BYTES
    void* const memory = data(job, a[1], call);
    moved(job, static_cast<std::int64_t>(std::fread(memory, 1, static_cast<std::size_t>(a[1]), stream(job, a[0]))),
          a[1], call);
}
void write_stream(Job& job, Arguments a, const Call& call) {
    void* const memory = data(job, a[1], call);
    moved(job, static_cast<std::int64_t>(std::fwrite(memory, 1, static_cast<std::size_t>(a[1]), stream(job, a[0]))),
          a[1], call);
}
void seek_stream(Job& job, Arguments a, const Call& call) {  // S PLACE
    must(job, ::fseeko(stream(job, a[0]), a[1], SEEK_SET) == 0, call);
}
void flush_stream(Job& job, Arguments a, const Call& call) { must(job, std::fflush(stream(job, a[0])) == 0, call); }

constexpr Counts W = Counts::write, R = Counts::read, O = Counts::other;

const Call table[] = {
    {"open", 3, O, -1, -1, open_file},
    {"creat", 2, O, -1, -1, create_file},
    {"close", 1, O, -1, -1, close_file},
    {"read", 2, R, -1, 1, transfer<::read>},
    {"write", 2, W, -1, 1, transfer<::write>},
    {"readv", 2, R, -1, 1, transfer_pieces<::readv>},
    {"writev", 2, W, -1, 1, transfer_pieces<::writev>},
    {"pread", 3, R, -1, 1, transfer_at<::pread>},
    {"pwrite", 3, W, -1, 1, transfer_at<::pwrite>},
    {"preadv", 3, R, -1, 1, transfer_pieces_at<::preadv>},
    {"pwritev", 3, W, -1, 1, transfer_pieces_at<::pwritev>},
    {"preadv2", 3, R, -1, 1, transfer_pieces_at2<::preadv2>},
    {"pwritev2", 3, W, -1, 1, transfer_pieces_at2<::pwritev2>},
    {"lseek", 2, O, -1, -1, seek_file},
    {"fsync", 1, O, -1, -1, plain<::fsync>},
    {"fdatasync", 1, O, -1, -1, plain<::fdatasync>},
    {"ftruncate", 2, O, -1, -1, set_size},
    {"truncate", 2, O, -1, -1, set_size_by_name},
    {"fallocate", 3, O, -1, -1, allocate},
    {"posix_fallocate", 3, O, -1, -1, allocate_portably},
    {"fstat", 1, O, -1, -1, ask_status},
    {"stat", 1, O, -1, -1, ask_status_by_name},
    {"access", 1, O, -1, -1, ask_access},
    {"unlink", 1, O, -1, -1, unlink_file},
    {"remove", 1, O, -1, -1, remove_file},
    {"rename", 2, O, -1, -1, rename_file},
    {"fcntl_lock", 3, O, -1, -1, lock_part},
    {"fcntl_unlock", 3, O, -1, -1, unlock_part},
    {"flock_lock", 1, O, -1, -1, lock_file},
    {"flock_unlock", 1, O, -1, -1, unlock_file},
    {"fopen", 3, O, -1, -1, open_stream},
    {"fclose", 1, O, -1, -1, close_stream},
    {"fread", 2, R, -1, 1, read_stream},
    {"fwrite", 2, W, -1, 1, write_stream},
    {"fseek", 2, O, -1, -1, seek_stream},
    {"fflush", 1, O, -1, -1, flush_stream},
};

}  // namespace

std::span<const Call> posix_calls() { return table; }

}  // namespace ioweir::replay
