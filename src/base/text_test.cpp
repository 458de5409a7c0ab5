// Sizes as text, "did you mean", and bytes as text.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "base/nearest_name.hpp"
#include "base/size_text.hpp"
#include "base/utf8_text.hpp"

namespace ioweir {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

RC_GTEST_PROP(SizeText, ReadsBackWhatItPrints, ()) {
    const auto bytes = *rc::gen::inRange<std::int64_t>(0, 1 << 20) << *rc::gen::inRange(0, 40);
    RC_ASSERT(parse_size(exact_size_text(bytes)).value() == bytes);
}

TEST(SizeText, UnitsAndSpaces) {
    EXPECT_EQ(parse_size("16 MiB").value(), 16 << 20);
    EXPECT_EQ(parse_size(" 16MiB ").value(), 16 << 20);
    EXPECT_EQ(parse_size("4096").value(), 4096);
    EXPECT_EQ(parse_size("0 TB").value(), 0);
    EXPECT_EQ(parse_size("2 kB").value(), 2000);
    EXPECT_EQ(parse_size("3 GB").value(), 3'000'000'000);
    EXPECT_EQ(parse_size("9223372036854775807").value(), largest);
    EXPECT_EQ(exact_size_text(1000), "1000 B");
    EXPECT_EQ(exact_size_text(3 << 10), "3 KiB");
    EXPECT_EQ(exact_size_text(0), "0 B");
}

TEST(SizeText, RoughForAReader) {
    EXPECT_EQ(rough_size_text(1'500'000), "1.43 MiB");
    EXPECT_EQ(rough_size_text(16 << 20), "16 MiB");
    EXPECT_EQ(rough_size_text(1023), "1023 B");
    EXPECT_EQ(rough_size_text((std::int64_t{150} << 30) + 1), "150 GiB");
}

TEST(SizeText, MistakesSayWhatToDo) {
    EXPECT_EQ(parse_size("16 M").error().what, "unknown unit of size");
    EXPECT_EQ(parse_size("1.5 MiB").error().remedy, "write a whole number of a smaller unit: \"1536 KiB\" for 1.5 MiB");
    EXPECT_EQ(parse_size("-1").error().what, "a size is negative");
    EXPECT_EQ(parse_size("").error().what, "not a size");
    EXPECT_EQ(parse_size("MiB").error().what, "not a size");
    EXPECT_EQ(parse_size("9223372036854775808").error().what, "a size is too large");
    EXPECT_EQ(parse_size("8388608 TiB").error().what, "a size is too large");
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndZeroOnlyForTheSame, ()) {
    const auto word = rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
    const auto a = *word;
    const auto b = *word;
    RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
    RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
    RC_ASSERT(edit_distance(a, a + "x") == 1U);
    RC_ASSERT(edit_distance(a, b) <= std::max(a.size(), b.size()));
}

TEST(EditDistance, CountsEachKindOfMistakeOnce) {
    EXPECT_EQ(edit_distance("writrs", "writers"), 1U);
    EXPECT_EQ(edit_distance("wirters", "writers"), 1U);
    EXPECT_EQ(edit_distance("Writers", "writers"), 0U);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestName, OnlyWhenItIsNear) {
    constexpr std::array<std::string_view, 3> names{"match", "mapping", "stripe"};
    EXPECT_EQ(nearest_name("mach", names), "match");
    EXPECT_EQ(nearest_name("stirpe", names), "stripe");
    EXPECT_EQ(nearest_name("buffer", names), std::nullopt);
    EXPECT_EQ(nearest_name("x", names), std::nullopt);
    EXPECT_EQ(name_remedy("maping", names), "did you mean 'mapping'? known: match, mapping, stripe");
}

TEST(Utf8Text, KeepsWhatIsWellFormedAndSpellsOutTheRest) {
    EXPECT_EQ(utf8_text("plain.dat"), "plain.dat");
    EXPECT_EQ(utf8_text("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    EXPECT_EQ(utf8_text("caf\xe9"), "caf\\xe9");                       // Latin-1
    EXPECT_EQ(utf8_text("\xc0\xaf"), "\\xc0\\xaf");                    // overlong '/'
    EXPECT_EQ(utf8_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
    EXPECT_EQ(utf8_text("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
    EXPECT_EQ(utf8_text("a\xe2\x82"), "a\\xe2\\x82");                  // cut off
    EXPECT_EQ(utf8_text("\xe2\x82z"), "\\xe2\\x82z");
}

RC_GTEST_PROP(Utf8Text, IsWellFormedAndDoesNothingTwice, (const std::string& bytes)) {
    const std::string text = utf8_text(bytes);
    RC_ASSERT(utf8_text(text) == text);
    RC_ASSERT(text.size() >= bytes.size());
}

}  // namespace
}  // namespace ioweir
