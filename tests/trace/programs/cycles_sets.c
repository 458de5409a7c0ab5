/* As cycles.c, sets of partitioned files (ioweir.h): cycles_sets FOLDER HOW DELEGATES KEY=VALUE,... STOP [STOP ...]
   HOW: "world", "dup" (a communicator for each set), "open" (freed while its set is open), or "handed" (to DELEGATES). KEY=VALUE: info. */
#include "cycles.h"
#include "ioweir/ioweir.h"

static const char *folder, *how;
static MPI_Info info;
static ioweir_service* service;
static MPI_Comm writers;

static void must(int code, const char* what) {
    if (code == IOWEIR_SUCCESS) return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ioweir_error_text());
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void one_set(int number) {
    static const char* const fields[] = {"solution", "errors"};
    static double items[block / sizeof(double)];
    const int64_t count = block / sizeof(double), parameters[] = {count, number};
    const int of_each = strcmp(how, "dup") == 0 || strcmp(how, "open") == 0;
    char base[4096];
    MPI_Comm comm = writers;
    ioweir_set* set = NULL;
    snprintf(base, sizeof base, "%s/set.%d", folder, number);
    if (of_each) CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    must(service != NULL ? ioweir_set_create_by(service, base, number, 1, 1, 2, fields, info, &set)
                         : ioweir_set_create(comm, base, number, 1, number % 2 + 1, 2, fields, info, &set),
         "create");
    if (strcmp(how, "open") == 0) CHECK(MPI_Comm_free(&comm));
    for (int field = 0; field < 2; ++field)
        must(ioweir_set_write(set, fields[field], 0, IOWEIR_FLOAT64, field == 0 ? count : 0, 2, parameters, items),
             "write");
    must(ioweir_set_close(&set), "close");
    if (service != NULL && number % 10 == 9) must(ioweir_service_wait(service), "wait");
    if (strcmp(how, "dup") == 0) CHECK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
    int delegate = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 6) return 2;
    folder = argv[1];
    how = argv[2];
    writers = MPI_COMM_WORLD;
    MPI_Info_create(&info);
    for (char* key = strtok(argv[4], ","); key != NULL; key = strtok(NULL, ",")) {
        char* const value = strchr(key, '=');
        if (value == NULL) continue;
        *value = '\0';
        MPI_Info_set(info, key, value + 1);
    }
    if (strcmp(how, "handed") == 0) {
        must(ioweir_split(MPI_COMM_WORLD, atoi(argv[3]), MPI_INFO_NULL, &writers, &service), "split");
        delegate = writers == MPI_COMM_NULL;
    }
    if (delegate) {
        tell(0);
        must(ioweir_service_run(service), "run");
        tell(atoi(argv[argc - 1]));
    } else {
        in_cycles(argv + 5, one_set);
    }
    if (service != NULL) must(ioweir_service_end(&service), "end");
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
