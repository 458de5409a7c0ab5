/* Calls that move less than they are asked for: short_calls FILE once|on. Writes and reads 4 x 8,000 bytes by every kind of call,
   once each, or on until all is moved; then reads from before the end of the file to beyond it, which is not short. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { bytes = 8000 };
static char data[2 * bytes];
static int goes_on;

typedef ssize_t (*Move)(int fd, char* at, size_t size, off_t offset);
static ssize_t by_write(int fd, char* at, size_t size, off_t offset) { return (void)offset, write(fd, at, size); }
static ssize_t by_pwrite(int fd, char* at, size_t size, off_t offset) { return pwrite(fd, at, size, offset); }
static ssize_t by_read(int fd, char* at, size_t size, off_t offset) { return (void)offset, read(fd, at, size); }
static ssize_t by_pread(int fd, char* at, size_t size, off_t offset) { return pread(fd, at, size, offset); }
static ssize_t by_pieces(int fd, char* at, size_t size, off_t offset, int writes, int placed) {
    struct iovec two[2] = {{at, size / 2}, {at + size / 2, size - size / 2}};
    if (placed) return writes ? pwritev(fd, two, 2, offset) : preadv(fd, two, 2, offset);
    return writes ? writev(fd, two, 2) : readv(fd, two, 2);
}
static ssize_t by_writev(int fd, char* at, size_t size, off_t offset) { return by_pieces(fd, at, size, offset, 1, 0); }
static ssize_t by_pwritev(int fd, char* at, size_t size, off_t offset) { return by_pieces(fd, at, size, offset, 1, 1); }
static ssize_t by_readv(int fd, char* at, size_t size, off_t offset) { return by_pieces(fd, at, size, offset, 0, 0); }
static ssize_t by_preadv(int fd, char* at, size_t size, off_t offset) { return by_pieces(fd, at, size, offset, 0, 1); }

static int move(Move how, int fd, off_t offset) {
    size_t done = 0;
    do {
        const ssize_t moved = how(fd, data + done, bytes - done, offset + (off_t)done);
        if (moved <= 0) return 1;
        done += (size_t)moved;
    } while (goes_on && done < bytes);
    return 0;
}

int main(int argc, char** argv) {
    static const Move writes[] = {by_write, by_pwrite, by_writev, by_pwritev};
    static const Move reads[] = {by_read, by_pread, by_readv, by_preadv};
    if (argc != 3) return 2;
    goes_on = strcmp(argv[2], "on") == 0;
    const int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, 5 * bytes) != 0) return 3;
    for (int i = 0; i < 4; ++i)
        if (lseek(fd, i * bytes, SEEK_SET) < 0 || move(writes[i], fd, i * bytes)) return 4;
    for (int i = 0; i < 4; ++i)
        if (lseek(fd, i * bytes, SEEK_SET) < 0 || move(reads[i], fd, i * bytes)) return 5;
    if (lseek(fd, -10, SEEK_END) < 0) return 6;
    if (read(fd, data, 100) != 10 || read(fd, data, 100) != 0) return 7;
    if (pread(fd, data, 100, 5 * bytes - 20) != 20) return 8;
    return close(fd);
}
