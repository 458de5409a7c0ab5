// Subfiles: the arithmetic against stripes dealt one by one, and every way in which one of them can be the wrong one.
#include "container/files/subfiles.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "base/checked_text.hpp"
#include "container/merge.hpp"
#include "container/testing.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

RC_GTEST_PROP(Subfiles, HoldEachByteOnce, ()) {
    const Shape shape{*rc::gen::inRange<std::int64_t>(1, 6), Shape::Kind::subfiles,
                      *rc::gen::inRange<std::int64_t>(1, 8)};
    const auto bytes = *rc::gen::inRange<std::int64_t>(0, 200);
    std::map<std::int64_t, std::int64_t> held;  // by subfile: bytes so far
    for (std::int64_t offset = 0; offset < bytes; ++offset) {
        const Spot spot = spot_of(shape, offset);
        RC_ASSERT(spot.file == offset / shape.stripe_bytes % shape.count);
        RC_ASSERT(spot.place == held[spot.file]);  // densely, in their order
        RC_ASSERT(spot.bytes == shape.stripe_bytes - offset % shape.stripe_bytes);
        ++held[spot.file];
        RC_ASSERT(reach_of(shape, spot.file, held[spot.file]) == offset + 1);
    }
    for (std::int64_t file = 0; file < shape.count; ++file) RC_ASSERT(bytes_in(shape, file, bytes) == held[file]);
}

RC_GTEST_PROP(Subfiles, HoldEachByteOnceAlsoWhenDealtAnew, ()) {
    Subfiles subfiles{{}, {}, *rc::gen::inRange<std::int64_t>(1, 8)};
    std::int64_t stripe = 0;
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
        const auto count = *rc::gen::inRange<std::int64_t>(1, 5);
        subfiles.divisions.push_back({stripe, subfiles.count(), count});
        subfiles.paths.resize(subfiles.paths.size() + static_cast<std::size_t>(count));
        stripe += *rc::gen::inRange<std::int64_t>(1, 10);
    }
    const auto bytes = *rc::gen::inRange<std::int64_t>(0, 250);
    std::map<std::int64_t, std::int64_t> held;
    std::size_t division = 0;
    for (std::int64_t offset = 0; offset < bytes; ++offset) {
        const std::int64_t number = offset / subfiles.stripe_bytes;
        if (division + 1 < subfiles.divisions.size() && number == subfiles.divisions[division + 1].first_stripe)
            ++division;
        const Division& in = subfiles.divisions[division];
        const Spot spot = subfiles.spot_of(offset);
        RC_ASSERT(spot.file == in.first_file + (number - in.first_stripe) % in.count);
        RC_ASSERT(spot.place == held[spot.file]);
        ++held[spot.file];
        RC_ASSERT(subfiles.reach_of(spot.file, held[spot.file]) == offset + 1);
    }
    for (std::int64_t file = 0; file < subfiles.count(); ++file)
        RC_ASSERT(subfiles.bytes_in(file, bytes) == held[file]);
}

/// Three subfiles with 10 stripes of 4 bytes, closed.
struct Written {
    Written() : place({3, Shape::Kind::subfiles, 4}) {
        const auto generation = place.begin();
        const Role role{true, true, 0, 0, generation};
        auto writer = place.open(role);
        EXPECT_EQ(writer->write_at(-1, text.data(), std::ssize(text), 0).bytes, std::ssize(text));
        EXPECT_EQ(writer->flush(true), 0);
        EXPECT_EQ(writer->leave(role), 0);
        subfiles = read_subfiles(place.directory).take();
        EXPECT_EQ(keep_sizes(place.directory, subfiles, generation), 0);
        EXPECT_EQ(place.end(generation), 0);
    }
    /// Nobody gets bytes of it, and whoever asks is told this.
    void expect_refused(const std::string& why) {
        const auto opened = Container::open(place.backend, place.clock, place.directory, {true, false, 0, 0, 0});
        ASSERT_FALSE(opened.ok());
        EXPECT_NE(opened.error().message().find(why), std::string::npos) << opened.error().message();
        const auto described = describe(place.path);
        ASSERT_FALSE(described.ok());
        EXPECT_NE(described.error().message().find(why), std::string::npos) << described.error().message();
        EXPECT_FALSE(merge(place.backend, place.path, place.folder + "/merged").ok());
        EXPECT_FALSE(fs::exists(place.folder + "/merged"));
    }
    void expect_whole() {
        auto reader = place.open({true, false, 0, 0, 0});
        EXPECT_EQ(read_all(*reader, 100), text);
        EXPECT_TRUE(describe(place.path).value().problems.empty());
    }

    Place place;
    Subfiles subfiles;
    const std::string text = "aaaabbbbccccddddeeeeffffgggghhhhiiiijjjj";
};

TEST(Subfiles, HoldTheirStripesBehindTheirNames) {
    Written written;
    EXPECT_EQ(slurp(written.subfiles.path(0)).substr(4096), "aaaaddddggggjjjj");
    EXPECT_EQ(slurp(written.subfiles.path(1)).substr(4096), "bbbbeeeehhhh");
    EXPECT_EQ(slurp(written.subfiles.path(2)).substr(4096), "ccccffffiiii");
    EXPECT_TRUE(
        slurp(written.subfiles.path(1))
            .starts_with("ioweir subfile 1\nid " + written.place.header_file.id + "\nnumber 1 of 3\nstripe 4\n"));
    written.expect_whole();
    const Description described = describe(written.place.path).value();
    EXPECT_EQ(described.bytes, 40);
    EXPECT_EQ(described.part_paths, written.subfiles.paths);
}

constexpr std::int64_t large_stripe = 128 << 10;

/// Two subfiles with large stripes, each in a directory of its own or both in the container's.
struct Sent {
    explicit Sent(bool on_targets) : place(Shape{1}) {
        shape = {2, Shape::Kind::subfiles, large_stripe};
        header_file = new_header_file(shape).take();
        directory = directory_of(place.folder + "/large", header_file);
        EXPECT_EQ(make(directory, place.folder + "/large", header_file), 0);
        std::vector<std::string> places;
        for (const char* name : {"/a", "/b"}) {
            fs::create_directory(place.folder + name);
            if (on_targets) places.push_back(place.folder + name);
        }
        EXPECT_TRUE(make_subfiles(directory, places).ok());
        const auto generation = begin_generation(directory);
        EXPECT_TRUE(generation.ok());
        auto opened = Container::open(recorder, clock, directory, {true, true, 0, 0, generation.value().number});
        EXPECT_TRUE(opened.ok());
        container = opened.take();
    }
    void write(std::int64_t offset, std::int64_t bytes) const {
        const std::string data(static_cast<std::size_t>(bytes), 'x');
        EXPECT_EQ(container->write_at(-1, data.data(), bytes, offset).bytes, bytes);
    }

    Place place;  // for its folder
    Shape shape;
    HeaderFile header_file;
    Directory directory;
    FlushRecorder recorder;
    Clock clock;
    std::unique_ptr<Container> container;
};

TEST(Subfiles, OnTargetsAreSentStripesWhenTheyAreComplete) {
    using Begun = FlushRecorder::Begun;
    Sent sent(true);
    sent.write(0, 1000);
    EXPECT_TRUE(sent.recorder.begun.empty()) << "a small piece, with neighbours to come";
    sent.write(1000, large_stripe - 1000);
    EXPECT_EQ(sent.recorder.begun, (std::vector<Begun>{{large_stripe, 4096}}));
    sent.recorder.begun.clear();
    sent.write(large_stripe, 64 << 10);
    EXPECT_EQ(sent.recorder.begun, (std::vector<Begun>{{64 << 10, 4096}})) << "a large part";
    sent.recorder.begun.clear();
    sent.write(2 * large_stripe, 2 * large_stripe);  // the second stripe of each
    EXPECT_EQ(sent.recorder.begun,
              (std::vector<Begun>{{large_stripe, 4096 + large_stripe}, {large_stripe, 4096 + large_stripe}}));
    Sent beside(false);
    beside.write(0, 4 * large_stripe);
    EXPECT_TRUE(beside.recorder.begun.empty()) << "one file system for all";
}

TEST(Subfiles, TimeOfATargetIsThatOfWhatWasWaitedFor) {
    Sent sent(true);
    sent.container->watch_work();
    sent.write(0, 2 * large_stripe);
    sent.container->begin_flush(-1, 2 * large_stripe, 0);
    sent.recorder.flush_time = std::chrono::milliseconds(20);
    EXPECT_EQ(sent.container->flush_at(-1, large_stripe, 0), 0);
    sent.recorder.flush_time = std::chrono::milliseconds(0);
    auto work = sent.container->take_work();
    ASSERT_EQ(work.size(), 2U);
    EXPECT_EQ(work[0].bytes, large_stripe);
    EXPECT_GE(work[0].ns, 20'000'000);
    // There before anybody waits for it: as fast as the last one, and not as slow as those who have come late.
    sent.write(2 * large_stripe, large_stripe);
    sent.container->begin_flush(-1, large_stripe, 2 * large_stripe);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    EXPECT_EQ(sent.container->flush_at(-1, large_stripe, 2 * large_stripe), 0);
    work = sent.container->take_work();
    EXPECT_EQ(work[0].bytes, large_stripe);
    EXPECT_GE(work[0].ns, 20'000'000);
    EXPECT_LT(work[0].ns, 600'000'000);
}

TEST(Subfiles, ThatAreMissingShortSwappedOrDamagedAreNamed) {
    Written written;
    const std::string one = written.subfiles.path(1), two = written.subfiles.path(2), kept = one + ".kept";
    fs::rename(one, kept);
    written.expect_refused(one + ": No such file");
    fs::copy_file(two, one);
    written.expect_refused(one + ": it is subfile 2");
    fs::remove(one);
    fs::copy_file(kept, one);
    written.expect_whole();
    fs::resize_file(one, 4096 + 11);
    written.expect_refused(one + ": it has 4107 bytes and had 4108");
    fs::resize_file(one, 100);
    written.expect_refused(one + ": it is shorter");
    const std::string whole = slurp(kept);
    for (const std::size_t at : {0UL, 20UL, 60UL, 80UL, 4095UL}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        spill(one, damaged);
        written.expect_refused(one + ": its first 4096 bytes do not say");
    }
    spill(one, whole);
    written.expect_whole();
    for (const char* const name : {"places", "sizes"}) {
        const std::string path = written.place.directory.path + "/" + name;
        const std::string text = slurp(path);
        for (std::size_t at = 0; at < text.size(); ++at) {
            std::string damaged = text;
            damaged[at] = static_cast<char>(damaged[at] ^ 1);
            spill(path, damaged);
            written.expect_refused(path);
        }
        spill(path, text);
    }
    written.expect_whole();
    fs::remove(kept);
    EXPECT_EQ(remove(written.place.directory), 0);
    EXPECT_FALSE(fs::exists(written.place.directory.path));
}

TEST(Subfiles, ASwappedOneIsSeenByAReaderThatWasThereBefore) {
    Written written;
    auto reader = written.place.open({true, false, 0, 1, 0});  // not the first rank: it looks at what it opens
    fs::copy_file(written.subfiles.path(2), written.subfiles.path(1), fs::copy_options::overwrite_existing);
    char bytes[8];
    EXPECT_EQ(reader->read_at(-1, bytes, 8, 0).error, EIO);
    EXPECT_NE(reader->problem().find("it is subfile 2"), std::string::npos);
    EXPECT_EQ(std::string(bytes, 4), "aaaa");
}

TEST(Subfiles, DealtAnewKeepWhatTheyHave) {
    Written written;
    const auto generation = written.place.begin();
    const Role role{true, true, 0, 0, generation};
    auto writer = written.place.open(role);
    auto reader = written.place.open({true, false, 0, 1, 0});
    EXPECT_EQ(read_all(*reader, 100), written.text);
    ASSERT_FALSE(writer->redivide({0, 2}).has_value());
    EXPECT_EQ(writer->in_use().first, 3);
    EXPECT_EQ(writer->in_use().count, 2);
    EXPECT_TRUE(writer->redivide({3}).has_value()) << "nothing was written since";
    const std::string more = "kkkkllllmmmm";
    EXPECT_EQ(writer->write_at(-1, more.data(), 12, 40).bytes, 12);
    EXPECT_EQ(writer->write_at(-1, "Z", 1, 5).bytes, 1);
    EXPECT_EQ(read_all(*writer, 100), "aaaabZbb" + written.text.substr(8) + more);
    // Who does not know of it finds what was there, and no wrong byte; after sync all of it.
    EXPECT_EQ(read_all(*reader, 100), "aaaabZbb" + written.text.substr(8));
    EXPECT_EQ(reader->flush(true), 0);
    EXPECT_EQ(read_all(*reader, 100), "aaaabZbb" + written.text.substr(8) + more);
    EXPECT_EQ(writer->set_length(46), 0);
    EXPECT_EQ(read_all(*writer, 100), "aaaabZbb" + written.text.substr(8) + more.substr(0, 6));
    EXPECT_EQ(writer->leave(role), 0);
    writer.reset();
    const auto now = read_subfiles(written.place.directory).take();
    EXPECT_EQ(now.divisions, (std::vector<Division>{{0, 0, 3}, {10, 3, 2}}));
    EXPECT_EQ(slurp(now.path(3)).substr(4096), "kkkk");
    EXPECT_EQ(slurp(now.path(4)).substr(4096), "ll");
    EXPECT_EQ(keep_sizes(written.place.directory, now, generation), 0);
    EXPECT_EQ(written.place.end(generation), 0);
    EXPECT_TRUE(describe(written.place.path).value().problems.empty());
    // Damage of any byte of the text that says so is seen; so is a new subfile that is gone.
    const std::string path = written.place.directory.path + "/places", text = slurp(path);
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        spill(path, damaged);
        written.expect_refused(path);
    }
    spill(path, text);
    fs::rename(now.path(4), now.path(4) + ".kept");
    written.expect_refused(now.path(4) + ": No such file");
    fs::rename(now.path(4) + ".kept", now.path(4));
    EXPECT_EQ(merge(written.place.backend, written.place.path, written.place.path).value(), 46);
    EXPECT_EQ(slurp(written.place.path), "aaaabZbb" + written.text.substr(8) + more.substr(0, 6));
    reader.reset();
    EXPECT_FALSE(fs::exists(written.place.directory.path));
}

TEST(Subfiles, ThatCannotBeDealtAnewStayAsTheyAre) {
    Written written;
    const auto before = read_subfiles(written.place.directory).take();
    spill(written.place.directory.path + "/subfile.4", "in the way");
    const auto next = redivide(written.place.directory, before, 10, {0, 1});
    ASSERT_FALSE(next.ok());
    EXPECT_NE(next.error().message().find("subfile.4: File exists"), std::string::npos) << next.error().message();
    EXPECT_FALSE(fs::exists(written.place.directory.path + "/subfile.3"));
    written.expect_whole();
    fs::remove(written.place.directory.path + "/subfile.4");
    EXPECT_EQ(remove(written.place.directory), 0);
}

/// Numbers that whoever may write them has made up.
TEST(Subfiles, ThatReachFurtherThanFilesDoAreAnError) {
    constexpr std::int64_t stripe_bytes = std::int64_t{1} << 62;
    Place place({4, Shape::Kind::subfiles, stripe_bytes});
    const Subfiles subfiles = read_subfiles(place.directory).value();
    EXPECT_EQ(length(place.directory, subfiles).value(), 0);
    fs::resize_file(subfiles.path(1), subfile_header_bytes + 1);
    EXPECT_EQ(length(place.directory, subfiles).value(), stripe_bytes + 1);
    fs::resize_file(subfiles.path(3), subfile_header_bytes + 1);
    const auto too_long = length(place.directory, subfiles);
    ASSERT_FALSE(too_long.ok());
    EXPECT_EQ(too_long.error().number, EFBIG);
    EXPECT_FALSE(describe(place.path).ok());
    // 3 * 2^62 is beyond 2^63.
    std::string places = "ioweir places 3\nid " + place.directory.id() + "\n";
    for (const char* const first : {"0", "3"}) places += std::string("from ") + first + "\n.\n.\n.\n.\n";
    spill(place.directory.path_of("places"), with_check(places));
    EXPECT_FALSE(read_subfiles(place.directory).ok());
}

TEST(Subfiles, LieInTheDirectoriesThatTheyAreGiven) {
    Place place({5, Shape::Kind::subfiles, 8});
    EXPECT_EQ(remove_subfiles(place.directory), 0);
    EXPECT_FALSE(make_subfiles(place.directory, {place.folder, place.folder + "/none"}).ok());
    EXPECT_FALSE(make_subfiles(place.directory, {place.path}).ok()) << "a file is no directory";
    fs::create_directory(place.folder + "/a");
    fs::create_directory(place.folder + "/b");
    const auto made = make_subfiles(place.directory, {place.folder + "/a", place.folder + "/b/../b"}).take();
    EXPECT_EQ(read_subfiles(place.directory).value().paths, made.paths);
    const std::string name = "/.ioweir-" + place.header_file.id + ".subfile.";
    EXPECT_EQ(made.path(0), place.folder + "/a" + name + "0");
    EXPECT_EQ(made.path(3), place.folder + "/b" + name + "3");
    const auto generation = place.begin();
    const Role role{true, true, 0, 0, generation};
    auto writer = place.open(role);
    EXPECT_EQ(writer->write_at(-1, "far", 3, 21).bytes, 3);
    EXPECT_EQ(writer->length(), 24);
    EXPECT_EQ(writer->leave(role), 0);
    writer.reset();
    EXPECT_EQ(place.end(generation), 0);
    EXPECT_EQ(describe(place.path).value().bytes, 24);
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), 24);
    EXPECT_EQ(slurp(place.path), std::string(21, '\0') + "far");
    EXPECT_TRUE(fs::is_empty(place.folder + "/a") && fs::is_empty(place.folder + "/b"));
}

}  // namespace
}  // namespace ioweir::container
