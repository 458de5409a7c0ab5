#include "container/sent_pieces.hpp"

#include <algorithm>
#include <utility>

namespace ioweir::container {

int SentPieces::send(int descriptor, layout::Extent piece) {
    below_.begin_flush(descriptor, piece.length, piece.offset);
    if (!watches_) return 0;
    sent_.push_back({piece, std::chrono::steady_clock::now()});
    on_their_way_ += piece.length;
    while (on_their_way_ > most_on_their_way()) {
        const Piece oldest = sent_.front();
        const auto started = std::chrono::steady_clock::now();
        if (const int error = below_.flush_at(descriptor, oldest.bytes.length, oldest.bytes.offset); error != 0)
            return error;
        work_.ns += time_.add(oldest.begun, started, std::chrono::steady_clock::now(), oldest.bytes.length);
        on_their_way_ -= oldest.bytes.length;
        sent_.pop_front();
    }
    return 0;
}

std::int64_t SentPieces::most_on_their_way() const {
    constexpr std::int64_t least = 2 << 20, unknown = 4 << 20, most = 64 << 20;
    constexpr double ahead_ns = 200e6;
    if (time_.ns_a_byte() <= 0) return unknown;
    return static_cast<std::int64_t>(
        std::clamp(ahead_ns / time_.ns_a_byte(), static_cast<double>(least), static_cast<double>(most)));
}

void SentPieces::add_write(std::int64_t bytes, std::int64_t ns) {
    work_.bytes += bytes;
    work_.ns += ns;
}

void SentPieces::add_sync(std::int64_t ns) {
    work_.ns += ns;
    sent_.clear();
    on_their_way_ = 0;
}

void SentPieces::leave() {
    sent_.clear();
    on_their_way_ = 0;
    time_ = {};
    work_ = {};
}

Container::Work SentPieces::take() { return std::exchange(work_, {}); }

}  // namespace ioweir::container
