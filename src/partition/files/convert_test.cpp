#include "partition/files/convert.hpp"

#include <filesystem>
#include <map>

#include "partition/files/serial_file.hpp"
#include "partition/files/set_for_tests.hpp"
#include "partition/files/set_reader.hpp"

namespace ioweir::partition {
namespace {

class ConvertTest : public SetsTest {
protected:
    /// Part 1 to 5 of step 4, in two flat files as PHASTA leaves them: 3 parts cannot be with 2, so 2 and 2.
    void SetUp() override {
        spill(SetName{base_, 4, false}.file(0), file_bytes({0, 2}));
        spill(SetName{base_, 4, false}.file(1), file_bytes({2, 2}));
    }
    [[nodiscard]] std::unique_ptr<BlockSource> source(const std::string& path) const {
        return open_source(path).take();
    }
    /// Every file below a directory, by its path.
    static std::map<std::string, std::string> all_in(const std::string& folder) {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            if (entry.is_regular_file())
                files[entry.path().string().substr(folder.size())] = read_text(entry.path()).value();
        }
        return files;
    }
    [[nodiscard]] std::string flat(std::int64_t number = 0) const { return SetName{base_, 4, false}.file(number); }
};

TEST_F(ConvertTest, AnyNumberOfFilesHoldsTheSameBlocks) {
    for (const std::int64_t files : {1, 3, 4}) {
        const std::string to = folder_ + "/to" + std::to_string(files);
        ASSERT_TRUE(write_set(*source(flat()), {to, 9, true}, files, false).ok());
        EXPECT_TRUE(check_set(to, 9).empty());
        auto reader = SetReader::open(to, 9).take();
        EXPECT_EQ(std::ssize(reader.manifest().files), files);
        for (std::int64_t part = 0; part < 4; ++part) {
            std::string items(static_cast<std::size_t>(8 * part), '?');
            ASSERT_FALSE(reader.read("u", part, items.data(), 8 * part, 8).has_value());
            EXPECT_EQ(items, std::string(items.size(), static_cast<char>('a' + part)));
            EXPECT_EQ(reader.block("u", part).value().header.parameters, std::vector<std::int64_t>{part});
        }
    }
}

TEST_F(ConvertTest, ThroughSerialFilesAndBackNoByteIsAnother) {
    const std::string first = folder_ + "/first", second = folder_ + "/second";
    for (const std::string& one : {first, second}) std::filesystem::create_directory(one);
    ASSERT_TRUE(write_set(*source(flat()), {first + "/a", 4, false}, 2, false).ok());
    ASSERT_TRUE(write_serial(*source(first + "/a-dat.4.1"), folder_ + "/s", 4, false).ok());
    ASSERT_TRUE(write_set(*source(folder_ + "/s.4.1"), {second + "/a", 4, false}, 2, false).ok());
    EXPECT_EQ(all_in(first), all_in(second));
    EXPECT_EQ(all_in(first).size(), 3U);
    EXPECT_EQ(read_text(folder_ + "/s.4.2").value().substr(96),
              "byteorder magic number : < 5 > 1\n" + std::string("\xc4\x87\x05\0\n", 5) + "u : < 9 > 1\nbbbbbbbb\n");
}

TEST_F(ConvertTest, SerialFilesThatAreNoneAreErrors) {
    const auto said = [&](const std::string& bytes) {
        spill(folder_ + "/s.1.1", bytes);
        const auto opened = open_source(folder_ + "/s.1.1");
        return opened ? "" : opened.error().what;
    };
    const std::string front = serial_front(false);
    EXPECT_EQ(said(front + "u : < 9 > 1\nbbbbbbbb\n"), "");
    EXPECT_EQ(said(front + "u : < 9 > 1\nbbbbbbbb"), "") << "the last newline may be missing";
    EXPECT_EQ(said(""), "no serial file of PHASTA's: it does not tell its byte order");
    EXPECT_EQ(said(front + "u : < 9 > 1\nbbb"), "no serial file of PHASTA's: field u is cut off: 8 bytes at byte " +
                                                    std::to_string(front.size() + 12) + " of " +
                                                    std::to_string(front.size() + 15));
    EXPECT_EQ(said(front + "u : < 9223372036854775807 > 1\nb\n").substr(0, 50),
              "no serial file of PHASTA's: field u is cut off: 92");
    EXPECT_EQ(said(front + "u : < -4 > 1\n"), "a data block's header has no size between '<' and '>'");
    EXPECT_EQ(said(front + "u : < 0 > 1"),
              "no serial file of PHASTA's: a header without an end at byte " + std::to_string(front.size()));
    EXPECT_EQ(said(front + std::string(9000, 'x')).substr(0, 46), "no serial file of PHASTA's: a header without a");
    EXPECT_EQ(said(front + "u : < 0 > 1\nu : < 0 > 1\n"), "a field that is there twice");
    spill(folder_ + "/s.1.2", front);
    EXPECT_EQ(said(front + "u : < 0 > 1\n"), "a field that is missing");
}

TEST_F(ConvertTest, WhatCannotBeLeavesNothing) {
    EXPECT_EQ(write_set(*source(flat()), {folder_ + "/to", 1, true}, 5, false).error().message(),
              "a number of files that cannot be: 5; from 1 to the number of parts, 4");
    EXPECT_EQ(open_source(folder_ + "/nothing").error().what, "neither a set's name nor a serial file's");
    EXPECT_EQ(open_source(folder_ + "/nothing.1.1").error().what, "no serial files");
    auto from = source(flat(1));
    spill(flat(1), file_bytes({2, 2}).substr(0, (4 << 20) + 1024));  // cut after it was opened
    EXPECT_FALSE(write_serial(*from, folder_ + "/s", 1, false).ok());
    EXPECT_FALSE(write_set(*from, {folder_ + "/to", 1, true}, 1, false).ok());
    EXPECT_EQ(all_in(folder_).size(), 2U);
    spill(flat(1), file_bytes({2, 2}));
    spill(folder_ + "/s.1.3", "another's");
    EXPECT_EQ(write_serial(*source(flat()), folder_ + "/s", 1, false).error().what,
              "a file of that name is there already");
    EXPECT_EQ(all_in(folder_).size(), 3U);
    EXPECT_TRUE(write_serial(*source(flat()), folder_ + "/s", 1, true).ok());
    EXPECT_EQ(all_in(folder_).size(), 6U);
}

}  // namespace
}  // namespace ioweir::partition
