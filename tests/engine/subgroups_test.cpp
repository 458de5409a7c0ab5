// Ranks whose parts of a file lie one behind the other do not wait for each other, and the bytes are right whether they do or not.
// IOWEIR_TEST_RANKS_PER_NODE makes several nodes of the ranks.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine_world.hpp"

namespace ioweir {
namespace {

using cases::IoCalls;

constexpr const char* plan_text = R"(
[[file]]
match = "*.even"
writers = "aggregators:2"
buffer = 96

[[file]]
match = "*.small"
writers = "aggregators:2"
buffer = "4 MiB"

[[file]]
match = "*.all"
writers = "aggregators:99"
buffer = 64

[[file]]
match = "*.aligned"
writers = "aggregators:2"
domains = "aligned"
buffer = 128
stripe = { size = 64, count = 2 }

[[file]]
match = "*.cyclic"
writers = "aggregators:2"
domains = "cyclic"
buffer = 64
stripe = { size = 64, count = 2 }
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

constexpr int block = 320;

unsigned char value_at(std::int64_t offset, int call) {
    return static_cast<unsigned char>(offset * 131 + offset / 251 + call * 29);
}

/// This rank's block, which lies behind those of the ranks before it.
std::vector<unsigned char> block_of(int rank, int call) {
    std::vector<unsigned char> data;
    for (int i = 0; i < block; ++i) data.push_back(value_at(std::int64_t{rank} * block + i, call));
    return data;
}

/// Are there two groups of ranks with a writer each when two aggregators serve blocks?
bool halves() { return world->ranks % 2 == 0; }

class Subgroups : public EngineTest {
protected:
    static void expect_content(const std::string& path, int call) {
        const std::vector<unsigned char> there = contents(path);
        PMPI_Barrier(MPI_COMM_WORLD);  // the next call is not for those who are still reading
        ASSERT_EQ(static_cast<std::int64_t>(there.size()), std::int64_t{block} * world->ranks);
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < there.size(); ++i)
            wrong += there[i] != value_at(static_cast<std::int64_t>(i), call);
        EXPECT_EQ(wrong, 0) << "after call " << call;
    }
};

TEST_F(Subgroups, AreFormedForBlocksAndNotForCyclicDomains) {
    constexpr int calls = 40;  // more than between two meetings of all ranks
    const struct {
        const char* strategy;
        bool formed;
    } some[] = {{"even", halves()}, {"all", true}, {"aligned", halves()}, {"cyclic", false}};
    for (const auto& one : some) {
        SCOPED_TRACE(one.strategy);
        const std::string path = world->path("blocks.") + one.strategy;
        const IoCalls& io = world->engine;
        world->notes.clear();
        world->work.clear();
        MPI_File file = open(io, path);
        for (int call = 0; call < calls; ++call) {
            const std::vector<unsigned char> data = block_of(world->rank, call);
            EXPECT_EQ(io.write_at_all(file, world->rank * block, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
        for (int call = 0; call < calls; ++call) {
            std::vector<unsigned char> back(block, 0);
            EXPECT_EQ(io.read_at_all(file, world->rank * block, back.data(), block, MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
            EXPECT_EQ(back, block_of(world->rank, calls - 1));
        }
        io.close(&file);
        expect_content(path, calls - 1);
        remove(path);
        if (world->ranks == 1) continue;
        // A group of one rank has nobody to exchange with.
        const bool single = std::string(one.strategy) == "all";
        EXPECT_EQ(world->did(&Did::exchanges), single ? 2 : 2 * calls);
        EXPECT_EQ(world->did(&Did::alone_by_choice), single ? 2 * (calls - 1) : 0);
        if (single) continue;
        // Writing, all ranks meet in the first call, in the second, which makes the groups, and 32 calls later; reading, in the first
        // and 32 calls later. The groups of "aligned" are those of "even".
        const bool known = std::string(one.strategy) == "aligned";
        EXPECT_EQ(world->did(&Did::in_subgroups), one.formed ? 2 * (calls - 2) - (known ? 0 : 1) : 0);
        EXPECT_EQ(world->count(format::NoteCode::verify_mismatch), 0);
    }
}

// Fresh memory costs a page fault every 4 KiB. Small buffers stay from group to group and from file to file.
TEST_F(Subgroups, KeepSmallBuffers) {
    if (!halves() || world->ranks < 2) GTEST_SKIP() << "the ranks do not form two groups";
    constexpr int bytes = 1 << 20, known_files = 4, files = 12, calls = 4;
    const IoCalls& io = world->engine;
    const std::string path = world->path("kept.small");
    const std::vector<unsigned char> data(bytes, 7);
    const auto faults = [] {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        return used.ru_minflt;
    };
    long before = 0;
    for (int each = 0; each < files; ++each) {
        if (each == known_files) before = faults();
        MPI_File file = open(io, path);
        for (int call = 0; call < calls; ++call) {
            EXPECT_EQ(io.write_at_all(file, std::int64_t{world->rank} * bytes, data.data(), bytes, MPI_BYTE,
                                      MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
        io.close(&file);
    }
    const long pages = bytes / 4096;
    EXPECT_LT(faults() - before, (files - known_files) * pages / 2) << "each rank's part of a buffer has " << pages;
    remove(path);
}

// The ranks of the first half make their call and tell those of the second, who make theirs only then. With a meeting of all ranks
// in it the call would never end; the second half stops waiting after a while, so that this fails and does not hang.
TEST_F(Subgroups, DoNotWaitForEachOther) {
    if (!halves() || world->ranks < 2) GTEST_SKIP() << "the ranks do not form two groups";
    const IoCalls& io = world->engine;
    const std::string path = world->path("apart.even");
    MPI_File file = open(io, path);
    const bool first_half = world->rank < world->ranks / 2;
    const int partner = (world->rank + world->ranks / 2) % world->ranks;
    for (int call = 0; call < 6; ++call) {
        const bool apart = call >= 2;
        if (apart && !first_half) {
            int told = 0;
            const double give_up = MPI_Wtime() + 30;
            while (told == 0 && MPI_Wtime() < give_up)
                MPI_Iprobe(partner, call, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
            EXPECT_EQ(told, 1) << "call " << call << " of rank " << partner << " waits for this rank";
        }
        const std::vector<unsigned char> data = block_of(world->rank, call);
        EXPECT_EQ(io.write_at_all(file, world->rank * block, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        if (apart && first_half) MPI_Send(&call, 1, MPI_INT, partner, call, MPI_COMM_WORLD);
        if (apart && !first_half) {
            int said = -1;
            MPI_Recv(&said, 1, MPI_INT, partner, call, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    io.close(&file);
    expect_content(path, 5);
    remove(path);
}

// Calls of another shape, while ranks think that they need not meet: slower, but right. A new view makes them meet at once.
TEST_F(Subgroups, SurviveAPatternThatChanges) {
    const IoCalls& io = world->engine;
    for (const bool new_view : {false, true}) {
        const std::string path = world->path("changing.even");
        MPI_File file = open(io, path);
        MPI_Datatype pieces;
        constexpr int piece = 16;
        MPI_Type_vector(block / piece, piece, piece * world->ranks, MPI_BYTE, &pieces);
        MPI_Type_commit(&pieces);
        for (int call = 0; call < 12; ++call) {
            const bool interleaved = call % 6 >= 4;
            if (new_view && (call % 6 == 0 || call % 6 == 4))
                native_view(io, file, interleaved ? piece * world->rank : 0, MPI_BYTE, interleaved ? pieces : MPI_BYTE);
            if (!interleaved || new_view) {
                std::vector<unsigned char> data = block_of(world->rank, call);
                for (int i = 0; interleaved && i < block; ++i)
                    data[static_cast<std::size_t>(i)] =
                        value_at((std::int64_t{i} / piece * world->ranks + world->rank) * piece + i % piece, call);
                const MPI_Offset at = interleaved ? 0 : world->rank * block;
                EXPECT_EQ(io.write_at_all(file, at, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
            } else {
                // Another rank's block each.
                const int other = (world->rank + call) % world->ranks;
                const std::vector<unsigned char> data = block_of(other, call);
                EXPECT_EQ(io.write_at_all(file, other * block, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE),
                          MPI_SUCCESS);
            }
            PMPI_Barrier(MPI_COMM_WORLD);
            if (call % 3 == 2) expect_content(path, call);
        }
        MPI_Type_free(&pieces);
        io.close(&file);
        expect_content(path, 11);
        remove(path);
    }
}

// Two files of the same ranks, divided in different ways, turn and turn about.
TEST_F(Subgroups, OfSeveralFilesDoNotDisturbEachOther) {
    const IoCalls& io = world->engine;
    const std::string paths[] = {world->path("one.even"), world->path("two.all"), world->path("three.cyclic")};
    MPI_File files[3];
    for (int i = 0; i < 3; ++i) files[i] = open(io, paths[i]);
    for (int call = 0; call < 10; ++call) {
        for (MPI_File& file : files) {
            const std::vector<unsigned char> data = block_of(world->rank, call);
            EXPECT_EQ(io.write_at_all(file, world->rank * block, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE),
                      MPI_SUCCESS);
        }
    }
    for (int i = 0; i < 3; ++i) {
        io.close(&files[i]);
        expect_content(paths[i], 9);
        remove(paths[i]);
    }
}

// An error of one group's writer reaches its ranks at once and the others at close.
TEST_F(Subgroups, TellErrorsToTheirRanksAndLaterToAll) {
    if (!halves() || world->ranks < 2) GTEST_SKIP() << "the ranks do not form two groups";
    const IoCalls& io = world->engine;
    const std::string path = world->path("failing.even");
    MPI_File file = open(io, path);
    const std::vector<unsigned char> data = block_of(world->rank, 0);
    for (int call = 0; call < 5; ++call) {
        if (call == 3 && world->rank == 0) world->backend.arm({storage::FaultKind::error, 1, 28});
        const int code = io.write_at_all(file, world->rank * block, data.data(), block, MPI_BYTE, MPI_STATUS_IGNORE);
        int error_class = 0;
        MPI_Error_class(code, &error_class);
        EXPECT_EQ(error_class, call == 3 && world->rank < world->ranks / 2 ? MPI_ERR_NO_SPACE : MPI_SUCCESS);
    }
    int error_class = 0;
    MPI_Error_class(io.close(&file), &error_class);
    EXPECT_EQ(error_class, world->rank < world->ranks / 2 ? MPI_SUCCESS : MPI_ERR_NO_SPACE);
    remove(path);
}

}  // namespace
}  // namespace ioweir
