// What went wrong in storage, as MPI knows it, and which ranks have been told.
// What does not live here: noticing it (call.cpp, sizes.cpp).
//
// A rank whose own call failed returns that at once. The others learn it where all ranks meet anyway: MPI_File_sync and
// MPI_File_close, at the cost of one small reduction each; a failure of the library's own sync, at the next of them.
#include <array>
#include <cerrno>
#include <cstdint>

#include "engine/calls/shared_reads.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {

/// MPI 4.0, section 14.7.
int error_class(int error) {
    switch (error) {
        case 0:
            return MPI_SUCCESS;
        case ENOSPC:
            return MPI_ERR_NO_SPACE;
        case EDQUOT:
            return MPI_ERR_QUOTA;
        case EROFS:
            return MPI_ERR_READ_ONLY;
        case EACCES:
        case EPERM:
            return MPI_ERR_ACCESS;
        case EFAULT:
            return MPI_ERR_BUFFER;
        case EOPNOTSUPP:
            return MPI_ERR_UNSUPPORTED_OPERATION;
        default:
            return MPI_ERR_IO;
    }
}

int raise(MPI_File fh, int error_class) {
    if (error_class != MPI_SUCCESS) PMPI_File_call_errhandler(fh, error_class);
    return error_class;
}

void remember_error(Handle& handle, int error_class) {
    int none = MPI_SUCCESS;
    handle.failed.compare_exchange_strong(none, error_class);
}

void owe_error(Handle& handle, int error_class) {
    int none = MPI_SUCCESS;
    handle.owed.compare_exchange_strong(none, error_class);
}

int agree_on_errors(Engine& engine, Handle& handle) {
    drain_own(handle);
    const int told = handle.failed.exchange(MPI_SUCCESS);
    const int owed = handle.owed.exchange(MPI_SUCCESS);
    const WaitingSize size = waiting_size(engine, handle);
    std::array<std::int64_t, 4> largest{owed != MPI_SUCCESS ? owed : told, size.said, size.there, 0};
    if (handle.container) largest[3] = handle.container->last_stamp();
    const int numbers = handle.container ? 4 : 3;
    if (handle.size > 1) PMPI_Allreduce(MPI_IN_PLACE, largest.data(), numbers, MPI_INT64_T, MPI_MAX, handle.comm);
    if (handle.container) handle.container->adopt(largest[3]);
    handle.clean = largest[0] == MPI_SUCCESS;
    // Every rank's writes are done by now, and all see the same figures: either all are here or none.
    if (largest[1] > largest[2]) {
        int failure = handle.rank == 0 ? error_class(grow(engine, handle, largest[1])) : MPI_SUCCESS;
        if (handle.size > 1) PMPI_Bcast(&failure, 1, MPI_INT, 0, handle.comm);
        if (failure != MPI_SUCCESS) return failure;
    }
    forget_size(handle);
    if (owed != MPI_SUCCESS) return owed;
    return told != MPI_SUCCESS ? MPI_SUCCESS : static_cast<int>(largest[0]);
}

namespace {

/// Where the file's bytes lie in one file: the MPI library does not know of the engine's writes, and ROMIO makes nothing durable that it has not
/// written itself. Each rank sees to what it has written; what others wrote for it from this node lies in the same page cache.
void make_durable(Engine& engine, Handle& handle) {
    if (handle.container || !handle.writable) return;
    drain_own(handle);
    const std::int64_t operations = handle.totals.operations;
    if (!handle.behind && operations == handle.durable_operations) return;
    if (!descriptor_is_usable(engine, handle)) return owe_error(handle, MPI_ERR_IO);
    const StorageScope scope(engine);
    const int error = engine.backend.make_durable(handle.descriptor.number);
    if (error != 0) owe_error(handle, error_class(error));
    handle.durable_operations = operations;
}

}  // namespace

int sync_file(Engine& engine, MPI_File fh) {
    const std::shared_ptr<Handle> handle = engine.find(fh);
    if (!handle || !handle->engaged) return engine.below.File_sync(fh);
    flush_container(engine, *handle, true);
    make_durable(engine, *handle);
    const int others = agree_on_errors(engine, *handle);
    if (handle->shared_reads) handle->shared_reads->note_meeting();
    const int result = engine.below.File_sync(fh);
    if (result != MPI_SUCCESS) {
        int library_class = MPI_ERR_IO;
        PMPI_Error_class(result, &library_class);
        remember_error(*handle, library_class);  // a rank's own, too: often that of an earlier write
    }
    return others != MPI_SUCCESS ? raise(fh, others) : result;
}

}  // namespace ioweir::engine
