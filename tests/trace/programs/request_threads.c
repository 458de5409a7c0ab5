/* Threads that begin and complete non-blocking MPI-IO at the same time: request_threads FOLDER. Handles of one thread's
   completed requests are given to another's new ones at once. test_requests.py states the figures. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 300

static const char* folder;

static void* work(void* given) {
    int number = *(int*)given;
    char path[4096], data[64];
    memset(data, 't', sizeof data);
    snprintf(path, sizeof path, "%s/thread.%d", folder, number);
    MPI_File file;
    MPI_Request requests[3], message;
    if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 9);
    for (int round = 0; round < ROUNDS; ++round) {
        int sent = round, received = -1;
        MPI_File_iwrite_at(file, 0, data, 32, MPI_BYTE, &requests[0]);
        MPI_Irecv(&received, 1, MPI_INT, 0, number, MPI_COMM_WORLD, &requests[1]);
        MPI_File_iwrite_at(file, 32, data, 32, MPI_BYTE, &requests[2]);
        MPI_Isend(&sent, 1, MPI_INT, 0, number, MPI_COMM_WORLD, &message);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&message, MPI_STATUS_IGNORE);
        if (received != round) MPI_Abort(MPI_COMM_WORLD, 9);
    }
    MPI_File_close(&file);
    return NULL;
}

int main(int argc, char** argv) {
    int provided, numbers[THREADS];
    pthread_t threads[THREADS];
    folder = argv[1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 8);
    for (int i = 0; i < THREADS; ++i) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
