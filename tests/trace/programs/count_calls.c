/* A library that counts what must not happen on the tracer's hot path: the heap, locks, stdio, dynamic linking. Loaded
   behind the tracer, so that its calls arrive here as everybody's do. count_start() and count_stop() bracket what is
   counted, in all threads; without this library a program sees neither. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static atomic_int counting;
static atomic_long heap, locks;

void count_start(void) { counting = 1; }
void count_stop(long* heap_calls, long* lock_calls) {
    counting = 0;
    *heap_calls = heap;
    *lock_calls = locks;
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);
#define COUNT(counter) (void)(counting && ++counter)

void* malloc(size_t size) { return COUNT(heap), __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return COUNT(heap), __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return COUNT(heap), __libc_realloc(old, size); }
void* memalign(size_t alignment, size_t size) { return COUNT(heap), __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return COUNT(heap), __libc_memalign(alignment, size); }
int posix_memalign(void** place, size_t alignment, size_t size) {
    COUNT(heap);
    *place = __libc_memalign(alignment, size);
    return *place == NULL ? 12 : 0;
}
void free(void* place) {
    COUNT(heap);
    __libc_free(place);
}

/* The real ones by their other names, which need no lookup. */
extern int old_mutex_lock(pthread_mutex_t*);
extern int old_rwlock_rdlock(pthread_rwlock_t*);
extern int old_rwlock_wrlock(pthread_rwlock_t*);
__asm__(".symver old_mutex_lock, __pthread_mutex_lock@GLIBC_2.2.5");
__asm__(".symver old_rwlock_rdlock, __pthread_rwlock_rdlock@GLIBC_2.2.5");
__asm__(".symver old_rwlock_wrlock, __pthread_rwlock_wrlock@GLIBC_2.2.5");
int pthread_mutex_lock(pthread_mutex_t* mutex) { return COUNT(locks), old_mutex_lock(mutex); }
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return COUNT(locks), old_rwlock_rdlock(lock); }
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return COUNT(locks), old_rwlock_wrlock(lock); }
