/* What the cases of hdf5_objects.c are made of: the file, datasets with parts that are written, and what is said of them. */
#pragma once

#include <hdf5.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 6144 };

static int rank, ranks, own, dies, told;
static char path[1024], other[1100];
static hid_t access_list, alone_list, together_list;

static void say(const char* format, ...) {
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    printf("%d %s\n", rank, line);
    fflush(stdout);
}

static hid_t good(hid_t id, const char* what) {
    if (id >= 0) return id;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    H5Eprint2(H5E_DEFAULT, stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
    return id;
}
#define GOOD(call) good((hid_t)(call), #call)

static herr_t on_error(hid_t stack, void* data) {
    (void)stack;
    ++*(int*)data;
    return 0;
}

static void meet(void) {
    if (!own) MPI_Barrier(MPI_COMM_WORLD);
}

static void held(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (dies) _exit(9);
}

static hid_t create_file(const char* name) { return GOOD(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access_list)); }
static hid_t open_file(const char* name) { return GOOD(H5Fopen(name, H5F_ACC_RDWR, access_list)); }

static hid_t space_of(hsize_t length) { return GOOD(H5Screate_simple(1, &length, NULL)); }

static hid_t create(hid_t place, const char* name, hid_t list) {
    const hid_t space = space_of(LENGTH);
    const hid_t set = GOOD(H5Dcreate2(place, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space);
    return set;
}

static hid_t list_with_fill(int value, H5D_fill_time_t time) {
    const hid_t list = GOOD(H5Pcreate(H5P_DATASET_CREATE));
    GOOD(H5Pset_fill_value(list, H5T_NATIVE_INT, &value));
    GOOD(H5Pset_fill_time(list, time));
    return list;
}

/* Elements from `from` on are 10 + their place. */
static void write_part(hid_t set, hsize_t from, hsize_t count, hid_t list) {
    int* values = malloc((count + 1) * sizeof *values);
    for (hsize_t i = 0; i < count; ++i) values[i] = (int)(10 + from + i);
    const hid_t space = GOOD(H5Dget_space(set)), memory = space_of(count > 0 ? count : 1);
    if (count > 0) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &from, NULL, &count, NULL);
    } else {
        H5Sselect_none(space);
        H5Sselect_none(memory);
    }
    GOOD(H5Dwrite(set, H5T_NATIVE_INT, memory, space, list, values));
    H5Sclose(space);
    H5Sclose(memory);
    free(values);
}

/* A third of a dataset by each rank that there is, up to `parts` of ranks. */
static void write_share(hid_t set, hsize_t parts, hsize_t whole, hid_t list) {
    const hsize_t all = own ? 1 : (hsize_t)ranks, me = own ? 0 : (hsize_t)rank, share = whole / parts;
    for (hsize_t part = 0; part < parts; part += all)
        if (part + me < parts)
            write_part(set, (part + me) * share, share, list);
        else if (list == together_list)
            write_part(set, 0, 0, list);
}

/* As runs of what is the same: elements that hold what was written count as such. */
static void show(hid_t set, const char* name, hid_t list) {
    const hid_t space = GOOD(H5Dget_space(set));
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    int* values = malloc(((size_t)count + 1) * sizeof *values);
    for (hssize_t i = 0; i < count; ++i) values[i] = -77;
    if (list == together_list) meet();
    GOOD(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, list, values));
    if (list == together_list) meet();
    char text[2048] = "";
    for (hssize_t i = 0, begin = 0; i < count; ++i) {
        const int kind = values[i] == 10 + i, next = i + 1 < count && values[i + 1] == 10 + i + 1;
        if (i + 1 < count && kind == next && (kind || values[i] == values[i + 1])) continue;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " %lld x %d%s", (long long)(i + 1 - begin), kind ? 0 : values[i],
                 kind ? "+" : "");
        begin = i + 1;
    }
    say("%s:%s", name, text);
    free(values);
    H5Sclose(space);
}

static void show_named(hid_t place, const char* name) {
    const hid_t set = GOOD(H5Dopen2(place, name, H5P_DEFAULT));
    show(set, name, alone_list);
    H5Dclose(set);
}

/* The file anew, and what it holds. */
static void show_file(const char* const* names) {
    meet();
    const hid_t file = open_file(path);
    for (; *names != NULL; ++names) show_named(file, *names);
    H5Fclose(file);
}
#define SHOW_FILE(...) show_file((const char* const[]){__VA_ARGS__, NULL})

static void done_with(hid_t set) { GOOD(H5Dclose(set)); }
