#include "engine/mapped.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "container/generations.hpp"
#include "container/subfiles.hpp"
#include "engine/parts.hpp"
#include "planner/plan.hpp"

namespace ioweir::engine {
namespace {

using planner::MappingKind;

void say(const Engine& engine, const std::string& path, const std::string& text) {
    complain(path + ": " + text);
    note(engine, format::NoteCode::message, path, 0, text);
}

/// What rank 0 tells the others.
struct Told {
    std::int64_t kind = 0;  ///< Found::Kind, or an MPI error class
    std::int64_t shape_kind = 0;
    std::int64_t count = 0;
    std::int64_t stripe_bytes = 0;
    std::int64_t generation = 0;
    std::int64_t stamp = 0;  ///< the largest that is there
    std::array<char, 32> id{};
};

void tell(MPI_Comm comm, Told& told) { PMPI_Bcast(&told, sizeof told, MPI_BYTE, 0, comm); }

void put(Told& told, const container::Stub& stub) {
    told.kind = static_cast<std::int64_t>(Found::Kind::stub);
    told.shape_kind = static_cast<std::int64_t>(stub.shape.kind);
    told.count = stub.shape.count;
    told.stripe_bytes = stub.shape.stripe_bytes;
    std::copy(stub.id.begin(), stub.id.end(), told.id.begin());
}

container::Stub stub_of(const Told& told) {
    return {std::string(told.id.begin(), told.id.end()),
            {told.count, static_cast<container::Shape::Kind>(told.shape_kind), told.stripe_bytes}};
}

container::Shape shape_of(const planner::Strategy& strategy) {
    constexpr std::int64_t usual_stripe_bytes = 1 << 20;
    const planner::Mapping& mapping = strategy.mapping;
    if (mapping.kind == MappingKind::subfiles) {
        const std::int64_t stripe = strategy.stripe.size_bytes;
        return {mapping.count, container::Shape::Kind::subfiles, stripe > 0 ? stripe : usual_stripe_bytes};
    }
    if (mapping.kind == MappingKind::log) return {0, container::Shape::Kind::log};
    return {mapping.count, container::Shape::Kind::grouped};
}

planner::Mapping mapping_of(const container::Shape& shape) {
    if (shape.kind == container::Shape::Kind::log) return {MappingKind::log, 0};
    if (shape.kind == container::Shape::Kind::subfiles) return {MappingKind::subfiles, shape.count};
    return {MappingKind::grouped, shape.count};
}

/// Of the stub, among those who make a container of it, as several jobs may at once; goes with the descriptor or at the end.
class StubLock {
public:
    explicit StubLock(int descriptor) : descriptor_(descriptor) { set(F_WRLCK); }
    ~StubLock() { set(F_UNLCK); }
    StubLock(const StubLock&) = delete;
    StubLock& operator=(const StubLock&) = delete;

private:
    /// Where a file system has no locks, jobs that begin at once are on their own.
    void set(short type) const {
        struct flock whole{};
        whole.l_type = type;
        whole.l_whence = SEEK_SET;
        while (::fcntl(descriptor_, F_OFD_SETLKW, &whole) != 0 && errno == EINTR) {
        }
    }
    const int descriptor_;
};

/// Why a file that asks for groups is shared; empty: it is not.
std::string why_shared(const Handle& handle, const planner::FileRule* rule) {
    if (!handle.writable) return "it is open for reading only and no container";
    const bool at_sync = handle.strategy.mapping.kind != MappingKind::subfiles;  // else at once, as in one file
    if (handle.readable && at_sync && (rule == nullptr || !rule->visible_at_sync))
        return "it is open for reading and writing, and the rule has no visibility = \"sync\"";
    struct stat info{};
    if (::fstat(handle.descriptor.number, &info) != 0) return std::string("fstat: ") + std::strerror(errno);
    if (info.st_size != 0) return "an ordinary file is there already";
    return {};
}

/// Rank 0: the directory, then the stub.
Result<container::Stub> make_container(Engine& engine, const Handle& handle, const planner::FileRule* rule,
                                       int& error) {
    error = EIO;
    const StorageScope scope(engine);
    auto stub = container::new_stub(shape_of(handle.strategy));
    if (!stub) return stub.error();
    const auto cannot = [&](int number) {
        error = number;
        return Error{"no container can be made", handle.path + ": " + std::strerror(number),
                     "its directory must be writable and have room"};
    };
    const container::Directory directory = container::directory_of(handle.path, stub.value());
    if (const int made = container::make(directory, handle.path, stub.value()); made != 0) return cannot(made);
    std::optional<Error> problem;
    if (!directory.has_index()) {
        const auto made =
            container::make_subfiles(directory, rule != nullptr ? rule->targets : std::vector<std::string>{});
        if (!made) problem = made.error();
    }
    if (!problem) {
        const std::string text = container::to_text(stub.value());
        const auto written = engine.backend.write_at(handle.descriptor.number, text.data(), std::ssize(text), 0);
        if (written.error != 0) problem = cannot(written.error);
    }
    if (!problem) return stub.take();
    (void)container::remove(directory);
    return *problem;
}

/// The container that is there, or a new one, or why the file is shared: rank 0.
Told find_or_make(Engine& engine, Handle& handle, const Found& found, const planner::FileRule* rule) {
    Told told;
    if (found.kind == Found::Kind::stub) {
        put(told, found.stub);
        return told;
    }
    std::string why;
    std::optional<container::Stub> stub;
    std::string problem;
    int error = 0;
    {
        std::optional<StubLock> lock;
        {
            const StorageScope scope(engine);
            if (handle.writable) lock.emplace(handle.descriptor.number);
            why = why_shared(handle, rule);
            // Another job may have made it since we looked.
            if (!why.empty()) {
                auto there = container::read_stub(handle.path);
                if (there) stub = there.take();
            }
        }
        if (why.empty()) {
            auto made = make_container(engine, handle, rule, error);
            if (made)
                stub = made.take();
            else
                problem = made.error().message();
        }
        const StorageScope scope(engine);
        lock.reset();
    }
    if (stub) {
        put(told, *stub);
    } else if (!why.empty()) {
        note(engine, format::NoteCode::message, handle.path, 0,
             "mapping " + planner::to_text(handle.strategy.mapping) + " is not used, the file is shared: " + why);
    } else {
        complain(problem);
        note(engine, format::NoteCode::message, handle.path, 0, problem);
        told.kind = -error_class(error);
    }
    return told;
}

/// Rank 0's part of attach_container().
Told prepare(Engine& engine, Handle& handle, const Found& found, const planner::FileRule* rule) {
    Told told = find_or_make(engine, handle, found, rule);
    if (told.kind != static_cast<std::int64_t>(Found::Kind::stub)) return told;
    const StorageScope scope(engine);
    const container::Directory directory = container::directory_of(handle.path, stub_of(told));
    if (!handle.writable) return told;
    const auto generation = container::begin_generation(directory);
    if (generation) {
        told.generation = generation.value().number;
        told.stamp = generation.value().after;
    } else {
        complain(generation.error().message());
        told.kind = -MPI_ERR_IO;
    }
    return told;
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

/// The lowest rank that failed, or the number of ranks.
int first_failed(MPI_Comm comm, int rank, int size, bool good) {
    int mine = good ? size : rank;
    int first = mine;
    if (size > 1) PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
    return first;
}

}  // namespace

Found look(Engine& engine, MPI_Comm comm, const std::string& path, bool opened) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    Told told;
    if (rank == 0 && opened) {
        const StorageScope scope(engine);
        const auto stub = container::read_stub(path);
        if (!stub) {
            told.kind = static_cast<std::int64_t>(Found::Kind::damaged);
            complain(stub.error().message());
        } else if (stub.value()) {
            put(told, *stub.value());
        }
    }
    tell(comm, told);
    Found found;
    found.kind = static_cast<Found::Kind>(told.kind);
    if (found.kind == Found::Kind::stub) found.stub = stub_of(told);
    return found;
}

int attach_container(Engine& engine, Handle& handle, MPI_Comm comm, int amode, const Found& found,
                     const planner::FileRule* rule) {
    Told told;
    if (handle.rank == 0) told = prepare(engine, handle, found, rule);
    tell(comm, told);
    if (told.kind < 0) return static_cast<int>(-told.kind);
    if (told.kind == static_cast<std::int64_t>(Found::Kind::ordinary)) {
        handle.strategy.mapping = {MappingKind::shared, 0};
        return MPI_SUCCESS;
    }
    const container::Stub stub = stub_of(told);
    const container::Directory directory = container::directory_of(handle.path, stub);
    handle.strategy.mapping = mapping_of(stub.shape);
    if (stub.shape.kind == container::Shape::Kind::subfiles) {
        handle.stored.size_bytes = handle.strategy.stripe.size_bytes = stub.shape.stripe_bytes;
        handle.stored.count = handle.strategy.stripe.count = stub.shape.count;
    }
    handle.role.reads = handle.readable || (engine.verify && handle.descriptor.readable);
    handle.role.writes = handle.writable;
    if (stub.shape.kind == container::Shape::Kind::grouped)
        handle.role.group = planner::group_of_rank(handle.rank, stub.shape.count, handle.size);
    handle.role.rank = static_cast<std::uint32_t>(handle.rank);
    handle.role.generation = static_cast<std::uint32_t>(told.generation);
    engine.clock.adopt(told.stamp);
    const std::string problem = join_container(engine, handle, directory);
    const int failed = first_failed(comm, handle.rank, handle.size, problem.empty());
    if (failed == handle.size) {
        handle.deletes_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
        handle.storage = handle.container.get();
        return MPI_SUCCESS;
    }
    if (failed == handle.rank) say(engine, handle.path, problem);
    const StorageScope scope(engine);
    if (handle.container) (void)handle.container->leave(handle.role);
    handle.container = nullptr;
    if (handle.rank == 0 && handle.writable)  // nothing was written in it
        (void)container::end_generation(directory, handle.role.generation, engine.clock.last(), {});
    return MPI_ERR_IO;
}

void flush_container(Engine& engine, Handle& handle, bool durable) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    if (const int error = handle.container->flush(durable); error != 0) owe_error(handle, error_class(error));
    if (!durable || handle.rank != 0) return;
    if (const int error = handle.container->look_around(); error != 0) owe_error(handle, error_class(error));
}

void leave_container(Engine& engine, Handle& handle) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    if (const int error = handle.container->leave(handle.role, &handle.left); error != 0)
        owe_error(handle, error_class(error));
}

void say_container_problem(Engine& engine, Handle& handle) {
    const std::string problem = handle.container ? handle.container->problem() : std::string();
    if (!problem.empty() && !handle.said_problem.exchange(true)) say(engine, handle.path, problem);
}

void close_container(Engine& engine, Handle& handle, bool complete) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    const container::Directory directory = handle.container->directory();
    handle.storage = &engine.backend;
    handle.container = nullptr;
    std::array<std::int64_t, 2> left{handle.left.files, handle.left.bytes};
    if (handle.deletes_on_close) {
        if (handle.size > 1) PMPI_Barrier(handle.comm);  // all have let go of it
    } else if (handle.writable && handle.size > 1) {
        PMPI_Allreduce(MPI_IN_PLACE, left.data(), static_cast<int>(left.size()), MPI_INT64_T, MPI_SUM, handle.comm);
    }
    if (handle.rank != 0) return;
    int error = 0;
    if (handle.deletes_on_close)
        error = container::remove(directory);
    else if (handle.writable && complete && !directory.has_index())
        error = keep_sizes(directory, handle.role.generation);
    if (error == 0 && !handle.deletes_on_close && handle.writable && complete)
        error = container::end_generation(directory, handle.role.generation, engine.clock.last(), {left[0], left[1]});
    if (error != 0) say(engine, handle.path, directory.path + ": " + std::strerror(error));
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

std::int64_t container_size(Engine& engine, const Handle& handle) {
    const StorageScope scope(engine);
    return handle.container->length();
}

void delete_container(Engine& engine, const std::string& path) {
    const StorageScope scope(engine);
    const auto stub = container::read_stub(path);
    if (!stub || !stub.value()) return;
    const container::Directory directory = container::directory_of(path, *stub.value());
    if (const int error = container::remove(directory); error != 0)
        say(engine, path, directory.path + ": " + std::strerror(error));
}

}  // namespace ioweir::engine
