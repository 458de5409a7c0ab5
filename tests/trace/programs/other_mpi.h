/* Of an MPI whose ABI is its own: handles are odd numbers of 64 bits, which are neither MPICH's nor Open MPI's. */
#pragma once

#include <stdint.h>

typedef uintptr_t MPI_Comm, MPI_Info, MPI_Datatype, MPI_File;
typedef int64_t MPI_Offset;
typedef struct {
    int64_t own[5];
} MPI_Status;

#define MPI_COMM_WORLD ((MPI_Comm)0x7f01)
#define MPI_INFO_NULL ((MPI_Info)0x7f03)
#define MPI_BYTE ((MPI_Datatype)0x7f05)
#define MPI_FILE_NULL ((MPI_File)0x7f07)
#define MPI_SUCCESS 0
#define MPI_MODE_CREATE_AND_WRITE 0x33

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Get_library_version(char* version, int* length);
int MPI_File_open(MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* file);
int MPI_File_write_at_all(MPI_File file, MPI_Offset at, const void* data, int count, MPI_Datatype type,
                          MPI_Status* status);
int MPI_File_close(MPI_File* file);
