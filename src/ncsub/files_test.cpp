// The one file put together: against an array in memory whose elements say where they belong.
#include "ncsub/files.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ncsub/partition.hpp"

namespace ioweir::ncsub {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

struct Folder {
    Folder() {
        char name[] = "/tmp/ioweir-ncsub-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path;
};

/// Puts bytes at a place of a file that grows as needed.
void put(std::string& file, std::int64_t at, char byte) {
    if (std::ssize(file) <= at) file.resize(static_cast<std::size_t>(at) + 1, '\0');
    file[static_cast<std::size_t>(at)] = byte;
}

/// A file with one fixed variable of bytes, divided along `dimension`, a whole one, and a whole one with records.
struct Example {
    Logical logical;
    std::string one;  ///< the one file
    std::string master;
    std::vector<std::string> parts;
    std::vector<Header> headers;
    Header master_header;
};

Example random_example() {
    Example example;
    Logical& logical = example.logical;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    logical.header.version = *rc::gen::element(1, 2, 5);
    logical.header.records = *rc::gen::inRange<std::int64_t>(0, 4);
    Variable cube{"cube", {}, {}, *rc::gen::element(Type::byte, Type::float64), 0, 600};
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
        const std::int64_t length = *rc::gen::inRange<std::int64_t>(1, 7);
        logical.header.dimensions.push_back({"d" + std::to_string(d), length});
        cube.dimensions.push_back(static_cast<std::int64_t>(d));
        elements *= length;
    }
    logical.header.dimensions.push_back({"t", 0});
    const auto time = static_cast<std::int64_t>(dimensions);
    const auto d = *rc::gen::inRange<std::size_t>(0, dimensions);
    const std::int64_t length = logical.header.dimensions[d].length;
    logical.subfiles = *rc::gen::inRange<std::int64_t>(1, length + 1);
    logical.id = "an id";
    cube.vsize = (elements * bytes_of(cube.type) + 3) / 4 * 4;
    const Variable whole{"whole", {0}, {}, Type::int16, 16, 600 + cube.vsize};
    const Variable records{"records", {time, 0}, {}, Type::byte, 8, 600 + cube.vsize + 16};
    logical.header.variables = {cube, whole, records};
    logical.divisions = {Division{static_cast<int>(d), cube.dimensions, boundaries_of(length, logical.subfiles)},
                         std::nullopt, std::nullopt};

    example.master_header = master_of(logical);
    example.master_header.variables[0].begin = 4000;
    example.master_header.variables[1].begin = 4008;
    example.master_header.variables[2].begin = 4030;
    for (std::size_t v = 1; v < 3; ++v) example.master_header.variables[v].vsize = logical.header.variables[v].vsize;
    example.one = encode(logical.header);
    example.master = encode(example.master_header);
    for (std::int64_t k = 0; k < logical.subfiles; ++k) {
        example.headers.push_back(subfile_of(logical, k));
        example.headers.back().variables[0].begin = 2000 + 4 * k;
        example.parts.push_back(encode(example.headers.back()));
    }
    // cube, element by element and byte by byte: 1, 2, 3 ... of a byte's values.
    const std::int64_t size = bytes_of(cube.type);
    char next = 1;
    for (std::int64_t e = 0; e < elements; ++e) {
        std::vector<std::int64_t> at(dimensions);
        std::int64_t rest = e;
        for (std::size_t i = dimensions; i-- > 0;) {
            at[i] = rest % logical.header.dimensions[i].length;
            rest /= logical.header.dimensions[i].length;
        }
        const std::int64_t k = part_holding(length, logical.subfiles, at[d]);
        const Part part = part_of(length, logical.subfiles, k);
        std::int64_t place = 0;
        for (std::size_t i = 0; i < dimensions; ++i)
            place =
                place * (i == d ? part.count : logical.header.dimensions[i].length) + at[i] - (i == d ? part.begin : 0);
        for (std::int64_t b = 0; b < size; ++b, next = static_cast<char>(next == 127 ? 1 : next + 1)) {
            put(example.one, cube.begin + e * size + b, next);
            put(example.parts[static_cast<std::size_t>(k)], 2000 + 4 * k + place * size + b, next);
        }
    }
    const std::int64_t x = logical.header.dimensions[0].length;
    for (std::int64_t b = 0; b < 2 * x; ++b) {
        put(example.one, whole.begin + b, static_cast<char>(b + 1));
        put(example.master, 4008 + b, static_cast<char>(b + 1));
    }
    // Alone with records: they are not padded.
    for (std::int64_t b = 0; b < logical.header.records * x; ++b) {
        put(example.one, records.begin + b, static_cast<char>(b + 1));
        put(example.master, 4030 + b, static_cast<char>(b + 1));
    }
    return example;
}

void spill(const Example& example, const std::string& path) {
    spill(path, example.master);
    for (std::size_t k = 0; k < example.parts.size(); ++k)
        spill(subfile_path(path, static_cast<std::int64_t>(k)), example.parts[k]);
}

RC_GTEST_PROP(Merge, EveryByteOfTheOneFile, ()) {
    const Example example = random_example();
    const Folder folder;
    const std::string path = folder.path + "/a.nc", other = folder.path + "/b.nc";
    spill(example, path);
    const auto merged = merge(path, other);
    if (!merged) RC_FAIL(merged.error().message());
    RC_ASSERT(slurp(other) == example.one);
    RC_ASSERT(merged.value() == std::ssize(example.one));
    RC_ASSERT(slurp(path) == example.master);
    RC_ASSERT(!merge(path, other).ok());  // it exists
    RC_ASSERT(merge(path, path).ok());
    RC_ASSERT(slurp(path) == example.one);
    RC_ASSERT(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}

RC_GTEST_PROP(Merge, WhatIsDamagedIsLeftAlone, ()) {
    const Example example = random_example();
    const Folder folder;
    const std::string path = folder.path + "/a.nc";
    spill(example, path);
    const std::string part = subfile_path(path, *rc::gen::inRange<std::int64_t>(0, example.logical.subfiles));
    if (*rc::gen::arbitrary<bool>())
        fs::remove(part);
    else
        fs::resize_file(part, 40);
    const auto merged = merge(path, path);
    RC_ASSERT(!merged.ok());
    RC_ASSERT(merged.error().message().find(part) != std::string::npos);
    RC_ASSERT(slurp(path) == example.master);
    RC_ASSERT(!fs::exists(path + ".ioweir-merging"));
}

TEST(Merge, OrdinaryFilesAreSaidToBe) {
    const Folder folder;
    const std::string path = folder.path + "/a.nc";
    spill(path, encode(Header{}));
    EXPECT_NE(merge(path, path).error().message().find("no arrays"), std::string::npos);
    spill(path, "text");
    EXPECT_NE(merge(path, path).error().message().find("no header"), std::string::npos);
    EXPECT_NE(merge(folder.path + "/none", path).error().message().find("none"), std::string::npos);
}

TEST(Paths, PrefixesForMpiIo) {
    EXPECT_EQ(without_prefix("ufs:a.nc"), "a.nc");
    EXPECT_EQ(without_prefix("ufs:/x/a.nc"), "/x/a.nc");
    EXPECT_EQ(without_prefix("/x/a:b.nc"), "/x/a:b.nc");
    EXPECT_EQ(without_prefix("a.nc"), "a.nc");
}

}  // namespace
}  // namespace ioweir::ncsub
