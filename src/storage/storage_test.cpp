// Tests of the backends: real files, and a scripted backend for what a disk does not do on request.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/testing.hpp"
#include "storage/fault.hpp"
#include "storage/posix.hpp"

namespace ioweir::storage {
namespace {

class TemporaryFile {
public:
    TemporaryFile() { std::ofstream{path_}; }
    [[nodiscard]] const char* path() const { return path_.c_str(); }
    [[nodiscard]] std::string contents() const {
        std::string text;
        const int descriptor = ::open(path_.c_str(), O_RDONLY);
        char buffer[4096];
        for (ssize_t got; (got = ::read(descriptor, buffer, sizeof buffer)) > 0;)
            text.append(buffer, static_cast<std::size_t>(got));
        ::close(descriptor);
        return text;
    }

private:
    TemporaryFolder folder_;
    std::string path_ = folder_.file("data");
};

/// Plays back a list of results of attempts and records what was asked of it.
class ScriptedBackend final : public Backend {
public:
    int attempt_flush(int, std::int64_t bytes, std::int64_t offset) override {
        const iovec piece{nullptr, static_cast<std::size_t>(bytes)};
        const std::int64_t result = next(&piece, 1, offset);
        return result < 0 ? static_cast<int>(result) : 0;
    }
    struct Asked {
        std::int64_t bytes;
        std::int64_t offset;
        int pieces;
    };
    std::deque<std::int64_t> results;
    std::vector<Asked> asked;

    Opened attempt_open(const char*, int, mode_t) override { return {}; }
    int attempt_close(int) override { return EINTR; }
    std::int64_t attempt_write(int, const iovec* pieces, int count, std::int64_t offset) override {
        return next(pieces, count, offset);
    }
    std::int64_t attempt_read(int, const iovec* pieces, int count, std::int64_t offset) override {
        return next(pieces, count, offset);
    }

private:
    std::int64_t next(const iovec* pieces, int count, std::int64_t offset) {
        std::int64_t bytes = 0;
        for (int i = 0; i < count; ++i) bytes += static_cast<std::int64_t>(pieces[i].iov_len);
        asked.push_back({bytes, offset, count});
        if (results.empty()) return bytes;
        const std::int64_t result = results.front();
        results.pop_front();
        return result;
    }
};

std::string pattern(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
    return text;
}

TEST(PosixBackend, GrowsAFileAndNeverCutsOne) {
    TemporaryFile file;
    PosixBackend backend;
    const Opened opened = backend.open(file.path(), O_RDWR);
    if (!backend.can_grow(opened.descriptor)) GTEST_SKIP() << "no fallocate on this file system";
    EXPECT_EQ(file.contents(), "") << "asking changes nothing";
    EXPECT_EQ(backend.grow(opened.descriptor, 10), 0);
    EXPECT_EQ(file.contents(), std::string(10, '\0'));
    EXPECT_EQ(backend.write_at(opened.descriptor, "abcdefghijklmno", 15, 0).bytes, 15);
    EXPECT_EQ(backend.grow(opened.descriptor, 10), 0);
    EXPECT_EQ(backend.grow(opened.descriptor, 15), 0);
    EXPECT_EQ(file.contents(), "abcdefghijklmno");
    FaultBackend full(backend, {FaultKind::error, 1, ENOSPC});
    EXPECT_EQ(full.grow(opened.descriptor, 20), 0) << "as a hole";
    EXPECT_EQ(full.struck(), 1);
    EXPECT_EQ(file.contents(), "abcdefghijklmno" + std::string(5, '\0'));
    FaultBackend broken(backend, {FaultKind::error, 1, EIO});
    EXPECT_EQ(broken.grow(opened.descriptor, 30), EIO);
    EXPECT_EQ(file.contents().size(), 20u);
    EXPECT_EQ(backend.close(opened.descriptor), 0);
    EXPECT_FALSE(backend.can_grow(opened.descriptor));
}

TEST(PosixBackend, WritesAndReadsAtOffsets) {
    TemporaryFile file;
    PosixBackend backend;
    const Opened opened = backend.open(file.path(), O_RDWR);
    ASSERT_EQ(opened.error, 0);
    EXPECT_NE(::fcntl(opened.descriptor, F_GETFD) & FD_CLOEXEC, 0);
    const std::string data = pattern(1000);
    EXPECT_EQ(backend.write_at(opened.descriptor, data.data(), 1000, 5).bytes, 1000);
    EXPECT_EQ(file.contents(), std::string(5, '\0') + data);

    std::string back(1000, '?');
    const Transfer whole = backend.read_at(opened.descriptor, back.data(), 1000, 5);
    EXPECT_EQ(whole.bytes, 1000);
    EXPECT_EQ(back, data);
    const Transfer at_end = backend.read_at(opened.descriptor, back.data(), 1000, 905);
    EXPECT_EQ(at_end.bytes, 100);
    EXPECT_EQ(at_end.error, 0);
    EXPECT_EQ(backend.read_at(opened.descriptor, back.data(), 10, 5000).bytes, 0);
    EXPECT_EQ(backend.close(opened.descriptor), 0);
    EXPECT_EQ(backend.close(opened.descriptor), EBADF);
}

TEST(PosixBackend, ReportsErrors) {
    PosixBackend backend;
    const Opened opened = backend.open("/no/such/directory/file", O_RDONLY);
    EXPECT_EQ(opened.descriptor, -1);
    EXPECT_EQ(opened.error, ENOENT);
    char byte = 0;
    EXPECT_EQ(backend.write_at(-1, &byte, 1, 0).error, EBADF);
    EXPECT_EQ(backend.read_at(-1, &byte, 1, 0).error, EBADF);
}

TEST(PosixBackend, MovesMorePiecesThanTheKernelTakesAtOnce) {
    TemporaryFile file;
    PosixBackend backend;
    const Opened opened = backend.open(file.path(), O_RDWR);
    const std::size_t count = 2 * IOV_MAX + 77;
    const std::string data = pattern(3 * count);
    std::vector<iovec> pieces;
    std::string expected;
    for (std::size_t i = 0; i < count; ++i) {  // pieces of 0..2 bytes, last first
        const std::size_t at = 3 * (count - 1 - i);
        pieces.push_back({const_cast<char*>(data.data()) + at, i % 3});
        expected += data.substr(at, i % 3);
    }
    const Transfer written = backend.write_pieces_at(opened.descriptor, pieces.data(), std::ssize(pieces), 0);
    EXPECT_EQ(written.error, 0);
    EXPECT_EQ(written.bytes, std::ssize(expected));
    EXPECT_EQ(file.contents(), expected);

    std::string back(expected.size(), '?');
    pieces.clear();
    for (std::size_t i = 0; i < back.size(); ++i) pieces.push_back({&back[i], 1});
    EXPECT_EQ(backend.read_pieces_at(opened.descriptor, pieces.data(), std::ssize(pieces), 0).bytes,
              std::ssize(expected));
    EXPECT_EQ(back, expected);
    backend.close(opened.descriptor);
}

TEST(Completion, GoesOnAfterInterruptsAndShortTransfers) {
    ScriptedBackend backend;
    backend.results = {-EINTR, 3, -EINTR, 4};
    char data[10];
    const Transfer done = backend.write_at(7, data, 10, 100);
    EXPECT_EQ(done.bytes, 10);
    EXPECT_EQ(done.error, 0);
    ASSERT_EQ(backend.asked.size(), 5u);
    EXPECT_EQ(backend.asked[1].offset, 100);
    EXPECT_EQ(backend.asked[2].offset, 103);
    EXPECT_EQ(backend.asked[4].offset, 107);
    EXPECT_EQ(backend.asked[4].bytes, 3);
}

TEST(Completion, KeepsWhatWasMovedBeforeAnError) {
    ScriptedBackend backend;
    backend.results = {6, -ENOSPC};
    char data[10];
    const Transfer done = backend.write_at(7, data, 10, 0);
    EXPECT_EQ(done.bytes, 6);
    EXPECT_EQ(done.error, ENOSPC);
}

TEST(Completion, AWriteThatNeverMovesAnythingIsAnErrorAndNotALoop) {
    ScriptedBackend backend;
    backend.results = {0};
    char data[10];
    EXPECT_EQ(backend.write_at(7, data, 10, 0).error, EIO);
}

TEST(Completion, NoBytesNeedNoAttempt) {
    ScriptedBackend backend;
    char data[1];
    iovec empty[2] = {{data, 0}, {data, 0}};
    EXPECT_EQ(backend.write_at(7, data, 0, 0).bytes, 0);
    EXPECT_EQ(backend.read_pieces_at(7, empty, 2, 0).error, 0);
    EXPECT_TRUE(backend.asked.empty());
}

TEST(Completion, AnInterruptedCloseIsDone) {
    ScriptedBackend backend;
    EXPECT_EQ(backend.close(3), 0);
}

TEST(Fault, ParsesWhatTheTestVariableSays) {
    EXPECT_EQ(parse_fault("flip:3").value(), (Fault{FaultKind::flip_bit, 3, 0}));
    EXPECT_EQ(parse_fault("drop:1").value(), (Fault{FaultKind::drop, 1, 0}));
    EXPECT_EQ(parse_fault("eio:12").value(), (Fault{FaultKind::error, 12, EIO}));
    EXPECT_EQ(parse_fault("enospc:2").value(), (Fault{FaultKind::error, 2, ENOSPC}));
    EXPECT_EQ(parse_fault("short:1").value(), (Fault{FaultKind::shorten, 1, 0}));
    EXPECT_EQ(parse_fault("eintr:1").value(), (Fault{FaultKind::error, 1, EINTR}));
    EXPECT_EQ(parse_fault("edquot:4").value(), (Fault{FaultKind::error, 4, EDQUOT}));
    EXPECT_EQ(parse_fault("read-eio:2").value(), (Fault{FaultKind::read_error, 2, EIO}));
    EXPECT_EQ(parse_fault("read-short:1").value(), (Fault{FaultKind::shorten_read, 1, 0}));
    EXPECT_EQ(parse_fault("flush-eio:5").value(), (Fault{FaultKind::flush_error, 5, EIO}));
    EXPECT_EQ(parse_fault("sync-eio:2").value(), (Fault{FaultKind::sync_error, 2, EIO}));
    EXPECT_EQ(parse_fault("swap:2").value(), (Fault{FaultKind::swap, 2, 0}));
    EXPECT_NE(parse_fault("melt:1").error().message().find("read-short:N"), std::string::npos);
    for (const char* bad : {"", "flip", "flip:", "flip:0", "flip:-1", "flip:1x", "melt:1", ":1"}) {
        EXPECT_FALSE(parse_fault(bad).ok()) << bad;
    }
}

class FaultInjection : public testing::Test {
protected:
    /// The file after three writes of 100 bytes each through a backend with the fault.
    std::string after(Fault fault) {
        TemporaryFile file;
        FaultBackend backend(posix_, fault);
        const Opened opened = backend.open(file.path(), O_RDWR);
        results_.clear();
        for (int i = 0; i < 3; ++i) {
            iovec pieces[2] = {{data_.data() + 100 * i, 40}, {data_.data() + 100 * i + 40, 60}};
            results_.push_back(backend.write_pieces_at(opened.descriptor, pieces, 2, 100 * i));
        }
        backend.close(opened.descriptor);
        struck_ = backend.struck();
        return file.contents();
    }
    PosixBackend posix_;
    std::string data_ = pattern(300);
    std::vector<Transfer> results_;
    std::int64_t struck_ = 0;
};

TEST_F(FaultInjection, NoneChangesNothing) {
    EXPECT_EQ(after({}), data_);
    EXPECT_EQ(struck_, 0);
}

TEST_F(FaultInjection, FlipChangesExactlyOneBitOfTheChosenWrite) {
    const std::string text = after({FaultKind::flip_bit, 2, 0});
    ASSERT_EQ(text.size(), data_.size());
    int different = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == data_[i]) continue;
        ++different;
        EXPECT_GE(i, 100u);
        EXPECT_LT(i, 200u);
        EXPECT_EQ(__builtin_popcount(static_cast<unsigned char>(text[i] ^ data_[i])), 1);
    }
    EXPECT_EQ(different, 1);
    EXPECT_EQ(results_[1].bytes, 100);
    EXPECT_EQ(struck_, 1);
}

TEST_F(FaultInjection, DropLosesTheChosenWriteAndSaysNothing) {
    const std::string text = after({FaultKind::drop, 2, 0});
    EXPECT_EQ(text, data_.substr(0, 100) + std::string(100, '\0') + data_.substr(200));
    EXPECT_EQ(results_[1].bytes, 100);
    EXPECT_EQ(results_[1].error, 0);
}

TEST_F(FaultInjection, SwapExchangesTwoWritesOfEqualLength) {
    const std::string text = after({FaultKind::swap, 1, 0});
    EXPECT_EQ(text, data_.substr(100, 100) + data_.substr(0, 100) + data_.substr(200));
    EXPECT_EQ(struck_, 1);
    for (const Transfer& result : results_) EXPECT_EQ(result.bytes, 100);
    EXPECT_EQ(after({FaultKind::swap, 3, 0}), data_.substr(0, 200)) << "nothing comes after it";
}

TEST_F(FaultInjection, FlushesAndReadsFailByThemselves) {
    TemporaryFile file;
    const auto backend_with = [&](Fault fault) { return std::make_unique<FaultBackend>(posix_, fault); };
    const int descriptor = posix_.open(file.path(), O_RDWR).descriptor;
    posix_.write_at(descriptor, data_.data(), 300, 0);
    auto backend = backend_with({FaultKind::flush_error, 2, ENOSPC});
    EXPECT_EQ(backend->flush_at(descriptor, 300, 0), 0);
    EXPECT_EQ(backend->flush_at(descriptor, 300, 0), ENOSPC);
    EXPECT_EQ(backend->flush_at(descriptor, 300, 0), 0);
    backend = backend_with({FaultKind::flush_error, 1, EINTR});
    EXPECT_EQ(backend->flush_at(descriptor, 300, 0), 0) << "is repeated";
    EXPECT_EQ(backend->struck(), 1);
    std::string back(300, 'x');
    backend = backend_with({FaultKind::shorten_read, 1, 0});
    EXPECT_EQ(backend->read_at(descriptor, back.data(), 300, 0).bytes, 300) << "is completed";
    EXPECT_EQ(back, data_);
    EXPECT_GT(backend->struck(), 3);
    iovec pieces[2] = {{back.data(), 70}, {back.data() + 70, 130}};
    EXPECT_EQ(backend->read_pieces_at(descriptor, pieces, 2, 100).bytes, 200);
    EXPECT_EQ(back.substr(0, 200), data_.substr(100));
    posix_.close(descriptor);
}

TEST_F(FaultInjection, ErrorsAreReported) {
    after({FaultKind::error, 3, ENOSPC});
    EXPECT_EQ(results_[1].error, 0);
    EXPECT_EQ(results_[2].error, ENOSPC);
    EXPECT_EQ(results_[2].bytes, 0);
}

TEST_F(FaultInjection, ShortWritesAreCompleted) {
    EXPECT_EQ(after({FaultKind::shorten, 1, 0}), data_);
    EXPECT_GT(struck_, 3);
    EXPECT_EQ(results_[0].bytes, 100);
}

}  // namespace
}  // namespace ioweir::storage
