/* Asks in every way whether some functions are there, and prints the answers: weak references of its own, dlsym with
   RTLD_DEFAULT, and with the handle of the program. asks_for [LIBRARY], which is opened RTLD_LOCAL first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAMES(X)    \
    X(H5Fopen)      \
    X(H5Dwrite)     \
    X(ncmpi_create) \
    X(nc_create) X(MPI_Init) X(MPI_File_open) X(PMPI_File_write_at_c) X(io_uring_submit) X(pwrite) X(nobody_has_this)

#define DECLARE(name) extern int name() __attribute__((weak));
NAMES(DECLARE)

/* A pointer in data that the dynamic linker fills, beside those in the table of addresses. */
#define ENTRY(name) {#name, (int (*)())name},
static struct {
    const char* name;
    int (*function)();
} volatile table[] = {NAMES(ENTRY)};

static const char* words(void* found) {
    const char* problem = dlerror();
    if ((found == NULL) != (problem != NULL)) return "CONTRADICTION";
    if (problem != NULL && strstr(problem, "undefined symbol") == NULL) return "ODD WORDS";
    return found != NULL ? "there" : "no";
}

int main(int argc, char** argv) {
    if (argc > 1 && dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    void* self = dlopen(NULL, RTLD_LAZY);
    int at = 0;
#define ASK(name)                                                                                                \
    dlerror();                                                                                                   \
    printf("%s: code %s, data %s", #name, name != NULL ? "there" : "no", table[at++].function ? "there" : "no"); \
    printf(", default %s", words(dlsym(RTLD_DEFAULT, #name)));                                                   \
    printf(", program %s\n", words(dlsym(self, #name)));
    NAMES(ASK)
    return 0;
}
