/* Calls of MPI-IO with random views and types in memory, and which bytes of the file, and of memory, each one means:
   extents FILE SEED VIEWS
   Each rank writes a line a call into FILE.said.RANK: NAME file OFFSET+LENGTH ... memory OFFSET+LENGTH ...
   What a type means is asked of MPI: MPI_Pack, of numbers that tell where they stand. test_extents.py compares it with the trace. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                     \
    do {                                                                \
        if ((call) != MPI_SUCCESS) {                                    \
            fprintf(stderr, "%s failed in line %d\n", #call, __LINE__); \
            MPI_Abort(MPI_COMM_WORLD, 1);                               \
        }                                                               \
    } while (0)

static int rank, ranks;
static FILE* said;
static unsigned long long state;
static char line[1 << 20];

static int upto(int most) { /* 0 .. most */
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((state >> 33) % (unsigned)(most + 1));
}

static MPI_Datatype committed(MPI_Datatype type) {
    CHECK(MPI_Type_commit(&type));
    return type;
}

/* Basic and derived types of a few bytes. */
static MPI_Datatype element(void) {
    MPI_Datatype type;
    switch (upto(5)) {
        case 0:
            return MPI_BYTE;
        case 1:
            return MPI_INT;
        case 2:
            return MPI_DOUBLE;
        case 3:
            return MPI_SHORT;
        case 4:
            CHECK(MPI_Type_contiguous(1 + upto(3), MPI_INT, &type));
            return committed(type);
        default:
            CHECK(MPI_Type_dup(MPI_FLOAT, &type));
            return type;
    }
}

/* Its displacements never fall and nothing overlaps, as file types have to be. The first one is at most `first`: MPI libraries
   write beyond their buffers where a file type's lower bound is above 0. */
static MPI_Datatype spread(MPI_Datatype old, int depth, int first) {
    MPI_Datatype type, inner = old;
    MPI_Aint lower, extent;
    if (depth > 0 && upto(2) == 0) inner = spread(old, depth - 1, first);
    CHECK(MPI_Type_get_extent(inner, &lower, &extent));
    const int what = upto(11), c_order = upto(1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    int lengths[8], places[8], sizes[3], subsizes[3], starts[3], kinds[3], arguments[3], processes[3];
    MPI_Aint bytes[8];
    MPI_Datatype many[8];
    const int blocks = 1 + upto(5), dimensions = 1 + upto(2);
    int at = upto(first);
    for (int i = 0; i < blocks; ++i) {
        lengths[i] = 1 + upto(2);
        places[i] = at;
        bytes[i] = at * extent;
        many[i] = inner;
        at += (lengths[i] > 2 ? lengths[i] : 2) + upto(2);
    }
    for (int d = 0; d < dimensions; ++d) {
        sizes[d] = 1 + upto(4);
        subsizes[d] = 1 + upto(sizes[d] - 1);
        starts[d] = upto(sizes[d] - subsizes[d]);
        kinds[d] = upto(2) == 0 ? MPI_DISTRIBUTE_NONE : upto(1) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
        processes[d] = kinds[d] == MPI_DISTRIBUTE_NONE ? 1 : 1 + upto(1);
        arguments[d] = upto(1) || kinds[d] != MPI_DISTRIBUTE_CYCLIC ? MPI_DISTRIBUTE_DFLT_DARG : 1 + upto(1);
    }
    switch (what) {
        case 0:
            CHECK(MPI_Type_vector(1 + upto(3), 1 + upto(1), 2 + upto(2), inner, &type));
            break;
        case 1:
            CHECK(MPI_Type_create_hvector(1 + upto(3), 1 + upto(1), (2 + upto(2)) * extent, inner, &type));
            break;
        case 2:
            CHECK(MPI_Type_indexed(blocks, lengths, places, inner, &type));
            break;
        case 3:
            CHECK(MPI_Type_create_hindexed(blocks, lengths, bytes, inner, &type));
            break;
        case 4:
            CHECK(MPI_Type_create_indexed_block(blocks, 1 + upto(1), places, inner, &type));
            break;
        case 5:
            CHECK(MPI_Type_create_hindexed_block(blocks, 1 + upto(1), bytes, inner, &type));
            break;
        case 6:
            CHECK(MPI_Type_create_struct(blocks, lengths, bytes, many, &type));
            break;
        case 7:
            CHECK(MPI_Type_create_subarray(dimensions, sizes, subsizes, starts, c_order, inner, &type));
            break;
        case 8: {
            int all = 1;
            for (int d = 0; d < dimensions; ++d) all *= processes[d];
            CHECK(
                MPI_Type_create_darray(all, 0, dimensions, sizes, kinds, arguments, processes, c_order, inner, &type));
            break;
        }
        case 9:
            CHECK(MPI_Type_create_resized(inner, 0, lower + extent + upto(2) * extent, &type));
            break;
        case 10:
            CHECK(MPI_Type_dup(inner, &type));
            break;
        default:
            CHECK(MPI_Type_contiguous(1 + upto(3), inner, &type));
            break;
    }
    if (inner != old) CHECK(MPI_Type_free(&inner));
    return committed(type);
}

static char* out;
static void say(const char* format, ...) {
    va_list more;
    va_start(more, format);
    out += vsprintf(out, format, more);
    va_end(more);
}

/* Bytes [first, first + bytes) of the data of as many instances of a type as it takes. */
static void say_extents(MPI_Datatype type, MPI_Offset origin, long first, long bytes) {
    MPI_Aint lower, extent, true_lower, true_extent;
    int size;
    CHECK(MPI_Type_size(type, &size));
    CHECK(MPI_Type_get_extent(type, &lower, &extent));
    CHECK(MPI_Type_get_true_extent(type, &true_lower, &true_extent));
    if (bytes == 0) return;
    const long count = (first + bytes + size - 1) / size, reach = (count - 1) * extent + true_lower + true_extent + 1;
    long* places = calloc((size_t)(count * size), sizeof *places);
    unsigned char *from = malloc((size_t)reach), *to = malloc((size_t)(count * size));
    for (int plane = 0; plane < 4; ++plane) {
        int position = 0;
        for (long i = 0; i < reach; ++i) from[i] = (unsigned char)(i >> (8 * plane));
        CHECK(MPI_Pack(from, (int)count, type, to, (int)(count * size), &position, MPI_COMM_SELF));
        for (long i = 0; i < count * size; ++i) places[i] |= (long)to[i] << (8 * plane);
    }
    for (long i = first; i < first + bytes;) {
        long length = 1;
        while (i + length < first + bytes && places[i + length] == places[i] + length) ++length;
        say(" %lld+%ld", (long long)(origin + places[i]), length);
        i += length;
    }
    free(places);
    free(from);
    free(to);
}

static MPI_File file;
static MPI_Offset displacement;
static MPI_Datatype filetype, memory;
static long etype_bytes, pointer; /* bytes of the view's data */

static void done(const char* name, long first, int count) {
    int size;
    CHECK(MPI_Type_size(memory, &size));
    out = line;
    say("%s file", name);
    say_extents(filetype, displacement, first, (long)count * size);
    say(" memory");
    say_extents(memory, 0, 0, (long)count * size);
    fprintf(said, "%s\n", line);
}

/* A call of each kind, at random; the bytes are a multiple of the etype's. */
static void call(void) {
    static char buffer[1 << 22];
    int size, count = 1;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset there;
    CHECK(MPI_Type_size(memory, &size));
    while ((long)count * size % etype_bytes != 0) ++count;
    count *= 1 + upto(2);
    const long offset = upto(20), first = offset * etype_bytes, bytes = (long)count * size;
    switch (upto(9)) {
        case 0:
            CHECK(MPI_File_write_at(file, offset, buffer, count, memory, &status));
            done("write_at", first, count);
            break;
        case 1:
            CHECK(MPI_File_write(file, buffer, count, memory, &status));
            done("write", pointer, count);
            pointer += bytes;
            break;
        case 2:
            CHECK(MPI_File_iwrite_at(file, offset, buffer, count, memory, &request));
            CHECK(MPI_Wait(&request, &status));
            done("iwrite_at", first, count);
            break;
        case 3:
            CHECK(MPI_File_iwrite(file, buffer, count, memory, &request));
            CHECK(MPI_Wait(&request, &status));
            done("iwrite", pointer, count);
            pointer += bytes;
            break;
        case 4:
            CHECK(MPI_File_seek(file, offset, MPI_SEEK_SET));
            pointer = first;
            break;
        case 5:
            CHECK(MPI_File_seek(file, offset, MPI_SEEK_CUR));
            CHECK(MPI_File_get_position(file, &there));
            pointer += first;
            if (there * etype_bytes == pointer) break;
            /* ROMIO does not know where it is in views of indexed types of types with holes. */
            CHECK(MPI_File_seek(file, 0, MPI_SEEK_SET));
            pointer = 0;
            break;
        case 6:
            CHECK(MPI_File_write_at(file, offset, buffer, 0, memory, MPI_STATUS_IGNORE));
            done("write_at", first, 0);
            break;
        case 7:
            CHECK(MPI_File_write_at(file, offset, buffer, count, memory, &status));
            done("write_at", first, count);
            CHECK(MPI_File_read_at(file, offset, buffer, count, memory, &status));
            done("read_at", first, count);
            break;
        case 8: {
            MPI_Offset before;
            CHECK(MPI_File_get_position(file, &before));
            break;
        }
        default:
            CHECK(MPI_File_write(file, buffer, count, memory, MPI_STATUS_IGNORE));
            done("write", pointer, count);
            pointer += bytes;
            break;
    }
}

/* What all ranks make together; each with its own view and numbers. */
static void call_together(int kind) {
    static char buffer[1 << 22];
    int size, count = 1;
    CHECK(MPI_Type_size(memory, &size));
    while ((long)count * size % etype_bytes != 0) ++count;
    const long offset = upto(9), first = offset * etype_bytes, bytes = (long)count * size;
    switch (kind) {
        case 0:
            CHECK(MPI_File_write_at_all(file, offset, buffer, count, memory, MPI_STATUS_IGNORE));
            done("write_at_all", first, count);
            break;
        case 1:
            CHECK(MPI_File_write_all(file, buffer, count, memory, MPI_STATUS_IGNORE));
            done("write_all", pointer, count);
            pointer += bytes;
            break;
        case 2:
            CHECK(MPI_File_write_at_all_begin(file, offset, buffer, count, memory));
            CHECK(MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE));
            done("write_at_all_end", first, count);
            break;
        default:
            CHECK(MPI_File_write_all_begin(file, buffer, count, memory));
            CHECK(MPI_File_write_all_end(file, buffer, MPI_STATUS_IGNORE));
            done("write_all_end", pointer, count);
            pointer += bytes;
            break;
    }
}

static int is_made(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    CHECK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
    return combiner != MPI_COMBINER_NAMED;
}
static void release(MPI_Datatype* type) {
    if (is_made(*type)) CHECK(MPI_Type_free(type));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) return 2;
    sprintf(line, "%s.said.%d", argv[1], rank);
    said = fopen(line, "w");
    state = strtoull(argv[2], NULL, 10) * 1000003ULL + (unsigned)rank;
    /* ROMIO's data sieving does not understand some of these types, and writes beyond its buffers. */
    MPI_Info info;
    CHECK(MPI_Info_create(&info));
    CHECK(MPI_Info_set(info, "romio_ds_write", "disable"));
    CHECK(MPI_Info_set(info, "romio_ds_read", "disable"));
    CHECK(MPI_Info_set(info, "romio_cb_write", "disable")); /* nor do its aggregators */
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    filetype = MPI_BYTE;
    etype_bytes = 1;
    memory = MPI_BYTE;
    for (int i = 0; i < 3; ++i) call();
    call_together(1);
    for (int view = 0; view < atoi(argv[3]); ++view) {
        MPI_Datatype etype = element();
        int size;
        filetype = upto(4) == 0 ? etype : spread(etype, 1, 0);
        CHECK(MPI_Type_size(etype, &size));
        etype_bytes = size;
        displacement = upto(50);
        pointer = 0;
        CHECK(MPI_File_set_view(file, displacement, etype, filetype, "native", info));
        for (int i = 0; i < 4; ++i) {
            memory = upto(1) ? element() : spread(etype, 1, 3);
            call();
            call();
            call_together((view + i) % 4);
            release(&memory);
        }
        if (filetype != etype) release(&filetype);
        release(&etype);
    }
    CHECK(MPI_File_close(&file));
    /* Where MPI_MODE_APPEND begins. */
    CHECK(MPI_File_open(MPI_COMM_SELF,
                        strcat(strcpy(line, argv[1]), rank == 0   ? ".a"
                                                      : rank == 1 ? ".b"
                                                                  : ".c"),
                        MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    filetype = MPI_BYTE;
    memory = MPI_INT;
    displacement = 0;
    etype_bytes = 1;
    pointer = 0;
    for (int turn = 0; turn < 2; ++turn) {
        int value = 7;
        CHECK(MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
        done("write", pointer, 1);
        pointer += 4;
        char name[4096];
        CHECK(MPI_File_close(&file));
        sprintf(name, "%s%s", argv[1], rank == 0 ? ".a" : rank == 1 ? ".b" : ".c");
        CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    }
    CHECK(MPI_File_close(&file));
    CHECK(MPI_Info_free(&info));
    MPI_Finalize();
    return fclose(said) != 0;
}
