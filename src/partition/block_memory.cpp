#include "partition/block_memory.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace ioweir::partition {

Buffer BlockMemory::take(std::int64_t bytes, std::int64_t most_spare) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(spare_.begin(), spare_.end(), [&](const Buffer& one) {
            return one.capacity >= bytes && one.capacity / 2 <= bytes;
        });
        if (found != spare_.end()) {
            Buffer taken = std::move(*found);
            spare_.erase(found);
            spare_bytes_ -= taken.capacity;
            taken.bytes = bytes;
            return taken;
        }
        trim(most_spare);
    }
    Buffer made{{}, bytes, bytes};
    made.data.reset(static_cast<char*>(std::malloc(static_cast<std::size_t>(std::max<std::int64_t>(1, bytes)))));
    if (made.empty()) throw std::bad_alloc();
    return made;
}

void BlockMemory::give_back(Buffer buffer) {
    if (buffer.empty()) return;
    const std::lock_guard lock(mutex_);
    const std::int64_t capacity = buffer.capacity;
    try {
        spare_.push_back(std::move(buffer));
        spare_bytes_ += capacity;
    } catch (const std::bad_alloc&) {
        buffer.data.reset();  // no list of spare memory without memory for the list
    }
}

void BlockMemory::keep(std::int64_t most) {
    const std::lock_guard lock(mutex_);
    trim(most);
}

void BlockMemory::trim(std::int64_t most) {
    auto one = spare_.begin();
    for (; one != spare_.end() && spare_bytes_ > most; ++one) spare_bytes_ -= one->capacity;
    spare_.erase(spare_.begin(), one);
}

}  // namespace ioweir::partition
