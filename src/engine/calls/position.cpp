// Individual file pointers. The engine has them for the views that it follows: ROMIO finds its own by walking over all tiles of the view before
// it, in each call, and has it wrong where a filetype has data below its lower bound. A call that is the library's borrows it.
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

int hook_get_position(MPI_File fh, MPI_Offset* offset) {
    const Handle* const handle = engine()->find_open(fh);
    const std::int64_t own = handle != nullptr ? handle->own_pointer.load() : -1;
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

void take_pointer(Handle& handle, MPI_File fh) {
    MPI_Offset etypes = -1;
    if (PMPI_File_get_position(fh, &etypes) == MPI_SUCCESS && etypes >= 0) handle.own_pointer = etypes;
}

void give_pointer_back(Handle& handle, MPI_File fh) {
    const std::int64_t own = handle.own_pointer.exchange(-1);
    if (own >= 0) PMPI_File_seek(fh, own, MPI_SEEK_SET);
}

PointerLock lock_pointer(Handle& handle, bool moves) {
    return moves && engine()->threaded ? PointerLock(handle.pointer_lock) : PointerLock();
}

LentPointer::LentPointer(Handle& handle, MPI_File fh, bool lends)
    : handle_(handle),
      fh_(fh),
      guard_(lock_pointer(handle, lends && handle.own_pointer >= 0)),
      lends_(lends && handle.own_pointer >= 0) {
    if (lends_) PMPI_File_seek(fh, handle.own_pointer, MPI_SEEK_SET);
}

LentPointer::~LentPointer() {
    if (lends_) take_pointer(handle_, fh_);
}

void hook_positions(const mpi::FileCalls& below, mpi::FileCalls& hooks) {
    if (below.File_get_position != nullptr) hooks.File_get_position = hook_get_position;
}

}  // namespace ioweir::engine
