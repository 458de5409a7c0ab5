// OwnIndex: whether batches are stored in mapped memory or written, readers see those that were appended, also after a kill and on a full disk.
#include "container/index/own_index.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "container/merge.hpp"
#include "container/testing.hpp"
#include "storage/fault.hpp"

namespace ioweir::container {
namespace {

constexpr Shape logs{0, Shape::Kind::log};

/// A folder in memory, where files are mapped.
struct InMemory {
    InMemory() {
        char name[] = "/dev/shm/ioweir-index-XXXXXX";
        folder = ::mkdtemp(name);
        path = folder + "/file";
        const HeaderFile header_file = new_header_file(logs).take();
        directory = directory_of(path, header_file);
        EXPECT_EQ(make(directory, path, header_file), 0);
        spill(path, to_text(header_file));
    }
    ~InMemory() { std::filesystem::remove_all(folder); }
    InMemory(const InMemory&) = delete;
    InMemory& operator=(const InMemory&) = delete;

    std::unique_ptr<Container> open(storage::Backend& below, Clock& of_process, const Role& role) const {
        return Container::open(below, of_process, directory, role).take();
    }
    [[nodiscard]] std::int64_t index_bytes(const Role& role) const {
        const auto source = log_source(role.generation, role.rank);
        return static_cast<std::int64_t>(
            std::filesystem::file_size(directory.index(source, role.generation, role.rank)));
    }

    std::string folder, path;
    Directory directory;
    storage::PosixBackend posix;
    Clock clock;
};

/// Piece i of a program that leaves a gap behind each, so that no two are one entry.
std::int64_t offset_of(std::int64_t i) { return 16 * i; }
std::int64_t piece_of(std::int64_t i) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(i) * 0x0101010101010101 + 1);
}

bool write_and_show(Container& container, std::int64_t i) {
    const std::int64_t piece = piece_of(i);
    return container.write_at(-1, &piece, sizeof piece, offset_of(i)).error == 0 && container.show() == 0;
}

/// How many pieces there are, from the first on, in a container that has no other bytes.
std::int64_t pieces_in(Container& container) {
    const std::int64_t length = container.length();
    std::string text = read_all(container, length);
    std::int64_t count = 0;
    for (std::size_t at = 0; at + 8 <= text.size(); at += 16, ++count) {
        std::int64_t piece = 0;
        std::memcpy(&piece, text.data() + at, sizeof piece);
        EXPECT_EQ(piece, piece_of(count));
    }
    return count;
}

TEST(OwnIndex, ReadersSeeEachBatchAtOnceAndNoZerosAreLeft) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto writer = place.open(place.posix, place.clock, role);
    Clock other;
    auto reader = place.open(place.posix, other, {true, false, 0, 0, 0});
    std::int64_t shown = 0;
    bool longer = false;
    for (const int more : {1, 14, 1, 1, 1, 500, 3'000, 20'000}) {
        for (int i = 0; i < more; ++i) ASSERT_TRUE(write_and_show(*writer, shown++));
        ASSERT_EQ(reader->flush(false), 0);
        ASSERT_EQ(pieces_in(*reader), shown);
        longer = longer || place.index_bytes(role) > shown * (56 + 48);
    }
    EXPECT_TRUE(longer) << "it was mapped";
    ASSERT_TRUE(describe(place.path).ok());
    Left left;
    ASSERT_EQ(writer->leave(role, &left), 0);
    EXPECT_EQ(left.bytes, shown * (56 + 48));
    EXPECT_EQ(place.index_bytes(role), left.bytes);
    ASSERT_EQ(end_generation(place.directory, role.generation, place.clock.last(), left), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    ASSERT_EQ(reader->flush(false), 0);
    EXPECT_EQ(pieces_in(*reader), shown);
}

TEST(OwnIndex, AKilledProcessLeavesAllThatItHasShown) {
    for (int round = 0; round < 12; ++round) {
        InMemory place;
        const auto generation = begin_generation(place.directory).value();
        const Role role{false, true, 0, 0, generation.number};
        auto* const shown = static_cast<std::atomic<std::int64_t>*>(::mmap(
            nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        const pid_t child = ::fork();
        if (child == 0) {
            auto writer = place.open(place.posix, place.clock, role);
            for (std::int64_t i = 0; write_and_show(*writer, i); ++i) shown->store(i + 1);
            ::_exit(1);
        }
        while (shown->load() < 5) ::usleep(100);
        ::usleep(static_cast<useconds_t>(137 * round * round));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        auto reader = place.open(place.posix, place.clock, {true, false, 0, 0, 0});
        const std::int64_t found = pieces_in(*reader);
        EXPECT_GE(found, shown->load());
        EXPECT_LE(found, shown->load() + 1);
        // Nothing says that it has ended; but nothing is torn, unless it was just at it.
        const auto described = describe(place.path);
        ASSERT_TRUE(described.ok());
        EXPECT_FALSE(described.value().problems.empty());
        // And the next job comes after it.
        const auto next = begin_generation(place.directory).value();
        EXPECT_GT(next.after, 0);
        place.clock.adopt(next.after);
        const Role later{true, true, 0, 0, next.number};
        auto again = place.open(place.posix, place.clock, later);
        ASSERT_EQ(again->write_at(-1, "later", 5, 0).error, 0);
        ASSERT_EQ(again->flush(false), 0);
        EXPECT_EQ(read_all(*again, 5), "later");
        ::munmap(shown, sizeof *shown);
    }
}

/// A child of the writer that ends without exec cuts nothing off.
TEST(OwnIndex, AChildOfTheWriterLeavesItsIndexAlone) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto writer = place.open(place.posix, place.clock, role);
    for (std::int64_t i = 0; i < 100; ++i) ASSERT_TRUE(write_and_show(*writer, i));
    const std::int64_t before = place.index_bytes(role);
    const pid_t child = ::fork();
    if (child == 0) {
        writer.reset();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(place.index_bytes(role), before);
    for (std::int64_t i = 100; i < 200; ++i) ASSERT_TRUE(write_and_show(*writer, i));
    auto reader = place.open(place.posix, place.clock, {true, false, 0, 0, 0});
    EXPECT_EQ(pieces_in(*reader), 200);
}

/// A program that closes every descriptor gets the index's number for a file of its own, of which nothing is changed then.
TEST(OwnIndex, AFileThatHasGotItsDescriptorStaysAsItIs) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto writer = place.open(place.posix, place.clock, role);
    for (std::int64_t i = 0; i < 100; ++i) ASSERT_TRUE(write_and_show(*writer, i));
    const std::string index = place.directory.index(log_source(role.generation, role.rank), role.generation, role.rank);
    int number = -1;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code none;
        if (std::filesystem::read_symlink(entry.path(), none) == index) number = std::stoi(entry.path().filename());
    }
    ASSERT_GE(number, 0) << index;
    const std::string text(1 << 20, 'x'), path = place.folder + "/programs";
    spill(path, text);
    const int programs = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::dup2(programs, number), number);
    // Across the ends of windows: the next one would be made in that file.
    for (std::int64_t i = 100; i < 110; ++i) (void)write_and_show(*writer, i);
    Left left;
    (void)writer->leave(role, &left);
    writer.reset();
    EXPECT_EQ(::fcntl(number, F_GETFD), 0) << "it is still open";
    EXPECT_TRUE(slurp(path) == text);
    ::close(number);
    ::close(programs);
}

/// Each write that fails is an error of its call, or costs nothing but the mapping; what is tried again is there.
TEST(OwnIndex, AFullDiskIsAnErrorAndNoSignal) {
    for (int nth = 1; nth < 120; ++nth) {
        InMemory place;
        storage::FaultBackend faulty(place.posix, {storage::FaultKind::error, nth, ENOSPC});
        const auto generation = begin_generation(place.directory).value();
        const Role role{false, true, 0, 0, generation.number};
        auto opened = Container::open(faulty, place.clock, place.directory, role);
        if (!opened.ok()) continue;  // the log's header
        auto writer = opened.take();
        for (std::int64_t i = 0; i < 60; ++i) {
            if (write_and_show(*writer, i)) continue;
            ASSERT_TRUE(write_and_show(*writer, i));
        }
        Left left;
        ASSERT_EQ(writer->leave(role, &left), 0);
        ASSERT_EQ(end_generation(place.directory, role.generation, place.clock.last(), left), 0);
        EXPECT_TRUE(describe(place.path).value().problems.empty());
        auto reader = place.open(place.posix, place.clock, {true, false, 0, 0, 0});
        ASSERT_EQ(pieces_in(*reader), 60) << nth;
    }
}

/// However long it is: nobody reads through it.
TEST(OwnIndex, ATailOfZerosThatNoWriterLeavesIsDamageAtOnce) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto writer = place.open(place.posix, place.clock, role);
    for (std::int64_t i = 0; i < 3; ++i) ASSERT_TRUE(write_and_show(*writer, i));
    Left left;
    ASSERT_EQ(writer->leave(role, &left), 0);
    ASSERT_EQ(end_generation(place.directory, role.generation, place.clock.last(), left), 0);
    const std::string index = place.directory.index(log_source(role.generation, role.rank), role.generation, role.rank);
    ASSERT_EQ(::truncate(index.c_str(), left.bytes + most_room_bytes), 0);
    EXPECT_TRUE(describe(place.path).value().problems.empty());
    ASSERT_EQ(::truncate(index.c_str(), std::int64_t{1} << 60), 0);
    const auto described = describe(place.path);
    EXPECT_TRUE(!described || !described.value().problems.empty());
}

TEST(OwnIndex, ZerosBeforeABatchAreDamage) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    const Role role{false, true, 0, 0, generation.number};
    auto writer = place.open(place.posix, place.clock, role);
    for (std::int64_t i = 0; i < 10; ++i) ASSERT_TRUE(write_and_show(*writer, i));
    Left left;
    ASSERT_EQ(writer->leave(role, &left), 0);
    ASSERT_EQ(end_generation(place.directory, role.generation, place.clock.last(), left), 0);
    const std::string path = place.directory.index(log_source(role.generation, 0), role.generation, 0);
    const std::string good = slurp(path);
    constexpr std::size_t one = 56 + 48;
    for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{10}}) {
        for (std::size_t first = 0; first + count <= 10; ++first) {
            std::string bad = good;
            bad.replace(first * one, count * one, count * one, '\0');
            spill(path, bad);
            EXPECT_FALSE(read_indexes(place.directory).ok()) << first << " " << count;
        }
    }
    spill(path, good + std::string(5'000, '\0'));
    EXPECT_TRUE(read_indexes(place.directory).ok()) << "room that its writer could not cut off";
    spill(path, good + std::string(5'000, '\0') + "x");
    EXPECT_FALSE(read_indexes(place.directory).ok());
}

/// Its writes fail when it is told so, after their bytes have come into the file.
class FailsAfterwards final : public storage::Backend {
public:
    bool fails = false;

    storage::Opened attempt_open(const char* path, int flags, mode_t mode) override {
        return posix_.attempt_open(path, flags, mode);
    }
    int attempt_close(int descriptor) override { return posix_.attempt_close(descriptor); }
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        const std::int64_t done = posix_.attempt_write(descriptor, pieces, count, offset);
        return fails ? -EIO : done;
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        ++reads;
        return posix_.attempt_read(descriptor, pieces, count, offset);
    }
    int attempt_flush(int, std::int64_t, std::int64_t) override { return 0; }
    int reads = 0;

private:
    storage::PosixBackend posix_;
};

/// What is read ahead of the pieces that are named may be written again.
TEST(LogAhead, WhatWasNoPieceWhenItWasReadAheadIsReadAgain) {
    InMemory place;
    FailsAfterwards below;
    const auto generation = begin_generation(place.directory).value();
    Clock other;
    const Role role{true, true, 0, 0, generation.number};
    auto writer = place.open(below, place.clock, role);
    auto reader = place.open(below, other, {true, false, 0, 0, 0});
    const auto piece = [](char letter) { return std::string(32, letter); };
    const auto write = [&](std::int64_t i, char letter) {
        return writer->write_at(-1, piece(letter).data(), 32, 64 * i).error == 0;
    };
    const auto read = [&](Container& from, std::int64_t i) {
        std::string text(32, '?');
        EXPECT_EQ(from.read_at(-1, text.data(), 32, 64 * i).error, 0);
        return text;
    };
    constexpr std::int64_t some = 40;
    for (std::int64_t i = 0; i < some; ++i) ASSERT_TRUE(write(i, 'a'));
    below.fails = true;
    for (std::int64_t i = some; i < some + 3; ++i) ASSERT_FALSE(write(i, 'G'));
    below.fails = false;
    ASSERT_EQ(writer->flush(false), 0);
    ASSERT_EQ(reader->flush(false), 0);
    ASSERT_EQ(read(*reader, 0), piece('a'));
    const int before = below.reads;
    for (std::int64_t i = 0; i < some; ++i) {
        ASSERT_EQ(read(*writer, i), piece('a'));
        ASSERT_EQ(read(*reader, i), piece('a'));
    }
    EXPECT_LT(below.reads - before, some / 2) << "they were read ahead";
    for (std::int64_t i = some; i < some + 3; ++i) ASSERT_TRUE(write(i, 'b'));
    for (std::int64_t i = some; i < some + 3; ++i) ASSERT_EQ(read(*writer, i), piece('b'));
    ASSERT_EQ(writer->flush(false), 0);
    ASSERT_EQ(reader->flush(false), 0);
    for (std::int64_t i = some; i < some + 3; ++i) ASSERT_EQ(read(*reader, i), piece('b'));
}

/// Two processes that write small pieces, show some of them, and read pieces in order and at random, against an array of bytes.
RC_GTEST_PROP(OwnIndex, ReadersAndWritersOfLogsAgreeWithAnArrayOfBytes, ()) {
    InMemory place;
    const auto generation = begin_generation(place.directory).value();
    std::vector<Clock> clocks(2);
    std::vector<Role> roles;
    std::vector<std::unique_ptr<Container>> all;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        roles.push_back({true, true, 0, rank, generation.number});
        roles.back().waits = *rc::gen::arbitrary<bool>();
        all.push_back(place.open(place.posix, clocks[rank], roles.back()));
    }
    constexpr std::int64_t most = 6'000;
    std::string model;
    const auto bytes = *rc::gen::inRange<std::int64_t>(1, 40);
    char next = 'a';
    const auto read_is_right = [&](Container& reader, std::int64_t offset, std::int64_t length) {
        std::string text(static_cast<std::size_t>(length), '?');
        const auto done = reader.read_at(-1, text.data(), length, offset);
        RC_ASSERT(done.error == 0);
        const auto begin = std::min<std::size_t>(model.size(), static_cast<std::size_t>(offset));
        RC_ASSERT(text.substr(0, static_cast<std::size_t>(done.bytes)) ==
                  model.substr(begin, static_cast<std::size_t>(length)));
    };
    for (int turn = 0; turn < *rc::gen::inRange(1, 30); ++turn) {
        const std::size_t now = *rc::gen::inRange<std::size_t>(0, 2);
        Container& mine = *all[now];
        // What the other one has shown is known.
        mine.adopt(all[1 - now]->last_stamp());
        const auto stride = *rc::gen::inRange<std::int64_t>(1, 4);
        const auto pieces = *rc::gen::inRange<std::int64_t>(1, 60);
        const auto first = *rc::gen::inRange<std::int64_t>(0, 1'000);
        const int what = *rc::gen::inRange(0, 4);
        for (std::int64_t i = 0; i < pieces; ++i) {
            const std::int64_t offset = first + i * stride * bytes;
            if (what >= 2) {
                next = next == 'z' ? 'a' : static_cast<char>(next + 1);
                const std::string data(static_cast<std::size_t>(bytes), next);
                RC_ASSERT(mine.write_at(-1, data.data(), bytes, offset).error == 0);
                const auto end = static_cast<std::size_t>(offset + bytes);
                if (model.size() < end) model.resize(end, '\0');
                model.replace(static_cast<std::size_t>(offset), data.size(), data);
                if (what == 3) RC_ASSERT(mine.show() == 0);
            }
            if (what != 2) read_is_right(mine, offset, bytes);
            if (what == 0 && i % 7 == 6) read_is_right(mine, 0, 3 * bytes);
        }
        if (*rc::gen::arbitrary<bool>()) RC_ASSERT(mine.flush(false) == 0);
        RC_ASSERT(mine.show() == 0);
    }
    for (const auto& container : all) {
        RC_ASSERT(container->flush(false) == 0);
        read_is_right(*container, 0, most + 10'000);
    }
    Left sum;
    for (std::size_t i = 0; i < all.size(); ++i) {
        Left left;
        RC_ASSERT(all[i]->leave(roles[i], &left) == 0);
        sum += left;
    }
    RC_ASSERT(end_generation(place.directory, generation.number, std::max(clocks[0].last(), clocks[1].last()), sum) ==
              0);
    RC_ASSERT(read_all(*place.open(place.posix, place.clock, {true, false, 0, 0, 0}), most + 10'000) == model);
}

}  // namespace
}  // namespace ioweir::container
