// Containers, one thing at a time. What does not live here: many handles and clocks at random (model_test.cpp).
#include "container/container.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "container/files/data_header.hpp"
#include "container/files/placed_log.hpp"
#include "container/merge.hpp"
#include "container/testing.hpp"
#include "storage/fault.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;

TEST(HeaderFile, IsShortTextThatReadsBack) {
    const HeaderFile header_file = new_header_file({12}).take();
    const std::string text = to_text(header_file);
    EXPECT_LE(std::ssize(text), most_header_file_bytes);
    EXPECT_TRUE(looks_like_header_file(text));
    EXPECT_EQ(parse_header_file(text).value(), header_file);
    EXPECT_NE(new_header_file({12}).value().id, header_file.id);
    EXPECT_NE(text.find("ioweir merge"), std::string::npos);
    EXPECT_EQ(directory_of("a/b/file", header_file.id), "a/b/.ioweir-" + header_file.id);
    EXPECT_EQ(directory_of("file", header_file.id), ".ioweir-" + header_file.id);
}

TEST(HeaderFile, EveryDamageIsSeen) {
    HeaderFile header_file = new_header_file({3}).take();
    const std::string text = to_text(header_file);
    header_file.version = 2;
    const std::string earlier = to_text(header_file);
    EXPECT_TRUE(earlier.starts_with("ioweir container 2\n"));
    EXPECT_EQ(parse_header_file(earlier).value(), header_file);
    for (std::size_t at = 0; at < earlier.size(); ++at) {
        std::string damaged = earlier;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(parse_header_file(damaged).ok()) << "byte " << at << ": " << damaged;
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        const auto parsed = parse_header_file(damaged);
        EXPECT_FALSE(parsed.ok()) << "byte " << at << ": " << damaged;
        const auto cut = parse_header_file(text.substr(0, at));
        ASSERT_FALSE(cut.ok()) << at;
        EXPECT_EQ(cut.error().what, "a damaged ioweir header file") << at;
    }
    for (const char* const version : {"1", "4", "22"}) {
        const auto other = parse_header_file("ioweir container " + std::string(version) + "\nid 0\n");
        ASSERT_FALSE(other.ok());
        EXPECT_EQ(other.error().value, version);
    }
}

TEST(HeaderFile, OrdinaryFilesAreNone) {
    const Place place(1);
    for (const std::string& text :
         {std::string(), std::string("data"), std::string(1000, 'x'), std::string("ioweir")}) {
        spill(place.folder + "/other", text);
        const auto header_file = read_header_file(place.folder + "/other");
        ASSERT_TRUE(header_file.ok());
        EXPECT_FALSE(header_file.value().has_value());
    }
    EXPECT_FALSE(read_header_file(place.folder + "/none").value().has_value());
    EXPECT_FALSE(read_header_file(place.folder).value().has_value());
    EXPECT_EQ(*read_header_file(place.path).value(), place.header_file);
    spill(place.path, to_text(place.header_file).substr(0, 60));
    EXPECT_FALSE(read_header_file(place.path).ok());
}

RC_GTEST_PROP(Segments, LaterWritesHideEarlierOnes, ()) {
    constexpr std::int64_t end = 40;
    std::vector<Segment> writes;
    std::vector<std::pair<int, std::int64_t>> model(end, {-1, 0});
    for (int i = 0; i < *rc::gen::inRange(0, 20); ++i) {
        const auto offset = *rc::gen::inRange<std::int64_t>(0, end);
        const auto length = *rc::gen::inRange<std::int64_t>(0, end - offset + 1);
        const auto place = *rc::gen::inRange<std::int64_t>(0, 100);
        const int source = *rc::gen::inRange(0, 3);
        writes.push_back({{offset, length}, place, source});
        for (std::int64_t at = 0; at < length; ++at)
            model[static_cast<std::size_t>(offset + at)] = {source, place + at};
    }
    const Segments segments = overlay(writes);
    std::vector<std::pair<int, std::int64_t>> seen(end, {-1, 0});
    std::int64_t last = -1;
    for (const Segment& segment : segments) {
        RC_ASSERT(segment.logical.length > 0);
        RC_ASSERT(segment.logical.offset >= last);
        last = segment.logical.end();
        for (std::int64_t at = 0; at < segment.logical.length; ++at)
            seen[static_cast<std::size_t>(segment.logical.offset + at)] = {segment.source, segment.place + at};
    }
    RC_ASSERT(seen == model);
    for (std::int64_t at = 0; at < end; ++at) {
        const auto found = find(segments, at);
        const bool held = found != segments.end() && found->logical.offset <= at;
        RC_ASSERT(held == (model[static_cast<std::size_t>(at)].first >= 0));
    }
}

TEST(Container, WhatOneRankWritesItReadsAndOthersAfterFlushing) {
    Place place(2);
    const auto generation = place.begin();
    auto first = place.open({true, true, 0, 0, generation});
    auto second = place.open({true, true, 1, 1, generation});
    EXPECT_EQ(first->write_at(-1, "aaaa", 4, 0).bytes, 4);
    EXPECT_EQ(second->write_at(-1, "bbbb", 4, 6).bytes, 4);
    EXPECT_EQ(first->length(), 10);
    EXPECT_EQ(read_all(*first, 20), std::string("aaaa\0\0\0\0\0\0", 10));
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(true), 0);
    EXPECT_EQ(read_all(*first, 20), std::string("aaaa\0\0bbbb", 10));
    EXPECT_EQ(read_all(*second, 20), std::string("aaaa\0\0bbbb", 10));
    // The later one wins, whichever rank it is.
    EXPECT_EQ(second->write_at(-1, "BB", 2, 2).bytes, 2);
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(false), 0);
    EXPECT_EQ(read_all(*first, 20), std::string("aaBB\0\0bbbb", 10));
    EXPECT_EQ(first->write_at(-1, "A", 1, 3).bytes, 1);
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(false), 0);
    EXPECT_EQ(read_all(*second, 20), std::string("aaBA\0\0bbbb", 10));
    EXPECT_EQ(place.end(generation), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), 10);
    EXPECT_EQ(slurp(place.path), std::string("aaBA\0\0bbbb", 10));
    EXPECT_TRUE(fs::exists(place.directory.path)) << "as long as somebody has it open";
    first.reset();
    EXPECT_EQ(read_all(*second, 20), std::string("aaBA\0\0bbbb", 10));
    second.reset();
    EXPECT_FALSE(fs::exists(place.directory.path));
}

TEST(Container, ManyScatteredWritesTakeBoundedMemoryAndComeBack) {
    Place place(1);
    const auto generation = place.begin();
    auto writer = place.open({false, true, 0, 0, generation});
    constexpr std::int64_t pieces = 1'100'000;  // more than are kept
    const auto where = [](std::int64_t i) { return (i * 7'919 % pieces) * 2; };
    for (std::int64_t i = 0; i < pieces; ++i) {
        const char byte = static_cast<char>('a' + i % 26);
        ASSERT_EQ(writer->write_at(-1, &byte, 1, where(i)).error, 0);
    }
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    ASSERT_EQ(place.end(generation), 0);
    const auto described = describe(place.path).value();
    EXPECT_EQ(described.segments, pieces);
    EXPECT_EQ(described.held_bytes, pieces);
    auto reader = place.open({true, false, 0, 0, 0});
    for (std::int64_t i = 0; i < pieces; i += 100'003) {
        char byte = 0;
        ASSERT_EQ(reader->read_at(-1, &byte, 1, where(i)).bytes, 1);
        EXPECT_EQ(byte, static_cast<char>('a' + i % 26));
    }
}

TEST(Container, WhatItHasWrittenAWriterReadsWhetherItIsInTheIndexOrNot) {
    Place place(1);
    const auto generation = place.begin();
    auto writer = place.open({true, true, 0, 0, generation});
    constexpr std::int64_t pieces = 530'000;  // a few more than are kept for reading
    const auto where = [](std::int64_t i) { return (i * 7'919 % pieces) * 2; };
    for (std::int64_t i = 0; i < pieces; ++i) {
        const char byte = static_cast<char>('a' + i % 26);
        ASSERT_EQ(writer->write_at(-1, &byte, 1, where(i)).error, 0);
    }
    EXPECT_GT(fs::file_size(place.directory.index(0, generation, 0)), 0U) << "without any flush";
    for (const std::int64_t i : {std::int64_t{0}, pieces / 2, pieces - 1}) {
        char byte = 0;
        ASSERT_EQ(writer->read_at(-1, &byte, 1, where(i)).bytes, 1);
        EXPECT_EQ(byte, static_cast<char>('a' + i % 26)) << i;
    }
}

TEST(Container, AJobThatDiedLeavesWhatWasFlushed) {
    Place place(2);
    const auto generation = place.begin();
    auto writer = place.open({false, true, 1, 0, generation});
    ASSERT_EQ(writer->write_at(-1, "kept", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(true), 0);
    ASSERT_EQ(writer->write_at(-1, "lost", 4, 0).error, 0);
    ASSERT_EQ(writer->write_at(-1, "lost", 4, 10).error, 0);
    writer.reset();  // without flush: as after kill -9
    const std::string index = place.directory.index(1, generation, 0);
    const std::string complete = slurp(index);
    spill(index, complete + complete.substr(0, 40));  // and half a batch
    const auto described = describe(place.path);
    ASSERT_TRUE(described.ok());
    EXPECT_EQ(described.value().held_bytes, 4);
    EXPECT_EQ(described.value().problems.size(), 2U);
    EXPECT_NE(described.value().problems[0].find("half a batch"), std::string::npos);
    EXPECT_NE(described.value().problems[1].find("not ended"), std::string::npos);
    // In place only what is known to be whole.
    EXPECT_FALSE(merge(place.backend, place.path, place.path).ok());
    EXPECT_EQ(merge(place.backend, place.path, place.folder + "/rescued").value(), 14);
    // The next job gets a generation of its own.
    EXPECT_EQ(place.begin(), generation + 1);
}

TEST(Container, DamageToWhatWasCompleteIsSaid) {
    Place place(2);
    const auto generation = place.begin();
    auto writer = place.open({false, true, 0, 3, generation});
    ASSERT_EQ(writer->write_at(-1, "data", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(false), 0);
    Left left;
    ASSERT_EQ(writer->leave({false, true, 0, 3, generation}, &left), 0);
    writer.reset();
    ASSERT_EQ(place.end(generation, left), 0);
    const std::string index = place.directory.index(0, generation, 3);
    const std::string complete = slurp(index);
    std::string damaged = complete;
    damaged[40] ^= 1;
    spill(index, damaged);
    const auto read = describe(place.path);
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message().find(index), std::string::npos);
    EXPECT_FALSE(Container::open(place.backend, place.clock, place.directory, {true, false, 0, 0, 0}).ok());
    // An index that is gone, and one that has lost a whole batch.
    fs::remove(index);
    EXPECT_NE(describe(place.path).error().message().find("1 of 1 index files are not there (index.1.3)"),
              std::string::npos);
    spill(index, "");
    EXPECT_NE(describe(place.path).error().message().find("index.1.3 is 104 bytes shorter"), std::string::npos);
    const std::string closed = place.directory.path + "/closed." + std::to_string(generation);
    const std::string said = slurp(closed);
    spill(index, complete);
    for (std::size_t at = 0; at < said.size(); ++at) {
        std::string other = said;
        other[at] = static_cast<char>(other[at] ^ 1);
        spill(closed, other);
        const auto told = describe(place.path);
        ASSERT_FALSE(told.ok()) << at;
        EXPECT_NE(told.error().message().find(closed), std::string::npos) << at;
    }
    spill(closed, said);
    ASSERT_TRUE(describe(place.path).value().problems.empty());
    fs::resize_file(place.directory.data(0), 2);
    EXPECT_EQ(describe(place.path).value().problems.size(), 1U);
    EXPECT_FALSE(merge(place.backend, place.path, place.folder + "/merged").ok());
    EXPECT_FALSE(fs::exists(place.folder + "/merged"));
    EXPECT_EQ(std::distance(fs::directory_iterator(place.folder), fs::directory_iterator()), 2);  // nothing half-made
    fs::remove_all(place.directory.path_of(place.directory.folder_name(1)));
    const auto gone = describe(place.path);
    ASSERT_FALSE(gone.ok());
    EXPECT_NE(gone.error().message().find("group.1"), std::string::npos);
}

TEST(Container, LogsMayLieOnTargetsOfTheirOwn) {
    Place place(Shape{0, Shape::Kind::log});
    const auto generation = place.begin();
    std::vector<std::unique_ptr<Container>> writers;
    std::string expected;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const std::string target = place.folder + "/t" + std::to_string(rank % 2);
        fs::create_directory(target);
        writers.push_back(place.open({rank == 0, true, 0, rank, generation, target}));
        const std::string text(10, static_cast<char>('a' + rank));
        ASSERT_EQ(writers.back()->write_at(-1, text.data(), 10, 10 * rank).error, 0);
        ASSERT_EQ(writers.back()->flush(true), 0);
        expected += text;
        const std::int64_t source = log_source(generation, rank);
        const std::string log = placed_log(place.directory, target, source);
        EXPECT_TRUE(fs::is_regular_file(log)) << log;
        EXPECT_EQ(fs::read_symlink(place.directory.data(source)), fs::canonical(target) / fs::path(log).filename());
        EXPECT_EQ(slurp(log).substr(static_cast<std::size_t>(data_header_bytes)), text);
    }
    EXPECT_EQ(read_all(*writers[0], 100), expected);
    writers.clear();
    ASSERT_EQ(place.end(generation), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    // One that has got another's place, and one that is gone, are named.
    const std::string first = placed_log(place.directory, place.folder + "/t0", log_source(generation, 0));
    const std::string other = placed_log(place.directory, place.folder + "/t0", log_source(generation, 2));
    const std::string kept = slurp(first);
    fs::copy_file(other, first, fs::copy_options::overwrite_existing);
    auto reader = place.open({true, false, 0, 0, 0});
    char byte = 0;
    EXPECT_EQ(reader->read_at(-1, &byte, 1, 0).error, EIO);
    EXPECT_NE(reader->problem().find(place.directory.data(log_source(generation, 0))), std::string::npos);
    fs::remove(first);
    EXPECT_NE(place.open({true, false, 0, 0, 0})->read_at(-1, &byte, 1, 0).error, 0);
    EXPECT_FALSE(merge(place.backend, place.path, place.folder + "/merged").ok());
    spill(first, kept);
    reader.reset();
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), 30);
    EXPECT_EQ(slurp(place.path), expected);
    EXPECT_TRUE(fs::is_empty(place.folder + "/t0") && fs::is_empty(place.folder + "/t1"));
}

TEST(Container, ALogGoesOnOnAnotherTarget) {
    Place place(Shape{0, Shape::Kind::log});
    const auto generation = place.begin();
    const std::array<std::string, 3> targets{place.folder + "/t0", place.folder + "/t1", place.folder + "/t2"};
    for (const std::string& target : targets) fs::create_directory(target);
    Left all;
    std::string expected(30, '.');
    {
        const Role role{true, true, 0, 66, generation, targets[0]};  // a rank that shares its folder with rank 2
        auto writer = place.open(role);
        const auto write = [&](const std::string& text, std::size_t at) {
            ASSERT_EQ(writer->write_at(-1, text.data(), std::ssize(text), static_cast<std::int64_t>(at)).error, 0);
            expected.replace(at, text.size(), text);
            EXPECT_EQ(read_all(*writer, 100).substr(at, text.size()), text);
        };
        write("first first ", 0);
        const auto none = writer->go_on_in(place.folder + "/missing");
        ASSERT_TRUE(none.has_value());
        EXPECT_NE(none->message().find(place.folder + "/missing/.ioweir-"), std::string::npos) << none->message();
        EXPECT_EQ(writer->log_place(), targets[0]);
        write("still", 12);
        EXPECT_EQ(writer->go_on_in(targets[1]), std::nullopt);
        EXPECT_EQ(writer->log_place(), targets[1]);
        write("second", 6);  // over some of the first log's
        write("SECOND", 20);
        EXPECT_EQ(writer->flush(true), 0);
        EXPECT_EQ(writer->go_on_in(targets[0]), std::nullopt);  // a target may have several
        write("third", 9);
        EXPECT_EQ(writer->go_on_in(targets[2]), std::nullopt);  // nothing is written to this one
        Left left;
        EXPECT_EQ(writer->leave(role, &left), 0);
        all += left;
    }
    expected.resize(26);
    std::replace(expected.begin(), expected.end(), '.', '\0');
    ASSERT_EQ(place.end(generation, all), 0);
    const Description described = describe(place.path).value();
    EXPECT_EQ(described.problems, std::vector<std::string>());
    EXPECT_EQ(described.bytes, std::ssize(expected));
    ASSERT_EQ(described.part_paths.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        const std::uint32_t number = 66 + static_cast<std::uint32_t>(i) * log_number_step;
        const std::string log =
            placed_log(place.directory, fs::canonical(targets[i % 2]), log_source(generation, number));
        EXPECT_EQ(fs::canonical(described.part_paths[i]), log);
        EXPECT_EQ(described.part_paths[i], place.directory.data(log_source(generation, number)));
    }
    EXPECT_EQ(places_of_logs(place.directory).size(), 3U);
    EXPECT_EQ(read_all(*place.open({true, false, 0, 0, 0}), 100), expected);
    // One in the place of the one before it is named.
    const std::string second = fs::canonical(described.part_paths[1]), kept = slurp(second);
    fs::copy_file(described.part_paths[0], second, fs::copy_options::overwrite_existing);
    EXPECT_EQ(describe(place.path).value().problems.size(), 1U);
    spill(second, kept);
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), std::ssize(expected));
    EXPECT_EQ(slurp(place.path), expected);
    for (const std::string& target : targets) EXPECT_TRUE(fs::is_empty(target));
    // Only logs on targets can.
    Place beside(Shape{0, Shape::Kind::log}), grouped(Shape{2});
    for (Place* other : {&beside, &grouped}) {
        auto writer = other->open({false, true, 0, 0, other->begin()});
        EXPECT_EQ(writer->log_place(), "");
        EXPECT_TRUE(writer->go_on_in(other->folder).has_value());
    }
}

/// What is on its way is bounded where somebody watches, and its time is the target's.
TEST(Container, ALogThatIsWatchedIsOnlySoFarAheadOfItsTarget) {
    for (const bool watches : {false, true}) {
        Place place(Shape{0, Shape::Kind::log});
        const std::string target = place.folder + "/t0", mib(std::size_t{1} << 20, 'm');
        fs::create_directory(target);
        FlushRecorder slow;
        slow.flush_time = std::chrono::milliseconds(30);
        const Role role{false, true, 0, 0, place.begin(), target};
        auto writer = Container::open(slow, place.clock, place.directory, role).take();
        if (watches) writer->watch_work();
        for (int i = 0; i < 12; ++i)
            ASSERT_EQ(writer->write_at(-1, mib.data(), std::ssize(mib), i * std::ssize(mib)).error, 0);
        EXPECT_EQ(slow.begun_bytes, 12 << 20);
        const auto work = writer->take_work();
        if (!watches) {
            EXPECT_EQ(slow.waited_bytes, 0);
            EXPECT_TRUE(work.empty());
            continue;
        }
        EXPECT_LE(slow.most_ahead_bytes, 8 << 20) << "200 ms are less than 7 MiB, and one more";
        EXPECT_GT(slow.waited_bytes, 0);
        ASSERT_EQ(work.size(), 1U);
        EXPECT_EQ(work[0].bytes, 12 << 20);
        EXPECT_GE(work[0].ns, slow.waited_bytes / (1 << 20) * 30'000'000);
        EXPECT_EQ(writer->take_work()[0].bytes, 0);
    }
}

TEST(Container, OnlyRanksThatWriteMakeFoldersOfLogs) {
    Place place(Shape{0, Shape::Kind::log});
    EXPECT_TRUE(folders(place.directory).value().empty());
    const auto generation = place.begin();
    Left left;
    for (const std::uint32_t rank : {3U, 67U, 5U}) {  // 67 modulo 64 is 3
        auto writer = place.open({false, true, 0, rank, generation});
        ASSERT_EQ(writer->write_at(-1, "data", 4, 4 * rank).error, 0);
        ASSERT_EQ(writer->flush(false), 0);
        Left own;
        ASSERT_EQ(writer->leave({false, true, 0, rank, generation}, &own), 0);
        left += own;
    }
    ASSERT_EQ(place.end(generation, left), 0);
    auto made = folders(place.directory).value();
    std::sort(made.begin(), made.end());
    EXPECT_EQ(made, (std::vector<std::string>{"logs.3", "logs.5"}));
    EXPECT_EQ(read_indexes(place.directory).value().map.length(), 4 * 67 + 4);
    // One that is lost afterwards is missed.
    fs::remove_all(place.directory.path_of(made.back()));
    const auto damaged = read_indexes(place.directory);
    ASSERT_FALSE(damaged.ok());
    EXPECT_NE(damaged.error().message().find("1 of 3 index files are not there (index.1.5)"), std::string::npos)
        << damaged.error().message();
    EXPECT_EQ(remove(place.directory), 0);
    EXPECT_FALSE(fs::exists(place.directory.path));
}

TEST(Container, ATargetThatALogCannotLieOnIsNamed) {
    Place place(Shape{0, Shape::Kind::log});
    const auto generation = place.begin();
    const std::string missing = place.folder + "/missing";
    const auto opened =
        Container::open(place.backend, place.clock, place.directory, {false, true, 0, 0, generation, missing});
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message().find(missing + "/.ioweir-"), std::string::npos) << opened.error().message();
    EXPECT_NE(opened.error().message().find("No such file or directory"), std::string::npos);
    EXPECT_FALSE(fs::is_symlink(place.directory.data(log_source(generation, 0))));
    // A link to something else is not ioweir's to remove.
    spill(place.folder + "/precious", "precious");
    fs::create_directories(place.directory.path_of(place.directory.folder_name(log_source(generation, 0))));
    fs::create_symlink(place.folder + "/precious", place.directory.data(log_source(generation, 0)));
    EXPECT_EQ(remove_log(place.directory, log_source(generation, 0)), 0);
    EXPECT_EQ(slurp(place.folder + "/precious"), "precious");
    EXPECT_FALSE(fs::is_symlink(place.directory.data(log_source(generation, 0))));
}

TEST(Container, TheHeaderFileMayBeRenamedAndTheOutputIsNeverOverwritten) {
    Place place(1);
    const auto generation = place.begin();
    auto writer = place.open({false, true, 0, 0, generation});
    ASSERT_EQ(writer->write_at(-1, "data", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    ASSERT_EQ(place.end(generation), 0);
    fs::rename(place.path, place.folder + "/other");
    spill(place.folder + "/there", "precious");
    EXPECT_FALSE(merge(place.backend, place.folder + "/other", place.folder + "/there").ok());
    EXPECT_EQ(slurp(place.folder + "/there"), "precious");
    EXPECT_FALSE(merge(place.backend, place.folder + "/there", place.folder + "/x").ok());
    EXPECT_EQ(merge(place.backend, place.folder + "/other", place.folder + "/other").value(), 4);
    EXPECT_EQ(slurp(place.folder + "/other"), "data");
}

TEST(Container, AFailedWriteIsAnErrorAndLeavesTheRest) {
    for (std::int64_t nth = 1; nth <= 4; ++nth) {
        Place place(1);
        storage::FaultBackend faulty(place.backend, {storage::FaultKind::error, nth, ENOSPC});
        const auto generation = place.begin();
        auto writer = Container::open(faulty, place.clock, place.directory, {true, true, 0, 0, generation}).take();
        const int first = writer->write_at(-1, "one", 3, 0).error;
        const int second = writer->write_at(-1, "two", 3, 3).error;
        const int flushed = writer->flush(false);
        EXPECT_EQ(first, nth == 1 ? ENOSPC : 0);
        EXPECT_EQ(second, nth == 2 ? ENOSPC : 0);
        EXPECT_EQ(flushed, nth == 3 ? ENOSPC : 0);
        if (flushed != 0) {
            EXPECT_EQ(writer->flush(false), 0);  // nothing is lost: the next one has it
        }
        EXPECT_EQ(read_all(*writer, 10), nth == 1 ? std::string("\0\0\0two", 6) : nth == 2 ? "one" : "onetwo");
    }
}

Role of_waiting_writer(std::uint32_t generation) {
    Role role{true, true, 0, 0, generation};
    role.waits = true;
    return role;
}

TEST(Container, SmallWritesThatMayWaitGoIntoALogTogether) {
    Place place(Shape{0, Shape::Kind::log});
    const auto generation = place.begin();
    auto writer = place.open(of_waiting_writer(generation));
    const std::string log = place.directory.data(log_source(generation, 0));
    const auto empty = fs::file_size(log);
    std::string model;
    const auto write = [&](std::size_t bytes, char letter) {
        const std::string data(bytes, letter);
        ASSERT_EQ(writer->write_at(-1, data.data(), std::ssize(data), std::ssize(model)).error, 0);
        model += data;
    };
    for (int i = 0; i < 100; ++i) write(100, static_cast<char>('a' + i % 26));
    EXPECT_EQ(fs::file_size(log), empty);
    EXPECT_EQ(writer->length(), 10'000);
    EXPECT_EQ(read_all(*writer, 20'000), model) << "its own bytes are read at once";
    EXPECT_EQ(fs::file_size(log), empty + 10'000);
    write(1000, 'x');
    write(100'000, 'y');  // too large to wait
    write(1000, 'z');
    EXPECT_EQ(read_all(*writer, 200'000), model);
    for (int i = 0; i < 600; ++i) write(1000, 'w');  // more than may wait
    EXPECT_GE(fs::file_size(log), empty + 300'000);
    EXPECT_EQ(writer->flush(true), 0);
    EXPECT_EQ(fs::file_size(log), empty + model.size());
    writer.reset();
    ASSERT_EQ(place.end(generation), 0);
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), std::ssize(model));
    EXPECT_EQ(slurp(place.path), model);
}

TEST(Container, AFlushTellsOfTheErrorOfWhatHasWaitedAndTheNextOneHasIt) {
    for (const bool reads_between : {false, true}) {
        Place place(Shape{0, Shape::Kind::log});
        // The first write of all is the log's header.
        storage::FaultBackend faulty(place.backend, {storage::FaultKind::error, 2, ENOSPC});
        const auto generation = place.begin();
        auto writer = Container::open(faulty, place.clock, place.directory, of_waiting_writer(generation)).take();
        EXPECT_EQ(writer->write_at(-1, "one", 3, 0).error, 0);
        EXPECT_EQ(writer->write_at(-1, "two", 3, 3).error, 0);
        char byte = 0;
        EXPECT_EQ(reads_between ? writer->read_at(-1, &byte, 1, 0).error : writer->flush(false), ENOSPC);
        EXPECT_EQ(writer->write_at(-1, "three", 5, 6).error, 0);
        EXPECT_EQ(writer->flush(false), 0);
        EXPECT_EQ(read_all(*writer, 20), "onetwothree");
    }
}

/// Several parts of a file in one operation, against the same bytes in memory; storage that moves half of what it is given.
RC_GTEST_PROP(Container, ALogTakesPartsOfAFileTogether, ()) {
    Place place(Shape{0, Shape::Kind::log});
    storage::FaultBackend below(place.backend, {storage::FaultKind::shorten, *rc::gen::inRange(3, 9), 0});
    const auto generation = place.begin();
    Role role = of_waiting_writer(generation);
    role.waits = *rc::gen::arbitrary<bool>();
    auto writer = Container::open(below, place.clock, place.directory, role).take();
    RC_ASSERT(writer->takes_scattered());
    std::string model;
    const int calls = *rc::gen::inRange(1, 5);
    for (int call = 0; call < calls; ++call) {
        std::vector<layout::Extent> parts;
        std::string bytes;
        std::int64_t at = 0;
        const int part_count = *rc::gen::inRange(1, 12);
        for (int i = 0; i < part_count; ++i) {
            at += *rc::gen::inRange(0, 9);
            parts.push_back({at, *rc::gen::inRange(1, 20)});
            const std::string data(static_cast<std::size_t>(parts.back().length),
                                   static_cast<char>('a' + bytes.size() % 26));
            at = parts.back().end();
            if (std::ssize(model) < at) model.resize(static_cast<std::size_t>(at));
            model.replace(static_cast<std::size_t>(parts.back().offset), data.size(), data);
            bytes += data;
        }
        std::vector<iovec> pieces;
        for (std::size_t from = 0; from < bytes.size();) {
            const std::size_t length = std::min<std::size_t>(*rc::gen::inRange(1, 40), bytes.size() - from);
            pieces.push_back({bytes.data() + from, length});
            from += length;
        }
        const auto all = std::ssize(bytes);
        const storage::Transfer done =
            writer->write_scattered_at(-1, pieces.data(), std::ssize(pieces), parts.data(), std::ssize(parts));
        RC_ASSERT(done.error == 0);
        RC_ASSERT(done.bytes == all);
        RC_ASSERT(read_all(*writer, 1000) == model);
    }
    RC_ASSERT(writer->flush(false) == 0);
    writer.reset();
    RC_ASSERT(place.end(generation) == 0);
    RC_ASSERT(merge(place.backend, place.path, place.path).value() == std::ssize(model));
    RC_ASSERT(slurp(place.path) == model);
}

TEST(Directory, GenerationsAreUniqueAndOnlyAContainersFilesAreRemoved) {
    Place place(2);
    EXPECT_EQ(place.begin(), 1U);
    EXPECT_EQ(place.begin(), 2U);
    EXPECT_EQ(place.end(2), 0);
    EXPECT_EQ(generations_in(place.directory).value().open, (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(place.end(1), 0);
    EXPECT_EQ(place.begin(), 3U);
    spill(place.directory.path_of(place.directory.folder_name(1)) + "/mine", "precious");
    EXPECT_NE(remove(place.directory), 0);
    EXPECT_EQ(slurp(place.directory.path_of(place.directory.folder_name(1)) + "/mine"), "precious");
    EXPECT_FALSE(fs::exists(place.directory.path_of(place.directory.folder_name(0))));
}

}  // namespace
}  // namespace ioweir::container
