/* A program that is not linked with MPI and loads it itself: loads_mpi LIBRARY local|global DIRECTORY.
   Each rank writes 3 x 40 bytes with MPI_File_write_at_all and reads 2 x 15 back. Functions come from dlsym with the
   library's handle (local) or with RTLD_DEFAULT (global). Compiled with the MPI library's header, for its types only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library, *where;

static void* find(const char* name) {
    void* found = dlsym(where, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return found;
}
#ifdef OPEN_MPI
#define HANDLE(type, open_mpi, other) ((type)find(open_mpi))
#else
#define HANDLE(type, open_mpi, other) other
#endif

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    int global = strcmp(argv[2], "global") == 0;
    library = dlopen(argv[1], RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    where = global ? RTLD_DEFAULT : library;
    int (*init)(int*, char***) = find("MPI_Init");
    int (*comm_rank)(MPI_Comm, int*) = find("MPI_Comm_rank");
    int (*file_open)(MPI_Comm, const char*, int, MPI_Info, MPI_File*) = find("MPI_File_open");
    int (*write_at_all)(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*) =
        find("MPI_File_write_at_all");
    int (*read_at)(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Status*) = find("PMPI_File_read_at");
    int (*file_close)(MPI_File*) = find("MPI_File_close");
    int (*finalize)(void) = find("MPI_Finalize");

    if (init(&argc, &argv) != 0) return 4;
    int rank = -1;
    comm_rank(HANDLE(MPI_Comm, "ompi_mpi_comm_world", MPI_COMM_WORLD), &rank);
    MPI_Datatype byte = HANDLE(MPI_Datatype, "ompi_mpi_byte", MPI_BYTE);
    char path[4096], buffer[64];
    memset(buffer, 'l', sizeof buffer);
    snprintf(path, sizeof path, "%s/loaded", argv[3]);
    MPI_File file;
    if (file_open(HANDLE(MPI_Comm, "ompi_mpi_comm_world", MPI_COMM_WORLD), path, MPI_MODE_CREATE | MPI_MODE_RDWR,
                  HANDLE(MPI_Info, "ompi_mpi_info_null", MPI_INFO_NULL), &file) != 0)
        return 5;
    for (int i = 0; i < 3; ++i)
        if (write_at_all(file, rank * 120 + i * 40, buffer, 40, byte, MPI_STATUS_IGNORE) != 0) return 6;
    for (int i = 0; i < 2; ++i)
        if (read_at(file, rank * 120, buffer, 15, byte, MPI_STATUS_IGNORE) != 0) return 7;
    if (file_close(&file) != 0) return 8;
    finalize();
    return 0;
}
