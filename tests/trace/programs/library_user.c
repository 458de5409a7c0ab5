/* Opens libraries and calls functions of theirs: each argument is LIBRARY (opened RTLD_LOCAL), LIBRARY! (RTLD_GLOBAL),
   -LIBRARY (closed again) or a function that takes nothing and returns a number, looked up in the library opened last.
   "H5Dopen1" and "nc_sync" are called with 1000. Prints one number a function. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    static void* handles[64];
    static char names[64][1024];
    int used = 0;
    for (int i = 1; i < argc; ++i) {
        const char* word = argv[i];
        if (word[0] == '-') {
            for (int k = 0; k < used; ++k)
                if (strcmp(names[k], word + 1) == 0 && dlclose(handles[k]) != 0) return 3;
        } else if (word[0] == '/') {
            size_t length = strlen(word);
            int global = word[length - 1] == '!';
            snprintf(names[used], sizeof names[used], "%.*s", (int)length - global, word);
            handles[used] = dlopen(names[used], RTLD_LAZY | (global ? RTLD_GLOBAL : RTLD_LOCAL));
            if (handles[used] == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
            ++used;
        } else {
            dlerror();
            void* function = dlsym(handles[used - 1], word);
            const char* problem = dlerror();
            if ((function == NULL) != (problem != NULL))
                return fprintf(stderr, "dlerror: %s\n", problem ? problem : "silent"), 4;
            if (function == NULL)
                printf("none ");
            else if (strcmp(word, "H5Dopen1") == 0)
                printf("%lld ", (long long)((int64_t (*)(int64_t, const char*))function)(1000, "x"));
            else if (strcmp(word, "nc_sync") == 0)
                printf("%d ", ((int (*)(int))function)(1000));
            else
                printf("%lld ", (long long)((int64_t (*)(void))function)());
        }
    }
    printf("\n");
    return 0;
}
