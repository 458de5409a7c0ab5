#include "engine/mapped.hpp"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

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
    std::int64_t groups = 0;
    std::int64_t generation = 0;
    std::array<char, 32> id{};
};

void tell(MPI_Comm comm, Told& told) { PMPI_Bcast(&told, sizeof told, MPI_BYTE, 0, comm); }

/// Why a file that asks for groups is shared; empty: it is not.
std::string why_shared(const Handle& handle, bool visible_at_sync) {
    if (!handle.writable) return "it is open for reading only and no container";
    if (handle.readable && !visible_at_sync)
        return "it is open for reading and writing, and the rule has no visibility = \"sync\"";
    struct stat info{};
    if (::fstat(handle.descriptor.number, &info) != 0) return std::string("fstat: ") + std::strerror(errno);
    if (info.st_size != 0) return "an ordinary file is there already";
    return {};
}

/// Rank 0: the directory, then the stub. Null, and an errno value, when that cannot be.
std::optional<container::Stub> make_container(Engine& engine, const Handle& handle, int& error) {
    const StorageScope scope(engine);
    auto stub = container::new_stub({handle.strategy.mapping.count});
    if (!stub) {
        error = EIO;
        return std::nullopt;
    }
    const container::Directory directory = container::directory_of(handle.path, stub.value());
    error = container::make(directory, handle.path, stub.value());
    if (error != 0) return std::nullopt;
    const std::string text = container::to_text(stub.value());
    error = engine.backend.write_at(handle.descriptor.number, text.data(), std::ssize(text), 0).error;
    if (error == 0) return stub.take();
    (void)container::remove(directory);
    return std::nullopt;
}

/// Rank 0's part of attach_container().
Told prepare(Engine& engine, Handle& handle, const Found& found, bool visible_at_sync) {
    Told told;
    std::optional<container::Stub> stub;
    if (found.kind == Found::Kind::stub) {
        stub = found.stub;
    } else {
        std::string why;
        {
            const StorageScope scope(engine);
            why = why_shared(handle, visible_at_sync);
        }
        if (!why.empty()) {
            note(engine, format::NoteCode::message, handle.path, 0,
                 "mapping " + planner::to_text(handle.strategy.mapping) + " is not used, the file is shared: " + why);
            return told;
        }
        int error = 0;
        stub = make_container(engine, handle, error);
        if (!stub) {
            say(engine, handle.path, std::string("no container can be made beside it: ") + std::strerror(error));
            told.kind = -error_class(error);
            return told;
        }
    }
    told.kind = static_cast<std::int64_t>(Found::Kind::stub);
    told.groups = stub->shape.groups;
    std::copy(stub->id.begin(), stub->id.end(), told.id.begin());
    if (!handle.writable) return told;
    const StorageScope scope(engine);
    const auto generation = container::begin_generation(container::directory_of(handle.path, *stub));
    if (generation) {
        told.generation = generation.value();
    } else {
        complain(generation.error().message());
        told.kind = -MPI_ERR_IO;
    }
    return told;
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
            told.kind = static_cast<std::int64_t>(Found::Kind::stub);
            told.groups = stub.value()->shape.groups;
            std::copy(stub.value()->id.begin(), stub.value()->id.end(), told.id.begin());
        }
    }
    tell(comm, told);
    Found found;
    found.kind = static_cast<Found::Kind>(told.kind);
    if (found.kind == Found::Kind::stub) found.stub = {std::string(told.id.begin(), told.id.end()), {told.groups}};
    return found;
}

int attach_container(Engine& engine, Handle& handle, MPI_Comm comm, int amode, const Found& found,
                     bool visible_at_sync) {
    Told told;
    if (handle.rank == 0) told = prepare(engine, handle, found, visible_at_sync);
    tell(comm, told);
    if (told.kind < 0) return static_cast<int>(-told.kind);
    if (told.kind == static_cast<std::int64_t>(Found::Kind::ordinary)) {
        handle.strategy.mapping = {MappingKind::shared, 0};
        return MPI_SUCCESS;
    }
    handle.strategy.mapping = {MappingKind::grouped, told.groups};
    const container::Stub stub{std::string(told.id.begin(), told.id.end()), {told.groups}};
    container::Role role;
    role.reads = handle.readable || (engine.verify && handle.descriptor.readable);
    role.writes = handle.writable;
    role.group = planner::group_of_rank(handle.rank, told.groups, handle.size);
    role.rank = static_cast<std::uint32_t>(handle.rank);
    role.generation = static_cast<std::uint32_t>(told.generation);
    std::string problem;
    // What is written through two handles at a time would have no order between their generations.
    handle.file = engine.file(handle.descriptor.identity);
    if (handle.writable && handle.file->container_writers > 0) {
        problem =
            "this process writes it through another handle already, and a file whose bytes lie in several can be "
            "written through one at a time; use mapping = \"shared\" for it";
    } else {
        const StorageScope scope(engine);
        auto opened = container::Container::open(engine.backend, container::directory_of(handle.path, stub), role);
        if (opened)
            handle.container = opened.take();
        else
            problem = opened.error().message();
    }
    const int failed = first_failed(comm, handle.rank, handle.size, problem.empty());
    if (failed == handle.size) {
        handle.deletes_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
        handle.storage = handle.container.get();
        if (handle.writable) ++handle.file->container_writers;
        return MPI_SUCCESS;
    }
    if (failed == handle.rank) say(engine, handle.path, problem);
    handle.container = nullptr;
    if (handle.rank == 0 && handle.writable) {  // nothing was written in it
        const StorageScope scope(engine);
        (void)container::end_generation(container::directory_of(handle.path, stub), role.generation);
    }
    return MPI_ERR_IO;
}

void flush_container(Engine& engine, Handle& handle, bool durable) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    if (const int error = handle.container->flush(durable); error != 0) owe_error(handle, error_class(error));
}

void close_container(Engine& engine, Handle& handle, bool complete) {
    if (!handle.container) return;
    const StorageScope scope(engine);
    const container::Directory directory = handle.container->directory();
    const auto generation = handle.container->generation();
    handle.storage = &engine.backend;
    handle.container = nullptr;
    if (handle.writable) --handle.file->container_writers;
    if (handle.deletes_on_close && handle.size > 1) PMPI_Barrier(handle.comm);  // all have let go of it
    if (handle.rank != 0) return;
    int error = 0;
    if (handle.deletes_on_close)
        error = container::remove(directory);
    else if (handle.writable && complete)
        error = container::end_generation(directory, generation);
    if (error != 0) say(engine, handle.path, directory.path + ": " + std::strerror(error));
}

int set_container_size(Engine& engine, Handle& handle, std::int64_t bytes, bool exact) {
    if (!handle.writable) return MPI_ERR_READ_ONLY;
    if (bytes < 0) return MPI_ERR_ARG;
    flush_container(engine, handle, false);
    if (handle.size > 1) PMPI_Barrier(handle.comm);
    int result = MPI_SUCCESS;
    {
        const StorageScope scope(engine);
        if (handle.rank != 0) {
            (void)handle.container->set_length(bytes, false);
        } else if (exact || handle.container->length() < bytes) {
            result = error_class(handle.container->set_length(bytes, true));
        } else {
            (void)handle.container->set_length(bytes, false);
        }
    }
    if (handle.size > 1) PMPI_Bcast(&result, 1, MPI_INT, 0, handle.comm);
    return result;
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
