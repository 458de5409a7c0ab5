// What went wrong in storage, as MPI knows it, and which ranks have been told.
// What does not live here: noticing it (call.cpp, sizes.cpp).
//
// A rank whose own call failed returns that at once. The others learn it where all ranks meet anyway: MPI_File_sync and
// MPI_File_close, at the cost of one small reduction each.
#include <cerrno>

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

int agree_on_errors(Handle& handle, int untold) {
    const int told = handle.failed.exchange(MPI_SUCCESS);
    if (handle.size == 1) return untold;
    const int mine = untold != MPI_SUCCESS ? untold : told;
    int anyones = mine;
    PMPI_Allreduce(&mine, &anyones, 1, MPI_INT, MPI_MAX, handle.comm);
    if (untold != MPI_SUCCESS) return untold;
    return told != MPI_SUCCESS ? MPI_SUCCESS : anyones;
}

int sync_file(Engine& engine, MPI_File fh) {
    const std::shared_ptr<Handle> handle = engine.find(fh);
    if (!handle || !handle->engaged) return engine.below.File_sync(fh);
    const int result = engine.below.File_sync(fh);
    if (result != MPI_SUCCESS) {
        int library_class = MPI_ERR_IO;
        PMPI_Error_class(result, &library_class);
        remember_error(*handle, library_class);  // a rank's own, too: often that of an earlier write
    }
    const int others = agree_on_errors(*handle, MPI_SUCCESS);
    return others != MPI_SUCCESS ? raise(fh, others) : result;
}

}  // namespace ioweir::engine
