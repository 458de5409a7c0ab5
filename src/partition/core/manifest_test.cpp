#include "partition/core/manifest.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/checked_text.hpp"

namespace ioweir::partition {
namespace {

Manifest any_manifest() {
    Manifest manifest;
    manifest.complete = *rc::gen::arbitrary<bool>();
    manifest.step = *rc::gen::suchThat<std::int64_t>([](std::int64_t step) { return step >= 0; });
    manifest.ranks = *rc::gen::inRange<std::int64_t>(1, 100);
    std::int64_t part = 0;
    for (int i = 0; i < *rc::gen::inRange(1, 8); ++i) {
        const Span parts{part, *rc::gen::inRange<std::int64_t>(0, 5)};
        manifest.files.push_back(
            {parts, *rc::gen::inRange<std::int64_t>(0, INT64_MAX), *rc::gen::arbitrary<std::uint64_t>()});
        part = parts.end();
    }
    return manifest;
}

RC_GTEST_PROP(Manifest, IsReadBackAsItWasWritten, ()) {
    const Manifest manifest = any_manifest();
    const auto again = parse_manifest(to_text(manifest));
    RC_ASSERT(again.ok());
    RC_ASSERT(again.value() == manifest);
}

RC_GTEST_PROP(Manifest, AChangedByteIsSeen, ()) {
    std::string text = to_text(any_manifest());
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto changed = static_cast<char>(*rc::gen::inRange(0, 256));
    RC_PRE(text[at] != changed);
    text[at] = changed;
    RC_ASSERT(!parse_manifest(text).ok());
    RC_ASSERT(!parse_manifest(text.substr(0, at)).ok());
}

RC_GTEST_PROP(Manifest, FindsTheFileOfAPart, ()) {
    const Manifest manifest = any_manifest();
    for (std::int64_t part = 0; part < manifest.parts(); ++part) {
        const auto file = manifest.file_of_part(part);
        RC_ASSERT(file >= 0);
        const Span parts = manifest.files[static_cast<std::size_t>(file)].parts;
        RC_ASSERT(parts.first <= part);
        RC_ASSERT(part < parts.end());
    }
    RC_ASSERT(manifest.file_of_part(manifest.parts()) == -1);
    RC_ASSERT(manifest.file_of_part(-1) == -1);
}

TEST(Manifest, LinesThatSayOtherThingsAreNamed) {
    const auto said = [](const std::string& lines) { return parse_manifest(with_check(lines)).error().value; };
    const std::string head = "ioweir set 1\nstate complete\nstep 3\nranks 2\nfiles 1\n";
    EXPECT_TRUE(parse_manifest(with_check(head + "file parts 0 4 bytes 9 header 0000000000000001\n")).ok());
    EXPECT_EQ(said(head), "it does not have a line for each file");
    EXPECT_EQ(said(head + "file parts 1 4 bytes 9 header 0000000000000001\n"), "what it says of file 1");
    EXPECT_EQ(said(head + "file parts 0 -4 bytes 9 header 0000000000000001\n"), "what it says of file 1");
    EXPECT_EQ(said("ioweir set 1\nstate complete\nstep -3\nranks 2\nfiles 1\n"),
              "its first lines say no step, ranks and files");
    EXPECT_EQ(said("ioweir set 2\n"), "it does not begin with 'ioweir set 1'");
    EXPECT_EQ(
        said("ioweir set 1\nstate ready\nstep 3\nranks 2\nfiles 1\nfile parts 0 4 bytes 9 header 0000000000000001\n"),
        "line 2");
}

}  // namespace
}  // namespace ioweir::partition
