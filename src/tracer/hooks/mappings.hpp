// Files that the program has mapped into memory: which one lies behind an address. Only what mmap, munmap and msync tell;
// what is read and written through a mapping is seen by nobody.
#pragma once

#include <sys/mman.h>

#include "tracer/hooks/posix_bodies.hpp"
#include "tracer/hooks/raw_rings.hpp"

namespace ioweir::tracer {

/// Where an address lies; file 0: in no mapping of a traced file.
struct Mapped {
    std::uint32_t file = 0;
    std::int64_t offset = -1;
};

extern std::atomic<int> mapping_count;

void add_mapping(const void* address, std::size_t length, std::uint32_t file, std::int64_t offset);
Mapped find_mapping(const void* address);
/// Forgets what lies in the range.
void remove_mappings(const void* address, std::size_t length);

template <typename Call>
void* traced_map(Function function, Call&& call, const void*, std::size_t length, int, int flags, int fd,
                 off_t offset) {
    const std::uint32_t file = (flags & MAP_ANONYMOUS) != 0 ? 0 : file_of(fd);
    if (file == 0) {
        void* const place = call();
        // MAP_FIXED may put something else where a traced file was.
        if ((flags & MAP_FIXED) != 0 && mapping_count.load(std::memory_order_relaxed) != 0 && place != MAP_FAILED)
            remove_mappings(place, length);
        if (raw_ring_count.load(std::memory_order_relaxed) != 0 && place != MAP_FAILED) map_raw_ring(fd, offset, place);
        return place;
    }
    const std::uint64_t start = ticks(process_tracer.use_tsc);
    void* const place = call();
    const std::uint64_t stop = ticks(process_tracer.use_tsc);
    const bool failed = place == MAP_FAILED;
    record_call(function, file, start, stop, offset, static_cast<std::int64_t>(length), failed ? errno : 0);
    if (!failed) add_mapping(place, length, file, offset);
    return place;
}

template <typename Call, typename... Rest>
int traced_mapped(Function function, Call&& call, const void* address, std::size_t length, Rest...) {
    if (mapping_count.load(std::memory_order_relaxed) == 0) return call();
    const Mapped mapped = find_mapping(address);
    if (mapped.file == 0) return call();
    return traced_call(function, call, mapped.file, mapped.offset, static_cast<std::int64_t>(length));
}

template <typename Call>
int traced_unmap(Function function, Call&& call, const void* address, std::size_t length) {
    if (raw_ring_count.load(std::memory_order_relaxed) != 0) unmap_raw_rings(address, length);
    if (mapping_count.load(std::memory_order_relaxed) == 0) return call();
    const Mapped mapped = find_mapping(address);
    remove_mappings(address, length);  // before the real call: afterwards another thread may have the place again
    if (mapped.file == 0) return call();
    return traced_call(function, call, mapped.file, mapped.offset, static_cast<std::int64_t>(length));
}

}  // namespace ioweir::tracer
