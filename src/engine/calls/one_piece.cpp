// A call of one piece: its bytes lie together in memory and in the file, and its rank moves them by itself. That is what most programs' small
// calls are. So nothing is done here that the call does not need: one system call moves the bytes, and there is no lock, no clock, no
// allocation, and no call of the MPI library.
// What does not live here: all other calls (call.cpp).
#include <cerrno>
#include <cstdint>
#include <optional>

#include "engine/calls/atomic_mode.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

/// Where in the file so many bytes of the view's data lie together; -1: they do not.
std::int64_t place_in_file(const Handle& handle, std::int64_t first_byte, std::int64_t bytes) {
    if (first_byte > handle.view_bytes - bytes) return -1;
    layout::Extent piece;
    const layout::FlatType& filetype = *handle.view.filetype;
    if (filetype.contiguous) {
        if (__builtin_add_overflow(handle.view.displacement + filetype.bounds.offset, first_byte, &piece.offset))
            return -1;
        return piece.offset;
    }
    return handle.view.pieces(first_byte, bytes).next(piece) && piece.length == bytes ? piece.offset : -1;
}

/// Other threads of a program without MPI_THREAD_MULTIPLE count only between this one's calls.
void add(const Engine& engine, std::atomic<std::int64_t>& figure, std::int64_t more) {
    if (engine.threaded)
        figure.fetch_add(more, std::memory_order_relaxed);
    else
        figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

storage::Transfer move(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes, std::int64_t place) {
    const StorageScope scope(engine);
    if (handle.container && call.collective) handle.container->begin_batch();
    const int descriptor = handle.descriptor.number;
    if (call.direction == Direction::read) return handle.storage->read_at(descriptor, call.buffer, bytes, place);
    if (handle.container && !call.collective) handle.container->begin_call();
    return handle.storage->write_at(descriptor, call.buffer, bytes, place);
}

}  // namespace

void judge_lean(const Engine& engine, Handle& handle) {
    handle.lean = handle.engaged && !engine.verify && !is_atomic(handle) && !handle.behind && !handle.sequential &&
                  !handle.library_atomic && !handle.external32 && handle.view_refusal.empty() && handle.view_bytes > 0;
}

bool chooses_alone(const Handle& handle, bool writes) {
    if (handle.strategy.writers.kind != planner::WritersKind::automatic) return false;
    return handle.subgroup[writes ? 1 : 0].alone_left > 0 ||
           !planner::may_collect(handle.strategy, handle.view_piece_bytes, writes,
                                 handle.team->group->topology().crowded);
}

void count_alone(Handle& handle, bool writes) {
    std::int64_t& left = handle.subgroup[writes ? 1 : 0].alone_left;
    if (left > 0) --left;
    ++handle.totals.alone_by_choice;
}

std::optional<int> move_one_piece(Engine& engine, Handle& handle, const Call& call) {
    const bool writes = call.direction == Direction::write;
    if (!handle.lean) return {};
    // In a collective call the ranks may have to agree on something.
    const bool chosen = call.collective && handle.team && (writes || handle.effects.reads_together);
    const bool tells = handle.container && !writes && !is_seen_without_telling(handle);
    if (call.collective && (tells || (writes && handle.rebalance) || (chosen && !chooses_alone(handle, writes))))
        return {};
    if (!(writes ? handle.writable : handle.readable) ||
        handle.file->behind_handles.load(std::memory_order_relaxed) != 0)
        return {};
    std::int64_t bytes = layout::known_run_bytes(call.datatype);
    if (bytes <= 0 || call.count <= 0 || __builtin_mul_overflow(bytes, call.count, &bytes)) return {};
    const std::int64_t etype_bytes = handle.view.etype_bytes;
    const std::int64_t etypes = etype_bytes == 1 ? bytes : bytes / etype_bytes;
    if (etypes * etype_bytes != bytes || !descriptor_is_usable(engine, handle)) return {};

    std::int64_t position = call.offset, first_byte = 0, place = 0;
    if (!call.explicit_offset) position = handle.own_pointer.load(std::memory_order_relaxed);
    do {
        if (position < 0 || __builtin_mul_overflow(position, etype_bytes, &first_byte)) return {};
        place = place_in_file(handle, first_byte, bytes);
        if (place < 0) return {};
        // By the amount asked for, also at the end of the file (MPI 4.0, section 14.4.3). Another thread's call may have come between.
    } while (!call.explicit_offset && !handle.own_pointer.compare_exchange_weak(position, position + etypes));

    int cannot = handle.container ? look_atomically(engine, handle) : 0;
    storage::Transfer done = move(engine, handle, call, bytes, place);
    if (handle.container && writes && cannot == 0) cannot = show_written(engine, handle);
    if (done.error == 0) done.error = cannot;
    if (!writes && done.error == 0 && done.bytes < bytes && settle_size(engine, *handle.file))
        done = move(engine, handle, call, bytes, place);
    if (chosen) count_alone(handle, writes);
    add(engine, handle.totals.calls, 1);
    add(engine, handle.totals.operations, 1);
    add(engine, writes ? handle.totals.written_bytes : handle.totals.read_bytes, done.bytes);
    if (call.status != MPI_STATUS_IGNORE) engine.status_bytes.set(*call.status, done.bytes);
    if (done.error == 0) [[likely]]
        return MPI_SUCCESS;
    if (done.error == EIO) say_container_problem(engine, handle);
    const int result = error_class(done.error);
    remember_error(handle, result);
    return call.raises ? raise(call.fh, result) : result;
}

}  // namespace ioweir::engine
