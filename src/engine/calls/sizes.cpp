// MPI_File_set_size: a growing one waits until something could observe it. Truncating a striped file can take tens of seconds
// (Howison et al. 2010, section III-A), and the writes that follow mostly make the file as long anyway.
// What does not live here: how a file is grown (storage), the agreement at sync and close (errors.cpp).
//
// Promises:
// - MPI_File_get_size answers as if nothing waited. The file is as long as was said after MPI_File_sync and MPI_File_close of the
//   handle; and, on the rank that makes it, before a read beyond the end, a seek to the end, a preallocation, a change to atomic
//   mode, any other open, and any call that is left to the MPI library.
// - Growing never shortens a file that somebody has made longer meanwhile. A size that is not larger than the file's, or than what
//   waits, never waits: it is the library's, and what waited is forgotten.
// - What only POSIX calls of the program could see may wait: MPI promises nothing about them before sync or close.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/checked.hpp"
#include "engine/calls/atomic_mode.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using mpi::FileCalls;

struct Said {
    std::int64_t bytes = 0;
    std::shared_ptr<Handle> by;
};

Said take(FileState& file) {
    const std::lock_guard guard(file.size_lock);
    return {file.deferred_bytes.exchange(0), std::exchange(file.deferring, nullptr)};
}

void put(FileState& file, Said said) {
    const std::lock_guard guard(file.size_lock);
    file.deferred_bytes = said.bytes;
    file.deferring = std::move(said.by);
}

bool may_wait(Engine& engine, Handle& handle, MPI_Offset size) {
    if (!handle.writable || !handle.defers_set_size) return false;
    if (handle.library_atomic) return false;
    const std::int64_t now = length_now(engine, handle);
    FileState& file = *handle.file;
    const std::lock_guard guard(file.size_lock);
    if (file.deferring && file.deferring.get() != &handle) return false;
    if (now < 0 || size <= std::max<std::int64_t>(now, file.deferred_bytes)) return false;
    if (!file.grows) {
        const StorageScope scope(engine);
        file.grows = engine.backend.can_grow(handle.descriptor.number);
    }
    return *file.grows;
}

/// Collective over the handle's group.
bool all_may_wait(const Handle& handle, bool mine, std::int64_t size) {
    if (handle.size == 1) return mine;
    std::array<std::int64_t, 3> least{mine ? 1 : 0, size, ~size};
    PMPI_Allreduce(MPI_IN_PLACE, least.data(), static_cast<int>(least.size()), MPI_INT64_T, MPI_MIN, handle.comm);
    return least[0] == 1 && least[1] == ~least[2];
}

int hook_set_size(MPI_File fh, MPI_Offset size) {
    Engine& the_engine = *engine();
    const std::shared_ptr<Handle> handle = the_engine.find(fh);
    if (!handle || !handle->engaged) return the_engine.below.File_set_size(fh, size);
    drain_behind(*handle->file);
    if (the_engine.verify) prepare_log_for_cut(the_engine, *handle, size);
    if (handle->container) {
        const int result = set_container_size(the_engine, *handle, size, true);
        if (result == MPI_SUCCESS && the_engine.verify) {
            const std::lock_guard guard(handle->file->log_lock);
            handle->file->log.cut(size);
        }
        return raise(fh, result);
    }
    if (all_may_wait(*handle, may_wait(the_engine, *handle, size), size)) {
        ++handle->totals.sizes_deferred;
        put(*handle->file, {size, handle});
        return MPI_SUCCESS;
    }
    Said before = take(*handle->file);
    const int result = the_engine.below.File_set_size(fh, size);
    if (result != MPI_SUCCESS && before.by) put(*handle->file, std::move(before));
    if (result == MPI_SUCCESS && the_engine.verify) {
        const std::lock_guard guard(handle->file->log_lock);
        handle->file->log.cut(size);
    }
    return result;
}

int hook_get_size(MPI_File fh, MPI_Offset* size) {
    if (const std::shared_ptr<Handle> mapped = engine()->find(fh); mapped && mapped->container && size != nullptr) {
        *size = container_size(*engine(), *mapped);
        return raise(fh, *size < 0 ? MPI_ERR_IO : MPI_SUCCESS);
    }
    const std::shared_ptr<Handle> handle = engine()->find(fh);
    if (handle && handle->file) drain_behind(*handle->file);
    const int result = engine()->below.File_get_size(fh, size);
    if (result == MPI_SUCCESS && handle && handle->engaged)
        *size = std::max<MPI_Offset>(*size, handle->file->deferred_bytes.load());
    return result;
}

/// Before the library does something that depends on the file's length.
void settle(MPI_File fh) {
    const std::shared_ptr<Handle> handle = engine()->find(fh);
    if (handle && handle->file) settle_size(*engine(), *handle->file);
}

/// Moves the engine's own pointer by a distance or to a place. What is no place comes back, negative, and the pointer stands where it stood.
std::optional<MPI_Offset> refused_position(Handle& handle, MPI_File fh, MPI_Offset offset, int whence) {
    const PointerLock guard = lock_pointer(handle, true);
    MPI_Offset place = whence == MPI_SEEK_CUR ? MPI_Offset{handle.own_pointer} : 0;
    if (__builtin_add_overflow(place, offset, &place)) return std::numeric_limits<MPI_Offset>::min();
    if (set_position(handle, fh, place) == MPI_SUCCESS) return std::nullopt;
    return place;
}

int seek_below(Handle* owner, MPI_File fh, MPI_Offset offset, int whence) {
    if (owner == nullptr) return engine()->below.File_seek(fh, offset, whence);
    const LentPointer lent(*owner, fh, true);
    return engine()->below.File_seek(fh, offset, whence);
}

/// A place before the view's beginning is the library's to refuse, with its own error and to the file's error handler.
int hook_seek(MPI_File fh, MPI_Offset offset, int whence) {
    Handle* const handle = engine()->find_open(fh);
    Handle* const owner = handle != nullptr && handle->own_pointer >= 0 ? handle : nullptr;
    if (const std::shared_ptr<Handle> mapped = engine()->find(fh);
        mapped && mapped->container && whence == MPI_SEEK_END) {
        const std::int64_t bytes = container_size(*engine(), *mapped);
        if (bytes < 0) return raise(fh, MPI_ERR_IO);
        if (__builtin_add_overflow(offset, container_end(*mapped, bytes), &offset)) return raise(fh, MPI_ERR_ARG);
        whence = MPI_SEEK_SET;
    }
    if (owner != nullptr && (whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR)) {
        // The library's own pointer stays where it is, so that nothing is lent: ROMIO's says another place than it was given
        // where a filetype has data below its lower bound.
        const std::optional<MPI_Offset> refused = refused_position(*owner, fh, offset, whence);
        return refused ? engine()->below.File_seek(fh, *refused, MPI_SEEK_SET) : MPI_SUCCESS;
    }
    if (whence == MPI_SEEK_END) settle(fh);
    return seek_below(owner, fh, offset, whence);
}

int hook_preallocate(MPI_File fh, MPI_Offset size) {
    if (const std::shared_ptr<Handle> mapped = engine()->find(fh); mapped && mapped->container)
        return raise(fh, set_container_size(*engine(), *mapped, size, false));
    const std::shared_ptr<Handle> handle = engine()->find(fh);
    if (!handle || !handle->engaged) return engine()->below.File_preallocate(fh, size);
    meet_settled(*engine(), *handle, true);
    const int result = engine()->below.File_preallocate(fh, size);
    // In Open MPI's each rank sets the file's length last, in its own time: what another has written behind it by then would be cut off.
    if (handle->size > 1) PMPI_Barrier(handle->comm);
    return result;
}

/// Collective. Libraries tell not all of the ranks that these have given different flags.
bool is_on_any(const Handle& handle, bool mine) {
    int any = mine ? 1 : 0;
    if (handle.engaged && handle.size > 1) PMPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, handle.comm);
    return any != 0;
}

int hook_set_atomicity(MPI_File fh, int flag) {
    if (const std::shared_ptr<Handle> mapped = engine()->find(fh); mapped && mapped->container)
        return set_container_atomicity(*engine(), *mapped, fh, flag);
    if (flag != 0) settle(fh);
    const int result = engine()->below.File_set_atomicity(fh, flag);
    Handle* const handle = engine()->find_open(fh);
    if (handle == nullptr) return result;
    // Then all calls are the library's.
    const bool was = handle->library_atomic;
    const bool is = is_on_any(*handle, result == MPI_SUCCESS ? flag != 0 : was);
    handle->library_atomic = is;
    if (is) give_pointer_back(*handle, fh);
    if (!is && was && handle->engaged && handle->view_refusal.empty()) take_pointer(*handle, fh);
    judge_lean(*engine(), *handle);
    return result;
}

}  // namespace

MPI_Offset container_end(const Handle& handle, std::int64_t bytes) {
    return ceil_divide(handle.view.data_before(bytes), handle.view.etype_bytes);
}

std::int64_t length_now(Engine& engine, Handle& handle) {
    if (!descriptor_is_usable(engine, handle)) return -1;
    const StorageScope scope(engine);
    struct stat info{};
    if (::fstat(handle.descriptor.number, &info) != 0) return -1;
    return static_cast<std::int64_t>(info.st_size);
}

int grow(Engine& engine, Handle& handle, std::int64_t bytes) {
    const std::int64_t now = length_now(engine, handle);
    if (now < 0) return EIO;
    if (now >= bytes) return 0;
    ++handle.totals.sizes_grown;
    const StorageScope scope(engine);
    return engine.backend.grow(handle.descriptor.number, bytes);
}

bool settle_size(Engine& engine, FileState& file) {
    drain_behind(file);
    return settle_length(engine, file);
}

void meet_settled(Engine& engine, Handle& handle, bool looks) {
    if (looks) settle_size(engine, *handle.file);
    if (handle.size > 1) PMPI_Barrier(handle.comm);
}

bool settle_length(Engine& engine, FileState& file) {
    if (file.deferred_bytes == 0) return false;
    const Said said = take(file);
    if (!said.by) return false;  // another thread has just done it
    if (const int error = grow(engine, *said.by, said.bytes); error != 0) owe_error(*said.by, error_class(error));
    return true;
}

WaitingSize waiting_size(Engine& engine, Handle& handle) {
    WaitingSize waiting;
    {
        const std::lock_guard guard(handle.file->size_lock);
        if (handle.file->deferring.get() != &handle) return waiting;
        waiting.said = handle.file->deferred_bytes;
    }
    waiting.there = std::max<std::int64_t>(0, length_now(engine, handle));
    return waiting;
}

void forget_size(Handle& handle) {
    const std::lock_guard guard(handle.file->size_lock);
    if (handle.file->deferring.get() != &handle) return;
    handle.file->deferred_bytes = 0;
    handle.file->deferring = nullptr;
}

void hook_sizes(const FileCalls& below, FileCalls& hooks) {
    if (below.File_set_size == nullptr || below.File_get_size == nullptr || below.File_seek == nullptr ||
        below.File_preallocate == nullptr || below.File_set_atomicity == nullptr) {
        return;
    }
    hooks.File_set_size = hook_set_size;
    hooks.File_get_size = hook_get_size;
    hooks.File_seek = hook_seek;
    hooks.File_preallocate = hook_preallocate;
    hooks.File_set_atomicity = hook_set_atomicity;
}

}  // namespace ioweir::engine
