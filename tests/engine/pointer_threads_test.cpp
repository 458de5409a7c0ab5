// Several threads of a rank make calls by one handle's individual pointer: each call has a place of its own, as in the MPI libraries, whichever way
// through the engine it takes. Runs under mpiexec with one rank, and starts MPI by itself.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

constexpr const char* plan_text = R"(
[[file]]
match = "*.pieces"
writers = "everyone"

[[file]]
match = "*.behind"
writers = "behind:1"

[[file]]
match = "*.log"
mapping = "log"
visibility = "sync"
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text, false);

constexpr int threads = 4, calls = 150;
constexpr int bytes = 4;  // a number

/// Of all threads' numbers, in the order of the file.
std::vector<int> numbers_in(const std::string& path, MPI_Datatype view) {
    std::vector<int> numbers(threads * calls, -1);
    MPI_File file = MPI_FILE_NULL;
    char native[] = "native";
    EXPECT_EQ(world->engine.open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_SUCCESS);
    world->engine.set_view(file, 0, MPI_BYTE, view, native, MPI_INFO_NULL);
    MPI_Status status;
    EXPECT_EQ(world->engine.read_at(file, 0, numbers.data(), bytes * threads * calls, MPI_BYTE, &status), MPI_SUCCESS);
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, bytes * threads * calls);
    world->engine.close(&file);
    return numbers;
}

class PointerThreadsTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        int level = MPI_THREAD_SINGLE;
        MPI_Query_thread(&level);
        if (level != MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI library has no MPI_THREAD_MULTIPLE";
        // Two bytes, and two that are nobody's.
        MPI_Type_vector(2, 2, 4, MPI_BYTE, &pieces_);
        MPI_Datatype vector = pieces_;
        MPI_Type_create_resized(vector, 0, 8, &pieces_);
        MPI_Type_commit(&pieces_);
        MPI_Type_free(&vector);
    }
    void TearDown() override {
        if (pieces_ != MPI_DATATYPE_NULL) MPI_Type_free(&pieces_);
    }

    MPI_Datatype pieces_ = MPI_DATATYPE_NULL;
};

TEST_F(PointerThreadsTest, HaveAPlaceOfTheirOwnForEachCall) {
    for (const char* ending : {"pieces", "behind", "log"}) {
        for (const MPI_Datatype view : {MPI_BYTE, pieces_}) {
            SCOPED_TRACE(std::string(ending) + (view == MPI_BYTE ? "" : ", in pieces"));
            const std::string path = world->path((std::string("file.") + ending).c_str());
            MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
            native_view(world->engine, file, 0, MPI_BYTE, view);
            // Long enough for the others' calls to begin meanwhile.
            world->backend.slow_down("file.", 50'000);
            std::vector<std::thread> writers;
            for (int thread = 0; thread < threads; ++thread) {
                writers.emplace_back([&, thread] {
                    for (int call = 0; call < calls; ++call) {
                        const int number = thread * calls + call;
                        EXPECT_EQ(world->engine.write(file, &number, bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
                    }
                });
            }
            for (std::thread& writer : writers) writer.join();
            world->backend.slow_down("", 0);
            MPI_Offset position = -1;
            EXPECT_EQ(world->engine.get_position(file, &position), MPI_SUCCESS);
            EXPECT_EQ(position, bytes * threads * calls);
            world->engine.close(&file);
            std::vector<int> found = numbers_in(path, view), expected;
            for (int number = 0; number < threads * calls; ++number) expected.push_back(number);
            std::sort(found.begin(), found.end());
            EXPECT_EQ(found, expected);
            EXPECT_EQ(world->hooks.File_delete(path.c_str(), MPI_INFO_NULL), MPI_SUCCESS);
        }
    }
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0) << "all of it is the engine's";
}

TEST_F(PointerThreadsTest, MoveItOnByWhatEachSays) {
    const std::string path = world->path("file.pieces");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    std::vector<std::thread> movers;
    for (int thread = 0; thread < threads; ++thread) {
        movers.emplace_back([&] {
            for (int call = 0; call < 1000; ++call) EXPECT_EQ(world->engine.seek(file, 1, MPI_SEEK_CUR), MPI_SUCCESS);
        });
    }
    for (std::thread& mover : movers) mover.join();
    MPI_Offset position = -1;
    EXPECT_EQ(world->engine.get_position(file, &position), MPI_SUCCESS);
    EXPECT_EQ(position, 1000 * threads);
    world->engine.close(&file);
    remove(path);
}

}  // namespace
}  // namespace ioweir

int main(int argc, char** argv) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    testing::InitGoogleTest(&argc, argv);
    const int failed = RUN_ALL_TESTS();
    MPI_Finalize();
    return failed;
}
