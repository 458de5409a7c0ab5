#include "storage/paced.hpp"

namespace ioweir::storage {

Opened PacedBackend::attempt_open(const char* path, int flags, mode_t mode) {
    const Opened opened = below_.attempt_open(path, flags, mode);
    if (opened.error == 0) pace_by_path(opened.descriptor, path);
    return opened;
}

void PacedBackend::note_opened(int descriptor, const char* path) {
    below_.note_opened(descriptor, path);
    pace_by_path(descriptor, path);
}

void PacedBackend::pace_by_path(int descriptor, const char* path) {
    if (descriptor >= most_descriptors) return;
    const auto placement = targets_->placement_of(path);
    const std::int32_t target = placement ? placement.value().targets().front() + 1 : 0;
    target_of_[static_cast<std::size_t>(descriptor)] = static_cast<std::int16_t>(target);
}

int PacedBackend::attempt_close(int descriptor) {
    // Before it is closed: another thread may be given the number at once.
    if (descriptor >= 0 && descriptor < most_descriptors) target_of_[static_cast<std::size_t>(descriptor)] = 0;
    return below_.attempt_close(descriptor);
}

std::int64_t PacedBackend::pace(int descriptor, std::int64_t moved) {
    if (moved <= 0 || descriptor < 0 || descriptor >= most_descriptors) return moved;
    const std::int16_t target = target_of_[static_cast<std::size_t>(descriptor)].load(std::memory_order_relaxed);
    if (target > 0) targets_->pace(target - 1, moved, clock_);
    return moved;
}

std::int64_t PacedBackend::attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    return pace(descriptor, below_.attempt_write(descriptor, pieces, count, offset));
}

std::int64_t PacedBackend::attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    return pace(descriptor, below_.attempt_read(descriptor, pieces, count, offset));
}

}  // namespace ioweir::storage
