#include "tracer/hooks/mappings.hpp"

namespace ioweir::tracer {

std::atomic<int> mapping_count;

namespace {

struct Mapping {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uint32_t file;
    std::int64_t offset;
};
/// Mappings beyond are recorded when they are made, and not when they end.
constexpr int capacity = 1024;
Mapping mappings[capacity];
std::atomic_flag busy = ATOMIC_FLAG_INIT;

/// A signal handler that maps files while its thread does is turned away instead of waiting for ever.
class Claim {
public:
    Claim() {
        for (int tries = 0; tries < 100'000 && !held_; ++tries) held_ = !busy.test_and_set(std::memory_order_acquire);
    }
    ~Claim() {
        if (held_) busy.clear(std::memory_order_release);
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    explicit operator bool() const { return held_; }

private:
    bool held_ = false;
};

}  // namespace

void add_mapping(const void* address, std::size_t length, std::uint32_t file, std::int64_t offset) {
    remove_mappings(address, length);
    const Claim claim;
    const int count = mapping_count.load(std::memory_order_relaxed);
    if (!claim || count >= capacity) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    mappings[count] = {begin, begin + length, file, offset};
    mapping_count.store(count + 1, std::memory_order_relaxed);
}

Mapped find_mapping(const void* address) {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    const Claim claim;
    const int count = claim ? mapping_count.load(std::memory_order_relaxed) : 0;
    for (int i = 0; i < count; ++i)
        if (place >= mappings[i].begin && place < mappings[i].end)
            return {mappings[i].file, mappings[i].offset + static_cast<std::int64_t>(place - mappings[i].begin)};
    return {};
}

void remove_mappings(const void* address, std::size_t length) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + length;
    const Claim claim;
    int count = claim ? mapping_count.load(std::memory_order_relaxed) : 0;
    for (int i = 0; i < count;) {
        Mapping& mapping = mappings[i];
        if (mapping.end <= begin || mapping.begin >= end) {
            ++i;
        } else if (mapping.begin < begin && mapping.end > end && count < capacity) {  // a hole
            mappings[count++] = {end, mapping.end, mapping.file,
                                 mapping.offset + static_cast<std::int64_t>(end - mapping.begin)};
            mapping.end = begin;
            ++i;
        } else if (mapping.begin < begin) {
            mapping.end = begin;
            ++i;
        } else if (mapping.end > end) {
            mapping.offset += static_cast<std::int64_t>(end - mapping.begin);
            mapping.begin = end;
            ++i;
        } else {
            mapping = mappings[--count];
        }
    }
    if (claim) mapping_count.store(count, std::memory_order_relaxed);
}

}  // namespace ioweir::tracer
