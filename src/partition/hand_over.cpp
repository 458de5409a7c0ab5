#include "partition/hand_over.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "planner/delegates.hpp"

namespace ioweir::partition {
namespace {

constexpr std::int64_t header_bytes = sizeof(Wire);
constexpr std::int64_t least_room = 1024;

}  // namespace

int Patience::next_us() {
    constexpr int most_us = 1000;
    return std::exchange(us_, std::min(most_us, us_ * 2 + 1));
}

void Patience::wait() {
    const int us = next_us();
    if (us == 0) {
        ::sched_yield();
    } else {
        const timespec time{0, us * 1000};
        ::nanosleep(&time, nullptr);
    }
}

HandOverBySending::HandOverBySending(const Channels& channels, int delegate, std::int64_t room)
    : channels_(channels),
      delegate_(delegate),
      room_(std::max(room, least_room)),
      memory_(new char[static_cast<std::size_t>(room_)]) {
    // Its pages are made now rather than while the program waits.
    std::memset(memory_.get(), 0, static_cast<std::size_t>(room_));
}

HandOverBySending::~HandOverBySending() { drain(); }

void HandOverBySending::drain() {
    while (!sent_.empty()) collect(true);
}

void HandOverBySending::collect(bool waits) {
    Patience patience;
    while (!sent_.empty()) {
        int done = 0;
        MPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE);
        if (done != 0) {
            tail_ = sent_.front().end;
            sent_.pop_front();
            waits = false;
            continue;
        }
        if (!waits) break;
        patience.wait();
    }
    if (sent_.empty()) head_ = tail_ = 0;
}

char* HandOverBySending::take(std::int64_t bytes) {
    for (;;) {
        // One byte stays free, so that head_ == tail_ means that nothing is on its way.
        if (head_ >= tail_) {
            if (head_ + bytes <= room_) break;
            if (bytes < tail_) {
                head_ = 0;
                break;
            }
        } else if (head_ + bytes < tail_) {
            break;
        }
        collect(true);
    }
    return memory_.get() + std::exchange(head_, head_ + bytes);
}

void HandOverBySending::post(char* from, const Wire& wire) {
    std::memcpy(from, &wire, sizeof wire);
    // Synchronous: it ends when the delegate takes it. Else small messages would pile up in the delegate's MPI library, beyond any bound.
    Sent sent;
    MPI_Issend(from, static_cast<int>(header_bytes + wire.bytes), MPI_BYTE, delegate_, static_cast<int>(wire.kind),
               channels_.blocks, &sent.request);
    sent.end = from - memory_.get() + header_bytes + wire.bytes;
    sent_.push_back(sent);
}

std::int64_t HandOverBySending::most_bytes() const { return room_ - header_bytes - 1; }

std::int64_t HandOverBySending::longest_message(std::int64_t room) {
    return std::min(std::max(room, least_room), planner::most_handed_bytes + header_bytes);
}

void HandOverBySending::send(Wire wire, const void* data, std::int64_t bytes) {
    collect(false);
    wire.bytes = bytes;
    char* const place = take(header_bytes + bytes);
    if (bytes > 0) std::memcpy(place + header_bytes, data, static_cast<std::size_t>(bytes));
    post(place, wire);
}

void HandOverBySending::send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) {
    collect(false);
    const std::int64_t all = std::ssize(header) + bytes;
    const std::int64_t most = planner::handed_bytes(room_, header_bytes);
    wire.number = all;
    for (std::int64_t done = 0; done < all;) {
        wire.bytes = std::min(all - done, most);
        char* const place = take(header_bytes + wire.bytes);
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

void HandOverBySending::take_result() {
    MPI_Status status;
    MPI_Probe(delegate_, static_cast<int>(Message::result), channels_.results, &status);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string message(static_cast<std::size_t>(bytes), '\0');
    MPI_Recv(message.data(), bytes, MPI_BYTE, delegate_, static_cast<int>(Message::result), channels_.results,
             MPI_STATUS_IGNORE);
    Wire wire;
    std::memcpy(&wire, message.data(), sizeof wire);
    ++told_;
    if (wire.code != 0 && !failure_) failure_ = Failure{wire.code, parse_message(message.substr(sizeof wire))};
}

std::optional<Failure> HandOverBySending::results(std::int64_t sets) {
    Patience patience;
    for (;;) {
        int there = 0;
        MPI_Iprobe(delegate_, static_cast<int>(Message::result), channels_.results, &there, MPI_STATUS_IGNORE);
        if (there != 0) {
            take_result();
            patience.reset();
            continue;
        }
        if (told_ >= sets) break;
        collect(false);
        patience.wait();
    }
    return std::exchange(failure_, std::nullopt);
}

}  // namespace ioweir::partition
