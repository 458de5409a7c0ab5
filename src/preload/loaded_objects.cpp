#include "preload/loaded_objects.hpp"

#include <dlfcn.h>

#include <cstring>
#include <type_traits>

namespace ioweir::preload {
namespace {

/// The dynamic linker adds the load address to these pointers in most objects, not in all (the vDSO).
template <typename Type>
const Type* absolute(const link_map* map, ElfW(Addr) value) {
    return reinterpret_cast<const Type*>(value < map->l_addr ? value + map->l_addr : value);
}

std::uint32_t gnu_hash_of(const char* name) {
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    return hash;
}

std::uint32_t sysv_hash_of(const char* name) {
    std::uint32_t hash = 0;
    for (const char* c = name; *c != '\0'; ++c) {
        hash = (hash << 4) + static_cast<unsigned char>(*c);
        const std::uint32_t high = hash & 0xf000'0000U;
        hash = (hash ^ (high >> 24)) & ~high;
    }
    return hash;
}

constexpr std::uint32_t hidden_version = 0x8000;  // of a DT_VERSYM entry
constexpr std::uint32_t first_version = 2;        // 0: local, 1: global without a version

}  // namespace

LoadedObject::LoadedObject(const link_map* map) : map_(map) {
    std::size_t soname = 0;
    if (map->l_ld == nullptr) return;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        const ElfW(Addr) value = entry->d_un.d_ptr;
        switch (entry->d_tag) {
            case DT_STRTAB:
                strings_ = absolute<char>(map, value);
                break;
            case DT_SONAME:
                soname = value;
                break;
            case DT_SYMTAB:
                symbols_ = absolute<ElfW(Sym)>(map, value);
                break;
            case DT_GNU_HASH:
                gnu_hash_ = absolute<std::uint32_t>(map, value);
                break;
            case DT_HASH:
                hash_ = absolute<std::uint32_t>(map, value);
                break;
            case DT_VERSYM:
                versions_ = absolute<ElfW(Half)>(map, value);
                break;
            case DT_VERNEED:
                needed_versions_ = absolute<char>(map, value);
                break;
            case DT_VERDEF:
                own_versions_ = absolute<char>(map, value);
                break;
            case DT_RELA:
                relocations_ = absolute<ElfW(Rela)>(map, value);
                break;
            case DT_RELASZ:
                relocation_count_ = value / sizeof(ElfW(Rela));
                break;
            default:
                break;
        }
    }
    if (relocations_ == nullptr) relocation_count_ = 0;
    if (soname != 0 && strings_ != nullptr) soname_ = strings_ + soname;
}

/// Symbols before this one are the undefined ones (they are not hashed); with the old hash table, all are to be searched.
std::uint32_t LoadedObject::undefined_end() const {
    if (gnu_hash_ != nullptr) return gnu_hash_[1];
    return hash_ != nullptr ? hash_[1] : 0;
}

bool LoadedObject::is_hidden(std::uint32_t symbol) const {
    return versions_ != nullptr && (versions_[symbol] & hidden_version) != 0;
}

const char* LoadedObject::version_of(std::uint32_t symbol) const {
    if (versions_ == nullptr) return nullptr;
    const std::uint32_t wanted = versions_[symbol] & ~hidden_version;
    if (wanted < first_version) return nullptr;
    for (const char* at = needed_versions_; at != nullptr;) {
        const auto* library = reinterpret_cast<const ElfW(Verneed)*>(at);
        const char* inner = at + library->vn_aux;
        for (int i = 0; i < library->vn_cnt; ++i) {
            const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(inner);
            if ((version->vna_other & ~hidden_version) == wanted) return strings_ + version->vna_name;
            inner += version->vna_next;
        }
        at = library->vn_next != 0 ? at + library->vn_next : nullptr;
    }
    for (const char* at = own_versions_; at != nullptr;) {
        const auto* version = reinterpret_cast<const ElfW(Verdef)*>(at);
        if (version->vd_ndx == wanted)
            return strings_ + reinterpret_cast<const ElfW(Verdaux)*>(at + version->vd_aux)->vda_name;
        at = version->vd_next != 0 ? at + version->vd_next : nullptr;
    }
    return nullptr;
}

template <typename Accept>
std::uint32_t LoadedObject::find_definition(const char* name, Accept&& accept) const {
    if (symbols_ == nullptr || strings_ == nullptr) return 0;
    const auto fits = [&](std::uint32_t i) {
        return symbols_[i].st_shndx != SHN_UNDEF && std::strcmp(strings_ + symbols_[i].st_name, name) == 0 && accept(i);
    };
    if (gnu_hash_ != nullptr) {
        // nbuckets, first hashed symbol, words of the filter, its shift; filter; buckets; chains.
        const std::uint32_t buckets = gnu_hash_[0];
        const std::uint32_t first = gnu_hash_[1];
        if (buckets == 0) return 0;
        const auto* bucket = gnu_hash_ + 4 + gnu_hash_[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
        const std::uint32_t* chain = bucket + buckets;
        const std::uint32_t hash = gnu_hash_of(name);
        std::uint32_t i = bucket[hash % buckets];
        if (i < first) return 0;
        for (;; ++i) {
            const std::uint32_t stored = chain[i - first];
            if ((stored | 1U) == (hash | 1U) && fits(i)) return i;
            if ((stored & 1U) != 0) return 0;
        }
    }
    if (hash_ == nullptr || hash_[0] == 0) return 0;
    const std::uint32_t* chain = hash_ + 2 + hash_[0];
    for (std::uint32_t i = hash_[2 + sysv_hash_of(name) % hash_[0]]; i != 0; i = chain[i])
        if (fits(i)) return i;
    return 0;
}

void* LoadedObject::define(const char* name, const char* version) const {
    // An object without versions fits every version that is asked for, as with the dynamic linker.
    const std::uint32_t found = find_definition(name, [&](std::uint32_t i) {
        if (versions_ == nullptr) return true;
        if (version == nullptr) return !is_hidden(i);
        const char* own = version_of(i);
        return own == nullptr ? !is_hidden(i) : std::strcmp(own, version) == 0;
    });
    return found != 0 ? reinterpret_cast<void*>(map_->l_addr + symbols_[found].st_value) : nullptr;
}

Mention LoadedObject::mention(const char* name) const {
    Mention result;
    const std::uint32_t own = find_definition(name, [&](std::uint32_t i) { return !is_hidden(i); });
    if (own != 0) {
        result = {true, true, version_of(own), reinterpret_cast<void*>(map_->l_addr + symbols_[own].st_value)};
        return result;
    }
    if (symbols_ == nullptr || strings_ == nullptr) return result;
    const std::uint32_t end = undefined_end();
    for (std::uint32_t i = 1; i < end; ++i)
        if (symbols_[i].st_shndx == SHN_UNDEF && std::strcmp(strings_ + symbols_[i].st_name, name) == 0)
            return {true, false, version_of(i), nullptr};
    return result;
}

namespace {

/// The list's lock is held while `work` runs, in the first visit.
template <typename Work>
void locked(Work&& work) {
    ::dl_iterate_phdr(
        [](dl_phdr_info*, std::size_t, void* given) {
            (*static_cast<std::remove_reference_t<Work>*>(given))();
            return 1;
        },
        &work);
}

const link_map* first_object() {
    const link_map* first = our_map();
    while (first != nullptr && first->l_prev != nullptr) first = first->l_prev;
    return first;
}

struct Place {
    ElfW(Addr) address;
    ElfW(Addr) base;
    ElfW(Addr) dynamic;
    bool found;
};

int look_at_object(dl_phdr_info* info, std::size_t, void* given) {
    auto& place = *static_cast<Place*>(given);
    ElfW(Addr) dynamic = 0;
    bool inside = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = info->dlpi_phdr[i];
        const ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_DYNAMIC) dynamic = begin;
        if (part.p_type == PT_LOAD && place.address >= begin && place.address - begin < part.p_memsz) inside = true;
    }
    if (!inside) return 0;
    place.base = info->dlpi_addr;
    place.dynamic = dynamic;
    place.found = true;
    return 1;
}

}  // namespace

const link_map* our_map() {
    static const link_map* const ours = [] {
        Dl_info info{};
        void* map = nullptr;
        const bool known = ::dladdr1(reinterpret_cast<const void*>(&our_map), &info, &map, RTLD_DL_LINKMAP) != 0;
        return known ? static_cast<const link_map*>(map) : nullptr;
    }();
    return ours;
}

// Not dladdr: it waits for the lock that a dlopen holds while it runs constructors, which may wait for us.
const link_map* object_of(const void* address) {
    Place place{reinterpret_cast<ElfW(Addr)>(address), 0, 0, false};
    if (address == nullptr || ::dl_iterate_phdr(look_at_object, &place) == 0) return nullptr;
    const link_map* result = nullptr;
    locked([&] {
        for (const link_map* map = first_object(); map != nullptr; map = map->l_next)
            if (map->l_addr == place.base && reinterpret_cast<ElfW(Addr)>(map->l_ld) == place.dynamic) result = map;
    });
    return result;
}

void with_objects(void (*work)(const link_map* first, void* argument), void* argument) {
    locked([&] { work(first_object(), argument); });
}

}  // namespace ioweir::preload
