// Headers: the bytes of the specification's grammar written out by hand, random headers there and back, and damaged ones.
// That whole files of the libraries come out as they were is tested with real ones (tests/trace/test_netcdf_subfiles.py).
#include "ncsub/header.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace ioweir::ncsub {
namespace {

using namespace std::string_literals;

/// netcdf t { dimensions: x = 2, r = unlimited; variables: short v(r, x); v:u = "mm"; :n = 7; } as CDF-1, with 3 records.
const std::string by_hand =
    "CDF\1"s +
    "\0\0\0\3"s                                                // records
    "\0\0\0\12\0\0\0\2"s                                       // dimensions: tag, number
    "\0\0\0\1x\0\0\0\0\0\0\2"s                                 // x, 2
    "\0\0\0\1r\0\0\0\0\0\0\0"s                                 // r, unlimited
    "\0\0\0\14\0\0\0\1"s                                       // attributes of the file
    "\0\0\0\1n\0\0\0\0\0\0\4\0\0\0\1\0\0\0\7"s                 // n, int, 1, 7
    "\0\0\0\13\0\0\0\1"s                                       // variables
    "\0\0\0\1v\0\0\0\0\0\0\2\0\0\0\1\0\0\0\0"s                 // v, 2 dimensions: 1 and 0
    "\0\0\0\14\0\0\0\1\0\0\0\1u\0\0\0\0\0\0\2\0\0\0\2mm\0\0"s  // its attributes: u, char, 2, padded
    "\0\0\0\3\0\0\0\4\0\0\0\200"s;                             // short, 4 bytes a record, from byte 128

Header header_by_hand() {
    Header header;
    header.version = 1;
    header.records = 3;
    header.dimensions = {{"x", 2}, {"r", 0}};
    header.attributes = {int_attribute("n", {7})};
    header.variables = {{"v", {1, 0}, {text_attribute("u", "mm")}, Type::int16, 4, 128}};
    return header;
}

TEST(Header, TheSpecificationsGrammar) {
    const auto decoded = decode(by_hand, "t.nc");
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    EXPECT_EQ(decoded.value().header, header_by_hand());
    EXPECT_EQ(decoded.value().bytes, std::ssize(by_hand));
    EXPECT_EQ(encode(header_by_hand()), by_hand);
    EXPECT_TRUE(decoded.value().header.is_record(decoded.value().header.variables[0]));
}

TEST(Header, EmptyListsAreAbsent) {
    EXPECT_EQ(encode(Header{}), "CDF\1"s + std::string(28, '\0'));
    Header large;
    large.version = 5;
    EXPECT_EQ(encode(large), "CDF\5"s + std::string(44, '\0'));
}

TEST(Header, WhatGoesOnIsNoError) {
    for (std::size_t length = 0; length < by_hand.size(); ++length) {
        const auto decoded = decode(std::string_view(by_hand).substr(0, length), "t.nc");
        ASSERT_TRUE(decoded.ok()) << length;
        EXPECT_EQ(decoded.value().bytes, 0) << length;
    }
}

void expect_error(std::string bytes, const std::string& words) {
    const auto decoded = decode(bytes, "t.nc");
    ASSERT_FALSE(decoded.ok()) << words;
    EXPECT_NE(decoded.error().message().find(words), std::string::npos) << decoded.error().message();
    EXPECT_NE(decoded.error().message().find("t.nc"), std::string::npos) << decoded.error().message();
}

TEST(Header, ErrorsSayWhatIsWrong) {
    const auto changed = [](std::size_t at, char to) {
        std::string bytes = by_hand;
        bytes.at(at) = to;
        return bytes;
    };
    expect_error("\x89HDF\r\n\x1a\n and more", "CDF");
    expect_error(changed(3, 4), "CDF");
    expect_error(changed(11, 9), "tag 9");
    const std::size_t type = by_hand.find("n\0\0\0\0\0\0\4"s) + 7;
    expect_error(changed(type, 12), "no type 12");
    const std::size_t id = by_hand.find("v\0\0\0\0\0\0\2\0\0\0\1"s) + 11;
    expect_error(changed(id, 5), "dimension 5");
}

rc::Gen<std::string> name() { return rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'z'))); }

std::vector<Attribute> random_attributes() {
    std::vector<Attribute> attributes;
    const int count = *rc::gen::inRange(0, 4);
    for (int i = 0; i < count; ++i) {
        Attribute attribute;
        attribute.name = *name();
        attribute.type = static_cast<Type>(*rc::gen::inRange(1, 12));
        attribute.count = *rc::gen::inRange<std::int64_t>(0, 5);
        const auto bytes = static_cast<std::size_t>(attribute.count * bytes_of(attribute.type));
        attribute.bytes = *rc::gen::container<std::string>(bytes, rc::gen::arbitrary<char>());
        attributes.push_back(std::move(attribute));
    }
    return attributes;
}

Header random_header() {
    Header header;
    header.version = *rc::gen::element(1, 2, 5);
    header.records = *rc::gen::inRange<std::int64_t>(-1, 1000);
    const int dimensions = *rc::gen::inRange(0, 4);
    for (int i = 0; i < dimensions; ++i)
        header.dimensions.push_back({*name(), *rc::gen::inRange<std::int64_t>(0, 1 << 12)});
    header.attributes = random_attributes();
    const int variables = *rc::gen::inRange(0, 4);
    for (int i = 0; i < variables; ++i) {
        Variable variable;
        variable.name = *name();
        const int n = dimensions == 0 ? 0 : *rc::gen::inRange(0, 4);
        for (int d = 0; d < n; ++d) variable.dimensions.push_back(*rc::gen::inRange<std::int64_t>(0, dimensions));
        variable.attributes = random_attributes();
        variable.type = static_cast<Type>(*rc::gen::inRange(1, 12));
        const std::int64_t most = header.version == 5 ? std::int64_t{1} << 60 : 0xffff'ffff;
        variable.vsize = *rc::gen::inRange<std::int64_t>(0, most);
        variable.begin = *rc::gen::inRange<std::int64_t>(0, header.version == 1 ? 0x7fff'ffff : std::int64_t{1} << 60);
        header.variables.push_back(std::move(variable));
    }
    return header;
}

RC_GTEST_PROP(Header, ThereAndBack, ()) {
    const Header header = random_header();
    const std::string bytes = encode(header);
    const auto decoded = decode(bytes + "data", "t.nc");
    RC_ASSERT(decoded.ok());
    RC_ASSERT(decoded.value().header == header);
    RC_ASSERT(decoded.value().bytes == std::ssize(bytes));
}

RC_GTEST_PROP(Header, DamageIsAnErrorOrAnotherHeader, ()) {
    std::string bytes = encode(random_header());
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i)
        bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    const auto decoded = decode(bytes, "t.nc");
    if (!decoded.ok() || decoded.value().bytes == 0) return;
    // What was accepted is a header: ids name dimensions, and it is written in as many bytes.
    for (const Variable& variable : decoded.value().header.variables)
        for (const std::int64_t id : variable.dimensions)
            RC_ASSERT(id >= 0 && id < std::ssize(decoded.value().header.dimensions));
    RC_ASSERT(std::ssize(encode(decoded.value().header)) == decoded.value().bytes);
}

TEST(Header, MoreBytesThanAFileCanHaveAreRefused) {
    constexpr std::int64_t large = std::int64_t{1} << 40;
    Header header;
    header.version = 5;
    header.dimensions = {{"t", 0}, {"x", large}, {"y", large}, {"z", 3}};
    const auto with = [&](std::vector<std::int64_t> dimensions, std::int64_t begin, std::int64_t records) {
        header.records = records;
        header.variables = {{"v", std::move(dimensions), {}, Type::float64, 8, begin}};
        return encode(header);
    };
    EXPECT_TRUE(decode(with({1, 3}, 1000, 0), "t.nc").ok());
    EXPECT_TRUE(decode(with({0, 3}, 1000, large), "t.nc").ok());
    expect_error(with({1, 2}, 1000, 0), "more bytes than a file can have");
    expect_error(with({3}, INT64_MAX - 7, 0), "more bytes than a file can have");
    expect_error(with({0, 1}, 1000, large), "variable v would end behind byte 2^63");
    expect_error(with({0, 1, 2}, 1000, 0), "more bytes than a file can have");
}

TEST(Attributes, Integers) {
    EXPECT_EQ(integers_of(int_attribute("a", {1, -2, INT32_MIN})), (std::vector<std::int64_t>{1, -2, INT32_MIN}));
    EXPECT_EQ(integers_of({"b", Type::byte, 2, "\377\5"}), (std::vector<std::int64_t>{-1, 5}));
    EXPECT_EQ(integers_of({"u", Type::uint16, 1, "\377\376"}), (std::vector<std::int64_t>{65534}));
    EXPECT_EQ(integers_of({"l", Type::int64, 1, "\377\377\377\377\377\377\377\376"}), (std::vector<std::int64_t>{-2}));
    EXPECT_TRUE(integers_of(text_attribute("t", "12")).empty());
}

}  // namespace
}  // namespace ioweir::ncsub
