// A call of one piece: its bytes lie together in memory and in the file, and its rank moves them by itself, or hands them over to a writer. That
// is what most programs' small calls are. So nothing is done here that the call does not need: one system call, or one copy, moves the bytes,
// and there is no lock, no allocation, no call of the MPI library, and no clock (but for one in sixteen that hands over).
// What does not live here: all other calls (call.cpp).
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "engine/behind/behind.hpp"
#include "engine/calls/atomic_mode.hpp"
#include "engine/calls/plain_piece.hpp"
#include "engine/files/mapped.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {

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

namespace {

/// Other threads of a program without MPI_THREAD_MULTIPLE count only between this one's calls.
void add(const Engine& engine, std::atomic<std::int64_t>& figure, std::int64_t more) {
    if (engine.threaded)
        figure.fetch_add(more, std::memory_order_relaxed);
    else
        figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

storage::Transfer move(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes, std::int64_t place) {
    const StorageScope scope(engine);
    if (handle.container && call.collective) begin_collective(handle, call.direction == Direction::write);
    const int descriptor = handle.descriptor.number;
    if (call.direction == Direction::read) return handle.storage->read_at(descriptor, call.buffer, bytes, place);
    if (handle.container && !call.collective) handle.container->begin_call();
    return handle.storage->write_at(descriptor, call.buffer, bytes, place);
}

/// A part of a call's bytes.
storage::Transfer move_part(Engine& engine, Handle& handle, const Call& call, std::int64_t before, std::int64_t bytes,
                            std::int64_t place) {
    Call part = call;
    part.buffer = static_cast<std::byte*>(call.buffer) + before;
    return move(engine, handle, part, bytes - before, place + before);
}

/// Counts, tells the program, and says whether it is an error.
int end_piece(Engine& engine, Handle& handle, const Call& call, storage::Transfer done) {
    add(engine, handle.totals.calls, 1);
    add(engine, handle.totals.operations, 1);
    add(engine, call.direction == Direction::write ? handle.totals.written_bytes : handle.totals.read_bytes,
        done.bytes);
    if (call.status != MPI_STATUS_IGNORE) engine.status_bytes.set(*call.status, done.bytes);
    if (done.error == 0) [[likely]]
        return MPI_SUCCESS;
    if (done.error == EIO) say_container_problem(engine, handle);
    const int result = error_class(done.error);
    remember_error(handle, result);
    return call.raises ? raise(call.fh, result) : result;
}

}  // namespace

bool look_at_run(const Engine& engine, Handle& handle, MPI_Count count, MPI_Datatype datatype) {
    PlainCalls& plain = handle.plain;
    plain.count = 0;
    plain.age = engine.ages_of_types.load(std::memory_order_acquire);
    std::int64_t bytes = layout::known_run_bytes(datatype);
    if (bytes <= 0 || count <= 0 || __builtin_mul_overflow(bytes, count, &bytes) ||
        bytes % handle.view.etype_bytes != 0)
        return false;
    plain.datatype = datatype;
    plain.count = count;
    plain.bytes = bytes;
    plain.etypes = bytes / handle.view.etype_bytes;
    return true;
}

int finish_piece(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes, std::int64_t place,
                 std::int64_t moved) {
    storage::Transfer done{std::max<std::int64_t>(moved, 0), moved < 0 && errno != EINTR ? errno : 0};
    const bool writes = call.direction == Direction::write;
    if (done.error == 0) {
        const auto go_on = [&] {
            const storage::Transfer more = move_part(engine, handle, call, done.bytes, bytes, place);
            done = {done.bytes + more.bytes, more.error};
        };
        if (writes || moved != 0) go_on();  // else it is the end of the file
        if (!writes && done.error == 0 && done.bytes < bytes && settle_size(engine, *handle.file)) go_on();
    }
    return end_piece(engine, handle, call, done);
}

void judge_lean(const Engine& engine, Handle& handle) {
    const bool keeps_order = !handle.behind || (!engine.threaded && !handle.container && !handle.rebalance);
    handle.lean = handle.engaged && !engine.verify && !is_atomic(handle) && keeps_order && !handle.sequential &&
                  !handle.library_atomic && !handle.external32 && handle.view_refusal.empty() && handle.view_bytes > 0;
    PlainCalls& plain = handle.plain;
    plain = {};
    const bool is_plain = handle.lean && !engine.threaded && !handle.container && !handle.behind && !handle.rebalance &&
                          engine.host.descriptors_gone != nullptr &&
                          dynamic_cast<const storage::PosixBackend*>(handle.storage) != nullptr;
    if (!is_plain) return;
    plain.writes = handle.writable && engine.host.write_storage != nullptr;
    plain.reads = handle.readable && engine.host.read_storage != nullptr;
    plain.together = handle.view.filetype->contiguous;
    plain.end = handle.view_bytes;
    if (!plain.together) return;
    // Behind it there is nothing that an offset could say.
    if (__builtin_add_overflow(handle.view.displacement, handle.view.filetype->bounds.offset, &plain.base))
        plain.reads = plain.writes = false;
    plain.end = std::min(plain.end, INT64_MAX - std::max<std::int64_t>(plain.base, 0));
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
    const bool tells =
        call.collective && !writes && handle.container && handle.writable && !is_seen_without_telling(handle);
    if (call.collective &&
        ((tells && !handle.shared_reads) || (writes && handle.rebalance) || (chosen && !chooses_alone(handle, writes))))
        return {};
    if (const std::optional<int> done = move_plain_piece(engine, handle, call)) {
        if (chosen) count_alone(handle, writes);
        return done;
    }
    // What waits in other handles' queues comes first, and what waits at all before a read.
    const bool hands = handle.behind != nullptr;
    const int others = handle.file->behind_handles.load(std::memory_order_relaxed) - (hands ? 1 : 0);
    const bool waits = others != 0 && !(hands && handle.file->last_handed == handle.behind->queue.get());
    if (!(writes ? handle.writable : handle.readable) || (hands && !writes) || waits) return {};
    std::int64_t bytes = layout::known_run_bytes(call.datatype);
    if (bytes <= 0 || call.count <= 0 || __builtin_mul_overflow(bytes, call.count, &bytes)) return {};
    const std::int64_t etype_bytes = handle.view.etype_bytes;
    const std::int64_t etypes = etype_bytes == 1 ? bytes : bytes / etype_bytes;
    if (etypes * etype_bytes != bytes || !descriptor_is_usable(engine, handle)) return {};

    std::int64_t position = call.offset, first_byte = 0;
    PointerLock guard = lock_pointer(handle, !call.explicit_offset);
    if (!call.explicit_offset) position = handle.own_pointer.load(std::memory_order_relaxed);
    if (position < 0 || __builtin_mul_overflow(position, etype_bytes, &first_byte)) return {};
    const std::int64_t place = place_in_file(handle, first_byte, bytes);
    if (place < 0) return {};
    // By the amount asked for, also at the end of the file (MPI 4.0, section 14.4.3).
    if (!call.explicit_offset && !hands) handle.own_pointer.store(position + etypes, std::memory_order_relaxed);
    if (guard.owns_lock()) guard.unlock();

    if (hands) {
        if (!handle.behind->queue->put_piece(call.buffer, bytes, place)) return {};
        if (!call.explicit_offset) handle.own_pointer.store(position + etypes, std::memory_order_relaxed);
        add(engine, handle.totals.calls, 1);
        add(engine, handle.totals.written_bytes, bytes);
        if (call.status != MPI_STATUS_IGNORE) engine.status_bytes.set(*call.status, bytes);
        return MPI_SUCCESS;
    }
    if (tells) share_container(engine, handle, false);
    int cannot = handle.container ? look_atomically(engine, handle) : 0;
    storage::Transfer done = move(engine, handle, call, bytes, place);
    if (handle.container && writes && cannot == 0) cannot = show_written(engine, handle);
    if (done.error == 0) done.error = cannot;
    if (!writes && done.error == 0 && done.bytes < bytes && settle_size(engine, *handle.file))
        done = move(engine, handle, call, bytes, place);
    if (chosen) count_alone(handle, writes);
    return end_piece(engine, handle, call, done);
}

}  // namespace ioweir::engine
