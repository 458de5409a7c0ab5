/* Another tool of its own: counts and passes on pwrite, MPI_File_write_at and PMPI_File_write_at. Writes its counts at the
   end to the file $OTHER_TOOL.RANK. Preloaded before and after ioweir by test_hostile.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int posix_calls, mpi_calls, pmpi_calls, depth;

static void* behind(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (found == NULL) abort();
    return found;
}

static ssize_t count_pwrite(const char* name, int fd, const void* data, size_t count, off_t offset) {
    ssize_t (*real)(int, const void*, size_t, off_t) = behind(name);
    ++posix_calls;
    return real(fd, data, count, offset);
}
ssize_t pwrite(int fd, const void* data, size_t count, off_t offset) {
    return count_pwrite("pwrite", fd, data, count, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t count, off_t offset) {
    return count_pwrite("pwrite64", fd, data, count, offset);
}

typedef int (*WriteAt)(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*);
static int write_at(const char* name, int* calls, MPI_File file, MPI_Offset offset, const void* data, int count,
                    MPI_Datatype type, MPI_Status* status) {
    if (++depth > 10) abort(); /* somebody recurses */
    ++*calls;
    int code = ((WriteAt)behind(name))(file, offset, data, count, type, status);
    --depth;
    return code;
}
int MPI_File_write_at(MPI_File file, MPI_Offset offset, const void* data, int count, MPI_Datatype type,
                      MPI_Status* status) {
    return write_at("MPI_File_write_at", &mpi_calls, file, offset, data, count, type, status);
}
int PMPI_File_write_at(MPI_File file, MPI_Offset offset, const void* data, int count, MPI_Datatype type,
                       MPI_Status* status) {
    return write_at("PMPI_File_write_at", &pmpi_calls, file, offset, data, count, type, status);
}

__attribute__((destructor)) static void say(void) {
    const char* prefix = getenv("OTHER_TOOL");
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    if (prefix == NULL || rank == NULL || mpi_calls + pmpi_calls == 0) return;
    char path[4096];
    snprintf(path, sizeof path, "%s.%s", prefix, rank);
    FILE* out = fopen(path, "w");
    if (out == NULL) return;
    fprintf(out, "%d %d %d\n", posix_calls, mpi_calls, pmpi_calls);
    fclose(out);
}
