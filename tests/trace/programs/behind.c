// A file that is written behind, and what may happen meanwhile. Arguments: the folder, then what:
//   looks    every rank writes a file of its own and looks at it with POSIX calls before it closes it
//   exit     every rank writes its part of one file and exits, without closing it, without MPI_Finalize
//   kill     the first rank is killed by SIGKILL while bytes of all ranks wait for its thread; the others go on
//   fork     every rank writes, forks a child that looks at the file and exits, and goes on
// Says "looked" once a rank when all is well.
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { block = 1 << 19 };

static int rank, ranks;
static char path[4096];
static char data[block];

static void fail(const char* what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void write_block(MPI_File file, long at) {
    memset(data, 'a' + rank, block);
    if (MPI_File_write_at(file, (MPI_Offset)at * block, data, block, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        fail("a write failed");
}

static long length(const char* of) {
    struct stat info;
    return stat(of, &info) == 0 ? (long)info.st_size : -1;
}

static void looks(void) {
    char name[4200], other[4300];
    snprintf(name, sizeof name, "%s.%d", path, rank);
    snprintf(other, sizeof other, "%s.moved", name);
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    write_block(file, 0);
    if (length(name) != block) fail("stat sees too little");
    write_block(file, 1);
    const int fd = open(name, O_RDONLY);
    if (lseek(fd, 0, SEEK_END) != 2L * block) fail("open sees too little");
    close(fd);
    write_block(file, 2);
    FILE* stream = fopen(name, "r");
    fseek(stream, 0, SEEK_END);
    if (ftell(stream) != 3L * block) fail("fopen sees too little");
    fclose(stream);
    write_block(file, 3);
    if (truncate(name, block) != 0 || length(name) != block) fail("bytes came after truncate");
    write_block(file, 1);
    rename(name, other);
    if (length(other) != 2L * block) fail("rename came before the bytes");
    write_block(file, 2);
    if (MPI_File_close(&file) != MPI_SUCCESS) fail("close after rename failed");
    if (length(other) != 3L * block) fail("bytes after rename are lost");
}

static void forks(void) {
    MPI_File file;
    char name[4200];
    snprintf(name, sizeof name, "%s.%d", path, rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 8; ++i) {
        write_block(file, i);
        const pid_t child = fork();
        if (child == 0) exit(length(name) >= 0 ? 0 : 1);
        int status = -1;
        if (waitpid(child, &status, 0) != child || status != 0) fail("a child failed");
    }
    MPI_File_close(&file);
    if (length(name) != 8L * block) fail("bytes are lost");
}

/// Until the process is gone, or a zombie.
static void wait_for_death_of(pid_t process) {
    char name[64], text[512];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)process);
    for (int i = 0; i < 6000; ++i) {
        FILE* stat_file = fopen(name, "r");
        if (stat_file == NULL) return;
        const char* const got = fgets(text, sizeof text, stat_file);
        fclose(stat_file);
        const char* const after = got != NULL ? strrchr(text, ')') : NULL;
        if (after == NULL || after[2] == 'Z' || after[2] == 'X') return;
        usleep(10000);
    }
    fail("the first rank does not die");
}

static void killed(void) {
    MPI_File file;
    int first = (int)getpid();
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    for (int i = 0; i < 8; ++i) write_block(file, (long)i * ranks + rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) kill(getpid(), SIGKILL);
    wait_for_death_of(first);
    // More than there is room for.
    for (int i = 8; i < 64; ++i) write_block(file, (long)i * ranks + rank);
    MPI_Offset size = 0;
    if (MPI_File_get_size(file, &size) != MPI_SUCCESS) fail("no size");
    const int fd = open(path, O_RDONLY);
    char* there = malloc(block);
    for (int i = 0; i < 64; ++i) {
        for (int of = 0; of < ranks; ++of) {
            if (of != rank && (i >= 8 || of != 0)) continue;  // the others may not be so far
            if (pread(fd, there, block, ((off_t)i * ranks + of) * block) != block || there[0] != 'a' + of ||
                memcmp(there, there + 1, block - 1) != 0)
                fail("bytes are lost");
        }
    }
    printf("looked\n");
    fflush(stdout);
    // With a dead rank neither close nor MPI_Finalize can end. The others may still be looking.
    char name[4200];
    snprintf(name, sizeof name, "%s.done.%d", path, rank);
    close(creat(name, 0600));
    for (int other = 1; other < ranks; ++other) {
        snprintf(name, sizeof name, "%s.done.%d", path, other);
        for (int i = 0; i < 3000 && access(name, F_OK) != 0; ++i) usleep(10000);
    }
    _exit(0);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    MPI_Init(&argc, &argv);
    signal(SIGUSR1, SIG_IGN);  // how MPICH's launcher says that a rank has died
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s/behind", argv[1]);
    if (strcmp(argv[2], "looks") == 0) {
        looks();
    } else if (strcmp(argv[2], "fork") == 0) {
        forks();
    } else if (strcmp(argv[2], "kill") == 0) {
        killed();
    } else if (strcmp(argv[2], "exit") == 0) {
        MPI_File file;
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 8; ++i) write_block(file, (long)i * ranks + rank);
        printf("looked\n");
        exit(0);
    } else {
        return 2;
    }
    printf("looked\n");
    MPI_Finalize();
    return 0;
}
