// Opening what somebody else may have put there: whatever stands in the place of a file, nothing outside of the folder is touched, nothing
// waits, and no memory is reserved for it.
#include "base/guarded_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/testing.hpp"

namespace ioweir::guarded {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
bool is_root() { return ::geteuid() == 0; }

/// A folder "in" to be worked in, and a file and a folder outside of it that must stay as they are.
class GuardedFiles : public ::testing::Test {
protected:
    void SetUp() override {
        fs::create_directory(inside_ = temporary_.file("in"));
        fs::create_directory(outside_ = temporary_.file("out"));
        spill(outside_ + "/file", "outside");
        auto opened = Folder::open(inside_);
        ASSERT_TRUE(opened.ok()) << opened.error().message();
        folder_ = opened.take();
    }
    void TearDown() override {
        EXPECT_EQ(slurp(outside_ + "/file"), "outside");
        EXPECT_EQ(std::distance(fs::directory_iterator(outside_), fs::directory_iterator()), 1);
    }
    [[nodiscard]] std::string in(const std::string& name) const { return inside_ + "/" + name; }

    /// errno values of opening it for reading and for writing, and of making one there.
    struct Answers {
        int read, write, cut, make;
        friend bool operator==(const Answers&, const Answers&) = default;
        friend void PrintTo(const Answers& a, std::ostream* out) {
            *out << std::strerror(a.read) << ", " << std::strerror(a.write) << ", " << std::strerror(a.cut) << ", "
                 << std::strerror(a.make);
        }
    };
    [[nodiscard]] Answers answers(const std::string& name) const {
        const auto number = [](const Result<File>& result) { return result ? 0 : result.error().number; };
        return {number(folder_.file(name)), number(folder_.file(name, O_RDWR)),
                number(folder_.file(name, O_WRONLY | O_CREAT | O_TRUNC)),
                number(folder_.file(name, O_WRONLY | O_CREAT | O_EXCL))};
    }

    TemporaryFolder temporary_;
    std::string inside_, outside_;
    Folder folder_;
};

TEST_F(GuardedFiles, ReadsWritesReplacesAndRemoves) {
    EXPECT_EQ(folder_.write_new("text", "one\n"), 0);
    EXPECT_EQ(folder_.write_new("text", "other\n"), EEXIST);
    EXPECT_EQ(folder_.read("text", 4).value(), "one\n");
    EXPECT_EQ(folder_.read("text", 3).error().number, EFBIG);
    EXPECT_EQ(folder_.replace("text", "text.next", "two\n", 0640, true), 0);
    EXPECT_EQ(folder_.read("text", 100).value(), "two\n");
    EXPECT_EQ(folder_.make_folder("deep"), 0);
    EXPECT_EQ(folder_.make_folder("deep/deeper"), 0);
    EXPECT_EQ(folder_.write_new("deep/deeper/file", "three"), 0);
    EXPECT_EQ(folder_.rename("deep/deeper/file", "deep/moved"), 0);
    const auto deep = folder_.folder("deep");
    ASSERT_TRUE(deep.ok());
    EXPECT_EQ(deep.value().read("moved", 5).value(), "three");
    Names names = folder_.names();
    std::sort(names.names.begin(), names.names.end());
    EXPECT_EQ(names.names, (std::vector<std::string>{"deep", "text"}));
    EXPECT_EQ(names.error, 0);
    EXPECT_EQ(folder_.remove("deep"), EISDIR);
    EXPECT_EQ(folder_.remove_folder("deep"), ENOTEMPTY);
    EXPECT_EQ(folder_.remove("deep/moved"), 0);
    EXPECT_EQ(folder_.remove_folder("deep/deeper"), 0);
    EXPECT_EQ(folder_.remove_folder("deep"), 0);
    EXPECT_EQ(folder_.remove("text"), 0);
    EXPECT_EQ(folder_.remove("text"), ENOENT);
    EXPECT_EQ(folder_.make_durable(), 0);
    EXPECT_TRUE(fs::is_empty(inside_));
}

TEST_F(GuardedFiles, ListsMoreNamesThanOneAnswerHolds) {
    constexpr int count = 3000;
    for (int i = 0; i < count; ++i) spill(in("a-name-that-is-rather-long." + std::to_string(i)), "");
    EXPECT_EQ(folder_.names().names.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(folder_.names().names.size(), static_cast<std::size_t>(count));
}

TEST_F(GuardedFiles, FollowsNoLinkToAFile) {
    fs::create_symlink(outside_ + "/file", in("link"));
    EXPECT_EQ(answers("link"), (Answers{ELOOP, ELOOP, ELOOP, EEXIST}));
    EXPECT_NE(folder_.file("link").error().message().find("symbolic link"), std::string::npos);
    // A replacement takes the link's place, and removal takes the link.
    EXPECT_EQ(folder_.replace("link", "link.next", "mine"), 0);
    EXPECT_FALSE(fs::is_symlink(in("link")));
    fs::create_symlink(outside_ + "/file", in("other"));
    EXPECT_EQ(folder_.remove("other"), 0);
    // Nor one in the place of the draft.
    fs::create_symlink(outside_ + "/file", in("link.next"));
    EXPECT_EQ(folder_.replace("link", "link.next", "mine again"), 0);
    EXPECT_EQ(slurp(in("link")), "mine again");
}

TEST_F(GuardedFiles, MakesNothingBehindADanglingLink) {
    fs::create_symlink(outside_ + "/new", in("link"));
    EXPECT_EQ(answers("link"), (Answers{ELOOP, ELOOP, ELOOP, EEXIST}));
}

TEST_F(GuardedFiles, FollowsNoLinkToAFolder) {
    fs::create_symlink(outside_, in("link"));
    EXPECT_EQ(answers("link"), (Answers{ELOOP, ELOOP, ELOOP, EEXIST}));
    EXPECT_EQ(answers("link/file"), (Answers{ELOOP, ELOOP, ELOOP, ELOOP}));
    EXPECT_EQ(folder_.folder("link").error().number, ELOOP);
    EXPECT_EQ(Folder::open(in("link")).error().number, ELOOP);
    EXPECT_TRUE(Folder::follow(in("link")).ok());
    for (const int error : {folder_.remove("link/file"), folder_.remove_folder("link/file"),
                            folder_.make_folder("link/new"), folder_.rename("link/file", "stolen"),
                            folder_.write_new("link/new", "x"), folder_.replace("link/file", "draft", "x")})
        EXPECT_TRUE(error == ELOOP || error == ENOTDIR) << error;
    EXPECT_EQ(folder_.link_at("link"), outside_);
    EXPECT_EQ(folder_.link_at("link/file"), "");
    EXPECT_TRUE(folder_.make_link("link/new", "anywhere") != 0);
}

TEST_F(GuardedFiles, StaysBeneath) {
    for (const char* const name :
         {"../out/file", "deep/../../out/file", "/etc/passwd", "", ".", "..", "a//b", "a/", "./a"}) {
        EXPECT_EQ(answers(name), (Answers{EXDEV, EXDEV, EXDEV, EXDEV})) << name;
        EXPECT_EQ(folder_.remove(name), EXDEV) << name;
        EXPECT_EQ(folder_.rename("a", name) == 0, false) << name;
        EXPECT_FALSE(folder_.folder(name).ok()) << name;
    }
}

TEST_F(GuardedFiles, WaitsForNoPipe) {
    ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0666), 0);
    EXPECT_EQ(answers("pipe"), (Answers{ENXIO, ENXIO, ENXIO, EEXIST}));
    EXPECT_NE(folder_.file("pipe").error().message().find("it is a pipe"), std::string::npos);
    EXPECT_EQ(folder_.folder("pipe").error().number, ENOTDIR);
    EXPECT_EQ(folder_.remove("pipe"), 0);
}

TEST_F(GuardedFiles, OpensNoSocketFolderOrDevice) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, in("socket").c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(answers("socket"), (Answers{ENXIO, ENXIO, ENXIO, EEXIST}));
    ::close(fd);
    fs::create_directory(in("folder"));
    EXPECT_EQ(answers("folder"), (Answers{EISDIR, EISDIR, EISDIR, EEXIST}));
    fs::create_symlink("/dev/zero", in("zero"));
    EXPECT_EQ(answers("zero").read, ELOOP);
    if (is_root() && ::mknod(in("device").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0) {
        const int error = folder_.file("device").error().number;
        EXPECT_TRUE(error == ENXIO || error == EACCES) << error;  // EACCES: a file system without devices
    }
}

TEST_F(GuardedFiles, ReservesNoMemoryForAHugeFile) {
    spill(in("huge"), "x");
    fs::resize_file(in("huge"), std::uintmax_t{1} << 40);
    struct rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    EXPECT_EQ(folder_.read("huge", 1 << 20).error().number, EFBIG);
    EXPECT_NE(folder_.read("huge", 1 << 20).error().message().find("1 TiB"), std::string::npos);
    ::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1024);  // KiB
    EXPECT_EQ(folder_.file("huge").value().read_part((std::int64_t{1} << 40) - 1, 4096).value().size(), 1U);
}

TEST_F(GuardedFiles, WritesNoFileThatHasOtherNames) {
    fs::create_hard_link(outside_ + "/file", in("hard"));
    EXPECT_EQ(answers("hard"), (Answers{0, EMLINK, EMLINK, EEXIST}));
    EXPECT_EQ(folder_.replace("hard", "draft", "mine"), 0);
    EXPECT_EQ(slurp(in("hard")), "mine");
}

TEST_F(GuardedFiles, BelievesNoFileOfSomebodyElses) {
    if (!is_root()) GTEST_SKIP() << "only root can give files away";
    spill(in("foreign"), "x");
    ASSERT_EQ(::chown(in("foreign").c_str(), nobody, nobody), 0);
    EXPECT_EQ(answers("foreign"), (Answers{EPERM, EPERM, EPERM, EEXIST}));
    EXPECT_NE(folder_.file("foreign").error().message().find("belongs to user 65534, its folder to user 0"),
              std::string::npos);
    fs::create_directory(in("folder"));
    ASSERT_EQ(::chown(in("folder").c_str(), nobody, nobody), 0);
    EXPECT_EQ(folder_.folder("folder").error().number, EPERM);
    // Root on another user's tree: what belongs to its owner is believed, and root's own, unless it is a link to root's file elsewhere.
    auto theirs = Folder::open(in("folder")).take();
    spill(in("folder/theirs"), "x");
    ASSERT_EQ(::chown(in("folder/theirs").c_str(), nobody, nobody), 0);
    spill(in("folder/roots"), "x");
    fs::create_hard_link(outside_ + "/file", in("folder/planted"));
    spill(in("folder/other"), "x");
    ASSERT_EQ(::chown(in("folder/other").c_str(), 12345, 12345), 0);
    EXPECT_TRUE(theirs.file("theirs", O_RDWR).ok());
    EXPECT_TRUE(open_path(in("folder/theirs"), theirs.owners().without_user(), O_RDWR).ok());
    EXPECT_EQ(open_path(in("folder/roots"), theirs.owners().without_user()).error().number, EPERM);
    EXPECT_TRUE(theirs.file("roots", O_RDWR).ok());
    EXPECT_EQ(theirs.file("planted").error().number, EMLINK);
    EXPECT_EQ(theirs.file("other").error().number, EPERM);
}

TEST_F(GuardedFiles, BelievesTheGroupThatMayWriteInTheFolder) {
    if (!is_root()) GTEST_SKIP() << "only root can give files away";
    constexpr gid_t group = 4242;
    spill(in("file"), "x");
    ASSERT_EQ(::chown(in("file").c_str(), nobody, group), 0);
    ASSERT_EQ(::chown(inside_.c_str(), 0, group), 0);
    const auto number = [&](mode_t of_folder, mode_t of_file, int flags) {
        EXPECT_EQ(::chmod(inside_.c_str(), of_folder), 0);
        EXPECT_EQ(::chmod(in("file").c_str(), of_file), 0);
        const auto file = Folder::open(inside_).take().file("file", flags);
        return file ? 0 : file.error().number;
    };
    EXPECT_EQ(number(0770, 0660, O_RDONLY), 0);
    EXPECT_EQ(number(0770, 0660, O_RDWR), 0);
    EXPECT_EQ(number(0770, 0640, O_RDONLY), 0);
    EXPECT_EQ(number(0770, 0640, O_RDWR), EPERM);
    EXPECT_EQ(number(0770, 0600, O_RDONLY), EPERM);
    EXPECT_EQ(number(0755, 0660, O_RDONLY), EPERM);
    ASSERT_EQ(::chown(in("file").c_str(), nobody, nobody), 0);
    EXPECT_EQ(number(0777, 0666, O_RDONLY), EPERM);
}

TEST_F(GuardedFiles, GoesStepByStepWhereTheKernelHasNoOpenat2) {
    fs::create_directories(in("a/b"));
    spill(in("a/b/file"), "x");
    fs::create_symlink(outside_, in("a/link"));
    fs::create_symlink(outside_ + "/file", in("a/b/link"));
    const auto number = [&](const char* name) {
        const int fd = open_by_steps<Direct>(folder_.descriptor(), name, O_RDONLY | always, 0);
        if (fd < 0) return errno;
        raw::close(fd);
        return 0;
    };
    EXPECT_EQ(number("a/b/file"), 0);
    EXPECT_EQ(number("a/b/none"), ENOENT);
    EXPECT_EQ(number("a/b/link"), ELOOP);
    EXPECT_EQ(number("a/link/file"), ENOTDIR);  // O_DIRECTORY comes first there
    EXPECT_EQ(number(("a/" + std::string(300, 'x')).c_str()), ENAMETOOLONG);
    // No descriptor is left of the way.
    const int first = ::dup(folder_.descriptor());
    for (int i = 0; i < 100; ++i) (void)number("a/b/link");
    const int second = ::dup(folder_.descriptor());
    EXPECT_EQ(second, first + 1);
    ::close(first);
    ::close(second);
}

TEST_F(GuardedFiles, StaysWithTheFolderThatWasOpened) {
    spill(in("file"), "mine");
    EXPECT_TRUE(folder_.is_intact());
    fs::rename(inside_, temporary_.file("elsewhere"));
    fs::create_symlink(outside_, inside_);
    EXPECT_EQ(folder_.read("file", 10).value(), "mine");
    EXPECT_EQ(folder_.remove("file"), 0);
    // A program that closes every descriptor gets the number for a file of its own.
    const int number = folder_.descriptor();
    const int other = ::open(outside_.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(::dup2(other, number), number);
    EXPECT_FALSE(folder_.is_intact());
    ::close(other);
}

TEST_F(GuardedFiles, ClosesNoFileThatTookTheNumberOfAFolderThatIsKept) {
    const int file = ::open((outside_ + "/file").c_str(), O_RDONLY);
    folder_.keep();
    const int number = folder_.descriptor();
    ASSERT_EQ(::dup2(file, number), number);
    folder_ = Folder();
    EXPECT_GE(::fcntl(number, F_GETFD), 0) << "closed";
    ::close(number);
    ::close(file);
    Folder again = Folder::open(inside_).take();
    again.keep();
    const int own = again.descriptor();
    const Folder moved = std::move(again);
    EXPECT_GE(::fcntl(own, F_GETFD), 0);
    EXPECT_EQ(moved.descriptor(), own);
}

TEST_F(GuardedFiles, FollowsNoLinkAtTheEndOfAPath) {
    spill(in("file"), "mine");
    fs::create_symlink(outside_ + "/file", in("link"));
    ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0666), 0);
    const auto number = [&](const char* name, int flags) {
        const auto file = open_path(in(name), folder_.owners(), flags);
        return file ? 0 : file.error().number;
    };
    EXPECT_EQ(number("file", O_RDWR), 0);
    EXPECT_EQ(number("link", O_RDWR), ELOOP);
    EXPECT_EQ(number("pipe", O_RDONLY), ENXIO);
    EXPECT_EQ(number("none", O_RDONLY), ENOENT);
    EXPECT_EQ(folder_.make_link("made", "../out/file"), 0);
    EXPECT_EQ(folder_.link_at("made"), "../out/file");
    EXPECT_EQ(folder_.link_at("file"), "");
}

TEST_F(GuardedFiles, LeavesNoDescriptorBehind) {
    ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0666), 0);
    const int first = ::dup(0);
    for (int i = 0; i < 50; ++i) {
        (void)answers("pipe");
        (void)folder_.write_new("file", "x");
        (void)folder_.replace("file", "draft", "y");
        (void)folder_.read("file", 0);
        (void)folder_.names();
        (void)folder_.remove("file");
        (void)folder_.folder("pipe").ok();
    }
    const int second = ::dup(0);
    EXPECT_EQ(second, first + 1);
    ::close(first);
    ::close(second);
}

TEST(GuardedNames, AreSplit) {
    EXPECT_EQ(folder_name_of("a/b"), "a");
    EXPECT_EQ(folder_name_of("b"), ".");
    EXPECT_EQ(folder_name_of("/b"), "/");
    EXPECT_EQ(file_name_of("a/b"), "b");
    EXPECT_EQ(file_name_of("b"), "b");
}

}  // namespace
}  // namespace ioweir::guarded
