// The engine with aggregators, under real MPI processes: the same random cases as with the direct path, by strategies that cut them
// up in many ways; errors of writers; reading at and behind the end of the file; sparse and overlapping requests.
//
// IOWEIR_TEST_RANKS_PER_NODE makes several nodes of the ranks, so that messages are exchanged.
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using cases::CaseResult;
using cases::IoCalls;
using cases::Level;
using storage::FaultKind;

// Buffers so small that the random cases, some hundred bytes each, take many rounds.
constexpr const char* plan_text = R"(
[[file]]
match = "*.even"
writers = "aggregators:2"
buffer = 96

[[file]]
match = "*.all"
writers = "aggregators:99"
buffer = 201

[[file]]
match = "*.aligned"
writers = "aggregators:3"
domains = "aligned"
buffer = 150
stripe = { size = 32, count = 2 }

[[file]]
match = "*.cyclic"
writers = "aggregators:2"
domains = "cyclic"
buffer = 192
stripe = { size = 64, count = 2 }

[[file]]
match = "*.groups"
writers = "aggregators:auto"
domains = "group-cyclic"
buffer = 128
stripe = { size = 64, count = 2 }

[[file]]
match = "*.ordered"
writers = "aggregators:3"
domains = "even"
order = "contention-free"
buffer = 160
stripe = { size = 80, count = 3 }

[[file]]
match = "*.exact"
writers = "aggregators:2"
domains = "cooperative"
order = "contention-free"
rounds = "shortest"
buffer = 96
stripe = { size = 48, count = 2 }

[[file]]
match = "*.own"
writers = "aggregators:2"
domains = "cyclic"
order = "contention-free"
stripe = { size = 400, count = 2 }

[[file]]
match = "*.traffic"
writers = "aggregators:2"
buffer = "256 KiB"

[[file]]
match = "*.large"
writers = "aggregators:1"

[[file]]
match = "*.auto"
writers = "auto"
buffer = 128
)";

const char* const strategies[] = {"even",    "all",   "aligned", "cyclic", "groups",
                                  "ordered", "exact", "own",     "large",  "auto"};

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

std::string path_for(const char* strategy) { return world->directory + "/case." + strategy; }

TEST_F(EngineTest, LeavesTheSameBytesAsTheMpiLibrary) {
    std::int64_t bytes = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const char* const strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const std::string path = path_for(strategy);
        const CaseResult library = cases::run_case(world->library, Level::tame, 21, i, MPI_COMM_WORLD, path);
        const CaseResult engine = cases::run_case(world->engine, Level::tame, 21, i, MPI_COMM_WORLD, path);
        EXPECT_EQ(all_problems(engine), "");
        EXPECT_TRUE(library.file == engine.file);
        EXPECT_TRUE(library.read_memory == engine.read_memory);
        bytes += engine.data_bytes;
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GT(bytes, 500) << "cases that move nothing prove nothing";
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0) << "all of these are the engine's";
    EXPECT_EQ(world->did(&Did::exchanges) > 0, world->ranks > 1);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
}

TEST_F(EngineTest, AgreesWithTheOracleOnEverythingThatMpiAllows) {
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const char* const strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const CaseResult engine =
            cases::run_case(world->engine, Level::wild, 22, i, MPI_COMM_WORLD, path_for(strategy));
        EXPECT_EQ(all_problems(engine), "");
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
}

/// Blocks of `block` bytes, rank by rank, round and round: dense.
MPI_Datatype interleaved(int block, int blocks) {
    MPI_Datatype pieces;
    MPI_Type_vector(blocks, block, block * world->ranks, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    return pieces;
}

unsigned char value_at(std::int64_t offset) { return static_cast<unsigned char>(offset * 131 + offset / 251); }

TEST_F(EngineTest, WritesEachByteOfADenseRegionInOneOperationARound) {
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        const IoCalls& io = world->engine;
        constexpr int block = 5;
        constexpr int blocks = 60;
        MPI_File file = open(io, path);
        MPI_Datatype pieces = interleaved(block, blocks);
        native_view(io, file, block * world->rank, MPI_BYTE, pieces);
        std::vector<unsigned char> data, back(block * blocks, 0);
        for (int i = 0; i < blocks; ++i)
            for (int j = 0; j < block; ++j) data.push_back(value_at((i * world->ranks + world->rank) * block + j));
        world->backend.take_writes();
        EXPECT_EQ(io.write_at_all(file, 0, data.data(), block * blocks, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        std::int64_t writes = world->backend.take_writes();
        PMPI_Allreduce(MPI_IN_PLACE, &writes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        const std::int64_t total = std::int64_t{block} * blocks * world->ranks;
        if (world->ranks == 1) {
            EXPECT_EQ(writes, 1) << "nobody to exchange with";
        } else if (std::string(strategy) == "even") {
            const std::int64_t domain = (total + std::min(2, world->ranks) - 1) / std::min(2, world->ranks);
            EXPECT_EQ(writes, std::min(2, world->ranks) * ((domain + 95) / 96));
        } else if (std::string(strategy) == "large") {
            EXPECT_EQ(writes, 1);
        }
        EXPECT_EQ(io.read_at_all(file, 0, back.data(), block * blocks, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(back, data);
        MPI_Type_free(&pieces);
        io.close(&file);
        const std::vector<unsigned char> there = contents(path);
        ASSERT_EQ(static_cast<std::int64_t>(there.size()), total);
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < there.size(); ++i) wrong += there[i] != value_at(static_cast<std::int64_t>(i));
        EXPECT_EQ(wrong, 0);
        remove(path);
    }
}

/// In contention-free order every round's bytes are sent on to storage. Where nobody's turn comes after a writer's, it goes on while the last
/// of them are on their way; else they are there before the turn is over.
TEST_F(EngineTest, OnlyWritersWhoseTurnOthersWaitForWaitForTheStorage) {
    if (world->ranks == 1) GTEST_SKIP() << "nobody to exchange with";
    const IoCalls& io = world->engine;
    constexpr int each = 1200;
    const std::int64_t total = std::int64_t{each} * world->ranks;
    for (const char* strategy : {"own", "ordered"}) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        MPI_File file = open(io, path);
        const std::vector<unsigned char> data(each, 'x');
        world->backend.take_flushes();
        world->backend.take_begun_flushes();
        EXPECT_EQ(io.write_at_all(file, each * world->rank, data.data(), each, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        std::int64_t flushes[2] = {world->backend.take_begun_flushes(), world->backend.take_flushes()};
        PMPI_Allreduce(MPI_IN_PLACE, flushes, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (std::string(strategy) == "own") {
            // A stripe a round, and two writers with a target each.
            EXPECT_EQ(flushes[0], total / 400);
            EXPECT_EQ(flushes[1], total / 400 - 2);
        } else {
            EXPECT_GE(flushes[0], total / 240) << "160 and half as much again at most";
            EXPECT_EQ(flushes[1], flushes[0]);
        }
        io.close(&file);
        EXPECT_EQ(contents(path), std::vector<unsigned char>(static_cast<std::size_t>(total), 'x'));
        remove(path);
    }
}

TEST_F(EngineTest, HolesKeepWhatWasThere) {
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        const int size = 280 * std::max(15, world->ranks);
        if (world->rank == 0) {
            std::vector<unsigned char> old(static_cast<std::size_t>(size), 0xEE);
            EXPECT_EQ(io.write_at(file, 0, old.data(), size, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        // 3 bytes of every 7, for each rank another stretch; the last rank has none.
        MPI_Datatype pieces;
        MPI_Type_vector(40, 3, 7, MPI_BYTE, &pieces);
        MPI_Type_commit(&pieces);
        const bool idle = world->ranks > 1 && world->rank == world->ranks - 1;
        native_view(io, file, 280 * world->rank, MPI_BYTE, pieces);
        const std::vector<unsigned char> data(120, static_cast<unsigned char>(world->rank + 1));
        EXPECT_EQ(io.write_at_all(file, 0, data.data(), idle ? 0 : 120, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        std::vector<unsigned char> back(120, 0);
        EXPECT_EQ(io.read_at_all(file, 0, back.data(), idle ? 0 : 120, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        if (!idle) {
            EXPECT_EQ(back, data);
        }
        MPI_Type_free(&pieces);
        io.close(&file);
        const std::vector<unsigned char> there = contents(path);
        std::int64_t wrong = static_cast<std::int64_t>(there.size()) == size ? 0 : 1;
        for (std::int64_t i = 0; wrong == 0 && i < size; ++i) {
            const std::int64_t rank = i / 280;
            const bool written = rank < std::max(1, world->ranks - 1) && i % 280 % 7 < 3;
            const auto wanted = static_cast<unsigned char>(written ? rank + 1 : 0xEE);
            wrong += there[static_cast<std::size_t>(i)] != wanted;
        }
        EXPECT_EQ(wrong, 0);
        remove(path);
    }
}

/// PnetCDF gives a filetype without any bytes to ranks that have nothing to do in a collective call.
TEST_F(EngineTest, ARankWithAnEmptyViewTakesPart) {
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        const bool idle = world->ranks > 1 && world->rank == world->ranks - 1;
        MPI_Datatype nothing;
        MPI_Type_contiguous(0, MPI_BYTE, &nothing);
        MPI_Type_commit(&nothing);
        MPI_Datatype some = interleaved(4, 30);
        native_view(io, file, idle ? 0 : 4 * world->rank, MPI_BYTE, idle ? nothing : some);
        const std::vector<unsigned char> data(120, static_cast<unsigned char>(world->rank + 1));
        std::vector<unsigned char> back(120, 0);
        MPI_Status status;
        const int bytes = idle ? 0 : 120;
        EXPECT_EQ(io.write_at_all(file, 0, data.data(), bytes, MPI_BYTE, &status), MPI_SUCCESS);
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT_EQ(count, bytes);
        EXPECT_EQ(io.read_at_all(file, 0, back.data(), bytes, MPI_BYTE, &status), MPI_SUCCESS);
        EXPECT_EQ(back, idle ? std::vector<unsigned char>(120, 0) : data);
        native_view(io, file, 0, MPI_BYTE, MPI_BYTE);  // and the next view is followed, too
        std::vector<unsigned char> first(4, 0);
        EXPECT_EQ(io.read_at_all(file, 0, first.data(), 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(first, std::vector<unsigned char>(4, 1));
        MPI_Type_free(&nothing);
        MPI_Type_free(&some);
        io.close(&file);
        remove(path);
    }
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
}

TEST_F(EngineTest, ReadsUpToTheEndOfTheFileAndSaysHowMuch) {
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        const int size = 150 * world->ranks - 40;  // the last rank's last bytes are missing
        if (world->rank == 0) {
            std::vector<unsigned char> all;
            for (int i = 0; i < size; ++i) all.push_back(value_at(i));
            EXPECT_EQ(io.write_at(file, 0, all.data(), size, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        // All read the file's first bytes, too, once: overlapping requests.
        for (const int begin : {150 * world->rank, 0}) {
            std::vector<unsigned char> back(150, 0xEE);
            MPI_Status status;
            EXPECT_EQ(io.read_at_all(file, begin, back.data(), 150, MPI_BYTE, &status), MPI_SUCCESS);
            int count = -1;
            MPI_Get_count(&status, MPI_BYTE, &count);
            const int there = std::min(150, size - begin);
            EXPECT_EQ(count, there);
            int wrong = 0;
            for (int i = 0; i < 150; ++i)
                wrong += back[static_cast<std::size_t>(i)] != (i < there ? value_at(begin + i) : 0xEE);
            EXPECT_EQ(wrong, 0) << "from " << begin;
        }
        io.close(&file);
        remove(path);
    }
}

TEST_F(EngineTest, SparseReadsLeaveOutWhatNobodyWants) {
    const std::string path = path_for("large");
    const IoCalls& io = world->engine;
    MPI_File file = open(io, path);
    const std::int64_t distance = 1 << 20;
    const auto value = static_cast<unsigned char>(world->rank + 1);
    EXPECT_EQ(io.write_at(file, world->rank * distance, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    unsigned char back = 0;
    EXPECT_EQ(io.read_at_all(file, world->rank * distance, &back, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, value);
    io.close(&file);
    remove(path);
}

/// MPICH's library says that its call is an error, Open MPI's does not. The others' bytes it must not take with it.
TEST_F(EngineTest, ARankWithPlacesBehindAllOffsetsHarmsNobody) {
    if (world->ranks == 1) GTEST_SKIP() << "there are no others";
    const IoCalls& io = world->engine;
    constexpr MPI_Offset half = MPI_Offset{1} << 62;  // of what comes behind the last offset
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        MPI_File file = open(io, path);
        const bool faulty = world->rank == 0;
        native_view(io, file, faulty ? half : 0, MPI_BYTE, MPI_BYTE);
        const std::vector<unsigned char> data(40, 'x');
        const MPI_Offset offset = faulty ? half : 40 * (world->rank - 1);
        const int code = io.write_at_all(file, offset, data.data(), 40, MPI_BYTE, MPI_STATUS_IGNORE);
        if (!faulty) {
            EXPECT_EQ(code, MPI_SUCCESS);
        }
        io.close(&file);
        EXPECT_EQ(contents(path), std::vector<unsigned char>(40 * static_cast<std::size_t>(world->ranks - 1), 'x'));
        remove(path);
    }
}

TEST_F(EngineTest, AutoGoesByWhatTheRanksAskForInEachCall) {
    const std::string path = path_for("auto");
    const IoCalls& io = world->engine;
    const std::int64_t rank = world->rank, ranks = world->ranks;
    MPI_File file = open(io, path);
    const auto write_and_read = [&](std::int64_t displacement, MPI_Datatype pieces, int bytes) {
        native_view(io, file, displacement, MPI_BYTE, pieces);
        const std::vector<unsigned char> data(static_cast<std::size_t>(bytes), static_cast<unsigned char>(rank + 1));
        std::vector<unsigned char> back(data.size(), 0);
        EXPECT_EQ(io.write_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(io.read_at_all(file, 0, back.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(back, data);
    };
    MPI_Datatype small = interleaved(16, 60), middle = interleaved(2048, 8), large = interleaved(1 << 16, 4), sparse;
    MPI_Type_vector(60, 16, 16 * 60, MPI_BYTE, &sparse);
    MPI_Type_commit(&sparse);
    write_and_read(16 * rank, small, 16 * 60);                      // many small pieces that fill their region
    write_and_read(rank << 16, large, 4 << 16);                     // large ones
    write_and_read(16 * rank, sparse, 16 * 60);                     // small ones far from each other
    write_and_read(1000 * rank, MPI_BYTE, 1000);                    // one for each rank
    write_and_read((1 << 20) * ranks + 16 * rank, small, 16 * 60);  // as at first
    write_and_read(2048 * rank, middle,
                   2048 * 8);  // small ones for writing, and for reading where each rank has a processor
    for (MPI_Datatype* type : {&small, &middle, &large, &sparse}) MPI_Type_free(type);
    io.close(&file);
    const char* const each = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    const auto of_a_node = std::min<std::int64_t>(ranks, each != nullptr ? std::atoi(each) : ranks);
    const int reads = of_a_node <= static_cast<std::int64_t>(std::thread::hardware_concurrency()) ? 1 : 0;
    EXPECT_EQ(world->did(&Did::exchanges), ranks > 1 ? 5 + reads : 0)
        << "three calls to write, and to read two or three";
    EXPECT_EQ(world->did(&Did::alone_by_choice), ranks > 1 ? 7 - reads : 0);
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
    remove(path);
}

/// Rounds over the hole would not end. What lies close together is collected again.
TEST_F(EngineTest, AggregatorsLeaveAloneWhatLiesFarApart) {
    const IoCalls& io = world->engine;
    constexpr std::int64_t hole = std::int64_t{1} << 43;
    const std::int64_t rank = world->rank, ranks = world->ranks;
    for (const char* const strategy : {"even", "cyclic", "ordered"}) {
        const std::string path = path_for(strategy);
        const std::int64_t exchanges = world->did(&Did::exchanges), alone = world->did(&Did::alone_by_choice);
        MPI_File file = open(io, path);
        for (const std::int64_t distance : {hole, 32 * ranks}) {
            const MPI_Aint places[] = {32 * rank, distance + 32 * rank};
            MPI_Datatype pieces;
            MPI_Type_create_hindexed_block(2, 16, places, MPI_BYTE, &pieces);
            MPI_Type_commit(&pieces);
            native_view(io, file, 0, MPI_BYTE, pieces);
            std::vector<unsigned char> data(32), back(32);
            for (std::size_t i = 0; i < data.size(); ++i)
                data[i] = static_cast<unsigned char>(1 + 32 * static_cast<std::size_t>(rank) + i);
            EXPECT_EQ(io.write_at_all(file, 0, data.data(), 32, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            EXPECT_EQ(io.read_at_all(file, 0, back.data(), 32, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            EXPECT_EQ(back, data);
            MPI_Type_free(&pieces);
        }
        MPI_Offset size = 0;
        EXPECT_EQ(PMPI_File_get_size(file, &size), MPI_SUCCESS);
        EXPECT_EQ(size, hole + 32 * (ranks - 1) + 16);
        io.close(&file);
        EXPECT_EQ(world->did(&Did::alone_by_choice) - alone, ranks > 1 ? 2 : 0) << strategy;
        EXPECT_EQ(world->did(&Did::exchanges) - exchanges, ranks > 1 ? 2 : 0) << strategy;
        remove(path);
    }
}

TEST_F(EngineTest, LittleMoreCrossesBetweenNodesThanMust) {
    const char* const each_text = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    const int each = each_text != nullptr ? std::atoi(each_text) : world->ranks;
    const std::string path = path_for("traffic");
    const IoCalls& io = world->engine;
    constexpr int block = 512;
    const int blocks = 4096;
    MPI_File file = open(io, path);
    MPI_Datatype pieces = interleaved(block, blocks);
    native_view(io, file, block * world->rank, MPI_BYTE, pieces);
    std::vector<unsigned char> data(static_cast<std::size_t>(block) * blocks, static_cast<unsigned char>(world->rank)),
        back(data);
    EXPECT_EQ(io.write_at_all(file, 0, data.data(), block * blocks, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(io.read_at_all(file, 0, back.data(), block * blocks, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, data);
    MPI_Type_free(&pieces);
    io.close(&file);
    remove(path);
    std::int64_t sent = world->did(&Did::sent_bytes);
    PMPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    // Two writers with half of the region each, interleaved: half of what each rank has goes to either, and comes back. Where there are
    // several nodes, the writers are on two of them, evenly spaced, whatever their sizes.
    const int writers = std::min(2, world->ranks);
    const int nodes = (world->ranks + each - 1) / each;
    std::int64_t must = 0;
    for (int writer = 0; writer < writers; ++writer) {
        for (int rank = 0; rank < world->ranks; ++rank) {
            if (rank / each != writer * nodes / writers) must += 2 * std::int64_t{block} * blocks / writers;
        }
    }
    EXPECT_GE(sent, must);
    EXPECT_LE(sent, must + must / 20);
}

TEST_F(EngineTest, AnErrorOfAWriterReachesThoseWhoseBytesItHad) {
    struct {
        int error, error_class;
    } const errors[] = {{EIO, MPI_ERR_IO}, {ENOSPC, MPI_ERR_NO_SPACE}, {EDQUOT, MPI_ERR_QUOTA}};
    for (const auto& one : errors) {
        const std::string path = path_for("large");
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        if (world->rank == 0) world->backend.arm({FaultKind::error, 1, one.error});  // the only writer
        const std::vector<unsigned char> data(40, 'x');
        const int code = io.write_at_all(file, 40 * world->rank, data.data(), 40, MPI_BYTE, MPI_STATUS_IGNORE);
        int error_class = 0;
        MPI_Error_class(code, &error_class);
        EXPECT_EQ(error_class, one.error_class);
        EXPECT_EQ(io.write_at_all(file, 40 * world->rank, data.data(), 40, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS)
            << "the next call works";
        io.close(&file);
        remove(path);
    }
}

TEST_F(EngineTest, ARankWithFaultyArgumentsHoldsUpNobody) {
    for (const char* strategy : strategies) {
        SCOPED_TRACE(strategy);
        const std::string path = path_for(strategy);
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        const std::vector<unsigned char> data(40, 'x');
        const int count = world->rank == 0 ? -1 : 40;
        const int code = io.write_at_all(file, 40 * world->rank, data.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        EXPECT_EQ(code == MPI_SUCCESS, world->rank != 0);
        io.close(&file);
        remove(path);
    }
}

TEST_F(EngineTest, WithoutSharedMemoryTheMpiLibraryDoesIt) {
    if (world->ranks == 1) GTEST_SKIP() << "one rank shares memory with nobody";
    // A group that has none yet: the ranks in another order.
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world->rank, &reversed);
    rlimit usual{};
    ::getrlimit(RLIMIT_FSIZE, &usual);
    const rlimit small{64, usual.rlim_max};
    if (world->rank == world->ranks - 1) ::setrlimit(RLIMIT_FSIZE, &small);  // the first of its node cannot: none does
    const std::string path = path_for("large");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR, reversed);
    const auto value = static_cast<unsigned char>('a' + world->rank);
    EXPECT_EQ(world->engine.write_at_all(file, world->rank, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    world->engine.close(&file);
    ::setrlimit(RLIMIT_FSIZE, &usual);
    std::vector<unsigned char> expected;
    for (int rank = 0; rank < world->ranks; ++rank) expected.push_back(static_cast<unsigned char>('a' + rank));
    EXPECT_EQ(contents(path), expected);
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, "no memory shared by the ranks of a node"));
    MPI_Comm_free(&reversed);
    remove(path);
}

/// The checks of this file are worth something only if they fail when a writer's operation goes wrong.
void expect_fault_is_noticed(FaultKind kind) {
    std::int64_t struck = 0, noticed = 0, verified = 0;
    // Some cases of many ranks take ten thousand rounds, of which few processors do some in a second: many ranks have
    // those that LeavesTheSameBytesAsTheMpiLibrary compares.
    const bool many = world->ranks > 8;
    const std::uint64_t tries = many ? std::size(strategies) : world->cases / 4 + 4;
    const std::uint64_t seed = many ? 21 : 23;
    const Level level = many ? Level::tame : Level::wild;
    for (std::uint64_t i = 0; i < tries; ++i) {
        const std::string path = path_for(strategies[i % std::size(strategies)]);
        world->backend.arm({});
        world->backend.take_writes();
        cases::run_case(world->engine, level, seed, i, MPI_COMM_WORLD, path);
        const std::int64_t writes = world->backend.take_writes();
        if (world->rank == 0 && writes > 0) world->backend.arm({kind, writes, 0});
        world->notes.clear();
        world->work.clear();
        const CaseResult result = cases::run_case(world->engine, level, seed, i, MPI_COMM_WORLD, path);
        struck += world->rank == 0 ? world->backend.struck() : 0;
        int bad = result.problems.empty() ? 0 : 1;
        PMPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        noticed += bad;
        verified += world->count(format::NoteCode::verify_mismatch) > 0 ? 1 : 0;
    }
    if (world->rank != 0) return;
    EXPECT_GT(struck, static_cast<std::int64_t>(tries) / 2) << "the fault must strike to prove anything";
    const std::int64_t least = world->ranks == 1 ? struck : struck * 3 / 4;
    EXPECT_GE(noticed, least) << "of " << struck << " faults";
    EXPECT_GE(verified, least) << "of " << struck << " faults; --verify is worth nothing";
}

TEST_F(EngineTest, TheCheckFailsWhenABitIsFlipped) { expect_fault_is_noticed(FaultKind::flip_bit); }

TEST_F(EngineTest, TheCheckFailsWhenAWriteIsLost) { expect_fault_is_noticed(FaultKind::drop); }

}  // namespace
}  // namespace ioweir
