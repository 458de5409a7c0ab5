/* A climate model's history files as its parallel I/O library makes them: netcdf_model FILE F0|F1|G|I0|I1 RECORDS TASKS [read].
   F is an atmosphere's, G an ocean's and I a land's; their variables, types, dimensions and in how many pieces their arrays lie among 16 tasks are
   what E3SM-IO's documentation says of its small cases (docs/variables.md, datasets/README.md there); where the pieces lie is ours. Of the 16
   tasks the first TASKS take part, dealt round to the ranks. Every variable is one request of pieces all over of each task, all waited for at once.
   Then each rank reads what its neighbour has written and compares every element; with `read` that alone. */
#include "netcdf_subfiles.h"

#include <string.h>

enum { all_tasks = 16, most_dims = 4, nobody = -1 };

/* Where a task's pieces of an array lie: runs of cells, a row of cells being `row` long, on each of `above` levels before, or of
   `below` levels behind, which lie side by side. Of 100 runs `given` belong to a task. */
struct map {
    int above, cells, row, below, least, most, given;
};
/* `count` variables of one kind. `map`: which of the case's; nobody: rank 0 writes it, whole. */
struct kind {
    int count;
    nc_type type;
    int record, map, dims, length[2];
};
struct model {
    const char* name;
    int maps, kinds;
    struct map map[6];
    struct kind kind[12];
};

#define ATMOSPHERE {{1, 866, 866, 1, 9, 36, 100}, {1, 866, 866, 1, 1, 4, 100}, {72, 866, 866, 1, 1, 4, 100}}
#define ATMOSPHERE_ALWAYS                                                                                  \
    {5, NC_INT, 0, nobody, 0, {0}}, {1, NC_DOUBLE, 0, nobody, 0, {0}}, {6, NC_DOUBLE, 0, nobody, 1, {73}}, \
        {1, NC_DOUBLE, 0, 0, 0, {0}}, {2, NC_DOUBLE, 0, 1, 0, {0}}, {5, NC_INT, 1, nobody, 0, {0}},        \
        {8, NC_DOUBLE, 1, nobody, 0, {0}}, {                                                               \
        2, NC_CHAR, 1, nobody, 1, {8}                                                                      \
    }
#define LAND                        \
    {{1, 13824, 144, 1, 1, 4, 60},  \
     {15, 13824, 144, 1, 1, 4, 60}, \
     {10, 13824, 144, 1, 1, 4, 60}, \
     {9, 13824, 144, 1, 1, 4, 60},  \
     {17, 13824, 144, 1, 1, 4, 60}}
#define LAND_ALWAYS                                                                                           \
    {2, NC_INT, 0, 0, 0, {0}}, {5, NC_FLOAT, 0, nobody, 1, {15}}, {3, NC_FLOAT, 0, 0, 0, {0}},                \
        {2, NC_CHAR, 1, nobody, 1, {16}}, {5, NC_INT, 1, nobody, 0, {0}}, {1, NC_FLOAT, 1, nobody, 0, {0}}, { \
        1, NC_DOUBLE, 1, nobody, 1, {2}                                                                       \
    }

static const struct model models[] = {
    {"F0", 3, 10, ATMOSPHERE, {ATMOSPHERE_ALWAYS, {321, NC_FLOAT, 1, 1, 0, {0}}, {63, NC_FLOAT, 1, 2, 0, {0}}}},
    {"F1", 3, 10, ATMOSPHERE, {ATMOSPHERE_ALWAYS, {20, NC_FLOAT, 1, 1, 0, {0}}, {1, NC_FLOAT, 1, 2, 0, {0}}}},
    {"G",
     6,
     12,
     {{1, 285, 285, 1, 1, 3, 100},
      {1, 879, 879, 1, 1, 3, 100},
      {1, 285, 285, 100, 1, 3, 100},
      {1, 879, 879, 100, 1, 3, 100},
      {1, 593, 593, 100, 1, 3, 100},
      {1, 285, 285, 101, 1, 3, 100}},
     {{1, NC_INT, 0, 0, 0, {0}},
      {1, NC_DOUBLE, 0, 0, 0, {0}},
      {2, NC_INT, 0, 1, 0, {0}},
      {1, NC_INT, 0, 2, 0, {0}},
      {1, NC_INT, 0, 3, 0, {0}},
      {4, NC_DOUBLE, 0, nobody, 1, {100}},
      {1, NC_CHAR, 1, nobody, 1, {64}},
      {6, NC_DOUBLE, 1, nobody, 0, {0}},
      {4, NC_DOUBLE, 1, 0, 0, {0}},
      {24, NC_DOUBLE, 1, 2, 0, {0}},
      {3, NC_DOUBLE, 1, 4, 0, {0}},
      {4, NC_DOUBLE, 1, 5, 0, {0}}}},
    {"I0",
     5,
     12,
     LAND,
     {LAND_ALWAYS,
      {8, NC_FLOAT, 0, 1, 0, {0}},
      {460, NC_FLOAT, 1, 0, 0, {0}},
      {69, NC_FLOAT, 1, 1, 0, {0}},
      {2, NC_FLOAT, 1, 2, 0, {0}},
      {2, NC_FLOAT, 1, 4, 0, {0}}}},
    {"I1",
     5,
     11,
     LAND,
     {LAND_ALWAYS,
      {460, NC_FLOAT, 1, 0, 0, {0}},
      {69, NC_FLOAT, 1, 1, 0, {0}},
      {2, NC_FLOAT, 1, 3, 0, {0}},
      {2, NC_FLOAT, 1, 4, 0, {0}}}},
};

static int tasks;

/* Numbers that look dealt at random, the same on every rank. */
static unsigned shuffled(unsigned x) {
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ (x >> 15);
}

/* What a rank moves of one array in one request. */
struct pieces {
    int n, elements, dims;
    MPI_Offset **start, **count;
    MPI_Offset* numbers;
};
static void add_piece(struct pieces* all, const MPI_Offset* start, const MPI_Offset* count) {
    if ((all->n & (all->n + 1)) == 0)
        all->numbers = realloc(all->numbers, sizeof *all->numbers * (size_t)(2 * all->n + 2) * 2 * most_dims);
    MPI_Offset* to = all->numbers + (size_t)all->n++ * 2 * most_dims;
    int elements = 1;
    for (int d = 0; d < all->dims; ++d) {
        to[d] = start[d];
        to[most_dims + d] = count[d];
        elements *= (int)count[d];
    }
    all->elements += elements;
}
static void point(struct pieces* all) {
    all->start = malloc(sizeof *all->start * (size_t)(all->n + 1));
    all->count = malloc(sizeof *all->count * (size_t)(all->n + 1));
    for (int i = 0; i < all->n; ++i) {
        all->start[i] = all->numbers + (size_t)i * 2 * most_dims;
        all->count[i] = all->start[i] + most_dims;
    }
}
static void drop(struct pieces* all) {
    free(all->start);
    free(all->count);
    free(all->numbers);
}

/* The lengths of a kind's dimensions, without that of records. */
static int lengths(const struct model* model, const struct kind* kind, int* length) {
    int n = 0;
    if (kind->map == nobody) {
        for (int d = 0; d < kind->dims; ++d) length[n++] = kind->length[d];
        return n;
    }
    const struct map* map = &model->map[kind->map];
    if (map->above > 1) length[n++] = map->above;
    if (map->cells != map->row) length[n++] = map->cells / map->row;
    length[n++] = map->row;
    if (map->below > 1) length[n++] = map->below;
    return n;
}

static struct pieces pieces_of(const struct model* model, const struct kind* kind, int owner, int record) {
    int length[most_dims];
    const int own = lengths(model, kind, length);
    struct pieces all = {0, 0, own + kind->record, NULL, NULL, NULL};
    MPI_Offset start[most_dims] = {0}, count[most_dims];
    for (int d = 0; d < own; ++d) count[kind->record + d] = length[d];
    if (kind->record) start[0] = record, count[0] = 1;
    if (kind->map == nobody) {
        if (owner == 0) add_piece(&all, start, count);
        point(&all);
        return all;
    }
    const struct map* map = &model->map[kind->map];
    const unsigned seed = (unsigned)(map->cells + 1000 * map->most);
    for (int level = 0; level < map->above; ++level)
        for (int at = 0, run = 0; at < map->cells; ++run) {
            const unsigned number = shuffled(seed + (unsigned)run);
            int cells = map->least + (int)(number % (unsigned)(map->most - map->least + 1));
            if (cells > map->row - at % map->row) cells = map->row - at % map->row;
            const int task = (int)(number >> 8) % all_tasks;
            if ((int)(number >> 16) % 100 < map->given && task < tasks && task % ranks == owner) {
                int d = kind->record;
                if (map->above > 1) start[d] = level, count[d++] = 1;
                if (map->cells != map->row) start[d] = at / map->row, count[d++] = 1;
                start[d] = at % map->row, count[d++] = cells;
                if (map->below > 1) start[d] = 0, count[d] = map->below;
                add_piece(&all, start, count);
            }
            at += cells;
        }
    point(&all);
    return all;
}

static size_t size_of(nc_type type) { return type == NC_CHAR ? 1 : type == NC_DOUBLE ? 8 : 4; }
static MPI_Datatype mpi_type(nc_type type) {
    return type == NC_CHAR ? MPI_CHAR : type == NC_DOUBLE ? MPI_DOUBLE : type == NC_INT ? MPI_INT : MPI_FLOAT;
}
/* Every element of the file has a value of its own. */
static void put_value(void* at, nc_type type, unsigned number) {
    const unsigned value = shuffled(number) % 100000;
    if (type == NC_CHAR) *(char*)at = (char)('a' + value % 26);
    if (type == NC_INT) *(int*)at = (int)value;
    if (type == NC_FLOAT) *(float*)at = (float)value;
    if (type == NC_DOUBLE) *(double*)at = value + 0.5;
}
static void fill(char* to, const struct pieces* all, nc_type type, int variable) {
    const size_t size = size_of(type);
    for (int i = 0; i < all->n; ++i) {
        unsigned place = (unsigned)variable * 7919;
        int elements = 1;
        for (int d = 0; d < all->dims; ++d) {
            place = place * 1009 + (unsigned)all->start[i][d];
            elements *= (int)all->count[i][d];
        }
        for (int e = 0; e < elements; ++e, to += size) put_value(to, type, place + (unsigned)e * 31);
    }
}

/* Reads or writes one record of all variables, and what has none with the first. */
static long move(int file, const struct model* model, int owner, int record, int reads) {
    struct pieces* all = calloc(1000, sizeof *all);
    char** data = calloc(1000, sizeof *data);
    long requests = 0;
    for (int pass = 0; pass <= reads; ++pass) {
        int variable = 0;
        for (int k = 0; k < model->kinds; ++k)
            for (int i = 0; i < model->kind[k].count; ++i, ++variable) {
                const struct kind* kind = &model->kind[k];
                if (!kind->record && record != 0) continue;
                const size_t size = size_of(kind->type);
                if (pass == 0) {
                    all[variable] = pieces_of(model, kind, owner, record);
                    const size_t bytes = (size_t)all[variable].elements * size;
                    data[variable] = calloc(bytes + 8, 1);
                    if (!reads) fill(data[variable], &all[variable], kind->type, variable);
                    requests += all[variable].n;
                    if (all[variable].n == 0) continue;
                    OK((reads ? ncmpi_iget_varn
                              : (int (*)(int, int, int, MPI_Offset* const*, MPI_Offset* const*, void*, MPI_Offset,
                                         MPI_Datatype, int*))ncmpi_iput_varn)(
                        file, variable, all[variable].n, all[variable].start, all[variable].count, data[variable],
                        all[variable].elements, mpi_type(kind->type), NULL));
                } else {
                    char* right = calloc((size_t)all[variable].elements * size + 8, 1);
                    fill(right, &all[variable], kind->type, variable);
                    SAME(memcmp(right, data[variable], (size_t)all[variable].elements * size), 0, "a variable");
                    free(right);
                }
            }
        if (pass == 0) OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
    }
    for (int v = 0; v < 1000; ++v) {
        if (data[v] != NULL) drop(&all[v]);
        free(data[v]);
    }
    free(all);
    free(data);
    return requests;
}

/* Makes the file: one dimension of each length. */
static int defined(const char* path, const struct model* model) {
    int file, time, variable = 0, dim_of[1000] = {0};
    OK(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &time));
    for (int k = 0; k < model->kinds; ++k)
        for (int i = 0; i < model->kind[k].count; ++i, ++variable) {
            int length[most_dims], dims[most_dims + 1], n = 0, id;
            char name[40];
            const int own = lengths(model, &model->kind[k], length);
            if (model->kind[k].record) dims[n++] = time;
            for (int d = 0; d < own; ++d) {
                snprintf(name, sizeof name, "of_%d", length[d]);
                if (dim_of[length[d]] == 0) {
                    OK(ncmpi_def_dim(file, name, length[d], &id));
                    dim_of[length[d]] = id;
                }
                dims[n++] = dim_of[length[d]];
            }
            snprintf(name, sizeof name, "variable_%d", variable);
            OK(ncmpi_def_var(file, name, model->kind[k].type, n, dims, &id));
        }
    OK(ncmpi_enddef(file));
    return file;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 && argc != 6) return 2;
    const struct model* model = NULL;
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i)
        if (strcmp(models[i].name, argv[2]) == 0) model = &models[i];
    if (model == NULL) return 2;
    const int records = atoi(argv[3]);
    tasks = atoi(argv[4]);
    int file, variables = 0;
    long requests = 0, most = 0;
    if (argc == 5) {
        file = defined(argv[1], model);
        for (int record = 0; record < records; ++record) move(file, model, rank, record, 0);
        OK(ncmpi_close(file));
    }
    OK(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
    OK(ncmpi_inq_nvars(file, &variables));
    for (int record = 0; record < records; ++record) requests += move(file, model, (rank + 1) % ranks, record, 1);
    OK(ncmpi_close(file));
    MPI_Reduce(&requests, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d variables, %ld pieces of the busiest rank\n", variables, most);
    MPI_Finalize();
    return 0;
}
