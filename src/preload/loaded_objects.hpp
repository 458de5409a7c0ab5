// The objects that the dynamic linker has loaded: what each defines and refers to, with versions, and what it needs.
// What does not live here: which of several definitions a call belongs to (library_symbols.cpp).
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace ioweir::preload {

/// A name and how an object means it.
struct Mention {
    bool found = false;
    bool defined = false;           ///< the object defines it (else it only refers to it)
    const char* version = nullptr;  ///< null: without a version
    void* address = nullptr;        ///< of the definition
};

/// One object, read from its dynamic section. Valid while it is loaded.
class LoadedObject {
public:
    explicit LoadedObject(const link_map* map);

    /// How the object mentions a symbol: as its own or as another's.
    [[nodiscard]] Mention mention(const char* name) const;
    /// Its definition of a symbol; null when it has none. `version`: the one asked for (null: any that is not hidden).
    [[nodiscard]] void* define(const char* name, const char* version) const;
    /// Calls `visit(name)` for each library it needs, in order.
    template <typename Visit>
    void for_each_needed(Visit&& visit) const {
        if (strings_ == nullptr) return;
        for (const ElfW(Dyn)* entry = map_->l_ld; entry->d_tag != DT_NULL; ++entry)
            if (entry->d_tag == DT_NEEDED) visit(strings_ + entry->d_un.d_val);
    }
    /// Calls `visit(symbol, name)` for each symbol of others that the object can do without.
    template <typename Visit>
    void for_each_weak_reference(Visit&& visit) const {
        if (symbols_ == nullptr || strings_ == nullptr) return;
        const std::uint32_t end = undefined_end();
        for (std::uint32_t i = 1; i < end; ++i)
            if (symbols_[i].st_shndx == SHN_UNDEF && symbols_[i].st_info >> 4 == STB_WEAK)
                visit(i, strings_ + symbols_[i].st_name);
    }
    /// Calls `visit(place)` for each pointer that holds the address of a symbol as it is: what the dynamic linker fills, but for
    /// the targets of calls.
    template <typename Visit>
    void for_each_pointer_to(std::uint32_t symbol, Visit&& visit) const {
        for (std::size_t i = 0; i < relocation_count_; ++i) {
            const ElfW(Rela)& relocation = relocations_[i];
            const std::uint64_t type = relocation.r_info & 0xffff'ffffU;
            if (relocation.r_info >> 32 == symbol && relocation.r_addend == 0 &&
                (type == pointer_relocation || type == table_relocation))
                visit(reinterpret_cast<void**>(map_->l_addr + relocation.r_offset));
        }
    }
    [[nodiscard]] const char* soname() const { return soname_; }

private:
#if defined(__x86_64__)
    static constexpr std::uint64_t pointer_relocation = R_X86_64_64;
    static constexpr std::uint64_t table_relocation = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    static constexpr std::uint64_t pointer_relocation = R_AARCH64_ABS64;
    static constexpr std::uint64_t table_relocation = R_AARCH64_GLOB_DAT;
#endif
    [[nodiscard]] std::uint32_t undefined_end() const;
    [[nodiscard]] const char* version_of(std::uint32_t symbol) const;
    [[nodiscard]] bool is_hidden(std::uint32_t symbol) const;
    /// The definitions of a name, one after the other, until `accept` says yes; 0: none.
    template <typename Accept>
    [[nodiscard]] std::uint32_t find_definition(const char* name, Accept&& accept) const;

    const link_map* map_;
    const char* strings_ = nullptr;
    const char* soname_ = nullptr;
    const ElfW(Sym) * symbols_ = nullptr;
    const std::uint32_t* gnu_hash_ = nullptr;
    const std::uint32_t* hash_ = nullptr;
    const ElfW(Half) * versions_ = nullptr;
    const char* needed_versions_ = nullptr;
    const char* own_versions_ = nullptr;
    const ElfW(Rela) * relocations_ = nullptr;
    std::size_t relocation_count_ = 0;
};

/// The preload itself. Asked first when it is loaded, while no other thread is there.
const link_map* our_map();

/// The object that an address lies in; null when it lies in none.
const link_map* object_of(const void* address);

/// Runs `work(first)` with the first of the list of loaded objects, while nothing is loaded or unloaded. `work` must not
/// load anything and should be short.
void with_objects(void (*work)(const link_map* first, void* argument), void* argument);

}  // namespace ioweir::preload
