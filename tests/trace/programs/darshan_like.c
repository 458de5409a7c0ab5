/* Interposes as Darshan 3.x does: POSIX calls and HDF5 calls by dlsym(RTLD_NEXT, ...) at the first call, MPI_File_x by
   dlsym(RTLD_NEXT, "PMPI_File_x"), and a log that it writes with MPI-IO of its own inside MPI_Finalize. No more than the
   interposition is like Darshan. Counts calls and bytes of files below $TOOL_FILES; the log is $TOOL_COUNTS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { posix_opens, posix_writes, posix_bytes, posix_reads, mpi_opens, mpi_writes, mpi_reads, hdf5_calls, kinds };
static long counts[kinds];
static char watched[4096]; /* by descriptor */

#define MAP(name)                                     \
    static __typeof__(&name) real;                    \
    if (real == NULL) real = dlsym(RTLD_NEXT, #name); \
    if (real == NULL) abort()

static int is_watched(int fd) { return fd >= 0 && fd < (int)sizeof watched && watched[fd]; }

static int note_open(int fd, const char* path) {
    const char* folder = getenv("TOOL_FILES");
    if (fd >= 0 && fd < (int)sizeof watched && folder != NULL && strncmp(path, folder, strlen(folder)) == 0) {
        watched[fd] = 1;
        ++counts[posix_opens];
    }
    return fd;
}
static mode_t mode_of(int flags, va_list list) { return (flags & O_CREAT) ? va_arg(list, mode_t) : 0; }

#define OPEN(name)                                       \
    int name(const char* path, int flags, ...) {         \
        MAP(name);                                       \
        va_list list;                                    \
        va_start(list, flags);                           \
        mode_t mode = mode_of(flags, list);              \
        va_end(list);                                    \
        return note_open(real(path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)
int close(int fd) {
    MAP(close);
    if (is_watched(fd)) watched[fd] = 0;
    return real(fd);
}
static ssize_t note_write(int fd, ssize_t bytes) {
    if (is_watched(fd)) {
        ++counts[posix_writes];
        if (bytes > 0) counts[posix_bytes] += bytes;
    }
    return bytes;
}
static ssize_t note_read(int fd, ssize_t bytes) {
    if (is_watched(fd)) ++counts[posix_reads];
    return bytes;
}
ssize_t write(int fd, const void* data, size_t count) {
    MAP(write);
    return note_write(fd, real(fd, data, count));
}
ssize_t pwrite(int fd, const void* data, size_t count, off_t at) {
    MAP(pwrite);
    return note_write(fd, real(fd, data, count, at));
}
ssize_t pwrite64(int fd, const void* data, size_t count, off64_t at) {
    MAP(pwrite64);
    return note_write(fd, real(fd, data, count, at));
}
ssize_t read(int fd, void* data, size_t count) {
    MAP(read);
    return note_read(fd, real(fd, data, count));
}
ssize_t pread(int fd, void* data, size_t count, off_t at) {
    MAP(pread);
    return note_read(fd, real(fd, data, count, at));
}
ssize_t pread64(int fd, void* data, size_t count, off64_t at) {
    MAP(pread64);
    return note_read(fd, real(fd, data, count, at));
}

#define MPI_WRAP(kind, name, declaration, arguments) \
    int MPI_##name declaration {                     \
        MAP(PMPI_##name);                            \
        ++counts[kind];                              \
        return real arguments;                       \
    }
MPI_WRAP(mpi_opens, File_open, (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* fh),
         (comm, name, mode, info, fh))
#define POSITIONED(kind, name, buffer)                                                                                \
    MPI_WRAP(kind, name, (MPI_File fh, MPI_Offset at, buffer data, int count, MPI_Datatype type, MPI_Status* status), \
             (fh, at, data, count, type, status))
#define POINTED(kind, name, buffer)                                                                    \
    MPI_WRAP(kind, name, (MPI_File fh, buffer data, int count, MPI_Datatype type, MPI_Status* status), \
             (fh, data, count, type, status))
POSITIONED(mpi_writes, File_write_at, const void*)
POSITIONED(mpi_writes, File_write_at_all, const void*)
POSITIONED(mpi_reads, File_read_at, void*)
POSITIONED(mpi_reads, File_read_at_all, void*)
POINTED(mpi_writes, File_write, const void*)
POINTED(mpi_writes, File_write_all, const void*)
POINTED(mpi_reads, File_read, void*)
POINTED(mpi_reads, File_read_all, void*)

/* hid_t is 64 bits since HDF5 1.10. */
typedef long long Hid;
extern Hid H5Fcreate(const char*, unsigned, Hid, Hid) __attribute__((weak));
extern int H5Dwrite(Hid, Hid, Hid, Hid, Hid, const void*) __attribute__((weak));
Hid H5Fcreate(const char* name, unsigned flags, Hid create, Hid access) {
    MAP(H5Fcreate);
    ++counts[hdf5_calls];
    return real(name, flags, create, access);
}
int H5Dwrite(Hid set, Hid type, Hid memory, Hid file, Hid plist, const void* data) {
    MAP(H5Dwrite);
    ++counts[hdf5_calls];
    return real(set, type, memory, file, plist, data);
}

/* All ranks' counts in one file, written collectively, after the program's last call. */
int MPI_Finalize(void) {
    MAP(PMPI_Finalize);
    char text[256], line[256];
    int rank, used = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < kinds; ++i) used += snprintf(text + used, sizeof text - used, "%ld ", counts[i]);
    snprintf(line, sizeof line, "%-200s\n", text);
    MPI_File log;
    if (PMPI_File_open(MPI_COMM_WORLD, getenv("TOOL_COUNTS"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &log) !=
        MPI_SUCCESS)
        abort();
    PMPI_File_write_at_all(log, 201 * rank, line, 201, MPI_BYTE, MPI_STATUS_IGNORE);
    PMPI_File_close(&log);
    return real();
}
