/* Threads that write side by side, and how much of a trace file is mapped while they do: mapped DIRECTORY THREADS ROUNDS
   CALLS. In each round every thread makes CALLS writes of 8 bytes into a file of its own; between rounds, with all threads
   there, the sum of the mappings of node files is taken. Prints the largest. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* directory;
static int threads, rounds, calls;
static pthread_barrier_t barrier;

static void* work(void* number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/thread.%ld", directory, (long)number);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0) exit(9);
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < calls; ++i)
            if (write(fd, "8 bytes!", 8) != 8) exit(9);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    close(fd);
    return NULL;
}

static long mapped_bytes(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[8192];
    long sum = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end;
        if (strstr(line, ".iowt") != NULL && sscanf(line, "%lx-%lx", &begin, &end) == 2) sum += (long)(end - begin);
    }
    fclose(maps);
    return sum;
}

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    directory = argv[1];
    threads = atoi(argv[2]);
    rounds = atoi(argv[3]);
    calls = atoi(argv[4]);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    pthread_t* ids = calloc((size_t)threads, sizeof *ids);
    for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, (void*)i);
    long most = 0;
    for (int round = 0; round < rounds; ++round) {
        pthread_barrier_wait(&barrier);
        const long now = mapped_bytes();
        if (now > most) most = now;
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    printf("%ld\n", most);
    return 0;
}
