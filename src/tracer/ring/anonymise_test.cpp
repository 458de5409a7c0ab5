// Names of paths: nothing of the path stays but its extension, the same path keeps its name, another key gives others.
#include "tracer/ring/anonymise.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace ioweir::tracer {
namespace {

constexpr HashKey some_key{0x0706'0504'0302'0100ULL, 0x0f0e'0d0c'0b0a'0908ULL};

std::string name_of(std::string_view path, const HashKey& key = some_key) {
    char out[4096];
    const std::size_t length = anonymise(key, path, out, sizeof out);
    EXPECT_EQ(std::string(out), std::string(out, length));
    return out;
}

TEST(Anonymise, HashIsSipHash24) {
    // The vectors of the paper's reference implementation: input 00 01 02 ... under the key 00 01 .. 0f.
    std::string input;
    EXPECT_EQ(keyed_hash(some_key, input), 0x726f'db47'dd0e'0e31ULL);
    for (char c = 0; c < 15; ++c) input += c;
    EXPECT_EQ(keyed_hash(some_key, input), 0xa129'ca61'49be'45e5ULL);
}

TEST(Anonymise, NothingOfAPathStaysButItsShapeAndExtension) {
    const std::string name = name_of("/scratch/alice/run.d/plot_0001.h5");
    EXPECT_EQ(std::count(name.begin(), name.end(), '/'), 4);
    EXPECT_TRUE(name.ends_with(".h5")) << name;
    for (const char* word : {"scratch", "alice", "run", "plot", "0001", ".d"})
        EXPECT_EQ(name.find(word), std::string::npos) << name;
    EXPECT_TRUE(name_of("/a/.hidden").find("hidden") == std::string::npos);
    EXPECT_TRUE(name_of("/a/x.secretproject").find("secret") == std::string::npos);
    EXPECT_TRUE(name_of("/a/x.a b").find("a b") == std::string::npos);
}

TEST(Anonymise, SamePathSameNameAndFoldersStayTogether) {
    EXPECT_EQ(name_of("/a/b/c.nc"), name_of("/a/b/c.nc"));
    EXPECT_NE(name_of("/a/b/c.nc"), name_of("/a/b/d.nc"));
    EXPECT_NE(name_of("/a/b/c.nc"), name_of("/a/b/c.nc", HashKey{1, 2}));
    const std::string folder = name_of("/a/b");
    EXPECT_TRUE(name_of("/a/b/c.nc").starts_with(folder + "/"));
    std::set<std::string> names;
    for (int i = 0; i < 10'000; ++i) names.insert(name_of("/data/file" + std::to_string(i)));
    EXPECT_EQ(names.size(), 10'000U);
}

TEST(Anonymise, RuntimeFilesAreStillToldApart) {
    EXPECT_TRUE(name_of("/dev/shm/vader_segment.host.0.1").starts_with("/dev/shm/vader_segment"));
    EXPECT_EQ(name_of("/dev/shm/vader_segment.host.0.1").find("host"), std::string::npos);
    const std::string session = name_of("/tmp/ompi.host.1000/pid.7/0");
    EXPECT_NE(session.find("/ompi."), std::string::npos) << session;
    EXPECT_EQ(session.find("host"), std::string::npos);
    const std::string step = name_of("/tmp/spmix_appdir_1000_4711.0/3");
    EXPECT_NE(step.find("/spmix_appdir_"), std::string::npos) << step;
    EXPECT_EQ(step.find("4711"), std::string::npos);
    const std::string pointer = name_of("/scratch/plot-461645804-663.lock");
    EXPECT_TRUE(pointer.ends_with("-461645804-663.lock")) << pointer;
    EXPECT_EQ(pointer.find("plot"), std::string::npos);
    EXPECT_EQ(name_of("/scratch/plot-663.lock").find("663"), std::string::npos);
    EXPECT_TRUE(name_of("/scratch/-7-8.lock").ends_with("-7-8.lock"));
    for (const char* odd : {"/a/.lock", "/a/-.lock", "/a/7.lock", "/a/-7.lock", "/a/7-8.lock", "/a/--8.lock"})
        EXPECT_EQ(name_of(odd).find('-'), std::string::npos) << odd;
    const std::string probe = name_of("/scratch/plot.locktest.7");
    EXPECT_TRUE(probe.ends_with(".locktest.7")) << probe;
    EXPECT_EQ(probe.find("plot"), std::string::npos);
}

TEST(Anonymise, WhatDoesNotFitIsLeftOut) {
    const std::string path(3000, '/');
    char out[40];
    for (const std::string& text : {path, "/" + std::string(100, 'x') + "/" + std::string(100, 'y')}) {
        const std::size_t length = anonymise(some_key, text, out, sizeof out);
        EXPECT_LT(length, sizeof out);
        EXPECT_EQ(out[length], '\0');
    }
}

TEST(Anonymise, KeysAre32HexadecimalDigits) {
    HashKey key;
    EXPECT_TRUE(parse_key("0123456789abcdef00000000000000ff", key));
    EXPECT_EQ(key.low, 0x0123'4567'89ab'cdefULL);
    EXPECT_EQ(key.high, 0xffULL);
    for (const char* wrong : {"", "1", "0123456789abcdef00000000000000fg", "0123456789abcdef00000000000000ff0"})
        EXPECT_FALSE(parse_key(wrong, key)) << wrong;
}

}  // namespace
}  // namespace ioweir::tracer
