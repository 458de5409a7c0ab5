// Split collectives: begin does all of it, as a collective call; end hands out what came of it. So that no rank ever waits between
// the two, and the memory may be used for anything after begin.
// What does not live here: moving the bytes (call.cpp); the forms with a shared pointer (shared_calls.cpp).
//
// An error of the storage belongs to end, which MPI programs check last. Faulty arguments are reported by begin, and nothing is
// begun then. End does not compare its buffer with begin's: no MPI library does, and Fortran may pass copies.
#include <utility>

#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using mpi::FileCalls;
using Kind = SplitCollective::Kind;

/// The hook for member `first`, whose form for one rank that blocks is member `single`, by the shape of its parameters.
template <Kind kind, auto first, auto single>
struct Begin;

template <Kind kind, typename Buffer, typename Count,
          int (*FileCalls::*first)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype),
          int (*FileCalls::*single)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct Begin<kind, first, single> {
    static int call(MPI_File fh, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype datatype) {
        const FileCalls& below = engine()->below;
        const auto real = [&] { return (below.*first)(fh, offset, buffer, count, datatype); };
        const auto alone = [&](MPI_Status* status) {
            return (below.*single)(fh, offset, buffer, count, datatype, status);
        };
        Handle* const handle = engine()->find_open(fh);
        if (handle == nullptr) return real();
        const auto direction = std::is_const_v<Buffer> ? Direction::write : Direction::read;
        void* memory = const_cast<void*>(static_cast<const void*>(buffer));
        return begin_split(*handle, kind, {fh, direction, true, offset, memory, count, datatype}, real, alone);
    }
};

template <Kind kind, typename Buffer, typename Count, int (*FileCalls::*first)(MPI_File, Buffer*, Count, MPI_Datatype),
          int (*FileCalls::*single)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct Begin<kind, first, single> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype) {
        const FileCalls& below = engine()->below;
        const auto real = [&] { return (below.*first)(fh, buffer, count, datatype); };
        const auto alone = [&](MPI_Status* status) { return (below.*single)(fh, buffer, count, datatype, status); };
        Handle* const handle = engine()->find_open(fh);
        if (handle == nullptr) return real();
        const auto direction = std::is_const_v<Buffer> ? Direction::write : Direction::read;
        void* memory = const_cast<void*>(static_cast<const void*>(buffer));
        return begin_split(*handle, kind, {fh, direction, false, 0, memory, count, datatype}, real, alone);
    }
};

template <Kind kind, auto last>
struct End;

template <Kind kind, typename Buffer, int (*FileCalls::*last)(MPI_File, Buffer*, MPI_Status*)>
struct End<kind, last> {
    static int call(MPI_File fh, Buffer* buffer, MPI_Status* status) {
        const auto real = [&] { return (engine()->below.*last)(fh, buffer, status); };
        Handle* const handle = engine()->find_open(fh);
        return handle != nullptr ? end_split(*handle, kind, fh, status, real) : real();
    }
};

template <Kind kind, auto first, auto single>
void put_begin(const FileCalls& below, FileCalls& hooks) {
    if (below.*first != nullptr && below.*single != nullptr) hooks.*first = &Begin<kind, first, single>::call;
}

/// A kind with its large-count form.
template <Kind kind, auto first, auto single, auto first_large, auto single_large, auto last>
void put(const FileCalls& below, FileCalls& hooks) {
    if (below.*last == nullptr) return;
    put_begin<kind, first, single>(below, hooks);
    put_begin<kind, first_large, single_large>(below, hooks);
    hooks.*last = &End<kind, last>::call;
}

}  // namespace

int begin_split(Handle& handle, SplitCollective::Kind kind, Call call, FunctionRef<int()> real,
                FunctionRef<int(MPI_Status*)> alone) {
    if (handle.split.kind != Kind::none && !handle.split.by_library) {
        if (engine()->verify && call.direction == Direction::write) count_failed(handle, call, second_split);
        return raise(call.fh, MPI_ERR_REQUEST);
    }
    SplitCollective begun;
    begun.kind = kind;
    call.status = &begun.status;
    call.collective = true;
    call.raises = false;
    bool passed = false;
    const auto by_library = [&] {
        passed = begun.by_library = true;
        return real();
    };
    const auto by_library_alone = [&] {
        passed = true;
        return alone(&begun.status);
    };
    begun.result = transfer(*engine(), handle, call, by_library, by_library_alone);
    if (passed && begun.result != MPI_SUCCESS) return begun.result;  // raised by the library already
    handle.split = begun;
    return MPI_SUCCESS;
}

int end_split(Handle& handle, SplitCollective::Kind kind, MPI_File fh, MPI_Status* status, FunctionRef<int()> real) {
    const bool unknown = handle.split.kind == Kind::none && !handle.engaged;
    if (handle.split.by_library || unknown) {
        handle.split = {};
        const int result = real();
        // OMPIO's pointer may have moved only now.
        if (handle.own_pointer >= 0) take_pointer(handle, fh);
        return result;
    }
    if (handle.split.kind != kind) return raise(fh, MPI_ERR_REQUEST);
    const SplitCollective done = std::exchange(handle.split, {});
    if (status != MPI_STATUS_IGNORE) {
        const int kept =
            status->MPI_ERROR;  // calls that complete one operation leave it alone (MPI 4.0, section 3.2.5)
        *status = done.status;
        status->MPI_ERROR = kept;
    }
    return raise(fh, done.result);
}

void hook_split_collectives(const FileCalls& below, FileCalls& hooks) {
    using F = FileCalls;
    put<Kind::read_all, &F::File_read_all_begin, &F::File_read, &F::File_read_all_begin_c, &F::File_read_c,
        &F::File_read_all_end>(below, hooks);
    put<Kind::write_all, &F::File_write_all_begin, &F::File_write, &F::File_write_all_begin_c, &F::File_write_c,
        &F::File_write_all_end>(below, hooks);
    put<Kind::read_at_all, &F::File_read_at_all_begin, &F::File_read_at, &F::File_read_at_all_begin_c,
        &F::File_read_at_c, &F::File_read_at_all_end>(below, hooks);
    put<Kind::write_at_all, &F::File_write_at_all_begin, &F::File_write_at, &F::File_write_at_all_begin_c,
        &F::File_write_at_c, &F::File_write_at_all_end>(below, hooks);
}

}  // namespace ioweir::engine
