#include "partition/core/block_header.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace ioweir::partition {
namespace {

BlockHeader any_header() {
    BlockHeader header;
    header.field = *rc::gen::element<std::string>("solution", "time derivative of solution", "a", "errors-2",
                                                  "co-ordinates_(x)", std::string(96, 'n'));
    header.part = *rc::gen::inRange<std::int64_t>(1, INT64_MAX);
    header.bytes = *rc::gen::element<std::int64_t>(0, 8, 40, std::int64_t{1} << 40, INT64_MAX - 1);
    header.parameters.resize(*rc::gen::inRange<std::size_t>(0, 20));
    for (auto& parameter : header.parameters) parameter = *rc::gen::arbitrary<std::int64_t>();
    return header;
}

RC_GTEST_PROP(BlockHeader, IsReadBackAsItWasWritten, ()) {
    const BlockHeader header = any_header();
    const auto bytes = encode_block_header(header);
    RC_ASSERT(bytes.ok());
    RC_ASSERT(std::ssize(bytes.value()) == block_header_bytes);
    const auto again = decode_block_header(bytes.value());
    RC_ASSERT(again.ok());
    RC_ASSERT(again.value() == header);
    BlockHeader serial = header;
    serial.part = 0;
    RC_ASSERT(decode_block_header(encode_serial_line(serial)).value() == serial);
}

/// Whatever the bytes are: an answer, which written again is read as the same.
RC_GTEST_PROP(BlockHeader, ForeignBytesAreAnErrorOrAHeader, ()) {
    std::string bytes = encode_block_header(any_header()).value();
    for (int i = 0; i < *rc::gen::inRange(1, 8); ++i) {
        const auto text =
            static_cast<std::size_t>(std::distance(bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')));
        bytes[*rc::gen::inRange<std::size_t>(0, text + 4)] =
            *rc::gen::element<char>('\0', '\n', ':', '@', '<', '>', '-', ' ', '9', 'x', '\xff');
    }
    const auto decoded = decode_block_header(bytes);
    if (!decoded) {
        RC_ASSERT(!decoded.error().what.empty());
        return;
    }
    const BlockHeader& header = decoded.value();
    RC_ASSERT(header.bytes >= 0);
    const std::string again = header.part > 0 ? encode_block_header(header).value() : encode_serial_line(header);
    RC_ASSERT(decode_block_header(again).value() == header);
}

TEST(BlockHeader, IsTheTextOfTheFormat) {
    const std::string text = encode_block_header({"solution", 17, 120, {3, 5, 10}}).value();
    EXPECT_EQ(text.substr(0, text.find('\0')), "\nsolution@17 : < 121 > 3 5 10 \n");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\0'), 1024 - 31);
    const std::string empty = encode_block_header({"solution", 1, 0, {}}).value();
    EXPECT_EQ(empty.substr(0, empty.find('\0')), "\nsolution@1 : < 0 > \n");
    EXPECT_EQ(encode_serial_line({"number of nodes", 0, 0, {7}}), "number of nodes : < 0 > 7\n");
    EXPECT_EQ(decode_block_header("number of nodes : < 0 > 7\nbytes").value(),
              (BlockHeader{"number of nodes", 0, 0, {7}}));
}

TEST(BlockHeader, WhatIsWrongIsSaid) {
    const auto said = [](std::string_view bytes) { return decode_block_header(bytes).error().what; };
    EXPECT_EQ(said(""), "a data block's header has no ':'");
    EXPECT_EQ(said("a@x : < 1 >"), "a data block's header has no part number behind its '@'");
    EXPECT_EQ(said("a@0 : < 1 >"), "a data block's header has no part number behind its '@'");
    EXPECT_EQ(said(" : < 1 >"), "a data block's header has no name of a field");
    EXPECT_EQ(said("a@1 : 1 >"), "a data block's header has no '<' behind its ':'");
    EXPECT_EQ(said("a@1 : < -1 >"), "a data block's header has no size between '<' and '>'");
    EXPECT_EQ(said("a@1 : < 99999999999999999999 >"), "a data block's header has no size between '<' and '>'");
    EXPECT_EQ(said("a@1 : < 1 "), "a data block's header has no '>' behind its size");
    EXPECT_EQ(said("a@1 : < 1 > 2 x"), "a data block's header has a parameter that is no number");
    EXPECT_FALSE(encode_block_header({"a", 1, 0, std::vector<std::int64_t>(60, INT64_MIN)}).ok());
    EXPECT_EQ(why_no_field("a:b"), "it has a ':'");
    EXPECT_EQ(why_no_field(""), "it is empty");
    EXPECT_EQ(why_no_field(" a"), "it begins or ends with a space");
    EXPECT_EQ(why_no_field("a\nb"), "it has a character that does not print");
}

}  // namespace
}  // namespace ioweir::partition
