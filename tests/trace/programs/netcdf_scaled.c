/* A climate model's output as its library of parallel I/O makes it, scaled down: very many variables, each written by one request of each rank
   for thousands of pieces of columns that are not side by side, all waited for at once. Then each rank reads what its neighbour has
   written and compares. argv: FILE VARIABLES COLUMNS LEVELS RECORDS. Every third variable has levels, every fourth no records. */
#include "netcdf_subfiles.h"

static int columns, levels;

/* Runs of one to three columns, dealt to the ranks in an order that repeats late. */
static int runs_of(int owner, MPI_Offset* first, MPI_Offset* length) {
    int n = 0;
    for (int at = 0, run = 0; at < columns; ++run) {
        const int most = 1 + run * 7 % 3, own = (run * 5 + run / 11) % ranks;
        if (own == owner) {
            first[n] = at;
            length[n++] = at + most <= columns ? most : columns - at;
        }
        at += most;
    }
    return n;
}

/* The pieces of one variable in one record. `dims`: record, if any; level, if any; column. */
struct pieces {
    int n, elements;
    MPI_Offset **start, **count;
};

static struct pieces pieces_of(int owner, int has_levels, int has_records, int record) {
    MPI_Offset* first = malloc(sizeof *first * (size_t)columns);
    MPI_Offset* length = malloc(sizeof *length * (size_t)columns);
    const int runs = runs_of(owner, first, length), planes = has_levels ? levels : 1;
    struct pieces all = {runs * planes, 0, malloc(sizeof(MPI_Offset*) * (size_t)(runs * planes + 1)),
                         malloc(sizeof(MPI_Offset*) * (size_t)(runs * planes + 1))};
    for (int i = 0; i < all.n; ++i) {
        int d = 0;
        MPI_Offset* start = all.start[i] = malloc(3 * sizeof *start);
        MPI_Offset* count = all.count[i] = malloc(3 * sizeof *count);
        if (has_records) start[d] = record, count[d++] = 1;
        if (has_levels) start[d] = i / runs, count[d++] = 1;
        start[d] = first[i % runs];
        count[d] = length[i % runs];
        all.elements += (int)length[i % runs];
    }
    free(first);
    free(length);
    return all;
}

static void drop(struct pieces* all) {
    for (int i = 0; i < all->n; ++i) {
        free(all->start[i]);
        free(all->count[i]);
    }
    free(all->start);
    free(all->count);
}

static float element(int variable, const MPI_Offset* start, int dimensions, int i) {
    float sum = (float)(variable % 97) * 1000;
    for (int d = 0; d < dimensions; ++d) sum += (float)(start[d] * (d + 1));
    return sum + (float)(i * dimensions);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6) return 2;
    const int variables = atoi(argv[2]), records = atoi(argv[5]);
    int file, dims[3];
    columns = atoi(argv[3]);
    levels = atoi(argv[4]);
    int* ids = malloc(sizeof *ids * (size_t)variables);
    OK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    OK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    OK(ncmpi_def_dim(file, "lev", levels, &dims[1]));
    OK(ncmpi_def_dim(file, "ncol", columns, &dims[2]));
    for (int v = 0; v < variables; ++v) {
        char name[32];
        int mine[3], n = 0;
        snprintf(name, sizeof name, "variable_%d", v);
        if (v % 4 != 3) mine[n++] = dims[0];
        if (v % 3 == 2) mine[n++] = dims[1];
        mine[n++] = dims[2];
        OK(ncmpi_def_var(file, name, v % 5 == 4 ? NC_DOUBLE : NC_FLOAT, n, mine, &ids[v]));
    }
    OK(ncmpi_enddef(file));
    for (int reads = 0; reads < 2; ++reads) {
        if (reads) {
            OK(ncmpi_close(file));
            OK(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
        }
        for (int record = 0; record < records; ++record) {
            float** data = malloc(sizeof *data * (size_t)variables);
            struct pieces* all = malloc(sizeof *all * (size_t)variables);
            for (int pass = 0; pass <= reads; ++pass) {
                for (int v = 0; v < variables; ++v) {
                    const int has_records = v % 4 != 3, has_levels = v % 3 == 2, n = has_records + has_levels + 1;
                    if (pass == 0) {
                        all[v] = pieces_of((rank + reads) % ranks, has_levels, has_records, record);
                        data[v] = calloc((size_t)all[v].elements + 1, sizeof **data);
                    }
                    for (int i = 0, e = 0; i < all[v].n && (pass == 1 || !reads); ++i)
                        for (int k = 0; k < all[v].count[i][n - 1]; ++k, ++e) {
                            const float right = element(ids[v], all[v].start[i], n, k);
                            if (reads)
                                SAME(data[v][e], right, "an element");
                            else
                                data[v][e] = right;
                        }
                    if (pass == 0 && !reads)
                        OK(ncmpi_iput_varn_float(file, ids[v], all[v].n, all[v].start, all[v].count, data[v], NULL));
                    if (pass == 0 && reads)
                        OK(ncmpi_iget_varn_float(file, ids[v], all[v].n, all[v].start, all[v].count, data[v], NULL));
                }
                if (pass == 0) OK(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
            }
            for (int v = 0; v < variables; ++v) {
                drop(&all[v]);
                free(data[v]);
            }
            free(data);
            free(all);
        }
    }
    OK(ncmpi_close(file));
    if (rank == 0) printf("%d variables\n", variables);
    MPI_Finalize();
    return 0;
}
