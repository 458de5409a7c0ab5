// Individual file pointers. Mostly they are the MPI library's, and only moved on. In a view in which its pointer is wrong (ROMIO's,
// where a filetype has data below its lower bound) a container's handle has one of its own, for no call of it can be left to the library.
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

int hook_get_position(MPI_File fh, MPI_Offset* offset) {
    const std::shared_ptr<Handle> handle = engine()->find(fh);
    const std::int64_t own = handle ? handle->own_pointer.load() : -1;
    if (own < 0 || offset == nullptr) return engine()->below.File_get_position(fh, offset);
    *offset = own;
    return MPI_SUCCESS;
}

}  // namespace

int position_of(const Handle& handle, MPI_File fh, MPI_Offset& etypes) {
    const std::int64_t own = handle.own_pointer;
    if (own < 0) return PMPI_File_get_position(fh, &etypes);
    etypes = own;
    return MPI_SUCCESS;
}

int set_position(Handle& handle, MPI_File fh, MPI_Offset etypes) {
    if (handle.own_pointer < 0) return PMPI_File_seek(fh, etypes, MPI_SEEK_SET);
    if (etypes < 0) return MPI_ERR_ARG;
    handle.own_pointer = etypes;
    return MPI_SUCCESS;
}

void hook_positions(const mpi::FileCalls& below, mpi::FileCalls& hooks) {
    if (below.File_get_position != nullptr) hooks.File_get_position = hook_get_position;
}

}  // namespace ioweir::engine
