// Calls that the engine and the MPI library make in turns, on one file, in one program: each call sees what its rank has written before,
// by whatever call and handle, and whoever makes them; the ranks of a collective call go the same way.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine_world.hpp"
#include "mpi_cases/case_runner.hpp"

namespace {

std::atomic<std::int64_t> storage_ns{0};  // so much later is written what the MPI library writes

template <typename Function>
Function real_function(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void wait_for_storage() {
    if (storage_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(storage_ns));
}

}  // namespace

// The libraries' calls come here; the engine calls the system.
#define IOWEIR_TEST_LATE(name, Second, Third, Fourth)                                           \
    extern "C" ssize_t name(int fd, Second second, Third third, Fourth fourth) {                \
        static const auto real = real_function<ssize_t (*)(int, Second, Third, Fourth)>(#name); \
        wait_for_storage();                                                                     \
        return real(fd, second, third, fourth);                                                 \
    }
IOWEIR_TEST_LATE(pwrite, const void*, size_t, off_t)
IOWEIR_TEST_LATE(pwrite64, const void*, size_t, off64_t)
IOWEIR_TEST_LATE(pwritev, const iovec*, int, off_t)
IOWEIR_TEST_LATE(pwritev64, const iovec*, int, off64_t)
#undef IOWEIR_TEST_LATE

namespace ioweir {
namespace {

/// Where the engine is slow at writing, where the library is, and as they are.
constexpr const char* plan = R"(
[[file]]
match = "*.engine"
writers = "auto"
[[file]]
match = "*.library"
writers = "auto"
[[file]]
match = "*.even"
writers = "auto"
[[file]]
match = "*.late"
writers = "auto"
)";

std::int64_t library_ns = 0;                       // so much longer each of its writes takes
std::int64_t calls_alone = 0, calls_together = 0;  // of the library

template <auto member, bool together>
struct Counted;
template <typename... Arguments, int (*mpi::FileCalls::*member)(Arguments...), bool together>
struct Counted<member, together> {
    static inline int (*real)(Arguments...) = nullptr;
    static int call(Arguments... arguments) {
        ++(together ? calls_together : calls_alone);
        if (library_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(library_ns));
        return real(arguments...);
    }
    static void put(mpi::FileCalls& below) {
        real = below.*member;
        below.*member = call;
    }
};

void count_calls(mpi::FileCalls& below) {
    using F = mpi::FileCalls;
    Counted<&F::File_read, false>::put(below);
    Counted<&F::File_read_at, false>::put(below);
    Counted<&F::File_write, false>::put(below);
    Counted<&F::File_write_at, false>::put(below);
    Counted<&F::File_read_all, true>::put(below);
    Counted<&F::File_read_at_all, true>::put(below);
    Counted<&F::File_write_all, true>::put(below);
    Counted<&F::File_write_at_all, true>::put(below);
}

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan, WorldOptions{.verify = false, .weighs = true, .change_library = count_calls});

constexpr int piece = 12, pieces = 40;  // of a rank: one in each tile of the view
constexpr std::int64_t slow_ns = 200'000;
constexpr std::int64_t long_ns = 15'000'000;

class TurnsOrderTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
        world->backend.slow_down({}, 0);
        library_ns = calls_alone = calls_together = 0;
        storage_ns = 0;
        PMPI_Type_contiguous(piece, MPI_BYTE, &one_);
        PMPI_Type_create_resized(one_, 0, MPI_Aint{piece} * world->ranks, &tiles_);
        PMPI_Type_commit(&tiles_);
        PMPI_Type_vector(piece * pieces / 4, 4, 8, MPI_BYTE, &split_memory_);
        PMPI_Type_commit(&split_memory_);
    }
    void TearDown() override {
        PMPI_Type_free(&one_);
        PMPI_Type_free(&tiles_);
        PMPI_Type_free(&split_memory_);
    }

    /// The file is there as a whole, so that no call can leave a hole.
    void make_file(const std::string& path) {
        const std::vector<unsigned char> zeros(static_cast<std::size_t>(piece * pieces * world->ranks), 0);
        if (world->rank == 0) {
            MPI_File file{};
            PMPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
            PMPI_File_write(file, zeros.data(), static_cast<int>(zeros.size()), MPI_BYTE, MPI_STATUS_IGNORE);
            PMPI_File_close(&file);
        }
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File open_view(const std::string& path, MPI_Comm comm) {
        MPI_File file = open(world->engine, path, MPI_MODE_RDWR, comm);
        native_view(world->engine, file, MPI_Offset{piece} * world->rank, MPI_BYTE, tiles_);
        return file;
    }

    MPI_Datatype one_{}, tiles_{}, split_memory_{};
};

/// What one rank has in a file through several handles, and what it must find there.
class Program {
public:
    Program(std::vector<MPI_File> together, MPI_File alone, MPI_Datatype split_memory, unsigned seed)
        : together_(std::move(together)),
          alone_(alone),
          split_memory_(split_memory),
          shared_(seed),
          own_(seed * 1000 + static_cast<unsigned>(world->rank)) {}

    /// One write, and one read.
    void step() {
        const Part written = any_part();
        std::vector<unsigned char> data(static_cast<std::size_t>(written.bytes));
        for (unsigned char& byte : data) byte = static_cast<unsigned char>(own_());
        std::copy(data.begin(), data.end(), mine_.begin() + written.begin);
        make_write(written, data);
        const Part part = any_part();
        const std::vector<unsigned char> expected(mine_.begin() + part.begin, mine_.begin() + part.begin + part.bytes);
        const std::string how = make_read(part, data);
        ++steps_;
        if (data != expected) problem_ = "step " + std::to_string(steps_) + ": " + said_ + ", then " + how;
    }
    [[nodiscard]] const std::string& problem() const { return problem_; }
    [[nodiscard]] const std::vector<unsigned char>& mine() const { return mine_; }

private:
    enum class Way { alone, at, pointer, at_of_pieces, at_all, all, begin_at_all, start_at, last };
    struct Part {
        std::int64_t begin = 0, bytes = 0;  // of this rank's data
    };

    /// Collective calls by all ranks, of parts of their own.
    Way any_way() { return static_cast<Way>(shared_() % static_cast<unsigned>(Way::last)); }
    Part any_part() {
        Part part;
        const bool whole = shared_() % 2 == 0;
        if (whole) return {0, piece * pieces};
        part.begin = own_() % (piece * pieces / 4) * 4;
        part.bytes = 4 + own_() % ((static_cast<unsigned>(piece * pieces) - part.begin) / 4) * 4;
        return part;
    }
    MPI_File any_together() { return together_[shared_() % together_.size()]; }

    void must(int code, const std::string& what) {
        if (code != MPI_SUCCESS && problem_.empty()) problem_ = what + " returned " + std::to_string(code);
    }

    void make_write(const Part& part, const std::vector<unsigned char>& data) {
        const mpi::FileCalls& io = world->hooks;
        const int bytes = static_cast<int>(part.bytes);
        const Way way = any_way();
        MPI_File file = any_together();
        said_ = "write " + std::to_string(static_cast<int>(way)) + " of " + std::to_string(bytes);
        MPI_Request request{};
        switch (way) {
            case Way::alone:
                return must(io.File_write_at(alone_, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                            said_);
            case Way::at:
                return must(io.File_write_at(file, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), said_);
            case Way::pointer:
                must(io.File_seek(file, part.begin, MPI_SEEK_SET), "seek");
                return must(io.File_write(file, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), said_);
            case Way::at_of_pieces:
                if (part.bytes == piece * pieces) {
                    std::vector<unsigned char> spread(2 * data.size());
                    for (std::size_t i = 0; i < data.size(); ++i) spread[i / 4 * 8 + i % 4] = data[i];
                    return must(io.File_write_at_all(file, 0, spread.data(), 1, split_memory_, MPI_STATUS_IGNORE),
                                said_);
                }
                [[fallthrough]];
            case Way::at_all:
                return must(io.File_write_at_all(file, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                            said_);
            case Way::all:
                must(io.File_seek(file, part.begin, MPI_SEEK_SET), "seek");
                return must(io.File_write_all(file, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), said_);
            case Way::begin_at_all:
                must(io.File_write_at_all_begin(file, part.begin, data.data(), bytes, MPI_BYTE), said_);
                return must(io.File_write_at_all_end(file, data.data(), MPI_STATUS_IGNORE), said_);
            default:
                must(io.File_iwrite_at(file, part.begin, data.data(), bytes, MPI_BYTE, &request), said_);
                return must(PMPI_Wait(&request, MPI_STATUS_IGNORE), said_);
        }
    }

    std::string make_read(const Part& part, std::vector<unsigned char>& data) {
        const mpi::FileCalls& io = world->hooks;
        const int bytes = static_cast<int>(part.bytes);
        data.assign(static_cast<std::size_t>(bytes), 0xA5);
        const Way way = any_way();
        MPI_File file = any_together();
        const std::string how = "read " + std::to_string(static_cast<int>(way)) + " of " + std::to_string(bytes);
        MPI_Request request{};
        switch (way) {
            case Way::alone:
                must(io.File_read_at(alone_, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), how);
                break;
            case Way::at:
            case Way::at_of_pieces:
                must(io.File_read_at(file, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), how);
                break;
            case Way::pointer:
                must(io.File_seek(file, part.begin, MPI_SEEK_SET), "seek");
                must(io.File_read(file, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), how);
                break;
            case Way::at_all:
                must(io.File_read_at_all(file, part.begin, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), how);
                break;
            case Way::all:
                must(io.File_seek(file, part.begin, MPI_SEEK_SET), "seek");
                must(io.File_read_all(file, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), how);
                break;
            case Way::begin_at_all:
                must(io.File_read_at_all_begin(file, part.begin, data.data(), bytes, MPI_BYTE), how);
                must(io.File_read_at_all_end(file, data.data(), MPI_STATUS_IGNORE), how);
                break;
            default:
                must(io.File_iread_at(file, part.begin, data.data(), bytes, MPI_BYTE, &request), how);
                must(PMPI_Wait(&request, MPI_STATUS_IGNORE), how);
        }
        return how;
    }

    std::vector<MPI_File> together_;
    MPI_File alone_;
    MPI_Datatype split_memory_;
    std::mt19937 shared_, own_;
    std::vector<unsigned char> mine_ = std::vector<unsigned char>(static_cast<std::size_t>(piece * pieces), 0);
    std::int64_t steps_ = 0;
    std::string said_, problem_;
};

TEST_F(TurnsOrderTest, EachCallSeesWhatItsRankHasWritten) {
    for (const char* const name : {"file.engine", "file.library", "file.even"}) {
        SCOPED_TRACE(name);
        const std::string path = world->path(name);
        make_file(path);
        MPI_File first = open_view(path, MPI_COMM_WORLD), second = open_view(path, MPI_COMM_WORLD);
        MPI_File alone = open_view(path, MPI_COMM_SELF);
        if (path.ends_with(".engine")) world->backend.slow_down("file.engine", slow_ns);
        library_ns = path.ends_with(".library") ? slow_ns : 0;
        calls_alone = calls_together = 0;
        Program program({first, second}, alone, split_memory_, 17);
        for (int i = 0; i < 200; ++i) {
            program.step();
            if (i % 50 == 49 && on_any_rank(!program.problem().empty())) break;
        }
        EXPECT_EQ(program.problem(), "");
        EXPECT_GT(calls_together, 0) << "none by the library proves nothing";
        std::int64_t most = calls_together, least = calls_together;
        PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
        EXPECT_EQ(least, most) << "ranks went different ways";
        EXPECT_GT(world->backend.take_writes(), 0);
        world->hooks.File_close(&first);
        world->hooks.File_close(&second);
        world->hooks.File_close(&alone);
        PMPI_Barrier(MPI_COMM_WORLD);
        const std::vector<unsigned char> found = contents(path);
        ASSERT_EQ(found.size(), static_cast<std::size_t>(piece * pieces * world->ranks));
        for (std::size_t i = 0; i < program.mine().size(); ++i) {
            const std::size_t at =
                (i / piece * static_cast<std::size_t>(world->ranks) + static_cast<std::size_t>(world->rank)) * piece +
                i % piece;
            ASSERT_EQ(found[at], program.mine()[i]) << "byte " << i;
        }
        remove(path);
    }
}

// In a collective write of the library one rank may write the bytes of others, and these may be back before it has.
TEST_F(TurnsOrderTest, TheEnginesCallSeesWhatAnotherRankWroteForThisOneInTheLibrary) {
    const std::string path = world->path("file.late");
    make_file(path);
    MPI_File file = open_view(path, MPI_COMM_WORLD);
    world->backend.slow_down("file.late", long_ns);
    storage_ns = long_ns / 5;
    std::vector<unsigned char> data(static_cast<std::size_t>(piece * pieces)), back(data.size());
    const int bytes = static_cast<int>(data.size());
    std::int64_t wrong = 0;
    for (int call = 0; call < 36; ++call) {
        data.assign(data.size(), static_cast<unsigned char>(call + world->rank));
        EXPECT_EQ(world->hooks.File_write_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                  MPI_SUCCESS);
        MPI_Request request{};  // always the engine's
        EXPECT_EQ(world->hooks.File_iread_at(file, 0, back.data(), bytes, MPI_BYTE, &request), MPI_SUCCESS);
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += back == data ? 0 : 1;
    }
    storage_ns = 0;
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(calls_together, 4) << "those of the trial at least";
    world->hooks.File_close(&file);
    remove(path);
}

// The library's own calls must be right by themselves in these cases.
TEST_F(TurnsOrderTest, RandomCasesHoldWhoeverMakesTheirCalls) {
    for (std::uint64_t i = 0; i < 30; ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        const char* const names[] = {"case.engine", "case.library", "case.even"};
        const std::string name = names[i % 3];
        world->backend.slow_down(name == "case.engine" ? name : "", slow_ns / 4);
        library_ns = name == "case.library" ? slow_ns / 4 : 0;
        const cases::CaseResult result =
            cases::run_case(world->engine, cases::Level::tame, 11, i, MPI_COMM_WORLD, world->path(name.c_str()));
        EXPECT_EQ(all_problems(result), "");
        if (on_any_rank(HasFailure())) return;
    }
    EXPECT_GT(calls_alone + calls_together, 0);
}

}  // namespace
}  // namespace ioweir
