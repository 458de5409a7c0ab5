// A backend that wraps another and makes chosen operations go wrong. It exists to show that checks can fail: a test of
// written bytes proves something only if it fails on a flipped bit and on a lost write.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/backend.hpp"

namespace ioweir::storage {

enum class FaultKind {
    none,        ///< pass everything on
    flip_bit,    ///< one bit of the Nth write's middle byte
    drop,        ///< the Nth write is reported as done and not done
    swap,        ///< the Nth write and the next one of as many bytes get each other's; without such a one it is dropped
    error,       ///< the Nth write fails with `error`, later ones work
    read_error,  ///< the Nth read does, counted by themselves
    flush_error,   ///< the Nth flush does
    sync_error,    ///< the Nth sync does
    shorten,       ///< from the Nth on, a write moves half of its bytes (at least one): a caller must go on by itself
    shorten_read,  ///< from the Nth on, a read does
};

struct Fault {
    FaultKind kind = FaultKind::none;
    std::int64_t nth =
        1;  ///< attempts at writing (or reading, flushing, syncing) are counted from 1 over all descriptors of the backend
    int error = 0;  ///< errno value of the kinds that are errors

    friend bool operator==(const Fault&, const Fault&) = default;
};

/// "flip:N", "drop:N", "eio:N", "enospc:N", "edquot:N", "eintr:N", "short:N", "swap:N", "read-eio:N", "read-eintr:N", "read-short:N",
/// "flush-eio:N", "sync-eio:N" and so on (the test variable IOWEIR_TEST_STORAGE).
Result<Fault> parse_fault(std::string_view text);

class FaultBackend final : public Backend {
public:
    /// `below` must outlive this object.
    FaultBackend(Backend& below, Fault fault) : below_(below), fault_(fault) {}

    /// How often the fault has struck.
    [[nodiscard]] std::int64_t struck() const { return struck_.load(); }

    [[nodiscard]] Opened attempt_open(const char* path, int flags, mode_t mode) override;
    void note_opened(int descriptor, const char* path) override { below_.note_opened(descriptor, path); }
    int attempt_close(int descriptor) override;
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;
    int attempt_sync(int descriptor) override;
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        below_.begin_flush(descriptor, bytes, offset);
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    /// Growing a file counts as a write that can fail.
    int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) override;

private:
    std::int64_t strike(int descriptor, const iovec* pieces, int count, std::int64_t offset);
    std::int64_t attempt_other_of_swap(int descriptor, const iovec* pieces, int count, std::int64_t offset);

    Backend& below_;
    Fault fault_;
    std::mutex swap_lock_;
    std::vector<std::byte> held_;  ///< swap: the first write's bytes, until the second one comes
    std::int64_t held_offset_ = 0;
    std::atomic<std::int64_t> flushes_{0};
    std::atomic<std::int64_t> syncs_{0};
    std::atomic<std::int64_t> writes_{0};
    std::atomic<std::int64_t> reads_{0};
    std::atomic<std::int64_t> struck_{0};
};

}  // namespace ioweir::storage
