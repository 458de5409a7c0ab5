// Failures of ranks, told to all of them. Run under mpiexec, with 1 and 3 ranks.
#include "partition/agreement.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../mpi_cases/ranks.hpp"
#include "base/testing.hpp"
#include "ioweir/ioweir.h"
#include "partition/write_set.hpp"

namespace ioweir::partition {
namespace {

using cases::Ranks;

/// As MPICH describes errors: on several lines.
Failure failure_of(int rank) {
    return {10 + rank,
            {"a set cannot be read", "set." + std::to_string(rank) + ": Other I/O error, error stack:\nopen(1): no",
             rank % 2 == 0 ? "" : "make room"}};
}

void expect_same(const Error& one, const Error& other) {
    EXPECT_EQ(one.what, other.what);
    EXPECT_EQ(one.value, other.value);
    EXPECT_EQ(one.remedy, other.remedy);
}

TEST(Agreement, MessagesKeepTextsOfSeveralLines) {
    for (int rank = 0; rank < 2; ++rank)
        expect_same(parse_message(to_message(failure_of(rank).error)), failure_of(rank).error);
    expect_same(parse_message(to_message({})), {});
    expect_same(parse_message(""), {});
    expect_same(parse_message("cut o"), {"cut o", "", ""});
}

TEST(Agreement, NothingWhereNobodyFails) { EXPECT_FALSE(agree(MPI_COMM_WORLD, std::nullopt)); }

TEST(Agreement, TellsTheLowestRanksFailureToThoseThatHaveNone) {
    const Ranks ranks;
    for (int first = 0; first < ranks.all; ++first) {
        const bool fails = ranks.mine == first || ranks.mine > first + 1;
        const auto told = agree(MPI_COMM_WORLD, fails ? std::optional(failure_of(ranks.mine)) : std::nullopt);
        ASSERT_TRUE(told);
        Failure expected = failure_of(fails ? ranks.mine : first);
        if (!fails) expected.error.what = "rank " + std::to_string(first) + ": " + expected.error.what;
        EXPECT_EQ(told->code, expected.code);
        expect_same(told->error, expected.error);
    }
}

/// Blocks would lie over one another, or ranks would wait for each other.
TEST(Agreement, ASetIsNotWrittenInDifferentWays) {
    const Ranks ranks;
    if (ranks.all == 1) GTEST_SKIP() << "one rank is of one mind";
    const TemporaryFolder folder;
    for (const auto& [key, value] : {std::pair{"ioweir_block", "4096"},
                                     {"ioweir_layout", "unaligned"},
                                     {"ioweir_write", "split"},
                                     {"ioweir_directories", "false"},
                                     {"ioweir_replace", "true"},
                                     {"ioweir_durable", "false"}}) {
        MPI_Info info = MPI_INFO_NULL;
        if (ranks.mine == 1) {
            MPI_Info_create(&info);
            MPI_Info_set(info, key, value);
        }
        std::unique_ptr<WriteSet> set;
        const auto failure = WriteSet::create(MPI_COMM_WORLD, {folder.file("set"), 1, 1, 0, {"field"}}, info, set);
        ASSERT_TRUE(failure) << key;
        EXPECT_EQ(failure->code, IOWEIR_ERR_ARGUMENT);
        EXPECT_FALSE(set);
        if (info != MPI_INFO_NULL) MPI_Info_free(&info);
    }
}

/// Blocks would be found under other fields' names, or ranks would wait for each other.
TEST(Agreement, RanksDoNotWriteDifferentSetsTogether) {
    const Ranks ranks;
    if (ranks.all == 1) GTEST_SKIP() << "one rank is of one mind";
    const TemporaryFolder folder;
    const std::vector<std::string> fields{"p", "u"};
    for (const Wanted& other : {Wanted{"", 2, 1, 1, fields}, Wanted{"", 1, 1, ranks.all, fields},
                                Wanted{"", 1, 1, 1, {"u", "p"}}, Wanted{"", 1, 1, 1, {"p", "u", "v"}}}) {
        Wanted wanted = ranks.mine == 1 ? other : Wanted{"", 1, 1, 1, fields};
        wanted.base = folder.file("set");  // where it lies, each rank says by itself
        std::unique_ptr<WriteSet> set;
        const auto failure = WriteSet::create(MPI_COMM_WORLD, wanted, MPI_INFO_NULL, set);
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->code, IOWEIR_ERR_ARGUMENT);
        EXPECT_FALSE(set);
    }
}

}  // namespace
}  // namespace ioweir::partition
