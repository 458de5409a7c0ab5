// Files that are divided over the storage targets that are worth it (mapping = subfiles:auto), under real MPI processes: who probes what,
// probes that fail, where the bytes go, and what happens where there is nothing to choose from. Targets are token buckets.
#include "engine/files/probing.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/standard_error.hpp"
#include "container/files/subfiles.hpp"
#include "engine/files/rebalance.hpp"
#include "engine_world.hpp"
#include "mapped_world.hpp"

namespace ioweir {
namespace {

namespace fs = std::filesystem;
using probe::Measured;

constexpr const char* plan_text = R"(
[[file]]
match = "*.auto"
mapping = "subfiles:auto"
stripe = { size = 4 }
probe = { discard_ms = 10, window_ms = 60 }

[[file]]
match = "*.best"
mapping = "subfiles:3"
stripe = { size = 4 }
writers = "aggregators:2"
probe = { discard_ms = 10, window_ms = 60 }

[[file]]
match = "*.kept"
mapping = "subfiles:auto"
stripe = { size = 4 }
probe = { discard_ms = 10, window_ms = 60 }
probe_cache = 600

[[file]]
match = "*.moving"
mapping = "subfiles:4"
stripe = { size = 1024 }
probe = { discard_ms = 10, window_ms = 60 }
rebalance = true

[[file]]
match = "*.gathered"
mapping = "subfiles:4"
stripe = { size = 1024 }
writers = "aggregators:auto"
domains = "cyclic"
probe = { discard_ms = 10, window_ms = 60 }
rebalance = true

[[file]]
match = "*.inturns"
mapping = "subfiles:4"
stripe = { size = 1024 }
writers = "aggregators:auto"
domains = "cyclic"
order = "contention-free"
probe = { discard_ms = 10, window_ms = 60 }
rebalance = true

[[file]]
match = "*.chosenlogs"
mapping = "log"
targets = "auto"
probe = { discard_ms = 10, window_ms = 60 }

[[file]]
match = "*.logs"
mapping = "log"
targets = "auto"
probe = { discard_ms = 10, window_ms = 60, threshold = 1 }
rebalance = true

[[file]]
match = "*.gatheredlogs"
mapping = "log"
writers = "aggregators:4"
targets = "auto"
probe = { discard_ms = 10, window_ms = 60, threshold = 1 }
rebalance = true
)";

[[maybe_unused]] const testing::Environment* const registered = add_world(plan_text);

/// A manifest of token buckets in a folder of its own, made by rank 0. Rates in MB/s; 0: a directory that is not there.
class Lab {
public:
    explicit Lab(const std::string& name, const std::vector<int>& rates) : folder_(world->directory + "/" + name) {
        if (world->rank == 0) {
            fs::create_directory(folder_);
            std::ofstream manifest(folder_ + "/.ioweir-targets.toml");
            manifest << "state = \"" << folder_ << "/buckets\"\n";
            for (std::size_t i = 0; i < rates.size(); ++i) {
                const std::string target = "t" + std::to_string(i);
                if (rates[i] > 0) fs::create_directory(folder_ + "/" + target);
                manifest << "[[target]]\nname = \"" << target << "\"\ndirectory = \"" << target << "\"\nrate = \""
                         << std::max(1, rates[i]) << " MB\"\n";
            }
        }
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    ~Lab() {
        PMPI_Barrier(MPI_COMM_WORLD);
        if (world->rank == 0) fs::remove_all(folder_);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
    Lab(const Lab&) = delete;
    Lab& operator=(const Lab&) = delete;
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
    /// How many files lie on a target.
    [[nodiscard]] std::int64_t files_on(const std::string& target) const {
        return std::distance(fs::directory_iterator(path(target)), fs::directory_iterator());
    }
    /// Names of targets that hold a file, once for each, and of the folder where it holds a container's own subfiles.
    [[nodiscard]] std::string used(const std::string& path) const {
        const auto header_file = container::read_header_file(path);
        if (!header_file.ok() || !header_file.value()) return "no container";
        const auto subfiles = container::read_subfiles(container::directory_of(path, *header_file.value()));
        if (!subfiles) return subfiles.error().message();
        std::string names;
        for (const std::string& subfile : subfiles.value().paths) {
            EXPECT_TRUE(fs::is_regular_file(subfile)) << subfile;
            names += fs::path(subfile).parent_path().filename().string().substr(0, 2) + " ";
        }
        return names;
    }

private:
    const std::string folder_;
};

class ProbingTest : public MappedTest {
protected:
    static std::int64_t notes_with(const std::string& part) {
        return std::count_if(world->notes.begin(), world->notes.end(), [&](const Note& note) {
            return note.code == format::NoteCode::message && note.text.find(part) != std::string::npos;
        });
    }
};

/// Ranks that have probed each target, on this rank; and rates as told.
struct Fake {
    explicit Fake(std::vector<double> all) : rates(std::move(all)), calls(rates.size()) {}
    Measured operator()(std::int32_t target) {
        const auto at = static_cast<std::size_t>(target);
        ++calls[at];
        Measured one;
        one.bytes_per_second = rates[at];
        one.bytes = 1000;
        one.elapsed_ns = 7;
        one.direct = one.alone = true;
        return one;
    }
    std::vector<double> rates;
    std::vector<std::atomic<int>> calls;
};

/// How often each target was probed, over all ranks.
std::vector<int> sum_of(const Fake& fake) {
    std::vector<int> calls(fake.calls.begin(), fake.calls.end());
    PMPI_Allreduce(MPI_IN_PLACE, calls.data(), static_cast<int>(calls.size()), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return calls;
}

TEST_F(ProbingTest, EachTargetIsProbedByOneRankAndTheSlowOnesAgainByAnother) {
    Fake fake({100, 101, 10, 102, 103, 104, 105});
    probe::Options options;
    options.at_once = 2;
    const auto all = engine::probe_together({}, MPI_COMM_WORLD, 7, options, 0.05, fake);
    ASSERT_EQ(all.size(), 7U);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].bytes_per_second, fake.rates[i]);
        EXPECT_EQ(all[i].bytes, i == 2 ? 2000 : 1000);
        EXPECT_TRUE(all[i].direct && all[i].alone && all[i].problem.empty());
    }
    EXPECT_TRUE(all[2].confirmed);
    EXPECT_EQ(sum_of(fake), (std::vector<int>{1, 1, 2, 1, 1, 1, 1}));
    int mine = 0;
    for (const auto& calls : fake.calls) mine += calls;
    EXPECT_LE(mine, (7 + world->ranks - 1) / world->ranks + 1) << "spread over the ranks";
    if (world->ranks > 1) {
        EXPECT_LE(fake.calls[2], 1) << "the second time by another rank";
    }
}

TEST_F(ProbingTest, AProbeThatFailsIsAProblemOfItsTargetOnly) {
    for (int struck = 0; struck < world->ranks; ++struck) {
        Fake fake({50, 50, 50, 50, 50});
        int thrown = 0;
        std::mutex lock;
        const auto one = [&](std::int32_t target) -> Measured {
            if (world->rank == struck && target != 0) {
                const std::lock_guard guard(lock);
                ++thrown;
                if (target % 2 == 0) throw std::bad_alloc();
                Measured failed;
                failed.problem = std::string(1000, 'x');  // longer than what is told of it
                return failed;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return fake(target);
        };
        const auto all = engine::probe_together({}, MPI_COMM_WORLD, 5, {}, 0.05, one);
        ASSERT_EQ(all.size(), 5U);
        int bad = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(all[i].bytes_per_second, all[i].problem.empty() ? 50 : 0);
            bad += all[i].problem.empty() ? 0 : 1;
        }
        PMPI_Bcast(&thrown, 1, MPI_INT, struck, MPI_COMM_WORLD);
        EXPECT_EQ(bad, thrown) << "told to every rank";
        if (world->ranks <= 4) {
            EXPECT_GT(thrown, 0);
        }
    }
    // All of them: an answer all the same.
    const auto none = engine::probe_together({}, MPI_COMM_WORLD, 3, {}, 0.05,
                                             [](std::int32_t) -> Measured { throw std::bad_alloc(); });
    for (const Measured& one : none) EXPECT_NE(one.problem.find("bad_alloc"), std::string::npos);
}

TEST_F(ProbingTest, TheGoodTargetsGetASubfileEach) {
    const Lab lab("lab", {20, 2, 20, 0, 20});
    const std::string path = lab.path("file.auto");
    make(path);
    EXPECT_EQ(lab.used(path), "t0 t2 t4 ");
    if (world->rank == 0) {
        EXPECT_TRUE(world->noted(format::NoteCode::message, "5 storage targets (token buckets) probed in "));
        EXPECT_TRUE(world->noted(format::NoteCode::message, " 3 chosen: t0 "));
        EXPECT_TRUE(world->noted(format::NoteCode::message, "; left out: t1 "));
        EXPECT_TRUE(world->noted(format::NoteCode::message, "No such file or directory)"));
        EXPECT_TRUE(world->noted(format::NoteCode::plan_applied, "mapping subfiles:3"));
    }
    world->notes.clear();
    EXPECT_EQ(read_file(path), ten_each());
    MPI_File file = open(world->engine, path, MPI_MODE_RDWR);
    EXPECT_EQ(read_all(file), ten_each());
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(notes_with("probed"), 0) << "only a new file is probed for";
    merge_here(path);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), ten_each());
    file = open(world->engine, path, MPI_MODE_WRONLY);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(notes_with("probed"), 0);
    EXPECT_EQ(notes_with("an ordinary file is there already"), world->rank == 0 ? 1 : 0);
    remove(path);
}

TEST_F(ProbingTest, NSubfilesGoToTheNBest) {
    const Lab lab("lab", {20, 2, 20, 6});
    const std::string path = lab.path("file.best");
    make(path);
    EXPECT_EQ(lab.used(path), "t0 t2 t3 ") << "also one that auto would leave out";
    EXPECT_EQ(read_file(path), ten_each());
    remove_container(path);
    EXPECT_TRUE(fs::is_empty(lab.path("t0")) && fs::is_empty(lab.path("t3")));
    PMPI_Barrier(MPI_COMM_WORLD);
    const Lab two("two", {20, 20});
    const std::string more = two.path("file.best");
    make(more);
    EXPECT_EQ(two.used(more), "t0 t1 t0 ") << "more subfiles than targets";
    remove_container(more);
}

TEST_F(ProbingTest, WithoutTargetsTheFileIsSharedAndSaysWhy) {
    const std::string path = world->path("file.auto");
    testing::internal::CaptureStderr();
    remember_standard_error();
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    const std::string said = testing::internal::GetCapturedStderr();
    remember_standard_error();
    write_ten(file);
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(read_all(file), ten_each());
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), ten_each());
    if (world->rank == 0) {
        EXPECT_NE(said.find("shared, not divided into subfiles: no storage targets are known here: " + path),
                  std::string::npos)
            << said;
        EXPECT_TRUE(world->noted(format::NoteCode::message, "mapping subfiles:auto is not used"));
    }
    remove(path);
    // So many subfiles were asked for: they lie beside the file.
    const std::string best = world->path("file.best");
    make(best);
    EXPECT_TRUE(world->rank != 0 ||
                world->noted(format::NoteCode::message, "subfiles lie beside the file: no storage"));
    EXPECT_EQ(read_file(best), ten_each());
    remove_container(best);
}

TEST_F(ProbingTest, TargetsNoneOfWhichCanBeUsedAreLikeNone) {
    const Lab lab("lab", {0, 0});
    const std::string path = lab.path("file.auto");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), ten_each());
    EXPECT_TRUE(world->rank != 0 || world->noted(format::NoteCode::message, "none of the 2 storage targets"));
    remove(path);
}

/// Files whose third target turns slow after some calls.
class RebalanceTest : public ProbingTest {
protected:
    static constexpr std::int64_t stripe = 1024;
    static constexpr std::int64_t each = 4 * stripe;  // of a rank in a call
    const std::int64_t call_bytes_ = each * world->ranks;

    void TearDown() override { world->backend.slow_down("", 0); }
    static char value(std::int64_t offset) { return static_cast<char>('a' + offset / 7 % 26); }
    void write_call(MPI_File file, int call) const {
        std::string data;
        const std::int64_t from = call * call_bytes_ + world->rank * each;
        for (std::int64_t i = 0; i < each; ++i) data += value(from + i);
        EXPECT_EQ(
            calls_.File_write_at_all(file, from, data.data(), static_cast<int>(each), MPI_BYTE, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
    }
    [[nodiscard]] std::string expected(int calls) const {
        std::string data;
        for (std::int64_t i = 0; i < calls * call_bytes_; ++i) data += value(i);
        return data;
    }
    [[nodiscard]] std::string whole(MPI_File file, int calls) const {
        std::string text(static_cast<std::size_t>(calls * call_bytes_) + 100, '?');
        MPI_Status status;
        EXPECT_EQ(calls_.File_read_at(file, 0, text.data(), static_cast<int>(text.size()), MPI_BYTE, &status),
                  MPI_SUCCESS);
        int bytes = -1;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        text.resize(static_cast<std::size_t>(bytes));
        return text;
    }
    /// Why the slow target was not left, or nothing; then it was said, once.
    static std::string why_not_left(const Lab& lab, const std::string& path) {
        const std::string used = lab.used(path);
        if (used != "t0 t1 t2 t3 t0 t1 t3 ") return "subfiles lie on " + used;
        EXPECT_EQ(notes_with(" has fallen behind and gets no further stripes"), world->rank == 0 ? 1 : 0);
        EXPECT_EQ(notes_with("target of subfile 2 (") > 0, world->rank == 0);
        return {};
    }
    /// What is in a container that has no problems.
    static container::Description describe_whole(const std::string& path) {
        auto described = container::describe(path);
        EXPECT_TRUE(described.ok()) << described.error().message();
        if (!described.ok()) return {};
        EXPECT_EQ(described.value().problems, std::vector<std::string>());
        return described.take();
    }
    /// A busy machine makes every target slow at times: then the slow one is no slower than they are, or another one is left. So there are
    /// up to five attempts, each of which checks all data, and in one of them the slow target is left as it should be. `attempt` says what
    /// was otherwise, or nothing; it is collective, and rank 0's word counts.
    template <typename Attempt>
    static void expect_left(Attempt&& attempt) {
        constexpr int most = 5;
        std::string otherwise;
        for (int i = 0; i < most; ++i) {
            world->notes.clear();
            otherwise = attempt();
            int again = otherwise.empty() ? 0 : 1;
            PMPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (again == 0 || on_any_rank(HasFailure())) return;
        }
        ADD_FAILURE() << "in none of " << most << " attempts the slow target was left; in the last, " << otherwise;
    }
    /// Calls [begin, end); from the third call of a file on its third target is slow.
    void write_calls(MPI_File file, int begin, int end) {
        for (int call = begin; call < end; ++call) {
            if (call == 2) world->backend.slow_down("/t2/", 25'000'000);
            write_call(file, call);
        }
    }
    [[nodiscard]] std::string write_until_slow(const Lab& lab, const std::string& name);
    [[nodiscard]] std::string write_one_long_call(const Lab& lab, const std::string& name);
    [[nodiscard]] std::string write_beside_another_handle(const Lab& lab);
    [[nodiscard]] std::string write_logs_until_slow(const Lab& lab, const std::string& name);
};

/// In calls of one size; the third of them and all later ones with a slow target.
std::string RebalanceTest::write_until_slow(const Lab& lab, const std::string& name) {
    const std::string path = lab.path(name);
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    constexpr int calls = 12;
    write_calls(file, 0, 8);
    // What was written before and after is there for all.
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(whole(file, 8), expected(8));
    PMPI_Barrier(MPI_COMM_WORLD);
    write_calls(file, 8, calls);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    EXPECT_EQ(whole(file, calls), expected(calls));
    // Below the new division and above it, and longer than it was.
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_set_size(file, call_bytes_ + 5), MPI_SUCCESS);
    EXPECT_EQ(whole(file, calls), expected(calls).substr(0, static_cast<std::size_t>(call_bytes_) + 5));
    PMPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(calls_.File_set_size(file, calls * call_bytes_), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int call = 0; call < calls; ++call) write_call(file, call);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    world->backend.slow_down("", 0);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::string otherwise = why_not_left(lab, path);
    const container::Description described = describe_whole(path);
    EXPECT_EQ(described.bytes, calls * call_bytes_);
    // Three calls were needed to see it: the fourth after it turned slow is dealt anew. Through aggregators parts of calls count, too.
    const std::int64_t held = described.part_bytes.at(2);
    const std::int64_t least =
        name == "file.moving" || world->ranks == 1 ? 5 * call_bytes_ / 4 : 2 * call_bytes_ / 4 + 1;
    if (otherwise.empty() && (held < least || held > 5 * call_bytes_ / 4))
        otherwise = "it got " + std::to_string(held) + " bytes, from " + std::to_string(least) + " to " +
                    std::to_string(5 * call_bytes_ / 4) + " expected";
    // Somebody who knows nothing of all that.
    file = open(world->engine, path, MPI_MODE_RDONLY, MPI_COMM_SELF);
    EXPECT_EQ(whole(file, calls), expected(calls));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    merge_here(path);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), expected(calls));
    if (world->rank == 0) {
        for (const char* const target : {"t0", "t1", "t2", "t3"}) EXPECT_TRUE(fs::is_empty(lab.path(target)));
    }
    remove(path);
    return otherwise;
}

TEST_F(RebalanceTest, ATargetThatTurnsSlowGetsNoFurtherStripes) {
    const Lab lab("lab", {20, 20, 20, 20});
    for (const char* const name : {"file.moving", "file.gathered"}) {
        SCOPED_TRACE(name);
        expect_left([&] { return write_until_slow(lab, name); });
    }
}

/// 100 ms of storage time are at most 20 rows of 4 stripes; after one, and these, the slow one has cost seconds.
std::string RebalanceTest::write_one_long_call(const Lab& lab, const std::string& name) {
    const std::string path = lab.path(name);
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    world->backend.slow_down("/t2/", 100'000'000);
    world->backend.slow_down_too("/t", 5'000'000);
    constexpr std::int64_t each_now = 128 * stripe;
    const std::int64_t rows = world->ranks * each_now / (4 * stripe);
    std::string data, expected;
    for (std::int64_t i = 0; i < each_now * world->ranks; ++i) expected += value(i);
    data = expected.substr(static_cast<std::size_t>(world->rank * each_now), static_cast<std::size_t>(each_now));
    MPI_Status status;
    EXPECT_EQ(calls_.File_write_at_all(file, world->rank * each_now, data.data(), static_cast<int>(each_now), MPI_BYTE,
                                       &status),
              MPI_SUCCESS);
    int moved = 0;
    PMPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(moved, each_now);
    EXPECT_EQ(calls_.File_sync(file), MPI_SUCCESS);
    world->backend.slow_down("", 0);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::string text(expected.size() + 10, '?');
    EXPECT_EQ(calls_.File_read_at(file, 0, text.data(), static_cast<int>(text.size()), MPI_BYTE, &status), MPI_SUCCESS);
    PMPI_Get_count(&status, MPI_BYTE, &moved);
    EXPECT_EQ(text.substr(0, static_cast<std::size_t>(moved)), expected);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::string otherwise = why_not_left(lab, path);
    const container::Description described = describe_whole(path);
    const std::int64_t held = described.part_bytes.at(2);
    EXPECT_GE(held, 2 * stripe) << "seen twice";
    if (otherwise.empty() && held >= (rows - 5) * stripe)
        otherwise = "it got " + std::to_string(held) + " bytes, so that the call was over before it was left";
    remove_container(path);
    return otherwise;
}

TEST_F(RebalanceTest, ATargetIsLeftWithinACallThatTakesLong) {
    if (world->ranks == 1) GTEST_SKIP() << "nobody to exchange with: the call is one write for each stripe";
    const Lab lab("lab", {20, 20, 20, 20});
    for (const char* const name : {"file.gathered", "file.inturns"}) {
        SCOPED_TRACE(name);
        expect_left([&] { return write_one_long_call(lab, name); });
    }
}

std::string RebalanceTest::write_beside_another_handle(const Lab& lab) {
    const std::string path = lab.path("file.moving");
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_File other = open(world->engine, path, MPI_MODE_WRONLY);
    world->backend.slow_down("/t2/", 25'000'000);
    for (int call = 0; call < 8; ++call) write_call(file, call);
    EXPECT_EQ(calls_.File_close(&other), MPI_SUCCESS);
    EXPECT_EQ(lab.used(path), "t0 t1 t2 t3 ");
    const std::int64_t said = notes_with("is used all the same: another handle or job");
    EXPECT_LE(said, world->rank == 0 ? 1 : 0) << "said once";
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int call = 8; call < 14; ++call) write_call(file, call);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::string otherwise = why_not_left(lab, path);  // now it is alone
    if (world->rank == 0 && said == 0) otherwise = "nothing was said of it while another handle wrote";
    file = open(world->engine, path, MPI_MODE_RDONLY);
    EXPECT_EQ(whole(file, 14), expected(14));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    world->backend.slow_down("", 0);
    remove_container(path);
    return otherwise;
}

TEST_F(RebalanceTest, WhileAnotherHandleWritesNothingMoves) {
    const Lab lab("lab", {20, 20, 20, 20});
    expect_left([&] { return write_beside_another_handle(lab); });
}

/// Which of `targets` a rank's log is on (engine/files/mapped.cpp), of as many aggregators as targets each on its own.
std::int64_t target_of_log(int rank, std::int64_t targets) {
    return (rank * targets + world->ranks - 1) / world->ranks % targets;
}

TEST_F(ProbingTest, LogsLieOnTheGoodTargetsAlsoThoseOfLaterJobs) {
    const Lab lab("lab", {20, 2, 20, 0, 20});
    const std::string path = lab.path("file.chosenlogs");
    make(path);
    if (world->rank == 0) {
        EXPECT_TRUE(world->noted(format::NoteCode::message, " 3 chosen: t0 "));
        EXPECT_TRUE(world->noted(format::NoteCode::message, "; left out: t1 "));
    }
    std::vector<std::int64_t> logs(3, 0);
    for (int rank = 0; rank < world->ranks; ++rank) ++logs[static_cast<std::size_t>(target_of_log(rank, 3))];
    const auto expect_logs = [&](std::int64_t times) {
        PMPI_Barrier(MPI_COMM_WORLD);
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_EQ(lab.files_on("t" + std::to_string(2 * i)), times * logs[i]) << "t" << 2 * i;
        EXPECT_EQ(lab.files_on("t1"), 0);
        PMPI_Barrier(MPI_COMM_WORLD);
    };
    expect_logs(1);
    EXPECT_EQ(read_file(path), ten_each());
    world->notes.clear();
    MPI_File file = open(world->engine, path, MPI_MODE_WRONLY);
    write_ten(file);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(notes_with("probed"), 0) << "only a new file is probed for";
    if (logs[1] > 0 && logs[2] > 0) expect_logs(2);
    EXPECT_EQ(read_file(path), ten_each());
    remove_container(path);
    expect_logs(0);
}

TEST_F(ProbingTest, WithoutTargetsLogsLieBesideTheFileAndItIsSaid) {
    const std::string path = world->path("file.chosenlogs");
    make(path);
    EXPECT_EQ(notes_with("logs lie beside the file: no storage targets are known here"), world->rank == 0 ? 1 : 0);
    EXPECT_EQ(read_file(path), ten_each());
    world->notes.clear();
    MPI_File file = open(world->engine, path, MPI_MODE_WRONLY);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    EXPECT_EQ(notes_with("none of its logs lies on one"), world->rank == 0 ? 1 : 0);
    remove_container(path);
    const std::string other = world->path("file.logs");
    make(other);
    EXPECT_EQ(notes_with("rebalance is not used: logs lie on one target only, or on none"), world->rank == 0 ? 1 : 0);
    remove_container(other);
}

std::string RebalanceTest::write_logs_until_slow(const Lab& lab, const std::string& name) {
    const bool gathered = name == "file.gatheredlogs";
    const std::string path = lab.path(name);
    MPI_File file = open(world->engine, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    constexpr int calls = 12;
    write_calls(file, 0, calls);
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    world->backend.slow_down("", 0);
    PMPI_Barrier(MPI_COMM_WORLD);
    std::vector<std::int64_t> logs(4, 0);
    for (int rank = 0; rank < world->ranks; ++rank) ++logs[static_cast<std::size_t>(target_of_log(rank, 4))];
    // With one rank there is nothing to compare its log with.
    const std::int64_t movers = world->ranks >= 2 ? logs[2] : 0;
    std::vector<std::int64_t> files;
    for (const char* const target : {"t0", "t1", "t2", "t3"}) files.push_back(lab.files_on(target));
    const std::int64_t all = files[0] + files[1] + files[2] + files[3];
    std::string otherwise;
    if (files[2] != logs[2] || all != world->ranks + movers)
        otherwise = std::to_string(files[2]) + " logs of " + std::to_string(all) + " lie on it";
    if (otherwise.empty()) {
        EXPECT_EQ(notes_with("target of logs 2 ("), world->rank == 0 && movers > 0 ? 1 : 0);
        EXPECT_EQ(notes_with("has fallen behind"), world->rank == 0 && movers > 0 ? 1 : 0);
    }
    const container::Description described = describe_whole(path);
    EXPECT_EQ(described.bytes, calls * call_bytes_);
    // Three calls were needed to see it.
    for (const auto& entry : fs::directory_iterator(lab.path("t2"))) {
        if (!gathered && movers > 0 && otherwise.empty() && entry.file_size() != 4096 + 5 * each)
            otherwise = "a log on it has " + std::to_string(entry.file_size()) + " bytes";
    }
    file = open(world->engine, path, MPI_MODE_RDONLY, MPI_COMM_SELF);
    EXPECT_EQ(whole(file, calls), expected(calls));
    EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
    merge_here(path);
    const auto bytes = contents(path);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), expected(calls));
    for (const char* const target : {"t0", "t1", "t2", "t3"}) EXPECT_EQ(lab.files_on(target), 0);
    remove(path);
    return otherwise;
}

TEST_F(RebalanceTest, LogsOnATargetThatTurnsSlowGoOnOnOthers) {
    const Lab lab("lab", {20, 20, 20, 20});
    for (const char* const name : {"file.logs", "file.gatheredlogs"}) {
        SCOPED_TRACE(name);
        expect_left([&] { return write_logs_until_slow(lab, name); });
    }
}

/// Fewest logs first, the lowest of equals; never one that was left.
TEST(MoversOfLogs, GoWhereFewestAre) {
    using Numbers = std::vector<std::size_t>;
    EXPECT_EQ(engine::targets_of_movers({1, 2, 1}, {true, false, false}, 2), (Numbers{2, 1}));
    EXPECT_EQ(engine::targets_of_movers({0, 0, 5}, {false, false, true}, 5), (Numbers{0, 1, 0, 1, 0}));
    EXPECT_EQ(engine::targets_of_movers({3, 1}, {false, true}, 1), (Numbers{0}));
    EXPECT_EQ(engine::targets_of_movers({1, 1}, {true, true}, 1), Numbers{});
    EXPECT_EQ(engine::targets_of_movers({1, 1}, {true, false}, 0), Numbers{});
}

TEST_F(ProbingTest, WhatWasFoundIsKeptOnlyOnRequest) {
    const Lab lab("lab", {20, 2, 20});
    ASSERT_EQ(::setenv("XDG_CACHE_HOME", lab.path("cache").c_str(), 1), 0);
    const std::string first = lab.path("first.kept"), second = lab.path("second.kept"), third = lab.path("third.auto");
    make(first);
    EXPECT_EQ(notes_with(" probed in "), world->rank == 0 ? 1 : 0);
    world->notes.clear();
    make(second);
    EXPECT_EQ(notes_with(" as probed "), world->rank == 0 ? 1 : 0);
    EXPECT_EQ(lab.used(second), lab.used(first));
    world->notes.clear();
    make(third);
    EXPECT_EQ(notes_with(" probed in "), world->rank == 0 ? 1 : 0) << "this rule does not ask for it";
    for (const std::string& path : {first, second, third}) {
        EXPECT_EQ(read_file(path), ten_each());
        remove_container(path);
    }
}

}  // namespace
}  // namespace ioweir
