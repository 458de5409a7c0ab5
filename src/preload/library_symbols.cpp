// A call from object O to a function F would have gone, without us, to the first definition of F (of the version that O asks
// for) in the global scope, else in the local scope of the dlopen that loaded O: that call's object, what it needs, what those
// need, in breadth. A symbol is bound once and for all, so what was found for a pair (O, F) stays true until something is
// unloaded; later dlopens do not change it. So a call site is looked up once, and then is a table entry.
//
// The common case needs none of this: where one loaded object defines F, that is the one.
#include "preload/library_symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/spin_guard.hpp"
#include "ioweir_generated/records.hpp"
#include "preload/loaded_objects.hpp"
#include "preload/real_symbols.hpp"
#include "tracer/hooks/library.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::preload {
namespace {

using namespace tracer::library;

/// Guards the tables below. Innermost: nobody who holds it asks the dynamic linker for anything.
std::atomic_flag busy = ATOMIC_FLAG_INIT;

// -- providers --------------------------------------------------------------------------------------------------------

struct KnownProvider {
    Provider provider;
    const link_map* map;  // null: it was unloaded
    void* anchor;         // where it has its anchor: an object that comes to lie in the same place is told apart by it
    Api api;
};
constexpr int most_providers = 64;
KnownProvider providers[most_providers];
int providers_known = 0;

void* anchor_of(Api api, const link_map* map) {
    return LoadedObject(map).define(anchors[static_cast<int>(api)], nullptr);
}

const Provider* provider_of(Api api, const link_map* map) {
    if (map == nullptr) return nullptr;
    const SpinGuard guard(busy);
    for (int i = 0; i < providers_known; ++i)
        if (providers[i].map == map && providers[i].api == api) return &providers[i].provider;
    // The place of one that was unloaded is free. Numbers are not given out again: handles of the old library carry them.
    int place = 0;
    while (place < providers_known && providers[place].map != nullptr) ++place;
    if (place == most_providers) return nullptr;
    if (place == providers_known) ++providers_known;
    KnownProvider& fresh = providers[place];
    fresh.map = map;
    fresh.api = api;
    fresh.anchor = anchor_of(api, map);
    static std::uint32_t numbers_given = 0;
    fresh.provider.number = ++numbers_given;
    const LoadedObject object(map);
    for (int i = 0; i < query_count; ++i) fresh.provider.queries[i] = object.define(query_names[i], nullptr);
    // HDF5 before 1.10 has ids of 32 bits: its calls are passed on and not recorded. H5Dflush came with 1.10.
    fresh.provider.traced = api != Api::hdf5 || object.define("H5Dflush", nullptr) != nullptr;
    if (!fresh.provider.traced && tracer::process_tracer.active)
        tracer::process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", 0,
                                    "HDF5 calls are not traced: the library is older than 1.10");
    return &fresh.provider;
}

// -- the search ---------------------------------------------------------------------------------------------------------

const char* last_component(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

std::uint32_t hash_of(const char* name) {
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    return hash;
}

/// The list of loaded objects as a graph of who needs whom. Guarded by `busy`; static, for it does not fit on every stack.
struct Objects {
    static constexpr int capacity = 4096;
    static constexpr int edge_capacity = 8 * capacity;
    const link_map* maps[capacity];
    std::uint32_t sonames[capacity];  // hashes
    std::uint32_t files[capacity];
    int first_edge[capacity + 1];
    std::uint16_t edges[edge_capacity];
    int count;
    std::uint16_t order[capacity];  // a breadth-first walk
    bool seen[capacity];

    void collect(const link_map* first) {
        count = 0;
        for (const link_map* map = first; map != nullptr && count < capacity; map = map->l_next) {
            const char* soname = LoadedObject(map).soname();
            maps[count] = map;
            files[count] = hash_of(last_component(map->l_name));
            sonames[count] = soname != nullptr ? hash_of(soname) : files[count];
            ++count;
        }
        int used = 0;
        for (int i = 0; i < count; ++i) {
            first_edge[i] = used;
            LoadedObject(maps[i]).for_each_needed([&](const char* name) {
                const int needed = named(last_component(name));
                if (needed >= 0 && used < edge_capacity) edges[used++] = static_cast<std::uint16_t>(needed);
            });
        }
        first_edge[count] = used;
    }
    [[nodiscard]] int index_of(const link_map* map) const {
        for (int i = 0; i < count; ++i)
            if (maps[i] == map) return i;
        return -1;
    }
    [[nodiscard]] int named(const char* name) const {
        const std::uint32_t hash = hash_of(name);
        for (int i = 0; i < count; ++i)
            if (sonames[i] == hash || files[i] == hash) return i;
        return -1;
    }
    /// Fills `order` with `root` and all that it needs, in breadth; returns how many.
    int walk(int root) {
        std::memset(seen, 0, static_cast<std::size_t>(count));
        int used = 0;
        order[used++] = static_cast<std::uint16_t>(root);
        seen[root] = true;
        for (int at = 0; at < used; ++at)
            for (int edge = first_edge[order[at]]; edge < first_edge[order[at] + 1]; ++edge)
                if (!seen[edges[edge]]) {
                    seen[edges[edge]] = true;
                    order[used++] = edges[edge];
                }
        return used;
    }
};
Objects objects;

struct Search {
    const char* name = nullptr;
    const link_map* caller = nullptr;  // null: unknown
    bool mentioned = false;            // the caller refers to the function, or defines it
    const char* version = nullptr;
    int definers = 0;
    void* only = nullptr;  // the one definition, or the first
    bool caller_is_before_us = false;
    bool caller_defines = false;
    void* found = nullptr;
};

void survey(const link_map* first, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    bool passed_us = false;
    for (const link_map* map = first; map != nullptr; map = map->l_next) {
        if (map == our_map()) {
            passed_us = true;
            continue;
        }
        if (map == search.caller) search.caller_is_before_us = !passed_us;
        const LoadedObject object(map);
        void* address = object.define(search.name, nullptr);
        if (address == nullptr) continue;
        // One and the same function may be seen from two objects only where it is defined twice.
        if (++search.definers == 1) search.only = address;
    }
    if (search.caller == nullptr) return;
    const Mention mention = LoadedObject(search.caller).mention(search.name);
    search.mentioned = mention.found;
    search.caller_defines = mention.defined;
    search.version = mention.version;
}

/// The local scopes that the caller is in, oldest first: those of the objects that need it, the caller's own the last.
void search_locally(const link_map* first, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    const SpinGuard guard(busy);
    objects.collect(first);
    const int caller = objects.index_of(search.caller);
    for (int root = 0; caller >= 0 && root < objects.count; ++root) {
        if (objects.maps[root]->l_name[0] == '\0' && root == 0) continue;  // the program's scope is the global one
        const int used = objects.walk(root);
        if (!objects.seen[caller]) continue;
        for (int i = 0; i < used; ++i) {
            if (objects.maps[objects.order[i]] == our_map()) continue;
            search.found = LoadedObject(objects.maps[objects.order[i]]).define(search.name, search.version);
            if (search.found != nullptr) return;
        }
    }
}

/// Of a caller that does not know the function: the nearest of the objects it needs that calls it, else that defines it.
void search_behind(const link_map* first, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    const SpinGuard guard(busy);
    objects.collect(first);
    const int caller = objects.index_of(search.caller);
    const int used = caller >= 0 ? objects.walk(caller) : 0;
    for (int i = 0; i < used; ++i) {
        const link_map* map = objects.maps[objects.order[i]];
        if (map == our_map() || map == search.caller) continue;
        const Mention mention = LoadedObject(map).mention(search.name);
        if (mention.found && !mention.defined) {
            search.caller = map;
            search.version = mention.version;
            search.mentioned = true;
            return;
        }
        if (mention.defined && search.found == nullptr) search.found = mention.address;
    }
}

/// The next definition in the global scope, of a version if one is asked for.
void* find_globally(const char* name, const char* version) {
    void* found = find_next(name);
    // A definition without a version, as tools have them, satisfies a reference with one; dlvsym would pass it over.
    const link_map* definer = version != nullptr && found != nullptr ? object_of(found) : nullptr;
    const bool any_version = definer != nullptr && LoadedObject(definer).mention(name).version == nullptr;
    if (version != nullptr && !any_version) found = ::dlvsym(RTLD_NEXT, name, version);
    if (found == nullptr) ::dlerror();  // the words of our own failed search are not for the program
    return found;
}

/// Libraries that a caller of no known binding means, by kind: asked for through dlsym first.
std::atomic<const link_map*> default_library[api_count];

void* default_definition(const char* name, Api api) {
    if (void* found = find_globally(name, nullptr)) return found;
    const link_map* map = default_library[static_cast<int>(api)].load();
    return map != nullptr ? LoadedObject(map).define(name, nullptr) : nullptr;
}

/// What `caller` would have reached; null when there is nothing.
void* definition_for(const char* name, Api api, const link_map* caller) {
    Search search;
    search.name = name;
    search.caller = caller;
    with_objects(survey, &search);
    if (search.definers <= 1) return search.only;
    // A tool in front of us that passes calls on (and so defines the function itself) asked for the next definition.
    const bool passes_on = search.caller_is_before_us && (search.caller_defines || !search.mentioned);
    // Called through a pointer, or by a jump at the end of another function: who made the call is behind the caller.
    if (!search.mentioned && search.caller != nullptr && !passes_on) with_objects(search_behind, &search);
    if (search.mentioned && !passes_on) {
        search.found = find_globally(name, search.version);
        if (search.found == nullptr) with_objects(search_locally, &search);
    }
    if (search.found == nullptr) search.found = default_definition(name, api);
    return search.found != nullptr ? search.found : search.only;
}

Real look_up(int function, const void* caller) {
    const LibraryFunction& about = functions[function];
    const link_map* from = object_of(caller);
    Real real;
    real.function = definition_for(about.symbol, about.api, from);
    if (real.function == nullptr) return real;
    const link_map* definer = object_of(real.function);
    if (definer == our_map()) return {};
    // Another tool's wrapper is no library: questions go to the one behind it.
    if (definer != nullptr && anchor_of(about.api, definer) == nullptr)
        definer = object_of(definition_for(anchors[static_cast<int>(about.api)], about.api, from));
    real.provider = provider_of(about.api, definer);
    return real;
}

// -- what was found -------------------------------------------------------------------------------------------------------

/// A call site and what lies behind its hook. A reader that sees the same key before and after has a whole entry: for one key
/// the rest is always the same, until clear().
struct Site {
    std::atomic<std::uint64_t> key;
    std::atomic<void*> function;
    std::atomic<const Provider*> provider;
};
constexpr std::size_t site_count = 1U << 13;
Site sites[site_count];

/// Addresses have 48 bits, functions fit into the rest.
std::uint64_t key_of(int function, const void* caller) {
    return reinterpret_cast<std::uintptr_t>(caller) | static_cast<std::uint64_t>(function) << 52 |
           std::uint64_t{1} << 51;
}

std::atomic<std::uint32_t> generation;
std::uintptr_t our_begin = 0;
std::uintptr_t our_end = 0;

Real resolve_call(int function, const void* caller, const void* callee) {
    // A function that ends in a call is left by a jump: back in our code we would come, so it is the enclosing call's library.
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    if (address - our_begin < our_end - our_begin) caller = callee;
    const std::uint64_t key = key_of(function, caller);
    Site& site = sites[(key * 0x9E37'79B9'7F4A'7C15ULL) >> 51];
    Real real;
    if (site.key.load(std::memory_order_acquire) == key) {
        real.function = site.function.load(std::memory_order_acquire);
        real.provider = site.provider.load(std::memory_order_acquire);
        if (site.key.load(std::memory_order_relaxed) == key) return real;
    }
    const std::uint32_t before = generation.load();
    real = look_up(function, caller);
    if (real.function == nullptr) return real;  // asked again the next time: it may have been loaded by then
    const SpinGuard guard(busy);
    if (generation.load() != before) return real;
    site.key.store(0, std::memory_order_release);
    site.function.store(real.function, std::memory_order_release);
    site.provider.store(real.provider, std::memory_order_release);
    site.key.store(key, std::memory_order_release);
    return real;
}

/// Something was unloaded: its addresses may come to mean something else.
void forget_unloaded(const link_map* first, void*) {
    const SpinGuard guard(busy);
    generation.fetch_add(1);
    for (Site& site : sites)
        if (site.key.load(std::memory_order_relaxed) != 0) site.key.store(0, std::memory_order_relaxed);
    const auto is_loaded = [&](const link_map* wanted) {
        for (const link_map* map = first; map != nullptr; map = map->l_next)
            if (map == wanted) return true;
        return false;
    };
    for (int i = 0; i < providers_known; ++i) {
        KnownProvider& known = providers[i];
        if (known.map != nullptr && (!is_loaded(known.map) || anchor_of(known.api, known.map) != known.anchor))
            known.map = nullptr;
    }
    for (auto& map : default_library)
        if (!is_loaded(map.load())) map.store(nullptr);
}

int find_our_range(dl_phdr_info* info, std::size_t, void*) {
    if (our_map() == nullptr || info->dlpi_addr != our_map()->l_addr) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        our_begin = info->dlpi_addr + part.p_vaddr;
        our_end = our_begin + part.p_memsz;
    }
    return 1;
}

int function_named(const char* name) {
    for (int i = 0; i < function_count; ++i)
        if (std::strcmp(functions[i].symbol, name) == 0) return i;
    return -1;
}

}  // namespace

void start_library_symbols() {
    ::dl_iterate_phdr(find_our_range, nullptr);
    resolve = resolve_call;
}

void* find_beside(const void* function, const char* name) {
    const link_map* map = object_of(function);
    return map != nullptr ? LoadedObject(map).define(name, nullptr) : nullptr;
}

bool is_library_function(const char* name) {
    const bool plausible = std::strncmp(name, "H5", 2) == 0 || std::strncmp(name, "nc", 2) == 0;
    return plausible && function_named(name) >= 0;
}

bool is_defined_behind_us(const char* name, const link_map* object) {
    if (find_globally(name, nullptr) != nullptr) return true;
    if (object == nullptr) return false;
    Search search;
    search.name = name;
    search.caller = object;
    with_objects(search_locally, &search);
    return search.found != nullptr;
}

void* library_symbol_for(const char* name, void* found, void* hook) {
    const Api api = functions[function_named(name)].api;
    if (object_of(found) == our_map()) return hook;
    auto& map = default_library[static_cast<int>(api)];
    if (map.load() == nullptr && find_globally(name, nullptr) == nullptr) map.store(object_of(found));
    void* reached = default_definition(name, api);
    if (reached == found || reached == nullptr) return hook;
    if (tracer::process_tracer.active)
        tracer::process_tracer.note(
            static_cast<std::uint32_t>(format::NoteCode::untraced), "", 0,
            "two libraries of one kind are loaded; calls to the second one through dlsym are not traced");
    return found;
}

}  // namespace ioweir::preload

extern "C" IOWEIR_EXPORT int dlclose(void* handle) {
    using Dlclose = int (*)(void*);
    static Dlclose real = nullptr;
    Dlclose known = __atomic_load_n(&real, __ATOMIC_RELAXED);
    if (known == nullptr) {
        known = reinterpret_cast<Dlclose>(ioweir::preload::find_next("dlclose"));
        __atomic_store_n(&real, known, __ATOMIC_RELAXED);
    }
    if (known == nullptr) return -1;
    const int code = known(handle);
    ioweir::preload::with_objects(ioweir::preload::forget_unloaded, nullptr);
    return code;
}
