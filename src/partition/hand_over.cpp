#include "partition/hand_over.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "planner/delegates.hpp"

namespace ioweir::partition {
namespace {

constexpr std::int64_t header_bytes = sizeof(Wire);
constexpr std::int64_t least_room = 1024;

}  // namespace

HandOverBySending::HandOverBySending(const Channels& channels, int delegate, std::int64_t room)
    : channels_(channels),
      delegate_(delegate),
      room_(std::max(room, least_room)),
      ring_(channels.blocks, delegate, room_) {}

void HandOverBySending::post(char* from, const Wire& wire) {
    std::memcpy(from, &wire, sizeof wire);
    ring_.post(from, header_bytes + wire.bytes, static_cast<int>(wire.kind));
}

std::int64_t HandOverBySending::most_bytes() const { return ring_.most_bytes() - header_bytes; }

std::int64_t HandOverBySending::longest_message(std::int64_t room) {
    return std::min(std::max(room, least_room), planner::most_handed_bytes + header_bytes);
}

void HandOverBySending::send(Wire wire, const void* data, std::int64_t bytes) {
    ring_.collect(false);
    wire.bytes = bytes;
    char* const place = ring_.take(header_bytes + bytes);
    if (bytes > 0) std::memcpy(place + header_bytes, data, static_cast<std::size_t>(bytes));
    post(place, wire);
}

void HandOverBySending::send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) {
    ring_.collect(false);
    const std::int64_t all = std::ssize(header) + bytes;
    const std::int64_t most = planner::handed_bytes(room_, header_bytes);
    wire.number = all;
    for (std::int64_t done = 0; done < all;) {
        wire.bytes = std::min(all - done, most);
        char* const place = ring_.take(header_bytes + wire.bytes);
        char* to = place + header_bytes;
        const std::int64_t of_header = std::clamp<std::int64_t>(std::ssize(header) - done, 0, wire.bytes);
        if (of_header > 0) to = std::copy_n(header.data() + done, of_header, to);
        const std::int64_t of_items = wire.bytes - of_header;
        if (of_items > 0)
            std::memcpy(to, static_cast<const char*>(items) + (done + of_header - std::ssize(header)),
                        static_cast<std::size_t>(of_items));
        if (done > 0) {
            wire.kind = Message::more;
            wire.number = done;
        } else if (wire.bytes < all) {
            wire.kind = Message::first;
        }
        post(place, wire);
        done += wire.bytes;
    }
}

void HandOverBySending::take_result(const exchange::Arrival& arrival) {
    std::string message(static_cast<std::size_t>(arrival.bytes), '\0');
    exchange::take_arrival(channels_.results, delegate_, arrival, message.data());
    Wire wire;
    std::memcpy(&wire, message.data(), sizeof wire);
    ++told_;
    if (wire.code != 0 && !failure_) failure_ = Failure{wire.code, parse_message(message.substr(sizeof wire))};
}

std::optional<Failure> HandOverBySending::results(std::int64_t sets) {
    exchange::Patience patience;
    for (;;) {
        if (const auto arrival = exchange::arrived(channels_.results, delegate_)) {
            take_result(*arrival);
            patience.reset();
            continue;
        }
        if (told_ >= sets) break;
        ring_.collect(false);
        patience.wait();
    }
    return std::exchange(failure_, std::nullopt);
}

}  // namespace ioweir::partition
