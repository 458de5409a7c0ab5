#include "tracer/ring/call_site.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/raw_syscall.hpp"
#include "ioweir_generated/records.hpp"
#include "tracer/ring/paths.hpp"
#include "tracer/ring/process.hpp"

extern "C" {
// Where this library lies: its own calls are no part of a site.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace ioweir::tracer {
namespace {

// A program has some hundreds of places that reach files. The table is a power of two, and kept at most three quarters full.
constexpr std::uint32_t table_size = 1U << 15;
constexpr std::uint32_t most_sites = table_size / 4 * 3;
constexpr int most_modules = 2048;
constexpr std::uint16_t unknown_module = 0xffff;
constexpr std::size_t path_bytes = 4096;
constexpr int most_scripts = 1024;
/// In the place of a build id: the module is a file of Python code, and addresses in it are lines.
constexpr char python_mark[] = {'P', 'y'};

struct SiteSlot {
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint32_t> site;
};

/// An executable or library as it lies in memory.
struct LoadedModule {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t bias;  // load address minus the address in its file
    std::uint16_t number;
    bool ours;
};

/// How often the loader has added and removed modules.
struct Changes {
    unsigned long long adds;
    unsigned long long subs;
    friend bool operator==(const Changes&, const Changes&) = default;
};

/// The modules at one moment. Never changed once it is published; an outdated one stays, since somebody may be reading it.
struct Modules {
    Changes changes;
    int count;
    LoadedModule at[most_modules];
};

/// A file of Python code, and its number among the modules.
struct Script {
    std::uint64_t hash;
    std::uint16_t number;
};

struct State {
    SiteSlot* table{};
    std::atomic<const Modules*> modules{};
    std::atomic<std::uint32_t> sites{};
    std::atomic<std::uint32_t> next_module{};
    std::atomic_flag listing{};
    std::atomic<bool> full_noted{};
    FindFunction find{};
    std::atomic_flag naming_script{};
    Script scripts[most_scripts]{};
    int script_count{};
};
constinit State state;

// -- modules ----------------------------------------------------------------------------------------------------------

struct Listing {
    const Modules* before;
    Modules* out;
};

/// The GNU build id in a module's notes; how many bytes there are.
std::uint32_t build_id_of(const dl_phdr_info& info, char* out, std::size_t capacity) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        if (header.p_type != PT_NOTE || header.p_align > 8) continue;
        const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
        const char* const end = at + header.p_memsz;
        const std::size_t align = header.p_align == 8 ? 8 : 4;
        while (static_cast<std::size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
            const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
            const std::size_t name = (note->n_namesz + 3U) & ~std::size_t{3};
            const std::size_t size = (sizeof *note + name + note->n_descsz + align - 1) / align * align;
            if (size > static_cast<std::size_t>(end - at)) break;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(note + 1, "GNU", 4) == 0) {
                const std::size_t bytes = note->n_descsz < capacity ? note->n_descsz : capacity;
                std::memcpy(out, reinterpret_cast<const char*>(note + 1) + name, bytes);
                return static_cast<std::uint32_t>(bytes);
            }
            at += size;
        }
    }
    return 0;
}

void describe(const dl_phdr_info& info, std::uint16_t number) {
    char path[path_bytes];
    std::size_t length = 0;
    if (info.dlpi_name == nullptr || info.dlpi_name[0] == '\0') {
        const ssize_t got = raw::readlink("/proc/self/exe", path, sizeof path);
        length = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (length != 0) length = shown_path(path, length, sizeof path);
    } else if (std::strchr(info.dlpi_name, '/') == nullptr) {  // no file: linux-vdso.so.1
        length = std::strlen(info.dlpi_name);
        std::memcpy(path, info.dlpi_name, length);
    } else if (absolute_path(AT_FDCWD, info.dlpi_name, path, sizeof path)) {
        length = std::strlen(path);
        // What lies in the system's folders is nobody's secret, and a report has to know the MPI library among them.
        if (!is_system_path(path)) length = shown_path(path, length, sizeof path);
    }
    format::ModuleRecord record{};
    record.module = number;
    record.build_id_bytes = build_id_of(info, record.build_id, sizeof record.build_id);
    write_record(&record, sizeof record, record.record_kind, path, length);
}

bool is_back_end(const char* name) {
    const char* slash = name != nullptr ? std::strrchr(name, '/') : nullptr;
    return slash != nullptr && std::strncmp(slash, "/libioweir_", 11) == 0;
}

Changes changes_of(const dl_phdr_info& info, std::size_t size) {
    if (size < offsetof(dl_phdr_info, dlpi_subs) + sizeof info.dlpi_subs) return {};
    return {info.dlpi_adds, info.dlpi_subs};
}

int list_module(dl_phdr_info* info, std::size_t size, void* argument) {
    auto& listing = *static_cast<Listing*>(argument);
    Modules& out = *listing.out;
    out.changes = changes_of(*info, size);
    if (out.count == most_modules) return 1;
    LoadedModule module{~std::uintptr_t{0}, 0, info->dlpi_addr, unknown_module, is_back_end(info->dlpi_name)};
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        if (begin < module.begin) module.begin = begin;
        if (begin + header.p_memsz > module.end) module.end = begin + header.p_memsz;
    }
    if (module.begin >= module.end) return 0;
    if (listing.before != nullptr)
        for (int i = 0; i < listing.before->count; ++i) {
            const LoadedModule& known = listing.before->at[i];
            if (known.begin == module.begin && known.end == module.end &&
                listing.before->changes.subs == out.changes.subs)
                module.number = known.number;
        }
    if (module.number == unknown_module && !module.ours) {
        const std::uint32_t number = state.next_module.fetch_add(1);
        if (number < unknown_module) {
            module.number = static_cast<std::uint16_t>(number);
            describe(*info, module.number);
        }
    }
    out.at[out.count++] = module;
    return 0;
}

int read_changes(dl_phdr_info* info, std::size_t size, void* argument) {
    *static_cast<Changes*>(argument) = changes_of(*info, size);
    return 1;  // the first module says it
}

/// The modules that are loaded now. Asks the loader, so only for a site that is new.
const Modules* current_modules() {
    const Modules* known = state.modules.load(std::memory_order_acquire);
    Changes changes{};
    ::dl_iterate_phdr(read_changes, &changes);
    if (known != nullptr && known->changes == changes) return known;
    // One thread lists; another one meanwhile makes do with what is known.
    if (state.listing.test_and_set(std::memory_order_acquire)) return known;
    void* memory = ::mmap(nullptr, sizeof(Modules), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        auto* fresh = new (memory) Modules;
        fresh->count = 0;
        Listing listing{known, fresh};
        ::dl_iterate_phdr(list_module, &listing);
        state.modules.store(fresh, std::memory_order_release);
        known = fresh;
    }
    state.listing.clear(std::memory_order_release);
    return known;
}

const LoadedModule* module_of(const Modules* modules, std::uintptr_t address) {
    if (modules == nullptr) return nullptr;
    for (int i = 0; i < modules->count; ++i)
        if (address >= modules->at[i].begin && address < modules->at[i].end) return &modules->at[i];
    return nullptr;
}

// -- Python ----------------------------------------------------------------------------------------------------------

std::uint64_t hash_of(const char* text) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325ULL;
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x1'0000'01B3ULL;
    return hash;
}

/// The number of a file of Python code among the modules; unknown_module where it cannot have one now.
std::uint16_t script_number(const char* file) {
    if (state.naming_script.test_and_set(std::memory_order_acquire)) return unknown_module;
    const std::uint64_t hash = hash_of(file);
    std::uint16_t number = unknown_module;
    for (int i = 0; i < state.script_count && number == unknown_module; ++i)
        if (state.scripts[i].hash == hash) number = state.scripts[i].number;
    if (number == unknown_module && state.script_count < most_scripts) {
        const std::uint32_t next = state.next_module.fetch_add(1);
        char path[path_bytes];
        if (next < unknown_module && absolute_path(AT_FDCWD, file, path, sizeof path)) {
            number = static_cast<std::uint16_t>(next);
            const std::size_t length = shown_path(path, std::strlen(path), sizeof path);
            format::ModuleRecord record{};
            record.module = number;
            record.build_id_bytes = sizeof python_mark;
            std::memcpy(record.build_id, python_mark, sizeof python_mark);
            write_record(&record, sizeof record, record.record_kind, path, length);
            state.scripts[state.script_count++] = {hash, number};
        }
    }
    state.naming_script.clear(std::memory_order_release);
    return number;
}

// -- the walk ---------------------------------------------------------------------------------------------------------

struct Walk {
    std::uintptr_t addresses[site_depth];
    int count;
    std::uintptr_t stack;  // stack pointer of the call before: it only grows, or these are no frames
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* argument) {
    auto& walk = *static_cast<Walk*>(argument);
    int is_first_of_handler = 0;
    auto address = static_cast<std::uintptr_t>(_Unwind_GetIPInfo(context, &is_first_of_handler));
    const auto stack = static_cast<std::uintptr_t>(_Unwind_GetCFA(context));
    if (address == 0 || stack < walk.stack) return _URC_NORMAL_STOP;
    walk.stack = stack;
    // A return address may be the next line's, or the next function's. What a signal interrupted is exact.
    if (is_first_of_handler == 0) --address;
    if (address >= reinterpret_cast<std::uintptr_t>(__ehdr_start) && address < reinterpret_cast<std::uintptr_t>(_end))
        return _URC_NO_REASON;
    walk.addresses[walk.count++] = address;
    return walk.count == site_depth ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

std::uint64_t hash_of(const Walk& walk) {
    std::uint64_t hash = 0x9E37'79B9'7F4A'7C15ULL;
    for (int i = 0; i < walk.count; ++i) {
        hash ^= walk.addresses[i];
        hash *= 0xBF58'476D'1CE4'E5B9ULL;
        hash ^= hash >> 31;
    }
    return hash != 0 ? hash : 1;  // 0 is a free slot
}

/// Names a new site; 0 when there is no room for its record.
std::uint32_t write_site(const Walk& walk, const PythonLine& python) {
    if (state.sites.load(std::memory_order_relaxed) >= most_sites) {
        if (!state.full_noted.exchange(true))
            process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::untraced), "", most_sites,
                                "more call sites than the table holds; further ones are unknown");
        return 0;
    }
    const Modules* modules = current_modules();
    std::uint64_t words[site_depth + 1];
    std::uint32_t count = 0;
    if (python.line != 0)
        if (const std::uint16_t number = script_number(python.file); number != unknown_module)
            words[count++] = std::uint64_t{number} << 48 | python.line;
    for (int i = 0; i < walk.count; ++i) {
        const LoadedModule* module = module_of(modules, walk.addresses[i]);
        if (module != nullptr && module->ours) continue;
        const std::uintptr_t address = module != nullptr ? walk.addresses[i] - module->bias : walk.addresses[i];
        const std::uint64_t number = module != nullptr ? module->number : unknown_module;
        words[count++] = number << 48 | (address & 0xffff'ffff'ffffU);
    }
    format::SiteRecord record{};
    record.site = state.sites.fetch_add(1, std::memory_order_relaxed) + 1;
    record.frames = count;
    return write_record(&record, sizeof record, record.record_kind, words, count * sizeof words[0]) ? record.site : 0;
}

}  // namespace

bool prepare_call_sites(FindFunction find) {
    void* memory =
        ::mmap(nullptr, table_size * sizeof(SiteSlot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    state.table = static_cast<SiteSlot*>(memory);
    state.find = find;
    return true;
}

std::uint32_t call_site() {
    const int saved_errno = errno;
    Walk walk;
    walk.count = 0;
    walk.stack = 0;
    _Unwind_Backtrace(step, &walk);
    std::uint32_t site = 0;
    PythonLine python;
    if (python_is_there()) find_python_line(python);
    std::uint64_t hash = hash_of(walk);
    if (python.line != 0) hash ^= (hash_of(python.file) + python.line) * 0x9E37'79B9'7F4A'7C15ULL;
    hash += hash == 0;
    for (std::uint32_t probe = 0; walk.count != 0 && probe < table_size; ++probe) {
        SiteSlot& slot = state.table[(hash + probe) % table_size];
        std::uint64_t there = slot.hash.load(std::memory_order_acquire);
        if (there == 0 && (state.sites.load(std::memory_order_relaxed) >= most_sites ||
                           slot.hash.compare_exchange_strong(there, hash)))
            there = hash;
        if (there != hash) continue;
        site = slot.site.load(std::memory_order_acquire);
        if (site == 0) {
            // New, or another thread (or, before a fork, the parent's other thread) is about to name it: naming it twice
            // does no harm, and nobody waits.
            look_for_python(state.find);
            site = write_site(walk, python);
            std::uint32_t none = 0;
            if (site != 0 && slot.hash.load(std::memory_order_relaxed) == hash)
                slot.site.compare_exchange_strong(none, site);
        }
        break;
    }
    errno = saved_errno;
    return site;
}

}  // namespace ioweir::tracer
