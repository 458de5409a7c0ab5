// LockedFile: of processes and threads that count in it, none loses a step; a lock ends with its process.
#include "container/sharing/locked_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;
using Kind = LockedFile::Kind;
using Numbers = LockedFile::Numbers;

struct LockedFileTest : testing::Test {
    Place place{2};
    storage::PosixBackend posix;
    const std::string name = "pointer.0123456789abcdef";
    const std::string path = place.directory.path_of(name);

    static void count(LockedFile& file, int times) {
        for (int i = 0; i < times; ++i) {
            auto held = file.take(Kind::exclusive);
            ASSERT_EQ(held.error(), 0);
            ASSERT_EQ(held.put({held.numbers().first + 1, -held.numbers().first - 1}), 0);
        }
    }
};

TEST_F(LockedFileTest, IsMadeAtFirstUseAndRemovedByWhoeverUsedIt) {
    LockedFile used(posix, place.directory, name), unused(posix, place.directory, name);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(used.take(Kind::shared).numbers(), Numbers{});
    EXPECT_TRUE(fs::exists(path));
    unused.remove();
    EXPECT_TRUE(fs::exists(path));
    used.remove();
    EXPECT_FALSE(fs::exists(path));
    used.remove();  // somebody else has done it
}

TEST_F(LockedFileTest, ThreadsAndProcessesLoseNothing) {
    constexpr int children = 3, threads = 3, times = 60;
    for (int child = 0; child < children; ++child) {
        if (::fork() != 0) continue;
        LockedFile file(posix, place.directory, name);
        count(file, times);
        ::_exit(HasFailure() ? 1 : 0);
    }
    LockedFile one(posix, place.directory, name), other(posix, place.directory, name);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back([&, i] { count(i == 0 ? other : one, times); });
    for (std::thread& thread : all) thread.join();
    for (int child = 0; child < children; ++child) {
        int status = -1;
        ASSERT_GT(::wait(&status), 0);
        EXPECT_EQ(status, 0);
    }
    constexpr std::int64_t sum = (children + threads) * times;
    EXPECT_EQ(one.take(Kind::shared).numbers(), (Numbers{sum, -sum}));
}

TEST_F(LockedFileTest, AKilledProcessHoldsNothing) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        LockedFile file(posix, place.directory, name);
        auto held = file.take(Kind::exclusive);
        (void)held.put({7, 8});
        (void)!::write(pipe_ends[1], "x", 1);
        for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(pipe_ends[0], &byte, 1), 1);
    LockedFile file(posix, place.directory, name);
    std::thread killer([&] { ::kill(child, SIGKILL); });
    auto held = file.take(Kind::exclusive);  // hangs if the lock does not end with the child
    EXPECT_EQ(held.error(), 0);
    EXPECT_EQ(held.numbers(), (Numbers{7, 8}));
    killer.join();
    ::waitpid(child, nullptr, 0);
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
}

/// Programs that close every descriptor they find may get its number for a file of their own.
TEST_F(LockedFileTest, WritesInNobodysFileAfterItsDescriptorWasClosed) {
    LockedFile file(posix, place.directory, name);
    count(file, 2);
    const std::string mine = place.folder + "/mine";
    spill(mine, "the program's own bytes");
    int number = -1;
    for (int fd = 3; fd < 256 && number < 0; ++fd) {
        std::error_code unknown;
        if (fs::read_symlink("/proc/self/fd/" + std::to_string(fd), unknown) == path) number = fd;
    }
    ASSERT_GE(number, 0);
    const int other = ::open(mine.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::dup2(other, number), number);
    count(file, 1);
    EXPECT_EQ(slurp(mine), "the program's own bytes");
    EXPECT_EQ(file.take(Kind::shared).numbers(), (Numbers{3, -3}));
    ::close(number);
    ::close(other);
}

TEST_F(LockedFileTest, SaysWhyThereIsNone) {
    LockedFile nowhere(posix, {place.folder + "/no/such", {}}, "folder");
    EXPECT_EQ(nowhere.take(Kind::exclusive).error(), ENOENT);
    spill(path, "torn");
    LockedFile torn(posix, place.directory, name);
    EXPECT_EQ(torn.take(Kind::exclusive).error(), EIO);
    EXPECT_EQ(torn.take(Kind::exclusive).error(), EIO) << "and it is not locked for ever";
}

TEST_F(LockedFileTest, GoesWithItsContainer) {
    LockedFile pointer(posix, place.directory, name), atomic(posix, place.directory, "atomic");
    EXPECT_EQ(pointer.take(Kind::exclusive).error(), 0);
    EXPECT_EQ(atomic.take(Kind::exclusive).error(), 0);
    EXPECT_EQ(remove(place.directory), 0);
    EXPECT_FALSE(fs::exists(place.directory.path));
}

}  // namespace
}  // namespace ioweir::container
