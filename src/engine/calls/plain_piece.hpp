// A call of one piece in a plain file, of a program with one thread in MPI at a time: what most programs make by far. It is inlined into the hook: after
// a system call a processor foresees neither where a function returns to nor where a pointer leads, so that each step on the way to the storage
// costs more than what it does.
// What does not live here: all other calls of one piece (one_piece.cpp).
#pragma once

#include <cerrno>
#include <optional>

#include "engine/parts.hpp"

namespace ioweir::engine {

/// What so many instances hold is kept in handle.plain for the calls that follow. False: they are no one piece.
[[nodiscard]] bool look_at_run(const Engine& engine, Handle& handle, MPI_Count count, MPI_Datatype datatype);
/// Where in the file so many bytes of the view's data lie together; -1: they do not.
[[nodiscard]] std::int64_t place_in_file(const Handle& handle, std::int64_t first_byte, std::int64_t bytes);
/// For a call of which one attempt has moved fewer bytes than `bytes`, or none (-1, and errno).
[[nodiscard]] int finish_piece(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes, std::int64_t place,
                               std::int64_t moved);

/// The call's result; nothing where it is no such call, or other ranks may have to take part: then nothing has been done.
[[nodiscard, gnu::always_inline]] inline std::optional<int> move_plain_piece(Engine& engine, Handle& handle,
                                                                             const Call& call) {
    const bool writes = call.direction == Direction::write;
    PlainCalls& plain = handle.plain;
    if (!(writes ? plain.writes : plain.reads)) return {};
    if (plain.datatype != call.datatype || plain.count != call.count ||
        plain.age != engine.ages_of_types.load(std::memory_order_acquire)) [[unlikely]] {
        if (!look_at_run(engine, handle, call.count, call.datatype)) return {};
    }
    const std::int64_t position =
        call.explicit_offset ? call.offset : handle.own_pointer.load(std::memory_order_relaxed);
    std::int64_t first_byte = 0;
    if (position < 0 || __builtin_mul_overflow(position, handle.view.etype_bytes, &first_byte) ||
        first_byte > plain.end - plain.bytes)
        return {};
    std::int64_t place = plain.base + first_byte;
    if (!plain.together) place = place_in_file(handle, first_byte, plain.bytes);
    if (place < 0) return {};
    if (handle.file->behind_handles.load(std::memory_order_relaxed) != 0 ||
        handle.descriptors_gone.load(std::memory_order_relaxed) !=
            __atomic_load_n(engine.host.descriptors_gone, __ATOMIC_ACQUIRE))
        return {};
    const auto wanted = static_cast<std::size_t>(plain.bytes);
    const int descriptor = handle.descriptor.number;
    const ssize_t moved = writes ? engine.host.write_storage(descriptor, call.buffer, wanted, place)
                                 : engine.host.read_storage(descriptor, call.buffer, wanted, place);
    // By the amount asked for, also at the end of the file (MPI 4.0, section 14.4.3).
    if (!call.explicit_offset) handle.own_pointer.store(position + plain.etypes, std::memory_order_relaxed);
    if (moved != plain.bytes) [[unlikely]]
        return finish_piece(engine, handle, call, plain.bytes, place, moved);
    const auto add = [](std::atomic<std::int64_t>& figure, std::int64_t more) {
        figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    };
    add(handle.totals.calls, 1);
    add(handle.totals.operations, 1);
    add(writes ? handle.totals.written_bytes : handle.totals.read_bytes, moved);
    if (call.status != MPI_STATUS_IGNORE) engine.status_bytes.set(*call.status, moved);
    return MPI_SUCCESS;
}

}  // namespace ioweir::engine
