// ShownNumber: no process misses that another one has shown something, whether they map the file or take its lock.
#include "container/sharing/shown_number.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "container/testing.hpp"

namespace ioweir::container {
namespace {

struct ShownNumberTest : testing::Test {
    Place place{2};
    storage::PosixBackend posix;
    const std::string name = "atomic";
    const std::string path = place.directory.path_of(name);

    /// From now on it may not be mapped.
    void let_others_write() const { ASSERT_EQ(::chmod(path.c_str(), 0666), 0); }
};

/// A process's own lock and number.
struct User {
    User(storage::Backend& below, const Directory& directory) : lock(below, directory, "atomic"), shown(lock) {}
    LockedFile lock;
    ShownNumber shown;
};

TEST_F(ShownNumberTest, GrowsAboveStampsAndSaysWhoElseHasShown) {
    User one(posix, place.directory), other(posix, place.directory);
    EXPECT_EQ(one.shown.look().number, 0);
    const auto first = one.shown.raise(100, 0);
    EXPECT_EQ(first.number, 101);
    EXPECT_FALSE(first.by_others);
    EXPECT_EQ(other.shown.look().number, 101);
    const auto second = other.shown.raise(50, 101);
    EXPECT_EQ(second.number, 102);
    EXPECT_FALSE(second.by_others);
    EXPECT_TRUE(one.shown.raise(1000, first.number).by_others);
    EXPECT_EQ(other.shown.look().number, 1001);
}

TEST_F(ShownNumberTest, TakesTheLockOnceSomebodyCannotMapIt) {
    User first(posix, place.directory);
    ASSERT_EQ(first.shown.begin(), 0);
    const bool mapped = first.shown.without_lock();  // by the file system that the test runs on
    EXPECT_EQ(first.shown.raise(7, 0).number, 8);
    let_others_write();
    User later(posix, place.directory);
    EXPECT_EQ(later.shown.look().number, 8);
    EXPECT_FALSE(later.shown.without_lock());
    EXPECT_FALSE(first.shown.without_lock());
    EXPECT_EQ(later.shown.raise(20, 8).number, 21);
    EXPECT_EQ(first.shown.look().number, 21);
    const auto again = first.shown.raise(5, 8);
    EXPECT_EQ(again.number, 22);
    EXPECT_TRUE(again.by_others);
    EXPECT_EQ(later.shown.look().number, 22);
    RecordProperty("mapped", mapped ? 1 : 0);
}

TEST_F(ShownNumberTest, WhoHoldsTheLockSeesAndRaisesTheSame) {
    User one(posix, place.directory), other(posix, place.directory);
    ASSERT_EQ(one.shown.begin(), 0);
    ASSERT_EQ(other.shown.begin(), 0);
    {
        auto held = one.lock.take(LockedFile::Kind::exclusive);
        EXPECT_EQ(one.shown.raise(held, 10, 0).number, 11);
    }
    EXPECT_EQ(other.shown.look().number, 11);
    EXPECT_EQ(other.shown.raise(0, 11).number, 12);
    const auto held = one.lock.take(LockedFile::Kind::shared);
    EXPECT_EQ(one.shown.look(held).number, 12);
}

TEST_F(ShownNumberTest, SaysWhyThereIsNone) {
    User nowhere(posix, {place.folder + "/no/such", {}});
    EXPECT_EQ(nowhere.shown.look().error, ENOENT);
    EXPECT_EQ(nowhere.shown.raise(1, 0).error, ENOENT);
}

/// Each process writes down what it has shown before it raises the number, and after each look checks that all which is written down for
/// smaller numbers was seen: the slots of the others are not behind what their owners had raised by then. Some map the file, and
/// some, which come late, take the lock only.
TEST_F(ShownNumberTest, NobodyMissesWhatWasShown) {
    constexpr int children = 4, times = 2000;
    struct Slot {
        std::atomic<std::int64_t> written{0}, number{0};
    };
    void* memory = ::mmap(nullptr, sizeof(Slot) * children, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* slots = new (memory) Slot[children];
    {
        User early(posix, place.directory);
        ASSERT_EQ(early.shown.begin(), 0);
    }
    for (int child = 0; child < children; ++child) {
        if (::fork() != 0) continue;
        // The last one begins when the others are in the midst of it, and with a file that it may not map.
        if (child == children - 1) {
            while (slots[0].written.load() < times / 4) ::usleep(100);
            (void)::chmod(path.c_str(), 0666);
        }
        User user(posix, place.directory);
        std::int64_t seen = 0;
        int missed = 0;
        std::vector<std::int64_t> known(children, 0);
        const auto look_at_all = [&] {
            for (int i = 0; i < children; ++i) known[static_cast<std::size_t>(i)] = slots[i].written.load();
        };
        for (std::int64_t time = 1; time <= times; ++time) {
            slots[child].written.store(time);
            const auto shown = user.shown.raise(time, seen);
            if (shown.error != 0) ::_exit(2);
            if (shown.by_others) look_at_all();
            seen = shown.number;
            slots[child].number.store(time);  // has returned
            std::vector<std::int64_t> returned(children);
            for (int i = 0; i < children; ++i) returned[static_cast<std::size_t>(i)] = slots[i].number.load();
            const auto now = user.shown.look();
            if (now.error != 0) ::_exit(2);
            if (now.number != seen) {
                look_at_all();
                seen = now.number;
            }
            for (int i = 0; i < children; ++i) {
                const auto at = static_cast<std::size_t>(i);
                if (i != child && known[at] < returned[at]) ++missed;
            }
        }
        ::_exit(missed == 0 ? 0 : 1);
    }
    for (int child = 0; child < children; ++child) {
        int status = -1;
        ASSERT_GT(::wait(&status), 0);
        EXPECT_EQ(status, 0);
    }
    ::munmap(memory, sizeof(Slot) * children);
}

}  // namespace
}  // namespace ioweir::container
