// main() of GoogleTest programs that run under mpiexec. Every rank runs the same tests; only rank 0 prints successes,
// every rank prints its failures, and the program fails if any rank's tests did.
#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) {
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        class FailuresOnly : public testing::EmptyTestEventListener {
            void OnTestPartResult(const testing::TestPartResult& result) override {
                if (!result.failed()) return;
                int mine = 0;
                MPI_Comm_rank(MPI_COMM_WORLD, &mine);
                std::fprintf(stderr, "rank %d: %s:%d: %s\n", mine, result.file_name(), result.line_number(),
                             result.summary());
            }
        };
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailuresOnly);
    }
    int failed = RUN_ALL_TESTS();
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
