// POSIX asynchronous I/O: submissions, and the calls at which the program learns that they have ended. The C library carries
// requests out in threads of its own, whose system calls are not seen.
#include <aio.h>

#include <cstdio>

#include "tracer/hooks/files_bodies.hpp"
#include "tracer/hooks/pending_io.hpp"
#include "tracer/hooks/real.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::tracer {
namespace {

PendingIoTable requests;
int (*real_status)(const aiocb*);

std::uint64_t name_of(const aiocb* request) { return reinterpret_cast<std::uint64_t>(request); }

/// The events of one call by what it ends.
struct Kinds {
    Function read;
    Function write;
    Function sync;
    [[nodiscard]] Function of(IoKind kind) const {
        return kind == IoKind::read ? read : kind == IoKind::write ? write : sync;
    }
};
constexpr Kinds error_kinds{Function::aio_error_read, Function::aio_error_write, Function::aio_error_sync};
constexpr Kinds return_kinds{Function::aio_return_read, Function::aio_return_write, Function::aio_return_sync};
constexpr Kinds suspend_kinds{Function::aio_suspend_read, Function::aio_suspend_write, Function::aio_suspend_sync};

std::int64_t offset_of(const aiocb* request, bool written) {
    return written && descriptor_of(request->aio_fildes).appends != 0 ? -1 : request->aio_offset;
}

template <typename Call>
int submit(Function function, IoKind kind, Call&& call, aiocb* request, std::int64_t offset, std::int64_t bytes) {
    const std::uint32_t file = request != nullptr ? file_of(request->aio_fildes) : 0;
    if (file == 0) {
        requests.take(0, name_of(request));  // a request that was at this address before is over
        return call();
    }
    const auto done = timed(call);
    const int error = error_of(done.result);
    const std::uint32_t sequence = record_call(function, file, done.start, done.stop, offset, bytes, error);
    if (error == 0)
        requests.replace(0, name_of(request), {file, sequence, kind, false, static_cast<std::uint64_t>(bytes)});
    return done.result;
}
template <typename Call>
int traced_aio(Function function, Call&& call, aiocb* request) {
    const bool written = writes(function);
    if (request == nullptr) return call();
    return submit(function, written ? IoKind::write : IoKind::read, call, request, offset_of(request, written),
                  static_cast<std::int64_t>(request->aio_nbytes));
}
template <typename Call>
int traced_aio_fsync(Function function, Call&& call, int, aiocb* request) {
    return submit(function, IoKind::sync, call, request, -1, 0);
}

/// An event a request; the first one has the time of the call.
template <typename Call>
int traced_lio(Call&& call, int, aiocb* const* list, int count, const sigevent*) {
    if (!posix_is_traced() || list == nullptr) return call();
    const auto done = timed(call);
    const int error = done.result < 0 && errno != EIO ? errno : 0;  // EIO: the requests say each what became of them
    bool first = true;
    for (int i = 0; i < count; ++i) {
        aiocb* const request = list[i];
        if (request == nullptr || request->aio_lio_opcode == LIO_NOP) continue;
        const std::uint32_t file = file_of(request->aio_fildes);
        if (file == 0) continue;
        const bool written = request->aio_lio_opcode == LIO_WRITE;
        const std::uint32_t sequence = record_call(
            written ? Function::lio_listio_write : Function::lio_listio_read, file, first ? done.start : done.stop,
            done.stop, offset_of(request, written), static_cast<std::int64_t>(request->aio_nbytes), error);
        first = false;
        if (error == 0)
            requests.replace(0, name_of(request),
                             {file, sequence, written ? IoKind::write : IoKind::read, false, request->aio_nbytes});
    }
    return done.result;
}

template <typename Call>
int traced_aio_error(Call&& call, const aiocb* request) {
    const PendingIo pending = requests.find(0, name_of(request));
    if (pending.file == 0 || pending.ended) return call();
    const auto done = timed(call);
    if (done.result == EINPROGRESS) return done.result;
    requests.find(0, name_of(request), true);
    record_call(error_kinds.of(pending.kind), pending.file, done.start, done.stop, pending.sequence, 0,
                done.result > 0 ? done.result : 0);
    return done.result;
}
template <typename Call>
ssize_t traced_aio_return(Call&& call, const aiocb* request) {
    const PendingIo pending = requests.take(0, name_of(request));
    if (pending.file == 0) return call();
    const auto done = timed(call);
    const int error = done.result < 0 ? (errno != 0 ? errno : EIO) : 0;
    record_call(return_kinds.of(pending.kind), pending.file, done.start, done.stop, pending.sequence, 0, error,
                pending.missing(done.result));
    return done.result;
}
/// The time is that of the first request that has ended meanwhile, or of the first one when none has.
template <typename Call>
int traced_aio_suspend(Call&& call, const aiocb* const* list, int count, const timespec*) {
    if (!requests.any() || list == nullptr) return call();
    const auto done = timed(call);
    const int error = error_of(done.result);
    const KeepErrno keep;
    PendingIo chosen{};
    for (int i = 0; i < count; ++i) {
        if (list[i] == nullptr) continue;
        const PendingIo pending = requests.find(0, name_of(list[i]));
        if (pending.file == 0) continue;
        if (chosen.file == 0) chosen = pending;
        if (find_real(real_status, "aio_error") && real_status(list[i]) != EINPROGRESS) {
            chosen = pending;
            break;
        }
    }
    if (chosen.file != 0)
        record_call(suspend_kinds.of(chosen.kind), chosen.file, done.start, done.stop, chosen.sequence, 0, error);
    return done.result;
}

}  // namespace
}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/aio_hooks.inc"
