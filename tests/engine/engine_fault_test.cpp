// Faults of the storage, on any one rank, at any call: the rank it struck returns the right class at once, every other rank at the
// next sync or close, nothing hangs, and no byte outside of the requests is changed. Runs under mpiexec with any number of ranks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "fault_case.hpp"

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

struct Named {
    Fault fault;
    int error_class;
};

/// The engine's, which does not wait. -1: there is none.
int engines_descriptor_of(const std::string& path) {
    int found = -1;
    for (int fd = 3; fd < 256; ++fd) {
        char target[4096];
        const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
        const bool same = length > 0 && std::string(target, static_cast<std::size_t>(length)) == path;
        if (same && (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) found = fd;
    }
    return found;
}

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

/// How often this rank has made the file's bytes durable in one MPI_File_sync: a sync that is interrupted once is counted, and harmless.
std::int64_t syncs_of(MPI_File file) {
    world->backend.arm({FaultKind::sync_error, 1, EINTR});
    EXPECT_EQ(world->hooks.File_sync(file), MPI_SUCCESS);
    const std::int64_t struck = world->backend.struck();
    world->backend.arm({});
    return struck;
}

TEST_F(FaultTest, WhatTheEngineHasWrittenIsDurableAfterASync) {
    for (const char* name : {"durable.engine", "durable.together"}) {
        const bool together = std::string(name) == "durable.together";
        open_file(name);
        EXPECT_EQ(syncs_of(file_), 0) << "nothing is written";
        const std::vector<Answer> answers = write_all_calls();
        const std::int64_t mine = syncs_of(file_);
        std::int64_t all = 0;
        PMPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (together) {
            EXPECT_GE(all, 1) << "by those that write for others";
        } else {
            EXPECT_EQ(mine, 1);
        }
        EXPECT_EQ(syncs_of(file_), 0) << "nothing is new";
        EXPECT_EQ(world->hooks.File_close(&file_), MPI_SUCCESS);
        expect_file(gathered(answers));
        remove(path_);
    }
}

TEST_F(FaultTest, AFailedSyncIsToldOnEveryRank) {
    const Named kinds[] = {{{FaultKind::sync_error, 1, EIO}, MPI_ERR_IO},
                           {{FaultKind::sync_error, 1, ENOSPC}, MPI_ERR_NO_SPACE}};
    for (const Named& one : kinds) {
        open_file();
        const std::vector<Answer> answers = write_all_calls();
        world->backend.arm(world->rank == world->ranks - 1 ? one.fault : Fault{});
        EXPECT_EQ(class_of(world->hooks.File_sync(file_)), one.error_class);
        world->backend.arm({});
        EXPECT_EQ(world->hooks.File_sync(file_), MPI_SUCCESS) << "said once";
        EXPECT_EQ(world->hooks.File_close(&file_), MPI_SUCCESS);
        expect_file(gathered(answers));
        remove(path_);
    }
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

/// A program that closes a descriptor of the engine's, which cannot be had again: the file has another name.
TEST_F(FaultTest, NoRanksBytesGoToAFileThatTookAnAggregatorsDescriptor) {
    for (int victim = 0; victim < world->ranks; ++victim) {
        SCOPED_TRACE("rank " + std::to_string(victim));
        open_file("closed.together");
        const std::string other = path_ + ".other", moved = path_ + ".moved";
        const int number = world->rank == victim ? engines_descriptor_of(path_) : -1;
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) {
            EXPECT_EQ(::rename(path_.c_str(), moved.c_str()), 0);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == victim) {
            EXPECT_GE(number, 0);
            const int own = ::open(other.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
            EXPECT_EQ(::dup2(own, number), number);
            ::close(own);
        }
        std::string data;
        for (int i = 0; i < bytes_a_call; ++i) data += value_of(world->rank, i);
        const int result =
            class_of(world->hooks.File_write_at_all(file_, 0, data.data(), bytes_a_call, MPI_BYTE, MPI_STATUS_IGNORE));
        EXPECT_TRUE(result == MPI_SUCCESS || (result == MPI_ERR_IO && world->rank != victim)) << result;
        const std::vector<unsigned char> there = contents(moved);
        for (int i = 0; i < bytes_a_call && result == MPI_SUCCESS; ++i) {
            const auto at = static_cast<std::size_t>(place_of(world->rank, i));
            EXPECT_TRUE(at < there.size() && static_cast<char>(there[at]) == value_of(world->rank, i)) << i;
        }
        (void)world->hooks.File_close(&file_);
        EXPECT_EQ(file_, MPI_FILE_NULL);
        if (world->rank == victim) {
            EXPECT_EQ(::lseek(number, 0, SEEK_END), 0) << "closed, or written to";
            ::close(number);
            ::unlink(other.c_str());
        }
        remove(moved);
        if (on_any_rank(HasFailure())) return;
    }
}

}  // namespace
}  // namespace ioweir
