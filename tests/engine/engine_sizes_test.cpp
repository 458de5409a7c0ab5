// MPI_File_set_size through the engine: what grows a file waits, nothing that MPI lets a program see shows it, and in the end the file
// is as long as the program said. Judged by stat(2). Runs under mpiexec with any number of ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using storage::FaultKind;

constexpr const char* plan_text = R"(
[[file]]
match = "*.engine"

[[file]]
match = "*.now"
set_size = "at-once"
)";

mpi::FileCalls real;

/// As Open MPI's: each rank sets the length by itself, and the last rank late.
int late_preallocate(MPI_File file, MPI_Offset bytes) {
    const std::string path = world->path("size.engine");
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    const int result = real.File_preallocate(file, bytes);
    if (world->rank == world->ranks - 1) ::usleep(200'000);
    EXPECT_EQ(::truncate(path.c_str(), std::max<off_t>(bytes, info.st_size)), 0);
    return result;
}

void have_it_late(mpi::FileCalls& below) {
    real = below;
    below.File_preallocate = late_preallocate;
}

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan_text, WorldOptions{.change_library = have_it_late});

class SizesTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        const std::string probe = world->path("probe") + std::to_string(world->rank);
        const int fd = ::open(probe.c_str(), O_CREAT | O_WRONLY, 0600);
        const bool grows = ::fallocate(fd, 0, 9, 1) == 0;
        ::close(fd);
        ::unlink(probe.c_str());
        if (!grows) GTEST_SKIP() << world->directory << " lies on a file system without fallocate";
        path_ = world->path("size.engine");
    }

    /// The file's length now, on all ranks the same.
    std::int64_t length() const {
        PMPI_Barrier(MPI_COMM_WORLD);
        struct stat info{};
        const int code = ::stat(path_.c_str(), &info);
        PMPI_Barrier(MPI_COMM_WORLD);
        return code == 0 ? static_cast<std::int64_t>(info.st_size) : -1;
    }
    MPI_Offset answered(MPI_File file) const {
        MPI_Offset size = -1;
        EXPECT_EQ(calls_.File_get_size(file, &size), MPI_SUCCESS);
        return size;
    }
    /// Opens it, and has it wait for 1000 bytes.
    MPI_File waiting() {
        MPI_File file = open(world->engine, path_);
        EXPECT_EQ(calls_.File_set_size(file, 1000), MPI_SUCCESS);
        EXPECT_EQ(length(), 0) << "it waits";
        EXPECT_EQ(answered(file), 1000);
        PMPI_Barrier(MPI_COMM_WORLD);
        return file;
    }
    void close_and_expect(MPI_File file, std::int64_t bytes) {
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(length(), bytes);
        EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
        remove(path_);
    }
    void write_ten_each(MPI_File file, MPI_Offset from) {
        const std::string data(10, 'x');
        EXPECT_EQ(calls_.File_write_at_all(file, from + 10 * world->rank, data.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
    }

    const mpi::FileCalls& calls_ = world->hooks;
    std::string path_;
};

TEST_F(SizesTest, WaitsUntilClose) {
    close_and_expect(waiting(), 1000);
    EXPECT_EQ(world->did(&Did::sizes_deferred), 1);
}

TEST_F(SizesTest, WritesThatMakeTheFileAsLongSpareIt) {
    MPI_File file = open(world->engine, path_);
    EXPECT_EQ(calls_.File_set_size(file, 10 * world->ranks), MPI_SUCCESS);
    EXPECT_EQ(length(), 0);
    write_ten_each(file, 0);
    close_and_expect(file, 10 * world->ranks);
    EXPECT_EQ(world->did(&Did::sizes_deferred), 1);
    EXPECT_EQ(world->did(&Did::sizes_grown), 0);
}

TEST_F(SizesTest, NeverCutsWhatWasWrittenBeyond) {
    MPI_File file = waiting();
    write_ten_each(file, 2000);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    EXPECT_EQ(answered(file), 2000 + 10 * world->ranks);
    close_and_expect(file, 2000 + 10 * world->ranks);
}

TEST_F(SizesTest, SyncMakesItSo) {
    MPI_File file = waiting();
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, TheLargestOfSeveralCounts) {
    MPI_File file = waiting();
    EXPECT_EQ(calls_.File_set_size(file, 5000), MPI_SUCCESS);
    EXPECT_EQ(length(), 0);
    close_and_expect(file, 5000);
}

TEST_F(SizesTest, AShrinkingOneNeverWaits) {
    MPI_File file = open(world->engine, path_);
    write_ten_each(file, 100);
    EXPECT_EQ(calls_.File_set_size(file, 50), MPI_SUCCESS);
    EXPECT_EQ(length(), 50);
    EXPECT_EQ(calls_.File_set_size(file, 50), MPI_SUCCESS) << "nor does one that changes nothing";
    EXPECT_EQ(answered(file), 50);
    close_and_expect(file, 50);
    EXPECT_EQ(world->did(&Did::sizes_deferred), 0);
}

TEST_F(SizesTest, AShrinkingOneAfterAWaitingOneIsTheOneThatCounts) {
    for (const int less : {0, 20, 999}) {
        MPI_File file = waiting();
        EXPECT_EQ(calls_.File_set_size(file, less), MPI_SUCCESS);
        EXPECT_EQ(length(), less);
        EXPECT_EQ(answered(file), less);
        close_and_expect(file, less);
    }
}

TEST_F(SizesTest, AFaultySizeChangesNothing) {
    MPI_File file = waiting();
    EXPECT_NE(calls_.File_set_size(file, -1), MPI_SUCCESS);
    EXPECT_EQ(answered(file), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, ReadingBeyondTheEndFindsZeros) {
    MPI_File file = waiting();
    std::string back(100, '?');
    MPI_Status status;
    EXPECT_EQ(calls_.File_read_at(file, 950 - world->rank, back.data(), 100, MPI_BYTE, &status), MPI_SUCCESS);
    int moved = -1;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, 50 + world->rank);
    EXPECT_EQ(back.substr(0, static_cast<std::size_t>(moved)), std::string(static_cast<std::size_t>(moved), '\0'));
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, ReadingWhatIsThereDoesNotEndTheWait) {
    MPI_File file = open(world->engine, path_);
    write_ten_each(file, 0);
    EXPECT_EQ(calls_.File_set_size(file, 1000), MPI_SUCCESS);
    char byte = 0;
    EXPECT_EQ(calls_.File_read_at_all(file, 10 * world->rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(length(), 10 * world->ranks);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, TheEndIsWhereTheProgramPutIt) {
    MPI_File file = waiting();
    EXPECT_EQ(calls_.File_seek(file, -1, MPI_SEEK_END), MPI_SUCCESS);
    MPI_Offset position = -1;
    calls_.File_get_position(file, &position);
    EXPECT_EQ(position, 999);
    close_and_expect(file, 1000);
    file = waiting();
    EXPECT_EQ(calls_.File_seek_shared(file, 0, MPI_SEEK_END), MPI_SUCCESS);
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, PreallocationComesAfterIt) {
    MPI_File file = waiting();
    EXPECT_EQ(calls_.File_preallocate(file, 500), MPI_SUCCESS);
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, WhatIsWrittenBehindIsNotCutOffByARankThatIsLate) {
    MPI_File file = open(world->engine, path_);
    EXPECT_EQ(calls_.File_preallocate(file, 500), MPI_SUCCESS);
    const std::string text(10, static_cast<char>('a' + world->rank));
    const MPI_Offset place = 500 + 10 * world->rank;
    EXPECT_EQ(calls_.File_write_at(file, place, text.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(length(), 500 + 10 * world->ranks);
    std::string back(10, '?');
    const int fd = ::open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(::pread(fd, back.data(), 10, place), 10);
    ::close(fd);
    EXPECT_EQ(back, text);
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    remove(path_);
}

TEST_F(SizesTest, AtomicModeEndsTheWaitAndHasNone) {
    MPI_File file = waiting();
    EXPECT_EQ(calls_.File_set_atomicity(file, 1), MPI_SUCCESS);
    EXPECT_EQ(length(), 1000);
    EXPECT_EQ(calls_.File_set_size(file, 2000), MPI_SUCCESS);
    EXPECT_EQ(length(), 2000);
    close_and_expect(file, 2000);
}

TEST_F(SizesTest, CallsOfTheLibraryFindIt) {
    MPI_File file = waiting();
    std::string back(4, '?');
    MPI_Status status;
    EXPECT_EQ(calls_.File_read_ordered(file, back.data(), 4, MPI_BYTE, &status), MPI_SUCCESS);
    int moved = -1;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, 4);
    EXPECT_EQ(back, std::string(4, '\0'));
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, AnotherOpenFindsIt) {
    MPI_File file = waiting();
    if (world->rank == world->ranks - 1) {
        MPI_File second = open(world->engine, path_, MPI_MODE_RDONLY, MPI_COMM_SELF);
        MPI_Offset size = -1;
        EXPECT_EQ(PMPI_File_get_size(second, &size), MPI_SUCCESS);
        EXPECT_EQ(size, 1000);
        calls_.File_close(&second);
    }
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, HandlesOfOneFileShareIt) {
    MPI_File other = open(world->engine, path_);
    MPI_File file = waiting();
    EXPECT_EQ(answered(other), 1000);
    EXPECT_EQ(calls_.File_close(&other), MPI_SUCCESS);
    EXPECT_EQ(answered(file), 1000);
    close_and_expect(file, 1000);

    other = open(world->engine, path_);
    file = waiting();
    EXPECT_EQ(calls_.File_set_size(other, 30), MPI_SUCCESS);
    EXPECT_EQ(length(), 30);
    EXPECT_EQ(answered(file), 30);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(length(), 30);
    close_and_expect(other, 30);

    other = open(world->engine, path_);
    file = waiting();
    EXPECT_EQ(calls_.File_set_size(other, 4000), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(answered(other), 4000);
    close_and_expect(other, 4000);
}

TEST_F(SizesTest, AFileThatGoesAwayIsNoError) {
    MPI_File file = open(world->engine, path_, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    EXPECT_EQ(calls_.File_set_size(file, 1000), MPI_SUCCESS);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(length(), -1);
}

TEST_F(SizesTest, ThePlanCanAskForNoWait) {
    path_ = world->path("size.now");
    MPI_File file = open(world->engine, path_);
    EXPECT_EQ(calls_.File_set_size(file, 1000), MPI_SUCCESS);
    EXPECT_EQ(length(), 1000);
    close_and_expect(file, 1000);
}

TEST_F(SizesTest, AnErrorOfGrowingIsToldToEveryRankAtClose) {
    MPI_File file = waiting();
    world->backend.arm({FaultKind::error, 1, EIO});
    int error_class = 0;
    MPI_Error_class(calls_.File_close(&file), &error_class);
    EXPECT_EQ(error_class, MPI_ERR_IO);
    EXPECT_EQ(length(), 0);
    remove(path_);
}

TEST_F(SizesTest, WhatCouldNotBeGrownAtCloseIsNotGrownLater) {
    MPI_File file = waiting();
    world->backend.arm({FaultKind::error, 1, EIO});
    EXPECT_NE(calls_.File_close(&file), MPI_SUCCESS);
    world->backend.arm({});
    if (world->rank == 0) {
        EXPECT_EQ(::truncate(path_.c_str(), 10), 0) << "as somebody else writes it anew";
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    const std::string other_path = world->path("other.engine");
    MPI_File other = open(world->engine, other_path);
    EXPECT_EQ(calls_.File_close(&other), MPI_SUCCESS);
    EXPECT_EQ(length(), 10);
    remove(other_path);
    remove(path_);
}

TEST_F(SizesTest, ADiskWithoutSpaceForTheLastBlockIsNoError) {
    MPI_File file = waiting();
    world->backend.arm({FaultKind::error, 1, ENOSPC});
    close_and_expect(file, 1000);
}

}  // namespace
}  // namespace ioweir
