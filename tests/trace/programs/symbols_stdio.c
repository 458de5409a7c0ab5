/* The symbols of unit stdio. See symbols.h. Files consist of lines of ten bytes. */
#include "symbols.h"

#include <stdarg.h>

static FILE* file_opened(const char* mode) {
    FILE* file = fopen(path, mode);
    if (file == NULL) {
        perror(path);
        exit(3);
    }
    return file;
}
/* Twice on the file; once where the file is not open for it; once on a stream that is no file. */
#define STREAM(good_mode, bad_mode, call)              \
    FILE* file = file_opened(good_mode);               \
    TRY("good", call);                                 \
    TRY("again", call);                                \
    fclose(file);                                      \
    file = file_opened(bad_mode);                      \
    TRY("bad", call);                                  \
    fclose(file);                                      \
    static char memory[64] = "abcdefghi\nabcdefghi\n"; \
    file = fmemopen(memory, sizeof memory, "r+");      \
    TRY("untraced", call);                             \
    fclose(file)
#define READING(call) STREAM("r", "w", call)
#define WRITING(call) STREAM("r+", "r", call)

static long closed(FILE* file) {
    int error = errno;
    if (file != NULL) fclose(file);
    errno = error;
    return file != NULL ? 0 : -1;
}
typedef FILE* (*Open)(const char*, const char*);
static void do_fopen(void) {
    TRY("good", closed(AS(Open)(path, "r")));
    TRY("bad", closed(AS(Open)(missing(), "r")));
    TRY("device", closed(AS(Open)("/dev/null", "r")));
}
static void do_fdopen(void) {
    typedef FILE* (*Call)(int, const char*);
    int fd = opened(O_RDWR);
    lseek(fd, 30, SEEK_SET);
    errno = SENTINEL;
    FILE* file = AS(Call)(fd, "r+");
    report("good", file != NULL ? 0 : -1);
    TRY("read", (long)fread(buffer, 1, 10, file));
    fclose(file);
    TRY("bad", closed(AS(Call)(-1, "r")));
}
static void do_freopen(void) {
    typedef FILE* (*Call)(const char*, const char*, FILE*);
    FILE* file = file_opened("r");
    errno = SENTINEL;
    file = AS(Call)(created(), "w", file);
    report("good", file != NULL ? 0 : -1);
    TRY("write", (long)fwrite(buffer, 1, 10, file));
    TRY("bad", closed(AS(Call)(missing(), "r", file)));
}
static void do_tmpfile(void) {
    typedef FILE* (*Call)(void);
    struct rlimit limit, none = {0, 0};
    TRY("good", closed(AS(Call)()));
    getrlimit(RLIMIT_NOFILE, &limit);
    none.rlim_max = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &none);
    TRY("bad", closed(AS(Call)()));
    setrlimit(RLIMIT_NOFILE, &limit);
}
static void do_fclose(void) {
    typedef int (*Call)(FILE*);
    FILE* file = file_opened("r");
    TRY("good", AS(Call)(file));
    file = fopen("/dev/full", "w");
    fputs("text", file);
    TRY("bad", AS(Call)(file));
}
typedef size_t (*Items)(void*, size_t, size_t, FILE*);
static long items(size_t count) { return count == 0 ? -1 : (long)count; }
static void do_fread(void) { READING(items(AS(Items)(buffer + 2000, 7, 3, file))); }
typedef size_t (*GuardedItems)(void*, size_t, size_t, size_t, FILE*);
static void do_fread_chk(void) { READING(items(AS(GuardedItems)(buffer + 2000, 100, 7, 3, file))); }
static void do_fwrite(void) { WRITING(items(AS(Items)(buffer, 7, 3, file))); }
static long text(const char* found) { return found == NULL ? -1 : (long)strlen(found); }
static void do_fgets(void) { READING(text(AS(char* (*)(char*, int, FILE*))(buffer + 2000, 7, file))); }
static void do_fgets_chk(void) {
    READING(text(AS(char* (*)(char*, size_t, int, FILE*))(buffer + 2000, 100, 70, file)));
}
static char* line;
static size_t room;
static void do_getline(void) { READING(AS(ssize_t(*)(char**, size_t*, FILE*))(&line, &room, file)); }
static void do_getdelim(void) { READING(AS(ssize_t(*)(char**, size_t*, int, FILE*))(&line, &room, 'd', file)); }
typedef int (*Get)(FILE*);
static void do_fgetc(void) { READING(AS(Get)(file)); }
static void do_ungetc(void) {
    typedef int (*Call)(int, FILE*);
    FILE* file = file_opened("r");
    TRY("read", (long)fread(buffer + 2000, 1, 10, file));
    TRY("good", AS(Call)('x', file));
    TRY("bad", AS(Call)(EOF, file) == EOF ? (errno = 77, -1) : 0);
    TRY("read", (long)fread(buffer + 2000, 1, 3, file));
    fclose(file);
}
static void do_fputs(void) { WRITING(AS(int (*)(const char*, FILE*))("thirteen text", file) < 0 ? -1 : 0); }
typedef int (*Put)(int, FILE*);
static void do_fputc(void) { WRITING(AS(Put)('x', file)); }

static int print(FILE* file, int number) { return AS(int (*)(FILE*, const char*, ...))(file, "%020d", number); }
static int print_checked(FILE* file, int number) {
    return AS(int (*)(FILE*, int, const char*, ...))(file, 1, "%020d", number);
}
static int print_list(FILE* file, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(FILE*, const char*, va_list))(file, format, list);
    va_end(list);
    return result;
}
static int print_list_checked(FILE* file, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(FILE*, int, const char*, va_list))(file, 1, format, list);
    va_end(list);
    return result;
}
static void do_fprintf(void) { WRITING(print(file, 5)); }
static void do_fprintf_chk(void) { WRITING(print_checked(file, 5)); }
static void do_vfprintf(void) { WRITING(print_list(file, "%020d", 5)); }
static void do_vfprintf_chk(void) { WRITING(print_list_checked(file, "%020d", 5)); }
static char word[64];
static void do_fscanf(void) { READING(AS(int (*)(FILE*, const char*, ...))(file, "%20s", word)); }
static int scan_list(FILE* file, const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(FILE*, const char*, va_list))(file, format, list);
    va_end(list);
    return result;
}
static void do_vfscanf(void) { READING(scan_list(file, "%20s", word)); }

/* stdin and stdout, when the program has made files of them. Only then: results go to stdout. */
#define STANDARD(stream, good_mode, bad_mode, call) \
    FILE* saved = stream;                           \
    stream = file_opened(good_mode);                \
    errno = SENTINEL;                               \
    long first = (call);                            \
    int first_error = errno;                        \
    fclose(stream);                                 \
    stream = file_opened(bad_mode);                 \
    errno = SENTINEL;                               \
    long second = (call);                           \
    int second_error = errno;                       \
    fclose(stream);                                 \
    stream = saved;                                 \
    errno = first_error;                            \
    report("good", first);                          \
    errno = second_error;                           \
    report("bad", second)
static void do_getchar(void) { STANDARD(stdin, "r", "w", AS(int (*)(void))()); }
static void do_putchar(void) { STANDARD(stdout, "r+", "r", AS(int (*)(int))('x')); }
static void do_puts(void) { STANDARD(stdout, "r+", "r", AS(int (*)(const char*))("ten bytes") < 0 ? -1 : 0); }
static void do_printf(void) { STANDARD(stdout, "r+", "r", AS(int (*)(const char*, ...))("%020d", 5)); }
static void do_printf_chk(void) { STANDARD(stdout, "r+", "r", AS(int (*)(int, const char*, ...))(1, "%020d", 5)); }
static int standard_list(const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(const char*, va_list))(format, list);
    va_end(list);
    return result;
}
static int standard_list_checked(const char* format, ...) {
    va_list list;
    va_start(list, format);
    int result = AS(int (*)(int, const char*, va_list))(1, format, list);
    va_end(list);
    return result;
}
static void do_vprintf(void) { STANDARD(stdout, "r+", "r", standard_list("%020d", 5)); }
static void do_vprintf_chk(void) { STANDARD(stdout, "r+", "r", standard_list_checked("%020d", 5)); }
static void do_scanf(void) { STANDARD(stdin, "r", "w", AS(int (*)(const char*, ...))("%20s", word)); }
static void do_vscanf(void) { STANDARD(stdin, "r", "w", standard_list("%20s", word)); }

#define SEEKING(first, second, bad)                       \
    FILE* file = file_opened("r");                        \
    TRY("good", first);                                   \
    TRY("read", (long)fread(buffer + 2000, 1, 10, file)); \
    TRY("again", second);                                 \
    TRY("read", (long)fread(buffer + 2000, 1, 10, file)); \
    TRY("bad", bad);                                      \
    fclose(file)
static void do_fseek(void) {
    typedef int (*Call)(FILE*, long, int);
    SEEKING(AS(Call)(file, 100, SEEK_SET), AS(Call)(file, -30, SEEK_END), AS(Call)(file, -30, SEEK_SET));
}
static void do_rewind(void) {
    FILE* file = file_opened("r");
    TRY("read", (long)fread(buffer + 2000, 1, 10, file));
    TRY("good", (AS(void (*)(FILE*))(file), 0));
    TRY("read", (long)fread(buffer + 2000, 1, 10, file));
    TRY("failed", pread(-1, buffer, 1, 0));
    fclose(file);
}
static void do_fsetpos(void) {
    typedef int (*Call)(FILE*, const fpos_t*);
    fpos_t begin, behind, wrong;
    FILE* other = fopen(created(), "w+");
    fwrite(buffer, 1, 10, other);
    fgetpos(other, &begin);
    fwrite(buffer, 1, 20, other);
    fgetpos(other, &behind);
    fclose(other);
    memset(&wrong, 0xff, sizeof wrong);
    SEEKING(AS(Call)(file, &begin), AS(Call)(file, &behind), AS(Call)(file, &wrong));
}
static void do_fflush(void) {
    FILE* file = file_opened("r+");
    fwrite(buffer, 1, 10, file);
    TRY("good", AS(Get)(file));
    fwrite(buffer, 1, 10, file);
    hidden(SYS_close, fileno(file), 0, 0, 0);
    TRY("bad", AS(Get)(file));
    fclose(file);
}
static void do_setvbuf(void) {
    typedef int (*Call)(FILE*, char*, int, size_t);
    FILE* file = file_opened("r");
    TRY("good", AS(Call)(file, NULL, _IOFBF, 512));
    TRY("bad", AS(Call)(file, NULL, 77, 512) != 0 ? (errno = 77, -1) : 0);
    fclose(file);
}
static char own_buffer[BUFSIZ];
#define BUFFERING(call)                     \
    FILE* file = file_opened("r");          \
    TRY("good", (call, 0));                 \
    TRY("failed", pread(-1, buffer, 1, 0)); \
    fclose(file)
static void do_setbuffer(void) { BUFFERING(AS(void (*)(FILE*, char*, size_t))(file, own_buffer, BUFSIZ)); }
static void do_setbuf(void) { BUFFERING(AS(void (*)(FILE*, char*))(file, own_buffer)); }
static void do_setlinebuf(void) { BUFFERING(AS(void (*)(FILE*))(file)); }

static const struct Case cases[] = {
    {"fopen", do_fopen},
    {"fopen64", do_fopen},
    {"fdopen", do_fdopen},
    {"freopen", do_freopen},
    {"freopen64", do_freopen},
    {"tmpfile", do_tmpfile},
    {"tmpfile64", do_tmpfile},
    {"fclose", do_fclose},
    {"fread", do_fread},
    {"fread_unlocked", do_fread},
    {"__fread_chk", do_fread_chk},
    {"__fread_unlocked_chk", do_fread_chk},
    {"fwrite", do_fwrite},
    {"fwrite_unlocked", do_fwrite},
    {"fgets", do_fgets},
    {"fgets_unlocked", do_fgets},
    {"__fgets_chk", do_fgets_chk},
    {"__fgets_unlocked_chk", do_fgets_chk},
    {"getline", do_getline},
    {"getdelim", do_getdelim},
    {"__getdelim", do_getdelim},
    {"fgetc", do_fgetc},
    {"getc", do_fgetc},
    {"_IO_getc", do_fgetc},
    {"fgetc_unlocked", do_fgetc},
    {"getc_unlocked", do_fgetc},
    {"getchar", do_getchar},
    {"getchar_unlocked", do_getchar},
    {"ungetc", do_ungetc},
    {"fputs", do_fputs},
    {"fputs_unlocked", do_fputs},
    {"puts", do_puts},
    {"fputc", do_fputc},
    {"putc", do_fputc},
    {"_IO_putc", do_fputc},
    {"fputc_unlocked", do_fputc},
    {"putc_unlocked", do_fputc},
    {"putchar", do_putchar},
    {"putchar_unlocked", do_putchar},
    {"fprintf", do_fprintf},
    {"vfprintf", do_vfprintf},
    {"__fprintf_chk", do_fprintf_chk},
    {"__vfprintf_chk", do_vfprintf_chk},
    {"printf", do_printf},
    {"vprintf", do_vprintf},
    {"__printf_chk", do_printf_chk},
    {"__vprintf_chk", do_vprintf_chk},
    {"fscanf", do_fscanf},
    {"vfscanf", do_vfscanf},
    {"scanf", do_scanf},
    {"vscanf", do_vscanf},
    {"__isoc99_fscanf", do_fscanf},
    {"__isoc99_vfscanf", do_vfscanf},
    {"__isoc99_scanf", do_scanf},
    {"__isoc99_vscanf", do_vscanf},
    {"__isoc23_fscanf", do_fscanf},
    {"__isoc23_vfscanf", do_vfscanf},
    {"__isoc23_scanf", do_scanf},
    {"__isoc23_vscanf", do_vscanf},
    {"fseek", do_fseek},
    {"fseeko", do_fseek},
    {"fseeko64", do_fseek},
    {"rewind", do_rewind},
    {"fsetpos", do_fsetpos},
    {"fsetpos64", do_fsetpos},
    {"fflush", do_fflush},
    {"fflush_unlocked", do_fflush},
    {"setvbuf", do_setvbuf},
    {"setbuffer", do_setbuffer},
    {"setbuf", do_setbuf},
    {"setlinebuf", do_setlinebuf},
};

int main(int argc, char** argv) {
    for (int i = 0; i < FILE_BYTES; ++i) buffer[i] = "abcdefghi\n"[i % 10];
    return try_cases(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
