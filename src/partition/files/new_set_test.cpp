#include "partition/files/new_set.hpp"

#include <sys/stat.h>

#include "partition/files/posix_file.hpp"
#include "partition/files/set_for_tests.hpp"
#include "partition/files/set_reader.hpp"

namespace ioweir::partition {
namespace {

class NewSetTest : public SetsTest {
protected:
    static constexpr Span first_ = {0, 2}, second_ = {2, 1};

    [[nodiscard]] SetName name(std::int64_t step, bool directories) const { return {base_, step, directories}; }
    /// Two files at a new set's places, and what its manifest says.
    static Manifest fill(const NewSet& set, std::int64_t step) {
        Manifest manifest;
        manifest.step = step;
        manifest.ranks = 3;
        for (const Span parts : {first_, second_}) {
            const std::string bytes = file_bytes(parts);
            spill(set.file(std::ssize(manifest.files)), bytes);
            manifest.files.push_back(said_of(parts, bytes));
        }
        return manifest;
    }
    void expect_whole(std::int64_t step) const {
        auto opened = SetReader::open(base_, step);
        ASSERT_TRUE(opened.ok()) << opened.error().message();
        SetReader reader = opened.take();
        for (std::int64_t part = 0; part < 3; ++part) {
            std::string items(static_cast<std::size_t>(8 * part), '?');
            const auto error = reader.read("u", part, items.data(), std::ssize(items), 8);
            ASSERT_FALSE(error.has_value()) << error->message();
            EXPECT_EQ(items, std::string(items.size(), static_cast<char>('a' + part)));
        }
        EXPECT_TRUE(check_set(base_, step).empty());
    }
    std::int64_t entries() const {
        const std::filesystem::directory_iterator all(folder_);
        return std::distance(begin(all), end(all));
    }
};

TEST_F(NewSetTest, IsThereWhenItIsCompleteAndNotBefore) {
    for (const bool directories : {true, false}) {
        const std::int64_t step = directories ? 1 : 2;
        auto set = NewSet::begin(name(step, directories), 2, false).take();
        const Manifest manifest = fill(set, step);
        EXPECT_EQ(SetReader::open(base_, step).error().what, no_set);
        EXPECT_EQ(std::ssize(unfinished_at(base_)), directories ? 1 : 2);
        ASSERT_FALSE(set.complete(manifest).has_value());
        expect_whole(step);
        EXPECT_TRUE(unfinished_at(base_).empty());
        EXPECT_EQ(NewSet::begin(name(step, directories), 2, false).error().what, set_is_there);
        EXPECT_EQ(NewSet::begin(name(step, !directories), 2, false).error().what, set_is_there);
        EXPECT_EQ(NewSet::begin(name(step, !directories), 2, true).error().what,
                  "a set of that step is there in the other layout");
    }
    EXPECT_EQ(SetReader::last_step(base_).value(), 2);
    EXPECT_EQ(steps_at(base_).value(), (std::vector<std::int64_t>{1, 2}));
}

TEST_F(NewSetTest, ReplacesTheOldOneWhenItIsComplete) {
    for (const bool directories : {true, false}) {
        const std::int64_t step = directories ? 1 : 2;
        for (int time = 0; time < 2; ++time) {
            auto set = NewSet::begin(name(step, directories), 2, time > 0).take();
            const Manifest manifest = fill(set, step);
            if (time > 0) expect_whole(step);  // the old one
            ASSERT_FALSE(set.complete(manifest).has_value());
            expect_whole(step);
        }
        EXPECT_TRUE(unfinished_at(base_).empty());
    }
}

TEST_F(NewSetTest, KeepsTheModesOfTheOneThatItReplaces) {
    const auto mode_of = [](const std::string& path) {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
        return status.st_mode & 07777;
    };
    for (const bool directories : {true, false}) {
        const std::int64_t step = directories ? 1 : 2;
        const SetName at = name(step, directories);
        auto first = NewSet::begin(at, 2, false).take();
        ASSERT_FALSE(first.complete(fill(first, step)).has_value());
        ASSERT_EQ(::chmod(at.file(0).c_str(), 0600), 0);
        ASSERT_EQ(::chmod(at.file(1).c_str(), 0660), 0);
        ASSERT_EQ(::chmod(at.manifest().c_str(), 0640), 0);
        if (directories) {
            ASSERT_EQ(::chmod(at.directory().c_str(), 0751), 0);
            ASSERT_EQ(::chmod(directory_of(at.file(1)).c_str(), 0711), 0);
        }
        auto second = NewSet::begin(at, 2, true).take();
        if (directories) {
            EXPECT_EQ(mode_of(directory_of(directory_of(second.file(0)))), 0700U);
        } else {
            EXPECT_EQ(mode_of(second.file(1)), 0600U) << "closed while it is written";
        }
        ASSERT_FALSE(second.complete(fill(second, step)).has_value());
        expect_whole(step);
        EXPECT_EQ(mode_of(at.file(0)), 0600U);
        EXPECT_EQ(mode_of(at.file(1)), 0660U);
        EXPECT_EQ(mode_of(at.manifest()), 0640U);
        if (!directories) continue;
        EXPECT_EQ(mode_of(at.directory()), 0751U);
        EXPECT_EQ(mode_of(directory_of(at.file(1))), 0711U);
    }
}

TEST_F(NewSetTest, OfAFlatSetWithMoreFilesTheOthersGo) {
    spill(name(5, false).file(2), "old");
    spill(name(5, false).file(3), "old");
    auto set = NewSet::begin(name(5, false), 2, false).take();
    ASSERT_FALSE(set.complete(fill(set, 5)).has_value());
    expect_whole(5);
    EXPECT_EQ(entries(), 3) << "two files and the manifest";
}

TEST_F(NewSetTest, AbandonedItLeavesNothing) {
    for (const bool directories : {true, false}) {
        auto set = NewSet::begin(name(1, directories), 2, false).take();
        (void)fill(set, 1);
        set.abandon();
        EXPECT_EQ(entries(), 0);
    }
}

/// What a job leaves that dies between two renames of a flat set.
TEST_F(NewSetTest, ATornFlatSetIsRefusedAndTheOneBeforeItIsTheLast) {
    for (const std::int64_t step : {1, 2}) {
        auto set = NewSet::begin(name(step, false), 2, false).take();
        Manifest manifest = fill(set, step);
        ASSERT_FALSE(set.complete(manifest).has_value());
        if (step == 2) {
            manifest.complete = false;
            ASSERT_EQ(write_text(name(2, false).manifest(), to_text(manifest)), 0);
        }
    }
    EXPECT_EQ(SetReader::open(base_, 2).error().what, "a set that is not complete");
    EXPECT_EQ(SetReader::last_step(base_).value(), 1);
}

TEST_F(NewSetTest, WithoutADirectoryItIsAnError) {
    spill(folder_ + "/file", "");
    const auto set = NewSet::begin({folder_ + "/file/run", 1, true}, 1, false);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().message(), "no directory for a set: " + folder_ + "/file; make it, or write elsewhere");
    EXPECT_FALSE(NewSet::begin({folder_ + "/nowhere/run", 1, false}, 1, false).ok());
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/nowhere"));
}

}  // namespace
}  // namespace ioweir::partition
