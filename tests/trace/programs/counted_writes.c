/* A bad tracer: every pwrite takes memory and a lock. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
    void* volatile place = malloc(16);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    free(place);
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}
