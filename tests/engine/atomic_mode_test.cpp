// Atomic mode of files in several parts: what one rank has written another one reads at once, without a sync; calls that overlap are seen as
// wholes, by whoever reads meanwhile. What is compared with is a string, and for single calls the MPI library on an ordinary file.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <set>
#include <string>

#include "modes_world.hpp"

namespace ioweir {
namespace {

class AtomicModeTest : public ModesTest {
protected:
    void set_atomicity(MPI_File file, int flag) const {
        EXPECT_EQ(calls_.File_set_atomicity(file, flag), MPI_SUCCESS);
        int now = -1;
        EXPECT_EQ(PMPI_File_get_atomicity(file, &now), MPI_SUCCESS);
        EXPECT_EQ(now, flag);
    }
    MPI_File open_atomic(const std::string& path) const {
        MPI_File file = open(world->engine, path);
        set_atomicity(file, 1);
        return file;
    }
    /// Ranks write one after the other, over what others have written; after nothing but a barrier all see it.
    void expect_seen_at_once(const std::string& path, bool atomic) const {
        MPI_File file = open(world->engine, path);
        // Written before the mode is set, and seen without a sync as well.
        std::string model = ten_each();
        write_ten(file);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (atomic) set_atomicity(file, 1);
        EXPECT_EQ(read_all(file), model);
        for (int step = 0; step < 4 * world->ranks + 4; ++step) {
            // Each goes over a part of what the one before has written, and further.
            const std::string mine(13, static_cast<char>('A' + step % 26));
            const auto at = static_cast<std::size_t>(7 * step);
            const bool collective = step % 3 == 2;
            PMPI_Barrier(MPI_COMM_WORLD);
            if (collective || step % world->ranks == world->rank) {
                const int bytes = step % world->ranks == world->rank ? 13 : 0;
                EXPECT_EQ((collective ? calls_.File_write_at_all : calls_.File_write_at)(
                              file, 7 * step, mine.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            model.resize(std::max(model.size(), at + mine.size()), '\0');
            model.replace(at, mine.size(), mine);
            MPI_Offset size = -1;
            EXPECT_EQ(calls_.File_get_size(file, &size), MPI_SUCCESS);
            EXPECT_EQ(size, std::ssize(model));
            if (step % 4 < 2) {
                EXPECT_EQ(read_all(file), model);
                continue;
            }
            std::string together(model.size(), '?');
            const auto length = static_cast<int>(together.size());
            if (step % 4 == 2) {
                EXPECT_EQ(calls_.File_read_at_all(file, 0, together.data(), length, MPI_BYTE, MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
            } else {
                MPI_Request request = MPI_REQUEST_NULL;
                EXPECT_EQ(calls_.File_iread_at_all(file, 0, together.data(), length, MPI_BYTE, &request), MPI_SUCCESS);
                PMPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            EXPECT_EQ(together, model);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_set_size(file, 5), MPI_SUCCESS);
        EXPECT_EQ(read_all(file), model.substr(0, 5));
        PMPI_Barrier(MPI_COMM_WORLD);
        // And by the shared pointer.
        EXPECT_EQ(calls_.File_seek_shared(file, 0, MPI_SEEK_END), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_write_shared(file, "s", 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        model = model.substr(0, 5) + std::string(static_cast<std::size_t>(world->ranks), 's');
        EXPECT_EQ(read_all(file), model);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (atomic) set_atomicity(file, 0);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(read_file(path), model) << "by the next handle";
        EXPECT_TRUE(is_container(path));
        merge_here(path);
        const auto bytes = contents(path);
        EXPECT_EQ(std::string(bytes.begin(), bytes.end()), model);
        EXPECT_EQ(directories(), 0);
        remove(path);
    }
    static std::string path_of(const char* way) { return world->path((std::string("file.") + way).c_str()); }
};

TEST_F(AtomicModeTest, AWriteIsSeenByTheNextReadOnAnyRank) {
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        expect_seen_at_once(path_of(way), true);
        if (on_any_rank(HasFailure())) return;
    }
}

/// visibility = "call" in the plan promises the same of single calls, without atomic mode.
TEST_F(AtomicModeTest, WithVisibilityCallSoItIsInEveryMode) {
    for (const char* const way : {"two-call", "gathered-call", "log-call", "collected-call"}) {
        SCOPED_TRACE(way);
        expect_seen_at_once(path_of(way), false);
        if (on_any_rank(HasFailure())) return;
    }
}

/// As in one file: also what was written through another handle, whoever has that, and by whichever reads.
TEST_F(AtomicModeTest, WithVisibilityCallOtherHandlesSeeItAsWell) {
    MPI_Comm halves = MPI_COMM_NULL;
    PMPI_Comm_split(MPI_COMM_WORLD, world->rank % 2, world->rank, &halves);
    for (const char* const way : {"two-call", "gathered-call", "log-call", "collected-call"}) {
        SCOPED_TRACE(way);
        const std::string path = path_of(way);
        MPI_File file = open(world->engine, path);
        write_ten(file);
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_File own = open(world->engine, path, MPI_MODE_RDWR, MPI_COMM_SELF);
        MPI_File half = open(world->engine, path, MPI_MODE_RDWR, halves);
        std::string model = ten_each();
        for (int step = 0; step < 3 * world->ranks; ++step) {
            const std::string mine(3, static_cast<char>('A' + step % 26));
            const auto at = static_cast<std::size_t>(2 * step);
            PMPI_Barrier(MPI_COMM_WORLD);
            if (step % world->ranks == world->rank) {
                EXPECT_EQ(calls_.File_write_at(own, 2 * step, mine.data(), 3, MPI_BYTE, MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            model.replace(at, mine.size(), mine);
            for (const MPI_File by : {own, half, file}) {
                std::string together(model.size(), '?');
                EXPECT_EQ(calls_.File_read_at_all(by, 0, together.data(), static_cast<int>(together.size()), MPI_BYTE,
                                                  MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
                EXPECT_EQ(together, model) << "step " << step
                                           << (by == own    ? ", own"
                                               : by == half ? ", of a half"
                                                            : ", of all");
            }
            EXPECT_EQ(read_all(step % 2 == 0 ? file : own), model) << "step " << step;
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_close(&half), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_close(&own), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(read_file(path), model) << "by the next handle";
        EXPECT_TRUE(is_container(path));
        remove_container(path);
        if (on_any_rank(HasFailure())) break;
    }
    PMPI_Comm_free(&halves);
}

/// Pieces with holes between them, in several parts of the file: independent calls, collective ones and readers at any time.
TEST_F(AtomicModeTest, CallsThatOverlapAreWholes) {
    constexpr int pieces = 40, piece = 5, stride = 17, bytes = pieces * piece, rounds = 8;
    MPI_Datatype holes = MPI_DATATYPE_NULL;
    PMPI_Type_vector(pieces, piece, stride, MPI_BYTE, &holes);
    PMPI_Type_commit(&holes);
    char native[] = "native";
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = path_of(way);
        MPI_File file = open_atomic(path);
        EXPECT_EQ(calls_.File_set_view(file, 3, MPI_BYTE, holes, native, MPI_INFO_NULL), MPI_SUCCESS);
        const std::string mine(bytes, static_cast<char>('a' + world->rank % 26));
        if (world->rank == 0) {
            EXPECT_EQ(calls_.File_write_at(file, 0, mine.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        const auto expect_one_letter = [&](bool collective) {
            std::string there(bytes, '?');
            EXPECT_EQ((collective ? calls_.File_read_at_all : calls_.File_read_at)(file, 0, there.data(), bytes,
                                                                                   MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            EXPECT_EQ(std::set<char>(there.begin(), there.end()).size(), 1U) << there;
            EXPECT_TRUE(there[0] >= 'a' && there[0] < 'a' + world->ranks) << there[0];
        };
        for (int round = 0; round < rounds; ++round) {
            if ((round + world->rank) % 2 == 0) {
                EXPECT_EQ(calls_.File_write_at(file, 0, mine.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            } else {
                expect_one_letter(false);
            }
        }
        for (int round = 0; round < 2; ++round) {
            EXPECT_EQ(calls_.File_write_at_all(file, 0, mine.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            expect_one_letter(false);
            expect_one_letter(true);
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
        if (on_any_rank(HasFailure())) break;
    }
    PMPI_Type_free(&holes);
}

TEST_F(AtomicModeTest, RanksMustWantTheSame) {
    const std::string path = path_of("two");
    MPI_File file = open(world->engine, path);
    if (world->ranks > 1) {
        EXPECT_EQ(calls_.File_set_atomicity(file, world->rank == 0 ? 1 : 0), MPI_ERR_ARG);
    }
    write_ten(file);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    EXPECT_EQ(read_all(file), ten_each());
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    remove_container(path);
}

TEST_F(AtomicModeTest, AFailedWriteIsToldAndTheLockIsFreeAgain) {
    const std::string path = path_of("log");
    // Where others may write the lock's file it is not mapped, and the number that says that something was shown is written as well.
    for (const bool others_may_write : {false, true}) {
        SCOPED_TRACE(others_may_write);
        MPI_File file = open_atomic(path);
        if (others_may_write && world->rank == 0) {
            const auto header_file = container::read_header_file(path).take();
            const std::string lock = container::directory_of(path, *header_file).path_of("atomic");
            std::filesystem::permissions(lock, std::filesystem::perms(0666));
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        const auto all_write = [&] {
            const MPI_Offset at = 4 * world->rank;
            EXPECT_EQ(calls_.File_write_at(file, at, "good", 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            PMPI_Barrier(MPI_COMM_WORLD);
        };
        all_write();
        for (std::int64_t nth = 1; nth <= (others_may_write ? 3 : 2); ++nth) {  // bytes, index, number
            if (world->rank == 0) {
                world->backend.arm({storage::FaultKind::error, nth, ENOSPC});
                EXPECT_EQ(calls_.File_write_at(file, 0, "bad", 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NO_SPACE);
                world->backend.arm({});
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            all_write();
            std::string expected;
            for (int rank = 0; rank < world->ranks; ++rank) expected += "good";
            EXPECT_EQ(read_all(file), expected);
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        (void)calls_.File_close(&file);
        remove_container(path);
    }
}

/// One that cannot write does not need a lock, nor a directory in which it could make one.
TEST_F(AtomicModeTest, ReadersLockNothing) {
    const std::string path = path_of("two");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDONLY);
    set_atomicity(file, 1);
    EXPECT_EQ(read_all(file), ten_each());
    const auto header_file = container::read_header_file(path).take();
    EXPECT_FALSE(std::filesystem::exists(container::directory_of(path, header_file->id) + "/atomic"));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    remove_container(path);
}

}  // namespace
}  // namespace ioweir
