// Under `auto`, calls are made by whoever is faster, and by all ranks alike; and each byte arrives, whoever makes them.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

/// A rule for each test: files of one share what was found.
constexpr const char* plan = R"(
[[file]]
match = "*.engine"
writers = "auto"
[[file]]
match = "*.library"
writers = "auto"
[[file]]
match = "*.pointer"
writers = "auto"
[[file]]
match = "*.mixed"
writers = "auto"
[[file]]
match = "*.one"
writers = "auto"
[[file]]
match = "*.own"
writers = "auto"
[[file]]
match = "*.gaps"
writers = "auto"
[[file]]
match = "*.large"
writers = "auto"
[[file]]
match = "*.named"
writers = "everyone"
)";

std::int64_t library_calls = 0;
std::int64_t library_ns = 0;  // so much longer each takes

/// Calls of member `same` are carried out by member `alone`: the ranks of a busy machine do not wait for each other in them.
template <auto same, auto alone = same>
struct Slower;
template <typename... Arguments, int (*mpi::FileCalls::*same)(Arguments...),
          int (*mpi::FileCalls::*alone)(Arguments...)>
struct Slower<same, alone> {
    static inline int (*real)(Arguments...) = nullptr;
    static int call(Arguments... arguments) {
        ++library_calls;
        if (library_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(library_ns));
        return real(arguments...);
    }
    static void put(const mpi::FileCalls& real_calls, mpi::FileCalls& below) {
        real = real_calls.*alone;
        below.*same = call;
    }
};

void make_slower(mpi::FileCalls& below) {
    using F = mpi::FileCalls;
    const mpi::FileCalls real = below;
    Slower<&F::File_write_at_all, &F::File_write_at>::put(real, below);
    Slower<&F::File_write_all, &F::File_write>::put(real, below);
    Slower<&F::File_write_at>::put(real, below);
}

/// Blocks of 64 bytes are never fast, large ones are.
constexpr engine::TrialPace pace{.long_call_ns = 1,
                                 .fast_bytes_per_us = 65,
                                 .before = 6,
                                 .before_crowded = 6,
                                 .before_look_crowded = 0,
                                 .between = 4};
constexpr int large_block = 4 << 20;

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan, WorldOptions{.verify = false, .weighs = true, .trial_pace = pace, .change_library = make_slower});

constexpr std::int64_t slow_ns = 40'000'000;  // longer than a turn of busy ranks on a busy machine
constexpr int block = 64;
constexpr int calls = 40;

class TurnsTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        library_calls = library_ns = 0;
        world->backend.slow_down({}, 0);
    }

    static unsigned char byte_of(int rank, int call) { return static_cast<unsigned char>(1 + (7 * rank + call) % 250); }

    /// Each call: a block a rank.
    void write_together(MPI_File file, bool by_pointer, int first = 0, int end = calls) const {
        for (int call = first; call < end; ++call) {
            const std::vector<unsigned char> mine(block, byte_of(world->rank, call));
            const MPI_Offset at = (call * world->ranks + world->rank) * MPI_Offset{block};
            const int result =
                by_pointer ? world->hooks.File_write_all(file, mine.data(), block, MPI_BYTE, MPI_STATUS_IGNORE)
                           : world->hooks.File_write_at_all(file, at, mine.data(), block, MPI_BYTE, MPI_STATUS_IGNORE);
            EXPECT_EQ(result, MPI_SUCCESS);
        }
    }

    static void expect_all(const std::string& path, int made = calls) {
        PMPI_Barrier(MPI_COMM_WORLD);
        const std::vector<unsigned char> found = contents(path);
        ASSERT_EQ(found.size(), static_cast<std::size_t>(made * world->ranks * block));
        for (std::size_t i = 0; i < found.size(); ++i) {
            const int number = static_cast<int>(i) / block;
            ASSERT_EQ(found[i], byte_of(number % world->ranks, number / world->ranks)) << "byte " << i;
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        remove(path);
    }

    /// On every rank.
    static void expect_most_by_library() { EXPECT_GE(library_calls, calls - 18); }

    /// By its first look, where the machine is quiet, or by its last.
    static void expect_weighed(format::CallKind call, format::Chosen chosen, std::int64_t least_tried) {
        ASSERT_EQ(world->weighed.size(), 1U);
        const WeighedCalls& one = world->weighed[0];
        EXPECT_EQ(one.call, call);
        EXPECT_EQ(one.chosen, chosen);
        const std::int64_t tried = one.figures.tried;
        EXPECT_TRUE(tried >= least_tried && tried <= 16)
            << tried << ", " << one.figures.pairs << " pairs, " << one.figures.engine_ns << " and "
            << one.figures.library_ns << " ns";
        // Two calls before the trial, and half of those in it, are the engine's.
        EXPECT_EQ(one.figures.left, chosen == format::Chosen::library ? calls - 2 - 2 * tried : 0);
        EXPECT_EQ(one.figures.engine_ns > one.figures.library_ns, chosen != format::Chosen::engine);
        EXPECT_EQ(library_calls, tried + one.figures.left);
    }
};

TEST_F(TurnsTest, LeaveCallsToTheEngineWhereItIsFaster) {
    const std::string path = world->path("file.engine");
    MPI_File file = open(world->engine, path);
    library_ns = slow_ns;
    write_together(file, false);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    if (world->rank == 0) expect_weighed(format::CallKind::write_at_all, format::Chosen::engine, 1);
    expect_all(path);
}

TEST_F(TurnsTest, LeaveCallsToTheLibraryWhereTheEngineIsSlower) {
    const std::string path = world->path("file.library");
    MPI_File file = open(world->engine, path);
    world->backend.slow_down("file.library", slow_ns);
    write_together(file, false);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    if (world->rank == 0) expect_weighed(format::CallKind::write_at_all, format::Chosen::library, 8);
    expect_most_by_library();
    expect_all(path);
    // The next file of the rule, by the same ranks, begins with what was found.
    world->weighed.clear();
    library_calls = 0;
    file = open(world->engine, path);
    write_together(file, false);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(library_calls, calls);
    if (world->rank == 0) {
        ASSERT_EQ(world->weighed.size(), 1U);
        EXPECT_EQ(world->weighed[0].figures.left, calls);
    }
    expect_all(path);
}

TEST_F(TurnsTest, KeepThePointerWhoeverMovesIt) {
    const std::string path = world->path("file.pointer");
    MPI_File file = open(world->engine, path);
    MPI_Datatype mine{};
    PMPI_Type_contiguous(block, MPI_BYTE, &mine);
    MPI_Datatype tiles{};
    PMPI_Type_create_resized(mine, 0, MPI_Aint{block} * world->ranks, &tiles);
    PMPI_Type_commit(&tiles);
    native_view(world->engine, file, MPI_Offset{block} * world->rank, MPI_BYTE, tiles);
    PMPI_Type_free(&mine);
    PMPI_Type_free(&tiles);
    world->backend.slow_down("file.pointer", slow_ns);
    write_together(file, true);
    MPI_Offset position = 0;
    EXPECT_EQ(world->hooks.File_get_position(file, &position), MPI_SUCCESS);
    EXPECT_EQ(position, calls * block);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    expect_most_by_library();
    expect_all(path);
}

// PnetCDF makes such calls, for ranks that have nothing to write.
TEST_F(TurnsTest, AreTheSameOnAllRanksWhereSomeGiveNoOffsets) {
    const std::string path = world->path("file.mixed");
    MPI_File file = open(world->engine, path);
    world->backend.slow_down("file.mixed", slow_ns);
    const int writer = world->ranks / 2;
    for (int call = 0; call < calls; ++call) {
        const std::vector<unsigned char> mine(block, byte_of(world->rank, call));
        const int result = world->rank == (call < calls / 2 ? writer : 0)
                               ? world->hooks.File_write_at_all(file, MPI_Offset{block} * call, mine.data(), block,
                                                                MPI_BYTE, MPI_STATUS_IGNORE)
                               : world->hooks.File_write_all(file, nullptr, 0, MPI_BYTE, MPI_STATUS_IGNORE);
        EXPECT_EQ(result, MPI_SUCCESS);
    }
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    expect_most_by_library();
    PMPI_Barrier(MPI_COMM_WORLD);
    const std::vector<unsigned char> found = contents(path);
    ASSERT_EQ(found.size(), static_cast<std::size_t>(calls * block));
    for (std::size_t i = 0; i < found.size(); ++i) {
        const int call = static_cast<int>(i) / block;
        ASSERT_EQ(found[i], byte_of(call < calls / 2 ? writer : 0, call)) << "byte " << i;
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    remove(path);
}

// Only the ranks together can tell.
TEST_F(TurnsTest, AreTheSameOnAllRanksWhereOneIsSlow) {
    const std::string path = world->path("file.one");
    MPI_File file = open(world->engine, path);
    if (world->rank == world->ranks - 1) world->backend.slow_down("file.one", 2 * slow_ns);
    write_together(file, false);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    expect_most_by_library();
    expect_all(path);
}

/// Pieces of 4 bytes in memory, 8 apart.
MPI_Datatype pieces_type() {
    MPI_Datatype pieces{};
    PMPI_Type_vector(block / 4, 4, 8, MPI_BYTE, &pieces);
    PMPI_Type_commit(&pieces);
    return pieces;
}

TEST_F(TurnsTest, AreEachRanksOwnInIndependentCalls) {
    const std::string path = world->path("file.own");
    MPI_File file = open(world->engine, path);
    const bool slow = world->rank % 2 == 0;
    if (slow) world->backend.slow_down("file.own", slow_ns);
    library_ns = slow ? 0 : slow_ns;
    MPI_Datatype pieces = pieces_type();
    for (int call = 0; call < calls; ++call) {
        const std::vector<unsigned char> mine(2 * block, byte_of(world->rank, call));
        const MPI_Offset at = (call * world->ranks + world->rank) * MPI_Offset{block};
        EXPECT_EQ(world->hooks.File_write_at(file, at, mine.data(), 1, pieces, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    PMPI_Type_free(&pieces);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    if (slow) {
        expect_weighed(format::CallKind::write_at, format::Chosen::library, 8);
    } else {
        expect_weighed(format::CallKind::write_at, format::Chosen::engine, 1);
    }
    expect_all(path);
}

/// A program with few large calls does not pay for the library's.
TEST_F(TurnsTest, AreLateAndApartInLargeCalls) {
    constexpr int made = 28;
    const std::string path = world->path("file.large");
    MPI_File file = open(world->engine, path);
    std::vector<unsigned char> mine(large_block);
    std::vector<int> by_library;
    for (int call = 0; call < made; ++call) {
        std::fill(mine.begin(), mine.end(), byte_of(world->rank, call));
        const std::int64_t before = library_calls;
        EXPECT_EQ(world->hooks.File_write_at_all(file, MPI_Offset{large_block} * world->rank, mine.data(), large_block,
                                                 MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        if (library_calls > before) by_library.push_back(call);
    }
    std::vector<unsigned char> back(large_block);
    EXPECT_EQ(world->hooks.File_read_at(file, MPI_Offset{large_block} * world->rank, back.data(), large_block, MPI_BYTE,
                                        MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_TRUE(back == mine);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    // Eight calls by the engine, then pairs with four calls between them, each the other way round. A noisy machine may end the trial sooner.
    const std::vector<int> all{9, 14, 21, 26};
    ASSERT_FALSE(by_library.empty());
    ASSERT_LE(by_library.size(), all.size());
    EXPECT_TRUE(std::equal(by_library.begin(), by_library.end(), all.begin())) << testing::PrintToString(by_library);
    remove(path);
}

// The library may write back what lies between the pieces, which may be another rank's.
TEST_F(TurnsTest, AreNotTakenByIndependentWritesIntoViewsWithGaps) {
    const std::string path = world->path("file.gaps");
    MPI_File file = open(world->engine, path);
    MPI_Datatype pieces = pieces_type();
    native_view(world->engine, file, MPI_Offset{4} * (world->rank % 2), MPI_BYTE, pieces);
    world->backend.slow_down("file.gaps", slow_ns / 100);
    const std::vector<unsigned char> mine(block, byte_of(world->rank, 0));
    for (int call = 0; call < calls; ++call)
        EXPECT_EQ(world->hooks.File_write_at(file, 0, mine.data(), block, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    PMPI_Type_free(&pieces);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(library_calls, 0);
    EXPECT_TRUE(world->weighed.empty());
    remove(path);
}

TEST_F(TurnsTest, ShowWhatAPlanCostsThatNamesItsWriters) {
    constexpr int before = 1000, all = before + 36;
    const std::string path = world->path("file.named");
    MPI_File file = open(world->engine, path);
    write_together(file, false, 0, before);
    world->backend.slow_down("file.named", slow_ns);
    write_together(file, false, before, all);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_LE(library_calls, 16) << "in turns; all others are the plan's";
    if (world->rank == 0) expect_weighed(format::CallKind::write_at_all, format::Chosen::plan, 8);
    expect_all(path, all);
}

TEST_F(TurnsTest, AreFewWhereThePlanNamesItsWritersAndIsRight) {
    constexpr int before = 1000, all = before + 36;
    const std::string path = world->path("file.named");
    MPI_File file = open(world->engine, path);
    write_together(file, false, 0, before);
    library_ns = slow_ns;
    write_together(file, false, before, all);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_LE(library_calls, 4);
    if (world->rank == 0) expect_weighed(format::CallKind::write_at_all, format::Chosen::engine, 2);
    expect_all(path, all);
}

TEST_F(TurnsTest, AreNotTakenInTheFirstThousandCallsWhereThePlanNamesItsWriters) {
    const std::string path = world->path("file.named");
    MPI_File file = open(world->engine, path);
    world->backend.slow_down("file.named", slow_ns / 100);
    write_together(file, false);
    EXPECT_EQ(world->hooks.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(library_calls, 0);
    EXPECT_TRUE(world->weighed.empty());
    expect_all(path);
}

}  // namespace
}  // namespace ioweir
