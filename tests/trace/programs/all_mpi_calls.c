/* Makes every MPI-IO call once or a known number of times: usage all_mpi_calls FOLDER [pmpi]. The figures are in
   test_mpi_calls.py. Compiled with -DPROFILING, every call goes to its PMPI_ name; with -DLARGE_COUNTS,
   those that have a count or an extent to their form with MPI_Count. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#ifdef PROFILING
#define IO(name) PMPI_File_##name
#else
#define IO(name) MPI_File_##name
#endif
#ifdef LARGE_COUNTS
#define DATA(name) IO(name##_c)
#else
#define DATA(name) IO(name)
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char path[4096], data[4096];
    memset(data, 'x', sizeof data);
    snprintf(path, sizeof path, "%s/all", argv[1]);
    MPI_File fh;
    MPI_Status status;
    MPI_Request request;
    CHECK(IO(open)(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
    CHECK(IO(set_size)(fh, 100000));
    CHECK(IO(preallocate)(fh, 120000));
    CHECK(IO(set_view)(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Offset offset;
    MPI_Group group;
    int number;
    MPI_Info info;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
#ifdef LARGE_COUNTS
    MPI_Count extent;
#else
    MPI_Aint extent;
#endif
    CHECK(IO(get_size)(fh, &offset));
    CHECK(IO(get_group)(fh, &group));
    MPI_Group_free(&group);
    CHECK(IO(get_amode)(fh, &number));
    CHECK(IO(get_info)(fh, &info));
    CHECK(IO(set_info)(fh, info));
    MPI_Info_free(&info);
    CHECK(IO(get_view)(fh, &offset, &etype, &filetype, datarep));
    CHECK(DATA(get_type_extent)(fh, MPI_INT, &extent));
    if (extent != sizeof(int)) MPI_Abort(MPI_COMM_WORLD, 5);
    CHECK(IO(get_byte_offset)(fh, 17, &offset));
    CHECK(IO(set_atomicity)(fh, 0));
    CHECK(IO(get_atomicity)(fh, &number));
    const MPI_Offset own = 1000 * rank;

    CHECK(DATA(write_at)(fh, own, data, 11, MPI_BYTE, &status));
    CHECK(DATA(write_at_all)(fh, own, data, 12, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(IO(seek)(fh, own, MPI_SEEK_SET));
    CHECK(DATA(write)(fh, data, 13, MPI_BYTE, &status));
    CHECK(DATA(write_all)(fh, data, 14, MPI_BYTE, &status));
    CHECK(IO(get_position)(fh, &offset));
    CHECK(DATA(write_at_all_begin)(fh, own, data, 15, MPI_BYTE));
    CHECK(IO(write_at_all_end)(fh, data, MPI_STATUS_IGNORE));
    CHECK(DATA(write_all_begin)(fh, data, 16, MPI_BYTE));
    CHECK(IO(write_all_end)(fh, data, &status));
    CHECK(DATA(iwrite_at)(fh, own, data, 17, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iwrite)(fh, data, 18, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iwrite_at_all)(fh, own, data, 19, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iwrite_all)(fh, data, 20, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(IO(sync)(fh));
    MPI_Barrier(MPI_COMM_WORLD);

    CHECK(IO(seek_shared)(fh, 50000, MPI_SEEK_SET));
    CHECK(DATA(write_shared)(fh, data, 21, MPI_BYTE, &status));
    CHECK(DATA(write_ordered)(fh, data, 22, MPI_BYTE, &status));
    CHECK(DATA(write_ordered_begin)(fh, data, 23, MPI_BYTE));
    CHECK(IO(write_ordered_end)(fh, data, &status));
    CHECK(DATA(iwrite_shared)(fh, data, 24, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(IO(get_position_shared)(fh, &offset));
    CHECK(IO(sync)(fh));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(IO(seek_shared)(fh, 50000, MPI_SEEK_SET));
    CHECK(DATA(read_shared)(fh, data, 31, MPI_BYTE, &status));
    CHECK(DATA(read_ordered)(fh, data, 32, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(DATA(read_ordered_begin)(fh, data, 33, MPI_BYTE));
    CHECK(IO(read_ordered_end)(fh, data, &status));
    CHECK(DATA(iread_shared)(fh, data, 34, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    CHECK(IO(seek)(fh, 0, MPI_SEEK_SET));
    CHECK(DATA(read_at)(fh, own, data, 41, MPI_BYTE, &status));
    CHECK(DATA(read_at_all)(fh, own, data, 42, MPI_BYTE, &status));
    CHECK(DATA(read)(fh, data, 43, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(DATA(read_all)(fh, data, 44, MPI_BYTE, &status));
    CHECK(DATA(read_at_all_begin)(fh, own, data, 45, MPI_BYTE));
    CHECK(IO(read_at_all_end)(fh, data, &status));
    CHECK(DATA(read_all_begin)(fh, data, 46, MPI_BYTE));
    CHECK(IO(read_all_end)(fh, data, MPI_STATUS_IGNORE));
    CHECK(DATA(iread_at)(fh, own, data, 47, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iread)(fh, data, 48, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iread_at_all)(fh, own, data, 49, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(DATA(iread_all)(fh, data, 50, MPI_BYTE, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(IO(close)(&fh));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(IO(delete)(path, MPI_INFO_NULL));
    MPI_Finalize();
    return 0;
}
