/* Times that a test gives: preloaded behind ioweir and in front of the MPI library, this makes ioweir's own clock go on by what GIVEN_TIMES says
 * for each call, and by what it really takes. GIVEN_TIMES="A B FILE C D": a collective write takes the MPI library A, and a request of the
 * engine B; from the file on whose number is FILE, C and D. Units of 100 s: what calls really take decides nothing beside them.
 * Nobody but ioweir sees these times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { block = 65536, unit_s = 100 };

static atomic_llong passed_s;
static _Thread_local int in_library;
static int library_units, engine_units;

static int is_ioweir(const void* caller) {
    Dl_info info;
    return dladdr(caller, &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, "/libioweir_") != NULL;
}

static void take_file(const char* path) {
    const char* const number = strstr(path, "ckpt_");
    const char* const given = getenv("GIVEN_TIMES");
    int first[2], from, second[2];
    if (number == NULL || given == NULL ||
        sscanf(given, "%d %d %d %d %d", &first[0], &first[1], &from, &second[0], &second[1]) != 5)
        return;
    const int* const now = atoi(number + 5) < from ? first : second;
    library_units = now[0];
    engine_units = now[1];
}

int clock_gettime(clockid_t clock, struct timespec* time) {
    const long failed = syscall(SYS_clock_gettime, clock, time);
    if (failed == 0 && clock == CLOCK_MONOTONIC && is_ioweir(__builtin_return_address(0))) time->tv_sec += passed_s;
    return (int)failed;
}

int MPI_File_open(MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* fh) {
    take_file(path);
    return PMPI_File_open(comm, path, mode, info, fh);
}

int MPI_File_write_at_all(MPI_File fh, MPI_Offset at, const void* data, int count, MPI_Datatype type,
                          MPI_Status* status) {
    ++in_library;
    const int result = PMPI_File_write_at_all(fh, at, data, count, type, status);
    --in_library;
    passed_s += (long long)library_units * unit_s;
    return result;
}

static void written(ssize_t bytes, const void* caller) {
    if (!in_library && bytes >= block && is_ioweir(caller)) passed_s += (long long)engine_units * unit_s;
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t at) {
    const ssize_t done = syscall(SYS_pwrite64, descriptor, data, bytes, at);
    written(done, __builtin_return_address(0));
    return done;
}

ssize_t pwritev(int descriptor, const struct iovec* parts, int count, off_t at) {
    const ssize_t done = syscall(SYS_pwritev, descriptor, parts, count, at, 0L);
    written(done, __builtin_return_address(0));
    return done;
}
