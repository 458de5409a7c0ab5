/* Random calls that move file positions, and where each of them really was, found without the calls that are tested.
   positions DIRECTORY alone SEED: one thread; the kernel is asked (by a system call that nothing intercepts).
   positions DIRECTORY threads SEED: several threads on one open file description, through copies of its descriptor; each
     record that is written says who wrote it, and the file's content at the end says where.
   positions DIRECTORY shared: what other processes do with the description.
   Prints "file kind bytes offset" for each call, with threads in front: "thread file ...". */
#include "symbols.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/sendfile.h>

static unsigned long state;
static unsigned long next_number(unsigned long below) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % below;
}
static void must(int condition, const char* what) {
    if (!condition) {
        perror(what);
        exit(9);
    }
}
static long where(int fd) { return hidden(SYS_lseek, fd, 0, SEEK_CUR, 0); }
static int file_named(const char* name, int flags) {
    char place[8192];
    snprintf(place, sizeof place, "%s/%s", directory, name);
    int fd = open(place, flags, 0644);
    must(fd >= 0, place);
    return fd;
}

enum { FILES = 4, STEPS = 3000 };
static void alone(void) {
    int fds[FILES][2], appending[FILES];
    char names[FILES][16];
    for (int i = 0; i < FILES; ++i) {
        appending[i] = i == FILES - 1;
        snprintf(names[i], sizeof names[i], "file.%d", i);
        fds[i][0] = file_named(names[i], O_CREAT | O_RDWR | (appending[i] ? O_APPEND : 0));
        fds[i][1] = dup(fds[i][0]);
    }
    for (int step = 0; step < STEPS; ++step) {
        int i = (int)next_number(FILES), copy = (int)next_number(2), fd = fds[i][copy];
        size_t bytes = 1 + next_number(700);
        long before = where(fd), result = 0;
        const char* kind = "write";
        switch (next_number(12)) {
            case 0:
                result = lseek(fd, (off_t)next_number(9000), SEEK_SET);
                kind = "lseek";
                break;
            case 1:
                result = lseek(fd, (off_t)next_number(50) - 25, SEEK_CUR);
                kind = "lseek";
                break;
            case 2:
                result = lseek(fd, -(off_t)next_number(30), SEEK_END);
                kind = "lseek";
                break;
            case 3:
            case 4:
                result = read(fd, buffer, bytes);
                kind = "read";
                break;
            case 5:
                result = readv(fd, vector(bytes / 2, bytes), 2);
                kind = "readv";
                break;
            case 6:
                result = writev(fd, vector(bytes / 2, bytes), 2);
                kind = "writev";
                break;
            case 7: { /* the copy becomes one of another description for a while */
                must(dup2(fds[(i + 1) % FILES][0], fds[i][1 - copy]) >= 0, "dup2");
                must(dup2(fd, fds[i][1 - copy]) >= 0, "dup2");
                continue;
            }
            case 8: { /* and this one is closed and copied again */
                must(close(fd) == 0, "close");
                fds[i][copy] = fcntl(fds[i][1 - copy], F_DUPFD, 3);
                must(fds[i][copy] >= 0, "F_DUPFD");
                continue;
            }
            case 9:
                result = preadv2(fd, vector(bytes, 5), 2, -1, 0);
                kind = "preadv2";
                break;
            case 10:
                if (appending[i] || where(fd) > 8000) continue;
                result = dprintf(fd, "%0*d", (int)bytes, 7);
                kind = "dprintf";
                break;
            default:
                result = write(fd, buffer, bytes);
        }
        if (result < 0 && kind[0] == 'l') continue; /* before the begin of the file */
        must(result >= 0, kind);
        long offset = kind[0] == 'l' ? result : before;
        if (appending[i] && strchr(kind, 'w') != NULL) offset = -1;
        printf("%s %s %ld %ld\n", names[i], kind, kind[0] == 'l' ? 0 : result, offset);
    }
    for (int i = 0; i < FILES; ++i)
        for (int copy = 0; copy < 2; ++copy) close(fds[i][copy]);
}

enum { THREADS = 4, RECORDS = 1500, RECORD = 32 };
static int shared_fd;
static void* writer(void* argument) {
    long thread = (long)argument;
    char name[32], record[RECORD + 1];
    snprintf(name, sizeof name, "thread.%ld", thread);
    close(file_named(name, O_CREAT | O_WRONLY)); /* says which thread this is */
    int fd = thread % 2 == 0 ? shared_fd : dup(shared_fd);
    for (int i = 0; i < RECORDS; ++i) {
        snprintf(record, sizeof record, "%8ld%8d%16s", thread, i, "");
        must(write(fd, record, RECORD) == RECORD, "write");
    }
    return NULL;
}
static void threads(void) {
    shared_fd = file_named("shared", O_CREAT | O_RDWR);
    must(write(shared_fd, "................................", RECORD) == RECORD, "write");
    pthread_t ids[THREADS];
    for (long i = 0; i < THREADS; ++i) pthread_create(&ids[i], NULL, writer, (void*)i);
    for (int i = 0; i < THREADS; ++i) pthread_join(ids[i], NULL);
    for (int i = 0; i < 10; ++i) must(write(shared_fd, "................................", RECORD) == RECORD, "write");
    close(shared_fd);
    int fd = file_named("shared", O_RDONLY);
    char record[RECORD + 1] = "";
    for (long offset = 0; hidden(SYS_pread64, fd, (long)record, RECORD, offset) == RECORD; offset += RECORD)
        if (record[0] != '.') printf("%.8s %.8s %ld\n", record, record + 8, offset);
    close(fd);
}

/* 10 bytes before, 10 after the file has been given to another process, in the ways there are. */
static void say(const char* name, int fd) { must(write(fd, buffer, 10) == 10, name); }
extern char** environ;
static void spawn(posix_spawn_file_actions_t* actions) {
    char* words[] = {"true", NULL};
    pid_t child;
    must(posix_spawnp(&child, "true", actions, NULL, words, environ) == 0, "posix_spawnp");
    waitpid(child, NULL, 0);
}
static void shared(void) {
    int kept = file_named("forked", O_CREAT | O_RDWR);
    say("forked", kept);
    pid_t child = fork();
    if (child == 0) {
        say("forked", kept);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    say("forked", kept);
    int inherited = file_named("inherited", O_CREAT | O_RDWR),
        closed = file_named("closed", O_CREAT | O_RDWR | O_CLOEXEC);
    say("inherited", inherited);
    say("closed", closed);
    must(system("true") == 0, "system");
    spawn(NULL);
    child = vfork();
    if (child == 0) {
        execlp("true", "true", (char*)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    say("inherited", inherited);
    say("closed", closed);
    int redirected = file_named("redirected", O_CREAT | O_RDWR | O_CLOEXEC);
    say("redirected", redirected);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, redirected, 1);
    spawn(&actions);
    posix_spawn_file_actions_destroy(&actions);
    say("redirected", redirected);
    int borrowed = file_named("borrowed", O_CREAT | O_RDWR | O_CLOEXEC);
    say("borrowed", borrowed);
    child = vfork();
    if (child == 0) {
        dup2(borrowed, 1);
        execlp("echo", "echo", "twelve bytes", (char*)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    say("borrowed", borrowed);
    say("borrowed", file_named("afterwards", O_CREAT | O_RDWR));
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    directory = argv[1];
    setvbuf(stdout, NULL, _IOFBF, 1 << 22);
    state = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
    if (strcmp(argv[2], "alone") == 0) alone();
    if (strcmp(argv[2], "threads") == 0) threads();
    if (strcmp(argv[2], "shared") == 0) shared();
    (void)try_cases;
    return 0;
}
