#include "container/sharing/shown_number.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace ioweir::container {

ShownNumber::~ShownNumber() {
    if (Shared* shared = shared_.load()) ::munmap(shared, sizeof(Shared));
}

int ShownNumber::begin() { return begun_.load() ? 0 : map_or_mark(); }

int ShownNumber::map_or_mark() {
    const std::lock_guard guard(lock_);
    if (begun_.load()) return 0;
    auto held = file_.take(LockedFile::Kind::exclusive);
    if (held.error() != 0) return held.error();
    // So that there is room for what is mapped. Never a second time: those who have it mapped do not ask for the lock.
    if (held.is_new()) {
        if (const int error = held.put({}); error != 0) return error;
    }
    if (void* mapped = held.map()) {
        shared_.store(static_cast<Shared*>(mapped));
    } else if (held.numbers().second == 0) {
        if (const int error = held.put_second(1); error != 0) return error;
    }
    begun_.store(true);
    return 0;
}

bool ShownNumber::without_lock() const {
    const Shared* shared = shared_.load();
    return shared != nullptr && shared->locks_only.load() == 0;
}

ShownNumber::Shown ShownNumber::raise(Shared& shared, std::int64_t stamp, std::int64_t seen) {
    std::int64_t known = shared.number.load();
    for (;;) {
        const std::int64_t larger = std::max(known, stamp) + 1;
        if (shared.number.compare_exchange_weak(known, larger)) return {larger, known != seen, 0};
    }
}

ShownNumber::Shown ShownNumber::look() {
    if (const int error = begin(); error != 0) return {0, false, error};
    if (without_lock()) return {shared_.load()->number.load(), false, 0};
    return look(file_.take(LockedFile::Kind::shared));
}

ShownNumber::Shown ShownNumber::raise(std::int64_t stamp, std::int64_t seen) {
    if (const int error = begin(); error != 0) return {0, false, error};
    Shown first{stamp, false, 0};
    if (without_lock()) {
        first = raise(*shared_.load(), stamp, seen);
        // Whoever takes locks only has said so before it read the number that it writes back: either the mark is seen here, or this number
        // there.
        if (shared_.load()->locks_only.load() == 0) return first;
        seen = first.number;
    }
    auto held = file_.take(LockedFile::Kind::exclusive);
    Shown shown = raise(held, first.number, seen);
    shown.by_others = shown.by_others || first.by_others;
    return shown;
}

ShownNumber::Shown ShownNumber::look(const LockedFile::Held& held) {
    if (held.error() != 0) return {0, false, held.error()};
    const Shared* shared = shared_.load();
    return {shared != nullptr ? shared->number.load() : held.numbers().first, false, 0};
}

ShownNumber::Shown ShownNumber::raise(LockedFile::Held& held, std::int64_t stamp, std::int64_t seen) {
    if (held.error() != 0) return {0, false, held.error()};
    if (Shared* shared = shared_.load()) return raise(*shared, stamp, seen);
    const std::int64_t known = held.numbers().first;
    const std::int64_t number = std::max(known, stamp) + 1;
    const int error = held.put({number, 1});
    return {error == 0 ? number : 0, known != seen, error};
}

}  // namespace ioweir::container
