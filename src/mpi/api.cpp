// The hidden jumps behind the PMPI_* names of a back end. Only compiled into back ends; tests link the real library.
#include "mpi/api.hpp"

#include "mpi/mpi.hpp"

#define IOWEIR_MPI_CALL(name) extern "C" void* ioweir_call_##name __attribute__((visibility("hidden")));
#include "mpi/calls.def"
#undef IOWEIR_MPI_CALL
#define IOWEIR_MPI_CALL(name) void* ioweir_call_##name = nullptr;
#include "mpi/calls.def"
#undef IOWEIR_MPI_CALL

#if defined(__x86_64__)
#define IOWEIR_JUMP(slot) "jmp *" slot "(%rip)\n"
#define IOWEIR_FUNCTION_TYPE "@function"
#elif defined(__aarch64__)
#define IOWEIR_JUMP(slot) "adrp x16, " slot "\nldr x16, [x16, :lo12:" slot "]\nbr x16\n"
#define IOWEIR_FUNCTION_TYPE "%function"
#else
#error "ioweir runs on x86-64 and aarch64"
#endif

#define IOWEIR_MPI_CALL(name)                                                                                       \
    asm(".text\n.balign 16\n.globl " #name "\n.hidden " #name "\n.type " #name ", " IOWEIR_FUNCTION_TYPE "\n" #name \
        ":\n" IOWEIR_JUMP("ioweir_call_" #name));
#include "mpi/calls.def"
#undef IOWEIR_MPI_CALL

namespace ioweir::mpi {

#if defined(OPEN_MPI)
PredefinedHandles predefined;
#endif

const char* bind(void* (*find)(const char* name), [[maybe_unused]] void* (*find_object)(const char* name)) {
#define IOWEIR_MPI_CALL(name) \
    if ((ioweir_call_##name = find(#name)) == nullptr) return #name;
#define IOWEIR_MPI_CALL_SINCE_4(name) ioweir_call_##name = find(#name);
#include "mpi/calls.def"
#undef IOWEIR_MPI_CALL
#if defined(OPEN_MPI)
#define IOWEIR_OMPI_HANDLE(name) \
    if ((predefined.name = find_object(#name)) == nullptr) return #name;
#include "mpi/handles.def"
#undef IOWEIR_OMPI_HANDLE
#endif
    return nullptr;
}

}  // namespace ioweir::mpi
