#include "engine/behind/behind_ring.hpp"

#include <algorithm>
#include <cstring>

namespace ioweir::engine {
namespace {

/// Larger records would keep the consumer waiting for the first one, smaller ones cost it operations.
constexpr std::uint64_t longest_record = 4 << 20;
constexpr std::size_t most_runs_of_record = 4096;
constexpr std::uint64_t used_again = 256 << 10;
/// What is put in as one piece.
constexpr std::int64_t most_of_piece = 64 << 10;

constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

BehindRing::BehindRing(BehindWords& words, std::byte* data, std::int64_t capacity)
    : words_(words), data_(data), capacity_(static_cast<std::uint64_t>(capacity)) {
    runs_.reserve(most_runs_of_record);
}

/// A quarter of the ring at most: with the ring's end to be filled up it is less than a half, which is there when all is consumed.
std::uint64_t BehindRing::room_wanted(const Parcel& parcel) const {
    const std::uint64_t most = std::min(longest_record, capacity_ / 4 / 8 * 8);
    return std::min(most, sizeof(Header) + rounded(static_cast<std::uint64_t>(parcel.left_)) + 8 * sizeof(Run));
}

bool BehindRing::has_room(const Parcel& parcel) const {
    const std::uint64_t head = known_.head;
    const std::uint64_t to_end = capacity_ - known_.place;
    const std::uint64_t wanted = room_wanted(parcel);
    const std::uint64_t free = capacity_ - (head - words_.tail.load(std::memory_order_acquire));
    return free >= (to_end < wanted ? to_end + wanted : wanted);
}

/// False when there is no room for another run.
bool BehindRing::add_piece(layout::Extent piece, std::size_t most_runs) {
    if (!runs_.empty()) {
        Run& last = runs_.back();
        const std::int64_t begin = last.offset + (last.count - 1) * last.stride;
        if (last.count == 1 && begin + last.length == piece.offset) {
            last.length += piece.length;
            return true;
        }
        if (last.length == piece.length && begin + last.length != piece.offset &&
            (last.count == 1 || piece.offset - begin == last.stride)) {
            last.stride = piece.offset - begin;
            ++last.count;
            return true;
        }
    }
    if (runs_.size() == most_runs) return false;
    runs_.push_back({piece.offset, piece.length, 0, 1});
    return true;
}

/// Where all is written, the ring begins again, so that memory is used that has its pages, and lies in caches.
bool BehindRing::begins_again(std::uint64_t wanted) {
    if (known_.place < std::max(wanted, used_again)) return false;
    known_.tail = words_.tail.load(std::memory_order_acquire);
    return known_.tail == known_.head;
}

/// What comes next lies at the ring's begin, `to_end` bytes behind the head.
void BehindRing::fill_up(std::uint64_t to_end) {
    std::byte* const start = data_ + known_.place;
    // Always a multiple of 8: there is room for this much of a header.
    std::memcpy(start, &to_end, sizeof to_end);
    if (to_end >= 2 * sizeof to_end) std::memset(start + sizeof to_end, 0, sizeof to_end);
}

void BehindRing::keep_head(std::uint64_t head, std::uint64_t place) {
    known_.head = head;
    known_.place = place == capacity_ ? 0 : place;
    words_.head.store(head, std::memory_order_release);
}

bool BehindRing::put_piece(const void* data, std::int64_t bytes, std::int64_t offset, std::uint64_t call,
                           bool consumer_rests) {
    if (bytes > most_of_piece) return false;
    const std::uint64_t data_bytes = rounded(static_cast<std::uint64_t>(bytes));
    const std::uint64_t wanted = sizeof(Header) + data_bytes + sizeof(Run);
    const std::uint64_t to_end = capacity_ - known_.place;
    const bool from_begin = to_end < wanted || (consumer_rests && begins_again(wanted));
    const std::uint64_t skipped = from_begin ? to_end : 0;
    if (known_.head + skipped + wanted - known_.tail > capacity_) [[unlikely]] {
        known_.tail = words_.tail.load(std::memory_order_acquire);
        if (known_.head + skipped + wanted - known_.tail > capacity_) return false;
    }
    if (from_begin) fill_up(to_end);
    const std::uint64_t place = from_begin ? 0 : known_.place;
    std::byte* const start = data_ + place;
    const Header header{wanted, call, bytes, 1};
    const Run run{offset, bytes, 0, 1};
    std::memcpy(start, &header, sizeof header);
    std::memcpy(start + sizeof header, data, static_cast<std::size_t>(bytes));
    std::memcpy(start + sizeof header + data_bytes, &run, sizeof run);
    keep_head(known_.head + skipped + wanted, place + wanted);
    return true;
}

bool BehindRing::waits_for(std::int64_t bytes) {
    const auto waiting = [&] { return static_cast<std::int64_t>(known_.head - known_.tail) >= bytes; };
    if (!waiting()) return false;
    known_.tail = words_.tail.load(std::memory_order_acquire);
    return waiting();
}

void BehindRing::put(Parcel& parcel) {
    std::uint64_t head = known_.head;
    const std::uint64_t wanted = room_wanted(parcel);
    const std::uint64_t to_end = capacity_ - known_.place;
    std::uint64_t place = known_.place;
    if (to_end < wanted || begins_again(wanted)) {
        fill_up(to_end);
        head += to_end;
        place = 0;
    }
    std::byte* const start = data_ + place;
    std::byte* const data = start + sizeof(Header);
    std::uint64_t filled = 0;
    runs_.clear();
    while (parcel.left_ > 0) {
        Stretch& stretch = parcel.stretch_;
        if (stretch.file.length == 0 && !parcel.stretches_.next(stretch)) {
            parcel.left_ = 0;
            break;
        }
        // One run more than there are, and what is left of the room for data.
        const std::uint64_t taken = sizeof(Header) + rounded(filled) + (runs_.size() + 1) * sizeof(Run);
        if (taken + 8 > wanted) break;
        const auto bytes = std::min(stretch.file.length, static_cast<std::int64_t>(wanted - taken));
        if (!add_piece({stretch.file.offset, bytes}, most_runs_of_record)) break;
        copy_bytes(data + filled, stretch.memory, bytes);
        filled += static_cast<std::uint64_t>(bytes);
        parcel.left_ -= bytes;
        stretch.memory += bytes;
        stretch.file = {stretch.file.offset + bytes, stretch.file.length - bytes};
    }
    Header header{sizeof(Header) + rounded(filled) + runs_.size() * sizeof(Run), parcel.call_,
                  static_cast<std::int64_t>(filled), static_cast<std::int64_t>(runs_.size())};
    std::memcpy(data + rounded(filled), runs_.data(), runs_.size() * sizeof(Run));
    std::memcpy(start, &header, sizeof header);
    keep_head(head + header.bytes, place + header.bytes);
}

int BehindRing::write_runs(storage::Backend& backend, int descriptor, const Header& header) const {
    const std::byte* data = at(words_.tail.load(std::memory_order_relaxed)) + sizeof(Header);
    const std::byte* const runs = data + rounded(static_cast<std::uint64_t>(header.data_bytes));
    std::int64_t operations = 0;
    int error = 0;
    for (std::int64_t i = 0; i < header.runs && error == 0; ++i) {
        Run run;
        std::memcpy(&run, runs + static_cast<std::size_t>(i) * sizeof run, sizeof run);
        for (std::int64_t piece = 0; piece < run.count && error == 0; ++piece) {
            error = backend.write_at(descriptor, data, run.length, run.offset + piece * run.stride).error;
            data += run.length;
            ++operations;
        }
    }
    words_.operations.fetch_add(operations, std::memory_order_relaxed);
    return error;
}

void BehindRing::write_one(storage::Backend& backend, int descriptor, int bad_descriptor) const {
    const std::uint64_t tail = words_.tail.load(std::memory_order_relaxed);
    const std::uint64_t to_end = capacity_ - tail % capacity_;
    Header header{};
    std::memcpy(&header, at(tail), std::min<std::uint64_t>(sizeof header, to_end));
    const bool filling = to_end < sizeof header || header.call == 0;
    if (!filling && header.call != words_.failed_call.load(std::memory_order_relaxed)) {
        const int error = bad_descriptor != 0 ? bad_descriptor : write_runs(backend, descriptor, header);
        if (error != 0) {
            words_.failed_call.store(header.call, std::memory_order_relaxed);
            std::int32_t none = 0;
            words_.error.compare_exchange_strong(none, error, std::memory_order_acq_rel);
        }
    }
    words_.tail.store(tail + header.bytes, std::memory_order_release);
    words_.moved.fetch_add(1, std::memory_order_seq_cst);
    if (words_.waiting.load(std::memory_order_seq_cst) != 0) wake_all(words_.moved);
}

}  // namespace ioweir::engine
