// Reads and writes: what is to be done with one call, then having it done, then what MPI must know about it.
// What does not live here: moving the bytes (direct.cpp).
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <new>
#include <optional>
#include <string>

#include "engine/calls/atomic_mode.hpp"
#include "engine/calls/packed.hpp"
#include "engine/files/mapped.hpp"
#include "engine/files/rebalance.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

/// Who does it. `alone` when only this rank may know the reason: it must not enter a collective that the others do not enter.
enum class By { engine, library, library_alone };

struct Decision {
    By by = By::engine;
    std::string reason;
    // For the engine:
    std::shared_ptr<const layout::FlatType> type;  ///< null: the datatype cannot be flattened and is packed
    std::int64_t bytes = 0;
    std::int64_t first_byte = 0;       ///< of the view's data
    std::int64_t position_etypes = 0;  ///< where an individual pointer stands
    bool refused = false;              ///< the library will refuse the call, and move nothing
    bool moved_on = false;  ///< the individual pointer has been, so that no other thread's call has the same place
    Packing packing{};      ///< without `type`
};

Decision alone(std::string reason) { return {By::library_alone, std::move(reason), nullptr, 0, 0, 0}; }
Decision refused(std::string reason) { return {By::library_alone, std::move(reason), nullptr, 0, 0, 0, true}; }

/// As layout::flatten(), which takes a lock and asks the library: not for the type of the call before.
Result<std::shared_ptr<const layout::FlatType>> flattened(const Engine& engine, Handle& handle, MPI_Datatype datatype) {
    if (engine.threaded) return layout::flatten(datatype);
    LastType& last = handle.last_type;
    const std::uint32_t age = layout::age_of_types();
    if (last.type && last.datatype == datatype && last.age == age) return last.type;
    auto flat = layout::flatten(datatype);
    if (flat.ok()) last = {datatype, age, flat.value()};
    return flat;
}

/// Gives decision.type and decision.packing, or says why there are none.
std::string look_at_memory(const Engine& engine, Handle& handle, const Call& call, Decision& decision) {
    const auto flat = flattened(engine, handle, call.datatype);
    MPI_Count size = 0;
    if (flat.ok()) {
        size = flat.value()->size;
    } else {
        PMPI_Type_size_x(call.datatype, &size);
        if (size > INT_MAX) return "the memory datatype: " + flat.error().message();
    }
    decision.packing = {size, handle.external32};
    if (flat.ok() && !handle.external32) decision.type = flat.value();
    return {};
}

Decision decide(Engine& engine, Handle& handle, const Call& call) {
    if (!handle.engaged) return {By::library, handle.refusal, nullptr, 0, 0, 0};
    if (!handle.view_refusal.empty()) return {By::library, handle.view_refusal, nullptr, 0, 0, 0};
    if (handle.library_atomic) return {By::library, "atomic mode", nullptr, 0, 0, 0};

    // From here on other ranks may see it differently. Faulty arguments are the library's to complain about.
    if (call.count < 0 || call.datatype == MPI_DATATYPE_NULL || (call.explicit_offset && call.offset < 0)) {
        return refused("faulty arguments");
    }
    if (!(call.direction == Direction::read ? handle.readable : handle.writable))
        return refused("against the access mode");
    // OMPIO would make the call all the same, on the header file.
    if (handle.sequential && !call.shared)
        return alone("a call that is not by the shared pointer, in MPI_MODE_SEQUENTIAL");
    Decision decision;
    if (const std::string why = look_at_memory(engine, handle, call, decision); !why.empty()) return alone(why);
    const MPI_Count size = decision.packing.bytes;
    MPI_Offset position = call.offset;
    const bool moves_on = !call.explicit_offset && engine.threaded && handle.own_pointer >= 0;
    const auto guard = lock_pointer(handle, moves_on);
    // In a view without data the pointer stands still; ROMIO would divide by its size.
    if (!call.explicit_offset && handle.view_bytes == 0) position = 0;
    if (!call.explicit_offset && handle.view_bytes > 0 && position_of(handle, call.fh, position) != MPI_SUCCESS)
        return alone("no file position");
    decision.position_etypes = position;
    if (__builtin_mul_overflow(size, call.count, &decision.bytes) ||
        __builtin_mul_overflow(position, handle.view.etype_bytes, &decision.first_byte)) {
        return alone("faulty arguments");
    }
    // Erroneous by MPI, and OMPIO carries it out; PETSc does it. Pointers count in etypes, and could not move on by a part.
    const bool may_be_a_part = handle.container && call.explicit_offset && !call.shared;
    if (decision.bytes % handle.view.etype_bytes != 0 && !may_be_a_part) return alone("a part of an etype");
    if (decision.bytes > 0 && decision.first_byte > handle.view_bytes - decision.bytes)
        return alone(handle.view_bytes == 0 ? "an empty filetype" : "a filetype whose tiles do not ascend");
    // In a collective call no rank's bytes may suffer from it.
    if (decision.bytes > 0 && !handle.view.has_places(decision.first_byte, decision.bytes))
        return alone("behind the largest offset that there is");
    if (!descriptor_is_usable(engine, handle)) return alone("the engine's descriptor was closed by the program");
    decision.moved_on = moves_on && handle.view_bytes > 0;
    if (decision.moved_on)
        set_position(handle, call.fh, decision.position_etypes + decision.bytes / handle.view.etype_bytes);
    return decision;
}

Outcome move_bytes(Engine& engine, Handle& handle, Direction direction, const Memory& memory, std::int64_t first_byte) {
    const FileRange range{&handle.view, first_byte};
    DirectTuning tuning;
    if (!handle.effects.reads_holes) tuning.longest_hole_bytes = 0;
    Outcome outcome;
    if (direction == Direction::read)
        drain_behind(*handle.file);
    else
        drain_other_handles(handle);
    const bool logs = engine.verify && direction == Direction::write;
    if (logs) prepare_log(engine, handle, range, memory.bytes);
    if (direction == Direction::write && hands_over(handle, memory.bytes)) {
        outcome = hand_over(handle, memory, range);
    } else {
        const StorageScope scope(engine);
        outcome = direction == Direction::write
                      ? write_direct(*handle.storage, handle.descriptor.number, memory, range, tuning)
                      : read_direct(*handle.storage, handle.descriptor.number, memory, range, tuning);
    }
    if (direction == Direction::read && outcome.error == 0 && outcome.bytes < memory.bytes &&
        settle_size(engine, *handle.file)) {
        const StorageScope scope(engine);
        outcome = read_direct(*handle.storage, handle.descriptor.number, memory, range, tuning);
    }
    if (logs && outcome.bytes > 0) {
        const std::lock_guard guard(handle.file->log_lock);
        handle.file->log.record(handle.id, {memory.base, memory.type, outcome.bytes}, range);
    }
    return outcome;
}

/// The program will be told that the call has moved `outcome.bytes`, of which move_bytes() and move_together() have made a note.
void log_failed(Handle& handle, const Decision& decision, const Outcome& outcome) {
    ++handle.failed_writes;
    const std::lock_guard guard(handle.file->log_lock);
    handle.file->log.record_failed(handle.id, {&handle.view, decision.first_byte + outcome.bytes},
                                   decision.bytes - outcome.bytes);
}

/// This rank's bytes, by itself.
Outcome move_alone(Engine& engine, Handle& handle, const Call& call, const Decision& decision) {
    if (decision.type) {
        const Memory memory{static_cast<std::byte*>(call.buffer), decision.type.get(), decision.bytes};
        return move_bytes(engine, handle, call.direction, memory, decision.first_byte);
    }
    return move_packed(call, decision.packing, [&](const Memory& part, std::int64_t before) {
        return move_bytes(engine, handle, call.direction, part, decision.first_byte + before);
    });
}

/// Status, pointer, error handler.
int finish(Handle& handle, const Call& call, const Decision& decision, const Outcome& outcome) {
    if (!call.explicit_offset && handle.view_bytes > 0 && !decision.moved_on) {
        // By the amount asked for, also at the end of the file (MPI 4.0, section 14.4.3).
        set_position(handle, call.fh, decision.position_etypes + decision.bytes / handle.view.etype_bytes);
    }
    if (call.status != MPI_STATUS_IGNORE) engine()->status_bytes.set(*call.status, outcome.bytes);
    int result = error_class(outcome.error);
    if (result == MPI_SUCCESS) result = take_behind_error(handle);  // of an earlier call
    if (result != MPI_SUCCESS) remember_error(handle, result);
    return call.raises ? raise(call.fh, result) : result;
}

void count(Handle& handle, Direction direction, const Outcome& outcome) {
    Totals& totals = handle.totals;
    ++totals.calls;
    (direction == Direction::write ? totals.written_bytes : totals.read_bytes) += outcome.bytes;
    totals.operations += outcome.operations;
}

/// Others' bytes may go through it, whatever becomes of this rank's own. -1: it is somebody else's by now, and they get EBADF.
int descriptor_for_others(Engine& engine, Handle& handle, const Decision& decision) {
    if (decision.by == By::engine || handle.container) return handle.descriptor.number;
    try {
        return descriptor_is_usable(engine, handle) ? handle.descriptor.number : -1;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

/// What every rank of a collective call through an exchange does with its own bytes. A rank that works alone takes part without any.
std::optional<Outcome> move_together(Engine& engine, Handle& handle, const Call& call, const Decision& decision) {
    const auto started = std::chrono::steady_clock::now();
    const std::int64_t processor_ns = thread_processor_ns();
    const bool brings = decision.by == By::engine && decision.type && decision.bytes > 0;
    const Memory memory{static_cast<std::byte*>(call.buffer), decision.type.get(), decision.bytes};
    IoRequest io{handle.storage,
                 descriptor_for_others(engine, handle, decision),
                 brings ? &memory : nullptr,
                 {&handle.view, decision.first_byte},
                 engine.host.enter_storage,
                 engine.host.leave_storage,
                 engine.host.step};
    const bool writes = call.direction == Direction::write;
    if (!writes) settle_size(engine, *handle.file);  // an aggregator must not meet the end too soon
    io.watched = writes && handle.rebalance != nullptr;
    const bool logs = brings && writes && engine.verify;
    if (logs) prepare_log(engine, handle, io.range, memory.bytes);
    WatchedParts parts(engine, handle);
    const TogetherOutcome together =
        transfer_together(*handle.team, planner::within_group(handle.strategy), writes, io, handle.own_request,
                          handle.subgroup[writes ? 1 : 0], io.watched ? &parts : nullptr);
    const std::int64_t worked_ns = thread_processor_ns() - processor_ns;
    if (together.each_alone) {
        ++handle.totals.alone_by_choice;
        return std::nullopt;
    }
    if (!together.done) {
        handle.passed.count("no exchange, each rank alone: " + together.refusal);
        return std::nullopt;
    }
    Totals& totals = handle.totals;
    ++totals.exchanges;
    if (together.in_subgroup) ++totals.in_subgroups;
    totals.rounds += together.rounds;
    totals.storage_ns += together.figures.storage_ns;
    totals.messages += together.figures.messages;
    totals.sent_bytes += together.figures.sent_bytes;
    const std::int64_t elapsed_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - started).count();
    totals.elapsed_ns += elapsed_ns;
    totals.exchange_ns += elapsed_ns - together.figures.storage_ns;
    totals.exchange_processor_ns += worked_ns - together.figures.storage_processor_ns;
    if (logs && together.outcome.bytes > 0) {
        const std::lock_guard guard(handle.file->log_lock);
        handle.file->log.record(handle.id, {memory.base, memory.type, together.outcome.bytes}, io.range);
    }
    if (!brings && decision.by == By::engine && decision.bytes > 0)
        return std::nullopt;  // cannot be flattened: by itself
    return together.outcome;
}

/// The bytes do not lie where the library would look for them.
int refuse_container(Engine& engine, Handle& handle, const Call& call, const Decision& decision) {
    const std::string text = "refused, for the bytes of the file lie in several: " + decision.reason;
    handle.passed.count(text);
    if (engine.verify && call.direction == Direction::write) count_failed(handle, call, text);
    // Programs seldom print an error's string, and many wait for one another for ever after an error that not all of them have.
    if (decision.by == By::library_alone || handle.rank == 0) say_refusal(engine, handle, text);
    if (call.status != MPI_STATUS_IGNORE) engine.status_bytes.set(*call.status, 0);
    return call.raises ? raise(call.fh, MPI_ERR_UNSUPPORTED_OPERATION) : MPI_ERR_UNSUPPORTED_OPERATION;
}

int transfer_decided(Engine& engine, Handle& handle, const Call& call, const Decision& decision,
                     FunctionRef<int()> same, FunctionRef<int()> independent) {
    std::optional<Outcome> outcome;
    const bool writes = call.direction == Direction::write;
    // Aggregators would mix what overlaps.
    const bool atomic = is_atomic(handle);
    bool together = call.collective && handle.team && !atomic && (writes || handle.effects.reads_together);
    if (together && decision.by != By::library && chooses_alone(handle, writes)) {
        together = false;
        count_alone(handle, writes);
    }
    if (decision.by != By::library && call.collective && writes && handle.rebalance) rebalance(engine, handle);
    // Who reads for others must know of what these have written; else each rank looks by itself where writes are shown at once.
    const bool shares = call.collective && !writes && !atomic && (together || !is_seen_without_telling(handle));
    if (decision.by != By::library && shares) share_container(engine, handle, together);
    if (handle.container) call.collective ? begin_collective(handle, writes) : handle.container->begin_call();
    // In turn with what others have done: their calls come before this one. Where ranks read together, they have just told each other.
    const bool told = shares && handle.size > 1;
    const bool looks = decision.by == By::engine && handle.container && !atomic && !told;
    const int cannot_look = looks ? look_atomically(engine, handle) : 0;
    if (decision.by != By::library && together) outcome = move_together(engine, handle, call, decision);
    if (decision.by != By::engine && handle.container && !decision.refused)
        return refuse_container(engine, handle, call, decision);
    if (decision.by != By::engine) {
        handle.passed.count(decision.reason);
        if (handle.file && call.direction == Direction::write) ++handle.file->passed_writes;
        if (handle.file) settle_size(engine, *handle.file);
        const FunctionRef<int()> real = decision.by == By::library ? same : independent;
        const LentPointer lent(handle, call.fh, !call.explicit_offset);
        return engine.verify && writes ? pass_write(handle, call, decision.reason, real) : real();
    }
    if (!outcome) {
        const auto move = [&] { return move_alone(engine, handle, call, decision); };
        const bool locks = atomic && decision.bytes > 0;
        outcome = locks ? move_atomically(engine, handle, call.direction, move) : move();
    }
    const int cannot_show = writes && handle.container && !atomic ? show_written(engine, handle) : 0;
    if (outcome->error == 0) outcome->error = cannot_look != 0 ? cannot_look : cannot_show;
    if (engine.verify && writes && outcome->bytes < decision.bytes) log_failed(handle, decision, *outcome);
    if (outcome->error == EIO) say_container_problem(engine, handle);
    count(handle, call.direction, *outcome);
    return finish(handle, call, decision, *outcome);
}

/// `moved_on`: as in the decision, also where it throws.
int transfer_or_throw(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> same,
                      FunctionRef<int()> independent, bool& moved_on) {
    Decision decision;
    try {
        decision = decide(engine, handle, call);
    } catch (const std::bad_alloc&) {
        decision = alone("no memory");  // the others may count on this rank for an exchange
    }
    moved_on = decision.moved_on;
    const auto by_engine = [&] { return transfer_decided(engine, handle, call, decision, same, independent); };
    if (decision.by == By::engine) {
        if (const auto done = take_turn_alone(engine, handle, call, decision.bytes, by_engine, same)) return *done;
    }
    return by_engine();
}

}  // namespace

std::int64_t etypes_wanted(Engine& engine, Handle& handle, Call call) {
    call.explicit_offset = true;
    call.offset = 0;
    try {
        const Decision decision = decide(engine, handle, call);
        return decision.by == By::engine ? decision.bytes / handle.view.etype_bytes : -1;
    } catch (const std::bad_alloc&) {
        return -1;
    }
}

std::int64_t bytes_asked(const Call& call) {
    MPI_Count size = 0;
    std::int64_t bytes = 0;
    if (call.count <= 0 || call.datatype == MPI_DATATYPE_NULL ||
        PMPI_Type_size_x(call.datatype, &size) != MPI_SUCCESS || __builtin_mul_overflow(size, call.count, &bytes))
        return 0;
    return bytes;
}

bool descriptor_is_usable(Engine& engine, Handle& handle) {
    const std::uint32_t* const counted = engine.host.descriptors_gone;
    const std::uint32_t gone = counted != nullptr ? __atomic_load_n(counted, __ATOMIC_ACQUIRE) : 0;
    if (counted != nullptr && handle.descriptors_gone.load(std::memory_order_relaxed) == gone) return true;
    const std::lock_guard guard(handle.descriptor_lock);
    const StorageScope scope(engine);
    handle.descriptors_gone = gone;
    if (Descriptors::is_intact(handle.descriptor)) return true;
    if (handle.container) handle.container->find_again();  // whoever closed this one has closed those, too
    const Descriptors::Opened opened =
        engine.descriptors.open(handle.path, handle.descriptor.readable, handle.descriptor.writable);
    if (opened.error != 0 || opened.descriptor.identity != handle.descriptor.identity) {
        if (opened.error == 0) engine.descriptors.release(opened.descriptor);
        handle.descriptors_gone = gone - 1;  // asked again in the next call
        return false;
    }
    handle.descriptor = opened.descriptor;
    return true;
}

int transfer(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> same,
             FunctionRef<int()> independent) {
    bool moved_on = false;
    try {
        if (const std::optional<int> done = move_one_piece(engine, handle, call)) return *done;
        return transfer_or_throw(engine, handle, call, same, independent, moved_on);
    } catch (const std::bad_alloc&) {
        // No exception may reach a C or Fortran program. This rank does without the engine, unless the pointer has moved on: other threads' calls
        // may lie behind it.
        if (engine.verify && call.direction == Direction::write) handle.left_out.add_without_memory(bytes_asked(call));
        if (handle.container || moved_on) return call.raises ? raise(call.fh, MPI_ERR_NO_MEM) : MPI_ERR_NO_MEM;
        const LentPointer lent(handle, call.fh, !call.explicit_offset);
        return independent();
    }
}

}  // namespace ioweir::engine
