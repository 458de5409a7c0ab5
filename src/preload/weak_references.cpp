// Weak references to functions that only the preload has. `if (&H5Fopen != NULL)` asks whether there is HDF5, and our hook
// must not be the answer. The dynamic linker binds references before any code of ours runs, so the pointers that it filled
// with a hook behind which there is nothing are set to zero again: when the preload is loaded, for all that is loaded by then.
// What does not live here: dlsym (real_symbols.cpp). Objects that are loaded later keep what they found: their constructors
// may run before anything could be undone (docs/explanation/tracing.md).
#include "preload/weak_references.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "preload/library_symbols.hpp"
#include "preload/loaded_objects.hpp"

namespace ioweir::preload {
namespace {

struct WeakReference {
    const link_map* object;
    std::uint32_t symbol;
    const char* name;
};
struct Found {
    static constexpr int capacity = 1024;
    WeakReference references[capacity];
    int count;
};

void collect(const link_map* first, void* argument) {
    auto& found = *static_cast<Found*>(argument);
    const LoadedObject ours(our_map());
    for (const link_map* map = first; map != nullptr; map = map->l_next) {
        if (map == our_map()) continue;
        LoadedObject(map).for_each_weak_reference([&](std::uint32_t symbol, const char* name) {
            if (found.count < Found::capacity && ours.define(name, nullptr) != nullptr)
                found.references[found.count++] = {map, symbol, name};
        });
    }
}

/// The part of an object that the dynamic linker made read-only after it had filled it, in whole pages.
struct ReadOnly {
    ElfW(Addr) base = 0;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};
int find_read_only(dl_phdr_info* info, std::size_t, void* argument) {
    auto& part = *static_cast<ReadOnly*>(argument);
    if (info->dlpi_addr != part.base) return 0;
    const auto page = static_cast<std::uintptr_t>(::getpagesize());
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_GNU_RELRO) continue;
        const std::uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        part.begin = begin / page * page;
        part.end = (begin + info->dlpi_phdr[i].p_memsz) / page * page;
    }
    return 1;
}

void clear(void** place, const ReadOnly& part) {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    const auto page = static_cast<std::uintptr_t>(::getpagesize());
    void* const begin = reinterpret_cast<void*>(address / page * page);
    const bool read_only = address >= part.begin && address < part.end;
    if (read_only && ::mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return;
    *place = nullptr;
    if (read_only) ::mprotect(begin, page, PROT_READ);
}

}  // namespace

void clear_weak_references() {
    static Found found;  // too large for a stack
    found.count = 0;
    with_objects(collect, &found);
    const LoadedObject ours(our_map());
    for (int i = 0; i < found.count; ++i) {
        const WeakReference& reference = found.references[i];
        if (is_defined_behind_us(reference.name, reference.object)) continue;
        void* const hook = ours.define(reference.name, nullptr);
        ReadOnly part;
        part.base = reference.object->l_addr;
        ::dl_iterate_phdr(find_read_only, &part);
        LoadedObject(reference.object).for_each_pointer_to(reference.symbol, [&](void** place) {
            if (*place == hook) clear(place, part);
        });
    }
}

}  // namespace ioweir::preload
