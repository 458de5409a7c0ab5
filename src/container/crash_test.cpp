// Processes that are killed: a job at any of its system calls, one that puts a container together at any of its own, and readers that
// have it open meanwhile. Whoever comes afterwards finds bytes that somebody wrote there, all that was synced, and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "container/merge.hpp"
#include "container/sharing/locks.hpp"
#include "container/sharing/orphans.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

// ------------------------------------------------------------------------------------------------------ a child's end

enum class Ended { killed, done, failed, not_traced };

/// Runs `work` in a child, and kills that when it begins its nth system call. It is done when it makes fewer.
Ended run_until(int nth, const std::function<bool()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
        ::raise(SIGSTOP);
        ::_exit(work() ? 0 : 1);
    }
    int status = 0;
    bool enters = false;  // a call is announced twice
    for (int calls = 0;;) {
        if (::waitpid(child, &status, 0) != child) return Ended::failed;
        if (WIFEXITED(status) || WIFSIGNALED(status)) break;
        if (WSTOPSIG(status) == SIGSTOP)
            ::ptrace(PTRACE_SETOPTIONS, child, nullptr, long{PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL});
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            enters = !enters;
            if (enters && ++calls == nth) {
                ::kill(child, SIGKILL);
                ::waitpid(child, &status, 0);
                return Ended::killed;
            }
        }
        ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ended::done;
    return WIFEXITED(status) && WEXITSTATUS(status) == 2 ? Ended::not_traced : Ended::failed;
}

/// A place in memory that a child writes and its parent reads.
struct Shared {
    Shared()
        : value(static_cast<int*>(
              ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
    ~Shared() { ::munmap(value, sizeof(int)); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    int* const value;
};

/// Holds a container open through one process's own, until it is told to read it or is killed.
class Reader {
public:
    explicit Reader(const Place& place) {
        EXPECT_EQ(::pipe(ask_.data()), 0);
        EXPECT_EQ(::pipe(answer_.data()), 0);
        child_ = ::fork();
        if (child_ != 0) {
            ::close(ask_[0]);
            ::close(answer_[1]);
            char ready = 0;
            EXPECT_EQ(::read(answer_[0], &ready, 1), 1);
            return;
        }
        ::close(ask_[1]);
        ::close(answer_[0]);
        storage::PosixBackend posix;
        Clock clock;
        auto opened = Container::open(posix, clock, place.directory, {true, false, 0, 0, 0});
        if (!opened) ::_exit(1);
        auto container = opened.take();
        char word = 'r';
        while (::write(answer_[1], &word, 1) == 1 && ::read(ask_[0], &word, 1) == 1 && word != 'q') {
            const std::string text = read_all(*container, 1000);
            if (::write(answer_[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
        }
        container.reset();
        ::_exit(0);
    }
    ~Reader() { end(0); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// What it reads now.
    std::string read(std::size_t bytes) {
        EXPECT_EQ(::write(ask_[1], "x", 1), 1);
        std::string text(bytes, '?');
        std::size_t done = 0;
        while (done < bytes) {
            const ssize_t got = ::read(answer_[0], text.data() + done, bytes - done);
            if (got <= 0) break;
            done += static_cast<std::size_t>(got);
        }
        char ready = 0;
        EXPECT_EQ(::read(answer_[0], &ready, 1), 1);
        return text.substr(0, done);
    }
    /// Closes it in order, or kills it.
    void end(int signal) {
        if (child_ < 0) return;
        if (signal != 0)
            ::kill(child_, signal);
        else
            EXPECT_EQ(::write(ask_[1], "q", 1), 1);
        ::close(ask_[1]);
        ::close(answer_[0]);
        int status = 0;
        EXPECT_EQ(::waitpid(child_, &status, 0), child_);
        child_ = -1;
        if (signal == 0) {
            EXPECT_EQ(status, 0);
        }
    }

private:
    std::array<int, 2> ask_{}, answer_{};
    pid_t child_ = -1;
};

// --------------------------------------------------------------------------------------------------------- the jobs

const Shape shapes[] = {{2}, {0, Shape::Kind::log}, {3, Shape::Kind::subfiles, 8}};

constexpr std::size_t half = 40;

std::string letters(char first, std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(first + static_cast<char>(i % 26));
    return text;
}
/// What the first job leaves, and the second one: longer, and other in each byte.
const std::string before = letters('a', 2 * half);
const std::string after = letters('A', 2 * half + 10);

/// As a job of one rank. `synced` becomes 1 when the first half is for good, 2 when all is.
bool write_job(Place& place, const std::string& text, int* synced) {
    const auto generation = begin_generation(place.directory);
    if (!generation) return false;
    place.clock.adopt(generation.value().after);
    const Role role{false,
                    true,
                    1 % static_cast<std::int32_t>(std::max<std::int64_t>(1, place.header_file.shape.count)),
                    0,
                    generation.value().number,
                    "",
                    generation.value().after_dead};
    auto opened = Container::open(place.backend, place.clock, place.directory, role);
    if (!opened) return false;
    auto container = opened.take();
    bool good = container->write_at(-1, text.data(), half, 0).error == 0 && container->flush(true) == 0;
    *synced = 1;
    const auto rest = static_cast<std::int64_t>(text.size() - half);
    good = good && container->write_at(-1, text.data() + half, rest, half).error == 0;
    Left left;
    good = good && container->leave(role, &left) == 0;
    if (!place.directory.has_index())
        good = good && keep_sizes(place.directory, read_subfiles(place.directory).value(), role.generation) == 0;
    good = good && place.end(role.generation, left) == 0;
    if (good) *synced = 2;
    return good;
}

/// Of each byte the one or the other, the first half the other's if `synced`.
void expect_one_of(const std::string& text, const std::string& from, const std::string& to, int synced) {
    ASSERT_GE(text.size(), from.size());
    ASSERT_LE(text.size(), to.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool is_new = text[at] == to[at];
        const bool is_old = at < from.size() ? text[at] == from[at] : text[at] == '\0';
        ASSERT_TRUE(is_new || (is_old && !(synced >= 1 && at < half))) << "byte " << at << " is " << text[at];
    }
}

class Crash : public testing::TestWithParam<Shape> {
protected:
    /// IOWEIR_TEST_CRASH_STEP=1: at each system call; else at some of them, which are others for each shape.
    static int step() {
        const char* const given = std::getenv("IOWEIR_TEST_CRASH_STEP");
        if (given != nullptr) return std::atoi(given);
        return GetParam().kind == Shape::Kind::log ? 7 : 5;
    }
};

TEST_P(Crash, OfAJobLeavesWhatWasSyncedAndNothingThatNobodyWrote) {
    int killed = 0;
    for (int nth = 1;; nth += step()) {
        SCOPED_TRACE("killed at system call " + std::to_string(nth));
        Place place(GetParam());
        int first = 0;
        ASSERT_TRUE(write_job(place, before, &first));
        const Shared synced;
        const Ended ended = run_until(nth, [&] { return write_job(place, after, synced.value); });
        if (ended == Ended::not_traced) GTEST_SKIP() << "no process may be traced here";
        ASSERT_NE(ended, Ended::failed);
        const auto described = describe(place.path);
        ASSERT_TRUE(described.ok()) << described.error().message();
        auto reader = place.open({true, false, 0, 0, 0});
        const std::string text = read_all(*reader, 1000);
        ASSERT_NO_FATAL_FAILURE(expect_one_of(text, before, after, *synced.value));
        if (*synced.value == 2 || ended == Ended::done) {
            EXPECT_EQ(text, after);
        }
        // Merged elsewhere it is the same, and in its place only if nothing may be missing.
        ASSERT_TRUE(merge(place.backend, place.path, place.folder + "/other").ok());
        EXPECT_EQ(slurp(place.folder + "/other"), text);
        const bool whole = described.value().problems.empty();
        reader.reset();
        EXPECT_EQ(merge(place.backend, place.path, place.path).ok(), whole);
        if (whole) {
            EXPECT_EQ(slurp(place.path), text);
            EXPECT_TRUE(text == before || text == after);
        }
        // The next job goes on.
        if (!whole) {
            int next = 0;
            ASSERT_TRUE(write_job(place, after, &next));
            EXPECT_EQ(read_all(*place.open({true, false, 0, 0, 0}), 1000), after);
            // All that the dead one may have written is written over: nothing is missing.
            EXPECT_EQ(describe(place.path).value().problems, std::vector<std::string>());
            EXPECT_TRUE(merge(place.backend, place.path, place.path).ok());
            EXPECT_EQ(slurp(place.path), after);
            EXPECT_FALSE(fs::exists(place.directory.path));
        }
        if (ended == Ended::done) break;
        ++killed;
        ASSERT_LT(nth, 5000);
    }
    EXPECT_GT(killed, 5);
}

TEST_P(Crash, OfAMergeLeavesTheContainerOrTheFileAndNoReaderLosesBytes) {
    int killed = 0, containers = 0, files = 0;
    for (int nth = 1;; nth += step()) {
        SCOPED_TRACE("killed at system call " + std::to_string(nth));
        Place place(GetParam());
        int synced = 0;
        ASSERT_TRUE(write_job(place, after, &synced));
        Reader reader(place);
        const auto work = [&] { return merge(place.backend, place.path, place.path).ok(); };
        const Ended ended = run_until(nth, work);
        if (ended == Ended::not_traced) GTEST_SKIP() << "no process may be traced here";
        ASSERT_NE(ended, Ended::failed);
        EXPECT_EQ(reader.read(after.size()), after);
        const bool is_container = read_header_file(place.path).value().has_value();
        ++(is_container ? containers : files);
        if (is_container) {
            EXPECT_EQ(merge(place.backend, place.path, place.path).value(), std::ssize(after));
        }
        EXPECT_EQ(slurp(place.path), after);
        EXPECT_EQ(reader.read(after.size()), after) << "and still reads the container";
        reader.end(0);
        // Who was killed between the file and the directory leaves that to gc; else the reader has removed it.
        const auto orphans = find_orphans(place.folder).take();
        for (const Orphan& orphan : orphans) {
            EXPECT_EQ(ended, Ended::killed);
            EXPECT_EQ(orphan.problem, "");
            EXPECT_TRUE(remove_orphan(orphan.directory).ok());
        }
        EXPECT_EQ(std::distance(fs::directory_iterator(place.folder), fs::directory_iterator()), 1);
        if (ended == Ended::done) break;
        ++killed;
        ASSERT_LT(nth, 5000);
    }
    EXPECT_GT(killed, 5);
    EXPECT_GT(containers, 3);
    EXPECT_GT(files, 0);
}

TEST_P(Crash, OfAReaderLeavesADirectoryThatCanBeRemoved) {
    for (const int signal : {0, SIGKILL}) {
        Place place(GetParam());
        int synced = 0;
        ASSERT_TRUE(write_job(place, after, &synced));
        Reader one(place), other(place);
        EXPECT_TRUE(is_in_use(place.directory));
        ASSERT_TRUE(merge(place.backend, place.path, place.path).ok());
        EXPECT_EQ(slurp(place.path), after);
        EXPECT_TRUE(fs::exists(place.directory.path));
        const auto orphans = find_orphans(place.folder).value();
        ASSERT_EQ(orphans.size(), 1U);
        EXPECT_NE(orphans.front().problem.find("open"), std::string::npos);
        EXPECT_TRUE(orphans.front().in_use);
        EXPECT_FALSE(remove_orphan(place.directory.path).ok());
        one.end(signal);
        EXPECT_EQ(other.read(after.size()), after);
        other.end(signal);
        EXPECT_FALSE(is_in_use(place.directory));
        EXPECT_EQ(fs::exists(place.directory.path), signal != 0) << "the last one removes it, if it can";
        if (signal == 0) continue;
        EXPECT_EQ(find_orphans(place.folder).value().front().problem, "");
        EXPECT_TRUE(remove_orphan(place.directory.path).ok());
        EXPECT_FALSE(fs::exists(place.directory.path));
    }
}

/// What `gc` finds when a minute has gone by: nothing, or a directory that it can remove, and nothing else is left.
void expect_removable(const Place& place) {
    fs::remove(place.path);
    if (fs::exists(place.directory.path)) {
        const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
        const auto young = find_orphans(place.folder).take();
        ASSERT_EQ(young.size(), 1U);
        EXPECT_TRUE(young.front().problem.empty() || young.front().in_use) << young.front().problem;
        EXPECT_EQ(remove_orphan(place.directory.path).ok(), young.front().problem.empty());
        ::utimensat(AT_FDCWD, place.directory.path.c_str(), long_ago, 0);
    }
    for (const Orphan& orphan : find_orphans(place.folder).take()) {
        EXPECT_EQ(orphan.problem, "");
        EXPECT_TRUE(remove_orphan(orphan.directory).ok());
    }
    EXPECT_TRUE(fs::is_empty(place.folder));
}

TEST_P(Crash, OfWhoMakesADirectoryLeavesOneThatCanBeRemoved) {
    int killed = 0;
    for (int nth = 1;; ++nth) {
        SCOPED_TRACE("killed at system call " + std::to_string(nth));
        Place place(GetParam());
        ASSERT_EQ(remove(place.directory), 0);
        const auto work = [&] {
            const Directory made = directory_of(place.path, place.header_file);
            return make(made, place.path, place.header_file) == 0 && (made.has_index() || make_subfiles(made, {}).ok());
        };
        const Ended ended = run_until(nth, work);
        if (ended == Ended::not_traced) GTEST_SKIP() << "no process may be traced here";
        ASSERT_NE(ended, Ended::failed);
        ASSERT_NO_FATAL_FAILURE(expect_removable(place));
        if (ended == Ended::done) break;
        ++killed;
        ASSERT_LT(nth, 5000);
    }
    EXPECT_GT(killed, 5);
}

TEST_P(Crash, OfWhoRemovesADirectoryLeavesOneThatCanBeRemoved) {
    int killed = 0;
    for (int nth = 1;; ++nth) {
        SCOPED_TRACE("killed at system call " + std::to_string(nth));
        Place place(GetParam());
        int synced = 0;
        ASSERT_TRUE(write_job(place, after, &synced));
        const Ended ended = run_until(nth, [&] { return remove(place.directory) == 0; });
        if (ended == Ended::not_traced) GTEST_SKIP() << "no process may be traced here";
        ASSERT_NE(ended, Ended::failed);
        ASSERT_NO_FATAL_FAILURE(expect_removable(place));
        if (ended == Ended::done) break;
        ++killed;
        ASSERT_LT(nth, 5000);
    }
    EXPECT_GT(killed, 5);
}

/// However early the job dies, the directory leads to what it has made on a target.
TEST(CrashOfAJob, LeavesNoLogOnATargetThatCannotBeFound) {
    int killed = 0, with_log = 0;
    for (int nth = 1;; ++nth) {
        SCOPED_TRACE("killed at system call " + std::to_string(nth));
        Place place(Shape{0, Shape::Kind::log});
        const std::string target = place.folder + "/target";
        fs::create_directory(target);
        const auto work = [&] {
            const auto generation = begin_generation(place.directory, true);
            if (!generation) return false;
            const Role role{false, true, 0, 0, generation.value().number, target};
            auto writer = Container::open(place.backend, place.clock, place.directory, role);
            if (!writer) return false;
            Left left;
            return writer.value()->write_at(-1, after.data(), std::ssize(after), 0).error == 0 &&
                   writer.value()->leave(role, &left) == 0 &&
                   end_generation(place.directory, role.generation, place.clock.last(), left) == 0;
        };
        const Ended ended = run_until(nth, work);
        if (ended == Ended::not_traced) GTEST_SKIP() << "no process may be traced here";
        ASSERT_NE(ended, Ended::failed);
        with_log += fs::is_empty(target) ? 0 : 1;
        fs::remove(place.path);
        const auto orphans = find_orphans(place.folder).take();
        ASSERT_EQ(orphans.size(), 1U);
        EXPECT_EQ(orphans.front().problem, "");
        EXPECT_TRUE(remove_orphan(orphans.front().directory).ok());
        EXPECT_TRUE(fs::is_empty(target));
        if (ended == Ended::done) break;
        ++killed;
        ASSERT_LT(nth, 5000);
    }
    EXPECT_GT(killed, 5);
    EXPECT_GT(with_log, 3);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Crash, testing::ValuesIn(shapes), [](const testing::TestParamInfo<Shape>& one) {
    const Shape::Kind kind = one.param.kind;
    return std::string(kind == Shape::Kind::grouped ? "grouped" : kind == Shape::Kind::log ? "log" : "subfiles");
});

TEST(HeaderFileLock, IsOfWhatIsThereWhenItIsGiven) {
    Place place(1);
    int synced = 0;
    ASSERT_TRUE(write_job(place, after, &synced));
    auto taken = HeaderFileLock::take(place.path, HeaderFileLock::Kind::exclusive);
    ASSERT_TRUE(taken.ok());
    HeaderFileLock lock = taken.take();
    ASSERT_TRUE(lock.held());
    EXPECT_EQ(lock.header_file(), place.header_file);
    EXPECT_TRUE(HeaderFileLock::take(place.path, HeaderFileLock::Kind::shared, false).value().busy());
    const pid_t child = ::fork();
    if (child == 0) {
        // Waits, and then finds an ordinary file.
        storage::PosixBackend posix;
        const Refused refused = make_ordinary(posix, place.path, 1000);
        ::_exit(refused.error == 0 && slurp(place.path) == "other" ? 0 : 1);
    }
    ::usleep(50'000);
    spill(place.folder + "/new", "other");
    fs::rename(place.folder + "/new", place.path);
    lock = HeaderFileLock();
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    // Files that are no header files, and none, are not locked.
    EXPECT_FALSE(HeaderFileLock::take(place.path, HeaderFileLock::Kind::exclusive).value().held());
    EXPECT_FALSE(HeaderFileLock::take(place.folder + "/none", HeaderFileLock::Kind::exclusive).value().held());
}

TEST(HeaderFileLock, TwoAtATimeInAnyOrder) {
    Place one(1), other(1);
    std::array<pid_t, 2> children{};
    for (std::size_t i = 0; i < children.size(); ++i) {
        children[i] = ::fork();
        if (children[i] != 0) continue;
        bool held = true;
        for (int round = 0; round < 200; ++round) {
            const HeaderFileLocks locks = i == 0 ? take_both(one.path, other.path) : take_both(other.path, one.path);
            held = held && locks.one.held() && locks.other.held();
        }
        ::_exit(held ? 0 : 1);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
}

TEST(Ask, TellsTheInodeThatTheFileWillHave) {
    Place place(2);
    int synced = 0;
    ASSERT_TRUE(write_job(place, after, &synced));
    const auto answer = ask(place.path);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->bytes, std::ssize(after));
    ASSERT_TRUE(merge(place.backend, place.path, place.path).ok());
    struct stat status{};
    ASSERT_EQ(::stat(place.path.c_str(), &status), 0);
    EXPECT_EQ(status.st_ino, answer->inode);
    EXPECT_FALSE(ask(place.path).has_value());
}

}  // namespace
}  // namespace ioweir::container
