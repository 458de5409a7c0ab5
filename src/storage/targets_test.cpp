// Manifests, directories as targets, and CephFS's pools against attributes that are kept in memory.
#include "storage/targets.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/testing.hpp"
#include "storage/ceph_targets.hpp"
#include "storage/manifest.hpp"
#include "storage/paced.hpp"
#include "storage/posix.hpp"

namespace ioweir::storage {
namespace {

namespace fs = std::filesystem;
using layout::StripeLayout;

void write_manifest(const std::string& directory, const std::string& text) {
    std::ofstream(directory + "/" + manifest_name) << text;
}

std::string message(const std::string& text) {
    const auto parsed = parse_manifest(text, "m.toml");
    return parsed ? "" : parsed.error().message();
}

TEST(Manifest, IsRead) {
    const auto parsed = parse_manifest(R"(
kind = "directories"
state = "/dev/shm/x"
[[target]]
name = "t0"
directory = "a"
rate = "25 MB"
mounted = true
[[target]]
name = "t1"
directory = "/b/c"
)",
                                       "m.toml");
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_EQ(parsed.value(),
              (Manifest{false, "/dev/shm/x", {{"t0", "a", "", 25'000'000, true}, {"t1", "/b/c", "", 0, false}}}));
    const auto pools = parse_manifest("kind='cephfs'\n[[target]]\nname='x'\npool='ost0'", "m.toml");
    ASSERT_TRUE(pools.ok());
    EXPECT_EQ(pools.value(), (Manifest{true, "", {{"x", "", "ost0", 0, false}}}));
}

TEST(Manifest, MistakesNameTheLine) {
    EXPECT_EQ(message(""), "a manifest without targets: m.toml; write a [[target]] table for each");
    EXPECT_EQ(message("[[target]]\nname='a'\ndirectory='a'\nrat='1 MB'"),
              "unknown key: 'rat' (m.toml:4); did you mean 'rate'? known: name, directory, pool, rate, mounted");
    EXPECT_EQ(message("kind='nfs'\n[[target]]\nname='a'\ndirectory='a'"),
              "unknown kind of storage targets: 'nfs' (m.toml:1); write \"directories\" or \"cephfs\"; Lustre needs no "
              "manifest");
    EXPECT_NE(message("[[target]]\nname='a'\npool='a'").find("a target is a directory: 'a' (m.toml:1)"),
              std::string::npos);
    EXPECT_NE(message("kind='cephfs'\n[[target]]\nname='a'\ndirectory='a'").find("is a pool: 'a' (m.toml:2)"),
              std::string::npos);
    EXPECT_NE(message("[[target]]\ndirectory='a'").find("a target without a name"), std::string::npos);
    EXPECT_NE(message("[[target]]\nname='a'\ndirectory='a'\nrate='1 MB'").find("a rate without a state"),
              std::string::npos);
    for (const char* rate : {"0", "'1M'", "5", "''", "true"}) {
        EXPECT_NE(message("state='/x'\n[[target]]\nname='a'\ndirectory='a'\nrate=" + std::string(rate))
                      .find("not a rate: rate (m.toml:5)"),
                  std::string::npos)
            << rate;
    }
    EXPECT_NE(message("state='x'\n[[target]]\nname='a'\ndirectory='a'").find("not an absolute path"),
              std::string::npos);
    EXPECT_NE(message("[[target]]\nname='a'\ndirectory='a'\n[[target]]\nname='a'\ndirectory='b'")
                  .find("two targets of one name"),
              std::string::npos);
    EXPECT_NE(message("[[target]]\nname='a'\ndirectory='a'\n[[target]]\nname='b'\ndirectory='a'")
                  .find("a place that is two targets"),
              std::string::npos);
    EXPECT_NE(message("target = 5").find("a manifest without targets"), std::string::npos);
    EXPECT_NE(message("target = [5]").find("not a table"), std::string::npos);
    EXPECT_NE(message("[[target").find("a manifest is not valid TOML: m.toml:1:"), std::string::npos);
    EXPECT_NE(message("kind=7\n[[target]]\nname='a'\ndirectory='a'").find("not a text: kind = 7 (m.toml:1)"),
              std::string::npos);
}

/// Three directories that are targets: a, b, and c, which is missing.
class Directories : public ::testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"a", "b", "data", "data/deep"}) fs::create_directory(folder_.file(name));
        write_manifest(folder_.path(), "[[target]]\nname='A'\ndirectory='a'\n[[target]]\nname='B'\ndirectory='" +
                                           folder_.file("b") + "'\n[[target]]\nname='C'\ndirectory='c'\n");
    }
    std::unique_ptr<Targets> find(const std::string& path) {
        auto found = find_targets(path);
        EXPECT_TRUE(found.ok()) << (found ? "" : found.error().message());
        return found.take();
    }
    TemporaryFolder folder_;
};

TEST_F(Directories, AreFoundFromAnyPathBelow) {
    for (const char* path : {"", "data", "data/deep/file-to-be", "a/x"}) {
        const auto targets = find(folder_.file(path));
        ASSERT_EQ(targets->list().size(), 3U) << path;
        EXPECT_EQ(targets->list()[0].directory, fs::canonical(folder_.file("a")).string());
    }
    // The nearest manifest is in effect, also when it is wrong.
    write_manifest(folder_.file("data"), "nonsense");
    EXPECT_EQ(find_targets(folder_.file("data/deep/file")).error().what, "a manifest is not valid TOML");
}

TEST_F(Directories, NoManifestIsSaid) {
    const TemporaryFolder other;
    const auto found = find_targets(other.file("x"));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().what, "no storage targets are known here");
    EXPECT_NE(found.error().remedy.find(manifest_name), std::string::npos);
}

TEST_F(Directories, AFileIsPlacedAndFoundAgain) {
    const auto targets = find(folder_.path());
    const Opened made = targets->create(folder_.file("data/out.3"), StripeLayout::unstriped(1), O_RDWR, 0600);
    ASSERT_EQ(made.error, 0);
    ::close(made.descriptor);
    EXPECT_TRUE(fs::exists(folder_.file("b/out.3")));
    EXPECT_FALSE(fs::exists(folder_.file("data/out.3")));
    EXPECT_EQ(targets->path_on("data/out.3", StripeLayout::unstriped(1)),
              fs::canonical(folder_.file("b/out.3")).string());
    EXPECT_EQ(targets->placement_of(folder_.file("b/out.3")).value(), StripeLayout::unstriped(1));
    EXPECT_EQ(targets->placement_of(folder_.file("data")).error().what, "a file lies on none of the targets");
    EXPECT_EQ(targets->placement_of(folder_.file("none")).error().what, "cannot tell where a file lies");
}

TEST_F(Directories, WhatCannotBeDoneIsRefused) {
    const auto targets = find(folder_.path());
    const auto error = [&](const StripeLayout& placement) {
        return targets->create(folder_.file("x"), placement, O_RDWR, 0600).error;
    };
    EXPECT_EQ(error(StripeLayout::make(4096, {0, 1}).take()), ENOTSUP);
    EXPECT_EQ(error(StripeLayout::unstriped(2)), EINVAL);  // its directory is missing
    EXPECT_NE(targets->list()[2].unusable.find("No such file or directory"), std::string::npos);
    EXPECT_EQ(error(StripeLayout::unstriped(3)), EINVAL);
    EXPECT_EQ(targets->create_unnamed(2, O_RDWR).error, EINVAL);
    EXPECT_FALSE(targets->abilities().stripes);
    EXPECT_FALSE(targets->abilities().limits.empty());
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("a")), {}), 0);
}

TEST_F(Directories, AnUnnamedFileIsNeverSeen) {
    const auto targets = find(folder_.path());
    const Opened made = targets->create_unnamed(0, O_RDWR);
    ASSERT_EQ(made.error, 0);
    EXPECT_EQ(::pwrite(made.descriptor, "x", 1, 0), 1);
    struct stat info{}, directory{};
    ASSERT_EQ(::fstat(made.descriptor, &info), 0);
    ASSERT_EQ(::stat(folder_.file("a").c_str(), &directory), 0);
    EXPECT_EQ(info.st_nlink, 0U);
    EXPECT_EQ(info.st_dev, directory.st_dev);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("a")), {}), 0);
    ::close(made.descriptor);
}

TEST_F(Directories, WhatShouldBeMountedAndIsNotIsUnusable) {
    write_manifest(
        folder_.path(),
        "[[target]]\nname='A'\ndirectory='a'\nmounted=true\n[[target]]\nname='P'\ndirectory='/proc'\nmounted=true\n");
    const auto targets = find(folder_.path());
    EXPECT_EQ(targets->list()[0].unusable, "nothing is mounted at " + fs::canonical(folder_.file("a")).string());
    EXPECT_EQ(targets->list()[1].unusable, "");
}

TEST_F(Directories, SomebodyElsesManifestIsRefused) {
    const std::string file = folder_.file(manifest_name);
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    EXPECT_EQ(find_targets(folder_.path()).error().what, "a manifest of storage targets belongs to somebody else");
    ASSERT_EQ(::chown(folder_.path().c_str(), 12345, 12345), 0);  // the directory's owner may
    EXPECT_TRUE(find_targets(folder_.path()).ok());
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);  // but not where everybody could have been
    EXPECT_FALSE(find_targets(folder_.path()).ok());
}

TEST_F(Directories, WhatIsNoManifestIsRefusedAndNotWaitedFor) {
    const std::string file = folder_.file(manifest_name), moved = folder_.file("moved");
    fs::rename(file, moved);
    const auto number = [&] { return find_targets(folder_.path()).error().number; };
    fs::create_symlink(moved, file);
    EXPECT_EQ(number(), ELOOP);
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(number(), ENXIO);
    fs::remove(file);
    fs::create_symlink("/dev/zero", file);
    EXPECT_EQ(number(), ELOOP);
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_EQ(number(), EISDIR);
    fs::remove(file);
    std::ofstream(file) << "";
    fs::resize_file(file, std::uintmax_t{1} << 40);
    EXPECT_EQ(find_targets(folder_.path()).error().what, "too large for a manifest");
    fs::remove(file);
    fs::rename(moved, file);
    EXPECT_TRUE(find_targets(folder_.path()).ok());
}

/// Whoever probes there would otherwise make, or write, any file of their own.
TEST_F(Directories, NoFileIsMadeOrWrittenThatSomebodyElsesManifestNames) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to somebody else";
    constexpr uid_t stranger = 12345;
    const std::string state = folder_.file("data/state"), other = folder_.file("data/other");
    write_manifest(folder_.path(), "state='" + state + "'\n[[target]]\nname='A'\ndirectory='a'\nrate='10 MB'\n");
    const auto give = [&](const std::string& path) { EXPECT_EQ(::lchown(path.c_str(), stranger, stranger), 0); };
    give(folder_.path());
    give(folder_.file(manifest_name));
    EXPECT_EQ(find_targets(folder_.path()).error().number, ENOENT);
    EXPECT_FALSE(fs::exists(state));
    // A file of this user's own, of the right size.
    std::ofstream(state) << std::string(64, 'x');
    EXPECT_EQ(find_targets(folder_.path()).error().number, EPERM);
    fs::rename(state, other);
    fs::create_symlink(other, state);
    give(state);
    EXPECT_EQ(find_targets(folder_.path()).error().number, ELOOP);
    fs::remove(state);
    fs::create_hard_link(other, state);
    EXPECT_EQ(find_targets(folder_.path()).error().number, EMLINK);
    fs::remove(state);
    ASSERT_EQ(::mkfifo(state.c_str(), 0600), 0);
    give(state);
    EXPECT_EQ(find_targets(folder_.path()).error().number, ENXIO);
    fs::remove(state);
    std::string kept(64, '?');
    std::ifstream(other).read(kept.data(), 64);
    EXPECT_EQ(kept, std::string(64, 'x'));
    // Theirs is used.
    std::ofstream(state) << std::string(64, '\0');
    give(state);
    EXPECT_TRUE(find_targets(folder_.path()).ok());
}

class FakeClock final : public ThrottleClock {
public:
    std::int64_t time_ns = 1'000'000'000;
    [[nodiscard]] std::int64_t now_ns() override { return time_ns; }
    void sleep_until(std::int64_t until_ns) override { time_ns = std::max(time_ns, until_ns); }
};

TEST_F(Directories, ARateIsKeptAndCanBeChanged) {
    write_manifest(folder_.path(), "state='" + folder_.file("state") +
                                       "'\n[[target]]\nname='A'\ndirectory='a'\nrate='10 MB'\n"
                                       "[[target]]\nname='B'\ndirectory='b'\n");
    const auto targets = find(folder_.path());
    FakeClock clock;
    const auto seconds = [&](std::int32_t target, std::int64_t bytes) {
        const std::int64_t begin = clock.time_ns;
        targets->pace(target, bytes, clock);
        return static_cast<double>(clock.time_ns - begin) / 1e9;
    };
    EXPECT_EQ(seconds(0, 5'000'000), 0.5);
    EXPECT_EQ(seconds(1, 5'000'000), 0);
    EXPECT_EQ(describe_rates(*targets), "token bucket: A 9.54 MiB/s");
    TargetQueues::open(folder_.file("state"), 2).value()->set_rate(0, 1'000'000);
    EXPECT_EQ(seconds(0, 5'000'000), 5);
    EXPECT_EQ(targets->rate(0), 1'000'000);
    EXPECT_EQ(targets->rate(1), 0);
}

TEST_F(Directories, ABackendWaitsForTheTargetsOfItsFilesOnly) {
    write_manifest(folder_.path(), "state='" + folder_.file("state") +
                                       "'\n[[target]]\nname='A'\ndirectory='a'\nrate='10 MB'\n"
                                       "[[target]]\nname='B'\ndirectory='b'\nrate='1 MB'\n");
    PosixBackend posix;
    FakeClock clock;
    PacedBackend backend(posix, find(folder_.path()), clock);
    const std::vector<char> bytes(1'000'000, 'x');
    std::vector<char> read(1'000'000);
    for (const auto& [name, seconds] :
         std::map<std::string, double>{{"a/x", 0.1}, {"b/x", 1}, {"data/x", 0}, {"b/y", 1}}) {
        const Opened opened = backend.open(folder_.file(name).c_str(), O_RDWR | O_CREAT);
        ASSERT_EQ(opened.error, 0);
        for (const bool writing : {true, false}) {
            const std::int64_t begin = clock.time_ns;
            const Transfer moved = writing ? backend.write_at(opened.descriptor, bytes.data(), 1'000'000, 0)
                                           : backend.read_at(opened.descriptor, read.data(), 1'000'000, 0);
            EXPECT_EQ(moved.bytes, 1'000'000);
            EXPECT_EQ(static_cast<double>(clock.time_ns - begin) / 1e9, seconds) << name;
        }
        EXPECT_EQ(read, bytes);
        EXPECT_EQ(backend.close(opened.descriptor), 0);
    }
}

/// A CephFS with two pools, as far as attributes go. Files are known by their inodes' numbers.
struct FakeCeph {
    std::map<ino_t, std::map<std::string, std::string>> attributes;
    int refuse = 0;

    FileAttributes access() {
        return {[this](const char* path, const char* name, void* value, std::size_t room) -> std::int64_t {
                    struct stat info{};
                    if (::stat(path, &info) != 0) return -errno;
                    auto& all = attributes[info.st_ino];
                    if (std::strcmp(name, "ceph.dir.entries") == 0 && S_ISDIR(info.st_mode)) all[name] = "0";
                    const auto found = all.find(name);
                    if (found == all.end()) return -ENODATA;
                    const std::size_t bytes = std::min(room, found->second.size());
                    std::memcpy(value, found->second.data(), bytes);
                    return static_cast<std::int64_t>(bytes);
                },
                [this](int descriptor, const char* name, const void* value, std::size_t bytes) {
                    if (refuse != 0) return -refuse;
                    struct stat info{};
                    ::fstat(descriptor, &info);
                    auto& all = attributes[info.st_ino];
                    const std::string text(static_cast<const char*>(value), bytes);
                    all[name] = text;
                    if (std::strcmp(name, "ceph.file.layout") ==
                        0) {  // "stripe_unit=65536 stripe_count=1 object_size=65536"
                        for (std::size_t at = 0; at < text.size();) {
                            const std::size_t equals = text.find('=', at),
                                              end = std::min(text.find(' ', at), text.size());
                            all[std::string(name) + "." + text.substr(at, equals - at)] =
                                text.substr(equals + 1, end - equals - 1);
                            at = end + 1;
                        }
                    }
                    return 0;
                }};
    }
};

TEST(CephPools, AFileIsPlacedInAPoolAndFoundAgain) {
    const TemporaryFolder folder;
    FakeCeph ceph;
    const Manifest manifest{true, "", {{"x", "", "ost0", 0, false}, {"y", "", "ost1", 0, false}}};
    const auto targets = CephTargets::open(folder.path(), manifest, ceph.access()).take();
    const std::string path = folder.file("f");
    const Opened made = targets->create(path, StripeLayout::make(65536, {1}).take(), O_RDWR, 0600);
    ASSERT_EQ(made.error, 0);
    ::close(made.descriptor);
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(ceph.attributes[info.st_ino]["ceph.file.layout.pool"], "ost1");
    EXPECT_EQ(ceph.attributes[info.st_ino]["ceph.file.layout"], "stripe_unit=65536 stripe_count=1 object_size=65536");
    EXPECT_EQ(targets->placement_of(path).value(), StripeLayout::make(65536, {1}).value());
    EXPECT_EQ(targets->path_on(path, StripeLayout::unstriped(1)), path);

    EXPECT_EQ(targets->create(folder.file("g"), StripeLayout::make(65536, {0, 1}).take(), O_RDWR, 0600).error, ENOTSUP);
    ceph.refuse = EPERM;
    EXPECT_EQ(targets->create(folder.file("g"), StripeLayout::unstriped(0), O_RDWR, 0600).error, EPERM);
    EXPECT_FALSE(fs::exists(folder.file("g")));
    ceph.refuse = 0;
    const Opened unnamed = targets->create_unnamed(0, O_RDWR);
    ASSERT_EQ(unnamed.error, 0);
    struct stat long_already{};
    ASSERT_EQ(::fstat(unnamed.descriptor, &long_already), 0);
    EXPECT_EQ(long_already.st_nlink, 0U);
    EXPECT_GE(long_already.st_size, 100 << 20);
    ::close(unnamed.descriptor);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
    ceph.attributes[info.st_ino]["ceph.file.layout.pool"] = "other";
    EXPECT_NE(targets->placement_of(path).error().remedy.find("'other'"), std::string::npos);
}

TEST(CephPools, AManifestElsewhereIsAnError) {
    const TemporaryFolder folder;
    write_manifest(folder.path(), "kind='cephfs'\n[[target]]\nname='x'\npool='ost0'\n");
    EXPECT_EQ(find_targets(folder.path()).error().what, "the manifest is of a CephFS, and the directory is not on one");
}

}  // namespace
}  // namespace ioweir::storage
