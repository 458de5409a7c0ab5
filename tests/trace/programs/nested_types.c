/* nested_types FILE LEVELS: writes one int by a datatype made of two of a type that is made of two of a type ..., and so
 * on: 2^LEVELS leaves of no byte, and the int. Neither MPI library takes time for it. */
#include <mpi.h>
#include <stdlib.h>

static MPI_Datatype pair(MPI_Datatype first, MPI_Datatype second, MPI_Aint second_at) {
    const int lengths[2] = {1, 1};
    const MPI_Aint at[2] = {0, second_at};
    const MPI_Datatype both[2] = {first, second};
    MPI_Datatype made;
    MPI_Type_create_struct(2, lengths, at, both, &made);
    return made;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Datatype type;
    MPI_Type_contiguous(0, MPI_INT, &type);
    for (int level = atoi(argv[2]); level > 0; --level) {
        MPI_Datatype inner = type;
        type = pair(inner, inner, 8);
        MPI_Type_free(&inner);
    }
    MPI_Datatype last = pair(type, MPI_INT, 16);
    MPI_Type_commit(&last);
    int data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, data, 1, last, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&last);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
