// Containers against a model: a plain array of bytes and, for each, who wrote it last.
#include "container/container.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "container/merge.hpp"
#include "storage/fault.hpp"
#include "storage/posix.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;
using layout::Extent;

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// A folder that goes away, and in it an empty container at "file".
struct Place {
    explicit Place(std::int64_t groups) {
        char name[] = "/tmp/ioweir-container-XXXXXX";
        folder = ::mkdtemp(name);
        path = folder + "/file";
        stub = new_stub({groups}).take();
        directory = directory_of(path, stub);
        EXPECT_EQ(make(directory, path, stub), 0);
        spill(path, to_text(stub));
    }
    ~Place() { fs::remove_all(folder); }
    Place(const Place&) = delete;

    std::unique_ptr<Container> open(Role role) {
        auto opened = Container::open(backend, directory, role);
        EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message());
        return opened ? opened.take() : nullptr;
    }

    storage::PosixBackend backend;
    std::string folder, path;
    Stub stub;
    Directory directory;
};

std::string read_all(Container& container, std::int64_t bytes) {
    std::string text(static_cast<std::size_t>(bytes), '?');
    const auto done = container.read_at(-1, text.data(), bytes, 0);
    EXPECT_EQ(done.error, 0);
    text.resize(static_cast<std::size_t>(done.bytes));
    return text;
}

TEST(Stub, IsShortTextThatReadsBack) {
    const Stub stub = new_stub({12}).take();
    const std::string text = to_text(stub);
    EXPECT_LE(std::ssize(text), most_stub_bytes);
    EXPECT_TRUE(looks_like_stub(text));
    EXPECT_EQ(parse_stub(text).value(), stub);
    EXPECT_NE(new_stub({12}).value().id, stub.id);
    EXPECT_NE(text.find("ioweir merge"), std::string::npos);
    EXPECT_EQ(directory_of("a/b/file", stub.id), "a/b/.ioweir-" + stub.id);
    EXPECT_EQ(directory_of("file", stub.id), ".ioweir-" + stub.id);
}

TEST(Stub, EveryDamageIsSeen) {
    const std::string text = to_text(new_stub({3}).take());
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        const auto parsed = parse_stub(damaged);
        EXPECT_FALSE(parsed.ok()) << "byte " << at << ": " << damaged;
        EXPECT_FALSE(parse_stub(text.substr(0, at)).ok()) << at;
    }
    const auto later = parse_stub("ioweir container 2\nid 0\n");
    ASSERT_FALSE(later.ok());
    EXPECT_EQ(later.error().value, "2");
}

TEST(Stub, OrdinaryFilesAreNone) {
    const Place place(1);
    for (const std::string& text :
         {std::string(), std::string("data"), std::string(1000, 'x'), std::string("ioweir")}) {
        spill(place.folder + "/other", text);
        const auto stub = read_stub(place.folder + "/other");
        ASSERT_TRUE(stub.ok());
        EXPECT_FALSE(stub.value().has_value());
    }
    EXPECT_FALSE(read_stub(place.folder + "/none").value().has_value());
    EXPECT_FALSE(read_stub(place.folder).value().has_value());
    EXPECT_EQ(*read_stub(place.path).value(), place.stub);
    spill(place.path, to_text(place.stub).substr(0, 60));
    EXPECT_FALSE(read_stub(place.path).ok());
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
    const std::int64_t length = *rc::gen::inRange<std::int64_t>(0, end + 1);
    Segments segments = overlay(writes);
    cut(segments, length);
    for (std::size_t at = static_cast<std::size_t>(length); at < model.size(); ++at) model[at] = {-1, 0};
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

TEST(Index, ReadsBackUpToTheDamage) {
    const Batch first{{1, 0, 2}, 5, {{{0, 10}, 0}, {{100, 1}, 100}}};
    const Batch second{{1, 1, 2}, 5, {{{7, 0}, cut_here}}};
    const std::string bytes = encode(first) + encode(second);
    const Decoded whole = decode(bytes, 5);
    EXPECT_EQ(whole.damage, "");
    EXPECT_EQ(whole.batches, (std::vector<Batch>{first, second}));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const Decoded part = decode(std::string_view(bytes).substr(0, length), 5);
        const std::size_t complete = length >= encode(first).size() ? 1 : 0;
        EXPECT_EQ(part.batches.size(), complete) << length;
        EXPECT_EQ(part.damage.empty(), length == 0 || length == encode(first).size()) << length;
    }
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        EXPECT_FALSE(decode(damaged, 5).damage.empty()) << at;
    }
}

TEST(Container, WhatOneRankWritesItReadsAndOthersAfterFlushing) {
    Place place(2);
    const auto generation = begin_generation(place.directory).value();
    auto first = place.open({true, true, 0, 0, generation});
    auto second = place.open({true, true, 1, 1, generation});
    EXPECT_EQ(first->write_at(-1, "aaaa", 4, 0).bytes, 4);
    EXPECT_EQ(second->write_at(-1, "bbbb", 4, 6).bytes, 4);
    EXPECT_EQ(first->length(), 10);
    EXPECT_EQ(read_all(*first, 20), std::string("aaaa\0\0\0\0\0\0", 10));
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(true), 0);
    EXPECT_EQ(read_all(*first, 20), std::string("aaaa\0\0bbbb", 10));
    EXPECT_EQ(read_all(*second, 20), std::string("aaaa\0\0bbbb", 10));
    // The later epoch wins, whichever rank it is.
    EXPECT_EQ(second->write_at(-1, "BB", 2, 2).bytes, 2);
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(false), 0);
    EXPECT_EQ(read_all(*first, 20), std::string("aaBB\0\0bbbb", 10));
    EXPECT_EQ(first->write_at(-1, "A", 1, 3).bytes, 1);
    for (auto* each : {first.get(), second.get()}) EXPECT_EQ(each->flush(false), 0);
    EXPECT_EQ(read_all(*second, 20), std::string("aaBA\0\0bbbb", 10));
    EXPECT_EQ(end_generation(place.directory, generation), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    EXPECT_EQ(merge(place.backend, place.path, place.path).value(), 10);
    EXPECT_EQ(slurp(place.path), std::string("aaBA\0\0bbbb", 10));
    EXPECT_FALSE(fs::exists(place.directory.path));
}

/// A job of several ranks with random writes, syncs and cuts, closed and opened again with another number of ranks.
RC_GTEST_PROP(Container, HoldsWhatAPlainFileWould, ()) {
    constexpr std::int64_t most = 300;
    const auto groups = *rc::gen::inRange<std::int64_t>(1, 4);
    Place place(groups);
    std::string model;
    for (int job = 0; job < *rc::gen::inRange(1, 4); ++job) {
        const int ranks = *rc::gen::inRange(1, 6);
        const auto generation = begin_generation(place.directory).value();
        RC_ASSERT(generation == static_cast<std::uint32_t>(job + 1));
        std::vector<std::unique_ptr<Container>> open;
        const bool reads = *rc::gen::arbitrary<bool>();
        for (int rank = 0; rank < ranks; ++rank) {
            open.push_back(place.open({reads, true, static_cast<std::int32_t>(rank * groups / ranks),
                                       static_cast<std::uint32_t>(rank), generation}));
        }
        const auto flush_all = [&] {
            for (const auto& each : open) RC_ASSERT(each->flush(false) == 0);
        };
        for (int step = 0; step < *rc::gen::inRange(0, 12); ++step) {
            // Only one rank writes between two flushes: what several write at once has no order.
            auto& writer = *open[static_cast<std::size_t>(*rc::gen::inRange(0, ranks))];
            for (int i = 0; i < *rc::gen::inRange(0, 5); ++i) {
                const auto offset = *rc::gen::inRange<std::int64_t>(0, most);
                const auto length = *rc::gen::inRange<std::int64_t>(1, 40);
                const std::string data(static_cast<std::size_t>(length),
                                       static_cast<char>('a' + *rc::gen::inRange(0, 26)));
                RC_ASSERT(writer.write_at(-1, data.data(), length, offset).error == 0);
                if (std::ssize(model) < offset + length) model.resize(static_cast<std::size_t>(offset + length), '\0');
                model.replace(static_cast<std::size_t>(offset), data.size(), data);
                if (reads) RC_ASSERT(read_all(writer, most + 60) == model);
            }
            RC_ASSERT(writer.length() == std::ssize(model));
            flush_all();
            if (*rc::gen::inRange(0, 4) != 0) continue;
            const auto length = *rc::gen::inRange<std::int64_t>(0, most + 40);
            for (std::size_t rank = 0; rank < open.size(); ++rank)
                RC_ASSERT(open[rank]->set_length(length, rank == 0) == 0);
            model.resize(static_cast<std::size_t>(length), '\0');
        }
        flush_all();
        open.clear();
        RC_ASSERT(end_generation(place.directory, generation) == 0);
        auto reader = place.open({true, false, 0, 0, 0});
        RC_ASSERT(read_all(*reader, most + 60) == model);
    }
    const auto described = describe(place.path).value();
    RC_ASSERT(described.problems.empty());
    RC_ASSERT(described.bytes == std::ssize(model));
    RC_ASSERT(merge(place.backend, place.path, place.folder + "/merged").value() == std::ssize(model));
    RC_ASSERT(slurp(place.folder + "/merged") == model);
    RC_ASSERT(fs::exists(place.directory.path));
}

TEST(Container, ManyScatteredWritesTakeBoundedMemoryAndComeBack) {
    Place place(1);
    const auto generation = begin_generation(place.directory).value();
    auto writer = place.open({false, true, 0, 0, generation});
    constexpr std::int64_t pieces = 1'100'000;  // more than are kept
    const auto where = [](std::int64_t i) { return (i * 7'919 % pieces) * 2; };
    for (std::int64_t i = 0; i < pieces; ++i) {
        const char byte = static_cast<char>('a' + i % 26);
        ASSERT_EQ(writer->write_at(-1, &byte, 1, where(i)).error, 0);
    }
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    ASSERT_EQ(end_generation(place.directory, generation), 0);
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

TEST(Container, AJobThatDiedLeavesWhatWasFlushed) {
    Place place(2);
    const auto generation = begin_generation(place.directory).value();
    auto writer = place.open({false, true, 1, 0, generation});
    ASSERT_EQ(writer->write_at(-1, "kept", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(true), 0);
    ASSERT_EQ(writer->write_at(-1, "lost", 4, 0).error, 0);
    ASSERT_EQ(writer->write_at(-1, "lost", 4, 10).error, 0);
    writer.reset();  // without flush: as after kill -9
    const std::string index = place.directory.index(1, {generation, 0, 0});
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
    EXPECT_EQ(begin_generation(place.directory).value(), generation + 1);
}

TEST(Container, DamageToWhatWasCompleteIsSaid) {
    Place place(2);
    const auto generation = begin_generation(place.directory).value();
    auto writer = place.open({false, true, 0, 3, generation});
    ASSERT_EQ(writer->write_at(-1, "data", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    ASSERT_EQ(end_generation(place.directory, generation), 0);
    const std::string index = place.directory.index(0, {generation, 0, 3});
    const std::string complete = slurp(index);
    std::string damaged = complete;
    damaged[40] ^= 1;
    spill(index, damaged);
    const auto read = describe(place.path);
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message().find(index), std::string::npos);
    EXPECT_FALSE(Container::open(place.backend, place.directory, {true, false, 0, 0, 0}).ok());
    spill(index, complete);
    fs::resize_file(place.directory.data(0), 2);
    EXPECT_EQ(describe(place.path).value().problems.size(), 1U);
    EXPECT_FALSE(merge(place.backend, place.path, place.folder + "/merged").ok());
    EXPECT_FALSE(fs::exists(place.folder + "/merged"));
    EXPECT_EQ(std::distance(fs::directory_iterator(place.folder), fs::directory_iterator()), 2);  // nothing half-made
    fs::remove_all(place.directory.group(1));
    const auto gone = describe(place.path);
    ASSERT_FALSE(gone.ok());
    EXPECT_NE(gone.error().message().find("group.1"), std::string::npos);
}

TEST(Container, TheStubMayBeRenamedAndTheOutputIsNeverOverwritten) {
    Place place(1);
    const auto generation = begin_generation(place.directory).value();
    auto writer = place.open({false, true, 0, 0, generation});
    ASSERT_EQ(writer->write_at(-1, "data", 4, 0).error, 0);
    ASSERT_EQ(writer->flush(false), 0);
    writer.reset();
    ASSERT_EQ(end_generation(place.directory, generation), 0);
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
        const auto generation = begin_generation(place.directory).value();
        auto writer = Container::open(faulty, place.directory, {true, true, 0, 0, generation}).take();
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

TEST(Directory, GenerationsAreUniqueAndOnlyAContainersFilesAreRemoved) {
    Place place(2);
    EXPECT_EQ(begin_generation(place.directory).value(), 1U);
    EXPECT_EQ(begin_generation(place.directory).value(), 2U);
    EXPECT_EQ(end_generation(place.directory, 2), 0);
    EXPECT_EQ(open_generations(place.directory).value(), (std::vector<std::uint32_t>{1}));
    EXPECT_EQ(end_generation(place.directory, 1), 0);
    EXPECT_EQ(begin_generation(place.directory).value(), 3U);
    spill(place.directory.group(1) + "/mine", "precious");
    EXPECT_NE(remove(place.directory), 0);
    EXPECT_EQ(slurp(place.directory.group(1) + "/mine"), "precious");
    EXPECT_FALSE(fs::exists(place.directory.group(0)));
}

}  // namespace
}  // namespace ioweir::container
