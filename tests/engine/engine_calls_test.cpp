// Split collectives and non-blocking calls through the engine: the same bytes, statuses and pointers as blocking calls, no rank
// that waits for another after a call has begun, and each error where it belongs. Runs under mpiexec with any number of ranks.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using cases::CaseResult;
using cases::IoCalls;
using cases::Level;
using storage::FaultKind;

constexpr const char* plan_text = R"(
[[file]]
match = "*.engine"

[[file]]
match = "*.left"
writers = "delegates:1/2"
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

int bytes_of(const MPI_Status& status) {
    int bytes = -1;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    return bytes;
}

/// Blocking calls made of begin and end.
IoCalls split_calls() {
    IoCalls io = world->engine;
    io.read_all = [](MPI_File fh, void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        const int code = world->hooks.File_read_all_begin(fh, memory, count, type);
        return code != MPI_SUCCESS ? code : world->hooks.File_read_all_end(fh, memory, status);
    };
    io.write_all = [](MPI_File fh, const void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        const int code = world->hooks.File_write_all_begin(fh, memory, count, type);
        return code != MPI_SUCCESS ? code : world->hooks.File_write_all_end(fh, memory, status);
    };
    io.read_at_all = [](MPI_File fh, MPI_Offset offset, void* memory, int count, MPI_Datatype type,
                        MPI_Status* status) {
        const int code = world->hooks.File_read_at_all_begin(fh, offset, memory, count, type);
        return code != MPI_SUCCESS ? code : world->hooks.File_read_at_all_end(fh, memory, status);
    };
    io.write_at_all = [](MPI_File fh, MPI_Offset offset, const void* memory, int count, MPI_Datatype type,
                         MPI_Status* status) {
        const int code = world->hooks.File_write_at_all_begin(fh, offset, memory, count, type);
        return code != MPI_SUCCESS ? code : world->hooks.File_write_at_all_end(fh, memory, status);
    };
    return io;
}

/// By another call each time.
int complete(int code, MPI_Request request, MPI_Status* status) {
    if (code != MPI_SUCCESS) return code;
    static int turn = 0;
    int flag = 0, index = -1, count = 0;
    switch (++turn % 6) {
        case 0:
            return MPI_Wait(&request, status);
        case 1:
            code = MPI_Test(&request, &flag, status);
            EXPECT_NE(flag, 0) << "it is complete from the start";
            return code;
        case 2:
            code = MPI_Waitall(1, &request, status);
            return code;
        case 3:
            code = MPI_Waitany(1, &request, &index, status);
            EXPECT_EQ(index, 0);
            return code;
        case 4:
            code = MPI_Testsome(1, &request, &count, &index, status);
            EXPECT_EQ(count, 1);
            return code;
        default:
            EXPECT_EQ(MPI_Request_get_status(request, &flag, status), MPI_SUCCESS);
            EXPECT_NE(flag, 0);
            return MPI_Request_free(&request);
    }
}

/// Blocking calls made of non-blocking ones.
IoCalls nonblocking_calls() {
    IoCalls io = world->engine;
    io.read = [](MPI_File fh, void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iread(fh, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.read_all = [](MPI_File fh, void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iread_all(fh, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.write = [](MPI_File fh, const void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iwrite(fh, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.write_all = [](MPI_File fh, const void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iwrite_all(fh, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.read_at = [](MPI_File fh, MPI_Offset offset, void* memory, int count, MPI_Datatype type, MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iread_at(fh, offset, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.read_at_all = [](MPI_File fh, MPI_Offset offset, void* memory, int count, MPI_Datatype type,
                        MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iread_at_all(fh, offset, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.write_at = [](MPI_File fh, MPI_Offset offset, const void* memory, int count, MPI_Datatype type,
                     MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iwrite_at(fh, offset, memory, count, type, &request);
        return complete(code, request, status);
    };
    io.write_at_all = [](MPI_File fh, MPI_Offset offset, const void* memory, int count, MPI_Datatype type,
                         MPI_Status* status) {
        MPI_Request request = MPI_REQUEST_NULL;
        const int code = world->hooks.File_iwrite_at_all(fh, offset, memory, count, type, &request);
        return complete(code, request, status);
    };
    return io;
}

/// The oracle of the cases knows every byte, status and pointer.
void expect_right_in_random_cases(const IoCalls& io, std::uint64_t seed) {
    std::int64_t bytes = 0;
    for (std::uint64_t i = 0; i < world->cases / 2; ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        const CaseResult result = cases::run_case(io, Level::wild, seed, i, MPI_COMM_WORLD, world->path("case.engine"));
        EXPECT_EQ(all_problems(result), "");
        bytes += result.data_bytes;
        int failed = testing::Test::HasFailure() ? 1 : 0;
        PMPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (failed != 0) return;
    }
    EXPECT_GT(bytes, 500) << "cases that move nothing prove nothing";
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 0) << "all of these are the engine's";
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
}

class CallsTest : public EngineTest {
protected:
    static std::string whole_file(const std::string& path) {
        const std::vector<unsigned char> bytes = contents(path);
        return {bytes.begin(), bytes.end()};
    }
    /// A letter a rank, `each` times.
    static std::string letters(std::size_t each) {
        std::string text;
        for (int r = 0; r < world->ranks; ++r) text += std::string(each, static_cast<char>('a' + r));
        return text;
    }
    static char mine() { return static_cast<char>('a' + world->rank); }
};

TEST_F(CallsTest, SplitCollectivesDoWhatBlockingOnesDo) { expect_right_in_random_cases(split_calls(), 11); }

TEST_F(CallsTest, NonBlockingCallsDoWhatBlockingOnesDo) { expect_right_in_random_cases(nonblocking_calls(), 12); }

TEST_F(CallsTest, ASplitCollectiveIsDoneWhenBeginReturns) {
    const std::string path = world->path("begun.engine");
    MPI_File file = open(world->engine, path);
    std::string memory(10, mine());
    EXPECT_EQ(world->hooks.File_write_at_all_begin(file, 10 * world->rank, memory.data(), 10, MPI_BYTE), MPI_SUCCESS);
    memory.assign(10, '?');  // no more asked for
    EXPECT_EQ(whole_file(path), letters(10));
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Status status;
    status.MPI_ERROR = 77;
    EXPECT_EQ(world->hooks.File_write_at_all_end(file, memory.data(), &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), 10);
    EXPECT_EQ(status.MPI_ERROR, 77) << "not a field of calls that complete one operation";
    EXPECT_EQ(world->hooks.File_write_all_begin(file, memory.data(), 3, MPI_BYTE), MPI_SUCCESS);
    EXPECT_EQ(world->hooks.File_write_all_end(file, memory.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
    world->engine.close(&file);
    remove(path);
}

TEST_F(CallsTest, OneSplitCollectiveAtATimeAndItsOwnEnd) {
    const std::string path = world->path("order.engine");
    MPI_File file = open(world->engine, path);
    char byte = mine();
    EXPECT_EQ(class_of(world->hooks.File_write_all_end(file, &byte, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    EXPECT_EQ(world->hooks.File_write_at_all_begin(file, world->rank, &byte, 1, MPI_BYTE), MPI_SUCCESS);
    EXPECT_EQ(class_of(world->hooks.File_read_all_begin(file, &byte, 1, MPI_BYTE)), MPI_ERR_REQUEST);
    EXPECT_EQ(class_of(world->hooks.File_write_all_end(file, &byte, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    EXPECT_EQ(class_of(world->hooks.File_read_at_all_end(file, &byte, MPI_STATUS_IGNORE)), MPI_ERR_REQUEST);
    MPI_Status status;
    EXPECT_EQ(world->hooks.File_write_at_all_end(file, &byte, &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), 1);
    EXPECT_EQ(class_of(world->hooks.File_write_at_all_end(file, &byte, &status)), MPI_ERR_REQUEST);
    world->engine.close(&file);
    EXPECT_EQ(whole_file(path), letters(1));
    remove(path);
}

TEST_F(CallsTest, SplitCollectivesOfTheLibraryEndThere) {
    for (const char* name : {"split.left", "atomic.engine"}) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        world->hooks.File_set_atomicity(file, name[0] == 'a' ? 1 : 0);
        const std::string memory(5, mine());
        EXPECT_EQ(world->hooks.File_write_at_all_begin(file, 5 * world->rank, memory.data(), 5, MPI_BYTE), MPI_SUCCESS);
        MPI_Status status;
        EXPECT_EQ(world->hooks.File_write_at_all_end(file, memory.data(), &status), MPI_SUCCESS);
        EXPECT_EQ(bytes_of(status), 5);
        world->hooks.File_set_atomicity(file, 0);
        std::string back(5, '?');
        EXPECT_EQ(world->hooks.File_read_at_all_begin(file, 5 * world->rank, back.data(), 5, MPI_BYTE), MPI_SUCCESS);
        EXPECT_EQ(world->hooks.File_read_at_all_end(file, back.data(), &status), MPI_SUCCESS);
        EXPECT_EQ(back, memory);
        world->engine.close(&file);
        EXPECT_EQ(whole_file(path), letters(5));
        EXPECT_GT(world->count(format::NoteCode::passed_through), 0);
        remove(path);
    }
}

TEST_F(CallsTest, FaultyArgumentsBeginNoSplitCollective) {
    const std::string path = world->path("faulty.engine");
    MPI_File file = open(world->engine, path);
    char byte = mine();
    const int count = world->rank == 0 ? -1 : 1;  // one rank's mistake: the others must not wait for it
    const int code = world->hooks.File_write_at_all_begin(file, world->rank, &byte, count, MPI_BYTE);
    EXPECT_EQ(code == MPI_SUCCESS, world->rank != 0);
    if (world->rank != 0) {
        EXPECT_EQ(world->hooks.File_write_at_all_end(file, &byte, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    EXPECT_EQ(world->hooks.File_write_at_all_begin(file, world->rank, &byte, 1, MPI_BYTE), MPI_SUCCESS);
    EXPECT_EQ(world->hooks.File_write_at_all_end(file, &byte, MPI_STATUS_IGNORE), MPI_SUCCESS);
    world->engine.close(&file);
    EXPECT_EQ(whole_file(path), letters(1));
    remove(path);
}

int handler_calls = 0, called_with = 0;
void remember_class(MPI_File*, int* code, ...) {
    ++handler_calls;
    called_with = class_of(*code);
}

void watch_errors(MPI_File file) {
    MPI_Errhandler handler;
    MPI_File_create_errhandler(remember_class, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_Errhandler_free(&handler);
    handler_calls = called_with = 0;
}

TEST_F(CallsTest, AStorageErrorOfASplitCollectiveComesAtItsEnd) {
    const std::string path = world->path("error.engine");
    MPI_File file = open(world->engine, path);
    watch_errors(file);
    const std::string memory(10, mine());
    const bool faulty = world->rank == world->ranks - 1;
    if (faulty) world->backend.arm({FaultKind::error, 1, ENOSPC});
    EXPECT_EQ(world->hooks.File_write_at_all_begin(file, 10 * world->rank, memory.data(), 10, MPI_BYTE), MPI_SUCCESS);
    EXPECT_EQ(handler_calls, 0);
    MPI_Status status;
    const int code = world->hooks.File_write_at_all_end(file, memory.data(), &status);
    EXPECT_EQ(class_of(code), faulty ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), faulty ? 0 : 10);
    EXPECT_EQ(handler_calls, faulty ? 1 : 0);
    EXPECT_EQ(called_with, faulty ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
    world->engine.close(&file);
    remove(path);
}

TEST_F(CallsTest, AStorageErrorOfANonBlockingCallComesAtOnceAndItsRequestIsComplete) {
    const std::string path = world->path("error.engine");
    MPI_File file = open(world->engine, path);
    watch_errors(file);
    MPI_Datatype pieces;
    MPI_Type_vector(4, 10, 20, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    native_view(world->engine, file, 80 * world->rank, MPI_BYTE, pieces);
    const std::string memory(40, mine());
    const bool faulty = world->rank == world->ranks - 1;
    if (faulty) world->backend.arm({FaultKind::error, 3, EIO});
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = world->hooks.File_iwrite_at_all(file, 0, memory.data(), 40, MPI_BYTE, &request);
    EXPECT_EQ(class_of(code), faulty ? MPI_ERR_IO : MPI_SUCCESS);
    EXPECT_EQ(handler_calls, faulty ? 1 : 0);
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), faulty ? 20 : 40);
    MPI_Type_free(&pieces);
    world->engine.close(&file);
    remove(path);
}

TEST_F(CallsTest, ANonBlockingCollectiveNeedsNoOtherRank) {
    const std::string path = world->path("alone.engine");
    MPI_File file = open(world->engine, path);
    const std::string memory(7, mine());
    for (int turn = 0; turn < world->ranks; ++turn) {
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank != turn) continue;  // the others are in the barrier
        MPI_Request request = MPI_REQUEST_NULL;
        EXPECT_EQ(world->hooks.File_iwrite_at_all(file, 7 * turn, memory.data(), 7, MPI_BYTE, &request), MPI_SUCCESS);
        EXPECT_NE(request, MPI_REQUEST_NULL);
        EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        EXPECT_EQ(request, MPI_REQUEST_NULL);
    }
    world->engine.close(&file);
    EXPECT_EQ(whole_file(path), letters(7));
    remove(path);
}

TEST_F(CallsTest, ManyRequestsAreCompletedInAnyOrder) {
    const std::string path = world->path("many.engine");
    MPI_File file = open(world->engine, path);
    constexpr int count = 300;
    std::array<MPI_Request, count> requests;
    std::array<MPI_Status, count> statuses;
    std::vector<int> data(count * count, world->rank);
    native_view(world->engine, file, 4 * count * count * world->rank, MPI_INT, MPI_INT);
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(world->hooks.File_iwrite(file, data.data(), i, MPI_INT, &requests[static_cast<std::size_t>(i)]),
                  MPI_SUCCESS);
    }
    MPI_Offset position = 0;
    world->hooks.File_get_position(file, &position);
    EXPECT_EQ(position, count * (count - 1) / 2) << "it moves when a call is made, not when it is completed";
    EXPECT_EQ(MPI_Waitall(count / 2, requests.data() + count / 2, statuses.data() + count / 2), MPI_SUCCESS);
    for (int i = count / 2 - 1; i >= 0; --i) {
        EXPECT_EQ(MPI_Wait(&requests[static_cast<std::size_t>(i)], &statuses[static_cast<std::size_t>(i)]),
                  MPI_SUCCESS);
    }
    for (int i = 0; i < count; ++i) EXPECT_EQ(bytes_of(statuses[static_cast<std::size_t>(i)]), 4 * i);
    world->engine.close(&file);
    remove(path);
}

TEST_F(CallsTest, CompleteRequestsCannotBeCancelledAndMayBeFreed) {
    const std::string path = world->path("cancel.engine");
    MPI_File file = open(world->engine, path);
    const std::string memory(4, mine());
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(world->hooks.File_iwrite_at(file, 4 * world->rank, memory.data(), 4, MPI_BYTE, &request), MPI_SUCCESS);
    EXPECT_EQ(MPI_Cancel(&request), MPI_SUCCESS);
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    int cancelled = 1;
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT_EQ(cancelled, 0);
    EXPECT_EQ(bytes_of(status), 4);
    std::string back(4, '?');
    EXPECT_EQ(world->hooks.File_iread_at(file, 4 * world->rank, back.data(), 4, MPI_BYTE, &request), MPI_SUCCESS);
    EXPECT_EQ(MPI_Request_free(&request), MPI_SUCCESS);
    EXPECT_EQ(back, memory);
    EXPECT_EQ(world->hooks.File_iread_at(file, 4 * world->ranks + 100, back.data(), 4, MPI_BYTE, &request),
              MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), 0) << "beyond the end of the file";
    world->engine.close(&file);
    remove(path);
}

TEST_F(CallsTest, NonBlockingCallsOfFilesThatAreLeftPassThrough) {
    const std::string path = world->path("other.left");
    MPI_File file = open(world->engine, path);
    const std::string memory(6, mine());
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(world->hooks.File_iwrite_at(file, 6 * world->rank, memory.data(), 6, MPI_BYTE, &request), MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    world->engine.close(&file);
    EXPECT_EQ(whole_file(path), letters(6));
    EXPECT_EQ(world->count(format::NoteCode::passed_through), 1);
    remove(path);
}

#if MPI_VERSION >= 4
TEST_F(CallsTest, LargeCountFormsAreHandled) {
    const std::string path = world->path("large.engine");
    MPI_File file = open(world->engine, path);
    const std::string memory(8, mine());
    std::string back(8, '?');
    const auto& hooks = world->hooks;
    const MPI_Offset offset = 8 * world->rank;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    EXPECT_EQ(hooks.File_write_at_all_begin_c(file, offset, memory.data(), 8, MPI_BYTE), MPI_SUCCESS);
    EXPECT_EQ(hooks.File_write_at_all_end(file, memory.data(), &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), 8);
    EXPECT_EQ(hooks.File_iread_at_all_c(file, offset, back.data(), 8, MPI_BYTE, &request), MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(bytes_of(status), 8);
    EXPECT_EQ(back, memory);
    world->engine.close(&file);
    EXPECT_EQ(world->did(&Did::calls), 2);
    remove(path);
}
#endif

}  // namespace
}  // namespace ioweir
