// Finding the functions behind the hooks: the next definition, and the program's MPI library.
#pragma once

namespace ioweir::preload {

/// The real dlsym. Ours is a hook, so nothing in the preload may call dlsym by name.
using Dlsym = void* (*)(void* handle, const char* name);
Dlsym real_dlsym();

/// The definition after ours in the global search order; null when there is none (MPI loaded RTLD_LOCAL, or not at all).
void* find_next(const char* name);

/// The loaded MPI library: found on first use after it was loaded. Null when the process has none.
void* mpi_library();
void* find_in_mpi(const char* name);
/// File name of the library, without directory; empty when there is none.
const char* mpi_library_name();

/// A data object as the whole program sees it.
void* find_program_object(const char* name);

/// A data object of the MPI library. A program linked with copy relocations has its own copy of it, which then is the
/// one that counts: so the global scope comes first.
void* find_mpi_object(const char* name);

/// What an outermost call of `name` goes to: the next definition, else the MPI library's own.
void* find_behind(const char* name);

}  // namespace ioweir::preload
