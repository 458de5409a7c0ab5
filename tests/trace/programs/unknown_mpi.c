// The library (built with -shared) of unknown_mpi.h, and without LIBRARY the program that calls it.
// Usage of the program: unknown_mpi FILE. It writes 10 times 8 B into FILE.
#include "unknown_mpi.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(LIBRARY)
int PMPI_Get_library_version(char* version, int* length) {
    strcpy(version, "Enigma MPI 7.0");
    *length = (int)strlen(version);
    return 0;
}
int MPI_Get_library_version(char* version, int* length) { return PMPI_Get_library_version(version, length); }
int PMPI_Init(int* argc, char*** argv) {
    (void)argc;
    (void)argv;
    return 0;
}
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int PMPI_File_open(void) { return 1; }  // makes a library one with MPI-IO
int MPI_File_open(void) { return PMPI_File_open(); }
int PMPI_Finalize(void) { return 0; }
int MPI_Finalize(void) { return PMPI_Finalize(); }
#else
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int file = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0666);
    for (int i = 0; i < 10; ++i)
        if (write(file, "bbbbbbbb", 8) != 8) return 3;
    close(file);
    return MPI_Finalize();
}
#endif
