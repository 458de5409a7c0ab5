// Opens the back end that fits the program's MPI library; it lies beside the preload.
#include "preload/back_end_loader.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

#include "preload/real_symbols.hpp"

namespace ioweir::preload {
namespace {

struct Notes {
    bool linked = false;
    bool interposing = false;
};

/// The main program comes first; one look at its notes is enough.
int read_notes(dl_phdr_info* info, std::size_t, void* argument) {
    auto& notes = *static_cast<Notes*>(argument);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_NOTE) continue;
        const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
        const std::size_t alignment = segment.p_align == 8 ? 8 : 4;
        const auto padded = [alignment](std::size_t size) { return (size + alignment - 1) / alignment * alignment; };
        for (const char* end = at + segment.p_memsz; at + sizeof(ElfW(Nhdr)) <= end;) {
            ElfW(Nhdr) head;
            std::memcpy(&head, at, sizeof head);
            const char* name = at + sizeof head;
            if (head.n_namesz == sizeof note_owner && std::memcmp(name, note_owner, sizeof note_owner) == 0) {
                if (head.n_type == note_linked) notes.linked = true;
                if (head.n_type == note_interposing) notes.interposing = true;
            }
            at = name + padded(head.n_namesz) + padded(head.n_descsz);
        }
    }
    return 1;
}

/// The back end for the ABI of the program's MPI library; null for one that is unknown.
///
/// The version text alone does not tell: a library that translates between ABIs (MPItrampoline, Wi4MPI) repeats that of the
/// library beneath it, whose handles are not the program's. So the library itself must define what a program that is compiled
/// for the ABI refers to: in MPI_COMM_WORLD and in MPI_DUP_FN.
const char* kind_of_library(const char* version) {
    // The same library may exist with its own ABI and with the standard's: what the program is linked with decides.
    if (std::strstr(mpi_library_name(), "mpi_abi") != nullptr) return "mpi_abi";
    const auto says = [version](const char* words) { return std::strstr(version, words) != nullptr; };
    if (says("Open MPI")) return find_in_mpi("ompi_mpi_comm_world") != nullptr ? "openmpi" : nullptr;
    if (says("MPICH") || says("Intel(R) MPI") || says("MVAPICH"))
        return find_in_mpi("MPIR_Dup_fn") != nullptr ? "mpich" : nullptr;
    return nullptr;
}

/// Do the program's calls go to another library than the one that was found (Mukautuva's, whose name is not like that of MPI)?
bool another_stands_before() {
    const void* called = find_next("PMPI_File_open");
    return called != nullptr && called != find_in_mpi("PMPI_File_open");
}

}  // namespace

StartBackEnd find_back_end(Problem& problem) {
    using GetVersion = int (*)(char*, int*);
    const auto get_version = reinterpret_cast<GetVersion>(find_in_mpi("PMPI_Get_library_version"));
    if (get_version == nullptr) {
        problem = {"MPI calls are not traced: cannot find the program's MPI library",
                   " (is it linked statically? Then link with the flags of `ioweir env --link`)"};
        return nullptr;
    }
    static char version[16384];  // larger than MPI_MAX_LIBRARY_VERSION_STRING of every MPI
    int length = 0;
    get_version(version, &length);
    const char* kind = another_stands_before() ? nullptr : kind_of_library(version);
    version[std::strcspn(version, "\n")] = '\0';
    if (kind == nullptr) {
        problem = {"MPI calls are not traced: no back end for the ABI of this MPI library:", version};
        return nullptr;
    }
    Dl_info self{};
    ::dladdr(reinterpret_cast<void*>(&find_back_end), &self);
    static char path[4096];
    const char* slash = self.dli_fname != nullptr ? std::strrchr(self.dli_fname, '/') : nullptr;
    const int directory = slash != nullptr ? static_cast<int>(slash - self.dli_fname + 1) : 0;
    std::snprintf(path, sizeof path, "%.*slibioweir_%s.so", directory, self.dli_fname, kind);
    void* handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        static char text[128];  // it goes into the trace as well, the reason with its path does not
        std::snprintf(text, sizeof text,
                      "MPI calls are not traced: cannot load libioweir_%s.so (was ioweir built for this MPI library?)",
                      kind);
        problem = {text, ::dlerror()};
        return nullptr;
    }
    const auto start = reinterpret_cast<StartBackEnd>(real_dlsym()(handle, start_back_end_name));
    if (start == nullptr) problem = {"MPI calls are not traced:", path};
    return start;
}

// Where ioweir is linked in and its hooks are seen by the libraries too, this preload is behind them and sees as much: it
// records, and the other one stands aside. Where only the linker directs calls to them, MPI may be inside the program,
// where a preload sees nothing of it.
bool stands_aside() {
    Notes notes;
    ::dl_iterate_phdr(read_notes, &notes);
    return notes.linked && !notes.interposing;
}

}  // namespace ioweir::preload
