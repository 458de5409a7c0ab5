// Tests of the parts that need no MPI at run time: moving bytes, checksums, the log of writes, descriptors.
// With MPI, and as a whole: tests/engine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/testing.hpp"
#include "engine/files/descriptors.hpp"
#include "engine/verify/write_log.hpp"
#include "exchange/direct.hpp"
#include "storage/fault.hpp"
#include "storage/posix.hpp"

namespace ioweir::engine {
namespace {

using layout::Extent;
using layout::ExtentList;
using layout::FileView;
using layout::FlatType;
using layout::FlatTypeBuilder;

class TemporaryFile {
public:
    TemporaryFile() { descriptor_ = ::open(path_.c_str(), O_CREAT | O_RDWR, 0600); }
    ~TemporaryFile() { ::close(descriptor_); }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::vector<unsigned char> contents() const {
        struct stat info{};
        ::fstat(descriptor_, &info);
        std::vector<unsigned char> bytes(static_cast<std::size_t>(info.st_size));
        EXPECT_EQ(::pread(descriptor_, bytes.data(), bytes.size(), 0), std::ssize(bytes));
        return bytes;
    }

private:
    TemporaryFolder folder_;
    std::string path_ = folder_.file("data");
    int descriptor_ = -1;
};

/// A small generator for the shapes below (deterministic, seeds in failure messages).
class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed * 2654435761u + 12345) {}
    std::int64_t operator()(std::int64_t low, std::int64_t high) {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return low + static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(high - low + 1));
    }

private:
    std::uint64_t state_;
};

/// A type with its bytes written out, in the order of its data.
struct Expanded {
    FlatType type;
    std::vector<std::int64_t> bytes;
    [[nodiscard]] std::int64_t at(std::int64_t index) const {
        return index / std::ssize(bytes) * type.extent + bytes[static_cast<std::size_t>(index % std::ssize(bytes))];
    }
};

/// Ascending runs with holes, of lengths up to `longest`.
Expanded random_runs(Dice& dice, std::int64_t longest) {
    FlatTypeBuilder builder;
    Expanded made;
    std::int64_t at = dice(0, 40);
    for (std::int64_t i = dice(1, 12); i > 0; --i) {
        const std::int64_t length = dice(1, longest);
        EXPECT_TRUE(builder.append(Extent{at, length}));
        for (std::int64_t b = 0; b < length; ++b) made.bytes.push_back(at + b);
        at += length + (dice(0, 3) == 0 ? 0 : dice(1, longest));
    }
    made.type = builder.build(0, at + dice(0, 9));
    return made;
}

std::vector<std::byte> random_bytes(Dice& dice, std::int64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(dice(0, 255));
    return bytes;
}

/// Every combination of small buffers and thresholds, so that each path through the code is taken.
std::vector<DirectTuning> tunings() {
    return {{},
            {0, 0, -1, 64},
            {1 << 20, 1 << 20, 1 << 20, 1 << 20},
            {16, 16, 64, 128},
            {64, 8, 200, 256},
            {8, 64, 40, 96}};
}

struct Shape {
    Expanded memory, file;
    std::int64_t bytes = 0, first_byte = 0, displacement = 0;
    std::vector<std::byte> buffer;

    explicit Shape(Dice& dice)
        : memory(random_runs(dice, dice(0, 3) == 0 ? 600 : 30)), file(random_runs(dice, dice(0, 3) == 0 ? 900 : 40)) {
        bytes = dice(0, 3 * std::ssize(memory.bytes));
        first_byte = dice(0, 2 * std::ssize(file.bytes));
        displacement = dice(0, 100);
        buffer = random_bytes(dice, 5 * memory.type.extent + memory.type.bounds.end());
    }
    [[nodiscard]] FileView view() const { return {displacement, 1, std::make_shared<const FlatType>(file.type)}; }
    [[nodiscard]] std::int64_t file_offset(std::int64_t index) const {
        return displacement + file.at(first_byte + index);
    }
};

/// Takes bytes of several parts of the file in one operation, of which an attempt moves a limited number.
class Scattered final : public storage::Backend {
public:
    Scattered(storage::Backend& below, std::int64_t most) : below_(below), most_(most) {}

    [[nodiscard]] bool takes_scattered() const override { return true; }
    std::int64_t attempt_write_scattered(int descriptor, const iovec* pieces, int count, const layout::Extent* parts,
                                         std::int64_t part_count) override {
        std::string bytes;
        for (int i = 0; i < count; ++i) bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
        std::int64_t all = 0, moved = 0;
        for (std::int64_t i = 0; i < part_count; ++i) {
            EXPECT_GT(parts[i].length, 0);
            all += parts[i].length;
            const std::int64_t now = std::min(parts[i].length, most_ - moved);
            below_.write_at(descriptor, bytes.data() + moved, now, parts[i].offset);
            moved += now;
        }
        EXPECT_EQ(all, std::ssize(bytes));
        return moved;
    }
    storage::Opened attempt_open(const char* path, int flags, mode_t mode) override {
        return below_.attempt_open(path, flags, mode);
    }
    int attempt_close(int descriptor) override { return below_.attempt_close(descriptor); }
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        return below_.attempt_write(descriptor, pieces, count, offset);
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        return below_.attempt_read(descriptor, pieces, count, offset);
    }
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        return below_.attempt_flush(descriptor, bytes, offset);
    }

private:
    storage::Backend& below_;
    std::int64_t most_;
};

TEST(Direct, WritesExactlyTheRequestedBytes) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        for (const DirectTuning& tuning : tunings()) {
            Dice dice(seed);
            Shape shape(dice);
            TemporaryFile file;
            storage::PosixBackend posix;
            const std::vector<std::byte> before = random_bytes(dice, dice(0, 500));
            posix.write_at(file.descriptor(), before.data(), std::ssize(before), 0);
            std::vector<unsigned char> expected(before.size());
            std::memcpy(expected.data(), before.data(), before.size());
            for (std::int64_t i = 0; i < shape.bytes; ++i) {
                const auto at = static_cast<std::size_t>(shape.file_offset(i));
                if (at >= expected.size()) expected.resize(at + 1, 0);
                expected[at] = static_cast<unsigned char>(shape.buffer[static_cast<std::size_t>(shape.memory.at(i))]);
            }
            const FileView view = shape.view();
            const Memory memory{shape.buffer.data(), &shape.memory.type, shape.bytes};
            Scattered scattered(posix, dice(1, 5000));
            storage::Backend& backend = seed % 2 == 0 ? static_cast<storage::Backend&>(posix) : scattered;
            const Outcome outcome = write_direct(backend, file.descriptor(), memory, {&view, shape.first_byte}, tuning);
            ASSERT_EQ(outcome.bytes, shape.bytes);
            ASSERT_EQ(outcome.error, 0);
            ASSERT_EQ(file.contents(), expected);
        }
    }
}

TEST(Direct, ReadsWhatIsThereAndCountsToTheEndOfTheFile) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        for (const DirectTuning& tuning : tunings()) {
            Dice dice(seed);
            Shape shape(dice);
            TemporaryFile file;
            storage::PosixBackend posix;
            const std::vector<std::byte> there = random_bytes(dice, dice(0, 6000));
            posix.write_at(file.descriptor(), there.data(), std::ssize(there), 0);
            std::vector<std::byte> expected = shape.buffer;
            std::int64_t expected_bytes = 0;
            for (std::int64_t i = 0; i < shape.bytes; ++i) {
                const auto at = static_cast<std::size_t>(shape.file_offset(i));
                if (at >= there.size()) break;  // ascending: everything behind is beyond the end, too
                expected[static_cast<std::size_t>(shape.memory.at(i))] = there[at];
                ++expected_bytes;
            }
            const FileView view = shape.view();
            const Memory memory{shape.buffer.data(), &shape.memory.type, shape.bytes};
            const Outcome outcome = read_direct(posix, file.descriptor(), memory, {&view, shape.first_byte}, tuning);
            ASSERT_EQ(outcome.bytes, expected_bytes);
            ASSERT_EQ(outcome.error, 0);
            ASSERT_EQ(shape.buffer, expected);
        }
    }
}

FlatType spaced(std::int64_t length, std::int64_t stride) { return FlatTypeBuilder::run(0, length).build(0, stride); }

FileView view_of(FlatType type) { return {0, 1, std::make_shared<const FlatType>(std::move(type))}; }

TEST(View, HasNoPlacesBehindTheLargestOffset) {
    constexpr std::int64_t half = std::int64_t{1} << 62;
    FileView bytes = view_of(spaced(1, 1));
    EXPECT_TRUE(bytes.has_places(INT64_MAX - 10, 10));
    EXPECT_FALSE(bytes.has_places(INT64_MAX - 9, 10));
    bytes.displacement = half;
    EXPECT_TRUE(bytes.has_places(half - 11, 10));
    EXPECT_FALSE(bytes.has_places(half, 10));
    FileView rows = view_of(spaced(1, half / 2));
    EXPECT_TRUE(rows.has_places(0, 4)) << "the last one lies at three quarters";
    EXPECT_FALSE(rows.has_places(0, 5));
    EXPECT_FALSE(rows.has_places(half, 1));
    rows.displacement = half;
    EXPECT_TRUE(rows.has_places(0, 2));
    EXPECT_FALSE(rows.has_places(1, 2));
}

TEST(Direct, UsesAsFewOperationsAsItCan) {
    TemporaryFile file;
    storage::PosixBackend posix;
    std::vector<std::byte> memory(1 << 20, std::byte{7});
    const FlatType bytes = spaced(1, 1), grains = spaced(8, 16), rows = spaced(4096, 8192);
    const auto operations = [&](bool writing, const FlatType& in_memory, FlatType in_file, std::int64_t count) {
        const FileView view = view_of(std::move(in_file));
        const Memory from{memory.data(), &in_memory, count};
        return writing ? write_direct(posix, file.descriptor(), from, {&view, 0}).operations
                       : read_direct(posix, file.descriptor(), from, {&view, 0}).operations;
    };
    EXPECT_EQ(operations(true, bytes, bytes, 1 << 20), 1);
    EXPECT_EQ(operations(false, bytes, bytes, 1 << 20), 1);
    EXPECT_EQ(operations(true, grains, bytes, 1 << 18), 1) << "small pieces of memory are copied together";
    EXPECT_EQ(operations(true, rows, bytes, 1 << 18), 1) << "large ones go into one iovec";
    EXPECT_EQ(operations(true, bytes, rows, 1 << 18), 64) << "a write never touches the holes between pieces";
    EXPECT_EQ(operations(false, bytes, rows, 1 << 18), 64) << "large holes are not read";
    EXPECT_LT(operations(false, bytes, grains, 1 << 18), 300) << "small ones are";
    EXPECT_EQ(operations(false, rows, bytes, 1 << 18), 1);
    Scattered scattered(posix, INT64_MAX);
    const FileView in_rows = view_of(rows);
    const Memory from{memory.data(), &bytes, 1 << 18};
    EXPECT_EQ(write_direct(scattered, file.descriptor(), from, {&in_rows, 0}).operations, 1) << "a log has no holes";
}

TEST(Direct, AnErrorStopsAndTellsWhatWasMoved) {
    for (const int error : {EIO, ENOSPC}) {
        TemporaryFile file;
        storage::PosixBackend posix;
        storage::FaultBackend faulty(posix, {storage::FaultKind::error, 3, error});
        std::vector<std::byte> memory(1000, std::byte{1});
        const FlatType bytes = spaced(1, 1);
        const FileView view = view_of(spaced(100, 200));
        const Outcome outcome = write_direct(faulty, file.descriptor(), {memory.data(), &bytes, 1000}, {&view, 0});
        EXPECT_EQ(outcome.error, error);
        EXPECT_EQ(outcome.bytes, 200);
        EXPECT_EQ(outcome.operations, 3);
    }
}

TEST(Direct, ShortWritesAreCompleted) {
    TemporaryFile file;
    storage::PosixBackend posix;
    storage::FaultBackend faulty(posix, {storage::FaultKind::shorten, 1, 0});
    Dice dice(1);
    std::vector<std::byte> memory = random_bytes(dice, 4000);
    const FlatType scattered = spaced(10, 20), bytes = spaced(1, 1);
    const FileView view = view_of(bytes);
    EXPECT_EQ(write_direct(faulty, file.descriptor(), {memory.data(), &scattered, 2000}, {&view, 0}).bytes, 2000);
    const std::vector<unsigned char> there = file.contents();
    ASSERT_EQ(there.size(), 2000u);
    for (std::size_t i = 0; i < 2000; ++i)
        ASSERT_EQ(there[i], static_cast<unsigned char>(memory[i / 10 * 20 + i % 10]));
}

TEST(Checksum, AgreesWithPublishedValues) {
    // XXH64, seed 0: the specification's empty input, and values of the xxhsum program.
    EXPECT_EQ(checksum("", 0), 0xEF46DB3751D8E999ULL);
    EXPECT_EQ(checksum("a", 1), 0xD24EC4F1A98C6E5BULL);
    EXPECT_EQ(checksum("abc", 3), 0x44BC2CF5AD770999ULL);
    const std::string sentence = "Nobody inspects the spammish repetition";
    EXPECT_EQ(checksum(sentence.data(), sentence.size()), 0xFBCEA83C8A378BF1ULL);
}

TEST(Checksum, EveryBitCounts) {
    std::vector<unsigned char> data(71);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37);
    const std::uint64_t sum = checksum(data.data(), data.size());
    for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
        data[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        EXPECT_NE(checksum(data.data(), data.size()), sum);
        data[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    }
}

class Logged : public testing::Test {
protected:
    /// Writes and records.
    void write(std::uint32_t handle, std::int64_t offset, const std::vector<std::byte>& data) {
        posix_.write_at(file_.descriptor(), data.data(), std::ssize(data), offset);
        record(handle, offset, data);
    }
    void record(std::uint32_t handle, std::int64_t offset, const std::vector<std::byte>& data) {
        std::vector<std::byte> copy = data;
        log_.record(handle, {copy.data(), &bytes_, std::ssize(copy)}, {&view_, offset});
    }
    void prepare(Extent extent) {
        log_.prepare({&view_, extent.offset}, extent.length,
                     [&](std::byte* to, std::int64_t bytes, std::int64_t offset) {
                         return posix_.read_at(file_.descriptor(), to, bytes, offset).bytes;
                     });
    }
    void spoil(std::int64_t offset) {
        unsigned char byte = 0;
        ASSERT_EQ(::pread(file_.descriptor(), &byte, 1, offset), 1);
        byte ^= 1;
        ASSERT_EQ(::pwrite(file_.descriptor(), &byte, 1, offset), 1);
    }
    WriteLog::Report check(std::uint32_t handle) { return log_.check(handle, posix_, file_.descriptor()); }

    TemporaryFile file_;
    storage::PosixBackend posix_;
    FlatType bytes_ = spaced(1, 1);
    FileView view_ = view_of(spaced(1, 1));
    WriteLog log_;
    Dice dice_{5};
};

TEST_F(Logged, WhatWasWrittenIsFoundAgain) {
    write(1, 10, random_bytes(dice_, 300000));
    const WriteLog::Report report = check(1);
    EXPECT_EQ(report.checked_bytes, 300000);
    EXPECT_EQ(report.unchecked_bytes, 0);
    EXPECT_TRUE(report.wrong.empty());
}

TEST_F(Logged, OneBitIsFoundWhereverItIs) {
    write(1, 10, random_bytes(dice_, 200000));
    for (const std::int64_t at : {10, 65535, 65536, 200009}) {
        spoil(at);
        const WriteLog::Report report = check(1);
        ASSERT_EQ(report.wrong.size(), 1u) << at;
        EXPECT_LE(report.wrong[0].offset, at);
        EXPECT_GT(report.wrong[0].end(), at);
        EXPECT_LE(report.wrong[0].length, WriteLog::record_bytes);
        spoil(at);
    }
}

TEST_F(Logged, AMissingTailIsFound) {
    const std::vector<std::byte> data = random_bytes(dice_, 100);
    record(1, 0, data);
    EXPECT_EQ(check(1).wrong, (ExtentList{{0, 100}}));
}

TEST_F(Logged, RewritingIsNoMismatch) {
    write(1, 0, random_bytes(dice_, 1000));
    write(1, 0, random_bytes(dice_, 1000));    // the same place
    write(1, 200, random_bytes(dice_, 100));   // inside
    write(1, 900, random_bytes(dice_, 1000));  // over the end
    write(1, 950, random_bytes(dice_, 10));
    const WriteLog::Report report = check(1);
    EXPECT_TRUE(report.wrong.empty());
    EXPECT_GT(report.unchecked_bytes, 0)
        << "parts of what was partly overwritten cannot be checked, and that must be said";
    EXPECT_EQ(report.checked_bytes, 110);
}

/// The same, with what a write overlaps in part read back before it.
TEST_F(Logged, NothingIsLostToAWriteThatWasPrepared) {
    write(1, 0, random_bytes(dice_, 1000));
    for (const Extent part : {Extent{4, 8}, Extent{200, 100}, Extent{900, 1000}, Extent{950, 10}, Extent{0, 4}}) {
        prepare(part);
        write(1, part.offset, random_bytes(dice_, part.length));
    }
    const WriteLog::Report report = check(1);
    EXPECT_EQ(report.checked_bytes, 1900);
    EXPECT_EQ(report.unchecked_bytes, 0);
    EXPECT_TRUE(report.wrong.empty());
    spoil(500);  // of what is left of the first one
    EXPECT_EQ(check(1).wrong, (ExtentList{{300, 600}}));
}

TEST_F(Logged, WhatIsWrongBeforeItIsOverwrittenCannotBeCompared) {
    write(1, 0, random_bytes(dice_, 1000));
    spoil(700);
    prepare({100, 50});
    write(1, 100, random_bytes(dice_, 50));
    const WriteLog::Report report = check(1);
    EXPECT_TRUE(report.wrong.empty());
    EXPECT_EQ(report.unsure, (ExtentList{{0, 100}, {150, 850}}));
    EXPECT_EQ(report.checked_bytes, 50);
}

TEST_F(Logged, APreparedWriteThatIsNotMadeChangesNothing) {
    write(1, 0, random_bytes(dice_, 70000));
    prepare({65000, 3000});
    EXPECT_EQ(check(1).checked_bytes, 70000);
    EXPECT_TRUE(check(1).wrong.empty());
    EXPECT_EQ(check(1).unchecked_bytes, 0);
}

TEST_F(Logged, FailedWritesAreKnownUntilTheyAreMadeGood) {
    write(1, 0, random_bytes(dice_, 1000));
    prepare({500, 1000});
    log_.record_failed(1, {&view_, 500}, 1000);
    WriteLog::Report report = check(1);
    EXPECT_EQ(report.failed, (ExtentList{{500, 1000}}));
    EXPECT_EQ(report.checked_bytes, 500);
    EXPECT_EQ(log_.hazy(), (ExtentList{{500, 1000}}));
    EXPECT_EQ(log_.known_except({}), (ExtentList{{0, 500}}));
    write(1, 600, random_bytes(dice_, 900));
    report = check(1);
    EXPECT_EQ(report.failed, (ExtentList{{500, 100}}));
    EXPECT_EQ(report.checked_bytes, 1400);
    EXPECT_EQ(log_.left_by(1).unsure, (ExtentList{{0, 500}, {600, 900}}));
    EXPECT_EQ(log_.left_by(1).failed, (ExtentList{{500, 100}}));
}

/// Of random writes, each prepared, every byte is compared, and a spoilt one is found.
TEST_F(Logged, RandomPreparedWritesAreComparedToTheByte) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        log_ = {};
        ASSERT_EQ(::ftruncate(file_.descriptor(), 0), 0);
        Dice dice(seed);
        ExtentList all;
        for (int i = 0; i < 60; ++i) {
            const Extent extent{dice(0, 3000), dice(1, dice(0, 4) == 0 ? 800 : 60)};
            prepare(extent);
            write(1, extent.offset, random_bytes(dice, extent.length));
            all.push_back(extent);
        }
        layout::normalize(all);
        WriteLog::Report report = check(1);
        EXPECT_TRUE(report.wrong.empty());
        EXPECT_EQ(report.unchecked_bytes, 0);
        EXPECT_EQ(report.checked_bytes, layout::total_bytes(all).value());
        const std::int64_t at = all[0].offset + dice(0, all[0].length - 1);
        spoil(at);
        report = check(1);
        ASSERT_EQ(report.wrong.size(), 1u);
        EXPECT_FALSE(layout::intersect(report.wrong[0], {at, 1}).empty());
    }
}

TEST_F(Logged, HandlesAreCheckedEachForItself) {
    write(1, 0, random_bytes(dice_, 500));
    write(2, 0, random_bytes(dice_, 500));
    write(1, 1000, random_bytes(dice_, 500));
    EXPECT_TRUE(check(1).wrong.empty());
    EXPECT_EQ(check(1).checked_bytes, 500);
    spoil(20);
    EXPECT_TRUE(check(1).wrong.empty()) << "those bytes are the second handle's by now";
    EXPECT_EQ(check(2).wrong, (ExtentList{{0, 500}}));
    EXPECT_EQ(log_.written_except({{0, 500}}), (ExtentList{{1000, 500}}));
}

TEST_F(Logged, WhatWasCutOffIsNotExpected) {
    write(1, 0, random_bytes(dice_, 100));
    write(1, 200, random_bytes(dice_, 100));
    write(1, 400, random_bytes(dice_, 100));
    ASSERT_EQ(::ftruncate(file_.descriptor(), 250), 0);
    log_.cut(250);
    const WriteLog::Report report = check(1);
    EXPECT_TRUE(report.wrong.empty());
    EXPECT_EQ(report.checked_bytes, 100);
    EXPECT_EQ(report.unchecked_bytes, 50);
    spoil(20);
    EXPECT_EQ(check(1).wrong, (ExtentList{{0, 100}}));
}

TEST_F(Logged, RandomWritesNeverCryWolf) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        SCOPED_TRACE(seed);
        log_ = {};
        Dice dice(seed);
        std::vector<std::int64_t> written;
        for (int i = 0; i < 60; ++i) {
            const std::int64_t offset = dice(0, 3000), length = dice(1, dice(0, 4) == 0 ? 800 : 60);
            write(static_cast<std::uint32_t>(dice(1, 2)), offset, random_bytes(dice, length));
            for (std::int64_t b = 0; b < length; ++b) written.push_back(offset + b);
        }
        EXPECT_TRUE(check(1).wrong.empty());
        EXPECT_TRUE(check(2).wrong.empty());
        ExtentList all;
        std::sort(written.begin(), written.end());
        for (const std::int64_t byte : written) all.push_back({byte, 1});
        layout::normalize(all);
        EXPECT_EQ(log_.written_except({}), all);
    }
}

std::uint64_t open_device, open_inode;
bool program_has_it(std::uint64_t device, std::uint64_t inode) { return device == open_device && inode == open_inode; }

TEST(Descriptors, AreParkedWhileTheProgramHasTheFileOpen) {
    TemporaryFile file;
    storage::PosixBackend posix;
    Descriptors descriptors(posix, program_has_it);
    const Descriptors::Opened opened = descriptors.open(file.path(), true, true);
    ASSERT_EQ(opened.error, 0);
    open_device = opened.descriptor.identity.device;
    open_inode = opened.descriptor.identity.inode;
    descriptors.release(opened.descriptor);
    EXPECT_EQ(descriptors.parked(), 1u);
    EXPECT_TRUE(Descriptors::is_intact(opened.descriptor));
    const Descriptors::Opened again = descriptors.open(file.path(), true, true);
    EXPECT_EQ(again.descriptor.number, opened.descriptor.number) << "the parked one is taken again";
    EXPECT_EQ(descriptors.parked(), 0u);
    descriptors.release(again.descriptor);
    open_inode = 0;  // the program closes its own
    descriptors.release({});
    EXPECT_EQ(descriptors.parked(), 0u);
    EXPECT_FALSE(Descriptors::is_intact(opened.descriptor));
}

TEST(Descriptors, TheProgramKeepsItsLocks) {
    TemporaryFile file;
    storage::PosixBackend posix;
    Descriptors descriptors(posix, program_has_it);
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(file.descriptor(), F_SETLK, &lock), 0);
    const Descriptors::Opened opened = descriptors.open(file.path(), true, true);
    open_device = opened.descriptor.identity.device;
    open_inode = opened.descriptor.identity.inode;
    descriptors.release(opened.descriptor);
    const auto seen_by_another_process = [&] {
        const pid_t child = ::fork();
        if (child == 0) {
            struct flock probe{};
            probe.l_type = F_WRLCK;
            ::fcntl(file.descriptor(), F_GETLK, &probe);
            ::_exit(probe.l_type == F_UNLCK ? 1 : 0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WEXITSTATUS(status) == 0;
    };
    EXPECT_TRUE(seen_by_another_process());
    ::close(opened.descriptor.number);
    EXPECT_FALSE(seen_by_another_process()) << "closing any descriptor drops the locks: that is why they are parked";
}

TEST(Descriptors, WaitForNoPipe) {
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    storage::PosixBackend posix;
    Descriptors descriptors(posix, nullptr);
    EXPECT_EQ(descriptors.open(pipe, false, true).error, ENXIO) << "nobody reads it";
    const Descriptors::Opened opened = descriptors.open(pipe, true, false);
    EXPECT_EQ(opened.error, 0);
    descriptors.release(opened.descriptor);
}

TEST(Descriptors, AClosedOneIsNotTakenForTheFile) {
    TemporaryFile file, other;
    storage::PosixBackend posix;
    Descriptors descriptors(posix, nullptr);
    const Descriptors::Opened opened = descriptors.open(file.path(), true, false);
    ASSERT_TRUE(Descriptors::is_intact(opened.descriptor));
    ASSERT_EQ(::dup2(other.descriptor(), opened.descriptor.number), opened.descriptor.number);
    EXPECT_FALSE(Descriptors::is_intact(opened.descriptor));
    descriptors.release(opened.descriptor);
    EXPECT_EQ(::fcntl(opened.descriptor.number, F_GETFD) >= 0, true) << "somebody else's by now: not ours to close";
    ::close(opened.descriptor.number);
}

TEST(Descriptors, SayWhyTheyCannotBeOpened) {
    storage::PosixBackend posix;
    Descriptors descriptors(posix, nullptr);
    EXPECT_EQ(descriptors.open("/no/such/file", true, false).error, ENOENT);
}

}  // namespace
}  // namespace ioweir::engine
