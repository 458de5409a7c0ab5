/* Stands for an MPI library of an ABI that ioweir has no back end for; it does a program's calls for a single rank by itself.
   TEXT is its version text: with that of another library in it, it is like one that translates for that library. BENEATH, where
   it is given, is a library that it loads, as the translators do. OPEN_MPIS and MPICHS give it a name of that ABI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other_mpi.h"

#define BOTH(name, arguments) int name arguments __attribute__((weak, alias("P" #name)))

#ifdef OPEN_MPIS
char ompi_mpi_comm_world[512];
#endif
#ifdef MPICHS
int MPIR_Dup_fn(void) { return MPI_SUCCESS; }
#endif

int PMPI_Init(int* argc, char*** argv) {
    (void)argc, (void)argv;
#ifdef BENEATH
    if (dlopen(BENEATH, RTLD_LAZY | RTLD_GLOBAL) == NULL) return 1;
#endif
    return MPI_SUCCESS;
}

int PMPI_Finalize(void) { return MPI_SUCCESS; }

int PMPI_Get_library_version(char* version, int* length) {
    strcpy(version, TEXT);
    *length = (int)strlen(version);
    return MPI_SUCCESS;
}

int PMPI_File_open(MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* file) {
    if (comm != MPI_COMM_WORLD || mode != MPI_MODE_CREATE_AND_WRITE || info != MPI_INFO_NULL) return 2;
    const int fd = open(path, O_CREAT | O_WRONLY, 0666);
    *file = ((MPI_File)fd << 8) + 1;
    return fd < 0;
}

int PMPI_File_write_at_all(MPI_File file, MPI_Offset at, const void* data, int count, MPI_Datatype type,
                           MPI_Status* status) {
    if ((file & 0xff) != 1 || type != MPI_BYTE) return 3;
    memset(status, 0, sizeof *status);
    return pwrite((int)(file >> 8), data, (size_t)count, at) != count;
}

int PMPI_File_close(MPI_File* file) {
    const int fd = (int)(*file >> 8);
    *file = MPI_FILE_NULL;
    return close(fd) != 0;
}

BOTH(MPI_Init, (int* argc, char*** argv));
BOTH(MPI_Finalize, (void));
BOTH(MPI_Get_library_version, (char* version, int* length));
BOTH(MPI_File_open, (MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* file));
BOTH(MPI_File_write_at_all,
     (MPI_File file, MPI_Offset at, const void* data, int count, MPI_Datatype type, MPI_Status* status));
BOTH(MPI_File_close, (MPI_File * file));
