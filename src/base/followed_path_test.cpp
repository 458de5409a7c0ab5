// Paths of the user's own: links are followed, but another's only to what is his; nothing waits.
#include "base/followed_path.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing.hpp"

namespace ioweir::guarded {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

int number(const std::string& path) {
    const auto file = follow_path(path);
    return file ? 0 : file.error().number;
}

TEST(FollowedPath, IsThatOfAFile) {
    const TemporaryFolder folder;
    const auto in = [&](const std::string& name) { return folder.file(name); };
    std::ofstream(in("file")) << "text";
    fs::create_symlink(in("file"), in("link"));
    fs::create_symlink("loop", in("loop"));
    fs::create_symlink("none", in("dangling"));
    fs::create_symlink("/dev/zero", in("zeros"));
    fs::create_directory(in("folder"));
    ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0666), 0);
    EXPECT_EQ(number(in("file")), 0);
    EXPECT_EQ(follow_path(in("link")).value().read_all(100).value(), "text");
    EXPECT_EQ(number(in("none")), ENOENT);
    EXPECT_EQ(number(in("dangling")), ENOENT);
    EXPECT_EQ(number(in("loop")), ELOOP);
    EXPECT_EQ(number(in("zeros")), ENXIO);
    EXPECT_EQ(number(in("pipe")), ENXIO);
    EXPECT_EQ(number(in("folder")), EISDIR);
}

TEST(FollowedPath, LeadsOverAnothersLinkToHisOwnFilesOnly) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const TemporaryFolder folder;
    const std::string file = folder.file("file"), link = folder.file("link");
    std::ofstream(file) << "text";
    fs::create_symlink(file, link);
    EXPECT_EQ(number(link), 0);
    ASSERT_EQ(::lchown(link.c_str(), nobody, nobody), 0);
    EXPECT_EQ(number(link), EPERM);
    EXPECT_NE(follow_path(link).error().message().find("a link of somebody else's"), std::string::npos);
    ASSERT_EQ(::chown(file.c_str(), nobody, nobody), 0);
    EXPECT_EQ(number(link), 0);
    EXPECT_EQ(number(file), 0);
}

}  // namespace
}  // namespace ioweir::guarded
