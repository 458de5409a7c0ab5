// The shared file pointer of files in several parts: each call by it as on an ordinary file; all ranks at once; of each handle its own;
// faults and faulty arguments. Also MPI_MODE_APPEND, which says where pointers begin.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "modes_world.hpp"

namespace ioweir {
namespace {

// Not verified: what ranks write over each other in atomic mode has an order that verification does not know.
[[maybe_unused]] const testing::Environment* const registered = add_world(plan_of_parts, false);

constexpr char native[] = "native";

using SharedPointerTest = ModesTest;

TEST_F(SharedPointerTest, OrderedCallsAreAsOnAnOrdinaryFile) {
    expect_as_in_one_file([](const mpi::FileCalls& io, MPI_File file, Seen& seen) {
        const int rank = world->rank, ranks = world->ranks;
        EXPECT_EQ(io.File_set_view(file, 8, MPI_INT, MPI_INT, native, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<int> data;
        for (int i = 0; i < 8; ++i) data.push_back(100 * rank + i);
        MPI_Status status;
        // Some have more than others, and some nothing.
        EXPECT_EQ(io.File_write_ordered(file, data.data(), rank % 3 + 3, MPI_INT, &status), MPI_SUCCESS);
        seen.add("wrote", elements(status, MPI_INT));
        EXPECT_EQ(io.File_write_ordered(file, data.data(), rank % 2 == 0 ? 2 : 0, MPI_INT, &status), MPI_SUCCESS);
        EXPECT_EQ(io.File_write_ordered_begin(file, data.data(), 2, MPI_INT), MPI_SUCCESS);
        EXPECT_EQ(io.File_write_ordered_end(file, data.data(), &status), MPI_SUCCESS);
        seen.add("wrote in two steps", elements(status, MPI_INT));
        PMPI_Barrier(MPI_COMM_WORLD);
        const MPI_Offset end = position(io, file);
        seen.add("stands at", end);
        settle(io, file);
        EXPECT_EQ(io.File_seek_shared(file, 1, MPI_SEEK_SET), MPI_SUCCESS);
        std::vector<int> back(2, -1);
        EXPECT_EQ(io.File_read_ordered(file, back.data(), 2, MPI_INT, &status), MPI_SUCCESS);
        seen.add("read", back);
        seen.add("so many", elements(status, MPI_INT));
        EXPECT_EQ(io.File_read_ordered_begin(file, back.data(), 1, MPI_INT), MPI_SUCCESS);
        EXPECT_EQ(io.File_read_ordered_end(file, back.data(), &status), MPI_SUCCESS);
        seen.add("read in two steps", back);
        PMPI_Barrier(MPI_COMM_WORLD);
        seen.add("stands at", position(io, file));
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(io.File_seek_shared(file, -ranks, MPI_SEEK_CUR), MPI_SUCCESS);
        seen.add("after going back", position(io, file));
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(io.File_seek_shared(file, 0, MPI_SEEK_END), MPI_SUCCESS);
        // OMPIO counts from the beginning of the file there, not of the view.
        if (&io != &world->below) {
            EXPECT_EQ(position(io, file), end);
        }
        // The view decides what is counted, and sets the pointer to zero.
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(io.File_set_view(file, 0, MPI_BYTE, MPI_BYTE, native, MPI_INFO_NULL), MPI_SUCCESS);
        seen.add("in a new view", position(io, file));
        PMPI_Barrier(MPI_COMM_WORLD);
        const char letter = static_cast<char>('a' + rank % 26);
        EXPECT_EQ(io.File_write_ordered(file, &letter, rank == 0 ? 1 : 0, MPI_CHAR, &status), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        seen.add("stands at", position(io, file));
    });
}

TEST_F(SharedPointerTest, CallsOneAfterTheOtherAreAsOnAnOrdinaryFile) {
    expect_as_in_one_file([](const mpi::FileCalls& io, MPI_File file, Seen& seen) {
        MPI_Datatype pair = MPI_DATATYPE_NULL, apart = MPI_DATATYPE_NULL;
        PMPI_Type_contiguous(2, MPI_INT, &pair);
        PMPI_Type_commit(&pair);
        PMPI_Type_vector(2, 1, 3, MPI_INT, &apart);
        PMPI_Type_commit(&apart);
        EXPECT_EQ(io.File_set_view(file, 4, pair, pair, native, MPI_INFO_NULL), MPI_SUCCESS);
        const int rank = world->rank;
        MPI_Status status;
        const std::vector<int> data{10 * rank, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3};
        const auto in_turn = [&](auto act) {
            for (int turn = 0; turn < world->ranks; ++turn) {
                PMPI_Barrier(MPI_COMM_WORLD);
                if (turn == rank) act();
            }
            PMPI_Barrier(MPI_COMM_WORLD);
        };
        in_turn([&] {
            EXPECT_EQ(io.File_write_shared(file, data.data(), 2, pair, &status), MPI_SUCCESS);
            seen.add("wrote", elements(status, MPI_INT));
            MPI_Request request = MPI_REQUEST_NULL;
            EXPECT_EQ(io.File_iwrite_shared(file, data.data(), 1, apart, &request), MPI_SUCCESS);
            EXPECT_EQ(PMPI_Wait(&request, &status), MPI_SUCCESS);
            seen.add("wrote", elements(status, MPI_INT));
            seen.add("stands at", position(io, file));
        });
        settle(io, file);
        EXPECT_EQ(io.File_seek_shared(file, 0, MPI_SEEK_SET), MPI_SUCCESS);
        in_turn([&] {
            std::vector<int> back(6, -1);
            EXPECT_EQ(io.File_read_shared(file, back.data(), 2, pair, &status), MPI_SUCCESS);
            seen.add("read", back);
            MPI_Request request = MPI_REQUEST_NULL;
            EXPECT_EQ(io.File_iread_shared(file, back.data(), 1, apart, &request), MPI_SUCCESS);
            EXPECT_EQ(PMPI_Wait(&request, &status), MPI_SUCCESS);
            seen.add("read", back);
            seen.add("stands at", position(io, file));
        });
        PMPI_Type_free(&pair);
        PMPI_Type_free(&apart);
    });
}

TEST_F(SharedPointerTest, BehindTheEndNothingIsReadAndThePointerMovesOn) {
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = world->path((std::string("file.") + way).c_str());
        MPI_File file = open(world->engine, path);
        write_ten(file);
        settle(calls_, file);
        EXPECT_EQ(calls_.File_seek_shared(file, 0, MPI_SEEK_END), MPI_SUCCESS);
        EXPECT_EQ(position(calls_, file), 10 * world->ranks);
        PMPI_Barrier(MPI_COMM_WORLD);
        std::string back(3, '?');
        MPI_Status status;
        EXPECT_EQ(calls_.File_read_ordered(file, back.data(), 3, MPI_BYTE, &status), MPI_SUCCESS);
        EXPECT_EQ(elements(status, MPI_BYTE), 0);
        EXPECT_EQ(back, "???");
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(position(calls_, file), 13 * world->ranks);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

TEST_F(SharedPointerTest, AllAtOnceEachGetsAPlaceOfItsOwn) {
    constexpr int records = 15;
    struct Record {
        int rank = -1, number = -1;
    };
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = world->path((std::string("file.") + way).c_str());
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        EXPECT_EQ(calls_.File_set_view(file, 0, MPI_INT, MPI_INT, native, MPI_INFO_NULL), MPI_SUCCESS);
        std::vector<Record> mine(records);
        for (int i = 0; i < records; ++i) {
            mine[static_cast<std::size_t>(i)] = {world->rank, i};
            const Record& record = mine[static_cast<std::size_t>(i)];
            if (i % 2 == 0) {
                EXPECT_EQ(calls_.File_write_shared(file, &record, 2, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
            } else {
                MPI_Request request = MPI_REQUEST_NULL;
                EXPECT_EQ(calls_.File_iwrite_shared(file, &record, 2, MPI_INT, &request), MPI_SUCCESS);
                EXPECT_EQ(PMPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
            }
        }
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(temporary_files(), 0);
        merge_here(path);
        const auto bytes = contents(path);
        ASSERT_EQ(bytes.size(), sizeof(Record) * records * static_cast<std::size_t>(world->ranks));
        std::map<int, int> next;  // by rank
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(Record)) {
            Record record;
            std::copy_n(&bytes[at], sizeof record, reinterpret_cast<unsigned char*>(&record));
            EXPECT_EQ(record.number, next[record.rank]++) << "of rank " << record.rank;
        }
        for (int rank = 0; rank < world->ranks; ++rank) EXPECT_EQ(next[rank], records);
        remove(path);
    }
}

TEST_F(SharedPointerTest, EachHandleHasItsOwn) {
    const std::string path = world->path("file.log");
    MPI_File one = open(world->engine, path), other = open(world->engine, path);
    MPI_File alone = open(world->engine, path, MPI_MODE_RDWR, MPI_COMM_SELF);
    EXPECT_EQ(temporary_files(), 0) << "nobody has used one";
    EXPECT_EQ(calls_.File_write_ordered(one, "abc", 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(temporary_files(), 1);
    EXPECT_EQ(position(calls_, one), 3 * world->ranks);
    EXPECT_EQ(position(calls_, other), 0);
    EXPECT_EQ(position(calls_, alone), 0);
    settle(calls_, one);
    settle(calls_, other);
    std::string back(1, '?');
    EXPECT_EQ(calls_.File_read_shared(alone, back.data(), 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(back, "a");
    EXPECT_EQ(position(calls_, alone), 1);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(position(calls_, other), 0);
    EXPECT_EQ(calls_.File_close(&one), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&other), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&alone), MPI_SUCCESS);
    EXPECT_EQ(temporary_files(), 0);
    // The next handle begins at zero.
    MPI_File next = open(world->engine, path, MPI_MODE_RDONLY);
    EXPECT_EQ(position(calls_, next), 0);
    EXPECT_EQ(calls_.File_close(&next), MPI_SUCCESS);
    remove_container(path);
}

TEST_F(SharedPointerTest, FaultyCallsDoNotMoveIt) {
    const std::string path = world->path("file.two");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    EXPECT_EQ(calls_.File_set_view(file, 0, MPI_INT, MPI_INT, native, MPI_INFO_NULL), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_seek_shared(file, 5, MPI_SEEK_SET), MPI_SUCCESS);
    int number = 1;
    EXPECT_NE(calls_.File_write_shared(file, &number, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_NE(calls_.File_write_shared(file, &number, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_write_shared(file, &number, 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION)
        << "a part of an etype";
    EXPECT_EQ(calls_.File_seek_shared(file, -6, MPI_SEEK_CUR), MPI_ERR_ARG);
    EXPECT_EQ(calls_.File_seek_shared(file, 0, 12345), MPI_ERR_ARG);
    if (world->ranks > 1) {
        EXPECT_EQ(calls_.File_seek_shared(file, world->rank, MPI_SEEK_SET), MPI_ERR_ARG) << "not the same on all ranks";
    }
    // One of those who take part in an ordered call has nothing that could be written: the others are not held up.
    const int count = world->rank == last_ ? -1 : 1;
    const int result = calls_.File_write_ordered(file, &number, count, MPI_INT, MPI_STATUS_IGNORE);
    EXPECT_EQ(result == MPI_SUCCESS, world->rank != last_);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(position(calls_, file), 5 + last_);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_write_ordered_begin(file, &number, 1, MPI_INT), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_write_ordered_begin(file, &number, 1, MPI_INT), MPI_ERR_REQUEST) << "one at a time";
    EXPECT_EQ(calls_.File_read_ordered_end(file, &number, MPI_STATUS_IGNORE), MPI_ERR_REQUEST) << "of another kind";
    EXPECT_EQ(calls_.File_write_ordered_end(file, &number, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    remove_container(path);
}

TEST_F(SharedPointerTest, WhereItCannotBeKeptTheCallSaysSo) {
    const std::string path = world->path("file.dealt");
    make(path);
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    for (int struck = 0; struck < world->ranks; ++struck) {
        // The pointer's first write on that rank fails.
        if (world->rank == struck) world->backend.arm({storage::FaultKind::error, 1, ENOSPC});
        const int result = calls_.File_write_shared(file, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
        EXPECT_EQ(result, world->rank == struck ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
        world->backend.arm({});
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_TRUE(world->rank != struck || world->noted(format::NoteCode::message, "the shared file pointer"));
        // In an ordered call all learn it at once.
        if (world->rank == last_ && struck == 0) world->backend.arm({storage::FaultKind::error, 1, ENOSPC});
        const int ordered = calls_.File_write_ordered(file, "y", 1, MPI_BYTE, MPI_STATUS_IGNORE);
        EXPECT_EQ(ordered, struck == 0 ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
        world->backend.arm({});
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    (void)calls_.File_close(&file);  // tells of what others have met
    EXPECT_EQ(temporary_files(), 0);
    remove_container(path);
}

/// A header by one rank, and the rest by all in their order, from a view that begins where the pointer stands.
TEST_F(SharedPointerTest, InSequentialModeAContainerIsReadAndAddedToInOrder) {
    const int all = 10 * world->ranks;
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = world->path((std::string("file.") + way).c_str());
        make(path);
        MPI_File file = open(world->engine, path, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
        std::string header(4, '?');
        if (world->rank == last_) {
            EXPECT_EQ(calls_.File_read_shared(file, header.data(), 4, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            EXPECT_EQ(header, ten_each().substr(0, 4));
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_SHORT, MPI_SHORT, native, MPI_INFO_NULL),
                  MPI_SUCCESS);
        EXPECT_EQ(position(calls_, file), 0);
        std::string two(2, '?');
        EXPECT_EQ(calls_.File_read_ordered(file, two.data(), 1, MPI_SHORT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(two, ten_each().substr(static_cast<std::size_t>(4 + 2 * world->rank), 2));
        // Then on to the end.
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) {
            std::string rest(static_cast<std::size_t>(all - 4 - 2 * world->ranks), '?');
            EXPECT_EQ(calls_.File_read_shared(file, rest.data(), static_cast<int>(rest.size() / 2), MPI_SHORT,
                                              MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            EXPECT_EQ(rest, ten_each().substr(static_cast<std::size_t>(4 + 2 * world->ranks)));
        }
        // Other pointers may not be used.
        EXPECT_EQ(calls_.File_read_at(file, 0, two.data(), 1, MPI_SHORT, MPI_STATUS_IGNORE),
                  MPI_ERR_UNSUPPORTED_OPERATION);
        EXPECT_EQ(calls_.File_read(file, two.data(), 1, MPI_SHORT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        file = open(world->engine, path, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND);
        const std::string mine(2, static_cast<char>('A' + world->rank % 26));
        EXPECT_EQ(calls_.File_write_ordered(file, mine.data(), 2, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        std::string expected = ten_each();
        for (int rank = 0; rank < world->ranks; ++rank) expected += std::string(2, static_cast<char>('A' + rank % 26));
        EXPECT_EQ(read_file(path), expected);
        remove_container(path);
    }
}

TEST_F(SharedPointerTest, WithAppendBothPointersBeginAtTheEnd) {
    for (const char* const way : ways) {
        SCOPED_TRACE(way);
        const std::string path = world->path((std::string("file.") + way).c_str());
        make(path);
        MPI_File file = open(world->engine, path, MPI_MODE_WRONLY | MPI_MODE_APPEND);
        MPI_Offset individual = -1;
        EXPECT_EQ(calls_.File_get_position(file, &individual), MPI_SUCCESS);
        EXPECT_EQ(individual, 10 * world->ranks);
        EXPECT_EQ(position(calls_, file), 10 * world->ranks);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(calls_.File_write_ordered(file, "!", 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(read_file(path), ten_each() + std::string(static_cast<std::size_t>(world->ranks), '!'));
        remove_container(path);
    }
}

}  // namespace
}  // namespace ioweir
