/* Opens, writes and closes many files of different names, and says what the process holds meanwhile (cycles.h):
   cycles FOLDER COMMUNICATORS KEEP STOP [STOP ...]
   COMMUNICATORS: "world" or "self" for all files, or for each file anew "dup", "split" (the ranks in reverse), "parts" (a different part of the
   ranks each time), "disconnect" (a dup that is disconnected), "merged" (with a spawned process, which ends with the file's
   communicator). KEEP: "keep" or "delete" the files. */
#include "cycles.h"

static const char *program, *folder, *how;
static int keep;

static void write_file(MPI_Comm comm, const char* name) {
    static char data[block];
    MPI_File file;
    int mine;
    MPI_Comm_rank(comm, &mine);
    memset(data, 'a' + mine % 26, sizeof data);
    CHECK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)mine * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_close(&file));
    if (!keep && mine == 0) CHECK(MPI_File_delete(name, MPI_INFO_NULL));
}

static void with_child(const char* name) {
    MPI_Comm child, merged;
    char* arguments[] = {(char*)name, keep ? "keep" : "delete", NULL};
    CHECK(MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE));
    CHECK(MPI_Intercomm_merge(child, 0, &merged));
    write_file(merged, name);
    CHECK(MPI_Comm_free(&merged));
    CHECK(MPI_Comm_disconnect(&child));
}

static void one_file(int number) {
    char name[4096];
    MPI_Comm comm;
    const int apart = strcmp(how, "self") == 0 ? rank : 0;
    snprintf(name, sizeof name, "%s/file.%d.%d", folder, number, apart);
    if (strcmp(how, "world") == 0) {
        write_file(MPI_COMM_WORLD, name);
    } else if (strcmp(how, "self") == 0) {
        write_file(MPI_COMM_SELF, name);
    } else if (strcmp(how, "merged") == 0) {
        with_child(name);
    } else if (strcmp(how, "parts") == 0) {
        /* Every subset in turn: as numbers of `ranks` bits. */
        const int in = (number >> (rank % 8)) & 1;
        snprintf(name, sizeof name, "%s/file.%d.%d", folder, number, in);
        CHECK(MPI_Comm_split(MPI_COMM_WORLD, in, number % 2 == 0 ? rank : -rank, &comm));
        write_file(comm, name);
        CHECK(MPI_Comm_free(&comm));
    } else {
        if (strcmp(how, "split") == 0)
            CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm));
        else
            CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        write_file(comm, name);
        if (strcmp(how, "disconnect") == 0)
            CHECK(MPI_Comm_disconnect(&comm));
        else
            CHECK(MPI_Comm_free(&comm));
    }
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm merged;
        keep = strcmp(argv[2], "keep") == 0;
        CHECK(MPI_Intercomm_merge(parent, 1, &merged));
        write_file(merged, argv[1]);
        CHECK(MPI_Comm_free(&merged));
        CHECK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return 0;
    }
    if (argc < 5) return 2;
    program = argv[0];
    folder = argv[1];
    how = argv[2];
    keep = strcmp(argv[3], "keep") == 0;
    in_cycles(argv + 4, one_file);
    MPI_Finalize();
    return 0;
}
