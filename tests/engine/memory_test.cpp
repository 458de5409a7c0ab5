// How much memory a collective call takes, measured by the kernel: the peak of each rank's resident memory, shared pages included,
// above what it was before the first call, when the program's own data were already there.
//
// The bar: the buffers that the plan gives (of the file that gives most, so far), two for each aggregator of the node, and 5 per cent of the data that an aggregator moves.
// Besides, buffers of up to 16 MiB stay where ranks have formed groups with buffers of their own (Exchange::release()).
// In the 5 per cent have to fit the packets between nodes (about 5 MiB when several nodes take part), plans and everything else.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using cases::IoCalls;

constexpr const char* plan_text = R"(
[[file]]
match = "*.sequential"
writers = "aggregators:1"
buffer = "1 MiB"

[[file]]
match = "*.cyclic"
writers = "aggregators:1"
domains = "cyclic"
buffer = "2 MiB"
stripe = { size = "1 MiB", count = 2 }

[[file]]
match = "*.ordered"
writers = "aggregators:1"
order = "contention-free"
buffer = "1 MiB"
threshold = 0.25
stripe = { size = "256 KiB", count = 3 }

[[file]]
match = "*.apart"
writers = "aggregators:2"
buffer = "2 MiB"
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text, false);

constexpr std::int64_t mib = 1 << 20;
constexpr int piece = 64 * 1024;

std::int64_t status_bytes(const char* name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind(name, 0) == 0) return 1024 * std::atoll(line.c_str() + std::string(name).size() + 1);
    }
    return -1;
}

/// The peak starts again from what there is now. False where the kernel does not let us.
bool restart_peak() {
    const int descriptor = ::open("/proc/self/clear_refs", O_WRONLY);
    if (descriptor < 0) return false;
    const bool done = ::write(descriptor, "5", 1) == 1;
    ::close(descriptor);
    return done;
}

struct Shape {
    const char* strategy;
    std::int64_t buffer_bytes;  ///< what one of a writer's two buffers may hold
    int writers;
    bool blocks;  ///< each rank's bytes in one piece, instead of dealt round
};

TEST_F(EngineTest, StaysWithinTheBuffersAndFivePerCent) {
    if (world->ranks == 1) GTEST_SKIP() << "nobody to exchange with";
    const char* const each_text = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    const int each = each_text != nullptr ? std::atoi(each_text) : world->ranks;
    const std::int64_t whole = 128 * mib;
    const int own = static_cast<int>(whole / world->ranks / piece * piece);
    std::vector<unsigned char> data(static_cast<std::size_t>(own), static_cast<unsigned char>(world->rank));
    std::vector<unsigned char> back(data);
    // Everything counts from here on.
    const std::int64_t before = status_bytes("VmRSS");
    ASSERT_GT(before, 2 * own);
    std::int64_t buffers = 0, of_groups = 0;
    for (const Shape& shape : {Shape{"apart", 2 * mib, 2, true}, Shape{"sequential", mib, 1, false},
                               Shape{"ordered", mib, 1, false}, Shape{"cyclic", 2 * mib, 1, false}}) {
        SCOPED_TRACE(shape.strategy);
        int writers_here = 0;
        for (int writer = 0; writer < shape.writers; ++writer)
            writers_here += writer * world->ranks / shape.writers / each == world->rank / each;
        // The group's buffers are kept from file to file.
        buffers = std::max(buffers, 2 * shape.buffer_bytes * writers_here);
        if (shape.blocks && world->ranks % 2 == 0) of_groups = 2 * shape.buffer_bytes * writers_here;
        const std::int64_t allowed = buffers + of_groups + std::int64_t{own} * world->ranks / shape.writers / 20;
        const std::string path = world->path("memory.") + shape.strategy;
        const IoCalls& io = world->engine;
        MPI_File file = open(io, path);
        MPI_Datatype pieces;
        MPI_Type_vector(own / piece, piece, piece * world->ranks, MPI_BYTE, &pieces);
        MPI_Type_commit(&pieces);
        native_view(io, file, shape.blocks ? std::int64_t{own} * world->rank : std::int64_t{piece} * world->rank,
                    MPI_BYTE, shape.blocks ? MPI_BYTE : pieces);
        PMPI_Barrier(MPI_COMM_WORLD);
        ASSERT_TRUE(restart_peak());
        for (int call = 0; call < 3; ++call) {
            EXPECT_EQ(io.write_at_all(file, 0, data.data(), own, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            EXPECT_EQ(io.read_at_all(file, 0, back.data(), own, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        const std::int64_t taken = status_bytes("VmHWM") - before;
        EXPECT_EQ(back, data);
        EXPECT_LE(taken, allowed);
        std::int64_t most = taken;
        PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        if (world->rank == 0) {  // the first aggregator
            EXPECT_GE(taken, 2 * shape.buffer_bytes) << "a peak that does not hold the buffers measures nothing";
            std::printf("%s: %lld KiB taken by the first aggregator, %lld by any rank, %lld allowed\n", shape.strategy,
                        static_cast<long long>(taken / 1024), static_cast<long long>(most / 1024),
                        static_cast<long long>(allowed / 1024));
        }
        MPI_Type_free(&pieces);
        io.close(&file);
        remove(path);
    }
}

}  // namespace
}  // namespace ioweir
