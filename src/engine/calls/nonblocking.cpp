// Non-blocking calls: the rank moves its own bytes at once by the direct path, also in a collective call, because no operation
// may need another rank to enter a call after its initiation. What the program gets is a generalised request that is complete.
// What does not live here: moving the bytes (call.cpp); the forms with a shared pointer (shared_calls.cpp).
//
// An error of the storage is returned by the call and goes to the file's error handler there, as ROMIO does with what it finishes
// at once: an error of a generalised request would go to that of MPI_COMM_WORLD, which ends the program by default. The
// request is then complete with what was moved before the error.
#include <cstdint>
#include <type_traits>

#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using mpi::FileCalls;

/// A request's only state is how many bytes were moved, kept in the pointer's place.
int fill_status(void* state, MPI_Status* status) {
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    PMPI_Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(state)));
    return PMPI_Status_set_cancelled(status, 0);
}
int nothing_to_free(void*) { return MPI_SUCCESS; }
int too_late_to_cancel(void*, int) { return MPI_SUCCESS; }

int completed_request(MPI_Count bytes, MPI_Request* request) {
    void* state = reinterpret_cast<void*>(static_cast<std::intptr_t>(bytes));
    *request = MPI_REQUEST_NULL;
    const int code = PMPI_Grequest_start(fill_status, nothing_to_free, too_late_to_cancel, state, request);
    return code == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : code;
}

/// The hook for member `same` of the table, whose form for one rank is member `alone`, by the shape of its parameters.
template <auto same, auto alone>
struct NonblockingCollectiveHook;

template <typename Buffer, typename Count,
          int (*FileCalls::*same)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Request*),
          int (*FileCalls::*alone)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Request*)>
struct NonblockingCollectiveHook<same, alone> {
    static int call(MPI_File fh, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype datatype,
                    MPI_Request* request) {
        const auto real = [&](auto member) {
            return (engine()->below.*member)(fh, offset, buffer, count, datatype, request);
        };
        Handle* const handle = engine()->find_open(fh);
        if (handle == nullptr || request == nullptr) return real(same);
        const auto direction = std::is_const_v<Buffer> ? Direction::write : Direction::read;
        void* memory = const_cast<void*>(static_cast<const void*>(buffer));
        const auto all = [&] { return real(same); };
        const auto one = [&] { return real(alone); };
        if (same != alone && handle->container) begin_collective(*handle, direction == Direction::write);
        return start_nonblocking(*handle, {fh, direction, true, offset, memory, count, datatype}, request, all, one);
    }
};

template <typename Buffer, typename Count,
          int (*FileCalls::*same)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Request*),
          int (*FileCalls::*alone)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Request*)>
struct NonblockingCollectiveHook<same, alone> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype, MPI_Request* request) {
        const auto real = [&](auto member) { return (engine()->below.*member)(fh, buffer, count, datatype, request); };
        Handle* const handle = engine()->find_open(fh);
        if (handle == nullptr || request == nullptr) return real(same);
        const auto direction = std::is_const_v<Buffer> ? Direction::write : Direction::read;
        void* memory = const_cast<void*>(static_cast<const void*>(buffer));
        const auto all = [&] { return real(same); };
        const auto one = [&] { return real(alone); };
        if (same != alone && handle->container) begin_collective(*handle, direction == Direction::write);
        return start_nonblocking(*handle, {fh, direction, false, 0, memory, count, datatype}, request, all, one);
    }
};

template <auto same, auto alone>
void put_nonblocking(const FileCalls& below, FileCalls& hooks) {
    if (below.*same != nullptr && below.*alone != nullptr) hooks.*same = &NonblockingCollectiveHook<same, alone>::call;
}

}  // namespace

int start_nonblocking(Handle& handle, Call call, MPI_Request* request, FunctionRef<int()> same,
                      FunctionRef<int()> alone) {
    bool passed = false;
    const auto passing = [&](FunctionRef<int()> real) {
        return [&passed, real] {
            passed = true;
            return real();
        };
    };
    const auto all = passing(same);
    const auto one = passing(alone);
    MPI_Status status;
    call.status = &status;
    const int result = transfer(*engine(), handle, call, all, one);
    if (passed) return result;
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    const int made = completed_request(bytes, request);
    return result != MPI_SUCCESS ? result : made;
}

void hook_nonblocking_calls(const FileCalls& below, FileCalls& hooks) {
    using F = FileCalls;
    put_nonblocking<&F::File_iread_at, &F::File_iread_at>(below, hooks);
    put_nonblocking<&F::File_iread_at_c, &F::File_iread_at_c>(below, hooks);
    put_nonblocking<&F::File_iread_at_all, &F::File_iread_at>(below, hooks);
    put_nonblocking<&F::File_iread_at_all_c, &F::File_iread_at_c>(below, hooks);
    put_nonblocking<&F::File_iwrite_at, &F::File_iwrite_at>(below, hooks);
    put_nonblocking<&F::File_iwrite_at_c, &F::File_iwrite_at_c>(below, hooks);
    put_nonblocking<&F::File_iwrite_at_all, &F::File_iwrite_at>(below, hooks);
    put_nonblocking<&F::File_iwrite_at_all_c, &F::File_iwrite_at_c>(below, hooks);
    put_nonblocking<&F::File_iread, &F::File_iread>(below, hooks);
    put_nonblocking<&F::File_iread_c, &F::File_iread_c>(below, hooks);
    put_nonblocking<&F::File_iread_all, &F::File_iread>(below, hooks);
    put_nonblocking<&F::File_iread_all_c, &F::File_iread_c>(below, hooks);
    put_nonblocking<&F::File_iwrite, &F::File_iwrite>(below, hooks);
    put_nonblocking<&F::File_iwrite_c, &F::File_iwrite_c>(below, hooks);
    put_nonblocking<&F::File_iwrite_all, &F::File_iwrite>(below, hooks);
    put_nonblocking<&F::File_iwrite_all_c, &F::File_iwrite_c>(below, hooks);
}

}  // namespace ioweir::engine
