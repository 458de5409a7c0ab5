// The engine between a program and the real MPI library, without a preload: random cases done twice, by the MPI library and
// through the engine, must leave the same bytes in file and memory. And the check itself is checked: with a backend that flips a
// bit or loses a write it must fail. Runs under mpiexec with any number of ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "engine_world.hpp"
#include "mpi_cases/case_runner.hpp"
#include "storage/fault.hpp"

namespace ioweir {
namespace {

using cases::CaseResult;
using cases::IoCalls;
using cases::Level;
using storage::FaultKind;

constexpr const char* plan_text = R"(
[[file]]
match = "*.delegated"
writers = "delegates:1/4"

[[file]]
match = "*.engine"
mapping = "shared"
writers = "everyone"
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

TEST_F(EngineTest, LeavesTheSameBytesAsTheMpiLibrary) {
    std::int64_t bytes = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        const CaseResult library =
            cases::run_case(world->library, Level::tame, 1, i, MPI_COMM_WORLD, world->path("case.engine"));
        const CaseResult engine =
            cases::run_case(world->engine, Level::tame, 1, i, MPI_COMM_WORLD, world->path("case.engine"));
        EXPECT_EQ(all_problems(library), "") << "the MPI library itself";
        EXPECT_EQ(all_problems(engine), "");
        EXPECT_TRUE(library.file == engine.file);
        EXPECT_TRUE(library.read_memory == engine.read_memory);
        bytes += engine.data_bytes;
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GT(bytes, 500) << "cases that move nothing prove nothing";
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0) << "all of these are the engine's";
    EXPECT_GT(world->did(&Did::calls), 0);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
    if (world->rank == 0) {
        EXPECT_GT(world->count(format::NoteCode::verify_ok), 0);
    }
}

TEST_F(EngineTest, AgreesWithTheOracleOnEverythingThatMpiAllows) {
    for (std::uint64_t i = 0; i < world->cases / 2; ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        const CaseResult engine =
            cases::run_case(world->engine, Level::wild, 2, i, MPI_COMM_WORLD, world->path("case.engine"));
        EXPECT_EQ(all_problems(engine), "");
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0) << "verification cried wolf";
}

/// Does the case fail, and does --verify notice, when the last write of rank 0 goes wrong? Its bytes are not written again by the
/// same rank; where another rank overwrites them later nothing is wrong in the end.
void expect_fault_is_noticed(FaultKind kind) {
    std::int64_t struck = 0, noticed = 0, verified = 0;
    const std::uint64_t tries = world->cases / 4 + 4;
    for (std::uint64_t i = 0; i < tries; ++i) {
        world->backend.arm({});
        world->backend.take_writes();
        cases::run_case(world->engine, Level::wild, 3, i, MPI_COMM_WORLD, world->path("case.engine"));
        const std::int64_t writes = world->backend.take_writes();
        if (world->rank == 0 && writes > 0) world->backend.arm({kind, writes, 0});
        world->notes.clear();
        world->work.clear();
        const CaseResult result =
            cases::run_case(world->engine, Level::wild, 3, i, MPI_COMM_WORLD, world->path("case.engine"));
        struck += world->rank == 0 ? world->backend.struck() : 0;
        noticed += world->rank == 0 && !result.problems.empty() ? 1 : 0;
        verified += world->count(format::NoteCode::verify_mismatch) > 0 ? 1 : 0;
    }
    if (world->rank != 0) return;
    EXPECT_GT(struck, static_cast<std::int64_t>(tries) / 2) << "the fault must strike to prove anything";
    const std::int64_t least = world->ranks == 1 ? struck : struck * 3 / 4;
    EXPECT_GE(noticed, least) << "of " << struck << " faults; the check of these cases is worth nothing";
    EXPECT_GE(verified, least) << "of " << struck << " faults; --verify is worth nothing";
}

TEST_F(EngineTest, TheCheckFailsWhenABitIsFlipped) { expect_fault_is_noticed(FaultKind::flip_bit); }

TEST_F(EngineTest, TheCheckFailsWhenAWriteIsLost) { expect_fault_is_noticed(FaultKind::drop); }

TEST_F(EngineTest, ShortWritesChangeNothing) {
    for (std::uint64_t i = 0; i < world->cases / 4 + 1; ++i) {
        world->backend.arm({FaultKind::shorten, 1, 0});
        const CaseResult result =
            cases::run_case(world->engine, Level::wild, 4, i, MPI_COMM_WORLD, world->path("case.engine"));
        EXPECT_EQ(all_problems(result), "");
    }
}

TEST_F(EngineTest, AnErrorOnOneRankIsThatRanksAndBlocksNobody) {
    struct {
        int error, error_class;
    } const errors[] = {
        {EIO, MPI_ERR_IO}, {ENOSPC, MPI_ERR_NO_SPACE}, {EDQUOT, MPI_ERR_QUOTA}, {EROFS, MPI_ERR_READ_ONLY}};
    for (const auto& one : errors) {
        const std::string path = world->path("error.engine");
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        MPI_Datatype pieces;
        MPI_Type_vector(4, 10, 10 * world->ranks + 10, MPI_BYTE, &pieces);
        MPI_Type_commit(&pieces);
        native_view(io, file, 10 * world->rank, MPI_BYTE, pieces);
        const bool faulty = world->rank == world->ranks - 1;
        if (faulty) world->backend.arm({FaultKind::error, 3, one.error});
        const std::vector<unsigned char> data(40, 'x');
        MPI_Status status;
        const int code = io.write_at_all(file, 0, data.data(), 40, MPI_BYTE, &status);
        int error_class = 0, count = 0;
        MPI_Error_class(code, &error_class);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT_EQ(error_class, faulty ? one.error_class : MPI_SUCCESS);
        EXPECT_EQ(count, faulty ? 20 : 40);
        EXPECT_EQ(io.write_all(file, data.data(), 40, MPI_BYTE, &status), MPI_SUCCESS) << "the next call works";
        MPI_Type_free(&pieces);
        MPI_Error_class(io.close(&file), &error_class);
        EXPECT_EQ(error_class, faulty ? MPI_SUCCESS : one.error_class) << "the others learn it here";
        remove(path);
    }
}

int called_with = 0;
void remember_class(MPI_File*, int* code, ...) { MPI_Error_class(*code, &called_with); }

TEST_F(EngineTest, TheErrorHandlerOfTheFileIsCalled) {
    const std::string path = world->path("handler.engine");
    MPI_File file = open(world->engine, path);
    MPI_Errhandler handler;
    MPI_File_create_errhandler(remember_class, &handler);
    MPI_File_set_errhandler(file, handler);
    world->backend.arm({FaultKind::error, 1, ENOSPC});
    char byte = 1;
    world->engine.write_at_all(file, world->rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    EXPECT_EQ(called_with, MPI_ERR_NO_SPACE);
    MPI_Errhandler_free(&handler);
    world->engine.close(&file);
    remove(path);
}

TEST_F(EngineTest, CountsToTheEndOfTheFile) {
    const std::string path = world->path("end.engine");
    const IoCalls& io = world->engine;
    MPI_File file = open(io, path);
    MPI_File_set_size(file, 105);
    MPI_Datatype four, every_other;
    MPI_Type_contiguous(4, MPI_BYTE, &four);
    MPI_Type_create_resized(four, 0, 8, &every_other);
    MPI_Type_commit(&every_other);
    std::vector<unsigned char> memory(200, 7);
    MPI_Status status;
    int count = -1;
    const auto read_all = [&](int bytes) {
        EXPECT_EQ(io.read_all(file, memory.data(), bytes, MPI_BYTE, &status), MPI_SUCCESS);
        MPI_Get_count(&status, MPI_BYTE, &count);
        return count;
    };
    EXPECT_EQ(read_all(100), 100);
    EXPECT_EQ(read_all(100), 5);
    EXPECT_EQ(read_all(100), 0);
    native_view(io, file, 0, MPI_BYTE, every_other);
    EXPECT_EQ(read_all(200), 53) << "13 pieces of 4 bytes and one of 1";
    MPI_Offset position = 0;
    world->hooks.File_get_position(file, &position);
    EXPECT_EQ(position, 200) << "the pointer moves by what was asked for";
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 7), 200 - 100)
        << "the first call's zeros, and nothing behind the end";
    MPI_Type_free(&every_other);
    MPI_Type_free(&four);
    io.close(&file);
    remove(path);
}

TEST_F(EngineTest, NothingIsStillACall) {
    const std::string path = world->path("nothing.engine");
    MPI_File file = open(world->engine, path);
    MPI_Status status;
    int count = -1;
    EXPECT_EQ(world->engine.write_at_all(file, 0, nullptr, 0, MPI_INT, &status), MPI_SUCCESS);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(world->engine.read_all(file, nullptr, 0, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Offset size = -1;
    MPI_File_get_size(file, &size);
    EXPECT_EQ(size, 0);
    world->engine.close(&file);
    remove(path);
}

/// Twice as many blocks as the engine keeps of a type: MPI has to pack it.
MPI_Datatype too_irregular_type() {
    const int lengths[2] = {1, 2};
    const MPI_Aint at[2] = {0, 3};
    MPI_Datatype pair, many;
    MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &pair);
    MPI_Type_create_hvector(1 << 22, 1, 6, pair, &many);
    MPI_Type_commit(&many);
    MPI_Type_free(&pair);
    return many;
}

TEST_F(EngineTest, AMemoryTypeThatOnlyOneRankHasIsPacked) {
    const std::string path = world->path("odd.engine");
    const IoCalls& io = world->engine;
    MPI_File file = open(io, path);
    MPI_Datatype odd = too_irregular_type();
    const std::int64_t size = 3LL << 22, span = 6LL << 22;
    std::vector<unsigned char> memory(static_cast<std::size_t>(world->rank == 0 ? span : size)),
        back(memory.size(), 0xEE);
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory[i] = static_cast<unsigned char>(i * 131 + i / 7 + static_cast<std::size_t>(world->rank));
    const MPI_Offset offset = world->rank * size;
    const int count = world->rank == 0 ? 1 : static_cast<int>(size);
    const MPI_Datatype type = world->rank == 0 ? odd : MPI_BYTE;
    EXPECT_EQ(io.write_at_all(file, offset, memory.data(), count, type, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Status status;
    EXPECT_EQ(io.read_at_all(file, offset, back.data(), count, type, &status), MPI_SUCCESS);
    int moved = 0;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, size);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < back.size(); ++i) {
        const bool hole = world->rank == 0 && (i % 6 == 1 || i % 6 == 2 || i % 6 == 5);
        wrong += back[i] != (hole ? 0xEE : memory[i]) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&odd);
    io.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    remove(path);
}

TEST_F(EngineTest, AViewThatOnlyOneRankCannotFollowIsLeftToTheLibraryByAll) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "Open MPI grows its list of the view's eight million pieces by reallocation, which the sanitizer "
                    "makes quadratic";
#endif
    const std::string path = world->path("view.engine");
    const IoCalls& io = world->engine;
    MPI_File file = open(io, path);
    MPI_Datatype odd = too_irregular_type();
    const std::int64_t span = 6LL << 22;
    native_view(io, file, world->rank * span, MPI_BYTE, world->rank == 0 ? odd : MPI_BYTE);
    std::vector<unsigned char> data(3000, static_cast<unsigned char>(world->rank + 1)), back(3000, 0);
    EXPECT_EQ(io.write_at_all(file, 0, data.data(), 3000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(io.read_at_all(file, 0, back.data(), 3000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, data);
    MPI_Type_free(&odd);
    io.close(&file);
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, world->rank == 0 ? "filetype" : "another rank's view"));
    EXPECT_TRUE(world->work.empty());
    remove(path);
}

// As PnetCDF's first rank has them. Within a tile the offsets go up, and the next tile begins before this one's end.
TEST_F(EngineTest, OfTilesThatReachIntoEachOtherTheFirstIsFollowed) {
    const std::string path = world->path("tiles.engine");
    const IoCalls& io = world->engine;
    const MPI_Aint turn = static_cast<MPI_Aint>(sizeof(int)) * world->ranks;  // every rank has one of these
    MPI_Datatype apart, tile;
    MPI_Type_create_hvector(3, 1, 2 * turn, MPI_INT, &apart);
    MPI_Type_create_resized(apart, 0, turn, &tile);
    MPI_Type_commit(&tile);
    MPI_File file = open(io, path);
    native_view(io, file, static_cast<MPI_Offset>(sizeof(int)) * world->rank, MPI_INT, tile);
    const auto value = [](int rank, int at) { return 100 * (rank + 1) + at; };
    std::vector<int> data, back(6, 0);
    for (int i = 0; i < 6; ++i) data.push_back(value(world->rank, i));
    EXPECT_EQ(io.write_at_all(file, 0, data.data(), 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
    EXPECT_EQ(io.write_at_all(file, 3, data.data() + 3, 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(io.read_at_all(file, 0, back.data(), 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(io.read_at_all(file, 3, back.data() + 3, 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, data);
    MPI_Type_free(&tile);
    MPI_Type_free(&apart);
    io.close(&file);
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, "tiles do not ascend"));
    EXPECT_EQ(world->did(&Did::calls), 2);
    EXPECT_EQ(world->did(&Did::read_bytes), 12);
    EXPECT_EQ(world->did(&Did::written_bytes), 12);
    // Turns of all ranks: the first tile's are 0, 2 and 4, the second's 1, 3 and 5.
    std::vector<int> expected;
    for (const int at : {0, 3, 1, 4, 2, 5})
        for (int rank = 0; rank < world->ranks; ++rank) expected.push_back(value(rank, at));
    const std::vector<unsigned char> found = contents(path);
    ASSERT_EQ(found.size(), expected.size() * sizeof(int));
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    remove(path);
}

// MPI_Type_create_resized may give a filetype a lower bound above its data. ROMIO's own pointer is wrong there: nothing but one
// operation after each MPI_File_set_view works with it, and that must work with the engine, too.
TEST_F(EngineTest, AFiletypeWithDataBelowItsLowerBoundIsWrittenRight) {
    const std::string path = world->path("bound.engine");
    MPI_Datatype tile;
    MPI_Type_create_resized(MPI_INT, sizeof(int), static_cast<MPI_Aint>(sizeof(int)) * 3 * world->ranks, &tile);
    MPI_Type_commit(&tile);
    std::vector<unsigned char> files[2];
    for (const bool engine : {false, true}) {
        const IoCalls& io = engine ? world->engine : world->library;
        MPI_File file = open(io, path);
        const auto set_view = [&] {
            native_view(io, file, static_cast<MPI_Offset>(sizeof(int)) * 3 * world->rank, MPI_INT, tile);
        };
        const std::vector<int> data{10 * world->rank + 1, 10 * world->rank + 2, 10 * world->rank + 3};
        std::vector<int> back(3, 0);
        set_view();
        EXPECT_EQ(io.write(file, data.data(), 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        set_view();
        EXPECT_EQ(io.read(file, back.data(), 3, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(back, data);
        io.close(&file);
        files[engine ? 1 : 0] = contents(path);
        remove(path);
    }
    EXPECT_EQ(files[0].size(), sizeof(int) * (9 * static_cast<std::size_t>(world->ranks) - 2));
    EXPECT_EQ(files[1].size(), files[0].size());
    std::int64_t wrong = 0;  // what lies between is nobody's
    for (std::size_t i = 0; i < std::min(files[0].size(), files[1].size()); ++i)
        wrong += i / sizeof(int) % 3 == 0 && files[1][i] != files[0][i] ? 1 : 0;
    EXPECT_EQ(wrong, 0);
    MPI_Type_free(&tile);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
}

TEST_F(EngineTest, PassesThroughWhatItDoesNotHandleAndSaysWhy) {
    const auto write_one = [&](const std::string& path, int amode, const std::function<void(MPI_File)>& prepare) {
        world->notes.clear();
        world->work.clear();
        MPI_File file = open(world->engine, path, amode);
        prepare(file);
        const auto value = static_cast<unsigned char>('a' + world->rank);
        EXPECT_EQ(world->engine.write_at_all(file, world->rank, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        world->engine.close(&file);
        std::vector<unsigned char> expected;
        for (int r = 0; r < world->ranks; ++r) expected.push_back(static_cast<unsigned char>('a' + r));
        EXPECT_EQ(contents(path), expected);
        remove(path);
    };
    const int usual = MPI_MODE_CREATE | MPI_MODE_RDWR;
    write_one(world->path("atomic.engine"), usual, [](MPI_File file) { world->hooks.File_set_atomicity(file, 1); });
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, "atomic mode"));
    write_one(world->path("some.delegated"), usual, [](MPI_File) {});
    EXPECT_TRUE(world->noted(format::NoteCode::passed_through, "delegates:1/4"));
    write_one(world->path("unplanned"), usual, [](MPI_File) {});
    EXPECT_TRUE(world->notes.empty()) << "a file that no rule matches is nobody's business";
    write_one(world->path("usual.engine"), usual, [](MPI_File) {});
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0);
    EXPECT_EQ(world->count(format::NoteCode::plan_applied), world->rank == 0 ? 1 : 0);
    EXPECT_EQ(world->did(&Did::calls), 1);
}

TEST_F(EngineTest, SequentialModePassesThrough) {
    const std::string path = world->path("sequential.engine");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
    world->engine.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::plan_applied), 0);
    remove(path);
}

TEST_F(EngineTest, FaultyArgumentsAreTheLibrarysToReport) {
    const std::string path = world->path("faulty.engine");
    MPI_File file = open(world->engine, path);
    char byte = 0;
    // One rank alone makes the mistake: the others must not wait for it.
    if (world->rank == 0) {
        EXPECT_NE(world->engine.write_at_all(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    } else {
        EXPECT_EQ(world->engine.write_at_all(file, world->rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    world->engine.close(&file);
    remove(path);
}

TEST_F(EngineTest, SeeksThatLeadNowhereFailAsTheLibrarysAndMoveNothing) {
    const std::string path = world->path("nowhere.engine");
    const auto tried = [&](const IoCalls& io) {
        MPI_File file = open(io, path);
        native_view(io, file, 3, MPI_INT, MPI_INT);
        std::vector<long long> all;
        const auto seek = [&](MPI_Offset offset, int whence) {
            const int code = &io == &world->engine ? world->hooks.File_seek(file, offset, whence)
                                                   : PMPI_File_seek(file, offset, whence);
            int error_class = code;
            if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
            MPI_Offset position = -1;
            if (&io == &world->engine)
                world->hooks.File_get_position(file, &position);
            else
                PMPI_File_get_position(file, &position);
            all.insert(all.end(), {error_class, position});
        };
        seek(7, MPI_SEEK_SET);
        seek(-1, MPI_SEEK_SET);
        seek(-8, MPI_SEEK_CUR);
        seek(-7, MPI_SEEK_CUR);
        seek(2, MPI_SEEK_CUR);
        seek(-1000, MPI_SEEK_END);
        io.close(&file);
        return all;
    };
    const std::vector<long long> library = tried(world->library);
    EXPECT_EQ(tried(world->engine), library);
    EXPECT_EQ(library[3], 7) << "the library left its pointer where it was";
    remove(path);
}

TEST_F(EngineTest, AnOpenThatFailsFailsForEveryone) {
    MPI_File file = MPI_FILE_NULL;
    EXPECT_NE(world->engine.open(MPI_COMM_WORLD, "/no/such/directory/x.engine", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
              MPI_SUCCESS);
    EXPECT_EQ(world->count(format::NoteCode::plan_applied), 0);
}

TEST_F(EngineTest, DeletesOnCloseAndStillVerifies) {
    const std::string path = world->path("gone.engine");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    const int value = world->rank;
    world->engine.write_at_all(file, 4 * world->rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    world->engine.close(&file);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_NE(::access(path.c_str(), F_OK), 0);
    EXPECT_EQ(world->count(format::NoteCode::verify_ok), world->rank == 0 ? 1 : 0);
}

TEST_F(EngineTest, VerifyKnowsLaterWritesOfOtherRanksAndOtherHandles) {
    const std::string path = world->path("again.engine");
    const IoCalls& io = world->engine;
    MPI_File file = open(io, path);
    const auto settle = [&] {
        MPI_File_sync(file);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_File_sync(file);
    };
    // Every rank writes all of it, one after the other; then parts of it.
    for (int turn = 0; turn < world->ranks; ++turn) {
        const std::vector<unsigned char> data(1000, static_cast<unsigned char>(turn + 1));
        if (world->rank == turn) {
            EXPECT_EQ(io.write_at(file, 0, data.data(), 1000, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            EXPECT_EQ(io.write_at(file, 100 * turn, data.data(), 50, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        settle();
    }
    // A second handle of rank 0 alone, open at the same time and closed first.
    if (world->rank == 0) {
        MPI_File second = open(io, path, MPI_MODE_RDWR, MPI_COMM_SELF);
        const std::vector<unsigned char> data(300, 200);
        EXPECT_EQ(io.write_at(second, 500, data.data(), 300, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        io.close(&second);
    }
    settle();
    io.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    // And opened again, with other data.
    file = open(io, path);
    const std::vector<unsigned char> data(100, 99);
    EXPECT_EQ(io.write_at_all(file, 100 * world->rank, data.data(), 100, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    io.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    if (world->rank == 0) {
        EXPECT_EQ(world->count(format::NoteCode::verify_ok), 3);
    }
    remove(path);
}

TEST_F(EngineTest, VerifySeesAFlipInAWriteThatOverlapsAnOlderOne) {
    if (world->ranks < 2) GTEST_SKIP() << "needs two ranks";
    const std::string path = world->path("flip.engine");
    MPI_File file = open(world->engine, path);
    const std::vector<unsigned char> data(1000, static_cast<unsigned char>(world->rank + 1));
    for (int turn = 0; turn < 2; ++turn) {
        if (world->rank == turn) {
            if (turn == 1) world->backend.arm({FaultKind::flip_bit, 1, 0});
            world->engine.write_at(file, 0, data.data(), 1000, MPI_BYTE, MPI_STATUS_IGNORE);
        }
        MPI_File_sync(file);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_File_sync(file);
    }
    world->engine.close(&file);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), world->rank == 0 ? 1 : 0);
    remove(path);
}

TEST_F(EngineTest, OpeningAgainAndAgainLeavesNothingBehind) {
    const auto lowest_free = [] {
        const int fd = ::open("/dev/null", O_RDONLY);
        ::close(fd);
        return fd;
    };
    const int before = lowest_free();
    for (int i = 0; i < 20; ++i) {
        MPI_File file = open(world->engine, world->path("many.engine"));
        world->engine.close(&file);
    }
    remove(world->path("many.engine"));
    EXPECT_EQ(lowest_free(), before);
}

TEST_F(EngineTest, ADescriptorThatTheProgramClosedIsOpenedAgain) {
    const std::string path = world->path("closed.engine");
    MPI_File file = open(world->engine, path);
    // The engine's descriptor is the newest of the file.
    int newest = -1;
    for (int fd = 3; fd < 256; ++fd) {
        char link[64], target[4096];
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t length = ::readlink(link, target, sizeof target);
        if (length > 0 && std::string(target, static_cast<std::size_t>(length)) == path) newest = fd;
    }
    ASSERT_GE(newest, 0);
    const int other = ::open("/dev/null", O_WRONLY);
    ::dup2(other, newest);  // now something else altogether
    const auto value = static_cast<unsigned char>('A' + world->rank);
    EXPECT_EQ(world->engine.write_at_all(file, world->rank, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    ::close(other);
    const std::vector<unsigned char> there = contents(path);
    ASSERT_EQ(static_cast<int>(there.size()), world->ranks);
    EXPECT_EQ(there[static_cast<std::size_t>(world->rank)], value);
    ::close(newest);
    world->engine.close(&file);
    remove(path);
}

#if defined(MPICH)
TEST_F(EngineTest, PrefixesAreStripped) {
    MPI_File file = open(world->engine, "ufs:" + world->path("prefix.engine"));
    const auto value = static_cast<unsigned char>('A' + world->rank);
    EXPECT_EQ(world->engine.write_at_all(file, world->rank, &value, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    world->engine.close(&file);
    EXPECT_EQ(static_cast<int>(contents(world->path("prefix.engine")).size()), world->ranks);
    EXPECT_EQ(world->work.size(), 1U);
    remove(world->path("prefix.engine"));
}
#endif

#if MPI_VERSION >= 4
TEST_F(EngineTest, LargeCountFormsAreHandled) {
    const std::string path = world->path("large.engine");
    MPI_File file = open(world->engine, path);
    const std::vector<int> data(1000, world->rank + 1);
    std::vector<int> back(1000, 0);
    EXPECT_EQ(world->hooks.File_write_at_all_c(file, 4000 * world->rank, data.data(), 1000, MPI_INT, MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_EQ(world->hooks.File_read_at_all_c(file, 4000 * world->rank, back.data(), 1000, MPI_INT, MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_EQ(back, data);
    world->engine.close(&file);
    EXPECT_EQ(world->did(&Did::calls), 2);
    remove(path);
}
#endif

}  // namespace
}  // namespace ioweir
