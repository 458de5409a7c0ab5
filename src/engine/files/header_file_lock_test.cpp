// HeaderFileLock: other jobs are waited for, and nobody else for ever.
#include "engine/files/header_file_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/testing.hpp"

namespace ioweir::engine {
namespace {

using std::chrono::milliseconds;

struct HeaderFileLockTest : testing::Test {
    TemporaryFolder folder;
    const std::string path = folder.file("file");
    const int mine = open_as(O_RDWR | O_CREAT);

    int open_as(int flags) const { return ::open(path.c_str(), flags | O_CLOEXEC, 0600); }
    ~HeaderFileLockTest() override { ::close(mine); }

    static int lock(int descriptor, int command, short type) {
        struct flock whole{};
        whole.l_type = type;
        whole.l_whence = SEEK_SET;
        return ::fcntl(descriptor, command, &whole);
    }
    /// Is it held by `mine`?
    bool is_locked() const {
        const int other = open_as(O_RDWR);
        const bool free = lock(other, F_OFD_SETLK, F_WRLCK) == 0;
        ::close(other);
        return !free;
    }
    /// What it says while another process does this before.
    std::optional<Error> problem_after(const std::function<void()>& work) const {
        int ready[2], end[2];
        EXPECT_EQ(::pipe(ready) + ::pipe(end), 0);
        const pid_t child = ::fork();
        char byte = 0;
        if (child == 0) {
            work();
            (void)!::write(ready[1], "x", 1);
            ::close(end[1]);
            (void)!::read(end[0], &byte, 1);
            ::_exit(0);
        }
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        std::optional<Error> problem;
        {
            const HeaderFileLock tried(mine, path, milliseconds(20));
            problem = tried.problem();
        }
        for (const int descriptor : {ready[0], ready[1], end[0], end[1]}) ::close(descriptor);
        EXPECT_EQ(::waitpid(child, nullptr, 0), child);
        return problem;
    }
};

TEST_F(HeaderFileLockTest, IsHeldAndLetGo) {
    {
        const HeaderFileLock held(mine, path);
        EXPECT_FALSE(held.problem());
        EXPECT_TRUE(is_locked());
    }
    EXPECT_FALSE(is_locked());
}

TEST_F(HeaderFileLockTest, WaitsForAnotherJobHoweverLong) {
    const int other = open_as(O_RDWR);
    ASSERT_EQ(lock(other, F_OFD_SETLK, F_WRLCK), 0);
    std::thread ends([&] {
        std::this_thread::sleep_for(milliseconds(60));
        EXPECT_EQ(lock(other, F_OFD_SETLK, F_UNLCK), 0);
    });
    const HeaderFileLock held(mine, path, milliseconds(1));
    EXPECT_FALSE(held.problem());
    EXPECT_TRUE(is_locked());
    ends.join();
    ::close(other);
}

TEST_F(HeaderFileLockTest, DoesNotWaitForWhoMayOnlyRead) {
    for (const int command : {F_OFD_SETLK, F_SETLK}) {
        const auto problem = problem_after([&] { (void)lock(open_as(O_RDONLY), command, F_RDLCK); });
        ASSERT_TRUE(problem.has_value());
        EXPECT_EQ(problem->number, EAGAIN);
        EXPECT_EQ(problem->value.find("by process ") != std::string::npos, command == F_SETLK) << problem->value;
        EXPECT_FALSE(is_locked());
    }
}

TEST_F(HeaderFileLockTest, DoesNotWaitForAProgramThatLocksItsOwnFiles) {
    EXPECT_TRUE(problem_after([&] { (void)lock(open_as(O_RDWR), F_SETLK, F_WRLCK); }).has_value());
}

TEST_F(HeaderFileLockTest, GoesOnWhereTheProgramItselfHasIt) {
    const int programs = open_as(O_RDWR);
    for (const int type : {F_WRLCK, F_RDLCK}) {
        ASSERT_EQ(lock(programs, F_SETLK, static_cast<short>(type)), 0);
        const HeaderFileLock tried(mine, path);
        EXPECT_FALSE(tried.problem());
    }
    ::close(programs);
}

}  // namespace
}  // namespace ioweir::engine
