// Memory of large columns in large pages, where Linux has them: 4 KiB at a time, to get it takes as long as to fill it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace ioweir {

/// An allocator for vectors. Small ones get what they would get anyway.
template <typename T>
struct LargePages {
    using value_type = T;
    static constexpr std::size_t page_bytes = std::size_t{2} << 20;

    LargePages() = default;
    template <typename Other>
    LargePages(const LargePages<Other>&) {}

    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        const std::size_t bytes = count * sizeof(T);
        if (bytes < page_bytes) return static_cast<T*>(::operator new(bytes));
        const std::size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
        void* memory = std::aligned_alloc(page_bytes, whole);
        if (memory == nullptr) throw std::bad_alloc();
        // A last page of which less than a half is needed stays in small ones. Without large pages all does.
        static_cast<void>(madvise(memory, (bytes + page_bytes / 2) / page_bytes * page_bytes, MADV_HUGEPAGE));
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count) {
        if (count * sizeof(T) < page_bytes)
            ::operator delete(memory);
        else
            std::free(memory);
    }
    template <typename Other>
    friend bool operator==(const LargePages&, const LargePages<Other>&) {
        return true;
    }
};

}  // namespace ioweir
