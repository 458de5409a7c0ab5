// Failures of ranks, told to all of them. Run under mpiexec, with 1 and 3 ranks.
#include "partition/agreement.hpp"

#include <gtest/gtest.h>

#include <string>

#include "../mpi_cases/ranks.hpp"

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

}  // namespace
}  // namespace ioweir::partition
