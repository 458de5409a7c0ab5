// A backend that keeps the rates of a manifest's token buckets (targets.hpp): what is read or written in a target's directory waits until
// the target would have moved it. Other files are as fast as they are. For labs without devices; whatever is measured on it has to be
// called token bucket.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "storage/backend.hpp"
#include "storage/targets.hpp"

namespace ioweir::storage {

class PacedBackend final : public Backend {
public:
    /// `below` and `clock` must outlive it.
    PacedBackend(Backend& below, std::unique_ptr<Targets> targets, ThrottleClock& clock)
        : below_(below), targets_(std::move(targets)), clock_(clock) {}

    [[nodiscard]] Opened attempt_open(const char* path, int flags, mode_t mode) override;
    void note_opened(int descriptor, const char* path) override;
    int attempt_close(int descriptor) override;
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        return below_.attempt_flush(descriptor, bytes, offset);
    }
    int attempt_sync(int descriptor) override { return below_.attempt_sync(descriptor); }
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override {
        below_.begin_flush(descriptor, bytes, offset);
    }
    int attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) override {
        return below_.attempt_allocate(descriptor, mode, offset, bytes);
    }
    std::int64_t attempt_read_attribute(int descriptor, const char* name, void* value, std::size_t room) override {
        return below_.attempt_read_attribute(descriptor, name, value, room);
    }
    int attempt_write_attribute(int descriptor, const char* name, const void* value, std::size_t bytes) override {
        return below_.attempt_write_attribute(descriptor, name, value, bytes);
    }

private:
    /// Descriptors above this are not paced. No job has so many files open.
    static constexpr int most_descriptors = 65536;
    void pace_by_path(int descriptor, const char* path);
    std::int64_t pace(int descriptor, std::int64_t moved);

    Backend& below_;
    const std::unique_ptr<Targets> targets_;
    ThrottleClock& clock_;
    std::array<std::atomic<std::int16_t>, most_descriptors> target_of_{};  ///< one more than the target; 0: none
};

}  // namespace ioweir::storage
