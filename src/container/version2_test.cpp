// Containers of version 2, byte by byte as ioweir wrote them before version 3 (docs/reference/containers.md): every text and batch is written
// out here, with checks that an XXH64 in Python has given. What does not live here: what differs in version 3 (damage_test.cpp).
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

const std::string id = "00112233445566778899aabbccddeeff";
/// Ranks 0 and 1 have written 4 bytes in turn.
const std::string text = "abcdefghijklmnopqrstuvwx";

/// A folder with a header file "file" and its directory.
class Version2 : public testing::Test {
protected:
    Version2() {
        char name[] = "/tmp/ioweir-version2-XXXXXX";
        folder_ = ::mkdtemp(name);
        path_ = folder_ + "/file";
        directory_ = folder_ + "/.ioweir-" + id;
        fs::create_directory(directory_);
    }
    ~Version2() override { fs::remove_all(folder_); }

    void put(const std::string& name, const std::string& bytes) {
        fs::create_directories(fs::path(directory_ + "/" + name).parent_path());
        spill(directory_ + "/" + name, bytes);
    }
    void put_header_file(const std::string& mapping, const std::string& check) {
        const std::string header_file =
            "ioweir container 2\nid " + id + "\nmapping " + mapping + "\ncheck " + check +
            "\n\nThis file stands for one whose bytes are in the directory .ioweir-" + id +
            "\nbeside it. Programs under ioweir read it through MPI-IO;\nto make it an ordinary "
            "file: ioweir merge FILE\n";
        spill(path_, header_file);
        put("about", header_file + "file " + path_ + "\n");
    }
    static std::string with_zeros(std::string header) {
        header.resize(4096, '\0');
        return header;
    }
    static std::string numbers(std::initializer_list<std::uint64_t> values, int bytes) {
        std::string all;
        for (const std::uint64_t value : values) {
            for (int i = 0; i < bytes; ++i) all += static_cast<char>(value >> (8 * i) & 0xff);
        }
        return all;
    }
    /// One batch with one entry: three pieces of 4 bytes, 8 apart in the file.
    static std::string index(std::uint64_t rank, std::uint64_t source, std::uint64_t place, std::uint64_t apart,
                             std::uint64_t check) {
        return "WIX2" + numbers({1}, 4) + numbers({0x100 + rank}, 8) + numbers({1, rank}, 4) +
               numbers({source, check}, 8) + numbers({4 * rank, 4, place, 8, apart, 3}, 8);
    }

    /// It reads, checks and merges; a byte that has changed is noticed.
    void expect_whole(const std::string& mapping, const std::string& part) {
        const auto described = describe(path_);
        ASSERT_TRUE(described.ok()) << described.error().message();
        const Description& what = described.value();
        EXPECT_EQ(what.problems, std::vector<std::string>());
        EXPECT_EQ(what.header_file.version, 2);
        EXPECT_EQ(to_text(what.header_file.shape), mapping);
        EXPECT_EQ(what.bytes, std::ssize(text));
        EXPECT_EQ(what.held_bytes, std::ssize(text));
        const Directory directory = directory_of(path_, what.header_file);
        storage::PosixBackend backend;
        Clock clock;
        {
            auto reader = Container::open(backend, clock, directory, {true, false, 0, 0, 0});
            ASSERT_TRUE(reader.ok()) << reader.error().message();
            EXPECT_EQ(reader.value()->length(), std::ssize(text));
            EXPECT_EQ(read_all(*reader.value(), 100), text);
        }
        const std::string whole = slurp(directory_ + "/" + part);
        for (std::size_t at = 0; at < whole.size(); ++at) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 1);
            put(part, changed);
            const auto damaged = describe(path_);
            EXPECT_TRUE(!damaged.ok() || !damaged.value().problems.empty()) << part << ", byte " << at;
        }
        put(part, whole);
        EXPECT_EQ(merge(backend, path_, folder_ + "/merged").value(), std::ssize(text));
        EXPECT_EQ(slurp(folder_ + "/merged"), text);
        EXPECT_EQ(merge(backend, path_, path_).value(), std::ssize(text));
        EXPECT_EQ(slurp(path_), text);
        EXPECT_FALSE(fs::exists(directory_));
    }

    std::string folder_, path_, directory_;
};

TEST_F(Version2, OfGroupsIsReadCheckedAndMerged) {
    put_header_file("grouped:2", "a9c723a2e1c25321");
    const std::string hole(4, '\0');
    put("group.0/data", "abcd" + hole + "ijkl" + hole + "qrst");
    put("group.1/data", hole + "efgh" + hole + "mnop" + hole + "uvwx");
    put("group.0/index.1.0", index(0, 0, 0, 8, 0xc9e63140fe55d5c9));
    put("group.1/index.1.1", index(1, 1, 4, 8, 0x5c62e8da7a91310e));
    put("closed.1", "stamp 0000000000000101\nindexes 2\nbytes 176\ncheck b0fdad651192bd0a\n");
    expect_whole("grouped:2", "group.1/index.1.1");
}

TEST_F(Version2, OfLogsIsReadCheckedAndMerged) {
    put_header_file("log", "11139f2aa5e3a0d2");
    for (int log = 0; log < 64; ++log) fs::create_directory(directory_ + "/logs." + std::to_string(log));
    const std::string head = "ioweir log 1\nid " + id + "\ngeneration 1\nrank ";
    put("logs.0/data.1.0", with_zeros(head + "0\ncheck 9c4e3f8f69596c5b\n") + "abcdijklqrst");
    put("logs.1/data.1.1", with_zeros(head + "1\ncheck 78390f3d123691d8\n") + "efghmnopuvwx");
    put("logs.0/index.1.0", index(0, 0x100000000, 4096, 4, 0x42f953110c87370c));
    put("logs.1/index.1.1", index(1, 0x100000001, 4096, 4, 0x6b42509c3f4510ff));
    put("closed.1", "stamp 0000000000000101\nindexes 2\nbytes 176\ncheck b0fdad651192bd0a\n");
    expect_whole("log", "logs.0/index.1.0");
}

TEST_F(Version2, OfSubfilesIsReadCheckedAndMerged) {
    put_header_file("subfiles:3 stripe 4", "cafa83aa77c443eb");
    const std::array<const char*, 3> checks{"4da2bba31f45083b", "2110eb4e6b0cd82d", "95ff70ba688e8495"};
    for (std::size_t k = 0; k < checks.size(); ++k) {
        const std::string number = std::to_string(k);
        put("subfile." + number, with_zeros("ioweir subfile 1\nid " + id + "\nnumber " + number +
                                            " of 3\nstripe 4\ncheck " + checks[k] + "\n") +
                                     text.substr(4 * k, 4) + text.substr(4 * k + 12, 4));
    }
    put("places", "ioweir places 1\ncheck 2810dd6d8ffb09d3\n");
    put("sizes", "ioweir sizes 1\n4104\n4104\n4104\ncheck c81164de8ed0dbcb\n");
    put("closed.1", "stamp 0000000000000101\nindexes 0\nbytes 0\ncheck 891a82df94b6b729\n");
    expect_whole("subfiles:3 stripe 4", "sizes");
}

}  // namespace
}  // namespace ioweir::container
