/* FOLDER MICROSECONDS: every rank writes through threads that come and go, so that chunks of the trace are filled, ended and handed
   on, and counts each write before and after it in a shared file. The last rank is killed so long after all have begun. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(what)                                 \
    do {                                           \
        if (!(what)) {                             \
            fprintf(stderr, "%s failed\n", #what); \
            abort();                               \
        }                                          \
    } while (0)

enum { SLOTS = 3 };

struct counts {
    uint64_t begun, done;
};
static volatile struct counts* counts;
static int files[SLOTS];

static int create(const char* folder, const char* name, int rank, int slot) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d.%d", folder, name, rank, slot);
    const int file = open(path, O_CREAT | O_RDWR, 0600);
    MUST(file >= 0);
    return file;
}

/* A life of a thread: longer ones fill chunks, short ones hand them on. */
static void* life(void* argument) {
    const long slot = (long)(intptr_t)argument;
    volatile struct counts* mine = &counts[slot];
    uint64_t length = slot == 0 ? 20000 : 1 + mine->done % 97;
    while (length-- > 0) {
        const uint64_t number = mine->begun;
        mine->begun = number + 1;
        MUST(pwrite(files[slot], &number, 8, (off_t)(8 * number)) == 8);
        mine->done = number + 1;
    }
    return NULL;
}

static void* lives(void* argument) {
    for (;;) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, life, argument) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char** argv) {
    MUST(argc == 3);
    int rank, ranks, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int side = create(argv[1], "counts", rank, 0);
    MUST(ftruncate(side, 4096) == 0);
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, side, 0);
    MUST(counts != MAP_FAILED);
    for (int slot = 0; slot < SLOTS; ++slot) files[slot] = create(argv[1], "data", rank, slot);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long slot = 0; slot < SLOTS; ++slot) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, lives, (void*)(intptr_t)slot) == 0);
    }
    if (rank == ranks - 1) {
        usleep((useconds_t)atol(argv[2]));
        raise(SIGKILL);
    }
    for (;;) pause();
}
