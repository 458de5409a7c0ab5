/* One call that names a file: names CALL FILE [OTHER]. Reads go to standard output, answers as "bytes blocks"; an error as its errno, with
   exit code 1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(void) {
    printf("%d\n", errno);
    return 1;
}

static int show(int fd) {
    char buffer[4096];
    ssize_t got;
    if (fd < 0) return failed();
    while ((got = read(fd, buffer, sizeof buffer)) > 0) fwrite(buffer, 1, (size_t)got, stdout);
    return got < 0 || close(fd) != 0 ? failed() : 0;
}

static int show_stream(FILE* file) {
    int c;
    if (file == NULL) return failed();
    while ((c = getc(file)) != EOF) putchar(c);
    return fclose(file) != 0 ? failed() : 0;
}

static int show_mapping(const char* path) {
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) return failed();
    void* bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) return failed();
    fwrite(bytes, 1, (size_t)status.st_size, stdout);
    return 0;
}

static int tell(int code, const struct stat* status) {
    if (code != 0) return failed();
    printf("%lld %lld\n", (long long)status->st_size, (long long)status->st_blocks);
    return 0;
}

static int plain(int code) { return code != 0 ? failed() : 0; }

static int append(int fd) {
    if (fd < 0 || write(fd, "more", 4) != 4) return failed();
    return plain(close(fd));
}

static int append_stream(FILE* file) {
    if (file == NULL) return failed();
    printf("%ld\n", ftell(file));
    if (fwrite("more", 1, 4, file) != 4) return failed();
    return plain(fclose(file));
}

/* Whether another process finds the lock that this one has taken, after this one has named the file again. */
static int locks(const char* path) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat status;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0) return failed();
    if (stat(path, &status) != 0 || truncate(path, status.st_size) != 0 || link(path, "second-name") != 0)
        return failed();
    pid_t child = fork();
    if (child == 0) {
        lock.l_type = F_WRLCK;
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 9);
    }
    int code = 0;
    waitpid(child, &code, 0);
    return WEXITSTATUS(code);
}

static int call(const char* name, const char* path, const char* other) {
    struct stat status;
    memset(&status, 0, sizeof status);
    if (strcmp(name, "open") == 0) return show(open(path, O_RDONLY));
    if (strcmp(name, "open-rdwr") == 0) return show(open(path, O_RDWR | O_CREAT, 0600));
    if (strcmp(name, "openat") == 0) {
        char* slash = strrchr(path, '/');
        int directory = open(strndup(path, (size_t)(slash - path)), O_RDONLY | O_DIRECTORY);
        return show(openat(directory, slash + 1, O_RDONLY | O_CLOEXEC));
    }
    if (strcmp(name, "openat2") == 0) {
        struct open_how how = {.flags = O_RDONLY};
        return show((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
    }
    if (strcmp(name, "syscall") == 0) return show((int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY));
    if (strcmp(name, "fopen") == 0) return show_stream(fopen(path, "r"));
    if (strcmp(name, "fopen-plus") == 0) return show_stream(fopen(path, "r+"));
    if (strcmp(name, "freopen") == 0) return show_stream(freopen(path, "r", stdin));
    if (strcmp(name, "mmap") == 0) return show_mapping(path);
    if (strcmp(name, "stat") == 0) return tell(stat(path, &status), &status);
    if (strcmp(name, "lstat") == 0) return tell(lstat(path, &status), &status);
    if (strcmp(name, "fstatat") == 0) return tell(fstatat(AT_FDCWD, path, &status, 0), &status);
    if (strcmp(name, "statx") == 0) {
        struct statx answer;
        int code = statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &answer);
        status.st_size = (off_t)answer.stx_size;
        status.st_blocks = (blkcnt_t)answer.stx_blocks;
        return tell(code, &status);
    }
    if (strcmp(name, "access") == 0) return plain(access(path, R_OK | W_OK));
    if (strcmp(name, "append") == 0) return append(open(path, O_WRONLY | O_APPEND));
    if (strcmp(name, "append-stream") == 0) return append_stream(fopen(path, "a"));
    if (strcmp(name, "write-new") == 0) return append(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    if (strcmp(name, "creat") == 0) return append(creat(path, 0600));
    if (strcmp(name, "write-stream") == 0) return append_stream(fopen(path, "w"));
    if (strcmp(name, "exclusive") == 0) return append(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (strcmp(name, "truncate") == 0) return plain(truncate(path, atoll(other)));
    if (strcmp(name, "unlink") == 0) return plain(unlink(path));
    if (strcmp(name, "unlinkat") == 0) return plain(unlinkat(AT_FDCWD, path, 0));
    if (strcmp(name, "remove") == 0) return plain(remove(path));
    if (strcmp(name, "rename") == 0) return plain(rename(path, other));
    if (strcmp(name, "renameat") == 0) return plain(renameat(AT_FDCWD, path, AT_FDCWD, other));
    if (strcmp(name, "renameat2") == 0) return plain(renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_NOREPLACE));
    if (strcmp(name, "exchange") == 0) return plain(renameat2(AT_FDCWD, path, AT_FDCWD, other, RENAME_EXCHANGE));
    if (strcmp(name, "link") == 0) return plain(link(path, other));
    if (strcmp(name, "symlink") == 0) return plain(symlink(path, other));
    if (strcmp(name, "locks") == 0) return locks(path);
    fprintf(stderr, "names: no call %s\n", name);
    return 3;
}

int main(int argc, char** argv) {
    if (argc < 3) return 3;
    return call(argv[1], argv[2], argc > 3 ? argv[3] : "");
}
