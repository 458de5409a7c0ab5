#include "tracer/ring/node_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/guarded_raw.hpp"
#include "base/raw_syscall.hpp"
#include "format/seal.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {
namespace {

/// Space must be there before it is mapped: a store into a hole of a full disk is SIGBUS.
/// posix_fallocate's own fallback reads and writes through hooked functions, hence the system call and our own fallback.
int reserve(int fd, off_t offset, std::size_t size) {
    // A file longer than the process's limit would not only be refused: the kernel sends SIGXFSZ, which ends the program.
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        static_cast<rlim_t>(offset) + size > limit.rlim_cur)
        return EFBIG;
    if (raw::call(SYS_fallocate, fd, 0, offset, static_cast<long>(size)) == 0) return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    static const char zeros[4096] = {};
    for (std::size_t done = 0; done < size; done += sizeof zeros)
        if (raw::pwrite(fd, zeros, sizeof zeros, offset + static_cast<off_t>(done)) !=
            static_cast<ssize_t>(sizeof zeros))
            return errno != 0 ? errno : ENOSPC;
    return 0;
}

/// Whether a file of this name is a trace, or one in the making: zeros of whole pages (where there is no fallocate they come
/// one by one), then the header's fields, the magic last. Anything else belongs to somebody and stays as it is.
bool may_be_ours(int fd, const struct stat& status) {
    if (status.st_size == 0) return true;
    format::FileHeader header{};
    if (raw::pread(fd, &header, sizeof header, 0) != sizeof header) return false;
    if (header.magic != 0) return header.magic == format::file_magic;
    return status.st_size <= static_cast<off_t>(format::chunk_alignment) && status.st_size % 4096 == 0 &&
           (header.version == 0 || header.version == format::format_version) &&
           (header.alignment == 0 || header.alignment == format::chunk_alignment);
}

}  // namespace

int NodeFile::attach(const char* directory, bool use_tsc) {
    use_tsc_ = use_tsc;
    utsname names{};
    ::uname(&names);
    std::snprintf(host_, sizeof host_, "%.63s", names.nodename[0] != '\0' ? names.nodename : "localhost");
    for (char* c = host_; *c != '\0'; ++c)
        if (*c == '/') *c = '_';
    if (std::snprintf(path_, sizeof path_, "%s/node-%s.iowt", directory, host_) >= static_cast<int>(sizeof path_)) {
        failed_step_ = "the path of the trace directory is too long";
        return ENAMETOOLONG;
    }
    return map_header();
}

int NodeFile::map_header() {
    failed_step_ = "cannot create the trace file";
    // Others may write into the folder, too, where a trace has been sent there by hand: what they have put there is left as it is.
    const int fd = raw::openat(AT_FDCWD, path_, O_RDWR | O_CREAT | guarded::always, 0644);
    if (fd < 0) {
        if (errno == ELOOP) failed_step_ = "not tracing: a symbolic link lies at the trace file's place:";
        return errno;
    }
    struct stat status{};
    const int unknown = raw::fstat(fd, &status) != 0 ? errno : 0;
    const char* refusal = nullptr;
    if (unknown == 0 && S_ISREG(status.st_mode) && status.st_uid != ::geteuid())
        refusal = "not tracing: the trace file belongs to another user:";
    else if (unknown == 0 && S_ISREG(status.st_mode) && status.st_nlink != 1)
        refusal = "not tracing: the trace file has another name, too (a hard link):";
    else if (unknown == 0 && !(S_ISREG(status.st_mode) && may_be_ours(fd, status)))
        refusal = "not tracing: what lies at the trace file's place is no trace file and is left as it is:";
    if (unknown != 0 || refusal != nullptr) {
        raw::close(fd);
        if (refusal != nullptr) failed_step_ = refusal;
        return unknown != 0 ? unknown : EEXIST;
    }
    device_ = status.st_dev;
    inode_ = status.st_ino;
    failed_step_ = "cannot reserve space for the trace file";
    int error = reserve(fd, 0, format::chunk_alignment);
    void* mapped = MAP_FAILED;
    if (error == 0) {
        failed_step_ = "cannot map the trace file";
        mapped = ::mmap(nullptr, format::chunk_alignment, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED) error = errno;
    }
    raw::close(fd);
    if (error != 0) return error;
    auto* header = static_cast<format::FileHeader*>(mapped);
    if (header->magic != 0 && header->version != format::format_version) {
        failed_step_ = "the trace file there is of another version";
        ::munmap(mapped, format::chunk_alignment);
        return EEXIST;
    }
    // Every process of the node stores the same values, so that no one has to be first.
    header->version = format::format_version;
    header->alignment = format::chunk_alignment;
    header->tick_is_tsc = use_tsc_ ? 1 : 0;
    header->time_shift = time_shift;
    std::memcpy(header->host, host_, sizeof header->host);
    format::FileHeader constants = *header;
    constants.magic = format::file_magic;
    header->constants = format::checksum_of_constants(constants);
    __atomic_store_n(&header->magic, format::file_magic, __ATOMIC_RELEASE);
    failed_step_ = "";
    __atomic_store_n(&header_, header, __ATOMIC_RELEASE);
    return 0;
}

int NodeFile::reopen() const {
    const int fd = raw::openat(AT_FDCWD, path_, O_RDWR | guarded::always, 0);
    if (fd < 0) return -1;
    struct stat status{};
    const int error = raw::fstat(fd, &status) != 0                          ? errno
                      : status.st_dev != device_ || status.st_ino != inode_ ? ESTALE
                                                                            : 0;
    if (error == 0) return fd;
    raw::close(fd);
    errno = error;
    return -1;
}

NodeFile::Chunk NodeFile::allocate(std::size_t size_bytes, std::uint64_t quota_bytes) {
    // Addresses come first: space in the file that then cannot be mapped would stay taken.
    void* const place = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return {nullptr, errno};
    const Chunk chunk = allocate_at(place, size_bytes, quota_bytes);
    if (chunk.header == nullptr) ::munmap(place, size_bytes);
    return chunk;
}

NodeFile::Chunk NodeFile::allocate_at(void* place, std::size_t size_bytes, std::uint64_t quota_bytes) {
    std::uint64_t before = __atomic_load_n(&header_->next_offset, __ATOMIC_RELAXED);
    do {
        if (format::chunk_alignment + before + size_bytes > quota_bytes) return {nullptr, EDQUOT};
    } while (!__atomic_compare_exchange_n(&header_->next_offset, &before, before + size_bytes, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    const std::uint64_t offset = format::chunk_alignment + before;
    const int fd = reopen();
    Chunk chunk;
    chunk.error = fd < 0 ? errno : reserve(fd, static_cast<off_t>(offset), size_bytes);
    if (chunk.error == 0 && ::mmap(place, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                                   static_cast<off_t>(offset)) == MAP_FAILED)
        chunk.error = errno;
    if (fd >= 0) raw::close(fd);
    if (chunk.error != 0) {
        // A smaller chunk may take the place, if nobody has one behind it.
        std::uint64_t taken = before + size_bytes;
        __atomic_compare_exchange_n(&header_->next_offset, &taken, before, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        return chunk;
    }
    ::madvise(place, size_bytes, MADV_DONTFORK);
#ifdef MADV_POPULATE_WRITE
    ::madvise(place, size_bytes, MADV_POPULATE_WRITE);  // one fault for all pages; older kernels refuse
#endif
    chunk.header = static_cast<format::ChunkHeader*>(place);
    chunk.header->self_offset = offset;
    chunk.header->size_bytes = static_cast<std::uint32_t>(size_bytes);
    return chunk;
}

bool NodeFile::give_back(format::ChunkHeader* chunk, std::size_t tail_bytes) {
    const int fd = reopen();
    if (fd < 0) return false;
    const std::uint64_t kept = chunk->size_bytes - tail_bytes;
    const bool done = ::syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(chunk->self_offset + kept), static_cast<off_t>(tail_bytes)) == 0;
    raw::close(fd);
    if (done) ::munmap(reinterpret_cast<std::byte*>(chunk) + kept, tail_bytes);
    return done;
}

void NodeFile::release(format::ChunkHeader* chunk, std::size_t size_bytes) { ::munmap(chunk, size_bytes); }

}  // namespace ioweir::tracer
