/* Writes and reads sets of partitioned files with ioweir.h; what is in them follows from the numbers of parts, so that any reader can check it.
 *
 *   sets write BASE STEP FILES PARTS [key=value ...]    PARTS: how many each rank has, or "ragged": rank % 3
 *   sets read BASE STEP                                 every rank checks its share
 *   sets together BASE STEP [wrong]                     the same by collective reads; wrong: the last rank asks for what it may not
 *   sets hand BASE FIRST LAST FILES PARTS DELEGATES [key=value ...]    the same for steps FIRST to LAST, by delegates
 *   sets apart BASE FILES                               rank 0 writes sets of its own, then all write some; who frees communicators meanwhile
 *   sets wrong BASE CASE                                what a program may get wrong
 *
 * Part g (from 1) has 40 + 7 (g mod 5) items of "solution" (float64, 1000 g + i / 2), 3 (g mod 4) of "number of nodes" (int32, 100000 g + i) and
 * none of "solution errors". Parameters: the number of items, g, -7. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../trace/programs/few_descriptors.h"
#include "ioweir/ioweir.h"

static const char* const fields[] = {"solution", "number of nodes", "solution errors"};
enum { n_fields = 3 };
static int rank, ranks;

static int64_t items_of(int field, int64_t g) {
    const int64_t items[] = {40 + 7 * (g % 5), 3 * (g % 4), 0};
    return items[field];
}

static int type_of(int field) { return field == 1 ? IOWEIR_INT32 : IOWEIR_FLOAT64; }

static void fill(int field, int64_t g, void* data) {
    int64_t i;
    for (i = 0; i < items_of(field, g); ++i) {
        if (field == 1)
            ((int32_t*)data)[i] = (int32_t)(100000 * g + i);
        else
            ((double*)data)[i] = 1000.0 * (double)g + 0.5 * (double)i;
    }
}

static int say(int code, const char* what) {
    if (code != IOWEIR_SUCCESS) {
        printf("rank %d: %s: %d: %s\n", rank, what, code, ioweir_error_text());
        fflush(stdout);
    }
    return code;
}

static MPI_Info info_of(int count, char** words) {
    MPI_Info info;
    int i;
    MPI_Info_create(&info);
    for (i = 0; i < count; ++i) {
        char* equals = strchr(words[i], '=');
        *equals = '\0';
        MPI_Info_set(info, words[i], equals + 1);
        *equals = '=';
    }
    return info;
}

/* IOWEIR_TEST_KILL=R.N: rank R dies before its Nth block. */
static void die_here(int block) {
    const char* when = getenv("IOWEIR_TEST_KILL");
    int at_rank, at_block;
    if (when != NULL && sscanf(when, "%d.%d", &at_rank, &at_block) == 2 && at_rank == rank && at_block == block)
        raise(SIGKILL);
}

/* Stands before the library's: IOWEIR_TEST_HINT names a key whose value is printed. */
int MPI_File_open(MPI_Comm comm, const char* path, int mode, MPI_Info info, MPI_File* file) {
    const char* const key = getenv("IOWEIR_TEST_HINT");
    char value[MPI_MAX_INFO_VAL + 1];
    int there = 0;
    if (key != NULL && info != MPI_INFO_NULL) MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
    if (there) printf("rank %d opens with %s = %s\n", rank, key, value);
    return PMPI_File_open(comm, path, mode, info, file);
}

static int freed;

/* Stands before the library's: counts. */
int MPI_Comm_free(MPI_Comm* comm) {
    ++freed;
    return PMPI_Comm_free(comm);
}

/* `service`: NULL, or by delegates; `comm`: who writes. */
static int write_set(MPI_Comm comm, ioweir_service* service, const char* base, int64_t step, int64_t files,
                     const char* parts_text, MPI_Info info) {
    int me;
    int64_t parts;
    int64_t first = 0, count = 0, most = 0, part;
    ioweir_set* set = NULL;
    ioweir_figures figures;
    int field, code, blocks = 0;
    MPI_Comm_rank(comm, &me);
    parts = strcmp(parts_text, "ragged") == 0 ? me % 3 : atoll(parts_text);
    if (service == NULL)
        code = say(ioweir_set_create(comm, base, step, parts, files, n_fields, fields, info, &set), "create");
    else
        code = say(ioweir_set_create_by(service, base, step, parts, files, n_fields, fields, info, &set), "create");
    if (code != IOWEIR_SUCCESS) return code;
    say(ioweir_set_my_parts(set, &first, &count), "my parts");
    MPI_Allreduce(&count, &most, 1, MPI_INT64_T, MPI_MAX, comm);
    for (field = 0; field < n_fields; ++field) {
        for (part = 0; part < most; ++part) {
            const int64_t g = first + part;
            const int64_t parameters[] = {items_of(field, g), g, -7};
            void* data = malloc(1024);
            const int64_t mine = part < count ? part : IOWEIR_NO_PART;
            die_here(blocks++);
            fill(field, g, data);
            if (part % 2 == 0) {
                say(ioweir_set_write(set, fields[field], mine, type_of(field), items_of(field, g), 3, parameters, data),
                    "write");
            } else {
                say(ioweir_set_write_header(set, fields[field], mine, type_of(field), items_of(field, g), 3,
                                            parameters),
                    "write header");
                say(ioweir_set_write_block(set, fields[field], mine, data), "write block");
            }
            memset(data, '?', 1024); /* it may be changed now */
            free(data);
        }
    }
    die_here(blocks);
    code = say(ioweir_set_close(&set), "close");
    say(ioweir_set_figures(NULL, &figures), "figures");
    if (set != NULL) printf("rank %d: the set is still there\n", rank);
    if (code == IOWEIR_SUCCESS)
        printf("rank %d wrote parts %" PRId64 " to %" PRId64 ", useful %" PRId64 " padded %" PRId64 " calls %" PRId64
               "\n",
               rank, first, first + count - 1, figures.useful_bytes, figures.padded_bytes, figures.calls);
    return code;
}

/* Where one rank has written with more communicators than others. To free one is collective: all must do the same. */
static int write_apart(const char* base, int64_t files) {
    enum { OWN = 6, TOGETHER = 3 };
    MPI_Comm own[OWN];
    char name[1000];
    int i, least, most, code = IOWEIR_SUCCESS;
    for (i = 0; i < OWN && rank == 0; ++i) {
        snprintf(name, sizeof name, "%s-own%d", base, i);
        MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
        code |= write_set(own[i], NULL, name, 0, 1, "1", MPI_INFO_NULL);
    }
    freed = 0;
    for (i = 0; i < TOGETHER; ++i) {
        code |= write_set(MPI_COMM_WORLD, NULL, base, i, files, "1", MPI_INFO_NULL);
        MPI_Allreduce(&freed, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&freed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) printf("set %d: from %d to %d communicators freed\n", i, least, most);
    }
    for (i = 0; i < OWN && rank == 0; ++i) MPI_Comm_free(&own[i]);
    return code;
}

/* A set that is open when the service is ended. */
static void end_too_early(ioweir_service* service, const char* base) {
    ioweir_set* set = NULL;
    ioweir_service* same = service;
    say(ioweir_set_create_by(service, base, 99, 0, 0, n_fields, fields, MPI_INFO_NULL, &set), "create");
    say(ioweir_service_end(&same), "end");
    if (same != service) printf("rank %d: the service is gone\n", rank);
    say(ioweir_set_abandon(&set), "abandon");
}

static int hand_over(const char* base, int64_t first, int64_t last, int64_t files, const char* parts, int64_t delegates,
                     MPI_Info info) {
    ioweir_service* service = NULL;
    MPI_Comm workers;
    MPI_Info service_info, set_info;
    int64_t step;
    int i, count, code;
    /* Keys of the service go there, the others to the sets. */
    MPI_Info_dup(info, &set_info);
    MPI_Info_create(&service_info);
    MPI_Info_get_nkeys(info, &count);
    for (i = 0; i < count; ++i) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int there;
        MPI_Info_get_nthkey(info, i, key);
        if (strstr(key, "_memory") == NULL && strstr(key, "ioweir_delegate") == NULL &&
            strcmp(key, "ioweir_set_bytes") != 0)
            continue;
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
        MPI_Info_set(service_info, key, value);
        MPI_Info_delete(set_info, key);
    }
    code = say(ioweir_split(MPI_COMM_WORLD, delegates, service_info, &workers, &service), "split");
    if (code == IOWEIR_SUCCESS && workers == MPI_COMM_NULL) {
        printf("rank %d is a delegate\n", rank);
        setenv("IOWEIR_TEST_SERVES", "1", 1); /* see storage_calls.c */
        code = say(ioweir_service_run(service), "run");
        unsetenv("IOWEIR_TEST_SERVES");
        say(ioweir_service_end(&service), "end");
    } else if (code == IOWEIR_SUCCESS) {
        for (step = first; step <= last; ++step) {
            write_set(workers, service, base, step, files, parts, set_info);
            if (step == first) say(ioweir_service_wait(service), "wait");
        }
        if (strcmp(parts, "open") == 0) end_too_early(service, base);
        code = say(ioweir_service_end(&service), "end");
    }
    MPI_Info_free(&set_info);
    MPI_Info_free(&service_info);
    return code;
}

static int read_set(const char* base, int64_t step, int together, int asks_wrong) {
    ioweir_set* set = NULL;
    int64_t found_step = 0, files = 0, parts = 0, first = 0, count = 0, most = 0, g;
    int n = 0, field, code, wrong = 0;
    code = say(ioweir_set_open(MPI_COMM_WORLD, base, step, MPI_INFO_NULL, &set), "open");
    if (code != IOWEIR_SUCCESS) return code;
    say(ioweir_set_inquire(set, &found_step, &files, &parts, &n), "inquire");
    say(ioweir_set_my_parts(set, &first, &count), "my parts");
    MPI_Allreduce(&count, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (g = first; g < first + (together ? most : count); ++g) {
        for (field = 0; field < n_fields; ++field) {
            int64_t bytes = -1, parameters[3] = {0, 0, 0};
            int n_parameters = 3;
            const int64_t size = field == 1 ? 4 : 8;
            char data[1024], wanted[1024];
            if (g >= first + count) {
                say(ioweir_set_read_all(set, fields[field], IOWEIR_NO_PART, IOWEIR_INT32, 0, NULL), "read nothing");
                continue;
            }
            if (asks_wrong && rank == ranks - 1 && field == 0) {
                say(ioweir_set_read_all(set, fields[field], 1, IOWEIR_FLOAT64, 8 * items_of(0, 1), data),
                    "read another's");
                continue;
            }
            code = say(ioweir_set_query(set, fields[field], g, &bytes, &n_parameters, parameters), "query");
            if (code != IOWEIR_SUCCESS) {
                ++wrong;
                continue;
            }
            if (bytes != size * items_of(field, g) || n_parameters != 3 || parameters[0] != items_of(field, g) ||
                parameters[1] != g || parameters[2] != -7) {
                printf("rank %d: part %" PRId64 ": wrong header of %s: %" PRId64 " bytes\n", rank, g, fields[field],
                       bytes);
                ++wrong;
                continue;
            }
            memset(data, '?', sizeof data);
            memset(wanted, '?', sizeof wanted);
            fill(field, g, wanted);
            code = together ? ioweir_set_read_all(set, fields[field], g, type_of(field), bytes, data)
                            : ioweir_set_read(set, fields[field], g, type_of(field), bytes, data);
            if (say(code, "read") != IOWEIR_SUCCESS)
                ++wrong;
            else if (memcmp(data, wanted, sizeof data) != 0) {
                printf("rank %d: part %" PRId64 ": wrong items of %s\n", rank, g, fields[field]);
                ++wrong;
            }
        }
    }
    say(ioweir_set_close(&set), "close");
    printf("rank %d read step %" PRId64 " of %" PRId64 " files, parts %" PRId64 " to %" PRId64 " of %" PRId64
           ", %d fields, %d wrong\n",
           rank, found_step, files, first, first + count - 1, parts, n, wrong);
    return wrong == 0 ? 0 : 1;
}

static int wrong_calls(const char* base, const char* which) {
    ioweir_set* set = NULL;
    const char* const one[] = {"solution"};
    const char* const twice[] = {"solution", "solution"};
    double value = 1.5;
    const int last = rank == ranks - 1;
    if (strcmp(which, "files") == 0)
        return say(ioweir_set_create(MPI_COMM_WORLD, base, 1, 1, ranks + 1, 1, one, MPI_INFO_NULL, &set), "create");
    if (strcmp(which, "twice") == 0)
        return say(ioweir_set_create(MPI_COMM_WORLD, base, 1, 1, 1, 2, twice, MPI_INFO_NULL, &set), "create");
    if (strcmp(which, "null") == 0) return say(ioweir_set_close(&set), "close");
    if (say(ioweir_set_create(MPI_COMM_WORLD, base, 1, 1, 1, 1, one, MPI_INFO_NULL, &set), "create") != IOWEIR_SUCCESS)
        return 1;
    if (strcmp(which, "field") == 0)
        say(ioweir_set_write(set, last ? "solutoin" : "solution", 0, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
    else if (strcmp(which, "part") == 0)
        say(ioweir_set_write(set, "solution", last ? 1 : 0, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
    else if (strcmp(which, "type") == 0)
        say(ioweir_set_write(set, "solution", 0, last ? 77 : IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
    else if (strcmp(which, "again") == 0) {
        say(ioweir_set_write(set, "solution", 0, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
        say(ioweir_set_write(set, "solution", last ? 0 : IOWEIR_NO_PART, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
    } else if (strcmp(which, "missing") == 0)
        say(ioweir_set_write(set, "solution", last ? IOWEIR_NO_PART : 0, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
    else if (strcmp(which, "header") == 0)
        say(ioweir_set_write_block(set, "solution", 0, &value), "write block");
    else if (strcmp(which, "abandon") == 0) {
        say(ioweir_set_write(set, "solution", 0, IOWEIR_FLOAT64, 1, 0, NULL, &value), "write");
        return say(ioweir_set_abandon(&set), "abandon");
    }
    return say(ioweir_set_close(&set), "close");
}

int main(int argc, char** argv) {
    int code = 2, level;
    /* IOWEIR_TEST_LEVEL: what is asked of MPI. */
    const char* const asked = getenv("IOWEIR_TEST_LEVEL");
    MPI_Init_thread(&argc, &argv,
                    asked != NULL && strcmp(asked, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    few_descriptors();
    if (argc >= 6 && strcmp(argv[1], "write") == 0) {
        MPI_Info info = info_of(argc - 6, argv + 6);
        code = write_set(MPI_COMM_WORLD, NULL, argv[2], atoll(argv[3]), atoll(argv[4]), argv[5], info);
        MPI_Info_free(&info);
    } else if (argc >= 8 && strcmp(argv[1], "hand") == 0) {
        MPI_Info info = info_of(argc - 8, argv + 8);
        code = hand_over(argv[2], atoll(argv[3]), atoll(argv[4]), atoll(argv[5]), argv[6], atoll(argv[7]), info);
        MPI_Info_free(&info);
    } else if (argc == 4 && strcmp(argv[1], "read") == 0) {
        code = read_set(argv[2], atoll(argv[3]), 0, 0);
    } else if (argc >= 4 && strcmp(argv[1], "together") == 0) {
        code = read_set(argv[2], atoll(argv[3]), 1, argc == 5);
    } else if (argc == 4 && strcmp(argv[1], "apart") == 0) {
        code = write_apart(argv[2], atoll(argv[3]));
    } else if (argc == 4 && strcmp(argv[1], "wrong") == 0) {
        code = wrong_calls(argv[2], argv[3]);
    }
    MPI_Finalize();
    return code;
}
