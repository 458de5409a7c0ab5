// Files whose bytes lie in several (containers), from the ranks' side: who makes one, who is in which group, and when all have put
// what they wrote into the index. The real MPI_File lies on the header file, so nothing may be left to the MPI library that moves bytes or
// depends on the file's length.
// What does not live here: the container itself (src/container), files that are just shared (open.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "container/container.hpp"
#include "engine/state.hpp"

namespace ioweir::engine {

/// What lies at a path that all ranks are about to use.
struct Found {
    enum class Kind : std::int64_t { ordinary, header_file, damaged };
    Kind kind = Kind::ordinary;
    container::HeaderFile header_file;
};

/// What is at a path, as container::read_header_file(). The locks that the program has of the file (fcntl) stay: closing any descriptor of it would
/// end them. Within a StorageScope.
[[nodiscard]] Result<std::optional<container::HeaderFile>> read_header_file(Engine& engine, const std::string& path);

/// Collective over `comm`: rank 0 looks. `opened`: its MPI library could open the file.
[[nodiscard]] Found look(Engine& engine, MPI_Comm comm, const std::string& path, bool opened);

/// No class of MPI's: somebody has put another file there since the MPI library has opened it, and all ranks have to open it anew.
inline constexpr int open_again = -1;

/// Collective over `comm`, for a handle whose descriptor is open: opens the header file's container, or makes one where the strategy asks for
/// it and the file is new. Afterwards handle.container is there, or the mapping is shared. MPI's class of an error, on every rank,
/// of which rank 0 or the rank concerned has told the user; or open_again.
[[nodiscard]] int attach_container(Engine& engine, Handle& handle, MPI_Comm comm, int amode, const Found& found,
                                   const policy::FileRule* rule);

/// Of this rank's bytes, by whichever handle; a failure is owed to the program. Does nothing without a container. `durable`: the first
/// rank also looks for what others than this handle's ranks have put there, which the next agreement tells them.
void flush_container(Engine& engine, Handle& handle, bool durable);
/// A collective call begins, which may wait for other ranks or not.
void begin_collective(Handle& handle, bool writes);
/// Before a collective read, by all ranks of the handle: each will see what the others have written so far. PnetCDF moves bytes in this way in
/// enddef, without a sync, and programs that have no other file beneath them never notice that they need one. `together`: some will read for
/// others. By a reduction, or as SharedReads promises. Where writes are seen without being told of: by the ranks that exchange bytes, together.
void share_container(Engine& engine, Handle& handle, bool together);
/// Collective over the handle's group, once it has handle.ranks: where no reduction is needed for that, prepares it.
void begin_shared_reads(Engine& engine, Handle& handle);
/// Before the agreement of a close: flushes, and nothing that this process writes by other handles belongs to this one any more.
void leave_container(Engine& engine, Handle& handle);

/// A call has failed with EIO: if the container was the reason, says so, once.
void say_container_problem(Engine& engine, Handle& handle);
/// Tells the user, once for each handle, of a call that fails because the file is a container. `text`: that, and why.
void say_refusal(Engine& engine, Handle& handle, const std::string& text);

/// Collective, after the agreement of a close: rank 0 says that the generation is complete, unless a rank had an error. When it returns on
/// any rank, every process may open the container. MPI's class of an error, on every rank.
[[nodiscard]] int end_container(Engine& engine, Handle& handle);

/// Collective, after the real close: lets go of the container, and removes one whose file is deleted on close.
void close_container(Engine& engine, Handle& handle);

/// MPI_File_set_size (`exact`) or MPI_File_preallocate of a container: collective over the handle's group. MPI's class of an error.
[[nodiscard]] int set_container_size(Engine& engine, Handle& handle, std::int64_t bytes, bool exact);

/// Of the logical file: negative if it cannot be told.
[[nodiscard]] std::int64_t container_size(Engine& engine, Handle& handle);

/// The file at a path is about to be deleted: if it is a header file, so is what it stands for, afterwards. In between nobody else makes an
/// ordinary file of it. Needs no other rank.
struct Deletion {
    container::HeaderFileLock lock;
    std::optional<container::Directory> left;
};
[[nodiscard]] Deletion begin_deletion(Engine& engine, const std::string& path);
void end_deletion(Engine& engine, const std::string& path, Deletion deletion, bool happened);

}  // namespace ioweir::engine
