/* What the programs of this folder do with their arguments: an end where one is wrong, and hints for MPI-IO. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of "name:value,name:value"; the caller frees the info. */
static inline MPI_Info hints_of(const char* words) {
    MPI_Info info;
    MPI_Info_create(&info);
    char* copy = strdup(words);
    for (char* word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        char* value = strchr(word, ':');
        must(value != NULL, "reading hints");
        *value = 0;
        MPI_Info_set(info, word, value + 1);
    }
    free(copy);
    return info;
}
