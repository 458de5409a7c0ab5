// Copies of header files and of whole containers: nobody's bytes go because somebody else's file was merged or removed.
#include "container/files/origin.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "container/merge.hpp"
#include "container/sharing/locks.hpp"
#include "container/sharing/orphans.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

const std::string text = "what the job has written, some of it on each of its parts";

/// One rank writes it; `target`: where its log or subfiles go.
void write(Place& place, const std::string& target = {}) {
    if (!target.empty() && !place.directory.has_index()) {
        ASSERT_EQ(remove_subfiles(place.directory), 0);
        ASSERT_TRUE(make_subfiles(place.directory, {target}).ok());
    }
    const Role role{false, true, 0, 0, place.begin(), place.directory.is_log() ? target : ""};
    auto writer = place.open(role);
    ASSERT_EQ(writer->write_at(-1, text.data(), std::ssize(text), 0).error, 0);
    Left left;
    ASSERT_EQ(writer->leave(role, &left), 0);
    ASSERT_EQ(place.end(role.generation, left), 0);
}

class Copies : public testing::TestWithParam<Shape> {
protected:
    Copies() : place_(GetParam()) { write(place_); }
    bool merges(const std::string& path) { return merge(place_.backend, path, path).ok() && slurp(path) == text; }
    bool has_directory() { return fs::exists(place_.directory.path); }

    Place place_;
};

TEST_P(Copies, OfAHeaderFileAreMergedAndTheOriginalKeepsItsBytes) {
    const std::string copy = place_.folder + "/copy";
    fs::copy_file(place_.path, copy);
    EXPECT_EQ(other_header_file(place_.directory, copy), place_.path);
    EXPECT_EQ(other_header_file(place_.directory, place_.path), copy);
    ASSERT_TRUE(merges(copy));
    EXPECT_TRUE(has_directory());
    EXPECT_TRUE(describe(place_.path).value().problems.empty());
    EXPECT_EQ(read_all(*place_.open({true, false, 0, 0, 0}), 1000), text);
    EXPECT_EQ(other_header_file(place_.directory, place_.path), std::nullopt);
    ASSERT_TRUE(merges(place_.path)) << "it is the last one";
    EXPECT_FALSE(has_directory());
}

TEST_P(Copies, OfAHeaderFileKeepTheirBytesWhenTheOriginalIsMerged) {
    const std::string copy = place_.folder + "/copy";
    fs::copy_file(place_.path, copy);
    ASSERT_TRUE(merges(place_.path));
    EXPECT_TRUE(has_directory());
    ASSERT_TRUE(merges(copy));
    EXPECT_FALSE(has_directory());
}

TEST_P(Copies, AMovedHeaderFileTakesItsBytesAlong) {
    const std::string moved = place_.folder + "/moved";
    fs::rename(place_.path, moved);
    ASSERT_TRUE(merges(moved));
    EXPECT_FALSE(has_directory());
}

TEST_P(Copies, LetGoOfWithAnotherHeaderFileThereTheDirectoryStays) {
    const std::string copy = place_.folder + "/copy";
    fs::copy_file(place_.path, copy);
    fs::remove(place_.path);
    EXPECT_EQ(let_go(place_.directory), 0);
    EXPECT_TRUE(has_directory());
    fs::remove(copy);
    EXPECT_EQ(let_go(place_.directory), 0);
    EXPECT_FALSE(has_directory());
}

TEST_P(Copies, OfHeaderFileAndDirectoryAreContainersByThemselves) {
    const std::string other = place_.folder + "/other";
    fs::create_directory(other);
    fs::copy_file(place_.path, other + "/file");
    const std::string directory = other + place_.directory.path.substr(place_.directory.path.rfind('/'));
    fs::copy(place_.directory.path, directory, fs::copy_options::recursive);
    ASSERT_TRUE(merges(other + "/file"));
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_TRUE(describe(place_.path).value().problems.empty());
    ASSERT_TRUE(merges(place_.path));
}

TEST_P(Copies, AMovedFolderIsNoCopy) {
    const std::string moved = place_.folder + "-moved";
    fs::rename(place_.folder, moved);
    EXPECT_TRUE(merges(moved + "/file"));
    EXPECT_EQ(std::distance(fs::directory_iterator(moved), fs::directory_iterator()), 1);
    fs::rename(moved, place_.folder);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Copies, testing::Values(Shape{2}, Shape{0, Shape::Kind::log}, Shape{3, Shape::Kind::subfiles, 8}),
    [](const testing::TestParamInfo<Shape>& one) {
        const Shape::Kind kind = one.param.kind;
        return std::string(kind == Shape::Kind::grouped ? "grouped" : kind == Shape::Kind::log ? "log" : "subfiles");
    });

/// With parts on a storage target, to which a copy of the directory leads, too.
class CopiesOnTargets : public testing::TestWithParam<Shape> {
protected:
    CopiesOnTargets() : place_(GetParam()), target_(place_.folder + "-target"), other_(place_.folder + "-other") {
        fs::create_directory(target_);
        fs::create_directory(other_);
        write(place_, target_);
    }
    ~CopiesOnTargets() override {
        fs::remove_all(target_);
        fs::remove_all(other_);
    }
    /// As cp -a of both does it.
    std::string copy_all() {
        fs::copy_file(place_.path, other_ + "/file");
        const std::string directory = other_ + place_.directory.path.substr(place_.directory.path.rfind('/'));
        fs::copy(place_.directory.path, directory, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
        return directory;
    }

    Place place_;
    const std::string target_, other_;
};

TEST_P(CopiesOnTargets, AreMergedAndTheOriginalKeepsItsParts) {
    const std::string directory = copy_all();
    EXPECT_EQ(origin_of(place_.directory), Origin::own);
    EXPECT_EQ(origin_of({directory, place_.directory.shape, place_.directory.version}), Origin::copy);
    const std::string copy = other_ + "/file";
    ASSERT_TRUE(merge(place_.backend, copy, copy).ok());
    EXPECT_EQ(slurp(copy), text);
    EXPECT_FALSE(fs::exists(directory));
    EXPECT_TRUE(describe(place_.path).value().problems.empty());
    ASSERT_TRUE(merge(place_.backend, place_.path, place_.path).ok());
    EXPECT_EQ(slurp(place_.path), text);
    EXPECT_TRUE(fs::is_empty(target_));
}

/// Moved to another file system, or a copy of one that was moved: nobody can tell, and nothing is removed.
TEST_P(CopiesOnTargets, WhoseOriginalIsNotWhereItWasKeepTheParts) {
    const std::string directory = copy_all();
    const std::string hidden = place_.folder + "-hidden";
    fs::rename(place_.folder, hidden);
    const std::string copy = other_ + "/file";
    const auto merged = merge(place_.backend, copy, copy);
    ASSERT_FALSE(merged.ok());
    EXPECT_NE(merged.error().message().find("the file is merged"), std::string::npos);
    EXPECT_NE(merged.error().message().find("may be another's"), std::string::npos) << merged.error().message();
    EXPECT_EQ(slurp(copy), text);
    EXPECT_FALSE(fs::is_empty(target_));
    const auto orphans = find_orphans(other_).value();
    ASSERT_EQ(orphans.size(), 1U);
    EXPECT_NE(orphans.front().problem.find("may be another's"), std::string::npos);
    EXPECT_FALSE(remove_orphan(directory).ok());
    fs::rename(hidden, place_.folder);
    EXPECT_TRUE(describe(place_.path).value().problems.empty());
    EXPECT_TRUE(remove_orphan(directory).ok()) << "now it is known to be a copy";
    EXPECT_TRUE(describe(place_.path).value().problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, CopiesOnTargets,
                         testing::Values(Shape{0, Shape::Kind::log}, Shape{3, Shape::Kind::subfiles, 8}),
                         [](const testing::TestParamInfo<Shape>& one) {
                             return std::string(one.param.kind == Shape::Kind::log ? "log" : "subfiles");
                         });

TEST(About, SaysWhatItWasMadeOf) {
    const About about{"header file\ncheck 1\n\nwords\n", "/a/name\nwith a line", "directory 12 34.5"};
    const auto parsed = parse_about(to_text(about));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->header_file, about.header_file);
    EXPECT_EQ(parsed->file, about.file);
    EXPECT_EQ(parsed->directory, about.directory);
    const auto earlier = parse_about("header file\n\nwords\nfile /a/b\n");
    ASSERT_TRUE(earlier.has_value());
    EXPECT_EQ(earlier->file, "/a/b");
    EXPECT_EQ(earlier->directory, "");
    EXPECT_FALSE(parse_about("header file\n").has_value());
}

}  // namespace
}  // namespace ioweir::container
