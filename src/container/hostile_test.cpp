// Containers in which somebody else has put something: nothing outside of them is written or removed, nothing waits, and what is no file of
// theirs is named.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/testing.hpp"
#include "container/files/placed_log.hpp"
#include "container/merge.hpp"
#include "container/sharing/orphans.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

constexpr uid_t nobody = 65534;

Shape shape_of(const std::string& name) {
    if (name == "log") return {0, Shape::Kind::log};
    if (name == "subfiles") return {2, Shape::Kind::subfiles, 4};
    return {2, Shape::Kind::grouped};
}

/// A container in which one rank has written "0123456789" and a file and a folder outside of it.
class Hostile : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const std::uint32_t generation = place.begin();
        Left left;
        auto writer = place.open({false, true, 0, 0, generation});
        ASSERT_EQ(writer->write_at(-1, "0123456789", 10, 0).error, 0);
        ASSERT_EQ(writer->flush(false), 0);
        ASSERT_EQ(writer->leave({false, true, 0, 0, generation}, &left), 0);
        writer.reset();
        ASSERT_EQ(place.end(generation, left), 0);
        spill(precious, "precious");
        fs::create_directory(outside.file("folder"));
        spill(outside.file("folder/data"), "precious");
        spill(outside.file("folder/index.1.0"), "precious");
    }
    void TearDown() override {
        EXPECT_EQ(slurp(precious), "precious");
        EXPECT_EQ(slurp(outside.file("folder/data")), "precious");
        EXPECT_EQ(slurp(outside.file("folder/index.1.0")), "precious");
    }
    [[nodiscard]] std::string in(const std::string& name) const { return place.directory.path_of(name); }
    [[nodiscard]] std::string data_folder() const { return place.directory.folder_name(source()); }
    [[nodiscard]] std::int64_t source() const { return place.directory.is_log() ? log_source(1, 0) : 0; }

    Place place{shape_of(GetParam())};
    TemporaryFolder outside;
    const std::string precious = outside.file("precious");
};

TEST_P(Hostile, MergeDoesNotFollowALinkInThePlaceOfItsNewFile) {
    fs::create_symlink(precious, in("whole"));
    const auto answer = ask(place.path);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->bytes, 10);
    const auto merged = merge(place.backend, place.path, place.path);
    ASSERT_TRUE(merged.ok()) << merged.error().message();
    EXPECT_EQ(slurp(place.path), "0123456789");
    EXPECT_FALSE(fs::is_symlink(place.path));
}

TEST_P(Hostile, MergeTakesNoFileThatIsLinkedFromElsewhere) {
    fs::create_hard_link(precious, in("whole"));
    (void)ask(place.path);
    ASSERT_TRUE(merge(place.backend, place.path, place.path).ok());
    EXPECT_EQ(slurp(place.path), "0123456789");
}

TEST_P(Hostile, AskMakesNothingBehindADanglingLink) {
    fs::create_symlink(outside.file("new"), in("whole"));
    (void)ask(place.path);
    EXPECT_FALSE(fs::exists(outside.file("new")));
}

TEST_P(Hostile, APipeInThePlaceOfAnyFileIsNotWaitedFor) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(place.directory.path)) {
        if (entry.is_regular_file()) names.push_back(entry.path());
    }
    ASSERT_GE(names.size(), 3U);
    ::alarm(60);
    for (const std::string& name : names) {
        const std::string kept = outside.file("kept");
        fs::rename(name, kept);
        ASSERT_EQ(::mkfifo(name.c_str(), 0666), 0);
        const auto described = describe(place.path);
        EXPECT_TRUE(!described || !described.value().problems.empty()) << name;
        const bool needed = !name.ends_with("/about");
        EXPECT_EQ(merge(place.backend, place.path, outside.file("merged")).ok(), !needed) << name;
        fs::remove(outside.file("merged"));
        Clock clock;
        const Directory anew = directory_of(place.path, place.header_file);
        const auto opened = Container::open(place.backend, clock, anew, {true, false, 0, 0, 0});
        if (opened) {
            char byte = 0;
            (void)opened.value()->read_at(-1, &byte, 1, 0);
        }
        (void)begin_generation(anew).ok();
        for (const auto& entry : fs::directory_iterator(place.directory.path)) {
            if (entry.path().filename().string().starts_with("open.")) fs::remove(entry.path());
        }
        fs::remove(name);
        fs::rename(kept, name);
    }
    ::alarm(0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
}

TEST_P(Hostile, RemovalGoesBehindNoLink) {
    if (!place.directory.has_index()) GTEST_SKIP() << "subfiles have no folders";
    fs::rename(in(data_folder()), outside.file("kept"));
    fs::create_directory_symlink(outside.file("folder"), in(data_folder()));
    fs::remove(place.path);
    const auto removed = remove_orphan(place.directory.path);
    ASSERT_FALSE(removed.ok());
    EXPECT_NE(removed.error().message().find("not wholly"), std::string::npos) << removed.error().message();
}

TEST_P(Hostile, NoOrphanIsFoundBehindALink) {
    fs::remove(place.path);
    const std::string kept = outside.file(fs::path(place.directory.path).filename().string());
    fs::rename(place.directory.path, kept);
    fs::create_directory_symlink(kept, place.directory.path);
    EXPECT_TRUE(find_orphans(place.folder).value().empty());
    EXPECT_FALSE(remove_orphan(place.directory.path).ok());
    EXPECT_FALSE(remove(directory_of(place.path, place.header_file)) == 0);
    EXPECT_TRUE(fs::exists(kept + "/about"));
}

TEST_P(Hostile, AHeaderFileOfSomebodyElsesLeadsNotToOnesOwnBytes) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    ASSERT_EQ(::chown(place.path.c_str(), nobody, nobody), 0);
    const auto described = describe(place.path);
    ASSERT_FALSE(described.ok());
    EXPECT_NE(described.error().message().find("belongs to user 0, the header file to user 65534"), std::string::npos)
        << described.error().message();
    EXPECT_FALSE(merge(place.backend, place.path, place.path).ok());
    EXPECT_FALSE(ask(place.path).has_value());
    // The whole of it given away can be read.
    for (const auto& entry : fs::recursive_directory_iterator(place.directory.path))
        ASSERT_EQ(::lchown(entry.path().c_str(), nobody, nobody), 0);
    ASSERT_EQ(::chown(place.directory.path.c_str(), nobody, nobody), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, Hostile, testing::Values("grouped", "log", "subfiles"));

/// A log on a target: a link that somebody else has made is no way to another file.
struct HostileLog : testing::Test {
    Place place{Shape{0, Shape::Kind::log}};
    TemporaryFolder target;
    std::string link, log;

    void SetUp() override {
        const std::uint32_t generation = place.begin();
        Left left;
        auto writer = place.open({false, true, 0, 0, generation, target.path()});
        ASSERT_EQ(writer->write_at(-1, "0123456789", 10, 0).error, 0);
        ASSERT_EQ(writer->leave({false, true, 0, 0, generation, target.path()}, &left), 0);
        writer.reset();
        ASSERT_EQ(place.end(generation, left), 0);
        link = place.directory.data(log_source(1, 0));
        log = fs::read_symlink(link);
    }
    void lead_to(const std::string& path) const {
        fs::remove(link);
        fs::create_symlink(path, link);
    }
};

TEST_F(HostileLog, IsReadAndRemovedByItsOwnName) {
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    const std::string other = target.file("another");
    fs::copy(log, other);
    lead_to(other);
    ASSERT_EQ(describe(place.path).value().problems.size(), 1U);
    EXPECT_NE(describe(place.path).value().problems.front().find("symbolic link"), std::string::npos);
    EXPECT_FALSE(merge(place.backend, place.path, target.file("merged")).ok());
    EXPECT_EQ(remove(place.directory), 0);
    EXPECT_TRUE(fs::exists(other));
    EXPECT_FALSE(fs::is_symlink(link));
}

TEST_F(HostileLog, AFileOfItsNameThatIsNoneStays) {
    fs::remove(log);
    spill(log, "somebody's");
    EXPECT_EQ(remove(place.directory), EPERM);
    EXPECT_EQ(slurp(log), "somebody's");
}

TEST_F(HostileLog, OneThatItsJobCouldNotBeginIsRemoved) {
    fs::resize_file(log, 0);
    EXPECT_EQ(remove(place.directory), 0);
    EXPECT_FALSE(fs::exists(log));
}

TEST_F(HostileLog, OneOfWhichItsJobHasWrittenHalfTheHeaderIsRemoved) {
    fs::resize_file(log, 100);
    EXPECT_EQ(remove(place.directory), 0);
    EXPECT_FALSE(fs::exists(log));
}

TEST_F(HostileLog, NewLogsGoOnlyWhereLogsOfTheContainerLie) {
    EXPECT_EQ(places_of_logs(place.directory), (std::vector{fs::canonical(target.path()).string()}));
    const TemporaryFolder elsewhere;
    lead_to(elsewhere.file(fs::path(log).filename().string()));
    EXPECT_TRUE(places_of_logs(place.directory).empty());
}

TEST_F(HostileLog, SomebodyElsesOnATargetIsNeitherReadNorRemoved) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    ASSERT_EQ(::chown(log.c_str(), nobody, nobody), 0);
    EXPECT_EQ(describe(place.path).value().problems.size(), 1U);
    EXPECT_FALSE(merge(place.backend, place.path, target.file("merged")).ok());
    EXPECT_EQ(remove(place.directory), EPERM);
    EXPECT_TRUE(fs::exists(log));
}

/// Root's own log on a target, and a container of somebody else's that says that it is its own.
TEST_F(HostileLog, ACopyOfAContainerDoesNotLeadTheUserToHisOwnFiles) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    const TemporaryFolder theirs;
    const std::string copy = theirs.file(fs::path(place.directory.path).filename().string());
    fs::copy(place.directory.path, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::copy(place.path, theirs.file("file"));
    for (const auto& entry : fs::recursive_directory_iterator(theirs.path()))
        ASSERT_EQ(::lchown(entry.path().c_str(), nobody, nobody), 0);
    ASSERT_EQ(::chown(theirs.path().c_str(), nobody, nobody), 0);
    EXPECT_FALSE(merge(place.backend, theirs.file("file"), theirs.file("file")).ok());
    fs::remove(theirs.file("file"));
    EXPECT_FALSE(remove_orphan(copy).ok());
    EXPECT_TRUE(fs::exists(log));
}

}  // namespace
}  // namespace ioweir::container
