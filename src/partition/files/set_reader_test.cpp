#include "partition/files/set_reader.hpp"

#include <sys/stat.h>

#include "partition/files/posix_file.hpp"
#include "partition/files/serial_file.hpp"
#include "partition/files/set_for_tests.hpp"

namespace ioweir::partition {
namespace {

class SetReaderTest : public SetsTest {
protected:
    /// As PHASTA leaves them: no manifest.
    void spill_flat(std::int64_t step, std::int64_t number, const std::string& bytes) const {
        spill(SetName{base_, step, false}.file(number), bytes);
    }
};

TEST_F(SetReaderTest, PhastasFilesAreASetAsFarAsTheyGo) {
    spill_flat(1, 0, file_bytes({0, 2}));
    spill_flat(1, 1, file_bytes({2, 2}));
    auto reader = SetReader::open(base_, 1).take();
    EXPECT_FALSE(reader.has_manifest());
    EXPECT_EQ(reader.manifest().parts(), 4);
    EXPECT_EQ(reader.block("u", 3).value().header, (BlockHeader{"u", 4, 24, {3}}));
    EXPECT_EQ(reader.block("v", 0).error().message(), "no such field: v; the set has: u");
    EXPECT_EQ(reader.block("u", 4).error().message(), "no such part: 5; parts are 1 to 4");
    EXPECT_EQ(reader.block("u", -1).error().what, no_part);
    std::string items(23, '?');
    EXPECT_EQ(reader.read("u", 3, items.data(), 23, 8)->what, "a block of another size");
    spill_flat(1, 2, file_bytes({4, 1}));
    EXPECT_EQ(SetReader::open(base_, 1).error().what, "files that are not of one set");
}

TEST_F(SetReaderTest, WhatIsNoFileIsNotWaitedFor) {
    const std::string path = SetName{base_, 1, false}.file(0);
    const auto refused = [&] {
        EXPECT_FALSE(SetReader::open(base_, 1).ok());
        EXPECT_EQ(SerialFile::open(path).error().what, "no regular file");
        EXPECT_EQ(read_text(path).error().what, "no regular file");
        std::filesystem::remove(path);
    };
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    refused();
    std::filesystem::create_symlink("/dev/zero", path);
    refused();
    std::filesystem::create_directory(path);
    refused();
}

TEST_F(SetReaderTest, NothingIsWrittenThroughALink) {
    const std::string path = folder_ + "/manifest", victim = folder_ + "/victim";
    spill(victim, "precious");
    for (const std::string& planted : {path, path + ".new"}) {
        std::filesystem::create_symlink(victim, planted);
        EXPECT_EQ(write_text(path, "mine"), 0);
        EXPECT_EQ(read_text(path).value(), "mine");
        EXPECT_EQ(read_text(victim).value(), "precious");
        EXPECT_FALSE(std::filesystem::is_symlink(path));
        std::filesystem::remove(path);
    }
}

TEST_F(SetReaderTest, WhatABlockSaysMustFit) {
    std::string bytes = file_bytes({0, 2});
    const auto second = bytes.size() - 1024 - 8;
    const auto with = [&](const std::string& line) {
        std::string changed = bytes;
        changed.replace(second, 64, line + std::string(64 - line.size(), '\0'));
        spill_flat(1, 0, changed);
        return SetReader::open(base_, 1).take().block("u", 1);
    };
    EXPECT_TRUE(with("\nu@2 : < 9 > \n").ok());
    EXPECT_EQ(with("\nu@2 : < 10 > \n").error().what, "a block that is cut off");
    EXPECT_EQ(with("\nu@2 : < 9223372036854775807 > \n").error().what, "a block that is cut off");
    EXPECT_EQ(with("\nv@2 : < 9 > \n").error().what, "a block of another field");
    EXPECT_EQ(with("\nu@3 : < 9 > \n").error().what, "a block of another part");
    EXPECT_EQ(with("nonsense").error().what, "a data block's header has no ':'");
    const auto problems = check_set(base_, 1);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].find("field u, part 1 of the file"), std::string::npos) << problems[0];
}

TEST_F(SetReaderTest, OfNoSetTheStepsAreNamed) {
    EXPECT_EQ(SetReader::open(base_, 7).error().what, no_set);
    EXPECT_EQ(SetReader::last_step(base_).error().what, no_complete_set);
    EXPECT_EQ(SetReader::last_step(folder_ + "/nowhere/run").error().what, "no directory to look for sets in");
    spill_flat(9, 0, "no set");
    EXPECT_NE(SetReader::last_step(base_).error().value.find("shorter than its header"), std::string::npos);
}

}  // namespace
}  // namespace ioweir::partition
