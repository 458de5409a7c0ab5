// Faults of the storage, on any one rank, at any call: the rank it struck returns the right class at once, every other rank at the
// next sync or close, nothing hangs, and no byte outside of the requests is changed. Runs under mpiexec with any number of ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using storage::Fault;
using storage::FaultKind;

constexpr const char* plan_text = R"(
[[file]]
match = "*.engine"

[[file]]
match = "*.together"
writers = "aggregators:2"
buffer = 64
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

int class_of(int code) {
    int error_class = -1;
    MPI_Error_class(code, &error_class);
    return error_class;
}

/// Each rank writes pieces of `piece_bytes` in turn, with a gap after every round of them that belongs to nobody.
constexpr int piece_bytes = 10, gap_bytes = 7, pieces_a_call = 3, calls = 5;
constexpr int bytes_a_call = piece_bytes * pieces_a_call, bytes_a_rank = bytes_a_call * calls;
constexpr int writes_a_rank = pieces_a_call * calls;

MPI_Offset place_of(int rank, int byte) {
    const MPI_Offset round = piece_bytes * world->ranks + gap_bytes;
    return byte / piece_bytes * round + static_cast<MPI_Offset>(piece_bytes) * rank + byte % piece_bytes;
}

/// Never '.', which stands for bytes that nobody writes.
char value_of(int rank, int byte) { return static_cast<char>('a' + (rank * 7 + byte) % 26); }

int handler_calls = 0;
void count_calls(MPI_File*, int*, ...) { ++handler_calls; }

class FaultTest : public EngineTest {
protected:
    struct Answer {
        int error_class = MPI_SUCCESS;
        int bytes = bytes_a_call;
    };

    void open_file(const char* name = "fault.engine") {
        path_ = world->path(name);
        if (world->rank == 0) {
            const std::string before(static_cast<std::size_t>(place_of(world->ranks, bytes_a_rank) + 50), '.');
            const int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
            ASSERT_EQ(::write(fd, before.data(), before.size()), std::ssize(before));
            ::close(fd);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        file_ = open(world->engine, path_, MPI_MODE_RDWR);
        MPI_Errhandler handler;
        MPI_File_create_errhandler(count_calls, &handler);
        MPI_File_set_errhandler(file_, handler);
        MPI_Errhandler_free(&handler);
        handler_calls = 0;
        MPI_Datatype piece, pieces;
        MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, piece_bytes * world->ranks + gap_bytes, &pieces);
        MPI_Type_commit(&pieces);
        native_view(world->engine, file_, static_cast<MPI_Offset>(piece_bytes) * world->rank, MPI_BYTE, pieces);
        MPI_Type_free(&piece);
        MPI_Type_free(&pieces);
    }

    /// The same data each time, by another function each.
    std::vector<Answer> write_all_calls() {
        std::string data;
        for (int i = 0; i < bytes_a_rank; ++i) data += value_of(world->rank, i);
        const mpi::FileCalls& io = world->hooks;
        std::vector<Answer> answers;
        MPI_Status status;
        const auto answer = [&](int code) {
            Answer one{class_of(code), -1};
            MPI_Get_count(&status, MPI_BYTE, &one.bytes);
            answers.push_back(one);
        };
        const auto part = [&](int call) { return data.data() + call * bytes_a_call; };
        answer(io.File_write_at_all(file_, 0, part(0), bytes_a_call, MPI_BYTE, &status));
        MPI_File_seek(file_, bytes_a_call, MPI_SEEK_SET);
        answer(io.File_write_all(file_, part(1), bytes_a_call, MPI_BYTE, &status));
        MPI_Request request = MPI_REQUEST_NULL;
        const int begun = io.File_iwrite_all(file_, part(2), bytes_a_call, MPI_BYTE, &request);
        EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
        answer(begun);
        EXPECT_EQ(io.File_write_all_begin(file_, part(3), bytes_a_call, MPI_BYTE), MPI_SUCCESS);
        answer(io.File_write_all_end(file_, part(3), &status));
        answer(io.File_write(file_, part(4), bytes_a_call, MPI_BYTE, &status));
        return answers;
    }

    /// `answers` of all ranks, one after the other, on every rank.
    static std::vector<Answer> gathered(const std::vector<Answer>& mine) {
        std::vector<Answer> all(mine.size() * static_cast<std::size_t>(world->ranks));
        const int bytes = static_cast<int>(mine.size() * sizeof(Answer));
        PMPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
        return all;
    }

    /// What a call did not move is as it was; everything else is there, and nothing else is changed.
    void expect_file(const std::vector<Answer>& all) const {
        std::string expected(static_cast<std::size_t>(place_of(world->ranks, bytes_a_rank) + 50), '.');
        for (int r = 0; r < world->ranks; ++r) {
            for (int i = 0; i < bytes_a_rank; ++i) {
                const Answer& answer = all[static_cast<std::size_t>(r * calls + i / bytes_a_call)];
                if (i % bytes_a_call < answer.bytes)
                    expected[static_cast<std::size_t>(place_of(r, i))] = value_of(r, i);
            }
        }
        const std::vector<unsigned char> there = contents(path_);
        EXPECT_EQ(std::string(there.begin(), there.end()), expected);
    }

    /// The bytes of calls that say they moved them are there; those of the others are there or as they were; nothing else changes.
    void expect_nothing_else(const std::vector<Answer>& all) const {
        const std::vector<unsigned char> there = contents(path_);
        std::string expected(static_cast<std::size_t>(place_of(world->ranks, bytes_a_rank) + 50), '.');
        ASSERT_EQ(there.size(), expected.size());
        for (int r = 0; r < world->ranks; ++r) {
            for (int i = 0; i < bytes_a_rank; ++i) {
                const auto at = static_cast<std::size_t>(place_of(r, i));
                const bool failed =
                    all[static_cast<std::size_t>(r * calls + i / bytes_a_call)].error_class != MPI_SUCCESS;
                if (!failed || there[at] != '.') expected[at] = value_of(r, i);
            }
        }
        EXPECT_EQ(std::string(there.begin(), there.end()), expected);
    }

    MPI_File file_ = MPI_FILE_NULL;
    std::string path_;
};

struct Named {
    Fault fault;
    int error_class;
};

TEST_F(FaultTest, EveryRankLearnsOfAnErrorOnce) {
    const Named kinds[] = {{{FaultKind::error, 1, EIO}, MPI_ERR_IO},
                           {{FaultKind::error, 1, ENOSPC}, MPI_ERR_NO_SPACE},
                           {{FaultKind::error, 1, EDQUOT}, MPI_ERR_QUOTA},
                           {{FaultKind::error, 1, EINTR}, MPI_SUCCESS},
                           {{FaultKind::shorten, 1, 0}, MPI_SUCCESS}};
    std::int64_t struck_calls = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        Named one = kinds[i % std::size(kinds)];
        const int victim = static_cast<int>(i / std::size(kinds)) % world->ranks;
        one.fault.nth = 1 + static_cast<std::int64_t>(i * 7 / std::size(kinds)) % writes_a_rank;
        const bool at_close = i % 2 == 1;
        SCOPED_TRACE("case " + std::to_string(i) + ": rank " + std::to_string(victim) + ", write " +
                     std::to_string(one.fault.nth) + ", errno " + std::to_string(one.fault.error));
        const bool faulty = world->rank == victim;
        open_file();
        world->backend.arm(faulty ? one.fault : Fault{});
        const std::vector<Answer> answers = write_all_calls();
        if (faulty) {
            EXPECT_GT(world->backend.struck(), 0);
        }
        world->backend.arm({});
        int failed = 0;
        for (const Answer& answer : answers) {
            if (answer.error_class == MPI_SUCCESS) {
                EXPECT_EQ(answer.bytes, bytes_a_call);
                continue;
            }
            ++failed;
            EXPECT_EQ(answer.error_class, one.error_class);
            EXPECT_EQ(answer.bytes, (one.fault.nth - 1) % pieces_a_call * piece_bytes);
        }
        EXPECT_EQ(failed, faulty && one.error_class != MPI_SUCCESS ? 1 : 0);
        const int news = faulty ? MPI_SUCCESS : one.error_class;
        if (!at_close) {
            EXPECT_EQ(class_of(world->hooks.File_sync(file_)), news);
            EXPECT_EQ(world->hooks.File_sync(file_), MPI_SUCCESS) << "said once";
        }
        EXPECT_EQ(class_of(world->hooks.File_close(&file_)), at_close ? news : MPI_SUCCESS);
        EXPECT_EQ(handler_calls, one.error_class != MPI_SUCCESS ? 1 : 0) << "on every rank, once";
        EXPECT_EQ(file_, MPI_FILE_NULL);
        struck_calls += failed;
        expect_file(gathered(answers));
        remove(path_);
        if (on_any_rank(HasFailure())) return;
    }
    PMPI_Allreduce(MPI_IN_PLACE, &struck_calls, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_GE(struck_calls, static_cast<std::int64_t>(world->cases / std::size(kinds)) * 3) << "or nothing was tested";
    EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
}

TEST_F(FaultTest, WithAggregatorsEveryRankLearnsOfAnErrorOnce) {
    const Named kinds[] = {{{FaultKind::error, 1, ENOSPC}, MPI_ERR_NO_SPACE},
                           {{FaultKind::error, 1, EIO}, MPI_ERR_IO},
                           {{FaultKind::error, 1, EINTR}, MPI_SUCCESS},
                           {{FaultKind::shorten, 1, 0}, MPI_SUCCESS}};
    std::int64_t struck_cases = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        Named one = kinds[i % std::size(kinds)];
        const int victim = static_cast<int>(i / std::size(kinds)) % world->ranks;
        one.fault.nth = 1 + static_cast<std::int64_t>(i * 7 / std::size(kinds)) % writes_a_rank;
        const bool at_close = i % 2 == 1;
        SCOPED_TRACE("case " + std::to_string(i) + ": rank " + std::to_string(victim) + ", write " +
                     std::to_string(one.fault.nth) + ", errno " + std::to_string(one.fault.error));
        open_file("fault.together");
        world->backend.arm(world->rank == victim ? one.fault : Fault{});
        const std::vector<Answer> answers = write_all_calls();
        const bool struck = on_any_rank(world->backend.struck() > 0);
        world->backend.arm({});
        struck_cases += struck ? 1 : 0;
        const int expected = struck ? one.error_class : MPI_SUCCESS;
        int failed = 0;
        for (const Answer& answer : answers) {
            if (answer.error_class == MPI_SUCCESS) {
                EXPECT_EQ(answer.bytes, bytes_a_call);
            } else {
                EXPECT_EQ(answer.error_class, expected);
                ++failed;
            }
        }
        EXPECT_LE(failed, 1);
        if (world->rank == victim) {
            EXPECT_EQ(failed, expected != MPI_SUCCESS ? 1 : 0) << "at once, on the rank that it struck";
        }
        const int news = failed > 0 ? MPI_SUCCESS : expected;
        if (!at_close) {
            EXPECT_EQ(class_of(world->hooks.File_sync(file_)), news);
        }
        EXPECT_EQ(class_of(world->hooks.File_close(&file_)), at_close ? news : MPI_SUCCESS);
        EXPECT_EQ(handler_calls, expected != MPI_SUCCESS ? 1 : 0) << "on every rank, once";
        expect_nothing_else(gathered(answers));
        remove(path_);
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GE(struck_cases, static_cast<std::int64_t>(world->cases / 4)) << "or little was tested";
}

TEST_F(FaultTest, TwoRanksWithDifferentErrorsKeepTheirOwn) {
    if (world->ranks < 3) GTEST_SKIP() << "needs three ranks";
    open_file();
    if (world->rank == 0) world->backend.arm({FaultKind::error, 2, ENOSPC});
    if (world->rank == 1) world->backend.arm({FaultKind::error, 14, EIO});
    const std::vector<Answer> answers = write_all_calls();
    EXPECT_EQ(answers[0].error_class, world->rank == 0 ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
    EXPECT_EQ(answers[4].error_class, world->rank == 1 ? MPI_ERR_IO : MPI_SUCCESS);
    const int code = class_of(world->hooks.File_sync(file_));
    if (world->rank < 2) {
        EXPECT_EQ(code, MPI_SUCCESS) << "told already";
    } else {
        EXPECT_TRUE(code == MPI_ERR_IO || code == MPI_ERR_NO_SPACE) << code;
    }
    EXPECT_EQ(world->hooks.File_close(&file_), MPI_SUCCESS);
    expect_file(gathered(answers));
    remove(path_);
}

TEST_F(FaultTest, AnErrorOfReadingIsToldLikeOneOfWriting) {
    open_file();
    const bool faulty = world->rank == world->ranks - 1;
    char byte = 0;
    if (faulty) world->backend.arm({FaultKind::read_error, 1, EIO});
    EXPECT_EQ(class_of(world->hooks.File_read_at_all(file_, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE)),
              faulty ? MPI_ERR_IO : MPI_SUCCESS);
    EXPECT_EQ(class_of(world->hooks.File_close(&file_)), faulty ? MPI_SUCCESS : MPI_ERR_IO);
    remove(path_);
}

}  // namespace
}  // namespace ioweir
