/* A second tool of the kind that MPI's profiling interface is for: MPI_x counts and goes on to PMPI_x. Preloaded before and
   after ioweir by test_coexistence.py. How it finds PMPI_x: linked (the default), -DBY_NEXT with dlsym(RTLD_NEXT, ...),
   -DBY_HANDLE with dlsym on the MPI library's own handle, and there MPI_x itself, which must not lead back to this tool. At
   MPI_Finalize each rank writes its counts to $TOOL_COUNTS.RANK. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { opens, closes, writes, reads, begins, waits, inits, kinds };
static long counts[kinds];
static int depth;

#if defined(BY_NEXT)
static void* real_of(const char* name) { return dlsym(RTLD_NEXT, name); }
#define REAL(name) ((__typeof__(&MPI_##name))found(real_of("PMPI_" #name)))
#elif defined(BY_HANDLE)
static void* real_of(const char* name) {
    static void* library;
    if (library == NULL) library = dlopen(MPI_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, name) : NULL;
}
#define REAL(name) ((__typeof__(&MPI_##name))found(real_of("MPI_" #name)))
#else
#define REAL(name) (&PMPI_##name)
#endif

__attribute__((unused)) static void* found(void* function) {
    if (function != NULL) return function;
    fprintf(stderr, "the tool does not find a function of MPI\n");
    abort();
}

#define WRAP(kind, name, declaration, arguments)                     \
    int MPI_##name declaration {                                     \
        if (++depth > 20) abort(); /* somebody leads back to here */ \
        ++counts[kind];                                              \
        int code = REAL(name) arguments;                             \
        --depth;                                                     \
        return code;                                                 \
    }

WRAP(inits, Init, (int* argc, char*** argv), (argc, argv))
WRAP(opens, File_open, (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* fh),
     (comm, name, mode, info, fh))
WRAP(closes, File_close, (MPI_File * fh), (fh))
#define POSITIONED(kind, name, buffer)                                                                            \
    WRAP(kind, name, (MPI_File fh, MPI_Offset at, buffer data, int count, MPI_Datatype type, MPI_Status* status), \
         (fh, at, data, count, type, status))
#define POINTED(kind, name, buffer)                                                                \
    WRAP(kind, name, (MPI_File fh, buffer data, int count, MPI_Datatype type, MPI_Status* status), \
         (fh, data, count, type, status))
POSITIONED(writes, File_write_at, const void*)
POSITIONED(writes, File_write_at_all, const void*)
POSITIONED(reads, File_read_at, void*)
POSITIONED(reads, File_read_at_all, void*)
POINTED(writes, File_write, const void*)
POINTED(writes, File_write_all, const void*)
POINTED(reads, File_read, void*)
POINTED(reads, File_read_all, void*)
WRAP(begins, File_iwrite_at,
     (MPI_File fh, MPI_Offset at, const void* data, int count, MPI_Datatype type, MPI_Request* request),
     (fh, at, data, count, type, request))
WRAP(begins, File_iread_at,
     (MPI_File fh, MPI_Offset at, void* data, int count, MPI_Datatype type, MPI_Request* request),
     (fh, at, data, count, type, request))
WRAP(waits, Wait, (MPI_Request * request, MPI_Status* status), (request, status))
WRAP(waits, Waitall, (int count, MPI_Request requests[], MPI_Status* statuses), (count, requests, statuses))

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", getenv("TOOL_COUNTS"), rank);
    FILE* out = fopen(path, "w");
    if (out == NULL) abort();
    for (int i = 0; i < kinds; ++i) fprintf(out, "%ld ", counts[i]);
    fclose(out);
    return REAL(Finalize)();
}
