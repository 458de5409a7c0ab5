#include "partition/core/master_header.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

#include "partition/core/block_header.hpp"

namespace ioweir::partition {
namespace {

MasterHeader some_header(std::size_t fields, std::int64_t parts) {
    MasterHeader header;
    for (std::size_t i = 0; i < fields; ++i) header.fields.push_back("field " + std::to_string(i));
    header.parts = parts;
    header.bytes = master_header_bytes(static_cast<std::int64_t>(fields), parts).value();
    return header;
}

/// The same file as a machine of the other byte order would have written it.
std::string swapped_front(std::string front) {
    for (const std::size_t at : {std::size_t{13}, std::size_t{105}})
        std::reverse(front.begin() + at, front.begin() + at + 4);
    return front;
}

RC_GTEST_PROP(MasterHeader, IsReadBackAsItWasWritten, ()) {
    const MasterHeader header =
        some_header(*rc::gen::inRange<std::size_t>(0, 61), *rc::gen::inRange<std::int64_t>(0, 100'000));
    const std::string front = encode_front(header).value();
    RC_ASSERT(std::ssize(front) == table_begin);
    for (const bool swapped : {false, true}) {
        const auto again = decode_front(swapped ? swapped_front(front) : front, header.bytes);
        RC_ASSERT(again.ok());
        RC_ASSERT(again.value().fields == header.fields);
        RC_ASSERT(again.value().parts == header.parts);
        RC_ASSERT(again.value().bytes == header.bytes);
        RC_ASSERT(again.value().version == 1);
        RC_ASSERT(again.value().swapped == swapped);
    }
    RC_ASSERT(!decode_front(front, header.bytes - 1).ok());
    MasterHeader foreign = header;
    foreign.swapped = true;
    RC_ASSERT(encode_front(foreign).value() == swapped_front(front));
}

RC_GTEST_PROP(MasterHeader, NothingIsBelievedThatDoesNotFit, ()) {
    std::string front = encode_front(some_header(*rc::gen::inRange<std::size_t>(0, 5), 7)).value();
    for (int i = 0; i < *rc::gen::inRange(1, 6); ++i) {
        const std::size_t begin = *rc::gen::element<std::size_t>(0, 64, 96, 128, 256, 384, 512);
        front[begin + *rc::gen::inRange<std::size_t>(0, 24)] =
            *rc::gen::element<char>('\0', '\n', ':', '0', '9', '-', ' ', 'n', '\x7f', '\xff');
    }
    constexpr std::int64_t file_bytes = 5 << 20;
    const auto decoded = decode_front(front, file_bytes);
    if (!decoded) {
        RC_ASSERT(!decoded.error().what.empty());
        return;
    }
    const MasterHeader& header = decoded.value();
    RC_ASSERT(header.bytes <= file_bytes);
    RC_ASSERT(header.parts >= 0);
    RC_ASSERT(header.fields.empty() || header.parts <= file_bytes / 8);
    RC_ASSERT(table_begin + header.table_bytes() <= header.bytes);
}

RC_GTEST_PROP(MasterHeader, TablesAreReadBackInEitherByteOrder, ()) {
    MasterHeader header = some_header(*rc::gen::inRange<std::size_t>(1, 5), *rc::gen::inRange<std::int64_t>(1, 20));
    constexpr std::int64_t file_bytes = std::int64_t{1} << 40;
    std::vector<std::vector<std::uint64_t>> offsets(header.fields.size());
    for (auto& field : offsets) {
        for (std::int64_t part = 0; part < header.parts; ++part)
            field.push_back(*rc::gen::element<std::uint64_t>(0, 4 << 20, (1ULL << 40) - 1024, 1ULL << 39));
    }
    std::string bytes = encode_table(offsets);
    RC_ASSERT(decode_table(bytes, header, file_bytes).value() == offsets);
    for (std::size_t at = 0; at < bytes.size(); at += 8)
        std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     bytes.begin() + static_cast<std::ptrdiff_t>(at) + 8);
    RC_ASSERT(encode_table(offsets, true) == bytes);
    header.swapped = true;
    RC_ASSERT(decode_table(bytes, header, file_bytes).value() == offsets);
}

TEST(MasterHeader, LiesWhereTheFormatSays) {
    const std::string front = encode_front(some_header(2, 3)).value();
    EXPECT_STREQ(front.c_str(), "MPI_IO_Tag : \x94/") << "12180 is 0x2f94, little endian";
    EXPECT_STREQ(front.c_str() + 64, "version : 1");
    EXPECT_EQ(front.substr(96, 9), "mhsize : ");
    std::int32_t size = 0;
    std::memcpy(&size, front.data() + 105, 4);
    EXPECT_EQ(size, 4 << 20);
    EXPECT_STREQ(front.c_str() + 128, "\nnFields : 2\n");
    EXPECT_STREQ(front.c_str() + 256, "\nfield 0 : 0\n");
    EXPECT_STREQ(front.c_str() + 384, "\nfield 1 : 1\n");
    EXPECT_STREQ(front.c_str() + 512, "\nnPPF : 3\n");
}

TEST(MasterHeader, IsAMultipleOfFourMebibytes) {
    constexpr std::int64_t unit = 4 << 20, fits = (unit - 8192) / 8;
    EXPECT_EQ(master_header_bytes(0, 0).value(), unit);
    EXPECT_EQ(master_header_bytes(1, fits).value(), unit);
    EXPECT_EQ(master_header_bytes(1, fits + 1).value(), 2 * unit);
    EXPECT_FALSE(master_header_bytes(60, INT64_MAX / 8).ok());
    EXPECT_FALSE(master_header_bytes(1, std::int64_t{1} << 28).ok()) << "2 GiB is no int32";
}

TEST(MasterHeader, OfVersion0IsFourMebibytes) {
    std::string front = encode_front(some_header(1, 1)).value();
    front.replace(64, 64, std::string(64, '\0'));
    const auto header = decode_front(front, 8 << 20);
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header.value().version, 0);
    EXPECT_EQ(header.value().bytes, 4 << 20);
}

TEST(MasterHeader, FieldsAreFoundByTheirWholeName) {
    MasterHeader header;
    header.fields = {"solution", "solution2"};
    EXPECT_EQ(header.find("solution"), 0);
    EXPECT_EQ(header.find("solution2"), 1);
    EXPECT_EQ(header.find("sol"), -1);
    header.fields = {"a", "a"};
    EXPECT_EQ(encode_front(header).error().value, "field a is there twice");
    header.fields.assign(61, "x");
    EXPECT_EQ(encode_front(header).error().value, "61 fields, and the format has room for 60");
}

TEST(MasterHeader, BlocksOutsideOfTheFileAreNamed) {
    const MasterHeader header = some_header(1, 2);
    const std::int64_t file_bytes = header.bytes + 4096;
    const auto at = [&](std::uint64_t offset) {
        return decode_table(encode_table({{static_cast<std::uint64_t>(header.bytes), offset}}), header, file_bytes);
    };
    EXPECT_TRUE(at(static_cast<std::uint64_t>(file_bytes - block_header_bytes)).ok());
    EXPECT_EQ(at(static_cast<std::uint64_t>(file_bytes)).error().value,
              "field field 0, part 1 of the file, at byte " + std::to_string(file_bytes));
    EXPECT_FALSE(at(UINT64_MAX).ok());
    EXPECT_FALSE(at(8192).ok());
}

}  // namespace
}  // namespace ioweir::partition
