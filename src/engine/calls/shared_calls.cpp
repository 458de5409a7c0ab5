// Calls by the shared file pointer. Of a container they are the engine's: it takes its part of the file by moving the pointer on, and
// then the bytes move as in a call with an explicit offset (call.cpp). Of other files they are left to the MPI library, and
// counted, so that the trace says so and verification knows that bytes were written of which it has no checksum.
// What does not live here: the pointer itself (shared_pointer.hpp).
//
// Ordered calls (MPI 4.0, section 14.4.4) divide their part by a prefix sum over the ranks; the last rank moves the pointer on, once for
// all. A rank whose arguments are faulty takes part with nothing, so that nobody waits for it.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/calls/shared_pointer.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using mpi::FileCalls;
using Kind = SplitCollective::Kind;
using Place = SharedPointer::Place;

/// MPI's class of an error of the pointer's file, of which the user is told.
/// `call`: of data, where it is about one.
int failed_class(Engine& engine, Handle& handle, int error, const Call* call = nullptr) {
    if (engine.verify && call != nullptr && call->direction == Direction::write)
        count_failed(handle, *call, "the shared file pointer");
    const std::string text = "the shared file pointer: " + handle.shared_pointer->path() + ": " + std::strerror(error) +
                             "; its directory must be writable, on a file system with fcntl locks";
    complain(engine, handle.path, text);
    const int result = error_class(error);
    remember_error(handle, result);
    return result;
}

void set_empty(MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    PMPI_Status_set_elements_x(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
}

/// This rank's part of the file, for itself. Calls that will be refused, and those without a byte, move nothing on.
Place take_part(Engine& engine, Handle& handle, const Call& call) {
    const std::int64_t etypes = etypes_wanted(engine, handle, call);
    if (etypes <= 0) return {};
    const StorageScope scope(engine);
    return handle.shared_pointer->advance(etypes);
}

/// Collective over the handle's group: this rank's part, behind those of the ranks before it. An error is that of all ranks.
/// Example: 3 ranks that want 2, 0 and 5 etypes, pointer at 10: they begin at 10, 12 and 12, and the pointer stands at 17.
Place take_part_in_order(Engine& engine, Handle& handle, const Call& call) {
    const std::int64_t mine = std::max<std::int64_t>(0, etypes_wanted(engine, handle, call));
    std::int64_t before = 0;
    if (handle.size > 1) PMPI_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, handle.comm);
    if (handle.rank == 0) before = 0;  // which MPI leaves undefined
    const int last = handle.size - 1;
    std::array<std::int64_t, 2> told{};
    if (handle.rank == last) {
        const StorageScope scope(engine);
        const Place begin = handle.shared_pointer->advance(before + mine);
        told = {begin.etypes, begin.error};
    }
    if (handle.size > 1) PMPI_Bcast(told.data(), static_cast<int>(told.size()), MPI_INT64_T, last, handle.comm);
    return {told[0] + before, static_cast<int>(told[1])};
}

Call at(Call call, const Place& place) {
    call.explicit_offset = true;
    call.offset = place.etypes;
    return call;
}

/// The library's, of a file that is none of the engine's containers.
int leave(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> real) {
    const bool writes = call.direction == Direction::write;
    const std::string reason = handle.engaged ? "shared file pointer" : handle.refusal;
    handle.passed.count(reason);
    if (handle.file && writes) ++handle.file->passed_writes;
    if (handle.file) settle_size(engine, *handle.file);
    return engine.verify && writes ? pass_write(handle, call, reason, real) : real();
}

template <typename Buffer>
Call call_of(MPI_File fh, Buffer* buffer, MPI_Count count, MPI_Datatype datatype) {
    constexpr Direction direction = std::is_const_v<Buffer> ? Direction::write : Direction::read;
    Call call{fh, direction, true, 0, const_cast<void*>(static_cast<const void*>(buffer)), count, datatype};
    call.shared = true;
    return call;
}

// ------------------------------------------------------------------------------------------- one call of each kind

int move_blocking(Handle& handle, Call call, FunctionRef<int()> alone) {
    Engine& the_engine = *engine();
    const Place place =
        call.collective ? take_part_in_order(the_engine, handle, call) : take_part(the_engine, handle, call);
    if (place.error == 0) return transfer(the_engine, handle, at(call, place), alone, alone);
    set_empty(call.status);
    return raise(call.fh, failed_class(the_engine, handle, place.error, &call));
}

int move_nonblocking(Handle& handle, const Call& call, MPI_Request* request, FunctionRef<int()> alone) {
    Engine& the_engine = *engine();
    const Place place = take_part(the_engine, handle, call);
    if (place.error == 0) return start_nonblocking(handle, at(call, place), request, alone, alone);
    *request = MPI_REQUEST_NULL;
    return raise(call.fh, failed_class(the_engine, handle, place.error, &call));
}

int begin_ordered(Handle& handle, Kind kind, const Call& call, FunctionRef<int(MPI_Status*)> alone) {
    Engine& the_engine = *engine();
    if (handle.split.kind != Kind::none) {
        if (the_engine.verify && call.direction == Direction::write) count_failed(handle, call, second_split);
        return raise(call.fh, MPI_ERR_REQUEST);
    }
    const Place place = take_part_in_order(the_engine, handle, call);
    if (place.error != 0) {
        handle.split.kind = kind;
        handle.split.result = failed_class(the_engine, handle, place.error, &call);  // which end gives back
        set_empty(&handle.split.status);
        return MPI_SUCCESS;
    }
    MPI_Status status;
    const auto real = [&] { return alone(&status); };
    return begin_split(handle, kind, at(call, place), real, alone);
}

// ----------------------------------------------------------------------------------------------------------- hooks

/// The hook for member `same` of the table, whose form for one rank is member `alone`, by the shape of its parameters.
template <auto same, auto alone>
struct SharedHook;

template <typename Buffer, typename Count, int (*FileCalls::*same)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*),
          int (*FileCalls::*alone)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct SharedHook<same, alone> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype, MPI_Status* status) {
        Engine& the_engine = *engine();
        const std::shared_ptr<Handle> handle = the_engine.find(fh);
        if (handle && handle->container) {
            Call wanted = call_of(fh, buffer, count, datatype);
            wanted.status = status;
            wanted.collective = same != alone;
            const auto one = [&] { return (the_engine.below.*alone)(fh, buffer, count, datatype, status); };
            return move_blocking(*handle, wanted, one);
        }
        const auto real = [&] { return (the_engine.below.*same)(fh, buffer, count, datatype, status); };
        return handle ? leave(the_engine, *handle, call_of(fh, buffer, count, datatype), real) : real();
    }
};

template <auto same>
struct NonblockingHook;

template <typename Buffer, typename Count,
          int (*FileCalls::*same)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Request*)>
struct NonblockingHook<same> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype, MPI_Request* request) {
        Engine& the_engine = *engine();
        const std::shared_ptr<Handle> handle = the_engine.find(fh);
        const auto real = [&] { return (the_engine.below.*same)(fh, buffer, count, datatype, request); };
        if (handle && handle->container && request != nullptr)
            return move_nonblocking(*handle, call_of(fh, buffer, count, datatype), request, real);
        return handle ? leave(the_engine, *handle, call_of(fh, buffer, count, datatype), real) : real();
    }
};

template <Kind kind, auto same, auto alone>
struct BeginHook;

template <Kind kind, typename Buffer, typename Count, int (*FileCalls::*same)(MPI_File, Buffer*, Count, MPI_Datatype),
          int (*FileCalls::*alone)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct BeginHook<kind, same, alone> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype) {
        Engine& the_engine = *engine();
        const std::shared_ptr<Handle> handle = the_engine.find(fh);
        if (handle && handle->container) {
            const auto one = [&](MPI_Status* status) {
                return (the_engine.below.*alone)(fh, buffer, count, datatype, status);
            };
            return begin_ordered(*handle, kind, call_of(fh, buffer, count, datatype), one);
        }
        const auto real = [&] { return (the_engine.below.*same)(fh, buffer, count, datatype); };
        return handle ? leave(the_engine, *handle, call_of(fh, buffer, count, datatype), real) : real();
    }
};

template <Kind kind, auto last>
struct EndHook;

template <Kind kind, typename Buffer, int (*FileCalls::*last)(MPI_File, Buffer*, MPI_Status*)>
struct EndHook<kind, last> {
    static int call(MPI_File fh, Buffer* buffer, MPI_Status* status) {
        const auto real = [&] { return (engine()->below.*last)(fh, buffer, status); };
        const std::shared_ptr<Handle> handle = engine()->find(fh);
        return handle && handle->container ? end_split(*handle, kind, fh, status, real) : real();
    }
};

/// A function and its large-count form.
template <auto same, auto alone, auto same_large, auto alone_large>
void put_shared(const FileCalls& below, FileCalls& hooks) {
    if (below.*same != nullptr && below.*alone != nullptr) hooks.*same = &SharedHook<same, alone>::call;
    if (below.*same_large != nullptr && below.*alone_large != nullptr)
        hooks.*same_large = &SharedHook<same_large, alone_large>::call;
}

template <auto same, auto large>
void put_shared_nonblocking(const FileCalls& below, FileCalls& hooks) {
    if (below.*same != nullptr) hooks.*same = &NonblockingHook<same>::call;
    if (below.*large != nullptr) hooks.*large = &NonblockingHook<large>::call;
}

template <Kind kind, auto first, auto alone, auto first_large, auto alone_large, auto last>
void put_split(const FileCalls& below, FileCalls& hooks) {
    if (below.*last == nullptr) return;
    if (below.*first != nullptr && below.*alone != nullptr) hooks.*first = &BeginHook<kind, first, alone>::call;
    if (below.*first_large != nullptr && below.*alone_large != nullptr)
        hooks.*first_large = &BeginHook<kind, first_large, alone_large>::call;
    hooks.*last = &EndHook<kind, last>::call;
}

// ----------------------------------------------------------------------------------------------- where it stands

/// Rank 0, when all have met: MPI's class of an error.
int move_pointer(Engine& engine, Handle& handle, MPI_Offset offset, int whence) {
    MPI_Offset base = 0;
    if (whence == MPI_SEEK_END) {
        const std::int64_t bytes = container_size(engine, handle);
        if (bytes < 0) return MPI_ERR_IO;
        base = container_end(handle, bytes);
    }
    const StorageScope scope(engine);
    if (whence == MPI_SEEK_CUR) {
        const Place now = handle.shared_pointer->now();
        if (now.error != 0) return failed_class(engine, handle, now.error);
        base = now.etypes;
    }
    MPI_Offset target = 0;
    if (__builtin_add_overflow(base, offset, &target) || target < 0) return MPI_ERR_ARG;
    const int error = handle.shared_pointer->set(target);
    return error == 0 ? MPI_SUCCESS : failed_class(engine, handle, error);
}

/// Collective over the handle's group.
int seek(Engine& engine, Handle& handle, MPI_File fh, MPI_Offset offset, int whence) {
    flush_container(engine, handle, false);  // the end is that of what all have written
    std::array<std::int64_t, 5> largest{offset, ~offset, whence, ~std::int64_t{whence}, handle.container->last_stamp()};
    if (handle.size > 1)
        PMPI_Allreduce(MPI_IN_PLACE, largest.data(), static_cast<int>(largest.size()), MPI_INT64_T, MPI_MAX,
                       handle.comm);
    handle.container->adopt(largest[4]);
    const bool same = largest[0] == ~largest[1] && largest[2] == ~largest[3];  // max(~x) == ~min(x)
    const bool known = whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END;
    if (!same || !known) return raise(fh, MPI_ERR_ARG);
    int result = handle.rank == 0 ? move_pointer(engine, handle, offset, whence) : MPI_SUCCESS;
    if (handle.size > 1) PMPI_Bcast(&result, 1, MPI_INT, 0, handle.comm);
    return raise(fh, result);
}

int hook_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
    Engine& the_engine = *engine();
    const std::shared_ptr<Handle> handle = the_engine.find(fh);
    if (handle && handle->container) return seek(the_engine, *handle, fh, offset, whence);
    if (handle && handle->engaged) meet_settled(the_engine, *handle, whence == MPI_SEEK_END);
    return the_engine.below.File_seek_shared(fh, offset, whence);
}

int hook_get_position_shared(MPI_File fh, MPI_Offset* offset) {
    Engine& the_engine = *engine();
    const std::shared_ptr<Handle> handle = the_engine.find(fh);
    if (!handle || !handle->container || offset == nullptr)
        return the_engine.below.File_get_position_shared(fh, offset);
    Place now;
    {
        const StorageScope scope(the_engine);
        now = handle->shared_pointer->now();
    }
    if (now.error != 0) return raise(fh, failed_class(the_engine, *handle, now.error));
    *offset = now.etypes;
    return MPI_SUCCESS;
}

}  // namespace

void hook_shared_calls(const FileCalls& below, FileCalls& hooks) {
    using F = FileCalls;
    put_shared<&F::File_read_shared, &F::File_read_shared, &F::File_read_shared_c, &F::File_read_shared_c>(below,
                                                                                                           hooks);
    put_shared<&F::File_write_shared, &F::File_write_shared, &F::File_write_shared_c, &F::File_write_shared_c>(below,
                                                                                                               hooks);
    put_shared<&F::File_read_ordered, &F::File_read_shared, &F::File_read_ordered_c, &F::File_read_shared_c>(below,
                                                                                                             hooks);
    put_shared<&F::File_write_ordered, &F::File_write_shared, &F::File_write_ordered_c, &F::File_write_shared_c>(below,
                                                                                                                 hooks);
    put_shared_nonblocking<&F::File_iread_shared, &F::File_iread_shared_c>(below, hooks);
    put_shared_nonblocking<&F::File_iwrite_shared, &F::File_iwrite_shared_c>(below, hooks);
    put_split<Kind::read_ordered, &F::File_read_ordered_begin, &F::File_read_shared, &F::File_read_ordered_begin_c,
              &F::File_read_shared_c, &F::File_read_ordered_end>(below, hooks);
    put_split<Kind::write_ordered, &F::File_write_ordered_begin, &F::File_write_shared, &F::File_write_ordered_begin_c,
              &F::File_write_shared_c, &F::File_write_ordered_end>(below, hooks);
    if (below.File_seek_shared != nullptr) hooks.File_seek_shared = hook_seek_shared;
    if (below.File_get_position_shared != nullptr) hooks.File_get_position_shared = hook_get_position_shared;
}

}  // namespace ioweir::engine
