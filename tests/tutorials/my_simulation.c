// What README.md calls my_simulation: a program whose checkpoint is slow. Each rank writes its columns of an array, 256
// bytes of each row, in one collective call, as README's readers' programs do.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { piece = 256, rows = 32768 };

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, steps = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    FILE* input = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (input == NULL || fscanf(input, "&run steps = %d /", &steps) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(input);

    const int whole[2] = {rows, ranks * piece}, part[2] = {rows, piece}, first[2] = {0, rank * piece};
    MPI_Datatype columns;
    MPI_Type_create_subarray(2, whole, part, first, MPI_ORDER_C, MPI_BYTE, &columns);
    MPI_Type_commit(&columns);
    char* field = malloc((size_t)rows * piece);
    if (field == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < (size_t)rows * piece; ++i) field[i] = (char)(i + (size_t)rank);

    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "run.chk", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_BYTE, columns, "native", MPI_INFO_NULL);
    for (int step = 0; step < steps; ++step) MPI_File_write_all(file, field, rows * piece, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);

    if (rank == 0) printf("%d steps, %d ranks\n", steps, ranks);
    free(field);
    MPI_Type_free(&columns);
    MPI_Finalize();
    return 0;
}
