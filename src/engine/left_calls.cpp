// Data calls that the engine leaves to the MPI library: counted, so that the trace says so and verification knows that bytes
// were written of which it has no checksum.
// What does not live here: the calls that the engine handles (hooks.cpp, split.cpp, nonblocking.cpp).
#include <string>

#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using mpi::FileCalls;

enum class Moves { reads, writes };

/// The hook for a member of the table whose first parameter is the handle.
template <auto member>
struct Left;

template <typename... Rest, int (*FileCalls::*member)(MPI_File, Rest...)>
struct Left<member> {
    static inline const char* reason = "";
    static inline Moves moves = Moves::reads;

    static int call(MPI_File fh, Rest... rest) {
        Engine& the_engine = *engine();
        if (const std::shared_ptr<Handle> handle = the_engine.find(fh)) {
            handle->passed.count(handle->engaged ? reason : handle->refusal);
            if (handle->container) return raise(fh, MPI_ERR_UNSUPPORTED_OPERATION);
            if (handle->file && moves == Moves::writes) ++handle->file->passed_writes;
            if (handle->file) settle_size(the_engine, *handle->file);
        }
        return (the_engine.below.*member)(fh, rest...);
    }
};

template <auto member>
void leave(const FileCalls& below, FileCalls& hooks, Moves moves, const char* reason) {
    if (below.*member == nullptr) return;
    Left<member>::reason = reason;
    Left<member>::moves = moves;
    hooks.*member = &Left<member>::call;
}

/// A function and its large-count form.
template <auto member, auto large>
void leave(const FileCalls& below, FileCalls& hooks, Moves moves, const char* reason) {
    leave<member>(below, hooks, moves, reason);
    leave<large>(below, hooks, moves, reason);
}

}  // namespace

void count_left_calls(const FileCalls& below, FileCalls& hooks) {
    using F = FileCalls;
    constexpr Moves reads = Moves::reads;
    constexpr Moves writes = Moves::writes;
    const char* shared = "shared file pointer";
    leave<&F::File_read_shared, &F::File_read_shared_c>(below, hooks, reads, shared);
    leave<&F::File_write_shared, &F::File_write_shared_c>(below, hooks, writes, shared);
    leave<&F::File_read_ordered, &F::File_read_ordered_c>(below, hooks, reads, shared);
    leave<&F::File_write_ordered, &F::File_write_ordered_c>(below, hooks, writes, shared);
    leave<&F::File_iread_shared, &F::File_iread_shared_c>(below, hooks, reads, shared);
    leave<&F::File_iwrite_shared, &F::File_iwrite_shared_c>(below, hooks, writes, shared);
    leave<&F::File_read_ordered_begin, &F::File_read_ordered_begin_c>(below, hooks, reads, shared);
    leave<&F::File_write_ordered_begin, &F::File_write_ordered_begin_c>(below, hooks, writes, shared);
}

}  // namespace ioweir::engine
