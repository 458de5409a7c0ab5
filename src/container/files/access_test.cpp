// Who may use the parts of a container: those who may use its file.
#include "container/files/access.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/file_access.hpp"
#include "base/testing.hpp"
#include "container/files/placed_log.hpp"
#include "container/merge.hpp"
#include "container/sharing/locked_file.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534, somebody = 65533, stranger = 65532;
constexpr gid_t team = 54321;

mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
}

/// What `work` returns, as another user: of nothing but this group.
int as_user(uid_t user, gid_t group, const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(user) != 0) ::_exit(99);
        ::_exit(work());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/// A container, in which one rank writes "0123456789", of a file with `mode`; with `targets` its parts lie there.
struct Shared {
    TemporaryFolder folder, target;
    storage::PosixBackend backend;
    std::string path = folder.file("file");
    HeaderFile header_file;
    Directory directory;
    bool targets;

    Shared(const std::string& kind, mode_t mode, gid_t group = ::getegid())
        : header_file(new_header_file(shape_of(kind)).take()),
          directory(directory_of(path, header_file)),
          targets(kind.ends_with("on targets")) {
        ::chmod(folder.path().c_str(), 0755);
        ::chmod(target.path().c_str(), 0777);
        spill(path, "");
        const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        EXPECT_EQ(::fchown(file, static_cast<uid_t>(-1), group), 0);
        EXPECT_EQ(::fchmod(file, mode), 0);
        EXPECT_EQ(make(directory, path, header_file, file), 0);
        if (!directory.has_index()) {
            const std::vector<std::string> places{target.path()};
            EXPECT_TRUE(make_subfiles(directory, targets ? places : std::vector<std::string>{}).ok());
        }
        spill(path, to_text(header_file));
        ::close(file);
        EXPECT_EQ(write("0123456789", 0), 0);
    }
    static Shape shape_of(const std::string& kind) {
        if (kind.starts_with("log")) return {0, Shape::Kind::log};
        if (kind.starts_with("subfiles")) return {2, Shape::Kind::subfiles, 4};
        return {2, Shape::Kind::grouped};
    }
    /// A job of one rank. 0, or where it went wrong.
    int write(const std::string& text, std::int64_t offset) {
        const Directory mine = directory_of(path, header_file);
        Clock clock;
        const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return 1;
        (void)follow_header_file(mine, file);
        ::close(file);
        auto begun = begin_generation(mine);
        if (!begun) return 2;
        const std::string place = targets && mine.is_log() ? target.path() : "";
        const Role role{false, true, 0, 0, begun.value().number, place};
        clock.adopt(begun.value().after);
        auto opened = Container::open(backend, clock, mine, role);
        if (!opened) return 3;
        if (opened.value()->write_at(-1, text.data(), std::ssize(text), offset).error != 0) return 4;
        Left left;
        if (opened.value()->leave(role, &left) != 0) return 5;
        if (!mine.has_index()) {
            const auto subfiles = read_subfiles(mine);
            if (!subfiles || keep_sizes(mine, subfiles.value(), role.generation) != 0) return 6;
        }
        return end_generation(mine, role.generation, clock.last(), left) != 0 ? 7 : 0;
    }
    int read(const std::string& wanted) {
        const Directory mine = directory_of(path, header_file);
        Clock clock;
        auto opened = Container::open(backend, clock, mine, {true, false, 0, 0, 0});
        if (!opened) return 11;
        std::string text(wanted.size(), '?');
        const auto done = opened.value()->read_at(-1, text.data(), std::ssize(text), 0);
        if (done.error != 0) return 12;
        return text == wanted ? 0 : 13;
    }
    /// By what changes the file and knows of nothing else; then an open for writing.
    void chmod(mode_t mode) const {
        EXPECT_EQ(::chmod(path.c_str(), mode), 0);
        EXPECT_EQ(follow_header_file_at(path), 0);
    }
    /// Each file and folder that has something of it.
    [[nodiscard]] std::map<std::string, mode_t> modes() const {
        std::map<std::string, mode_t> all{{directory.path, mode_of(directory.path)}};
        for (const auto& entry : fs::recursive_directory_iterator(directory.path))
            all[entry.path()] = mode_of(entry.path());
        for (const auto& entry : fs::directory_iterator(target.path())) all[entry.path()] = mode_of(entry.path());
        return all;
    }
    void expect_modes(mode_t file, mode_t folder_mode) const {
        for (const auto& [name, mode] : modes()) EXPECT_EQ(mode, fs::is_directory(name) ? folder_mode : file) << name;
    }
    /// How many of its files a user can read.
    int readable_by(uid_t user, gid_t group) {
        return as_user(user, group, [&] {
            int count = 0;
            for (const auto& [name, mode] : known) {
                const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                if (file >= 0 && !fs::is_directory(name)) ++count;
                if (file >= 0) ::close(file);
            }
            return count;
        });
    }
    std::map<std::string, mode_t> known;
};

class Access : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { before_ = ::umask(022); }
    void TearDown() override { ::umask(before_); }

private:
    mode_t before_ = 0;
};

TEST_P(Access, IsThatOfTheFileWhateverTheUmask) {
    Shared(GetParam(), 0600).expect_modes(0600, 0700);
    Shared(GetParam(), 0640).expect_modes(0640, 0750);
    ::umask(077);
    Shared(GetParam(), 0644).expect_modes(0644, 0755);
    Shared(GetParam(), 0666).expect_modes(0666, 0777);
}

TEST_P(Access, FollowsTheFile) {
    Shared shared(GetParam(), 0644);
    shared.chmod(0600);
    shared.expect_modes(0600, 0700);
    shared.chmod(0660);
    shared.expect_modes(0660, 0770);
    EXPECT_EQ(shared.write("abc", 2), 0);
    shared.expect_modes(0660, 0770);
    EXPECT_EQ(shared.read("01abc56789"), 0);
    shared.chmod(0400);
    shared.expect_modes(0400, 0700);
    shared.chmod(0600);
    EXPECT_EQ(shared.read("01abc56789"), 0);
}

TEST_P(Access, IsNotGivenToOthers) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared(GetParam(), 0644);
    shared.known = shared.modes();
    EXPECT_GE(shared.readable_by(nobody, nobody), 3) << "while all may read";
    shared.chmod(0600);
    EXPECT_EQ(shared.readable_by(nobody, nobody), 0);
    EXPECT_EQ(as_user(nobody, nobody, [&] { return shared.read("0123456789"); }), 11);
}

TEST_P(Access, OfAGroupLetsItsMembersGoOn) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared(GetParam(), 0660, team);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.read("0123456789"); }), 0);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.write("abc", 2); }), 0);
    EXPECT_EQ(as_user(somebody, team, [&] { return shared.write("xy", 3); }), 0);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.read("01axy56789"); }), 0);
    EXPECT_EQ(shared.read("01axy56789"), 0);
    shared.expect_modes(0660, 0770);
    shared.known = shared.modes();
    EXPECT_EQ(shared.readable_by(stranger, stranger), 0);
    EXPECT_TRUE(describe(shared.path).value().problems.empty());
}

TEST_P(Access, OfEverybodyLetsEverybodyGoOn) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared(GetParam(), 0666);
    EXPECT_EQ(as_user(nobody, nobody, [&] { return shared.write("abc", 2); }), 0);
    EXPECT_EQ(as_user(somebody, team, [&] { return shared.read("01abc56789"); }), 0);
    EXPECT_EQ(shared.read("01abc56789"), 0);
}

TEST_P(Access, OfAnAclIsThatOfTheParts) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared(GetParam(), 0600);
    {
        const int file = ::open(shared.path.c_str(), O_RDWR | O_CLOEXEC);
        auto access = guarded::access_of(file).access;
        access.named = {{false, nobody, 4}};
        access.mask = 4;
        EXPECT_EQ(guarded::give_access(file, access), 0);
        const bool has_acl = guarded::access_of(file).access.mask.has_value();
        ::close(file);
        if (!has_acl) GTEST_SKIP() << "the file system has no ACLs";
    }
    EXPECT_EQ(follow_header_file_at(shared.path), 0);
    EXPECT_EQ(as_user(nobody, nobody, [&] { return shared.read("0123456789"); }), 0);
    EXPECT_EQ(as_user(somebody, team, [&] { return shared.read("0123456789"); }), 11);
    EXPECT_EQ(shared.write("abc", 2), 0);
    EXPECT_EQ(as_user(nobody, nobody, [&] { return shared.read("01abc56789"); }), 0);
    const TemporaryFolder elsewhere;
    const std::string merged = elsewhere.file("merged");
    ASSERT_TRUE(merge(shared.backend, shared.path, merged).ok());
    ASSERT_TRUE(merge(shared.backend, shared.path, shared.path).ok());
    for (const std::string& path : {merged, shared.path}) {
        const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const auto access = guarded::access_of(file).access;
        ::close(file);
        EXPECT_EQ(access.named, (std::vector<guarded::FileAccess::Named>{{false, nobody, 4}})) << path;
        EXPECT_EQ(access.of_group, 0U) << path;
    }
}

TEST_P(Access, OfWhatIsMergedIsTheFiles) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared(GetParam(), 0660, team);
    ASSERT_EQ(::chown(shared.path.c_str(), nobody, team), 0);
    ASSERT_EQ(follow_header_file_at(shared.path, {0, false}), 0);
    ASSERT_EQ(as_user(nobody, team, [&] { return shared.write("abc", 2); }), 0);
    ASSERT_TRUE(merge(shared.backend, shared.path, shared.path).ok());
    struct stat status{};
    ASSERT_EQ(::stat(shared.path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, nobody);
    EXPECT_EQ(status.st_gid, team);
    EXPECT_EQ(status.st_mode & 0777, 0660U);
    EXPECT_EQ(slurp(shared.path), "01abc56789");
}

TEST_P(Access, IsGivenAwayWithTheFile) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    Shared shared(GetParam(), 0600);
    ASSERT_EQ(::chown(shared.path.c_str(), nobody, team), 0);
    EXPECT_EQ(follow_header_file_at(shared.path), 0);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.read("0123456789"); }), 11) << "nobody said who it was before";
    EXPECT_EQ(follow_header_file_at(shared.path, {0, false}), 0);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.read("0123456789"); }), 0);
    EXPECT_EQ(as_user(nobody, team, [&] { return shared.write("abc", 2); }), 0);
    for (const auto& [name, mode] : shared.modes()) {
        struct stat status{};
        ASSERT_EQ(::stat(name.c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, nobody) << name;
        EXPECT_EQ(status.st_gid, team) << name;
    }
}

/// A lock for reading keeps writers waiting: who may not write does not get at it.
TEST(AccessOfLocks, IsOfThoseWhoMayWrite) {
    const mode_t before = ::umask(022);
    Shared shared("log", 0644);
    for (const char* const name : {"atomic", "pointer.0123456789abcdef"}) {
        LockedFile lock(shared.backend, directory_of(shared.path, shared.header_file), name);
        ASSERT_EQ(lock.take(LockedFile::Kind::exclusive).error(), 0);
        for (const auto& [file, expected] :
             std::map<mode_t, mode_t>{{0600, 0600}, {0640, 0600}, {0644, 0600}, {0664, 0660}, {0666, 0666}}) {
            shared.chmod(file);
            EXPECT_EQ(mode_of(lock.path()), expected) << std::oct << file;
        }
        EXPECT_EQ(lock.take(LockedFile::Kind::exclusive).error(), 0);
    }
    (void)::umask(before);
}

TEST(AccessOfLocks, IsSoFromTheBeginning) {
    const mode_t before = ::umask(022);
    Shared shared("grouped", 0644);
    LockedFile lock(shared.backend, directory_of(shared.path, shared.header_file), "atomic");
    ASSERT_EQ(lock.take(LockedFile::Kind::exclusive).error(), 0);
    EXPECT_EQ(mode_of(lock.path()), 0600U);
    (void)::umask(before);
}

/// A header file that anybody has copied opens nothing.
TEST_P(Access, IsNotThatOfAStrangersCopyOfTheFile) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    Shared shared(GetParam(), 0600);
    const std::string copy = shared.folder.file("copy");
    fs::copy(shared.path, copy);
    ASSERT_EQ(::chmod(copy.c_str(), 0666), 0);
    ASSERT_EQ(::chown(copy.c_str(), nobody, nobody), 0);
    (void)follow_header_file_at(copy, {{}, true});
    (void)describe(copy).ok();
    shared.expect_modes(0600, 0700);
}

TEST_P(Access, OfTwoHeaderFilesIsWhatBothAllow) {
    Shared shared(GetParam(), 0600);
    const std::string copy = shared.folder.file("copy");
    fs::copy(shared.path, copy);
    ASSERT_EQ(::chmod(copy.c_str(), 0666), 0);
    EXPECT_EQ(follow_header_file_at(copy), 0);
    shared.expect_modes(0600, 0700);
}

/// Root follows a header file of a user's, who has put a file there that is not his.
TEST_P(Access, IsNotGivenToAFileOfSomebodyElses) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    Shared shared(GetParam(), 0600);
    ASSERT_EQ(::chown(shared.path.c_str(), nobody, nobody), 0);
    ASSERT_EQ(follow_header_file_at(shared.path, {0, false}), 0);
    const std::string roots = shared.directory.path_of("closed.9"), linked = shared.folder.file("linked");
    spill(roots, "root's");
    ASSERT_EQ(::chmod(roots.c_str(), 0600), 0);
    spill(linked, "his, and elsewhere, too");
    ASSERT_EQ(::chown(linked.c_str(), nobody, nobody), 0);
    ASSERT_EQ(::chmod(linked.c_str(), 0600), 0);
    fs::create_hard_link(linked, shared.directory.path_of("closed.8"));
    fs::create_symlink(roots, shared.directory.path_of("closed.7"));
    ASSERT_EQ(::chmod(shared.path.c_str(), 0666), 0);
    (void)follow_header_file_at(shared.path, {{}, true});
    EXPECT_EQ(mode_of(shared.directory.path), 0777U);
    EXPECT_EQ(mode_of(roots), 0600U);
    EXPECT_EQ(mode_of(linked), 0600U);
    struct stat status{};
    ASSERT_EQ(::stat(roots.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 0U);
}

/// Who may read a file can hold its lock.
TEST(AccessOfLocks, OneThatAStrangerHoldsIsNotWaitedForForEver) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    Shared shared("grouped", 0644);
    for (const int operation : {LOCK_EX, LOCK_SH}) {
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const pid_t holder = ::fork();
        if (holder == 0) {
            if (::setgid(nobody) != 0 || ::setuid(nobody) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) ::_exit(1);
            const int file = ::open(shared.path.c_str(), O_RDONLY | O_CLOEXEC);
            if (::flock(file, operation) != 0 || ::write(ready[1], "", 1) != 1) ::_exit(2);
            ::pause();
            ::_exit(3);
        }
        char byte = 1;
        ASSERT_EQ(::read(ready[0], &byte, 1), 1);
        ::alarm(60);
        const auto merged = merge(shared.backend, shared.path, shared.path);
        ::alarm(0);
        ASSERT_FALSE(merged.ok());
        EXPECT_NE(merged.error().message().find("by process " + std::to_string(holder) + " of user 65534"),
                  std::string::npos)
            << merged.error().message();
        EXPECT_EQ(::kill(holder, SIGKILL), 0);
        EXPECT_EQ(::waitpid(holder, nullptr, 0), holder);
        ::close(ready[0]);
        ::close(ready[1]);
    }
    EXPECT_TRUE(merge(shared.backend, shared.path, shared.path).ok());
    EXPECT_EQ(slurp(shared.path), "0123456789");
}

INSTANTIATE_TEST_SUITE_P(Kinds, Access,
                         testing::Values("grouped", "log", "subfiles", "log on targets", "subfiles on targets"),
                         [](const auto& kind) {
                             std::string name = kind.param;
                             std::replace(name.begin(), name.end(), ' ', '_');
                             return name;
                         });

}  // namespace
}  // namespace ioweir::container
