// libioweir_trace.a: what lies behind the hooks, which the linker puts in front of the program's calls (`ld --wrap`).
//
// In a program with shared libraries ioweir_interpose.o is linked in too: it defines the functions under their own names, so
// that the libraries' calls arrive here as well. Then the real functions are the next ones in the search order. Without
// it (fully static programs, or MPI linked from an archive) they are what the linker calls __real_X.
// What does not live here: the hooks themselves, which are the preload's (tracer/hooks, preload), renamed when the archive
// is made (CMakeLists.txt).
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstring>

#include "preload/back_end_loader.hpp"
#include "preload/real_symbols.hpp"

#pragma weak dlsym

namespace {
struct RealFunction {
    const char* name;
    void (*function)();
};
}  // namespace

#if defined(IOWEIR_LINKED_MPI)
#include "ioweir_generated/linked_mpi_reals.inc"
extern "C" int ioweir_back_end_start(const ioweir::preload::Services* services, char* message, std::size_t capacity);
#else
#include "ioweir_generated/linked_posix_reals.inc"
#endif

extern "C" {
// Asked for by name, so that the linker does not leave the archive out.
extern const char ioweir_linked[];
const char ioweir_linked[] = "ioweir is linked in";
extern const char ioweir_interposing __attribute__((weak, visibility("hidden")));
}

// ELF notes, for those who look at the program from outside: see preload/back_end_loader.hpp.
#if defined(__aarch64__)
#define IOWEIR_NOTE_TYPE "%note"
#else
#define IOWEIR_NOTE_TYPE "@note"
#endif
#define IOWEIR_NOTE(number)                                                                           \
    __asm__(".pushsection .note.ioweir, \"a\", " IOWEIR_NOTE_TYPE "\n.balign 4\n.long 7, 0, " #number \
            "\n.asciz \"ioweir\"\n.balign 4\n"                                                        \
            ".popsection\n");
IOWEIR_NOTE(0x101)
#if defined(IOWEIR_LINKED_MPI)
IOWEIR_NOTE(0x103)
#endif

namespace ioweir::preload {
namespace {

bool interposing() { return &ioweir_interposing != nullptr && &dlsym != nullptr; }

int look_for_preload(dl_phdr_info* info, std::size_t, void* argument) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "libioweir_preload.so") == nullptr) return 0;
    *static_cast<bool*>(argument) = true;
    return 1;
}

}  // namespace

void* find_next(const char* name) {
    if (interposing()) return ::dlsym(RTLD_NEXT, name);
    for (const RealFunction& real : real_functions)
        if (std::strcmp(real.name, name) == 0) return reinterpret_cast<void*>(real.function);
    return nullptr;
}

void* find_in_mpi(const char* name) { return find_next(name); }
void* find_behind(const char* name) { return find_next(name); }

// Predefined handles are linked to directly: see mpi/mpi.hpp.
void* find_mpi_object(const char*) { return nullptr; }

void* find_program_object(const char* name) {
    if (std::strcmp(name, "stdin") == 0) return static_cast<void*>(&stdin);
    if (std::strcmp(name, "stdout") == 0) return static_cast<void*>(&stdout);
    return nullptr;
}

StartBackEnd find_back_end([[maybe_unused]] Problem& problem) {
#if defined(IOWEIR_LINKED_MPI)
    return &ioweir_back_end_start;
#else
    problem = {"MPI calls are not traced: the program was linked with the flags for programs without MPI",
               " (`ioweir env --link --mpi none`)"};
    return nullptr;
#endif
}

// A program that runs with other rights than its caller's writes nothing where the caller's environment says (ld.so sees to
// that for preloaded libraries). See back_end_loader.cpp for the rule on two copies.
bool stands_aside() {
    if (::getauxval(AT_SECURE) != 0) return true;
    bool preloaded = false;
    if (interposing()) ::dl_iterate_phdr(look_for_preload, &preloaded);
    return preloaded;
}

}  // namespace ioweir::preload
