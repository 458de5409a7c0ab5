// Every file of a container missing, cut, swapped or changed: whoever reads it, asks about it or puts it together is told which one
// it is, and gets no wrong byte. What does not live here: a damaged batch or header file by itself (index_test.cpp, container_test.cpp),
// what a crash leaves (crash_test.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <vector>

#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t ranks = 3;
constexpr std::int64_t piece = 8;
constexpr std::int64_t bytes = 3 * ranks * piece;

/// Three ranks have written a piece in turn, and closed it. Equal in length in every part for each `first`.
struct Written : Place {
    Written(Shape shape, int version, char first) : Place(shape, version) {
        for (std::int64_t at = 0; at < bytes; ++at) text += static_cast<char>(first + at % 23);
        generation = begin();
        Left all;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            const Role role{false, true, group_of(rank), rank, generation};
            auto writer = open(role);
            for (std::int64_t at = rank * piece; at < bytes; at += ranks * piece)
                EXPECT_EQ(writer->write_at(-1, text.data() + at, piece, at).error, 0);
            Left left;
            EXPECT_EQ(writer->leave(role, &left), 0);
            all += left;
        }
        if (!directory.has_index()) {
            EXPECT_EQ(keep_sizes(directory, read_subfiles(directory).value(), generation), 0);
        }
        EXPECT_EQ(end(generation, all), 0);
    }
    [[nodiscard]] std::int32_t group_of(std::uint32_t rank) const {
        return directory.shape.kind == Shape::Kind::grouped
                   ? static_cast<std::int32_t>(rank * directory.shape.count / ranks)
                   : 0;
    }
    [[nodiscard]] std::vector<std::string> data() const {
        if (!directory.has_index()) return read_subfiles(directory).value().paths;
        std::vector<std::string> paths;
        const std::int64_t count = directory.is_log() ? ranks : directory.shape.count;
        for (std::int64_t i = 0; i < count; ++i)
            paths.push_back(
                directory.data(directory.is_log() ? log_source(generation, static_cast<std::uint32_t>(i)) : i));
        return paths;
    }
    [[nodiscard]] std::vector<std::string> indexes() const {
        std::vector<std::string> paths;
        for (std::uint32_t rank = 0; rank < ranks && directory.has_index(); ++rank) {
            const std::int64_t source = directory.is_log() ? log_source(generation, rank) : group_of(rank);
            paths.push_back(directory.index(source, generation, rank));
        }
        return paths;
    }
    [[nodiscard]] std::string closed() const { return directory.path + "/closed." + std::to_string(generation); }
    [[nodiscard]] std::vector<std::string> texts() const {
        if (directory.has_index()) return {closed()};
        return {closed(), directory.path + "/places", directory.path + "/sizes"};
    }

    std::string text;
    std::uint32_t generation = 0;
};

class Damage : public testing::TestWithParam<Shape> {
protected:
    ~Damage() override { restore(); }

    /// What is to be undone.
    void keep(const std::string& path) { kept_.emplace(path, slurp(path)); }
    void restore() {
        for (const auto& [path, text] : kept_) spill(path, text);
        kept_.clear();
    }
    void remove(const std::string& path) {
        keep(path);
        fs::remove(path);
    }
    void put(const std::string& path, const std::string& text) {
        keep(path);
        spill(path, text);
    }
    void swap(const std::string& one, const std::string& two) {
        const std::string text = slurp(one);
        put(one, slurp(two));
        put(two, text);
    }

    /// Nobody gets a wrong byte, and whoever asks is told this. `rank`: whose read it is; the first one looks at more.
    void expect_named(const std::string& name, const std::string& what, std::uint32_t rank = 0) {
        SCOPED_TRACE(name + ", " + what);
        std::string told;
        auto opened = Container::open(written.backend, written.clock, written.directory, {true, false, 0, rank, 0});
        if (!opened) told = opened.error().message();
        for (std::int64_t at = 0; opened && at < bytes; ++at) {
            char byte = 0;
            const auto done = opened.value()->read_at(-1, &byte, 1, at);
            if (done.error == 0 && done.bytes == 1) {
                ASSERT_EQ(byte, written.text[static_cast<std::size_t>(at)]) << at;
            } else {
                EXPECT_NE(done.error, 0) << "not the end of the file";
                told = opened.value()->problem();
            }
        }
        EXPECT_NE(told.find(name), std::string::npos) << "read: " << told;
        if (rank != 0) return;
        const auto described = describe(written.path);
        const std::string said = !described                           ? described.error().message()
                                 : described.value().problems.empty() ? ""
                                                                      : described.value().problems.front();
        EXPECT_NE(said.find(name), std::string::npos) << "describe: " << said;
        const auto merged = merge(written.backend, written.path, written.folder + "/merged");
        ASSERT_FALSE(merged.ok());
        EXPECT_NE(merged.error().message().find(name), std::string::npos) << "merge: " << merged.error().message();
        EXPECT_FALSE(fs::exists(written.folder + "/merged"));
        restore();
    }
    void expect_whole() {
        auto reader = written.open({true, false, 0, 0, 0});
        EXPECT_EQ(read_all(*reader, 2 * bytes), written.text);
        EXPECT_TRUE(describe(written.path).value().problems.empty());
    }

    Written written{GetParam(), newest_version, 'a'};
    Written other{GetParam(), newest_version, 'A'};

private:
    std::map<std::string, std::string> kept_;
};

TEST_P(Damage, OfTheBytesFilesIsNamed) {
    expect_whole();
    const auto files = written.data(), others = other.data();
    ASSERT_GE(files.size(), 2U);
    ASSERT_EQ(files.size(), others.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string path = files[i], next = files[(i + 1) % files.size()];
        remove(path);
        expect_named(path, "missing");
        const std::string whole = slurp(path);
        for (const std::size_t size : {std::size_t{0}, std::size_t{4095}, whole.size() - 1}) {
            put(path, whole.substr(0, size));
            expect_named(path, "cut to " + std::to_string(size));
        }
        swap(path, next);
        if (written.directory.has_index()) expect_named("it is ", "swapped, read by another rank", 1);
        expect_named(i + 1 < files.size() && !written.directory.is_log() ? path : "it is ", "swapped");
        put(path, slurp(others[i]));
        expect_named(path, "of another container");
        // What says whose the bytes are, and the zeros behind that.
        for (const std::size_t at : {0U, 20U, 40U, 60U, 80U, 100U, 1000U, 4095U}) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 1);
            put(path, changed);
            expect_named(path, "byte " + std::to_string(at));
        }
    }
    expect_whole();
}

TEST_P(Damage, OfIndexesIsNamed) {
    const auto files = written.indexes(), others = other.indexes();
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string& path = files[i];
        const std::string name = fs::path(path).filename(), whole = slurp(path);
        remove(path);
        expect_named(name, "missing");
        for (std::size_t size = 0; size < whole.size(); ++size) {
            put(path, whole.substr(0, size));
            expect_named(name, "cut to " + std::to_string(size));
        }
        for (std::size_t at = 0; at < whole.size(); ++at) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 1);
            put(path, changed);
            expect_named(path, "byte " + std::to_string(at));
        }
        // A copy of another one, as long as this: each of the two by itself is whole.
        const std::string& next = files[(i + 1) % files.size()];
        put(path, slurp(next));
        expect_named(path, "a copy of the next one");
        swap(path, next);
        expect_named("it is index.", "swapped");
        ASSERT_EQ(slurp(others[i]).size(), whole.size());
        put(path, slurp(others[i]));
        expect_named(path + ": a batch of another container", "of another container");
    }
    expect_whole();
}

TEST_P(Damage, OfTextsIsNamed) {
    const auto files = written.texts(), others = other.texts();
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string& path = files[i];
        const std::string whole = slurp(path);
        remove(path);
        const bool by_directory = path == written.closed() && !written.directory.has_index();
        expect_named(by_directory ? written.directory.path : std::string(fs::path(path).filename()), "missing");
        for (std::size_t size = 0; size < whole.size(); ++size) {
            put(path, whole.substr(0, size));
            expect_named(path, "cut to " + std::to_string(size));
        }
        for (std::size_t at = 0; at < whole.size(); ++at) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 1);
            put(path, changed);
            expect_named(path, "byte " + std::to_string(at));
        }
        put(path, slurp(others[i]));
        expect_named(path, "of another container");
    }
    expect_whole();
}

class DamageOfGroups : public Damage {};

/// Somebody has removed open.G or closed.G by hand: the next writer begins none that has its number, and changes nothing.
TEST_P(Damage, OfGenerationsKeepsTheNextOneAway) {
    std::map<std::string, std::string> before;
    for (const auto& files : {written.data(), written.indexes()}) {
        for (const std::string& path : files) before[path] = slurp(path);
    }
    const auto expect_refused = [&](const std::string& what) {
        const auto generation = begin_generation(written.directory);
        if (written.directory.has_index()) {
            ASSERT_FALSE(generation.ok());
            EXPECT_NE(generation.error().message().find(what), std::string::npos) << generation.error().message();
        } else {
            // Who begins one looks at the subfiles next.
            const Role role{false, true, 0, 0, generation.value().number};
            const auto opened = Container::open(written.backend, written.clock, written.directory, role);
            ASSERT_FALSE(opened.ok());
            EXPECT_NE(opened.error().message().find(written.directory.path), std::string::npos);
            EXPECT_EQ(forget_generation(written.directory, role.generation), 0);
        }
        for (const auto& [path, text] : before) EXPECT_EQ(slurp(path), text) << path;
    };
    remove(written.closed());
    for (int attempt = 0; attempt < 2; ++attempt) expect_refused("neither open.1 nor a closed.G");
    // As the message says.
    spill(written.directory.path + "/open.1", "");
    EXPECT_EQ(read_all(*written.open({true, false, 0, 0, 0}), bytes), written.text);
    fs::remove(written.directory.path + "/open.1");
    restore();
    expect_whole();
}

/// The same of a later one, whose job has died: what it has synced is not written over.
TEST_P(DamageOfGroups, OfALaterGenerationKeepsTheNextOneAway) {
    const auto later = written.begin();
    {
        auto writer = written.open({false, true, 0, 0, later});
        ASSERT_EQ(writer->write_at(-1, "later", 5, 0).error, 0);
        ASSERT_EQ(writer->flush(true), 0);
    }
    const std::string path = written.directory.index(0, later, 0), whole = slurp(path);
    ASSERT_FALSE(whole.empty());
    fs::remove(written.directory.path + "/open." + std::to_string(later));
    const auto generation = begin_generation(written.directory);
    ASSERT_FALSE(generation.ok());
    EXPECT_NE(generation.error().message().find(path), std::string::npos) << generation.error().message();
    EXPECT_EQ(slurp(path), whole);
}

/// Reading does not need it.
TEST_P(Damage, OfAboutIsToldByDescribe) {
    const std::string path = written.directory.path + "/about";
    for (const std::string& text : {std::string(), slurp(other.directory.path + "/about"), slurp(path).substr(1)}) {
        put(path, text);
        const auto problems = describe(written.path).value().problems;
        ASSERT_EQ(problems.size(), 1U);
        EXPECT_EQ(problems.front(), path + ": it is not this container's");
        restore();
    }
    remove(path);
    ASSERT_EQ(describe(written.path).value().problems.size(), 1U);
    restore();
    expect_whole();
}

/// A directory that has got another container's name.
TEST_P(Damage, ThatPutsOneDirectoryInThePlaceOfAnotherIsSeen) {
    const std::string kept = written.directory.path + ".kept";
    fs::rename(written.directory.path, kept);
    fs::copy(other.directory.path, written.directory.path, fs::copy_options::recursive);
    const auto described = describe(written.path);
    EXPECT_TRUE(!described || !described.value().problems.empty());
    const Directory anew = directory_of(written.path, written.header_file);
    EXPECT_FALSE(Container::open(written.backend, written.clock, anew, {true, false, 0, 0, 0}).ok());
    EXPECT_FALSE(merge(written.backend, written.path, written.folder + "/merged").ok());
    fs::remove_all(written.directory.path);
    fs::rename(kept, written.directory.path);
    expect_whole();
}

/// Of a job that has died, too, what was cut off is no end of the file.
TEST_P(DamageOfGroups, IsNamedWhileAJobWrites) {
    EXPECT_GT(written.begin(), written.generation);
    const std::string path = written.data().back(), whole = slurp(path);
    put(path, whole.substr(0, whole.size() - 1));
    auto reader = written.open({true, false, 0, 0, 0});
    EXPECT_EQ(reader->length(), bytes);
    char byte = 0;
    EXPECT_EQ(reader->read_at(-1, &byte, 1, bytes - 1).error, EIO);
    EXPECT_NE(reader->problem().find(path), std::string::npos) << reader->problem();
}

TEST_P(DamageOfGroups, KeepsTheirWritersAway) {
    const auto files = written.data();
    put(files[1], slurp(files[0]));
    const auto opened =
        Container::open(written.backend, written.clock, written.directory, {false, true, 1, 2, written.begin()});
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message().find(files[1] + ": it is group.0/data"), std::string::npos)
        << opened.error().message();
}

/// Nobody has written such containers for long, but they are there.
TEST_P(Damage, VersionTwoIsReadAndWritten) {
    Written earlier(GetParam(), 2, 'k');
    EXPECT_TRUE(slurp(earlier.path).starts_with("ioweir container 2\n"));
    EXPECT_EQ(read_header_file(earlier.path).value()->version, 2);
    if (GetParam().kind == Shape::Kind::grouped) {
        EXPECT_EQ(slurp(earlier.data()[0]).substr(0, piece), earlier.text.substr(0, piece));
    }
    if (!earlier.indexes().empty()) {
        EXPECT_TRUE(slurp(earlier.indexes()[0]).starts_with("WIX2"));
        EXPECT_TRUE(slurp(written.indexes()[0]).starts_with("WIX3"));
        // One of each in the place of the other.
        swap(earlier.indexes()[1], written.indexes()[1]);
        const auto described = describe(earlier.path);
        ASSERT_FALSE(described.ok());
        EXPECT_NE(described.error().message().find("later version (WIX3)"), std::string::npos);
        expect_named("earlier version (WIX2)", "an index of version 2");
    }
    EXPECT_TRUE(slurp(earlier.closed()).starts_with("stamp "));
    const auto described = describe(earlier.path);
    ASSERT_TRUE(described.ok()) << described.error().message();
    EXPECT_TRUE(described.value().problems.empty());
    EXPECT_EQ(merge(earlier.backend, earlier.path, earlier.path).value(), bytes);
    EXPECT_EQ(slurp(earlier.path), earlier.text);
}

std::string kind_of(const testing::TestParamInfo<Shape>& one) {
    const Shape::Kind kind = one.param.kind;
    return kind == Shape::Kind::grouped ? "grouped" : kind == Shape::Kind::log ? "log" : "subfiles";
}
INSTANTIATE_TEST_SUITE_P(Shapes, Damage,
                         testing::Values(Shape{2}, Shape{0, Shape::Kind::log}, Shape{3, Shape::Kind::subfiles, 4}),
                         kind_of);
INSTANTIATE_TEST_SUITE_P(Shapes, DamageOfGroups, testing::Values(Shape{2}, Shape{3}),
                         [](const auto& one) { return "of" + std::to_string(one.param.count); });

/// Which one is missed, of any number that were there.
TEST(Left, NamesTheOnlyOneThatIsMissed) {
    Left closed;
    for (std::uint32_t generation = 1; generation < 4; ++generation) {
        for (std::uint32_t rank = 0; rank < 5; ++rank) closed += Left::of(generation, rank, 56 + 48 * rank);
    }
    for (std::uint32_t generation = 1; generation < 4; ++generation) {
        for (std::uint32_t rank = 0; rank < 5; ++rank) {
            const Left one = Left::of(generation, rank, 56 + 48 * rank);
            const auto missed = (closed - (closed - one)).only_one();
            ASSERT_TRUE(missed.has_value());
            EXPECT_EQ(missed->generation, generation);
            EXPECT_EQ(missed->rank, rank);
            // All of its bytes but seven.
            Left shorter = closed - one;
            shorter += Left::of(generation, rank, 7);
            const auto cut = (closed - shorter).only_one();
            ASSERT_TRUE(cut.has_value());
            EXPECT_EQ(cut->generation, generation);
            EXPECT_EQ(cut->rank, rank);
        }
    }
    // Two that have lost the same look like the one between them.
    const Left two = closed - Left::of(1, 1, 104) - Left::of(1, 3, 200);
    EXPECT_FALSE((closed - two).only_one().has_value());
    Left both = two;
    both += Left::of(1, 1, 100);
    both += Left::of(1, 3, 196);
    EXPECT_EQ((closed - both).bytes, 8);
    EXPECT_FALSE((closed - both).only_one().has_value());
    EXPECT_FALSE(Left().only_one().has_value());
    EXPECT_FALSE((Left() - closed).only_one().has_value());
}

}  // namespace
}  // namespace ioweir::container
