// The objects that the dynamic linker has loaded: what each defines and refers to, with versions, and what it needs.
// What does not live here: which of several definitions a call belongs to (library_symbols.cpp).
#pragma once

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
    [[nodiscard]] const char* soname() const { return soname_; }

private:
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
};

/// The preload itself. Asked first when it is loaded, while no other thread is there.
const link_map* our_map();

/// The object that an address lies in; null when it lies in none.
const link_map* object_of(const void* address);

/// Runs `work(first)` with the first of the list of loaded objects, while nothing is loaded or unloaded. `work` must not
/// load anything and should be short.
void with_objects(void (*work)(const link_map* first, void* argument), void* argument);

}  // namespace ioweir::preload
