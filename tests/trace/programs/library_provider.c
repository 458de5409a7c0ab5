/* A library of one kind of its own: H5Dopen1 says which one it is (WHICH), through the result; with -DOLD it lacks what
   HDF5 has since 1.10. With -DCALLS it is a library above it instead: reach_N() calls H5Dopen1 and changes the result,
   jump_N() ends in the call; with -DWHEN_LOADED it calls while it is being loaded. With -DTHROUGH it is a library above
   that one, whose far_N() calls jump_N(). */
#include <stdint.h>
typedef int64_t hid_t;
hid_t H5Dopen1(hid_t location, const char* name);
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
#if defined(THROUGH)
hid_t NAME(jump_, THROUGH)(void);
hid_t NAME(far_, THROUGH)(void) { return NAME(jump_, THROUGH)() + 2; }
#elif defined(CALLS)
hid_t NAME(reach_, CALLS)(void) { return H5Dopen1(1000, "x") + 1; }
hid_t NAME(jump_, CALLS)(void) { return H5Dopen1(1000, "x"); }
#ifdef WHEN_LOADED
__attribute__((constructor)) static void when_loaded(void) {
    for (int i = 0; i < 100; ++i) H5Dopen1(1000, "x");
}
#endif
#else
hid_t H5Dopen1(hid_t location, const char* name) {
    (void)name;
    return location + 100 * WHICH;
}
int H5get_libversion(unsigned* a, unsigned* b, unsigned* c) {
    *a = 1;
    *b = 10;
    *c = 0;
    return 0;
}
int H5Iget_type(hid_t id) {
    (void)id;
    return -1;
}
#ifndef OLD
int H5Dflush(hid_t id) {
    (void)id;
    return 0;
}
#endif
/* A hooked function of another kind that leaves by a jump into the first. */
int nc_sync(int id) { return (int)H5Dopen1(id, "x"); }
const char* nc_inq_libvers(void) { return "stand-in"; }
#endif
