// Collective reads of files in groups and logs with visibility = "sync": random programs of writes, messages, syncs and collective calls, each read
// compared with what must have happened before it and what cannot have; who is waited for, and who is not; what is left in memory.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "mapped_world.hpp"
#include "mpi_cases/random.hpp"

namespace ioweir {
namespace {

using cases::Random;

constexpr const char* further_rules = R"(
[[file]]
match = "*.chosen"
mapping = "log"
writers = "auto"
visibility = "sync"

[[file]]
match = "*.plain"
writers = "everyone"
)";

/// Whose ranks read for each other.
constexpr const char* together[] = {"gathered", "collected"};
const char* const strategies[] = {"log", "two", "chosen", "gathered", "log", "collected", "each"};

[[maybe_unused]] const testing::Environment* const registered =
    add_world(std::string(plan_of_parts) + further_rules, false);

/// Do ranks read without a meeting? On one node, and where the library's do, too.
bool read_alone() {
#if defined(OPEN_MPI)
    const char* each = std::getenv("IOWEIR_TEST_RANKS_PER_NODE");
    return each == nullptr || std::atoi(each) == 0 || std::atoi(each) >= world->ranks;
#else
    return false;
#endif
}

void sleep_ms(std::int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// ------------------------------------------------------------------------------------------------ random programs

/// A version of a cell is the number of the step that wrote it, counted from 1; 0: nobody has.
using Version = std::int64_t;
using Versions = std::vector<Version>;

struct Step {
    enum class Kind { write, write_together, message, long_message, barrier, sync, set_size, read, read_together };
    Kind kind = Kind::write;
    int how = 0;                 ///< which form of the call
    int rank = 0, other = 0;     ///< who writes, reads or sends; who receives
    std::vector<int> cells;      ///< written: of that rank, or by rank, -1 for nothing
    int late = -1, late_ms = 0;  ///< a rank that comes so much later
};

/// Of a file of cells, each of 8-byte words that hold its version. The last one of each rank is too large to wait in memory.
struct Program {
    static constexpr int cells_of_rank = 4;
    static constexpr int small_words = 2, large_words = 2500;

    int ranks;
    std::vector<Step> steps;
    std::vector<int> places;  ///< of each cell's first word, and the end

    Program(std::uint64_t index, int of_ranks) : ranks(of_ranks) {
        places.push_back(0);
        for (int cell = 0; cell < cells(); ++cell) places.push_back(places.back() + words(cell));
        Random random(47, index, static_cast<std::uint64_t>(ranks));
        const std::int64_t count = random.between(10, 40);
        int turn = 0;  // who owns a cell changes when all have met
        for (std::int64_t i = 0; i < count; ++i) {
            steps.push_back(step(random, turn));
            const Step::Kind kind = steps.back().kind;
            if (kind == Step::Kind::sync || kind == Step::Kind::set_size)
                turn += static_cast<int>(random.between(0, 1));
        }
    }
    [[nodiscard]] int cells() const { return cells_of_rank * ranks; }
    [[nodiscard]] int words(int cell) const { return cell >= 3 * ranks ? large_words : small_words; }
    [[nodiscard]] int end() const { return places.back(); }

    /// What a rank must find in a read, and the last that it may find.
    struct Bounds {
        Versions must, may;
        const char* kind;
    };
    /// Of a rank's collective reads and independent ones, in their order. `all`: ranks read for each other.
    [[nodiscard]] std::vector<Bounds> bounds(int rank, bool all) const;

private:
    [[nodiscard]] int cell_of(Random& random, int rank, int turn) const {
        return static_cast<int>(random.between(0, cells_of_rank - 1)) * ranks + (rank + turn) % ranks;
    }
    [[nodiscard]] Step step(Random& random, int turn) const {
        using Kind = Step::Kind;
        Step step;
        step.kind =
            random.pick({Kind::write, Kind::write, Kind::write, Kind::write_together, Kind::message, Kind::message,
                         Kind::long_message, Kind::barrier, Kind::sync, Kind::set_size, Kind::read, Kind::read_together,
                         Kind::read_together, Kind::read_together, Kind::read_together});
        step.how = static_cast<int>(random.between(0, 2));
        step.rank = static_cast<int>(random.between(0, ranks - 1));
        step.other = (step.rank + static_cast<int>(random.between(1, std::max(1, ranks - 1)))) % ranks;
        if (step.kind == Kind::write) step.cells = {cell_of(random, step.rank, turn)};
        for (int rank = 0; step.kind == Kind::write_together && rank < ranks; ++rank)
            step.cells.push_back(random.one_in(3) ? -1 : cell_of(random, rank, turn));
        if (random.one_in(4)) {
            step.late = static_cast<int>(random.between(0, ranks - 1));
            step.late_ms = static_cast<int>(random.between(0, 3));
        }
        return step;
    }
};

void raise_to(Versions& known, const Versions& other) {
    for (std::size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], other[i]);
}

std::vector<Program::Bounds> Program::bounds(int rank, bool all) const {
    using Kind = Step::Kind;
    const Versions none(static_cast<std::size_t>(cells()), 0);
    std::vector<Versions> before(static_cast<std::size_t>(ranks),
                                 none);  // what has happened before each rank's next step
    Versions written_together = none, latest = none, own = none;
    Versions found = none;  // by this rank's last collective read or sync
    bool since_write = false;
    std::vector<Bounds> found_by_reads;
    const auto mine = static_cast<std::size_t>(rank);

    /// What others may write until they are known to come after this rank's read.
    const auto add_later = [&](std::size_t from, Versions may) {
        std::vector<bool> after(static_cast<std::size_t>(ranks), false);
        after[mine] = true;
        for (std::size_t i = from; i < steps.size(); ++i) {
            const Step& step = steps[i];
            if (step.kind == Kind::barrier || step.kind == Kind::sync || step.kind == Kind::set_size) break;
            if ((step.kind == Kind::message || step.kind == Kind::long_message) &&
                after[static_cast<std::size_t>(step.rank)])
                after[static_cast<std::size_t>(step.other)] = true;
            for (std::size_t k = 0; k < step.cells.size(); ++k) {
                const std::size_t writer = step.kind == Kind::write ? static_cast<std::size_t>(step.rank) : k;
                if (step.cells[k] >= 0 && !after[writer])
                    may[static_cast<std::size_t>(step.cells[k])] = static_cast<Version>(i) + 1;
            }
        }
        return may;
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        for (std::size_t k = 0; k < step.cells.size(); ++k) {
            const std::size_t writer = step.kind == Kind::write ? static_cast<std::size_t>(step.rank) : k;
            if (step.cells[k] < 0) continue;
            const auto cell = static_cast<std::size_t>(step.cells[k]);
            before[writer][cell] = latest[cell] = static_cast<Version>(i) + 1;
            if (step.kind == Kind::write_together) written_together[cell] = latest[cell];
            // What an aggregator has written for this rank is the aggregator's until the next collective read.
            if (writer == mine && (step.kind == Kind::write || !all)) own[cell] = latest[cell];
        }
        switch (step.kind) {
            case Kind::write:
                break;
            case Kind::write_together:
                since_write = true;
                break;
            case Kind::message:
            case Kind::long_message:
                if (step.rank != step.other)
                    raise_to(before[static_cast<std::size_t>(step.other)], before[static_cast<std::size_t>(step.rank)]);
                break;
            case Kind::sync:
            case Kind::set_size:
                found = latest;
                if (step.kind == Kind::sync) since_write = false;
                [[fallthrough]];
            case Kind::barrier:
                for (Versions& known : before) raise_to(known, latest);
                break;
            case Kind::read_together: {
                Versions must = before[mine];
                raise_to(must, written_together);
                if (all || since_write) must = latest;
                since_write = false;
                raise_to(found, must);
                found_by_reads.push_back({must, add_later(i + 1, latest), "collective"});
                break;
            }
            case Kind::read:
                if (step.rank != rank) break;
                Versions must = found;
                raise_to(must, own);
                found_by_reads.push_back({must, add_later(i + 1, latest), "independent"});
                break;
        }
    }
    return found_by_reads;
}

class SharedReadsTest : public MappedTest {
protected:
    static MPI_Offset bytes_of(int words) { return MPI_Offset{8} * words; }

    /// What a program of this rank has under way.
    struct Running {
        MPI_File file = MPI_FILE_NULL;
        std::vector<MPI_Request> sent;
        std::vector<char> long_text = std::vector<char>(1 << 20, 'm');
        std::vector<Versions> read;  ///< the words of the file
    };

    void write_cell(const Program& program, Running& running, const Step& step, int cell, Version version) const {
        const int words = cell < 0 ? 0 : program.words(cell);
        const Versions text(static_cast<std::size_t>(std::max(words, 1)), version);
        const MPI_Offset at = cell < 0 ? 0 : bytes_of(program.places[static_cast<std::size_t>(cell)]);
        const int count = 8 * words;
        MPI_Request request = MPI_REQUEST_NULL;
        int result = MPI_SUCCESS;
        if (step.kind == Step::Kind::write) {
            result = calls_.File_write_at(running.file, at, text.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        } else if (step.how == 0) {
            result = calls_.File_write_at_all(running.file, at, text.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        } else if (step.how == 1) {
            result = calls_.File_iwrite_at_all(running.file, at, text.data(), count, MPI_BYTE, &request);
            PMPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            result = calls_.File_write_at_all_begin(running.file, at, text.data(), count, MPI_BYTE);
            EXPECT_EQ(calls_.File_write_at_all_end(running.file, text.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        EXPECT_EQ(result, MPI_SUCCESS);
    }

    void read_words(const Program& program, Running& running, const Step& step) const {
        Versions text(static_cast<std::size_t>(program.end()), 0);
        const int count = 8 * program.end();
        int result = MPI_SUCCESS;
        if (step.kind == Step::Kind::read) {
            result = calls_.File_read_at(running.file, 0, text.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        } else if (step.how == 0) {
            result = calls_.File_read_at_all(running.file, 0, text.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        } else if (step.how == 1) {
            EXPECT_EQ(calls_.File_seek(running.file, 0, MPI_SEEK_SET), MPI_SUCCESS);
            result = calls_.File_read_all(running.file, text.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
        } else {
            result = calls_.File_read_at_all_begin(running.file, 0, text.data(), count, MPI_BYTE);
            EXPECT_EQ(calls_.File_read_at_all_end(running.file, text.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        EXPECT_EQ(result, MPI_SUCCESS);
        running.read.push_back(std::move(text));
    }

    /// A long one is not waited for: it needs its sender's MPI library later.
    void pass_message(Running& running, const Step& step) const {
        if (step.rank == step.other) return;
        const bool is_long = step.kind == Step::Kind::long_message;
        const int bytes = is_long ? static_cast<int>(running.long_text.size()) : 1;
        if (world->rank == step.rank) {
            running.sent.emplace_back();
            PMPI_Isend(running.long_text.data(), bytes, MPI_BYTE, step.other, 7, MPI_COMM_WORLD, &running.sent.back());
            if (!is_long) PMPI_Wait(&running.sent.back(), MPI_STATUS_IGNORE);
        } else if (world->rank == step.other) {
            std::vector<char> text(static_cast<std::size_t>(bytes));
            PMPI_Recv(text.data(), bytes, MPI_BYTE, step.rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }

    void take_step(const Program& program, Running& running, const Step& step, Version version) const {
        if (step.late == world->rank) sleep_ms(step.late_ms);
        switch (step.kind) {
            case Step::Kind::write:
                if (step.rank == world->rank) write_cell(program, running, step, step.cells[0], version);
                return;
            case Step::Kind::write_together:
                write_cell(program, running, step, step.cells[static_cast<std::size_t>(world->rank)], version);
                return;
            case Step::Kind::message:
            case Step::Kind::long_message:
                pass_message(running, step);
                return;
            case Step::Kind::barrier:
                PMPI_Barrier(MPI_COMM_WORLD);
                return;
            case Step::Kind::sync:
                EXPECT_EQ(calls_.File_sync(running.file), MPI_SUCCESS);
                return;
            case Step::Kind::set_size:
                EXPECT_EQ(calls_.File_set_size(running.file, bytes_of(program.end())), MPI_SUCCESS);
                return;
            case Step::Kind::read:
                if (step.rank == world->rank) read_words(program, running, step);
                return;
            case Step::Kind::read_together:
                read_words(program, running, step);
                return;
        }
    }

    static void compare(const Program& program, const std::vector<Program::Bounds>& bounds, const Running& running) {
        ASSERT_EQ(bounds.size(), running.read.size());
        for (std::size_t read = 0; read < bounds.size(); ++read) {
            for (int cell = 0; cell < program.cells(); ++cell) {
                const auto at = static_cast<std::size_t>(cell);
                for (int word = program.places[at]; word < program.places[at + 1]; ++word) {
                    const Version found = running.read[read][static_cast<std::size_t>(word)];
                    ASSERT_GE(found, bounds[read].must[at])
                        << bounds[read].kind << " read " << read << ", cell " << cell << ", word " << word;
                    ASSERT_LE(found, bounds[read].may[at])
                        << bounds[read].kind << " read " << read << ", cell " << cell << ", word " << word;
                }
            }
        }
    }

    /// In a message from there to here, and back.
    static void tell(int rank) { PMPI_Send(nullptr, 0, MPI_BYTE, rank, 3, MPI_COMM_WORLD); }
    static void hear(int rank) { PMPI_Recv(nullptr, 0, MPI_BYTE, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

    std::string read_together(MPI_File file, int bytes) const {
        std::string text(static_cast<std::size_t>(bytes), '?');
        EXPECT_EQ(calls_.File_read_at_all(file, 0, text.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS);
        return text;
    }
    void write(MPI_File file, MPI_Offset at, const std::string& text) const {
        EXPECT_EQ(
            calls_.File_write_at(file, at, text.data(), static_cast<int>(text.size()), MPI_BYTE, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
    }

    static int shared_memories() {
        std::ifstream maps("/proc/self/maps");
        int count = 0;
        for (std::string line; std::getline(maps, line);)
            count += line.find("memfd:ioweir") != std::string::npos ? 1 : 0;
        return count;
    }
};

TEST_F(SharedReadsTest, SeeWhatHasHappenedBeforeAndNothingThatComesLater) {
    std::int64_t reads = 0;
    for (std::uint64_t i = 0; i < world->cases; ++i) {
        const std::string strategy = strategies[i % std::size(strategies)];
        SCOPED_TRACE("case " + std::to_string(i) + ", " + strategy);
        const bool all =
            std::find(std::begin(together), std::end(together), strategy) != std::end(together) || !read_alone();
        const Program program(i, world->ranks);
        const std::string path = world->directory + "/program." + strategy;
        Running running;
        running.file = open(world->engine, path);
        for (std::size_t step = 0; step < program.steps.size(); ++step)
            take_step(program, running, program.steps[step], static_cast<Version>(step) + 1);
        PMPI_Waitall(static_cast<int>(running.sent.size()), running.sent.data(), MPI_STATUSES_IGNORE);
        EXPECT_EQ(calls_.File_close(&running.file), MPI_SUCCESS);
        compare(program, program.bounds(world->rank, all), running);
        reads += std::ssize(running.read);
        if (on_any_rank(HasFailure())) return;
        remove_container(path);
    }
    EXPECT_GT(reads, static_cast<std::int64_t>(world->cases)) << "some in most programs";
}

TEST_F(SharedReadsTest, ARankThatHasWrittenIsWaitedFor) {
    for (const char* const name : {"late.log", "late.two", "late.chosen"}) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        for (const int bytes : {10, 20'000}) {  // kept in memory, and not
            const std::string text(static_cast<std::size_t>(bytes), static_cast<char>('a' + bytes % 3));
            if (world->rank == last_) {
                write(file, 0, text);
                for (int rank = 0; rank < last_; ++rank) tell(rank);
                sleep_ms(100);
            } else {
                hear(last_);
            }
            EXPECT_TRUE(read_together(file, bytes) == text) << name << ", " << bytes;
            PMPI_Barrier(MPI_COMM_WORLD);
        }
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

TEST_F(SharedReadsTest, ACollectiveWriteIsSeenWithoutAnyMessage) {
    for (const char* const name : {"all.log", "all.two", "all.chosen"}) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        for (int turn = 0; turn < 4; ++turn) {
            PMPI_Barrier(MPI_COMM_WORLD);
            if (world->rank == turn % world->ranks) sleep_ms(20);
            const std::string text(10, static_cast<char>('a' + turn + world->rank));
            MPI_Request request = MPI_REQUEST_NULL;
            if (turn % 2 == 0) {
                EXPECT_EQ(
                    calls_.File_write_at_all(file, 10 * world->rank, text.data(), 10, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS);
            } else {
                EXPECT_EQ(calls_.File_iwrite_at_all(file, 10 * world->rank, text.data(), 10, MPI_BYTE, &request),
                          MPI_SUCCESS);
                PMPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            std::string expected;
            for (int rank = 0; rank < world->ranks; ++rank)
                expected += std::string(10, static_cast<char>('a' + turn + rank));
            EXPECT_EQ(read_together(file, 10 * world->ranks), expected) << name << ", turn " << turn;
        }
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

/// With a reduction this would wait for ever.
TEST_F(SharedReadsTest, NobodyWaitsForARankThatHasNothingToShow) {
    if (!read_alone()) GTEST_SKIP() << "these ranks meet";
    for (const char* const name : {"alone.log", "alone.two", "alone.chosen"}) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        write_ten(file);
        EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
        for (int turn = 0; turn < 3; ++turn) {
            // One after the other, each when the one before has returned.
            if (world->rank > 0) hear(world->rank - 1);
            EXPECT_EQ(read_together(file, 10 * world->ranks), ten_each()) << name;
            if (world->rank < last_) tell(world->rank + 1);
        }
        // Who has written after its own read is not waited for either.
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) {
            EXPECT_EQ(read_together(file, 10 * world->ranks), ten_each());
            write(file, 0, "A");
            for (int rank = 1; rank < world->ranks; ++rank) tell(rank);
            for (int rank = 1; rank < world->ranks; ++rank) hear(rank);
        } else {
            hear(0);
            EXPECT_EQ(read_together(file, 10 * world->ranks).substr(1), ten_each().substr(1)) << name;
            tell(0);
        }
        EXPECT_EQ(read_together(file, 10 * world->ranks), "A" + ten_each().substr(1)) << name;
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

/// The rank that is waited for cannot come before the others' MPI libraries have passed on what they have sent.
TEST_F(SharedReadsTest, WhoWaitsPassesOnMessages) {
    constexpr int bytes = 8 << 20;  // no MPI library sends that much before it is received
    for (const char* const name : {"progress.log", "progress.two"}) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        std::vector<char> text(bytes, 'x');
        MPI_Request request = MPI_REQUEST_NULL;
        if (world->rank == last_) {
            write(file, 0, "seen");
            for (int rank = 0; rank < last_; ++rank) tell(rank);
            sleep_ms(50);
            for (int rank = 0; rank < last_; ++rank)
                PMPI_Recv(text.data(), bytes, MPI_BYTE, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            hear(last_);
            PMPI_Isend(text.data(), bytes, MPI_BYTE, last_, 4, MPI_COMM_WORLD, &request);
        }
        EXPECT_EQ(read_together(file, 4), "seen");
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

/// PnetCDF's way: a rank writes by a handle of its own.
TEST_F(SharedReadsTest, SeeWhatWasWrittenThroughAnotherHandle) {
    for (const char* const name : {"other.log", "other.two"}) {
        const std::string path = world->path(name);
        MPI_File before = open(world->engine, path);
        if (world->rank == last_) write(before, 0, "1......");
        PMPI_Barrier(MPI_COMM_WORLD);
        MPI_File file = open(world->engine, path);
        MPI_File alone = open(world->engine, path, MPI_MODE_RDWR, MPI_COMM_SELF);
        EXPECT_EQ(read_together(file, 7), "1......") << "written before it was opened";
        std::string model = "1......";
        for (int turn = 0; turn < 6; ++turn) {
            PMPI_Barrier(MPI_COMM_WORLD);
            const auto at = static_cast<std::size_t>(turn);
            if (turn % world->ranks == world->rank) {
                write(turn % 2 == 0 ? alone : before, turn, "x");
                if (turn % 3 == 0) {
                    EXPECT_EQ(calls_.File_sync(alone), MPI_SUCCESS);
                }
            }
            model.replace(at, 1, "x");
            PMPI_Barrier(MPI_COMM_WORLD);
            if (world->rank == 0) sleep_ms(2);
            EXPECT_EQ(read_together(turn % 2 == 0 ? before : file, 7), model) << name << ", turn " << turn;
            EXPECT_EQ(read_together(turn % 2 == 0 ? file : before, 7), model) << name << ", turn " << turn;
        }
        for (MPI_File one : {alone, before}) EXPECT_EQ(calls_.File_close(&one), MPI_SUCCESS);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) write(file, 6, "y");
        PMPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(read_together(file, 7), model.substr(0, 6) + "y") << name << ", with one handle left";
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        remove_container(path);
    }
}

TEST_F(SharedReadsTest, TakeMemoryOnlyWhileAFileIsOpenThatNeedsThem) {
    const auto more_while_open = [&](const char* name, int amode) {
        const std::string path = world->path(name);
        MPI_File file = open(world->engine, path);
        write_ten(file);
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);  // what all files of these ranks share is there
        const int before = shared_memories();
        file = open(world->engine, path, amode);
        const int meanwhile = shared_memories();
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        EXPECT_EQ(shared_memories(), before) << name;
        remove(path);
        return meanwhile - before;
    };
    const int one = world->ranks > 1 && read_alone() ? 1 : 0;
    EXPECT_EQ(more_while_open("memory.log", MPI_MODE_RDWR), one);
    EXPECT_EQ(more_while_open("memory.two", MPI_MODE_RDWR), one);
    EXPECT_EQ(more_while_open("memory.log", MPI_MODE_RDONLY), 0);
    EXPECT_EQ(more_while_open("memory.log-call", MPI_MODE_RDWR), 0);
    EXPECT_EQ(more_while_open("memory.plain", MPI_MODE_RDWR), 0);
}

}  // namespace
}  // namespace ioweir
