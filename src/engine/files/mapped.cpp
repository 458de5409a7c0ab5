#include "engine/files/mapped.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "container/files/placed_log.hpp"
#include "container/files/subfiles.hpp"
#include "container/sharing/generations.hpp"
#include "container/sharing/locks.hpp"
#include "engine/calls/atomic_mode.hpp"
#include "engine/calls/shared_pointer.hpp"
#include "engine/calls/shared_reads.hpp"
#include "engine/files/mapped_make.hpp"
#include "engine/files/rebalance.hpp"
#include "engine/parts.hpp"
#include "exchange/delivery.hpp"
#include "planner/placement.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

using planner::MappingKind;

void tell(MPI_Comm comm, OpenBroadcast& told) { PMPI_Bcast(&told, sizeof told, MPI_BYTE, 0, comm); }

planner::Mapping mapping_of(const container::Shape& shape) {
    if (shape.kind == container::Shape::Kind::log) return {MappingKind::log, 0};
    if (shape.kind == container::Shape::Kind::subfiles) return {MappingKind::subfiles, shape.count};
    return {MappingKind::grouped, shape.count};
}

/// This process's container of the file, for one more handle. Why there is none; empty: handle.container is there.
std::string join_container(Engine& engine, Handle& handle, const container::Directory& directory) {
    handle.file = engine.file(handle.descriptor.identity);
    const StorageScope scope(engine);
    const std::lock_guard guard(handle.file->container_lock);
    std::shared_ptr<container::Container> known = handle.file->container.lock();
    if (known) {
        if (const auto problem = known->join(handle.role)) return problem->message();
    } else {
        auto opened = container::Container::open(engine.backend, engine.clock, directory, handle.role);
        if (!opened) return opened.error().message();
        known = opened.take();
        handle.file->container = known;
    }
    handle.container = std::move(known);
    return {};
}

/// So that a subfile that is shorter later is missed. An errno value.
int keep_sizes(const container::Directory& directory, std::uint32_t generation) {
    const auto subfiles = container::read_subfiles(directory);
    return subfiles ? container::keep_sizes(directory, subfiles.value(), generation) : EIO;
}

/// The target on which this rank's log lies. Collective over `comm`, for which ranks write goes by their nodes.
std::string place_of_log(Engine& engine, const Handle& handle, MPI_Comm comm) {
    const auto targets = std::ssize(handle.log_places);
    std::shared_ptr<ProcessGroup> group;
    if (handle.size > 1 && may_aggregate(handle.strategy)) group = engine.process_groups.take(comm, handle.one_thread);
    std::string why;
    const std::shared_ptr<Team> team = group ? ProcessGroups::team_of(*group, why) : nullptr;
    const std::int64_t target =
        team ? planner::target_of_log(team->group->topology(), team->group->rank(), targets)
             : planner::target_of_log(planner::Topology::one_node(handle.size), handle.rank, targets);
    if (group) engine.process_groups.give_back(group);
    return handle.log_places[static_cast<std::size_t>(target)];
}

/// Drawn at random.
std::int64_t number_of_open() {
    std::int64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number)
        number = container::realtime_ns() ^ (std::int64_t{::getpid()} << 32);
    return number;
}

/// Where both pointers stand before a view is set: at the end of the logical file with MPI_MODE_APPEND (MPI 4.0, section 14.2.1).
std::int64_t first_position(Engine& engine, Handle& handle, MPI_Comm comm, int amode) {
    if ((amode & MPI_MODE_APPEND) == 0) return 0;
    std::int64_t bytes = handle.rank == 0 ? container_size(engine, handle) : 0;
    PMPI_Bcast(&bytes, 1, MPI_INT64_T, 0, comm);
    return bytes < 0 ? 0 : bytes;
}

/// Collective, for a file whose rule has targets = "auto": where the logs of this generation go. Those that were chosen now, or those that
/// the logs lie in that are there; none: in the container's directory, which rank 0 says.
std::vector<std::string> agree_on_log_places(Engine& engine, const Handle& handle, MPI_Comm comm,
                                             const container::Directory& directory, const Placing& placing) {
    std::string text;  // a directory and a zero each
    if (handle.rank == 0) {
        const StorageScope scope(engine);
        std::vector<std::string> places = placing.directories;
        if (places.empty() && placing.why_not.empty()) places = container::places_of_logs(directory);
        for (const std::string& place : places) text += place + '\0';
        if (places.empty() && placing.why_not.empty())
            note(engine, format::NoteCode::message, handle.path, 0,
                 "logs lie beside the file: targets are chosen when it is made, and none of its logs lies on one");
    }
    if (handle.size > 1) (void)exchange::broadcast(comm, text);
    std::vector<std::string> places;
    for (std::size_t at = 0; at < text.size(); at += places.back().size() + 1) places.emplace_back(text.c_str() + at);
    return places;
}

/// Where what ranks write is not seen by the others at once, and some of them read it.
bool needs_sharing(const Handle& handle) {
    return handle.container && handle.readable && handle.writable && handle.size > 1 &&
           handle.container->directory().has_index();
}

/// What `work` says is an errno value, and owed to the program. Other ranks may be waiting: nothing is thrown.
template <typename Work>
void owe_failure_of(Handle& handle, Work&& work) {
    int error = ENOMEM;
    try {
        error = work();
    } catch (const std::bad_alloc&) {
    }
    if (error != 0) owe_error(handle, error_class(error));
}

/// What this process has written is in its index.
void show_own(Engine& engine, Handle& handle) {
    owe_failure_of(handle, [&] {
        const StorageScope scope(engine);
        return handle.container->show();
    });
}

/// The lowest rank that failed, or the number of ranks.
int first_failed(MPI_Comm comm, int rank, int size, bool good) {
    int mine = good ? size : rank;
    int first = mine;
    if (size > 1) PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
    return first;
}

}  // namespace

Result<std::optional<container::HeaderFile>> read_header_file(Engine& engine, const std::string& path) {
    struct stat info{};
    const bool may_be = ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
                        info.st_size <= container::most_header_file_bytes;
    if (!may_be) return std::optional<container::HeaderFile>();
    if (engine.host.program_has_open == nullptr || !engine.host.program_has_open(info.st_dev, info.st_ino))
        return container::read_header_file(path);
    const Descriptors::Opened opened = engine.descriptors.open(path, true, false);
    if (opened.error != 0) return std::optional<container::HeaderFile>();
    auto header_file = container::read_header_file(opened.descriptor.number, path);
    engine.descriptors.release(opened.descriptor);  // closed when the program has it open no more
    return header_file;
}

Found look(Engine& engine, MPI_Comm comm, const std::string& path, bool opened) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    OpenBroadcast told;
    if (rank == 0 && opened) {
        const StorageScope scope(engine);
        const auto header_file = read_header_file(engine, path);
        if (!header_file) {
            told.kind = static_cast<std::int64_t>(Found::Kind::damaged);
            complain(engine, path, header_file.error().message());
        } else if (header_file.value()) {
            put(told, *header_file.value());
        }
    }
    tell(comm, told);
    Found found;
    found.kind = static_cast<Found::Kind>(told.kind);
    if (found.kind == Found::Kind::header_file) found.header_file = header_file_of(told);
    return found;
}

int attach_container(Engine& engine, Handle& handle, MPI_Comm comm, int amode, const Found& found,
                     const policy::FileRule* rule) {
    Placing placing;
    if (found.kind == Found::Kind::ordinary && asks_for_targets(handle.strategy, rule)) {
        bool may_make = false;
        if (handle.rank == 0) {
            const StorageScope scope(engine);
            may_make = why_shared(handle, rule).empty();
        }
        placing = find_places(engine, handle, comm, *rule, may_make);
    }
    OpenBroadcast told;
    Held held;  // until all ranks have theirs
    if (handle.rank == 0) {
        told = prepare(engine, handle, found, rule, placing, held);
        told.open = number_of_open();
        told.only_name = container::is_only_name(handle.path) ? 1 : 0;
    }
    tell(comm, told);
    if (told.kind < 0) return static_cast<int>(-told.kind);
    if (told.kind == OpenBroadcast::changed) return open_again;
    if (told.kind == static_cast<std::int64_t>(Found::Kind::ordinary)) {
        handle.strategy.mapping = {MappingKind::shared, 0};
        return MPI_SUCCESS;
    }
    const container::HeaderFile header_file = header_file_of(told);
    const container::Directory directory = container::directory_of(handle.path, header_file);
    handle.strategy.mapping = mapping_of(header_file.shape);
    if (header_file.shape.kind == container::Shape::Kind::subfiles) {
        handle.stored.size_bytes = handle.strategy.stripe.size_bytes = header_file.shape.stripe_bytes;
        handle.stored.count = handle.strategy.stripe.count = header_file.shape.count;
    }
    handle.role.reads = handle.readable || (engine.verify && handle.descriptor.readable);
    handle.role.writes = handle.writable;
    if (header_file.shape.kind == container::Shape::Kind::grouped)
        handle.role.group = planner::group_of_rank(handle.rank, header_file.shape.count, handle.size);
    if (header_file.shape.kind == container::Shape::Kind::log && rule != nullptr && handle.writable)
        handle.log_places =
            rule->chooses_targets ? agree_on_log_places(engine, handle, comm, directory, placing) : rule->targets;
    if (!handle.log_places.empty()) handle.role.place = place_of_log(engine, handle, comm);
    handle.role.rank = static_cast<std::uint32_t>(handle.rank);
    handle.role.generation = static_cast<std::uint32_t>(told.generation);
    handle.role.after_dead = told.after_dead != 0;
    handle.role.waits = handle.visible_at_sync;
    handle.generation_lock = std::move(held.generation);
    engine.clock.adopt(told.stamp);
    const std::string problem = join_container(engine, handle, directory);
    const int failed = first_failed(comm, handle.rank, handle.size, problem.empty());
    if (failed == handle.size) {
        handle.deletes_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0 && told.only_name != 0;
        handle.storage = handle.container.get();
        handle.begin = first_position(engine, handle, comm, amode);
        handle.shared_pointer = std::make_shared<SharedPointer>(engine.backend, directory,
                                                                static_cast<std::uint64_t>(told.open), handle.begin);
        handle.atomic = std::make_shared<AtomicMode>(engine.backend, directory);
        handle.atomic->each_call = rule != nullptr && rule->visibility == policy::Visibility::call;
        begin_rebalance(engine, handle, rule);
        return MPI_SUCCESS;
    }
    if (failed == handle.rank) complain(engine, handle.path, problem);
    const StorageScope scope(engine);
    if (handle.container) (void)handle.container->leave(handle.role);
    handle.container = nullptr;
    const auto lock = std::move(handle.generation_lock);
    if (handle.rank != 0 || !handle.writable) return MPI_ERR_IO;
    // Nothing was written in it. Logs may have its number; else nothing says afterwards that a damaged container was closed.
    if (directory.is_log())
        (void)container::end_generation(directory, handle.role.generation, engine.clock.last(), {});
    else
        (void)container::forget_generation(directory, handle.role.generation);
    return MPI_ERR_IO;
}

void flush_container(Engine& engine, Handle& handle, bool durable) {
    if (!handle.container) return;
    owe_failure_of(handle, [&] {
        (void)descriptor_is_usable(engine, handle);  // the container's own, too
        const StorageScope scope(engine);
        return handle.container->flush(durable);
    });
    if (!durable || handle.rank != 0) return;
    owe_failure_of(handle, [&] {
        const StorageScope scope(engine);
        return handle.container->look_around();
    });
}

void begin_collective(Handle& handle, bool writes) {
    handle.container->begin_batch();
    if (writes && handle.shared_reads) handle.shared_reads->note_write();
}

void begin_shared_reads(Engine& engine, Handle& handle) {
    // OMPIO lets ranks read alone. ROMIO's meet in each collective read, and see what any of them wrote before its own call.
#if defined(OPEN_MPI)
    constexpr bool library_reads_alone = true;
#else
    constexpr bool library_reads_alone = false;
#endif
    if (!library_reads_alone || !needs_sharing(handle) || !handle.visible_at_sync) return;
    std::string why;
    const std::shared_ptr<Team> team = ProcessGroups::team_of(*handle.ranks, why);
    if (team && team->group->nodes() > 1) return;
    if (team) handle.shared_reads = SharedReads::make(team, handle.container, why);
    if (!handle.shared_reads && handle.rank == 0)
        note(engine, format::NoteCode::message, handle.path, 0, "ranks meet in each collective read: " + why);
}

void share_container(Engine& engine, Handle& handle, bool together) {
    if (!needs_sharing(handle)) return;
    if (handle.shared_reads) {
        if (handle.shared_reads->has_unindexed()) show_own(engine, handle);
        if (const auto stamp = handle.shared_reads->enter(together)) handle.container->adopt(*stamp);
        return;
    }
    show_own(engine, handle);
    // Who is not told of what others write asks only those that read for it: groups differ in whether their ranks read together.
    const bool of_group = is_seen_without_telling(handle);
    const MPI_Comm comm = of_group ? handle.exchanging->comm : handle.comm;
    std::int64_t mine = handle.container->last_stamp();
    if (of_group || handle.rank == 0) {  // other handles, and ranks that are not asked, have shown theirs
        int error = 0;
        mine = std::max(mine, shown_number(engine, handle, error));
        if (error != 0) owe_error(handle, error_class(error));
    }
    std::int64_t largest = mine;
    PMPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_INT64_T, MPI_MAX, comm);
    if (largest <= handle.shared_stamp) return;  // nobody has written since the last time
    handle.container->adopt(largest);
    handle.shared_stamp = largest;
}

void leave_container(Engine& engine, Handle& handle) {
    if (!handle.container) return;
    owe_failure_of(handle, [&] {
        (void)descriptor_is_usable(engine, handle);
        const StorageScope scope(engine);
        return handle.container->leave(handle.role, &handle.left);
    });
}

void say_container_problem(Engine& engine, Handle& handle) {
    const std::string problem = handle.container ? handle.container->problem() : std::string();
    if (!problem.empty() && !handle.said_problem.exchange(true)) complain(engine, handle.path, problem);
}

void say_refusal(Engine& engine, Handle& handle, const std::string& text) {
    if (handle.said_refusal.exchange(true)) return;
    complain(engine, handle.path, "a call is " + text + "; write the file with mapping = \"shared\" instead");
}

int end_container(Engine& engine, Handle& handle) {
    if (!handle.container || !handle.writable || handle.deletes_on_close || !handle.clean) return MPI_SUCCESS;
    const StorageScope scope(engine);
    container::Left left = handle.left;
    // Sums are the same modulo 2^64, signed or not.
    constexpr int sums = static_cast<int>(sizeof left / sizeof(std::int64_t));
    static_assert(std::is_trivially_copyable_v<container::Left> && sums * sizeof(std::int64_t) == sizeof left);
    if (handle.size > 1) PMPI_Allreduce(MPI_IN_PLACE, &left, sums, MPI_INT64_T, MPI_SUM, handle.comm);
    int failure = MPI_SUCCESS;
    if (handle.rank == 0) {
        const container::Directory& directory = handle.container->directory();
        const std::uint32_t generation = handle.role.generation;
        int error = directory.has_index() ? 0 : keep_sizes(directory, generation);
        if (error == 0) error = container::end_generation(directory, generation, engine.clock.last(), left);
        if (error != 0) complain(engine, handle.path, directory.path + ": " + std::strerror(error));
        failure = error_class(error);
    }
    // No rank goes on before it is there for all: the next call may be an open that does not meet the others.
    if (handle.size > 1) PMPI_Bcast(&failure, 1, MPI_INT, 0, handle.comm);
    handle.container->adopt(engine.clock.last());  // what is read from now on is read as the next job reads it
    return failure;
}

void close_container(Engine& engine, Handle& handle) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    const container::Directory directory = handle.container->directory();
    // All ranks have agreed since their last call by it; whoever has used it removes it.
    handle.shared_pointer->remove();
    handle.shared_pointer = nullptr;
    handle.atomic = nullptr;
    handle.storage = &engine.backend;
    handle.generation_lock = nullptr;
    handle.shared_reads = nullptr;
    handle.container = nullptr;
    if (!handle.deletes_on_close) return;
    if (handle.size > 1) PMPI_Barrier(handle.comm);  // all have let go of it
    if (handle.rank != 0) return;
    if (const int error = container::let_go(directory); error != 0)
        complain(engine, handle.path, directory.path + ": " + container::why_left(error));
}

int set_container_size(Engine& engine, Handle& handle, std::int64_t bytes, bool exact) {
    if (!handle.writable) return MPI_ERR_READ_ONLY;
    if (bytes < 0) return MPI_ERR_ARG;
    flush_container(engine, handle, false);
    container::Container& container = *handle.container;
    // What was written before is before the new length, and what is written afterwards is after it.
    std::int64_t before = container.last_stamp();
    if (handle.size > 1) PMPI_Allreduce(MPI_IN_PLACE, &before, 1, MPI_INT64_T, MPI_MAX, handle.comm);
    container.adopt(before);
    std::array<std::int64_t, 2> told{MPI_SUCCESS, 0};
    if (handle.rank == 0) {
        const StorageScope scope(engine);
        if (exact || container.length() < bytes) told[0] = error_class(container.set_length(bytes));
        told[1] = container.last_stamp();
    }
    if (handle.size > 1) PMPI_Bcast(told.data(), static_cast<int>(told.size()), MPI_INT64_T, 0, handle.comm);
    container.adopt(told[1]);
    return static_cast<int>(told[0]);
}

std::int64_t container_size(Engine& engine, Handle& handle) {
    if (look_atomically(engine, handle) != 0) return -1;
    const StorageScope scope(engine);
    return handle.container->length();
}

Deletion begin_deletion(Engine& engine, const std::string& path) {
    const StorageScope scope(engine);
    Deletion deletion;
    auto lock = container::HeaderFileLock::take(path, container::HeaderFileLock::Kind::exclusive);
    if (!lock || !lock.value().header_file()) return deletion;
    deletion.lock = lock.take();
    if (container::is_only_name(path)) deletion.left = container::directory_of(path, *deletion.lock.header_file());
    return deletion;
}

void end_deletion(Engine& engine, const std::string& path, Deletion deletion, bool happened) {
    const StorageScope scope(engine);
    if (!happened || !deletion.left) return;
    if (const int error = container::let_go(*deletion.left); error != 0)
        complain(engine, path, deletion.left->path + ": " + container::why_left(error));
}

}  // namespace ioweir::engine
