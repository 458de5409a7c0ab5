#include "engine/calls/atomic_mode.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/files/mapped.hpp"

namespace ioweir::engine {
namespace {

using container::LockedFile;

/// Says so, once. An errno value.
int cannot_lock(Engine& engine, Handle& handle, int error) {
    if (handle.atomic->said_why.exchange(true)) return error;
    const std::string text = "atomic mode needs a lock: " + handle.atomic->lock.path() + ": " + std::strerror(error) +
                             "; the directory must be writable, on a file system with fcntl locks";
    complain(engine, handle.path, text);
    return error;
}

/// What others have shown will be seen, and what is written next comes later.
void catch_up(Handle& handle, std::int64_t shown) {
    if (handle.atomic->seen == shown) return;
    handle.container->adopt(shown);
    handle.atomic->seen = shown;
}

/// This process has shown what it had written.
void note_shown(Handle& handle, const container::ShownNumber::Shown& shown) {
    if (shown.error != 0) return;
    if (shown.by_others) handle.container->adopt(shown.number);
    handle.atomic->seen = shown.number;
}

/// With the lock held: others will see what this process has written. An errno value.
int publish(Handle& handle, LockedFile::Held& held) {
    if (!handle.container->directory().has_index()) return 0;  // all see everything at once
    if (const int error = handle.container->flush(false); error != 0) return error;
    const auto shown = handle.atomic->shown.raise(held, handle.container->last_stamp(), handle.atomic->seen);
    note_shown(handle, shown);
    return shown.error;
}

}  // namespace

bool is_atomic(const Handle& handle) { return handle.atomic && handle.atomic->on; }

bool is_seen_without_telling(const Handle& handle) { return handle.atomic && handle.atomic->each_call; }

int set_container_atomicity(Engine& engine, Handle& handle, MPI_File fh, int flag) {
    flush_container(engine, handle, false);
    int error = 0;
    if (flag != 0 && handle.writable) {
        std::optional<StorageScope> scope(std::in_place, engine);
        error = handle.atomic->lock.take(LockedFile::Kind::exclusive).error();
        scope.reset();
        if (error != 0) cannot_lock(engine, handle, error);
    }
    // What was written before is seen by all: an ordinary file has it by now.
    std::array<std::int64_t, 4> largest{handle.container->last_stamp(), flag != 0 ? 1 : 0, flag != 0 ? 0 : 1, error};
    if (handle.size > 1)
        PMPI_Allreduce(MPI_IN_PLACE, largest.data(), static_cast<int>(largest.size()), MPI_INT64_T, MPI_MAX,
                       handle.comm);
    handle.container->adopt(largest[0]);
    if (largest[1] == largest[2]) return raise(fh, MPI_ERR_ARG);  // some on, some off
    if (largest[3] != 0) return raise(fh, MPI_ERR_UNSUPPORTED_OPERATION);
    const int result = engine.below.File_set_atomicity(fh, flag);
    if (result == MPI_SUCCESS) handle.atomic->on = flag != 0;
    judge_lean(engine, handle);
    return result;
}

Outcome move_atomically(Engine& engine, Handle& handle, Direction direction, FunctionRef<Outcome()> move) {
    if (!handle.writable) return move();
    const auto kind = direction == Direction::write ? LockedFile::Kind::exclusive : LockedFile::Kind::shared;
    std::optional<LockedFile::Held> held;
    int error = 0;
    {
        const StorageScope scope(engine);
        error = handle.atomic->shown.begin();
        if (error == 0) error = held.emplace(handle.atomic->lock.take(kind)).error();
        if (error == 0) catch_up(handle, handle.atomic->shown.look(*held).number);
    }
    if (error != 0) return {0, cannot_lock(engine, handle, error), 0};
    Outcome outcome = move();
    const StorageScope scope(engine);
    if (direction == Direction::write) {
        error = publish(handle, *held);
        if (outcome.error == 0) outcome.error = error;
    }
    held.reset();
    return outcome;
}

int look_atomically(Engine& engine, Handle& handle) {
    if (!handle.atomic || (!handle.atomic->on && !handle.atomic->each_call)) return 0;
    if (!handle.writable || !handle.container->directory().has_index()) return 0;
    container::ShownNumber::Shown shown;
    {
        const StorageScope scope(engine);
        shown = handle.atomic->shown.look();
        if (shown.error == 0) catch_up(handle, shown.number);
    }
    return shown.error == 0 ? 0 : cannot_lock(engine, handle, shown.error);
}

std::int64_t shown_number(Engine& engine, Handle& handle, int& error) {
    error = 0;
    if (!handle.atomic || !handle.atomic->each_call) return 0;
    container::ShownNumber::Shown shown;
    {
        const StorageScope scope(engine);
        shown = handle.atomic->shown.look();
    }
    error = shown.error;
    if (error != 0) (void)cannot_lock(engine, handle, error);
    return shown.number;
}

int show_written(Engine& engine, Handle& handle) {
    if (!handle.atomic || handle.atomic->on || !handle.atomic->each_call || !handle.writable) return 0;
    if (!handle.container->directory().has_index()) return 0;
    container::ShownNumber::Shown shown;
    {
        const StorageScope scope(engine);
        if (const int error = handle.container->show(); error != 0) return error;
        // Others may have published since this was written, with a larger stamp: the number grows all the same, for all to look again.
        shown = handle.atomic->shown.raise(handle.container->last_stamp(), handle.atomic->seen);
        note_shown(handle, shown);
    }
    return shown.error == 0 ? 0 : cannot_lock(engine, handle, shown.error);
}

}  // namespace ioweir::engine
