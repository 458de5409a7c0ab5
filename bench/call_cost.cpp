// What one small call costs: the same loops of MPI-IO calls of each kind, run traced, with and without a plan, by bench/call_cost.py.
//
// The ranks of a job overwrite, or read again, one file that lies in memory, in pieces that are dealt among the ranks: rank r of n has
// every n-th piece. Rank 0 prints one JSON line a loop: process CPU time (with every helper thread) and wall time per call, for every rank
// and batch.
// What does not live here: how two runs take turns (turns.hpp), the comparison of runs and its statistics (bench_calls.py), what strace and
// callgrind count (call_counts.py).
//
//     mpiexec -n 2 call_cost_KIND FILE BYTES[,BYTES...] CALL[,CALL...] CALLS [NAME first|second] | [marked]
//
// BYTES a call and rank; CALL as in `kinds` below; CALLS of each; NAME is the same for the two that take turns, and new each time.
// With `marked` nothing is timed: each loop runs once, and once more between marks that strace and callgrind see.
#include <fcntl.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "turns.hpp"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else  // callgrind then counts the whole run as one part, which call_counts.py refuses
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

namespace {

constexpr int batches = 24;
constexpr std::int64_t file_bytes = 16 << 20;
constexpr int pieces_of_lattice = 8;

void check(int result, const char* what) {
    if (result == MPI_SUCCESS) return;
    std::fprintf(stderr, "%s failed\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/// What the calls of a loop share.
struct Loop {
    int rank = 0, ranks = 1;
    int bytes = 0;
    std::int64_t calls_in_file = 1;  ///< of one rank, until the file is full
    std::vector<char> buffer;
    MPI_File plain = MPI_FILE_NULL;    ///< without a view
    MPI_File viewed = MPI_FILE_NULL;   ///< every n-th piece, one a call
    MPI_File lattice = MPI_FILE_NULL;  ///< the same, several a call
    int descriptor = -1;               ///< of a file of the rank's own, that is there in full
    int appended = -1;                 ///< of another, that grows
    std::vector<char> memory = {};     ///< as large as the file
    double computed_ns = 0;            ///< since measure() last asked

    [[nodiscard]] MPI_Offset offset(std::int64_t call) const { return (call * ranks + rank) * bytes; }
};

using Call = void (*)(Loop& loop, std::int64_t call);

void wait_for(MPI_Request request) { check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait"); }

/// What a program does between its calls. Not counted as theirs.
void compute(Loop& loop) {
    constexpr double long_enough_ns = 5'000;
    const double begin = turns::clock_ns(CLOCK_MONOTONIC);
    double now = begin;
    while (now - begin < long_enough_ns) now = turns::clock_ns(CLOCK_MONOTONIC);
    loop.computed_ns += now - begin;
}

/// A pointer comes back to the begin of the file.
void rewind_at_first(MPI_File file, std::int64_t call) {
    if (call == 0) check(MPI_File_seek(file, 0, MPI_SEEK_SET), "MPI_File_seek");
}

struct Kind {
    const char* name;
    Call call;
};
const Kind kinds[] = {
    {"pwrite",
     [](Loop& loop, std::int64_t call) {
         if (::pwrite(loop.descriptor, loop.buffer.data(), loop.buffer.size(), loop.offset(call)) != loop.bytes)
             turns::fail("pwrite");
     }},
    {"append",  // by hand, to a file of the rank's own: what a log does
     [](Loop& loop, std::int64_t call) {
         if (call == 0 && ::ftruncate(loop.appended, 0) != 0) turns::fail("ftruncate");
         if (::pwrite(loop.appended, loop.buffer.data(), loop.buffer.size(), call * loop.bytes) != loop.bytes)
             turns::fail("pwrite");
     }},
    {"pread",
     [](Loop& loop, std::int64_t call) {
         if (::pread(loop.descriptor, loop.buffer.data(), loop.buffer.size(), loop.offset(call)) != loop.bytes)
             turns::fail("pread");
     }},
    {"write_at",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_write_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE,
                                 MPI_STATUS_IGNORE),
               "MPI_File_write_at");
     }},
    {"read_at",
     [](Loop& loop, std::int64_t call) {
         MPI_Status status;
         check(MPI_File_read_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE, &status),
               "MPI_File_read_at");
     }},
    {"write_at of doubles",
     [](Loop& loop, std::int64_t call) {
         MPI_Status status;
         check(
             MPI_File_write_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes / 8, MPI_DOUBLE, &status),
             "MPI_File_write_at");
     }},
    {"write",
     [](Loop& loop, std::int64_t call) {
         rewind_at_first(loop.viewed, call);
         check(MPI_File_write(loop.viewed, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_write");
     }},
    {"read",
     [](Loop& loop, std::int64_t call) {
         rewind_at_first(loop.viewed, call);
         check(MPI_File_read(loop.viewed, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_read");
     }},
    {"write by pointer",
     [](Loop& loop, std::int64_t call) {
         if (call == 0) check(MPI_File_seek(loop.plain, 0, MPI_SEEK_SET), "MPI_File_seek");
         check(MPI_File_write(loop.plain, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_write");
     }},
    {"read by pointer",
     [](Loop& loop, std::int64_t call) {
         if (call == 0) check(MPI_File_seek(loop.plain, 0, MPI_SEEK_SET), "MPI_File_seek");
         check(MPI_File_read(loop.plain, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read");
     }},
    {"write_at of 8 pieces",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_write_at(loop.lattice, call * loop.bytes, loop.buffer.data(), loop.bytes, MPI_BYTE,
                                 MPI_STATUS_IGNORE),
               "MPI_File_write_at");
     }},
    {"read_at of 8 pieces",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_read_at(loop.lattice, call * loop.bytes, loop.buffer.data(), loop.bytes, MPI_BYTE,
                                MPI_STATUS_IGNORE),
               "MPI_File_read_at");
     }},
    {"write_at_all",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_write_at_all(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE,
                                     MPI_STATUS_IGNORE),
               "MPI_File_write_at_all");
     }},
    {"read_at_all",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_read_at_all(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE,
                                    MPI_STATUS_IGNORE),
               "MPI_File_read_at_all");
     }},
    {"write_all",
     [](Loop& loop, std::int64_t call) {
         rewind_at_first(loop.viewed, call);
         check(MPI_File_write_all(loop.viewed, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_write_all");
     }},
    {"read_all",
     [](Loop& loop, std::int64_t call) {
         rewind_at_first(loop.viewed, call);
         check(MPI_File_read_all(loop.viewed, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_read_all");
     }},
    {"iwrite_at",
     [](Loop& loop, std::int64_t call) {
         MPI_Request request = MPI_REQUEST_NULL;
         check(MPI_File_iwrite_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE, &request),
               "MPI_File_iwrite_at");
         wait_for(request);
     }},
    {"iread_at",
     [](Loop& loop, std::int64_t call) {
         MPI_Request request = MPI_REQUEST_NULL;
         check(MPI_File_iread_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE, &request),
               "MPI_File_iread_at");
         wait_for(request);
     }},
    {"write_at_all_begin",
     [](Loop& loop, std::int64_t call) {
         check(MPI_File_write_at_all_begin(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE),
               "MPI_File_write_at_all_begin");
         check(MPI_File_write_at_all_end(loop.plain, loop.buffer.data(), MPI_STATUS_IGNORE),
               "MPI_File_write_at_all_end");
     }},
    {"compute and memcpy",  // by hand: what handing bytes over takes at least
     [](Loop& loop, std::int64_t call) {
         compute(loop);
         std::memcpy(loop.memory.data() + loop.offset(call) % file_bytes, loop.buffer.data(), loop.buffer.size());
     }},
    {"compute and write_at",
     [](Loop& loop, std::int64_t call) {
         compute(loop);
         check(MPI_File_write_at(loop.plain, loop.offset(call), loop.buffer.data(), loop.bytes, MPI_BYTE,
                                 MPI_STATUS_IGNORE),
               "MPI_File_write_at");
     }},
    {"write_shared",
     [](Loop& loop, std::int64_t call) {
         if (call == 0) check(MPI_File_seek_shared(loop.plain, 0, MPI_SEEK_SET), "MPI_File_seek_shared");
         check(MPI_File_write_shared(loop.plain, loop.buffer.data(), loop.bytes, MPI_BYTE, MPI_STATUS_IGNORE),
               "MPI_File_write_shared");
     }},
};

struct Times {
    const char* name;
    int bytes;
    std::vector<double> cpu_ns, wall_ns;  ///< per call, one entry a batch
};

Times measure(turns::Turn& turn, Loop& loop, const Kind& kind, int calls) {
    Times times{kind.name, loop.bytes, {}, {}};
    const int calls_per_batch = std::max(1, calls / batches);
    std::int64_t index = 0;
    for (int batch = 0; batch < batches; ++batch) {
        turn.begin_batch();
        const double cpu = turns::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        const double wall = turns::clock_ns(CLOCK_MONOTONIC);
        loop.computed_ns = 0;
        for (int i = 0; i < calls_per_batch; ++i) kind.call(loop, index++ % loop.calls_in_file);
        times.cpu_ns.push_back((turns::clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / calls_per_batch);
        times.wall_ns.push_back((turns::clock_ns(CLOCK_MONOTONIC) - wall - loop.computed_ns) / calls_per_batch);
        turn.end_batch();
    }
    return times;
}

/// The loop once so that everything is decided, and once more between marks. A mark is a system call that does no harm and a program does
/// not make, with `begin` or `end` in its argument; callgrind writes what it counted between them as a part of that name.
void run_marked(Loop& loop, const Kind& kind, std::int64_t calls) {
    const auto run = [&](std::int64_t from) {
        for (std::int64_t call = from; call < from + calls; ++call) kind.call(loop, call % loop.calls_in_file);
    };
    run(0);
    const std::string name = std::string(kind.name) + "," + std::to_string(loop.bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    prctl(PR_SET_NAME, "begin");
    CALLGRIND_ZERO_STATS;
    run(calls);
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    prctl(PR_SET_NAME, "end");
    MPI_Barrier(MPI_COMM_WORLD);
}

void print(const Times& times, int rank) {
    const std::string cpu = turns::of_ranks(times.cpu_ns), wall = turns::of_ranks(times.wall_ns);
    if (rank == 0)
        std::printf("{\"call\": \"%s\", \"bytes\": %d, \"cpu_ns\": %s, \"wall_ns\": %s}\n", times.name, times.bytes,
                    cpu.c_str(), wall.c_str());
}

MPI_File open_with_view(const char* path, const Loop& loop, int pieces) {
    MPI_File file = MPI_FILE_NULL;
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file), "MPI_File_open");
    if (pieces == 0) return file;
    const int bytes = std::max(1, loop.bytes / pieces);
    MPI_Datatype piece = MPI_DATATYPE_NULL, every = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(bytes, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(loop.ranks) * bytes, &every);
    MPI_Type_commit(&every);
    check(MPI_File_set_view(file, static_cast<MPI_Offset>(loop.rank) * bytes, MPI_BYTE, every, "native", MPI_INFO_NULL),
          "MPI_File_set_view");
    MPI_Type_free(&every);
    MPI_Type_free(&piece);
    return file;
}

/// The file is there in full before anything is timed.
void fill(Loop& loop) {
    std::vector<char> block(1 << 20, 'x');
    for (std::int64_t at = loop.rank; at < file_bytes / std::ssize(block); at += loop.ranks)
        check(MPI_File_write_at(loop.plain, at * std::ssize(block), block.data(), static_cast<int>(block.size()),
                                MPI_BYTE, MPI_STATUS_IGNORE),
              "MPI_File_write_at");
    check(MPI_File_sync(loop.plain), "MPI_File_sync");
}

std::vector<std::string> list_of(const char* text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Loop loop;
    MPI_Comm_rank(MPI_COMM_WORLD, &loop.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &loop.ranks);
    const bool marked = argc == 6 && std::strcmp(argv[5], "marked") == 0;
    if (argc != 5 && argc != 7 && !marked) {
        if (loop.rank == 0)
            std::fprintf(stderr,
                         "usage: %s FILE BYTES[,BYTES...] CALL[,CALL...] CALLS [NAME first|second] | [marked]\n",
                         argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    turns::pin(loop.rank);
    const char* const path = argv[1];
    const int calls = std::atoi(argv[4]);
    const std::string own = std::string(path) + ".pieces." + std::to_string(loop.rank);
    loop.descriptor = ::open(own.c_str(), O_CREAT | O_RDWR, 0600);
    const std::string grows = std::string(path) + ".appended." + std::to_string(loop.rank);
    loop.appended = ::open(grows.c_str(), O_CREAT | O_RDWR, 0600);
    ::unlink(grows.c_str());
    const std::vector<char> block(static_cast<std::size_t>(file_bytes), 'x');
    if (loop.descriptor < 0 || loop.appended < 0 ||
        ::pwrite(loop.descriptor, block.data(), block.size(), 0) != file_bytes)
        turns::fail(own.c_str());
    std::vector<const Kind*> wanted;
    for (const std::string& name : list_of(argv[3])) {
        const auto* const kind =
            std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& one) { return name == one.name; });
        if (kind == std::end(kinds)) {
            if (loop.rank == 0) std::fprintf(stderr, "no such call: %s\n", name.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        wanted.push_back(kind);
    }
    // Everything is open before anything is timed: who waits in MPI takes the processor from the other run.
    std::vector<Loop> loops;
    for (const std::string& bytes : list_of(argv[2])) {
        loop.bytes = std::atoi(bytes.c_str());
        loop.buffer.assign(static_cast<std::size_t>(loop.bytes), 'y');
        loop.calls_in_file = std::max<std::int64_t>(1, file_bytes / (loop.bytes * loop.ranks));
        loop.memory.assign(static_cast<std::size_t>(file_bytes), 'x');
        loop.plain = open_with_view(path, loop, 0);
        loop.viewed = open_with_view(path, loop, 1);
        loop.lattice = open_with_view(path, loop, pieces_of_lattice);
        loops.push_back(loop);
    }
    fill(loops.front());
    MPI_Barrier(MPI_COMM_WORLD);
    turns::Turn turn = argc == 7 ? turns::Turn(argv[5], std::strcmp(argv[6], "first") == 0, loop.rank) : turns::Turn();
    std::vector<Times> all;
    for (Loop& one : loops)
        for (const auto* kind : wanted)
            if (marked)
                run_marked(one, *kind, calls);
            else
                all.push_back(measure(turn, one, *kind, calls));
    turn.finish();
    for (const Times& times : all) print(times, loop.rank);
    for (Loop& one : loops) {
        MPI_File_close(&one.lattice);
        MPI_File_close(&one.viewed);
        MPI_File_close(&one.plain);
    }
    ::close(loop.descriptor);
    ::close(loop.appended);
    ::unlink(own.c_str());
    MPI_Finalize();
    return 0;
}
