/* The symbols of unit names: folders, questions about names, links, who may use a file. See symbols.h. */
#include "symbols.h"

#include <dirent.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

static char* beside(const char* tail) {
    static char name[8192];
    snprintf(name, sizeof name, "%s.%s", path, tail);
    return name;
}
/* Through system calls, so that nothing of it is in the trace. With one file in it. */
static char* folder(void) {
    static char file[8300];
    char* name = beside("folder");
    hidden(SYS_mkdirat, AT_FDCWD, (long)name, 0755, 0);
    snprintf(file, sizeof file, "%s/file", name);
    hidden(SYS_close, hidden(SYS_openat, AT_FDCWD, (long)file, O_CREAT | O_RDWR, 0644), 0, 0, 0);
    return name;
}
static char* linked(void) {
    char* name = beside("link");
    hidden(SYS_symlinkat, (long)path, AT_FDCWD, (long)name, 0);
    return name;
}

static void do_mkdir(void) {
    typedef int (*Call)(const char*, mode_t);
    TRY("good", AS(Call)(beside("new"), 0750));
    TRY("bad", AS(Call)(beside("new"), 0750));
}
static void do_mkdirat(void) {
    typedef int (*Call)(int, const char*, mode_t);
    TRY("good", AS(Call)(AT_FDCWD, beside("new"), 0750));
    TRY("bad", AS(Call)(AT_FDCWD, beside("new"), 0750));
}
static void do_rmdir(void) {
    typedef int (*Call)(const char*);
    char* name = beside("new");
    hidden(SYS_mkdirat, AT_FDCWD, (long)name, 0755, 0);
    TRY("good", AS(Call)(name));
    TRY("bad", AS(Call)(name));
}
static void do_access(void) {
    typedef int (*Call)(const char*, int);
    TRY("good", AS(Call)(path, R_OK));
    TRY("bad", AS(Call)(missing(), R_OK));
}
static void do_faccessat(void) {
    typedef int (*Call)(int, const char*, int, int);
    TRY("good", AS(Call)(AT_FDCWD, path, R_OK, 0));
    TRY("bad", AS(Call)(AT_FDCWD, missing(), R_OK, 0));
}
static void do_readlink(void) {
    typedef ssize_t (*Call)(const char*, char*, size_t);
    TRY("good", AS(Call)(linked(), buffer, 10));
    TRY("bad", AS(Call)(path, buffer, 10));
}
static void do_readlink_chk(void) {
    typedef ssize_t (*Call)(const char*, char*, size_t, size_t);
    TRY("good", AS(Call)(linked(), buffer, 10, sizeof buffer));
    TRY("bad", AS(Call)(path, buffer, 10, sizeof buffer));
}
static void do_readlinkat(void) {
    typedef ssize_t (*Call)(int, const char*, char*, size_t);
    TRY("good", AS(Call)(AT_FDCWD, linked(), buffer, 10));
    TRY("bad", AS(Call)(AT_FDCWD, path, buffer, 10));
}
static void do_readlinkat_chk(void) {
    typedef ssize_t (*Call)(int, const char*, char*, size_t, size_t);
    TRY("good", AS(Call)(AT_FDCWD, linked(), buffer, 10, sizeof buffer));
    TRY("bad", AS(Call)(AT_FDCWD, path, buffer, 10, sizeof buffer));
}
static void do_statfs(void) {
    typedef int (*Call)(const char*, void*);
    static union {
        struct statfs64 fs;
        struct statvfs64 vfs;
    } status;
    TRY("good", AS(Call)(path, &status));
    TRY("bad", AS(Call)(missing(), &status));
}
static void do_fstatfs(void) {
    typedef int (*Call)(int, void*);
    static union {
        struct statfs64 fs;
        struct statvfs64 vfs;
    } status;
    int fd = opened(O_RDWR);
    TRY("good", AS(Call)(fd, &status));
    close(fd);
    TRY("bad", AS(Call)(-1, &status));
}
static void do_chmod(void) {
    typedef int (*Call)(const char*, mode_t);
    TRY("good", AS(Call)(path, 0600));
    permissions(path);
    TRY("bad", AS(Call)(missing(), 0600));
}
static void do_fchmod(void) {
    typedef int (*Call)(int, mode_t);
    int fd = opened(O_RDWR);
    TRY("good", AS(Call)(fd, 0600));
    close(fd);
    TRY("bad", AS(Call)(-1, 0600));
}
static void do_fchmodat(void) {
    typedef int (*Call)(int, const char*, mode_t, int);
    TRY("good", AS(Call)(AT_FDCWD, path, 0600, 0));
    TRY("bad", AS(Call)(AT_FDCWD, missing(), 0600, 0));
}
static void do_chown(void) {
    typedef int (*Call)(const char*, uid_t, gid_t);
    TRY("good", AS(Call)(path, getuid(), getgid()));
    TRY("bad", AS(Call)(missing(), getuid(), getgid()));
}
static void do_fchown(void) {
    typedef int (*Call)(int, uid_t, gid_t);
    int fd = opened(O_RDWR);
    TRY("good", AS(Call)(fd, getuid(), getgid()));
    close(fd);
    TRY("bad", AS(Call)(-1, getuid(), getgid()));
}
static void do_fchownat(void) {
    typedef int (*Call)(int, const char*, uid_t, gid_t, int);
    TRY("good", AS(Call)(AT_FDCWD, path, getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
    TRY("bad", AS(Call)(AT_FDCWD, missing(), getuid(), getgid(), 0));
}

static DIR* kept;
static long kept_if(void* made) {
    kept = made;
    return made != NULL ? 0 : -1;
}
static void let_go(void) {
    int error = errno;
    if (kept != NULL) closedir(kept);
    errno = error;
}
static void do_opendir(void) {
    TRY("good", kept_if(AS(void* (*)(const char*))(folder())));
    let_go();
    TRY("bad", kept_if(AS(void* (*)(const char*))(missing())));
}
static void do_fdopendir(void) {
    typedef void* (*Call)(int);
    int fd = (int)hidden(SYS_openat, AT_FDCWD, (long)folder(), O_RDONLY | O_DIRECTORY, 0);
    TRY("good", kept_if(AS(Call)(fd)));
    let_go();
    fd = (int)hidden(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0);
    TRY("bad", kept_if(AS(Call)(fd)));
    hidden(SYS_close, fd, 0, 0, 0);
}
/* ".", ".." and a file, and then none. */
static void do_readdir(void) {
    typedef void* (*Call)(DIR*);
    kept = opendir(folder());
    for (int i = 0; i < 4; ++i) TRY("entry", AS(Call)(kept) != NULL);
    let_go();
    kept = opendir(folder());
    hidden(SYS_close, dirfd(kept), 0, 0, 0);
    TRY("bad", AS(Call)(kept) != NULL ? 1 : -1);
    let_go();
}
static void do_readdir_r(void) {
    typedef int (*Call)(DIR*, void*, void**);
    static union {
        struct dirent64 entry;
        char room[1024];
    } entry;
    void* found = NULL;
    kept = opendir(folder());
    for (int i = 0; i < 4; ++i) {
        TRY("entry", -AS(Call)(kept, &entry, &found));
        report("found", found != NULL);
    }
    let_go();
    kept = opendir(folder());
    hidden(SYS_close, dirfd(kept), 0, 0, 0);
    TRY("bad", (errno = 77, -AS(Call)(kept, &entry, &found)));
    let_go();
}
static void do_closedir(void) {
    typedef int (*Call)(DIR*);
    kept = opendir(folder());
    TRY("good", AS(Call)(kept));
    kept = opendir(folder());
    hidden(SYS_close, dirfd(kept), 0, 0, 0);
    TRY("bad", AS(Call)(kept));
}

static const struct Case cases[] = {
    {"mkdir", do_mkdir},
    {"mkdirat", do_mkdirat},
    {"rmdir", do_rmdir},
    {"access", do_access},
    {"eaccess", do_access},
    {"euidaccess", do_access},
    {"faccessat", do_faccessat},
    {"readlink", do_readlink},
    {"__readlink_chk", do_readlink_chk},
    {"readlinkat", do_readlinkat},
    {"__readlinkat_chk", do_readlinkat_chk},
    {"statfs", do_statfs},
    {"statfs64", do_statfs},
    {"statvfs", do_statfs},
    {"statvfs64", do_statfs},
    {"fstatfs", do_fstatfs},
    {"fstatfs64", do_fstatfs},
    {"fstatvfs", do_fstatfs},
    {"fstatvfs64", do_fstatfs},
    {"chmod", do_chmod},
    {"fchmod", do_fchmod},
    {"fchmodat", do_fchmodat},
    {"chown", do_chown},
    {"lchown", do_chown},
    {"fchown", do_fchown},
    {"fchownat", do_fchownat},
    {"opendir", do_opendir},
    {"fdopendir", do_fdopendir},
    {"readdir", do_readdir},
    {"readdir64", do_readdir},
    {"readdir_r", do_readdir_r},
    {"readdir64_r", do_readdir_r},
    {"closedir", do_closedir},
};

int main(int argc, char** argv) { return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, NULL); }
