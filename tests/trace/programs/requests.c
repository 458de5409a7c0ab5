/* Completes non-blocking MPI-IO in every way that there is: requests FOLDER. test_requests.py states the figures. Each way is
   used on two writes and on two reads, among ordinary requests where it takes an array. Prints what the calls return for
   faulty arguments. Compiled with -DPROFILING, every call goes to its PMPI_ name. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#ifdef PROFILING
#define CALL(name) PMPI_##name
#else
#define CALL(name) MPI_##name
#endif

#define MANY 1000 /* requests of one MPI_Waitall, most of them of messages */
#define BYTES 64  /* of one operation */

static MPI_File file;
static char data[4 * BYTES];
static MPI_Datatype bytes, gaps; /* BYTES in one piece; every other one of 2 * BYTES */
static int sent[MANY], received[MANY];

/* The two operations of one way of completing them. */
static void begin_of(MPI_Datatype type, int writing, MPI_Request* a, MPI_Request* b) {
    if (writing) {
        CHECK(CALL(File_iwrite_at)(file, 0, data, 1, type, a));
        CHECK(CALL(File_iwrite_at)(file, BYTES, data + 2 * BYTES, 1, type, b));
    } else {
        CHECK(CALL(File_iread_at)(file, 0, data, 1, type, a));
        CHECK(CALL(File_iread_at)(file, BYTES, data + 2 * BYTES, 1, type, b));
    }
}
static void begin(int writing, MPI_Request* a, MPI_Request* b) { begin_of(bytes, writing, a, b); }

static void moved(MPI_Status* status) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (count == BYTES) return;
    fprintf(stderr, "an operation moved %d bytes, not %d\n", count, BYTES);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void complete(int writing) {
    MPI_Request two[3], many[MANY];
    MPI_Status status, statuses[MANY];
    int flag, index, done, indices[3], left;

    begin(writing, &two[0], &two[1]);
    CHECK(CALL(Wait)(&two[1], &status));
    moved(&status);
    CHECK(CALL(Wait)(&two[0], MPI_STATUS_IGNORE));

    begin(writing, &two[0], &two[2]);
    two[1] = MPI_REQUEST_NULL;
    for (int i = 0; i < 2; ++i) {
        CHECK(CALL(Waitany)(3, two, &index, &status));
        if (index != 0 && index != 2) MPI_Abort(MPI_COMM_WORLD, 9);
        moved(&status);
    }

    begin(writing, &two[0], &two[2]);
    for (left = 2; left > 0; left -= done) CHECK(CALL(Waitsome)(3, two, &done, indices, statuses));

    /* messages to itself, and two of I/O in between */
    for (int i = 0; i < MANY; i += 2) {
        if (i == 500) {
            begin(writing, &many[i], &many[i + 1]);
            continue;
        }
        CHECK(MPI_Irecv(&received[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &many[i]));
        CHECK(MPI_Isend(&sent[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &many[i + 1]));
    }
    CHECK(CALL(Waitall)(MANY, many, statuses));
    moved(&statuses[500]);
    for (int i = 0; i < MANY; ++i)
        if (many[i] != MPI_REQUEST_NULL) MPI_Abort(MPI_COMM_WORLD, 9);

    begin(writing, &two[0], &two[1]);
    for (int i = 0; i < 2; ++i) {
        do CHECK(CALL(Test)(&two[i], &flag, &status));
        while (!flag);
        moved(&status);
    }

    begin(writing, &two[0], &two[2]);
    for (left = 2; left > 0; left -= flag) CHECK(CALL(Testany)(3, two, &index, &flag, &status));

    begin(writing, &two[0], &two[2]);
    for (left = 2; left > 0; left -= done) CHECK(CALL(Testsome)(3, two, &done, indices, statuses));

    begin(writing, &two[0], &two[2]);
    /* one at a time: MPICH 4.0 aborts in an MPI_Testall where some of several operations are complete */
    for (int i = 0; i < 2; ++i) {
        MPI_Request array[3] = {MPI_REQUEST_NULL, two[2 * i], MPI_REQUEST_NULL};
        do CHECK(CALL(Testall)(3, array, &flag, MPI_STATUSES_IGNORE));
        while (!flag);
    }

    /* Complete, and then freed. MPICH 4.0 makes no progress while it is asked: but pieces are written at once. */
    begin_of(gaps, writing, &two[0], &two[1]);
    for (int i = 0; i < 2; ++i) {
        do CHECK(CALL(Request_get_status)(two[i], &flag, &status));
        while (!flag);
        moved(&status);
        CHECK(CALL(Request_free)(&two[i]));
        if (two[i] != MPI_REQUEST_NULL) MPI_Abort(MPI_COMM_WORLD, 9);
    }

#ifdef STATUS_OF_SEVERAL /* since MPI 4.1 */
    begin_of(gaps, writing, &two[0], &two[2]);
    for (int i = 0; i < 2; ++i) {
        do CHECK(CALL(Request_get_status_any)(3, two, &index, &flag, &status));
        while (!flag);
        moved(&status);
        CHECK(CALL(Request_free)(&two[index]));
    }
    begin_of(gaps, writing, &two[0], &two[2]);
    do CHECK(CALL(Request_get_status_all)(3, two, &flag, statuses));
    while (!flag);
    for (int i = 0; i < 2; ++i) CHECK(CALL(Request_free)(&two[2 * i]));
    begin_of(gaps, writing, &two[0], &two[2]);
    do CHECK(CALL(Request_get_status_all)(3, two, &flag, statuses));
    while (!flag);
    CHECK(CALL(Request_get_status_some)(3, two, &done, indices, statuses));
    if (done != 2) MPI_Abort(MPI_COMM_WORLD, 9);
    for (int i = 0; i < 2; ++i) CHECK(CALL(Request_free)(&two[indices[i]]));
#endif
}

/* Messages while I/O is pending, then faulty arguments: nothing of it may be changed or recorded. */
static void others(void) {
    MPI_Request io[2], messages[2];
    int flag, class;
    begin(1, &io[0], &io[1]);
    CHECK(MPI_Irecv(&received[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &messages[0]));
    CHECK(MPI_Isend(&sent[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &messages[1]));
    CHECK(CALL(Wait)(&messages[1], MPI_STATUS_IGNORE));
    do CHECK(CALL(Test)(&messages[0], &flag, MPI_STATUS_IGNORE));
    while (!flag);
    MPI_Request none = MPI_REQUEST_NULL;
    CHECK(CALL(Wait)(&none, MPI_STATUS_IGNORE));
    CHECK(CALL(Waitall)(0, NULL, MPI_STATUSES_IGNORE));
    MPI_Error_class(CALL(Waitall)(-1, io, MPI_STATUSES_IGNORE), &class);
    printf("a negative count: class %d\n", class);
    MPI_Error_class(CALL(Request_free)(&none), &class);
    printf("freeing nothing: class %d\n", class);
    MPI_Error_class(CALL(Wait)(NULL, MPI_STATUS_IGNORE), &class);
    printf("no request: class %d\n", class);
    CHECK(CALL(Waitall)(2, io, MPI_STATUSES_IGNORE));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(BYTES, MPI_BYTE, &bytes);
    MPI_Type_vector(BYTES, 1, 2, MPI_BYTE, &gaps);
    MPI_Type_commit(&bytes);
    MPI_Type_commit(&gaps);
    char path[4096];
    snprintf(path, sizeof path, "%s/requests.%d", argv[1], rank);
    memset(data, 'r', sizeof data);
    CHECK(CALL(File_open)(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int i = 0; i < MANY; ++i) {
        MPI_Request requests[2];
        CHECK(MPI_Irecv(&received[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[0]));
        CHECK(MPI_Isend(&sent[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[1]));
        CHECK(CALL(Waitall)(2, requests, MPI_STATUSES_IGNORE));
    }
    complete(1);
    complete(0);
    others();
    CHECK(CALL(File_close)(&file));
    MPI_Finalize();
    return 0;
}
