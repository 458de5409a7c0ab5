// What says that a job has not ended, and what such jobs leave.
#include "ncsub/writing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "ncsub/core/partition.hpp"
#include "ncsub/files.hpp"

namespace ioweir::ncsub {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// A master and two subfiles, as a job makes them.
struct Set {
    Set() {
        char name[] = "/tmp/ioweir-writing-XXXXXX";
        folder = ::mkdtemp(name);
        path = folder + "/a.nc";
        logical.header.dimensions = {{"z", 4}, {"t", 0}};
        logical.header.variables = {{"cube", {0}, {}, Type::int32, 16, 200},
                                    {"series", {1, 0}, {}, Type::byte, 4, 216}};
        logical.header.version = 5;
        logical.subfiles = 2;
        logical.id = "0123";
        logical.divisions = {Division{0, {0}, boundaries_of(4, 2)}, Division{1, {1, 0}, boundaries_of(4, 2)}};
        write(path, master_of(logical), 0);
        for (std::int64_t number = 0; number < 2; ++number) {
            Header part = subfile_of(logical, number);
            part.variables[0].begin = 1000;
            part.variables[1].begin = 1008;
            part.records = 3;
            write(subfile_path(path, number), part, 1008 + 2 * 4 + 2);
        }
    }
    ~Set() { fs::remove_all(folder); }
    Set(const Set&) = delete;
    Set& operator=(const Set&) = delete;

    static void write(const std::string& to, const Header& header, std::size_t length) {
        std::string bytes = encode(header);
        bytes.resize(std::max(bytes.size(), length), '\0');
        spill(to, bytes);
    }
    [[nodiscard]] std::vector<std::string> problems() const { return describe(path).value().problems; }

    std::string folder, path;
    Logical logical;
};

TEST(Writing, IsBegunUntilAllIsClosed) {
    const Set set;
    const std::string before = slurp(set.path);
    EXPECT_EQ(writing_of(read_header(set.path).value()), Writing::begun);
    ASSERT_EQ(set.problems().size(), 1U);
    EXPECT_EQ(set.problems()[0],
              "writing was begun and not ended: its job has died, and data that it wrote may be missing");
    EXPECT_EQ(describe(set.path).value().unfinished, set.problems());
    EXPECT_FALSE(merge(set.path, set.path).ok());
    EXPECT_EQ(slurp(set.path), before);
    EXPECT_FALSE(end_writing(set.path).has_value());
    EXPECT_EQ(writing_of(read_header(set.path).value()), Writing::ended);
    EXPECT_EQ(set.problems(), std::vector<std::string>());
    // Nothing but the word has changed.
    std::string expected = before;
    expected.replace(expected.find("begun"), 5, "ended");
    EXPECT_EQ(slurp(set.path), expected);
    EXPECT_FALSE(end_writing(set.path).has_value()) << "once more changes nothing";
    EXPECT_EQ(slurp(set.path), expected);
    EXPECT_TRUE(merge(set.path, set.path).ok());
}

TEST(Writing, WhatIsMissingIsSaid) {
    const Set set;
    const std::string part = subfile_path(set.path, 1);
    fs::resize_file(part, 1010);
    ASSERT_EQ(set.problems().size(), 2U);
    EXPECT_EQ(set.problems()[1], part + " has 1010 of the 1014 bytes that its header speaks of");
}

TEST(Writing, WithAnOutputOrByWishWhatIsThereIsKept) {
    const Set set;
    EXPECT_TRUE(merge(set.path, set.folder + "/other").ok());
    EXPECT_TRUE(fs::exists(set.path));
    EXPECT_TRUE(merge(set.path, set.path, true).ok());
    EXPECT_EQ(slurp(set.path), slurp(set.folder + "/other"));
    EXPECT_FALSE(fs::exists(subfile_path(set.path, 0)));
}

TEST(Writing, AJobThatStillWritesIsNotDisturbed) {
    const Set set;
    EXPECT_FALSE(is_written_now(set.path));
    const int job = hold_writing(set.path), other = hold_writing("ufs:" + set.path);
    ASSERT_GE(job, 0);
    ASSERT_GE(other, 0) << "and another one of it";
    EXPECT_TRUE(is_written_now(set.path));
    EXPECT_EQ(set.problems()[0], "writing was begun and not ended: a job still writes");
    const auto merged = merge(set.path, set.path, true);
    ASSERT_FALSE(merged.ok());
    EXPECT_NE(merged.error().message().find("a job still writes it"), std::string::npos);
    ::close(job);
    ::close(other);
    EXPECT_FALSE(is_written_now(set.path));
}

/// One that PnetCDF has made, or an earlier ioweir.
TEST(Writing, WhoAsksWhetherAJobWritesDoesNotKeepOneFromSayingIt) {
    const Set set;
    const int asks = ::open(set.path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::flock(asks, LOCK_EX), 0);
    std::thread ends([&] {
        ::usleep(20'000);
        ::close(asks);
    });
    const int job = hold_writing(set.path);
    ends.join();
    ASSERT_GE(job, 0);
    EXPECT_TRUE(is_written_now(set.path));
    ::close(job);
    // Somebody has it for good: the job goes on without.
    const int keeps = ::open(set.path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::flock(keeps, LOCK_EX), 0);
    EXPECT_EQ(hold_writing(set.path), -1);
    ::close(keeps);
}

TEST(Writing, AMasterThatDoesNotSayItHasAFileBesideIt) {
    const Set set;
    Header old = master_of(set.logical);
    std::erase_if(old.attributes, [](const Attribute& one) { return one.name == "_ioweir.writing"; });
    Set::write(set.path, old, 0);
    EXPECT_EQ(set.problems(), std::vector<std::string>()) << "it can be read as before";
    const std::string bytes = slurp(set.path);
    EXPECT_EQ(make_mark(set.path), 0);
    EXPECT_EQ(make_mark(set.path), EEXIST);
    ASSERT_EQ(set.problems().size(), 1U);
    EXPECT_FALSE(end_writing(set.path).has_value());
    EXPECT_EQ(slurp(set.path), bytes);
    const auto left = leftover_at(logical_path(set.path));
    ASSERT_TRUE(left.has_value());
    EXPECT_EQ(left->file, set.path);
    EXPECT_NE(left->problem, "") << "it alone says that the file is not complete";
    remove_mark(set.path);
    EXPECT_EQ(set.problems(), std::vector<std::string>());
    EXPECT_EQ(make_mark(set.path), 0);
    EXPECT_TRUE(merge(set.path, set.path, true).ok());
    EXPECT_FALSE(has_mark(set.path));
}

TEST(Writing, WhatSomebodyHasPutInThePlaceOfTheMarkStays) {
    const Set set;
    const std::string mark = logical_path(set.path), other = set.path + ".other";
    EXPECT_EQ(clear_mark(set.path), "");
    spill(other, "precious");
    fs::create_symlink(other, mark);
    EXPECT_NE(clear_mark(set.path).find("is a symbolic link"), std::string::npos);
    EXPECT_EQ(make_mark(set.path), EEXIST);
    fs::remove(mark);
    fs::create_hard_link(other, mark);
    EXPECT_NE(clear_mark(set.path).find("hard link"), std::string::npos);
    fs::remove(mark);
    ASSERT_EQ(::mkfifo(mark.c_str(), 0600), 0);
    EXPECT_NE(clear_mark(set.path).find("it is a pipe"), std::string::npos);
    fs::remove(mark);
    EXPECT_EQ(make_mark(set.path), 0);
    EXPECT_EQ(clear_mark(set.path), "") << "what a job has left";
    EXPECT_FALSE(has_mark(set.path));
    std::string text;
    std::getline(std::ifstream(other), text);
    EXPECT_EQ(text, "precious");
}

TEST(Writing, LeftoversAreKnownByWhatTheySay) {
    const Set set;
    const std::string part = subfile_path(set.path, 0);
    EXPECT_FALSE(leftover_at(part).has_value()) << "its master is there";
    EXPECT_FALSE(leftover_at(set.path).has_value());
    const int job = hold_writing(set.path);
    spill(logical_path(set.path), "CDF\x01");
    EXPECT_TRUE(leftover_at(logical_path(set.path)).value().in_use);
    ::close(job);
    EXPECT_EQ(leftover_at(logical_path(set.path)).value().problem, "");
    // Somebody has made another file of that name.
    spill(set.path, "CDF\x01 another");
    EXPECT_EQ(leftover_at(part).value().problem, "");
    EXPECT_EQ(leftover_at(part).value().file, set.path);
    fs::remove(set.path);
    EXPECT_EQ(leftover_at(part).value().problem, "");
    fs::rename(part, set.folder + "/elsewhere");
    fs::create_symlink("elsewhere", part);
    EXPECT_FALSE(leftover_at(part).has_value()) << "a link may lead anywhere";
    fs::remove(part);
    // Files of other people's with such names, and what is no file.
    for (const char* name : {"b.nc.ioweir-logical", "b.nc.ioweir-merging", "b.nc.subfile_0.nc"}) {
        spill(set.folder + "/" + name, "a text of somebody's");
        EXPECT_FALSE(leftover_at(set.folder + "/" + name).has_value()) << name;
        fs::remove(set.folder + "/" + name);
        fs::create_directory(set.folder + "/" + name);
        EXPECT_FALSE(leftover_at(set.folder + "/" + name).has_value()) << name;
    }
}

RC_GTEST_PROP(Writing, EndOfDataHoldsForNumbersThatDoNotFit, ()) {
    Header header;
    header.records = *rc::gen::arbitrary<std::int64_t>();
    header.dimensions = {
        {"t", 0}, {"x", *rc::gen::arbitrary<std::int64_t>()}, {"y", *rc::gen::arbitrary<std::int64_t>()}};
    header.variables = {{"v", {0, 1}, {}, Type::float64, 0, *rc::gen::inRange<std::int64_t>(0, INT64_MAX)},
                        {"w", {1}, {}, Type::float64, 0, *rc::gen::inRange<std::int64_t>(0, INT64_MAX)}};
    RC_ASSERT(end_of_data(header) >= 0);
}

}  // namespace
}  // namespace ioweir::ncsub
