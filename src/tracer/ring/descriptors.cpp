#include "tracer/ring/descriptors.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/raw_syscall.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer {

std::uint64_t descriptors[descriptor_capacity];
Position positions[position_capacity];
std::uint64_t engine_descriptors[descriptor_capacity / 64];
std::uint32_t engine_descriptors_gone;

namespace {

/// How many descriptors have a position, and the next free one. Opening and closing only.
struct Slot {
    std::atomic<std::uint32_t> uses;
    std::atomic<std::uint32_t> next_free;
};
Slot slots[position_capacity];
std::atomic<std::uint64_t> free_slots;  // a stack: first one below, above it a count against ABA
std::atomic<std::uint32_t> slots_made;
std::atomic<int> highest;

/// 0 when there is none.
std::uint32_t take_slot() {
    std::uint64_t head = free_slots.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(head) != 0) {
        const std::uint32_t next = slots[static_cast<std::uint32_t>(head)].next_free.load(std::memory_order_relaxed);
        if (free_slots.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next, std::memory_order_acq_rel))
            return static_cast<std::uint32_t>(head);
    }
    std::uint32_t made = slots_made.load(std::memory_order_relaxed);
    while (made + 1 < position_capacity)
        if (slots_made.compare_exchange_weak(made, made + 1)) return made + 1;
    return 0;
}

void give_back_slot(std::uint32_t slot) {
    if (slot == 0 || slots[slot].uses.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    // Closed while a call is under way in another thread: the end of that call still writes to it.
    if (!positions[slot].idle()) return;
    std::uint64_t head = free_slots.load(std::memory_order_acquire);
    do slots[slot].next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    while (!free_slots.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | slot, std::memory_order_acq_rel));
}

void store(int fd, Descriptor value) {
    if (value.file != 0) {
        int known = highest.load(std::memory_order_relaxed);
        while (fd > known && !highest.compare_exchange_weak(known, fd)) {
        }
    }
    const std::uint64_t old =
        __atomic_exchange_n(&descriptors[fd], __builtin_bit_cast(std::uint64_t, value), __ATOMIC_ACQ_REL);
    give_back_slot(__builtin_bit_cast(Descriptor, old).slot);
}

/// False also in a child of vfork: it shares our memory and has descriptors of its own, which are the same descriptions.
bool may_change(int fd) {
    if (fd < 0) return false;
    if (owns_descriptors()) return true;
    share_position(fd);
    return false;
}

bool fits(int fd) {
    if (fd < descriptor_capacity) return true;
    note_high_descriptor(fd);
    return false;
}

}  // namespace

void Position::leave_at(std::uint64_t entered, std::int64_t offset) {
    std::uint64_t now = entered + 1;
    if (offset >= 0 && (entered & calls) == 0) {
        const std::uint64_t place = offset < limit ? static_cast<std::uint64_t>(offset) << shift : shared;
        if (word_.compare_exchange_strong(now, place | (entered & shared), std::memory_order_acq_rel)) return;
    }
    now = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(now, (now | unknown) - 1, std::memory_order_acq_rel)) {
    }
}

/// Asks the kernel, once, when the position was lost and this call was alone. It counts if nobody came meanwhile.
std::int64_t Position::ask(std::uint64_t entered, std::uint64_t now, std::int64_t moved, int fd) {
    const bool alone = (entered & calls) == 0 && (now & calls) == 0;
    if (!alone || (now & shared) != 0) return -1;
    const KeepErrno keep;
    const off_t place = raw::lseek(fd, 0, SEEK_CUR);
    if (place < moved || place >= limit) return -1;
    const bool counts =
        word_.compare_exchange_strong(now, static_cast<std::uint64_t>(place) << shift, std::memory_order_acq_rel);
    // Somebody may have come and gone between this call's end and the question, then `now` differs too.
    return counts ? place - moved : -1;
}

void open_descriptor(int fd, std::uint32_t file, bool appends) {
    if (!may_change(fd) || !fits(fd)) return;
    Descriptor fresh{};
    if (file != 0) {
        const std::uint32_t slot = take_slot();
        if (slot != 0) {
            positions[slot].reset();
            slots[slot].uses.store(1, std::memory_order_relaxed);
        }
        fresh.file = file;
        fresh.slot = slot & 0x7fff'ffffU;
        fresh.appends = appends ? 1 : 0;
    }
    store(fd, fresh);
}

void copy_descriptor(int fd, int copy) {
    if (!may_change(fd) || !fits(copy) || copy < 0) return;
    const Descriptor original = descriptor_of(fd);
    if (original.slot != 0) slots[original.slot].uses.fetch_add(1, std::memory_order_relaxed);
    store(copy, original);
}

void forget_descriptor(int fd) {
    if (fd < descriptor_capacity && may_change(fd)) store(fd, Descriptor{});
}

void set_appends(int fd, bool appends) {
    const Descriptor changed = descriptor_of(fd);
    if (changed.file == 0 || (changed.appends != 0) == appends) return;
    for (int other = 0; other <= highest.load(); ++other) {
        std::uint64_t word = __atomic_load_n(&descriptors[other], __ATOMIC_RELAXED);
        Descriptor descriptor = __builtin_bit_cast(Descriptor, word);
        if (other != fd && (descriptor.slot == 0 || descriptor.slot != changed.slot)) continue;
        descriptor.appends = appends ? 1 : 0;
        const auto wanted = __builtin_bit_cast(std::uint64_t, descriptor);
        // Changed meanwhile: it is another description now.
        __atomic_compare_exchange_n(&descriptors[other], &word, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void share_position(int fd) {
    const Descriptor descriptor = descriptor_of(fd);
    if (descriptor.slot != 0) positions[descriptor.slot].share();
}

void share_positions(bool inherited_only) {
    const KeepErrno keep;
    for (int fd = 0; fd <= highest.load(std::memory_order_relaxed); ++fd) {
        const Descriptor descriptor = descriptor_of(fd);
        if (descriptor.slot == 0) continue;
        if (inherited_only && (raw::fcntl(fd, F_GETFD, nullptr) & FD_CLOEXEC) != 0) continue;
        positions[descriptor.slot].share();
    }
}

int highest_descriptor() { return highest.load(std::memory_order_relaxed); }

EngineDescriptorsClose::EngineDescriptorsClose(unsigned first, unsigned last) {
    if (last >= static_cast<unsigned>(descriptor_capacity)) last = descriptor_capacity - 1;
    for (unsigned fd = first; fd <= last;) {
        if (fd % 64 == 0 && __atomic_load_n(&engine_descriptors[fd / 64], __ATOMIC_RELAXED) == 0) {
            fd += 64;
            continue;
        }
        if (is_engine_descriptor(static_cast<int>(fd))) {
            mark_engine_descriptor(static_cast<int>(fd), false);
            any_ = true;
        }
        ++fd;
    }
}

}  // namespace ioweir::tracer
