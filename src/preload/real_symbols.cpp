#include "preload/real_symbols.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <initializer_list>

#include "preload/library_symbols.hpp"
#include "preload/loaded_objects.hpp"

extern "C" {
// Used by entries.S.
__attribute__((visibility("hidden"))) void* ioweir_real_dlsym = nullptr;
__attribute__((visibility("hidden"))) void* ioweir_find_real_dlsym();
__attribute__((visibility("hidden"))) void* ioweir_dlsym_of_handle(void* handle, const char* name);
__attribute__((visibility("hidden"))) bool ioweir_stands_for_nothing(const char* name, const void* caller);
}

void* ioweir_find_real_dlsym() {
    if (ioweir_real_dlsym == nullptr) {
        // The version of the symbol: glibc 2.34 moved it; before, each architecture has its first one.
        for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
            if (void* found = ::dlvsym(RTLD_NEXT, "dlsym", version)) {
                ioweir_real_dlsym = found;
                break;
            }
    }
    return ioweir_real_dlsym;
}

namespace ioweir::preload {
namespace {

void* our_own_handle() {
    static void* handle = [] {
        Dl_info info{};
        return ::dladdr(reinterpret_cast<void*>(&find_next), &info) != 0
                   ? ::dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)
                   : nullptr;
    }();
    return handle;
}

struct Candidates {
    static constexpr int capacity = 64;
    char names[capacity][1024];
    int count;
};

const char* last_component(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

int collect_candidate(dl_phdr_info* info, std::size_t, void* argument) {
    auto& candidates = *static_cast<Candidates*>(argument);
    const char* name = last_component(info->dlpi_name);
    // The main program ("") may have MPI linked in; a library of MPI has "mpi" in its name with every vendor.
    const bool plausible =
        info->dlpi_name[0] == '\0' || (std::strstr(name, "mpi") != nullptr && std::strncmp(name, "libioweir", 9) != 0);
    if (plausible && candidates.count < Candidates::capacity &&
        std::strlen(info->dlpi_name) < sizeof candidates.names[0])
        std::strcpy(candidates.names[candidates.count++], info->dlpi_name);
    return 0;
}

/// `name` as the object itself defines it (a search from its handle goes on into its dependencies).
void* own_symbol(void* handle, const char* object, const char* name) {
    void* found = real_dlsym()(handle, name);
    Dl_info info{};
    if (found == nullptr || ::dladdr(found, &info) == 0) return nullptr;
    if (object[0] == '\0') return info.dli_fbase == nullptr ? nullptr : found;
    return std::strcmp(last_component(info.dli_fname), last_component(object)) == 0 ? found : nullptr;
}

char library_name[256];

void* search_mpi_library() {
    static Candidates candidates;  // too large for the stack of a small thread
    candidates.count = 0;
    ::dl_iterate_phdr(collect_candidate, &candidates);
    for (int i = 0; i < candidates.count; ++i) {
        const char* name = candidates.names[i];
        if (name[0] == '\0') continue;
        void* handle = ::dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
        if (handle == nullptr) continue;
        if (own_symbol(handle, name, "PMPI_Get_library_version") != nullptr &&
            own_symbol(handle, name, "PMPI_File_open") != nullptr) {
            std::strncpy(library_name, last_component(name), sizeof library_name - 1);
            return handle;
        }
        ::dlclose(handle);
    }
    return nullptr;
}

/// Is the object that makes this call behind us in the order of loading, and does it define `name` itself? Then it is a tool
/// that asks for what lies behind it, and our hook would lead back to it. (From a tool before us, the hook is what it wants.)
bool is_tool_behind_us(const void* caller, const char* name) {
    struct Search {
        const link_map* map;
        bool behind;
    } search{object_of(caller), false};
    if (search.map == nullptr || !LoadedObject(search.map).mention(name).defined) return false;
    with_objects(
        [](const link_map* first, void* argument) {
            auto& wanted = *static_cast<Search*>(argument);
            bool passed_us = false;
            for (const link_map* map = first; map != nullptr; map = map->l_next) {
                passed_us = passed_us || map == our_map();
                if (map == wanted.map) wanted.behind = passed_us;
            }
        },
        &search);
    return search.behind;
}

bool is_hooked_mpi_name(const char* name) {
    const char* rest = name[0] == 'P' ? name + 1 : name;
    return std::strncmp(rest, "MPI_", 4) == 0;
}

}  // namespace

Dlsym real_dlsym() { return reinterpret_cast<Dlsym>(ioweir_find_real_dlsym()); }

void* find_next(const char* name) { return real_dlsym()(RTLD_NEXT, name); }

void* mpi_library() {
    static void* library = nullptr;
    if (library == nullptr) library = search_mpi_library();
    return library;
}

const char* mpi_library_name() {
    mpi_library();
    return library_name;
}

void* find_in_mpi(const char* name) {
    void* library = mpi_library();
    void* found = library != nullptr ? real_dlsym()(library, name) : nullptr;
    return found;
}

void* find_program_object(const char* name) { return real_dlsym()(RTLD_DEFAULT, name); }

void* find_mpi_object(const char* name) {
    void* found = real_dlsym()(RTLD_DEFAULT, name);
    return found != nullptr ? found : find_in_mpi(name);
}

void* find_behind(const char* name) {
    void* found = find_next(name);
    return found != nullptr ? found : find_in_mpi(name);
}

}  // namespace ioweir::preload

// dlsym with an explicit handle. A program that loads a library itself and asks it for its functions would go past the
// hooks: it gets the hook, if the library has the function and we stand in for it.
void* ioweir_dlsym_of_handle(void* handle, const char* name) {
    using namespace ioweir::preload;
    void* found = real_dlsym()(handle, name);
    if (found == nullptr || name == nullptr) return found;
    // The program's own handle finds our hook first, whether or not anything is behind it.
    if (LoadedObject(our_map()).define(name, nullptr) == found && !is_defined_behind_us(name, nullptr)) {
        ::dlerror();
        real_dlsym()(RTLD_NEXT, name);  // fails, and says so; no jump to it, for it looks who called
        return nullptr;
    }
    const bool of_library = is_library_function(name);
    if (!of_library && !is_hooked_mpi_name(name)) return found;
    if (is_tool_behind_us(__builtin_return_address(0), name)) return found;
    void* ours = our_own_handle();
    void* hook = ours != nullptr ? real_dlsym()(ours, name) : nullptr;
    Dl_info hook_info{};
    Dl_info own_info{};
    // A search from our handle may end in a dependency; only our own definition counts.
    if (hook == nullptr || ::dladdr(hook, &hook_info) == 0 ||
        ::dladdr(reinterpret_cast<void*>(&find_next), &own_info) == 0 || hook_info.dli_fbase != own_info.dli_fbase)
        hook = found;
    else if (of_library)
        hook = library_symbol_for(name, found, hook);
    // Our own searches may have failed: their words are not for the program, unless it is to fail too.
    ::dlerror();
    if (hook == nullptr) real_dlsym()(RTLD_NEXT, name);
    return hook;
}

// dlsym with RTLD_DEFAULT: whether the caller would find our hook, and nothing without us. A program that looks for
// "H5Fopen" in this way asks whether it has HDF5.
bool ioweir_stands_for_nothing(const char* name, const void* caller) {
    using namespace ioweir::preload;
    if (name == nullptr) return false;
    // Asked in this order because a sanitizer's runtime asks before it is ready for us to look at the loaded objects.
    const void* hook = LoadedObject(our_map()).define(name, nullptr);
    if (hook == nullptr || find_next(name) != nullptr) return false;
    const bool nothing = real_dlsym()(RTLD_DEFAULT, name) == hook && !is_defined_behind_us(name, object_of(caller));
    ::dlerror();
    if (nothing) real_dlsym()(RTLD_NEXT, name);  // fails, and says so to who asks dlerror
    return nothing;
}
