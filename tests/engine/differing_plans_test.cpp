// Ranks that do not have the same plan, environment or arguments, or not the same knowledge of a loop's files: they go one way all the same, and each
// byte arrives.
// Jobs that have met read their plans each for itself, and one file may lie on what ranks see as different file systems.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/choice/alternatives.hpp"
#include "engine_world.hpp"
#include "mapped_world.hpp"

namespace ioweir {
namespace {

constexpr const char* plan = R"(
[[file]]
match = "*.shown"
mapping = "log"
visibility = "sync"

[[file]]
match = "*.loop"
choose = "auto"

[[file]]
match = "*.verified"
writers = "everyone"

[[file]]
match = "*.behind"
writers = "behind:1"

[[file]]
match = "*.dealt"
mapping = "subfiles:2"

[[file]]
match = "*.gathered"
writers = "aggregators:1"
)";

/// The library takes so long that there is something to choose.
mpi::FileCalls real;
int write_slowly(MPI_File file, MPI_Offset offset, const void* data, int count, MPI_Datatype datatype,
                 MPI_Status* status) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    return real.File_write_at_all(file, offset, data, count, datatype, status);
}

void make_slower(mpi::FileCalls& below) {
    real = below;
    below.File_write_at_all = write_slowly;
}

constexpr int loop_mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;

/// By what it knows, each rank would try other writers first.
void change(policy::PlanFile& given) {
    if (world->rank == 0) given.files[0].visibility = policy::Visibility::call;
    struct statfs info{};
    EXPECT_EQ(::statfs(world->directory.c_str(), &info), 0);
    const std::string digest =
        engine::digest_of("file#.loop", loop_mode, world->ranks, static_cast<std::int64_t>(info.f_type));
    given.files[1].known = {digest + (world->rank % 2 == 0 ? " everyone 0.5" : " aggregators:auto 0.5")};
}

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan, WorldOptions{.only_first_verifies = true, .change_library = make_slower, .change_plan = change});

using DifferingPlansTest = MappedTest;

TEST_F(DifferingPlansTest, LeaveAFileToTheLibrary) {
    const std::string path = world->path("file.shown");
    MPI_File file = open(world->engine, path);
    write_ten(file);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    std::string all(ten_each().size(), '?');
    EXPECT_EQ(calls_.File_read_at_all(file, 0, all.data(), static_cast<int>(all.size()), MPI_BYTE, MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_EQ(all, ten_each());
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_FALSE(is_container(path));
    remove(path);
}

/// Made by ranks that agree, which each is with itself.
TEST_F(DifferingPlansTest, DoNotKeepRanksFromAContainer) {
    const std::string path = world->path("file.shown");
    if (world->rank == 0) {
        MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_COMM_SELF);
        EXPECT_EQ(calls_.File_write_at(file, 0, ten_each().data(), static_cast<int>(ten_each().size()), MPI_BYTE,
                                       MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_TRUE(is_container(path));
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(read_file(path), ten_each());
    remove_container(path);
}

TEST_F(DifferingPlansTest, CompareNothingWhereNotAllVerify) {
    const std::string path = world->path("file.verified");
    MPI_File file = open(world->engine, path);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    if (world->rank == 0) {
        EXPECT_EQ(world->found(format::VerifyOutcome::unreadable, "not all ranks"), 10);
    }
    const std::vector<unsigned char> found = contents(path);
    EXPECT_EQ(std::string(found.begin(), found.end()), ten_each());
    remove(path);
}

/// MPICH lets no rank open such a file; Open MPI goes by each rank's own mode.
TEST_F(DifferingPlansTest, LeaveFilesOfDifferentAccessModesToTheLibrary) {
    constexpr int write = MPI_MODE_CREATE | MPI_MODE_WRONLY;
    const struct {
        const char* name;
        int of_first, of_others;
        bool differ;
    } all[] = {{"file.behind", MPI_MODE_WRONLY, MPI_MODE_RDONLY, true},
               {"file.dealt", write | MPI_MODE_DELETE_ON_CLOSE, write, true},
               {"file.verified", write, MPI_MODE_WRONLY, false}};  // who makes it does not matter
    for (const auto& one : all) {
        SCOPED_TRACE(one.name);
        const std::string path = world->path(one.name);
        if (world->rank == 0) ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_File file = MPI_FILE_NULL;
        const int code = world->engine.open(MPI_COMM_WORLD, path.c_str(),
                                            world->rank == 0 ? one.of_first : one.of_others, MPI_INFO_NULL, &file);
        if (on_any_rank(code != MPI_SUCCESS)) {
            EXPECT_NE(code, MPI_SUCCESS) << "as in MPICH: no rank has it";
            remove(path);
            continue;
        }
        const std::string data(10, 'x');
        if (world->rank == 0) {
            EXPECT_EQ(calls_.File_write_at(file, 0, data.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        world->notes.clear();
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(world->noted(format::NoteCode::passed_through, "different access modes"), one.differ);
        if ((one.of_first & MPI_MODE_DELETE_ON_CLOSE) == 0) {
            EXPECT_EQ(contents(path), std::vector<unsigned char>(10, 'x'));
        }
        remove(path);
    }
}

/// Libraries tell some ranks of it and not others.
TEST_F(DifferingPlansTest, GoOneWayAfterDifferentFlagsOfAtomicMode) {
    const std::string path = world->path("file.gathered");
    MPI_File file = open(world->engine, path);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    (void)calls_.File_set_atomicity(file, world->rank == 0 ? 1 : 0);
    write_ten(file);
    EXPECT_EQ(calls_.File_set_atomicity(file, 0), MPI_SUCCESS);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    const std::vector<unsigned char> found = contents(path);
    EXPECT_EQ(std::string(found.begin(), found.end()), ten_each());
    EXPECT_EQ(world->did(&Did::exchanges), 1) << "the second time";
    remove(path);
}

TEST_F(DifferingPlansTest, TryNothingInALoopOfWhichRanksKnowDifferentThings) {
    for (int number = 0; number < 6; ++number) {
        const std::string path = world->path(("file" + std::to_string(number) + ".loop").c_str());
        MPI_File file = open(world->engine, path, loop_mode);
        write_ten(file);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        const std::vector<unsigned char> found = contents(path);
        EXPECT_EQ(std::string(found.begin(), found.end()), ten_each());
        remove(path);
    }
    if (world->rank == 0) {
        EXPECT_EQ(world->count(format::NoteCode::plan_applied), 0);
    }
}

}  // namespace
}  // namespace ioweir
