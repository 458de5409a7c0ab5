#include "engine/verify/left_out.hpp"

#include <algorithm>
#include <utility>

namespace ioweir::engine {

void LeftOut::add(format::VerifyOutcome outcome, std::string_view reason, std::int64_t bytes, std::int64_t offset) {
    if (bytes <= 0) return;
    const std::lock_guard guard(lock_);
    auto known = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& entry) { return entry.outcome == outcome && entry.reason == reason; });
    if (known == entries_.end()) known = entries_.insert(entries_.end(), {outcome, std::string(reason), 0, 0, offset});
    ++known->calls;
    known->bytes += bytes;
    if (offset >= 0 && (known->offset < 0 || offset < known->offset)) known->offset = offset;
}

void LeftOut::add_without_memory(std::int64_t bytes) {
    const std::lock_guard guard(lock_);
    ++lost_calls_;
    lost_bytes_ += bytes;
}

std::vector<LeftOut::Entry> LeftOut::take() {
    const std::lock_guard guard(lock_);
    if (lost_calls_ > 0)
        entries_.push_back({format::VerifyOutcome::passed_through, "no memory in the call",
                            std::exchange(lost_calls_, 0), std::exchange(lost_bytes_, 0), -1});
    return std::exchange(entries_, {});
}

}  // namespace ioweir::engine
