#include "partition/passage.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace ioweir::partition {

void Passage::Parcel::copy_into(Buffer& to) const {
    const std::size_t of_header = header->size(), of_items = static_cast<std::size_t>(to.bytes) - of_header;
    std::memcpy(to.data.get(), header->data(), of_header);
    if (of_items > 0) std::memcpy(to.data.get() + of_header, items, of_items);
}

template <typename Condition>
void Passage::until(Lock& lock, Condition condition) {
    constexpr std::chrono::milliseconds between_probes{1};
    while (!for_worker_.wait_for(lock, between_probes, condition)) {
        lock.unlock();
        // Others may wait for messages of this process, and the delegate for them.
        exchange::let_messages_go_on(comm_);
        lock.lock();
    }
}

void Passage::wake(Lock& lock) {
    wakes_ = true;
    lock.unlock();
    for_delegate_.notify_one();
}

void Passage::make_room(std::int64_t bytes) {
    Lock lock(mutex_);
    const auto has_room = [&] { return bytes_ == 0 || bytes_ + bytes <= room_; };
    if (!has_room()) {
        wake(lock);
        lock.lock();
        until(lock, has_room);
    }
    bytes_ += bytes;
}

void Passage::give_room_back(std::int64_t bytes) {
    const Lock lock(mutex_);
    bytes_ -= bytes;
}

void Passage::put(Parcel parcel) {
    Lock lock(mutex_);
    // A set's beginning and its blocks wait for its end, so that the worker copies undisturbed; many blocks do not.
    const Message kind = parcel.wire.kind;
    const bool can_wait =
        kind == Message::begin || (kind == Message::block && !parcel.is_lent() && bytes_ <= room_ / 2);
    parcels_.push_back(std::move(parcel));
    if (!can_wait) wake(lock);
}

void Passage::drain() {
    Lock lock(mutex_);
    until(lock, [&] { return parcels_.empty() && is_done_; });
}

std::optional<Failure> Passage::results(std::int64_t sets) {
    Lock lock(mutex_);
    if (told_ < sets) until(lock, [&] { return told_ >= sets; });
    return std::exchange(failure_, std::nullopt);
}

std::optional<Wire> Passage::next() {
    const Lock lock(mutex_);
    if (parcels_.empty()) return std::nullopt;
    return parcels_.front().wire;
}

Passage::Parcel Passage::take() {
    const Lock lock(mutex_);
    Parcel parcel = std::move(parcels_.front());
    parcels_.pop_front();
    is_done_ = false;
    if (!parcel.is_lent()) bytes_ -= parcel.wire.bytes;
    return parcel;
}

void Passage::done() {
    {
        const Lock lock(mutex_);
        is_done_ = true;
    }
    for_worker_.notify_one();
}

void Passage::tell(const std::optional<Failure>& failure) {
    {
        const Lock lock(mutex_);
        ++told_;
        if (failure && !failure_) failure_ = failure;
    }
    for_worker_.notify_one();
}

void Passage::wait(std::optional<std::chrono::microseconds> most) {
    Lock lock(mutex_);
    const auto is_woken = [&] { return wakes_; };
    if (most)
        for_delegate_.wait_for(lock, *most, is_woken);
    else
        for_delegate_.wait(lock, is_woken);
    wakes_ = false;
}

void HandOverInProcess::send(Wire wire, const void* data, std::int64_t bytes) {
    wire.bytes = bytes;
    Passage::Parcel parcel;
    parcel.wire = wire;
    if (bytes > 0) parcel.text.assign(static_cast<const char*>(data), static_cast<std::size_t>(bytes));
    passage_.make_room(bytes);
    passage_.put(std::move(parcel));
}

void HandOverInProcess::send_block(Wire wire, const std::string& header, const void* items, std::int64_t bytes) {
    Passage::Parcel parcel;
    wire.bytes = std::ssize(header) + bytes;
    parcel.wire = wire;
    if (wire.bytes <= passage_.room()) {
        passage_.make_room(wire.bytes);
        try {
            parcel.block = passage_.memory().take(wire.bytes, INT64_MAX);
        } catch (const std::bad_alloc&) {
            passage_.give_room_back(wire.bytes);
        }
    }
    const bool lends = parcel.block.empty();  // the delegate copies it, when it has the memory for it
    parcel.header = &header;
    parcel.items = items;
    if (!lends) parcel.copy_into(parcel.block);
    passage_.put(std::move(parcel));
    if (lends) passage_.drain();
}

}  // namespace ioweir::partition
