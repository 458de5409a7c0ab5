// The entries that the engine puts into the table of hooks. Each finds the handle and hands over; nothing else happens here.
#include <memory>
#include <optional>
#include <utility>

#include "engine/calls/plain_piece.hpp"
#include "engine/files/hints.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::engine {
namespace {

Engine* current_engine = nullptr;

int hook_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
    return open_file(*current_engine, comm, filename, amode, info, fh);
}

int hook_close(MPI_File* fh) { return close_file(*current_engine, fh); }

int hook_get_info(MPI_File fh, MPI_Info* info) {
    const int result = current_engine->below.File_get_info(fh, info);
    const std::shared_ptr<Handle> handle = current_engine->find(fh);
    if (result == MPI_SUCCESS && handle && handle->engaged) show_hints(*handle, *info);
    return result;
}

int hook_set_info(MPI_File fh, MPI_Info info) {
    const std::shared_ptr<Handle> handle = current_engine->find(fh);
    if (!handle || !handle->engaged || info == MPI_INFO_NULL) return current_engine->below.File_set_info(fh, info);
    return current_engine->below.File_set_info(fh, LibraryInfo(info, handle->strategy.stripe).get());
}

int hook_delete(const char* filename, MPI_Info info) { return delete_file(*current_engine, filename, info); }

int hook_sync(MPI_File fh) {
    Handle* const handle = current_engine->find_open(fh);
    const TimedCall timed(handle != nullptr ? handle->choosing.get() : nullptr);
    return sync_file(*current_engine, fh);
}

int hook_set_view(MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                  MPI_Info info) {
    return set_view(*current_engine, fh, displacement, etype, filetype, datarep, info);
}

using mpi::FileCalls;

/// What hooks do of member `same` of the table, whose independent form is member `alone`; `place`: the offset, where the call has one.
template <auto same, auto alone, typename Buffer, typename Count, typename... Place>
int carry_out(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype, MPI_Status* status, Place... place) {
    const auto real = [&](auto member) {
        return (current_engine->below.*member)(fh, place..., buffer, count, datatype, status);
    };
    Handle* const handle = current_engine->find_open(fh);
    if (handle == nullptr) return real(same);
    const Call call{fh,
                    std::is_const_v<Buffer> ? Direction::write : Direction::read,
                    sizeof...(place) != 0,
                    (MPI_Offset{0} + ... + place),
                    const_cast<void*>(static_cast<const void*>(buffer)),
                    count,
                    datatype,
                    status,
                    same != alone};
    const TimedCall timed(handle->choosing.get());
    if (handle->choosing) {
        handle->choosing->mine.bytes += bytes_asked(call);
        ++handle->choosing->mine.calls;
        if (!handle->engaged && !current_engine->verify) return real(same);
    }
    if (handle->choosing && handle->choosing->turn.step == Series::Step::compared) {
        if constexpr (same == alone) {
            if (is_librarys_alone(*handle, call))
                return by_library(*current_engine, *handle, call, [&] { return real(same); });
        } else {
            const auto part = [&](auto member, const Call& of) {
                return (current_engine->below.*member)(fh, static_cast<Place>(of.offset)...,
                                                       static_cast<Buffer*>(of.buffer), static_cast<Count>(of.count),
                                                       datatype, of.status);
            };
            const auto all = [&](const Call& of) { return part(same, of); };
            const auto one = [&](const Call& of) { return part(alone, of); };
            return transfer_in_portions(*current_engine, *handle, call, all, one);
        }
    }
    if constexpr (same == alone) {
        if (const std::optional<int> done = move_plain_piece(*current_engine, *handle, call)) return *done;
    }
    const auto all = [&] { return real(same); };
    const auto one = [&] { return real(alone); };
    return transfer_in_turns(*current_engine, *handle, call, all, one);
}

/// The hook for member `same`, by the shape of its parameters.
template <auto same, auto alone>
struct Hook;

template <typename Buffer, typename Count,
          int (*FileCalls::*same)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Status*),
          int (*FileCalls::*alone)(MPI_File, MPI_Offset, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct Hook<same, alone> {
    static int call(MPI_File fh, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype datatype,
                    MPI_Status* status) {
        return carry_out<same, alone>(fh, buffer, count, datatype, status, offset);
    }
};

template <typename Buffer, typename Count, int (*FileCalls::*same)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*),
          int (*FileCalls::*alone)(MPI_File, Buffer*, Count, MPI_Datatype, MPI_Status*)>
struct Hook<same, alone> {
    static int call(MPI_File fh, Buffer* buffer, Count count, MPI_Datatype datatype, MPI_Status* status) {
        return carry_out<same, alone>(fh, buffer, count, datatype, status);
    }
};

/// Only where the real library has both functions.
template <auto same, auto alone>
void put(const FileCalls& below, FileCalls& hooks) {
    if (below.*same != nullptr && below.*alone != nullptr) hooks.*same = &Hook<same, alone>::call;
}

}  // namespace

Engine* engine() { return current_engine; }

void install(const FileCalls& below, FileCalls& hooks, Options options, Host host) {
    if (current_engine == nullptr) current_engine = new Engine(below, std::move(options), host);
    current_engine->status_bytes.arm();
    int level = MPI_THREAD_MULTIPLE;
    current_engine->threaded = PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    if (below.File_open == nullptr || below.File_close == nullptr || below.File_set_view == nullptr) return;
    hooks.File_open = hook_open;
    hooks.File_close = hook_close;
    hooks.File_set_view = hook_set_view;
    if (below.File_get_info != nullptr) hooks.File_get_info = hook_get_info;
    if (below.File_set_info != nullptr) hooks.File_set_info = hook_set_info;
    if (below.File_sync != nullptr) hooks.File_sync = hook_sync;
    if (below.File_delete != nullptr) hooks.File_delete = hook_delete;
    hook_shared_calls(below, hooks);
    hook_split_collectives(below, hooks);
    hook_nonblocking_calls(below, hooks);
    hook_sizes(below, hooks);
    hook_positions(below, hooks);
    using F = FileCalls;
    put<&F::File_read_at, &F::File_read_at>(below, hooks);
    put<&F::File_read_at_c, &F::File_read_at_c>(below, hooks);
    put<&F::File_read_at_all, &F::File_read_at>(below, hooks);
    put<&F::File_read_at_all_c, &F::File_read_at_c>(below, hooks);
    put<&F::File_write_at, &F::File_write_at>(below, hooks);
    put<&F::File_write_at_c, &F::File_write_at_c>(below, hooks);
    put<&F::File_write_at_all, &F::File_write_at>(below, hooks);
    put<&F::File_write_at_all_c, &F::File_write_at_c>(below, hooks);
    put<&F::File_read, &F::File_read>(below, hooks);
    put<&F::File_read_c, &F::File_read_c>(below, hooks);
    put<&F::File_read_all, &F::File_read>(below, hooks);
    put<&F::File_read_all_c, &F::File_read_c>(below, hooks);
    put<&F::File_write, &F::File_write>(below, hooks);
    put<&F::File_write_c, &F::File_write_c>(below, hooks);
    put<&F::File_write_all, &F::File_write>(below, hooks);
    put<&F::File_write_all_c, &F::File_write_c>(below, hooks);
}

void shut_down() {
    if (current_engine == nullptr) return;
    for (const std::shared_ptr<Handle>& handle : current_engine->take_all()) {
        if (handle->engaged && current_engine->verify) {
            note(*current_engine, format::NoteCode::message, handle->path, 0,
                 "never closed, and therefore not verified");
        }
        if (current_engine->verify) say_unverified(*current_engine, *handle, false);
        drain_own(*handle);
        count_behind(*handle);
        if (handle->file) settle_size(*current_engine, *handle->file);
        flush_container(*current_engine, *handle, false);
        note_end(*current_engine, *handle);
        stop_choosing(*handle, "a file was never closed");
        const StorageScope scope(*current_engine);
        current_engine->descriptors.release(handle->descriptor);
    }
    tell_last_choices(*current_engine);
    retire_behind(*current_engine);
    // Collective by MPI's rules, and no more than MPI_Finalize is, which every rank is in.
    current_engine->process_groups.free_kept();
    layout::release_flatten_cache();
}

}  // namespace ioweir::engine
