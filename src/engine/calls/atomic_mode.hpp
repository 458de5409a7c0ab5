// Atomic mode (MPI 4.0, section 14.6.1) of a container: what a call has written, the next one sees, on whichever rank; of calls that
// overlap, each is done as a whole before or after the other. Ranks lock the container around each of their own calls, for as long as they
// move their own bytes and no longer: nobody who holds the lock waits for another rank.
// With visibility = "call" in the plan the first half of that holds without atomic mode: what a call has written, the next one sees.
// What does not live here: moving the bytes (call.cpp), atomic mode of ordinary files, which is the MPI library's.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/function_ref.hpp"
#include "container/sharing/locked_file.hpp"
#include "container/sharing/shown_number.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {

/// Of one handle. The lock is one file in the container's directory, for all who have it open; its number grows with whatever is shown, so
/// that an index is read again only after somebody has written.
struct AtomicMode {
    AtomicMode(storage::Backend& below, const container::Directory& directory)
        : lock(below, directory, "atomic"), shown(lock) {}

    container::LockedFile lock;
    container::ShownNumber shown;
    bool on = false;                    ///< the same on all ranks
    bool each_call = false;             ///< the plan's visibility = "call"
    std::atomic<std::int64_t> seen{0};  ///< the number as it was when all that was shown became known
    std::atomic<bool> said_why{false};  ///< the user knows why it cannot be locked
};

/// Is the handle's file a container in atomic mode?
[[nodiscard]] bool is_atomic(const Handle& handle);
/// By the plan's `visibility` nobody has to tell others that something was written.
[[nodiscard]] bool is_seen_without_telling(const Handle& handle);

/// MPI_File_set_atomicity of a container: collective over the handle's group, `flag` the same on all ranks. MPI's class of an error, of
/// which the file's error handler was told, on every rank: MPI_ERR_ARG where they differ, MPI_ERR_UNSUPPORTED_OPERATION where the file
/// system has no locks.
[[nodiscard]] int set_container_atomicity(Engine& engine, Handle& handle, MPI_File fh, int flag);

/// `move` moves bytes of this rank, with the lock. Afterwards what it has written is in the index; before, all that others have written is
/// known. In a handle that cannot write nobody writes, and nothing is locked (what others write through handles of their own is seen
/// after a sync, MPI 4.0, section 14.6.1).
[[nodiscard]] Outcome move_atomically(Engine& engine, Handle& handle, Direction direction, FunctionRef<Outcome()> move);

/// In atomic mode, and with visibility = "call": from now on what all ranks have written so far is known. Else nothing happens. An errno value.
[[nodiscard]] int look_atomically(Engine& engine, Handle& handle);

/// With visibility = "call", outside of atomic mode: what this process has written will be seen by calls of others from now on. Else nothing
/// happens. An errno value.
[[nodiscard]] int show_written(Engine& engine, Handle& handle);

/// With visibility = "call": the number up to which anybody has shown what was written, for the ranks of a handle to tell each other. Else,
/// and where it cannot be read, 0; `error` is an errno value.
[[nodiscard]] std::int64_t shown_number(Engine& engine, Handle& handle, int& error);

}  // namespace ioweir::engine
