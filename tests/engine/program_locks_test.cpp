// A program's own locks (fcntl) of files that it opens through MPI: they do not keep it waiting for itself, and they stay.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "mapped_world.hpp"

namespace ioweir {
namespace {

/// As the preload finds out, but for the engine's own descriptor: here every one counts as the program's.
bool has_open(std::uint64_t device, std::uint64_t inode) {
    DIR* const list = ::opendir("/proc/self/fd");
    bool found = false;
    while (const dirent* const entry = ::readdir(list)) {
        struct stat info{};
        found = found || (::fstat(std::atoi(entry->d_name), &info) == 0 && info.st_dev == device &&
                          info.st_ino == inode && entry->d_name[0] != '.');
    }
    ::closedir(list);
    return found;
}

[[maybe_unused]] const testing::Environment* const registered =
    add_world(plan_of_parts, WorldOptions{.verify = false, .program_has_open = has_open});

class ProgramLocksTest : public MappedTest {
protected:
    static struct flock whole_file() {
        struct flock whole{};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        return whole;
    }
    /// This rank's lock of a file that it has open from now on.
    static int lock(const std::string& path) {
        const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct flock whole = whole_file();
        EXPECT_EQ(::fcntl(descriptor, F_SETLK, &whole), 0);
        return descriptor;
    }
    static bool is_locked(const std::string& path) {
        const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        struct flock there = whole_file();
        EXPECT_EQ(::fcntl(other, F_OFD_GETLK, &there), 0);
        // Closing it ends the lock: this is the last look.
        ::close(other);
        return there.l_type != F_UNLCK && there.l_pid == ::getpid();
    }
};

TEST_F(ProgramLocksTest, DoNotKeepAProgramFromItsOwnFile) {
    const std::string path = world->path("file.log");
    const int locked = world->rank == 0 ? lock(path) : -1;
    PMPI_Barrier(MPI_COMM_WORLD);
    make(path);
    if (locked >= 0) ::close(locked);
    EXPECT_EQ(read_file(path), ten_each());
    remove_container(path);
}

TEST_F(ProgramLocksTest, StayWhenItIsOpened) {
    const std::string path = world->path("file.plain");
    if (world->rank == 0) {
        const int locked = lock(path);
        EXPECT_EQ(::pwrite(locked, "0123456789", 10, 0), 10);  // as few bytes as a header file has
        MPI_File file = open(world->engine, path, MPI_MODE_RDONLY, MPI_COMM_SELF);
        EXPECT_TRUE(is_locked(path));
        EXPECT_EQ(calls_.File_close(&file), MPI_SUCCESS);
        ::close(locked);
    }
    remove(path);
}

}  // namespace
}  // namespace ioweir
