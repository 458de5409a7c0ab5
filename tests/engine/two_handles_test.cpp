// A container through several handles at a time, under real MPI processes: those of one process have its own order; sync, barrier, sync
// by any of them orders what ranks write, and jobs that write at once leave one file.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mapped_world.hpp"

namespace ioweir {
namespace {

constexpr const char* further_rules = R"(
[[file]]
match = "*.fine"
mapping = "subfiles:3"
stripe = { size = 4 }
)";

const char* const names[] = {"file.two", "file.each", "file.gathered", "file.log", "file.fine"};

// Not verified: a handle of one rank alone cannot know what others have written over its bytes.
[[maybe_unused]] const testing::Environment* const registered =
    add_world(std::string(plan_of_parts) + further_rules, false);

class TwoHandlesTest : public MappedTest {
protected:
    void write(MPI_File file, MPI_Offset at, const std::string& text) const {
        EXPECT_EQ(
            calls_.File_write_at(file, at, text.data(), static_cast<int>(text.size()), MPI_BYTE, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
    }
    void sync(MPI_File file) const { EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS); }
    void close(MPI_File& file) const { EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS); }
    static void expect_whole(const std::string& path, std::int64_t bytes) {
        PMPI_Barrier(MPI_COMM_WORLD);
        const auto described = container::describe(path);
        EXPECT_TRUE(described.ok() && described.value().problems.empty());
        EXPECT_TRUE(described.ok() && described.value().bytes == bytes);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
};

TEST_F(TwoHandlesTest, OfAProcessHaveTheOrderOfItsCalls) {
    for (const char* const name : names) {
        const std::string path = world->path(name);
        MPI_File first = open(world->engine, path);
        MPI_File second = open(world->engine, path);
        MPI_File alone = open(world->engine, path, MPI_MODE_RDWR, MPI_COMM_SELF);
        const MPI_Offset mine = 10 * world->rank;
        std::string expected = std::string(10, '.');
        MPI_File files[] = {first, alone, second};
        // Each writes over a part of what the one before has written; nothing is synced.
        for (int i = 0; i < 9; ++i) {
            const std::string text(static_cast<std::size_t>(9 - i), static_cast<char>('a' + i));
            write(files[i % 3], mine + i, text);
            expected.replace(static_cast<std::size_t>(i), text.size(), text);
            EXPECT_EQ(read_all(files[(i + 1) % 3], mine + i).substr(0, text.size()), text);
        }
        close(alone);
        write(first, mine, "12");
        close(second);
        write(first, mine + 1, "3");
        expected = "13" + expected.substr(2, 7);
        close(first);
        PMPI_Barrier(MPI_COMM_WORLD);
        const std::string text = read_file(path);
        EXPECT_EQ(text.substr(static_cast<std::size_t>(mine), 9), expected);
        expect_whole(path, 10 * world->ranks - 1);
        remove_container(path);
    }
}

TEST_F(TwoHandlesTest, SyncOnOneBarrierAndReadOrWriteThroughTheOther) {
    for (const char* const name : names) {
        const std::string path = world->path(name);
        MPI_File files[] = {open(world->engine, path), open(world->engine, path)};
        std::string model(5, '\0');
        for (int turn = 0; turn < 3 * world->ranks + 2; ++turn) {
            MPI_File writer = files[turn % 2], reader = files[(turn + 1) % 2];
            const std::string text(static_cast<std::size_t>(5 - turn % 3), static_cast<char>('a' + turn));
            if (turn % world->ranks == world->rank) write(writer, turn % 3, text);
            model.replace(static_cast<std::size_t>(turn % 3), text.size(), text);
            sync(writer);
            PMPI_Barrier(MPI_COMM_WORLD);
            EXPECT_EQ(read_all(reader), model) << turn;
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        close(files[1]);
        close(files[0]);
        EXPECT_EQ(read_file(path), model);
        expect_whole(path, 5);
        remove_container(path);
    }
}

/// PnetCDF's way: all ranks have the file open, and each has it open once more alone.
TEST_F(TwoHandlesTest, HandlesOfOneRankAndOfAll) {
    for (const char* const name : names) {
        const std::string path = world->path(name);
        MPI_File all = open(world->engine, path);
        MPI_File alone = open(world->engine, path, MPI_MODE_RDWR, MPI_COMM_SELF);
        std::string model(5, '\0');
        for (int turn = 0; turn < 3 * world->ranks + 2; ++turn) {
            const int writer = turn % world->ranks;
            const std::string text(static_cast<std::size_t>(5 - turn % 3), static_cast<char>('a' + turn));
            if (writer == world->rank) {
                write(turn % 2 == 0 ? alone : all, turn % 3, text);
                if (turn % 4 < 2) sync(alone);
            }
            model.replace(static_cast<std::size_t>(turn % 3), text.size(), text);
            if (turn % 4 >= 2) sync(all);
            PMPI_Barrier(MPI_COMM_WORLD);
            if (turn % 4 < 2) sync(alone);
            EXPECT_EQ(read_all(turn % 3 == 0 ? all : alone), model) << turn;
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        close(all);
        if (world->rank == 0) {
            write(alone, 0, "end");
            model.replace(0, 3, "end");
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        close(alone);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(read_file(path).substr(3), model.substr(3));
        EXPECT_EQ(read_file(path).substr(0, 3), "end");
        expect_whole(path, 5);
        remove_container(path);
    }
}

TEST_F(TwoHandlesTest, DisjointCommunicatorsMakeOneFileAndHaveAnOrder) {
    for (int time = 0; time < 4; ++time) {
        for (const char* const name : names) {
            const std::string path = world->path(name);
            MPI_Comm half = MPI_COMM_NULL;
            PMPI_Comm_split(MPI_COMM_WORLD, world->rank % 2, world->rank, &half);
            MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR, half);  // all at once
            ASSERT_NE(file, MPI_FILE_NULL);
            std::string model = std::string(4, '\0') + ten_each();
            write(file, 4 + 10 * world->rank, ten_each().substr(static_cast<std::size_t>(10 * world->rank), 10));
            // One half after the other writes the same bytes.
            for (int turn = 0; turn < 6; ++turn) {
                PMPI_Barrier(MPI_COMM_WORLD);
                const std::string text(static_cast<std::size_t>(4 - turn % 3), static_cast<char>('A' + turn));
                const bool exists = turn % 2 == 0 || world->ranks > 1;
                if (exists) model.replace(static_cast<std::size_t>(turn % 3), text.size(), text);
                if (turn % 2 == world->rank % 2) {
                    sync(file);
                    if (world->rank == turn % 2) write(file, turn % 3, text);
                    sync(file);
                }
                PMPI_Barrier(MPI_COMM_WORLD);
            }
            sync(file);
            PMPI_Barrier(MPI_COMM_WORLD);
            sync(file);
            EXPECT_EQ(read_all(file), model);
            PMPI_Barrier(MPI_COMM_WORLD);
            close(file);
            PMPI_Barrier(MPI_COMM_WORLD);
            EXPECT_EQ(directories(), 1);
            EXPECT_EQ(read_file(path), model);
            expect_whole(path, std::ssize(model));
            PMPI_Comm_free(&half);
            remove_container(path);
        }
    }
}

TEST_F(TwoHandlesTest, WhatOneClosesIsDoneThoughTheOtherGoesOn) {
    for (const char* const name : names) {
        const std::string path = world->path(name);
        MPI_File first = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
        MPI_File second = open(world->engine, path, MPI_MODE_WRONLY);
        write_ten(second);
        close(first);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(read_file(path), ten_each()) << "through whichever handle it was written";
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(container::describe(path).value().open, (std::vector<std::uint32_t>{2}));
        PMPI_Barrier(MPI_COMM_WORLD);
        write_ten(second);
        if (world->rank == last_) write(second, 10 * world->ranks, "more");
        close(second);
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(read_file(path), ten_each() + "more");
        expect_whole(path, 10 * world->ranks + 4);
        remove_container(path);
    }
}

TEST_F(TwoHandlesTest, AReaderSeesWhatIsSyncedWhileAnotherHandleWrites) {
    const std::string path = world->path("file.two");
    MPI_File first = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    write_ten(first);
    sync(first);
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
        EXPECT_EQ(read_file(path, comm), ten_each()) << "what was synced";
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    close(first);
    PMPI_Barrier(MPI_COMM_WORLD);
    // One after the other: the later one wins.
    MPI_File again = open(world->engine, path, MPI_MODE_WRONLY);
    if (world->rank == 0) write(again, 0, "S");
    close(again);
    EXPECT_EQ(read_file(path), "S" + ten_each().substr(1));
    expect_whole(path, 10 * world->ranks);
    remove_container(path);
}

}  // namespace
}  // namespace ioweir
