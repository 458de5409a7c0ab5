// The one file put together: against an array in memory whose elements say where they belong.
#include "ncsub/files.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "ncsub/core/partition.hpp"

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

/// A file with a fixed variable that is divided, a whole one, a whole one with records, and often a divided one with records.
struct Example {
    Logical logical;
    std::string one;  ///< the one file
    std::string master;
    std::vector<std::string> parts;
    std::vector<Header> headers;
    Header master_header;
};

std::int64_t padded(std::int64_t bytes) { return (bytes + 3) / 4 * 4; }

constexpr std::int64_t part_begin = 2000;    // of the fixed variable in a subfile
constexpr std::int64_t series_begin = 6000;  // of the one with records

/// Numbers the bytes of a divided array, or of one of its records, one behind the other: in the one file from `begin` on, and in each subfile from
/// places(k) on.
template <typename Places>
void number_bytes(Example& example, const std::vector<std::int64_t>& lengths, std::size_t divided, std::int64_t size,
                  std::int64_t begin, char& next, Places&& places) {
    std::int64_t elements = 1;
    for (const std::int64_t length : lengths) elements *= length;
    for (std::int64_t e = 0; e < elements; ++e) {
        std::vector<std::int64_t> at(lengths.size());
        std::int64_t rest = e;
        for (std::size_t i = lengths.size(); i-- > 0;) {
            at[i] = rest % lengths[i];
            rest /= lengths[i];
        }
        const std::int64_t k = part_holding(lengths[divided], example.logical.subfiles, at[divided]);
        const Part part = part_of(lengths[divided], example.logical.subfiles, k);
        std::int64_t place = 0;
        for (std::size_t i = 0; i < lengths.size(); ++i)
            place = place * (i == divided ? part.count : lengths[i]) + at[i] - (i == divided ? part.begin : 0);
        const std::optional<std::int64_t> there = places(k, part.count);
        for (std::int64_t b = 0; there && b < size; ++b, next = static_cast<char>(next == 127 ? 1 : next + 1)) {
            put(example.one, begin + e * size + b, next);
            put(example.parts[static_cast<std::size_t>(k)], *there + place * size + b, next);
        }
    }
}

/// Adds a variable with records, divided as the fixed one is; some subfiles have fewer records than others.
void add_series(Example& example, std::int64_t time) {
    Logical& logical = example.logical;
    const Division& cube = *logical.divisions[0];
    Variable series{"series", {time}, {}, Type::int16, 0, 0};
    series.dimensions.insert(series.dimensions.end(), cube.dimension_ids.begin(), cube.dimension_ids.end());
    std::int64_t bytes = 2;
    for (const std::int64_t id : cube.dimension_ids)
        bytes *= logical.header.dimensions[static_cast<std::size_t>(id)].length;
    series.vsize = padded(bytes);
    const Variable& before = logical.header.variables.back();
    series.begin = before.begin + before.vsize;
    logical.divisions.push_back(Division{cube.dimension + 1, series.dimensions, cube.boundaries});
    logical.header.variables.push_back(std::move(series));
}

Example random_example() {
    Example example;
    Logical& logical = example.logical;
    const auto dimensions = *rc::gen::inRange<std::size_t>(1, 4);
    logical.header.version = *rc::gen::element(1, 2, 5);
    Variable cube{"cube", {}, {}, *rc::gen::element(Type::byte, Type::float64), 0, 600};
    std::vector<std::int64_t> lengths;
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
        lengths.push_back(*rc::gen::inRange<std::int64_t>(1, 7));
        logical.header.dimensions.push_back({"d" + std::to_string(d), lengths.back()});
        cube.dimensions.push_back(static_cast<std::int64_t>(d));
        elements *= lengths.back();
    }
    logical.header.dimensions.push_back({"t", 0});
    const auto time = static_cast<std::int64_t>(dimensions);
    const auto d = *rc::gen::inRange<std::size_t>(0, dimensions);
    logical.subfiles = *rc::gen::inRange<std::int64_t>(1, lengths[d] + 1);
    logical.id = "an id";
    const std::int64_t size = bytes_of(cube.type);
    cube.vsize = padded(elements * size);
    const std::int64_t x = lengths[0];
    const Variable whole{"whole", {0}, {}, Type::int16, padded(2 * x), 600 + cube.vsize};
    const Variable records{"records", {time, 0}, {}, Type::byte, padded(x), whole.begin + whole.vsize};
    logical.header.variables = {cube, whole, records};
    logical.divisions = {Division{static_cast<int>(d), cube.dimensions, boundaries_of(lengths[d], logical.subfiles)},
                         std::nullopt, std::nullopt};
    const bool with_series = *rc::gen::arbitrary<bool>();
    if (with_series) add_series(example, time);

    example.master_header = master_of(logical);
    set_writing(example.master_header, Writing::ended);
    example.master_header.records = *rc::gen::inRange<std::int64_t>(0, 4);
    logical.header.records = example.master_header.records;
    constexpr std::int64_t begins[] = {9000, 9008, 9030, 9004};
    for (std::size_t v = 0; v < logical.header.variables.size(); ++v) {
        example.master_header.variables[v].begin = begins[v];
        if (!logical.divisions[v]) example.master_header.variables[v].vsize = logical.header.variables[v].vsize;
    }
    example.master = encode(example.master_header);
    for (std::int64_t k = 0; k < logical.subfiles; ++k) {
        example.headers.push_back(subfile_of(logical, k));
        Header& header = example.headers.back();
        header.variables[0].begin = part_begin + 4 * k;
        if (with_series) {
            header.variables[1].begin = series_begin + 4 * k;
            header.records = *rc::gen::inRange<std::int64_t>(0, 4);
            logical.header.records = std::max(logical.header.records, header.records);
        }
        example.parts.push_back(encode(header));
    }
    example.one = encode(logical.header);

    char next = 1;
    number_bytes(example, lengths, d, size, cube.begin, next,
                 [&](std::int64_t k, std::int64_t) { return std::optional(part_begin + 4 * k); });
    for (std::int64_t b = 0; b < 2 * x; ++b) {
        put(example.one, whole.begin + b, static_cast<char>(b + 1));
        put(example.master, 9008 + b, static_cast<char>(b + 1));
    }
    // Alone with records, as it is in the master, they are not padded.
    const std::int64_t record = with_series ? padded(x) + padded(2 * elements) : x;
    for (std::int64_t r = 0; r < example.master_header.records; ++r)
        for (std::int64_t b = 0; b < x; ++b) {
            put(example.one, records.begin + r * record + b, static_cast<char>(b + 1));
            put(example.master, 9030 + r * x + b, static_cast<char>(b + 1));
        }
    if (!with_series) return example;
    const std::int64_t begin = logical.header.variables[3].begin;
    for (std::int64_t r = 0; r < logical.header.records; ++r)
        number_bytes(example, lengths, d, 2, begin + r * record, next, [&](std::int64_t k, std::int64_t count) {
            const std::int64_t bytes = 2 * elements / lengths[d] * count;
            const bool there = r < example.headers[static_cast<std::size_t>(k)].records;
            return there ? std::optional(series_begin + 4 * k + r * bytes) : std::nullopt;
        });
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

RC_GTEST_PROP(Describe, LengthsAndPartsAreThoseOfTheOneFile, ()) {
    const Example example = random_example();
    const Folder folder;
    const std::string path = folder.path + "/a.nc";
    spill(example, path);
    const auto described = describe(path);
    if (!described) RC_FAIL(described.error().message());
    const Description& what = described.value();
    RC_ASSERT(what.problems.empty());
    RC_ASSERT(what.bytes == std::ssize(example.one));
    RC_ASSERT(what.records == example.logical.header.records);
    RC_ASSERT(what.arrays.front().name == "cube");
    RC_ASSERT(what.arrays.front().boundaries == example.logical.divisions[0]->boundaries);
    RC_ASSERT(what.part_bytes.front() == std::ssize(example.master));
    RC_ASSERT(what.part_paths.size() == example.parts.size() + 1);
    const std::size_t gone = 1 + *rc::gen::inRange<std::size_t>(0, example.parts.size());
    fs::remove(what.part_paths[gone]);
    const auto again = describe(path);
    RC_ASSERT(again.ok());
    RC_ASSERT(again.value().part_bytes[gone] == -1);
    RC_ASSERT(again.value().problems.size() == 1U);
    RC_ASSERT(again.value().problems[0].find(what.part_paths[gone]) != std::string::npos);
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
    spill(path, "ioweir container 3\nid 0\n");
    EXPECT_NE(merge(path, path).error().message().find("with: ioweir merge " + path), std::string::npos);
    EXPECT_NE(merge(folder.path + "/none", path).error().message().find("none"), std::string::npos);
}

TEST(Merge, WhatIsNoFileIsNotWaitedForAndStays) {
    const Folder folder;
    const std::string path = folder.path + "/a.nc";
    const auto refused = [&](const std::string& why) {
        EXPECT_NE(read_header(path).error().message().find(why), std::string::npos)
            << read_header(path).error().message();
        EXPECT_FALSE(merge(path, path).ok());
        EXPECT_FALSE(describe(path).ok());
        EXPECT_TRUE(subfiles_of(path).empty());
        fs::remove(path);
    };
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    refused("it is a pipe");
    fs::create_symlink("/dev/zero", path);
    refused("it is a device");
    fs::create_directory(path);
    refused("it is a folder");
}

/// What lies in the place of a subfile belongs to the folder's owner or to the user, and links lead to no third one's file.
TEST(Merge, SubfilesOfSomebodyElsesAreNotRead) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    constexpr uid_t nobody = 65534, third = 65533;
    const Folder folder, outside;
    const std::string file = outside.path + "/b", link = folder.path + "/a";
    spill(file, encode(Header{}));
    const auto refused = [&] { return !read_subfile_header(link).ok(); };
    const auto place = [&](uid_t of_link, uid_t of_file) {
        fs::remove(link);
        fs::create_symlink(file, link);
        ASSERT_EQ(::lchown(link.c_str(), of_link, of_link), 0);
        ASSERT_EQ(::chown(file.c_str(), of_file, of_file), 0);
    };
    place(nobody, 0);
    EXPECT_TRUE(refused());
    place(nobody, third);
    EXPECT_TRUE(refused());
    place(nobody, nobody);
    EXPECT_FALSE(refused());
    place(0, third);
    EXPECT_FALSE(refused()) << "the user's own link";
    fs::remove(link);
    fs::create_hard_link(file, link);
    EXPECT_TRUE(refused()) << "a third one's file, by a second name";
}

/// Links on storage targets are removed with what was made for them, and nothing else that a link may lead to.
TEST(Remove, OnlyWhatWasMadeForASubfileGoesWithItsLink) {
    const Folder folder;
    const std::string link = folder.path + "/conf", kept = folder.path + "/resolv.conf";
    const auto removes = [&](const std::string& target) {
        spill(target, "precious");
        fs::create_symlink(target, link);
        remove_subfile(link);
        EXPECT_FALSE(fs::is_symlink(link));
        const bool gone = !fs::exists(target);
        fs::remove(target);
        return gone;
    };
    EXPECT_FALSE(removes(kept));
    EXPECT_FALSE(removes(folder.path + "/0123456789abcde.conf"));
    EXPECT_FALSE(removes(folder.path + "/0123456789abcdeg.conf"));
    EXPECT_FALSE(removes(folder.path + "/0123456789abcdef.conf2"));
    EXPECT_TRUE(removes(folder.path + "/0123456789abcdef.conf"));
    const std::string made = folder.path + "/0123456789abcdef.conf";
    spill(made, "precious");
    fs::create_symlink("0123456789abcdef.conf", link);
    remove_subfile(link);
    EXPECT_TRUE(fs::exists(made));
    fs::create_hard_link(made, kept);
    fs::create_symlink(made, link);
    remove_subfile(link);
    EXPECT_TRUE(fs::exists(made));
    fs::remove(kept);
    if (::geteuid() != 0) return;
    // A link that somebody else has made, to a file of ours.
    fs::create_symlink(made, link);
    ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
    remove_subfile(link);
    EXPECT_TRUE(fs::exists(made));
}

TEST(Paths, PrefixesForMpiIo) {
    EXPECT_EQ(without_prefix("ufs:a.nc"), "a.nc");
    EXPECT_EQ(without_prefix("ufs:/x/a.nc"), "/x/a.nc");
    EXPECT_EQ(without_prefix("/x/a:b.nc"), "/x/a:b.nc");
    EXPECT_EQ(without_prefix("a.nc"), "a.nc");
}

/// 2^41 pieces of a byte: whoever looked at each would be at it for days.
TEST(Description, OfVeryManyPiecesTakesNoLookAtEach) {
    const Folder folder;
    const std::string path = folder.path + "/t.nc";
    constexpr std::int64_t rows = std::int64_t{1} << 40, begin = 2000;
    Logical logical;
    logical.header.version = 5;
    logical.header.dimensions = {{"y", rows}, {"z", 2}};
    logical.header.variables = {{"cube", {0, 1}, {}, Type::byte, 2 * rows, 1000}};
    logical.divisions = {Division{1, {0, 1}, {0, 1, 2}}};
    logical.subfiles = 2;
    logical.id = "0123";
    spill(path, encode(master_of(logical)));
    for (const std::int64_t number : {0, 1}) {
        Header part = subfile_of(logical, number);
        part.variables[0].begin = begin;
        std::string bytes = encode(part);
        bytes.resize(static_cast<std::size_t>(begin + 3 - number), 'x');
        spill(subfile_path(path, number), bytes);
    }
    const auto described = describe(path);
    ASSERT_TRUE(described.ok()) << described.error().message();
    EXPECT_EQ(described.value().bytes, 1000 + 2 * 2 + 1) << "three pieces of the first subfile, two of the second";
}

}  // namespace
}  // namespace ioweir::ncsub
