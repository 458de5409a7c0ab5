/* Writes a netCDF array of MIB megabytes through PnetCDF, call by call, and says how each call ended on each rank. argv: FILE MIB [HOW]
 *   die    rank 0 is killed in between; die-define: before ncmpi_enddef; die-enddef: right after it; die-sync: after half of the calls and
 *          an ncmpi_sync; die-last: before ncmpi_close
 *   again  opens what is there and writes it anew; again-die: the same, and rank 0 is killed in between
 *   headers  opens and closes it
 *   read   reads and compares what another run wrote, with any number of ranks
 *   own    the same, each rank its share of the planes: with as many ranks as subfiles those of one subfile */
#include <mpi.h>
#include <pnetcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANES = 8, CALLS = 8 };

static signed char value(MPI_Offset plane, MPI_Offset column) { return (signed char)((column + 7 * plane) % 101 + 1); }

int main(int argc, char** argv) {
    int rank, ranks, file, dims[2], cube, codes[CALLS + 2], n = 0, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) return 2;
    const char* how = argc > 3 ? argv[3] : "";
    const int own = strcmp(how, "own") == 0, reads = own || strcmp(how, "read") == 0;
    const int again = strncmp(how, "again", 5) == 0;
    const char* dies = strstr(how, "die");
    const MPI_Offset bytes = (MPI_Offset)atoi(argv[2]) << 20, part = bytes / PLANES / CALLS;
    if (strcmp(how, "headers") == 0) {
        if (ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file) != NC_NOERR) return 3;
        if (ncmpi_inq_varid(file, "cube", &cube) != NC_NOERR || ncmpi_close(file) != NC_NOERR) return 4;
        MPI_Finalize();
        return 0;
    }
    if (reads || again) {
        if (ncmpi_open(MPI_COMM_WORLD, argv[1], again ? NC_WRITE : NC_NOWRITE, MPI_INFO_NULL, &file) != NC_NOERR)
            return 3;
        if (ncmpi_inq_varid(file, "cube", &cube) != NC_NOERR) return 4;
    } else {
        if (ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file) != NC_NOERR) return 3;
        ncmpi_def_dim(file, "z", PLANES, &dims[0]);
        ncmpi_def_dim(file, "x", bytes / PLANES, &dims[1]);
        ncmpi_def_var(file, "cube", NC_BYTE, 2, dims, &cube);
        if (dies && strcmp(dies, "die-define") == 0 && rank == 0) raise(SIGKILL);
        if (ncmpi_enddef(file) != NC_NOERR) return 4;
        if (dies && strcmp(dies, "die-enddef") == 0) MPI_Barrier(MPI_COMM_WORLD);
        if (dies && strcmp(dies, "die-enddef") == 0 && rank == 0) raise(SIGKILL);
    }
    signed char* data = calloc((size_t)(PLANES * part), 1);
    for (int i = 0; i < CALLS; ++i) {
        if (dies && strcmp(dies, "die-sync") == 0 && i == CALLS / 2) ncmpi_sync(file);
        if (dies && strcmp(dies, "die-last") != 0 && i == CALLS / 2 && rank == 0) raise(SIGKILL);
        /* All planes, each rank a share of the columns: every rank reaches every subfile. */
        const MPI_Offset begin = i * part + (own ? 0 : part * rank / ranks);
        const MPI_Offset end = i * part + (own ? part : part * (rank + 1) / ranks);
        const MPI_Offset first = own ? PLANES * rank / ranks : 0, last = own ? PLANES * (rank + 1) / ranks : PLANES;
        const MPI_Offset start[2] = {first, begin}, count[2] = {last - first, end - begin};
        for (MPI_Offset p = 0; p < PLANES && !reads; ++p)
            for (MPI_Offset c = begin; c < end; ++c) data[p * (end - begin) + c - begin] = value(p, c);
        if (reads) memset(data, 0, (size_t)(PLANES * part));
        codes[n++] = reads ? ncmpi_get_vara_schar_all(file, cube, start, count, data)
                           : ncmpi_put_vara_schar_all(file, cube, start, count, data);
        for (MPI_Offset p = first; p < last && reads; ++p)
            for (MPI_Offset c = begin; c < end; ++c)
                wrong += data[(p - first) * (end - begin) + c - begin] != value(p, c);
    }
    codes[n++] = ncmpi_sync(file);
    if (dies && strcmp(dies, "die-last") == 0 && rank == 0) raise(SIGKILL);
    codes[n++] = ncmpi_close(file);
    int* all = malloc(sizeof codes * (size_t)ranks);
    MPI_Gather(codes, n, MPI_INT, all, n, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < ranks; ++r) {
        printf("rank %d:", r);
        for (int i = 0; i < n; ++i) printf(" %d", all[r * n + i]);
        printf("\n");
    }
    if (wrong > 0) fprintf(stderr, "rank %d: %d elements are wrong\n", rank, wrong);
    free(all);
    free(data);
    MPI_Finalize();
    return wrong > 0;
}
