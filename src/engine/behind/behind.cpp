// Write-behind: which handles hand their bytes over, when that must be drained, and what the program learns of errors.
// What does not live here: the memory and the threads (write_behind_queue.cpp).
//
// MPI lets the bytes of a write reach the file as late as the next MPI_File_sync or MPI_File_close, for all but the rank that wrote
// them (MPI 4.0, section 14.6.1). Many programs read after a bare barrier all the same: so a file that is open for reading too is
// written behind only where the plan says that nobody reads before a sync (visibility = "sync").
//
// Promises:
// - In these processes nothing sees the file without what the node's ranks have handed over before: MPI reads, sizes, other opens, calls
//   of the MPI library, and POSIX calls that name it. Descriptors that the program has opened itself before are not watched.
// - After MPI_File_sync and MPI_File_close it is all in the file, on every node.
// - A failure is returned by the rank's next call that moves data, or else by its sync or close.
#include "engine/behind/behind.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/raw_syscall.hpp"
#include "engine/behind/write_behind_queue.hpp"
#include "engine/parts.hpp"
#include "planner/placement.hpp"
#include "planner/strategy.hpp"

namespace ioweir::engine {
namespace {

std::shared_ptr<WriteBehindQueue> queue_for(Engine& engine, Team& team, const planner::Strategy& strategy,
                                            std::string& why) {
    const std::int64_t bytes = strategy.buffer_bytes > 0 ? strategy.buffer_bytes : planner::usual_behind_bytes;
    // Found on one rank, found on all: they have closed the same files.
    const auto idle = std::find_if(team.idle_queues.begin(), team.idle_queues.end(),
                                   [&](const auto& queue) { return queue->serves(strategy.writers.count, bytes); });
    if (idle != team.idle_queues.end()) {
        std::shared_ptr<WriteBehindQueue> queue = *idle;
        team.idle_queues.erase(idle);
        return queue;
    }
    const WriteBehindQueue::Services services{&engine.backend, &engine.descriptors, &engine.host};
    std::shared_ptr<WriteBehindQueue> queue =
        WriteBehindQueue::make(*team.group, strategy.writers.count, bytes, services, why);
    if (queue) engine.queues.add(queue);
    return queue;
}

/// For the next file of the team.
void leave_queue(const Engine& engine, Team& team, std::shared_ptr<WriteBehindQueue> queue) {
    {
        const StorageScope scope(engine);
        queue->end();
    }
    team.idle_queues.push_back(std::move(queue));
}

/// Those of this process's handles of a file.
std::vector<std::shared_ptr<WriteBehindQueue>> queues_of(FileState& file) {
    const std::lock_guard guard(file.behind_lock);
    return file.queues;
}

/// Nothing waits there, and another thread of its parent may have had any lock.
bool is_child_of_fork(const Engine& engine) { return raw::process_id() != engine.process; }

/// A process that ends without MPI_Finalize: its threads are still there.
void at_exit() {
    if (engine() != nullptr && !is_child_of_fork(*engine())) drain_everything(*engine());
}

}  // namespace

void WriteBehindQueues::add(const std::shared_ptr<WriteBehindQueue>& queue) {
    const std::lock_guard guard(lock_);
    if (!std::exchange(waits_for_exit_, true)) std::atexit(at_exit);
    std::erase_if(queues_, [](const auto& known) { return known.expired(); });
    queues_.push_back(queue);
}

std::vector<std::shared_ptr<WriteBehindQueue>> WriteBehindQueues::all() const {
    const std::lock_guard guard(lock_);
    std::vector<std::shared_ptr<WriteBehindQueue>> all;
    for (const std::weak_ptr<WriteBehindQueue>& known : queues_) {
        if (std::shared_ptr<WriteBehindQueue> queue = known.lock()) all.push_back(std::move(queue));
    }
    return all;
}

void begin_behind(Engine& engine, Handle& handle, MPI_Comm comm, bool visible_at_sync) {
    if (!handle.writable) return;
    std::string why;
    if (handle.readable && !visible_at_sync) {
        why =
            "the file is open for reading too; where nobody reads before a sync, say visibility = \"sync\" in the plan";
    } else {
        std::shared_ptr<ProcessGroup> ranks = engine.process_groups.take(comm, handle.one_thread);
        if (std::shared_ptr<Team> team = ProcessGroups::team_of(*ranks, why)) {
            std::shared_ptr<WriteBehindQueue> queue = queue_for(engine, *team, handle.strategy, why);
            const bool begun = queue && queue->begin(*team->group, handle.path, handle.file->identity, why);
            if (begun) {
                FileState& file = *handle.file;
                const std::lock_guard guard(file.behind_lock);
                file.queues.push_back(queue);
                ++file.behind_handles;
                if (++engine.behind_handles == 1 && engine.host.watch_paths != nullptr) engine.host.watch_paths(true);
                handle.behind = std::make_shared<Behind>(Behind{std::move(ranks), std::move(team), std::move(queue)});
                return;
            }
            if (queue) leave_queue(engine, *team, std::move(queue));
        }
        engine.process_groups.give_back(ranks);
    }
    handle.strategy.writers = {};
    if (handle.rank == 0) {
        if (why.empty()) why = "not possible on another rank";
        note(engine, format::NoteCode::message, handle.path, 0, "not used: write-behind: " + why);
    }
}

void count_behind(Handle& handle) {
    if (!handle.behind) return;
    const BehindFigures figures = handle.behind->queue->figures();
    handle.totals.handed_bytes += figures.bytes;
    handle.totals.hand_ns += figures.hand_ns;
    handle.totals.room_waits += figures.waits;
    handle.totals.room_wait_ns += figures.wait_ns;
    handle.totals.writer_ns += figures.writer_ns;
    handle.totals.operations += figures.operations;
}

void end_behind(Engine& engine, Handle& handle) {
    if (!handle.behind) return;
    count_behind(handle);
    const std::shared_ptr<Behind> behind = std::exchange(handle.behind, nullptr);
    {
        FileState& file = *handle.file;
        const std::lock_guard guard(file.behind_lock);
        std::erase(file.queues, behind->queue);
        file.last_handed = nullptr;
        --file.behind_handles;
        if (--engine.behind_handles == 0 && engine.host.watch_paths != nullptr) engine.host.watch_paths(false);
    }
    leave_queue(engine, *behind->team, std::move(behind->queue));
    behind->team = nullptr;
    engine.process_groups.give_back(behind->ranks);
}

bool hands_over(Handle& handle, std::int64_t bytes) {
    if (!handle.behind) return false;
    // A call that does not fit would wait for one thread, and be copied for nothing: all ranks at once are faster.
    if (bytes <= handle.behind->queue->capacity()) return true;
    handle.behind->queue->drain_own();
    ++handle.totals.too_large;
    return false;
}

Outcome hand_over(Handle& handle, const Memory& memory, const FileRange& range) {
    handle.behind->queue->put(memory, range);
    return {memory.bytes, 0, 0};
}

void drain_behind(FileState& file) {
    if (file.behind_handles == 0) return;
    for (const std::shared_ptr<WriteBehindQueue>& queue : queues_of(file)) queue->drain_node();
}

void drain_other_handles(Handle& handle) {
    FileState& file = *handle.file;
    if (file.behind_handles <= (handle.behind ? 1 : 0)) return;
    const WriteBehindQueue* const own = handle.behind ? handle.behind->queue.get() : nullptr;
    const bool in_turn = !engine()->threaded;
    if (in_turn && own != nullptr && file.last_handed == own) return;
    for (const std::shared_ptr<WriteBehindQueue>& queue : queues_of(file)) {
        if (queue.get() != own) queue->drain_own();
    }
    file.last_handed = in_turn ? own : nullptr;
}

int take_behind_error(Handle& handle) {
    const int failure = handle.behind ? error_class(handle.behind->queue->take_error()) : MPI_SUCCESS;
    if (failure != MPI_SUCCESS) handle.failed_behind = true;
    return failure;
}

void drain_own(Handle& handle) {
    if (!handle.behind) return;
    handle.behind->queue->drain_own();
    if (const int failure = take_behind_error(handle); failure != MPI_SUCCESS) owe_error(handle, failure);
}

void drain_path(Engine& engine, int directory, const char* path) {
    if (engine.behind_handles == 0 || path == nullptr || is_child_of_fork(engine)) return;
    // Not through libc: it is nobody's question.
    struct stat info{};
    if (raw::call(SYS_newfstatat, directory, raw::word(path), raw::word(&info), 0) != 0) return;
    const FileIdentity identity{static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
    if (const std::shared_ptr<FileState> file = engine.known_file(identity)) drain_behind(*file);
}

void before_path(int directory, const char* path) {
    if (engine() != nullptr) drain_path(*engine(), directory, path);
}

void drain_everything(Engine& engine) {
    for (const std::shared_ptr<WriteBehindQueue>& queue : engine.queues.all()) {
        queue->drain_own();
        queue->retire();
    }
}

void retire_behind(Engine& engine) {
    for (const std::shared_ptr<WriteBehindQueue>& queue : engine.queues.all()) queue->retire();
}

}  // namespace ioweir::engine
