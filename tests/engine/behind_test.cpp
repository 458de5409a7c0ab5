// Write-behind under real MPI processes: the same bytes as the MPI library's, whatever waits is drained before anybody can see
// that it does, memory is bounded, errors come back. Runs under mpiexec with any number of ranks.
//
// IOWEIR_TEST_RANKS_PER_NODE makes several nodes of the ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "engine/state.hpp"
#include "engine_world.hpp"

namespace {

thread_local std::int64_t memory_taken = 0;  ///< how often this thread has asked for memory

}  // namespace

void* operator new(std::size_t bytes) {
    ++memory_taken;
    if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ioweir {
namespace {

using cases::CaseResult;
using cases::IoCalls;
using cases::Level;
using storage::Fault;
using storage::FaultKind;

// Rings of 4 KiB: the random cases, some hundred bytes each, fill them now and then, and records wrap around their ends.
constexpr const char* plan_text = R"(
[[file]]
match = "*.one"
writers = "behind:1"
buffer = 4096
visibility = "sync"

[[file]]
match = "*.two"
writers = "behind:2"
buffer = 5000
visibility = "sync"

[[file]]
match = "*.all"
writers = "behind:99"
visibility = "sync"

[[file]]
match = "*.bounded"
writers = "behind:1"
buffer = "64 KiB"

[[file]]
match = "*.cautious"
writers = "behind:1"
buffer = 4096
)";

const char* const strategies[] = {"one", "two", "all"};

/// How long the library finds this file in a collective call.
std::string watched;
std::int64_t found_bytes = -1;
mpi::FileCalls real;

void look() {
    struct stat info{};
    found_bytes = ::stat(watched.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_size) : -1;
}

int preallocate(MPI_File file, MPI_Offset bytes) {
    look();
    return real.File_preallocate(file, bytes);
}

int seek_shared(MPI_File file, MPI_Offset offset, int whence) {
    look();
    return real.File_seek_shared(file, offset, whence);
}

void have_it_look(mpi::FileCalls& below) {
    real = below;
    below.File_preallocate = preallocate;
    below.File_seek_shared = seek_shared;
}

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan_text, WorldOptions{.change_library = have_it_look});

std::string path_for(const char* strategy) { return world->directory + "/case." + strategy; }

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

std::int64_t handed_bytes() { return world->did(&Did::handed_bytes); }

int ranks_of_first_node() {
    const char* const each = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    return each != nullptr ? std::min(world->ranks, std::atoi(each)) : world->ranks;
}

TEST_F(EngineTest, LeavesTheSameBytesAsTheMpiLibrary) {
    std::int64_t bytes = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const char* const strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const std::string path = path_for(strategy);
        const CaseResult library = cases::run_case(world->library, Level::tame, 31, i, MPI_COMM_WORLD, path);
        const CaseResult engine = cases::run_case(world->engine, Level::tame, 31, i, MPI_COMM_WORLD, path);
        EXPECT_EQ(all_problems(engine), "");
        EXPECT_TRUE(library.file == engine.file);
        EXPECT_TRUE(library.read_memory == engine.read_memory);
        bytes += engine.data_bytes;
        if (on_any_rank(HasFailure())) return;
    }
    PMPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_GT(bytes, 500) << "cases that move nothing prove nothing";
    EXPECT_TRUE(on_any_rank(handed_bytes() > 0));
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0) << "all of these are the engine's";
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
}

TEST_F(EngineTest, AgreesWithTheOracleOnEverythingThatMpiAllows) {
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const char* const strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const CaseResult engine =
            cases::run_case(world->engine, Level::wild, 32, i, MPI_COMM_WORLD, path_for(strategy));
        EXPECT_EQ(all_problems(engine), "");
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
}

unsigned char value_at(int rank, std::int64_t i) {
    return static_cast<unsigned char>(1 + (rank * 31 + i * 7 + i / 251) % 255);
}

std::vector<unsigned char> data_of(int rank, std::int64_t bytes) {
    std::vector<unsigned char> data;
    for (std::int64_t i = 0; i < bytes; ++i) data.push_back(value_at(rank, i));
    return data;
}

/// Every rank's data, one after the other.
std::vector<unsigned char> data_of_all(std::int64_t bytes) {
    std::vector<unsigned char> all;
    for (int rank = 0; rank < world->ranks; ++rank) {
        const std::vector<unsigned char> one = data_of(rank, bytes);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

/// Parts are as large as the ring or smaller; together they are many times as large. Each is several records.
TEST_F(EngineTest, ManyRingsFullOfBytesPassThroughIt) {
    constexpr int bytes = 120'000, part = 4000;
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        std::vector<unsigned char> data = data_of(world->rank, bytes);
        for (int at = 0; at < bytes; at += part) {
            MPI_Status status;
            EXPECT_EQ(world->hooks.File_write_at(file, MPI_Offset{bytes} * world->rank + at, data.data() + at, part,
                                                 MPI_BYTE, &status),
                      MPI_SUCCESS);
            int count = 0;
            MPI_Get_count(&status, MPI_BYTE, &count);
            EXPECT_EQ(count, part);
        }
        std::fill(data.begin(), data.end(), 0);  // the program's memory is its own again
        EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
        EXPECT_TRUE(contents(path) == data_of_all(bytes));
        remove(path);
    }
    EXPECT_EQ(handed_bytes(), 3 * bytes);
}

TEST_F(EngineTest, CallsLargerThanTheRingAreWrittenByTheirRankInTheirTurn) {
    constexpr int small = 3000, large = 9000;
    const std::string path = path_for("one");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    const std::vector<unsigned char> before(small, 1), data = data_of(world->rank, large), after(small, 2);
    const MPI_Offset at = MPI_Offset{large} * world->rank;
    for (int i = 0; i < 20; ++i) {
        world->hooks.File_write_at(file, at, before.data(), small, MPI_BYTE, MPI_STATUS_IGNORE);
        world->hooks.File_write_at(file, at, data.data(), large, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    world->hooks.File_write_at(file, at + large - small, after.data(), small, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    std::vector<unsigned char> expected = data_of_all(large);
    for (int rank = 0; rank < world->ranks; ++rank)
        std::fill_n(expected.begin() + (rank + 1) * large - small, small, static_cast<unsigned char>(2));
    EXPECT_TRUE(contents(path) == expected);
    EXPECT_EQ(handed_bytes(), 21 * small);
    EXPECT_EQ(world->did(&Did::too_large), 20);
    remove(path);
}

TEST_F(EngineTest, SmallPiecesOfAStridedViewAreHandedOver) {
    constexpr int calls = 10, pieces = 300;
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        MPI_Datatype strided;
        MPI_Type_vector(calls * pieces, 3, 3 * world->ranks, MPI_BYTE, &strided);
        MPI_Type_commit(&strided);
        native_view(world->engine, file, 3 * world->rank, MPI_BYTE, strided);
        const std::vector<unsigned char> data = data_of(world->rank, 3 * pieces * calls);
        for (int call = 0; call < calls; ++call)
            EXPECT_EQ(world->hooks.File_write_all(file, data.data() + 3 * pieces * call, 3 * pieces, MPI_BYTE,
                                                  MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        MPI_Type_free(&strided);
        EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
        std::vector<unsigned char> expected;
        for (int i = 0; i < pieces * calls; ++i)
            for (int rank = 0; rank < world->ranks; ++rank)
                for (int j = 0; j < 3; ++j) expected.push_back(value_at(rank, 3 * i + j));
        EXPECT_TRUE(contents(path) == expected);
        remove(path);
    }
    EXPECT_EQ(handed_bytes(), 3 * 3 * pieces * calls);
}

TEST_F(EngineTest, OverlappingWritesOfARankKeepTheirOrder) {
    constexpr int writes = 500, bytes = 64;
    const std::string path = path_for("one");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    for (int i = 0; i < writes; ++i) {
        const std::vector<unsigned char> data(bytes, static_cast<unsigned char>(i));
        world->hooks.File_write_at(file, bytes * world->rank + i % 7, data.data(), bytes - 7, MPI_BYTE,
                                   MPI_STATUS_IGNORE);
    }
    EXPECT_EQ(world->hooks.File_sync(file), MPI_SUCCESS);
    const std::vector<unsigned char> there = contents(path);
    std::vector<unsigned char> expected(static_cast<std::size_t>(bytes) * world->ranks, 0);
    for (int rank = 0; rank < world->ranks; ++rank)
        for (int i = 0; i < writes; ++i)
            std::fill_n(expected.begin() + bytes * rank + i % 7, bytes - 7, static_cast<unsigned char>(i));
    expected.resize(there.size());
    EXPECT_TRUE(there == expected);
    world->hooks.File_close(&file);
    remove(path);
}

/// As PnetCDF writes the number of records: through the handle of its communicator, or through one of each rank's own.
TEST_F(EngineTest, WritesOfARankThroughTwoHandlesKeepTheirOrder) {
    constexpr int places = 400;
    const std::string path = path_for("one");
    MPI_File files[] = {open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY),
                        open(world->engine, path, MPI_MODE_WRONLY)};
    for (int i = 0; i < places; ++i) {
        for (const int turn : {0, 1}) {
            const auto value = static_cast<unsigned char>(1 + turn);
            EXPECT_EQ(world->hooks.File_write_at(files[(i + turn) % 2], MPI_Offset{places} * world->rank + i, &value, 1,
                                                 MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
    }
    for (MPI_File& file : files) EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_TRUE(contents(path) == std::vector<unsigned char>(static_cast<std::size_t>(places) * world->ranks, 2));
    remove(path);
}

/// What a rank itself can see of its bytes right after it has handed them over.
TEST_F(EngineTest, NothingOnTheNodeSeesTheFileWithoutThem) {
    constexpr int bytes = 3000;
    const std::string path = path_for("one") + std::to_string(world->rank) + ".one";
    const mpi::FileCalls& io = world->hooks;
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_COMM_SELF);
    const std::vector<unsigned char> data = data_of(world->rank, bytes);
    for (int round = 0; round < 20; ++round) {
        const MPI_Offset at = MPI_Offset{round} * bytes;
        EXPECT_EQ(io.File_write_at(file, at, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        MPI_Offset size = -1;
        std::vector<unsigned char> back(bytes, 0);
        switch (round % 5) {
            case 0:
                EXPECT_EQ(io.File_read_at(file, at, back.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
                EXPECT_TRUE(back == data);
                break;
            case 1:
                io.File_get_size(file, &size);
                EXPECT_EQ(size, at + bytes);
                break;
            case 2:
                io.File_seek(file, 0, MPI_SEEK_END);
                io.File_get_position(file, &size);
                EXPECT_EQ(size, at + bytes);
                break;
            case 3: {
                MPI_File second = open(world->engine, path, MPI_MODE_RDONLY, MPI_COMM_SELF);
                EXPECT_EQ(io.File_read_at(second, at, back.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
                EXPECT_TRUE(back == data);
                io.File_close(&second);
                break;
            }
            case 4:
                EXPECT_EQ(io.File_set_size(file, at + bytes - 1), MPI_SUCCESS);
                io.File_get_size(file, &size);
                EXPECT_EQ(size, at + bytes - 1) << "bytes that come late would make it longer again";
                EXPECT_EQ(io.File_write_at(file, at, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
                EXPECT_EQ(io.File_read_shared(file, back.data(), 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
                struct stat info{};
                ::stat(path.c_str(), &info);
                EXPECT_EQ(info.st_size, at + bytes) << "a call of the MPI library";
                break;
        }
    }
    io.File_close(&file);
    ::unlink(path.c_str());
    PMPI_Barrier(MPI_COMM_WORLD);
}

/// In both one rank looks at the file, and one of them writes all over it. Open MPI's does so before the others have come.
/// A signal handler may open files, also where it interrupts malloc.
TEST_F(EngineTest, WhoOpensAnotherFileTakesNoMemory) {
    const std::string path = path_for("one");
    MPI_File file = open(world->engine, path);
    EXPECT_GT(engine::engine()->behind_handles, 0);
    const std::int64_t before = memory_taken;
    engine::before_path(AT_FDCWD, "/");
    EXPECT_EQ(memory_taken, before);
    world->engine.close(&file);
    remove(path);
}

/// Another thread of the parent may have had one, and is not there to give it back.
TEST_F(EngineTest, AChildOfForkWaitsForNoLock) {
    const std::string path = path_for("one");
    MPI_File file = open(world->engine, path);
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    const auto state =
        engine::engine()->file({static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)});
    EXPECT_GT(state->behind_handles, 0);
    pid_t child = -1;
    {
        const std::lock_guard guard(state->behind_lock);
        child = ::fork();
        if (child == 0) {
            ::alarm(20);
            engine::before_path(AT_FDCWD, path.c_str());
            ::_exit(0);
        }
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "it waits for ever";
    world->engine.close(&file);
    remove(path);
}

TEST_F(EngineTest, CollectiveCallsOfTheLibraryFindTheBytesOfAllNodes) {
    constexpr int bytes = 2000;
    constexpr std::int64_t slow_ns = 50'000'000;
    const std::string path = path_for("one");
    const mpi::FileCalls& io = world->hooks;
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    const std::vector<unsigned char> data = data_of(world->rank, bytes);
    watched = path;
    world->backend.slow_down(world->rank == 0 ? "" : path, slow_ns);
    const auto write_part = [&](int part) {
        const MPI_Offset at = (MPI_Offset{part} * world->ranks + world->rank) * bytes;
        EXPECT_EQ(io.File_write_at(file, at, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
    };
    write_part(0);
    EXPECT_EQ(io.File_preallocate(file, 1), MPI_SUCCESS);
    EXPECT_EQ(found_bytes, std::int64_t{bytes} * world->ranks);
    PMPI_Barrier(MPI_COMM_WORLD);  // one rank may look later than another has come back
    write_part(1);
    EXPECT_EQ(io.File_seek_shared(file, 0, MPI_SEEK_END), MPI_SUCCESS);
    EXPECT_EQ(found_bytes, std::int64_t{2} * bytes * world->ranks);
    world->backend.slow_down("", 0);
    EXPECT_EQ(io.File_close(&file), MPI_SUCCESS);
    std::vector<unsigned char> expected = data_of_all(bytes);
    const std::vector<unsigned char> once = expected;
    expected.insert(expected.end(), once.begin(), once.end());
    EXPECT_TRUE(contents(path) == expected);
    remove(path);
}

TEST_F(EngineTest, FilesThatAreReadTooAreWrittenAtOnceUnlessThePlanSaysOtherwise) {
    const std::string path = path_for("cautious");
    const unsigned char byte = 7;
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    world->hooks.File_write_at(file, world->rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT_EQ(contents(path).size(), static_cast<std::size_t>(world->ranks)) << "a bare barrier is enough";
    world->hooks.File_close(&file);
    EXPECT_EQ(handed_bytes(), 0);
    EXPECT_EQ(world->noted(format::NoteCode::message, "not used: write-behind: the file is open for reading too"),
              world->rank == 0);
    file = open(world->engine, path, MPI_MODE_WRONLY);
    world->hooks.File_write_at(file, world->rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    world->hooks.File_close(&file);
    EXPECT_EQ(handed_bytes(), 1);
    remove(path);
}

TEST_F(EngineTest, SeveralFilesAtATimeHaveEachTheirOwn) {
    constexpr int files = 3, bytes = 2000;
    std::vector<MPI_File> open_files;
    const std::vector<unsigned char> data = data_of(world->rank, bytes);
    for (int repeat = 0; repeat < 4; ++repeat) {
        for (int i = 0; i < files; ++i)
            open_files.push_back(open(world->engine, world->path(("f" + std::to_string(i) + ".two").c_str()),
                                      MPI_MODE_CREATE | MPI_MODE_WRONLY));
        for (int part = 0; part < 10; ++part)
            for (MPI_File file : open_files)
                EXPECT_EQ(world->hooks.File_write_at_all(file, MPI_Offset{bytes} * world->rank + part * bytes / 10,
                                                         data.data() + part * bytes / 10, bytes / 10, MPI_BYTE,
                                                         MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
        while (!open_files.empty()) {  // not in the order of opening
            EXPECT_EQ(world->hooks.File_close(&open_files.back()), MPI_SUCCESS);
            open_files.pop_back();
        }
        for (int i = 0; i < files; ++i) {
            const std::string path = world->path(("f" + std::to_string(i) + ".two").c_str());
            EXPECT_TRUE(contents(path) == data_of_all(bytes));
            remove(path);
        }
    }
}

/// Bytes of memory that this process shares with the node's other ranks, by the kernel's account.
std::int64_t shared_bytes() {
    std::ifstream maps("/proc/self/maps");
    std::int64_t bytes = 0;
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        if (line.find("ioweir") == std::string::npos || line.find("memfd:") == std::string::npos) continue;
        if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) bytes += static_cast<std::int64_t>(end - begin);
    }
    return bytes;
}

TEST_F(EngineTest, MemoryIsWhatThePlanSays) {
    constexpr int bytes = 60'000, calls = 40;
    const int on_node = ranks_of_first_node();  // on others as many or fewer
    const std::string path = world->path("file.bounded");
    std::int64_t growth = -shared_bytes();
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    std::vector<unsigned char> data = data_of(world->rank, bytes);
    for (int call = 0; call < calls; ++call) {
        const MPI_Offset at = (MPI_Offset{call} * world->ranks + world->rank) * bytes;
        world->hooks.File_write_at(file, at, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    growth += shared_bytes();
    world->hooks.File_close(&file);
    // Rings, and a few pages for what lies around them and for where the ranks meet.
    EXPECT_LE(growth, std::int64_t{on_node} * (64 << 10) * 105 / 100 + 4 * 4096);
    EXPECT_GE(growth, 64 << 10) << "nothing was measured";
    std::vector<unsigned char> expected;
    const std::vector<unsigned char> once = data_of_all(bytes);
    for (int call = 0; call < calls; ++call) expected.insert(expected.end(), once.begin(), once.end());
    EXPECT_TRUE(contents(path) == expected);
    remove(path);
    // The next file takes what is there.
    growth = -shared_bytes();
    file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    growth += shared_bytes();
    EXPECT_EQ(growth, 0);
    world->hooks.File_close(&file);
    remove(path);
}

// ------------------------------------------------------------------------------------------------------------- errors

struct Named {
    Fault fault;
    int error_class;
};

/// One writer thread a node, in the process of its first rank; the first node's is struck.
TEST_F(EngineTest, AFailureComesBackOnItsRankOnceAndHarmsNobodyElse) {
    constexpr int bytes = 50, calls = 12;
    const Named kinds[] = {{{FaultKind::error, 1, EIO}, MPI_ERR_IO},
                           {{FaultKind::error, 1, ENOSPC}, MPI_ERR_NO_SPACE},
                           {{FaultKind::error, 1, EDQUOT}, MPI_ERR_QUOTA},
                           {{FaultKind::error, 1, EINTR}, MPI_SUCCESS},
                           {{FaultKind::shorten, 1, 0}, MPI_SUCCESS}};
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        Named one = kinds[i % std::size(kinds)];
        one.fault.nth =
            1 + static_cast<std::int64_t>(i * 5 % static_cast<std::uint64_t>(calls * ranks_of_first_node()));
        SCOPED_TRACE("case " + std::to_string(i) + ": write " + std::to_string(one.fault.nth));
        const std::string path = path_for("one");
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
        world->backend.arm(world->rank == 0 ? one.fault : Fault{});
        PMPI_Barrier(MPI_COMM_WORLD);
        const std::vector<unsigned char> data = data_of(world->rank, bytes * calls);
        int told = 0;
        const auto hear = [&](int code) {
            const int error_class = class_of(code);
            if (error_class == MPI_SUCCESS) return;
            EXPECT_EQ(error_class, one.error_class);
            ++told;
        };
        for (int call = 0; call < calls; ++call) {
            const MPI_Offset at = (MPI_Offset{call} * world->ranks + world->rank) * bytes;
            const unsigned char* part = data.data() + call * bytes;
            MPI_Request request = MPI_REQUEST_NULL;
            switch (call % 4) {
                case 0:
                    hear(world->hooks.File_write_at(file, at, part, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
                    break;
                case 1:
                    hear(world->hooks.File_write_at_all(file, at, part, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
                    break;
                case 2:
                    hear(world->hooks.File_iwrite_at(file, at, part, bytes, MPI_BYTE, &request));
                    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
                    break;
                case 3:
                    EXPECT_EQ(world->hooks.File_write_at_all_begin(file, at, part, bytes, MPI_BYTE), MPI_SUCCESS);
                    hear(world->hooks.File_write_at_all_end(file, part, MPI_STATUS_IGNORE));
                    break;
            }
        }
        if (i % 2 == 0) hear(world->hooks.File_sync(file));
        if (i % 2 == 0) {
            EXPECT_EQ(world->hooks.File_sync(file), MPI_SUCCESS) << "said once";
        }
        hear(world->hooks.File_close(&file));
        EXPECT_EQ(told, one.error_class == MPI_SUCCESS ? 0 : 1) << "on every rank, once";
        EXPECT_TRUE(world->rank != 0 || world->backend.struck() > 0);
        world->backend.arm({});
        // One call's bytes are missing, of whichever rank; everything else is there.
        const std::vector<unsigned char> there = contents(path);
        int missing = 0;
        for (int call = 0; call < calls; ++call) {
            for (int rank = 0; rank < world->ranks; ++rank) {
                int right = 0;
                for (int j = 0; j < bytes; ++j) {
                    const auto at = static_cast<std::size_t>((call * world->ranks + rank) * bytes + j);
                    right += at < there.size() && there[at] == value_at(rank, call * bytes + j) ? 1 : 0;
                }
                EXPECT_TRUE(right == bytes || right == 0);
                missing += right == 0 ? 1 : 0;
            }
        }
        EXPECT_EQ(missing, one.error_class == MPI_SUCCESS ? 0 : 1);
        remove(path);
        if (on_any_rank(HasFailure())) return;
    }
}

}  // namespace
}  // namespace ioweir
