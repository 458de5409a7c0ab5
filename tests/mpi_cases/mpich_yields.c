// For tests with more ranks than processors: preloaded into MPICH's ranks, it makes them give way while they wait. Debian's MPICH (ch4
// over UCX) spins instead, and MPIR_CVAR_POLLS_BEFORE_YIELD does not reach that loop. What the programs do stays the same; only the
// order in which ranks get processors differs.
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

enum { polls_before_yield = 20, polls_before_sleep = 200, sleep_ns = 20000 };

/// UCX's own: how many events it handled, 0 when there was nothing to do.
__attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
    static unsigned (*real)(void*);
    static __thread int idle_polls;
    if (real == 0) real = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (real == 0) {  // MPICH was loaded by a program that keeps its symbols to itself, as Python does
        void* ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (ucp != 0) real = (unsigned (*)(void*))dlsym(ucp, "ucp_worker_progress");
    }
    if (real == 0) return 0;
    const unsigned events = real(worker);
    if (events > 0) {
        idle_polls = 0;
    } else if (idle_polls > polls_before_sleep) {
        const struct timespec little = {0, sleep_ns};
        nanosleep(&little, 0);
    } else if (++idle_polls > polls_before_yield) {
        sched_yield();
    }
    return events;
}
