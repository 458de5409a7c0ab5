// Table 3 of RIOT (Wright et al. 2013, section 5.1): how long a known set of MPI-IO operations takes, to be run untraced and
// traced by bench/table3.py. Every operation moves SIZE bytes in each rank; operations go round the files, in which each
// rank has its own place, so that the data fit into memory. Nothing but the operations is timed.
// Rank 0 prints one JSON line for each function and size: seconds for all operations, of the slowest rank.
// What does not live here: the comparison of runs (bench/table3.py).
//
//     mpiexec -n 2 table3_KIND DIRECTORY FILES SIZE:OPERATIONS[,SIZE:OPERATIONS...]
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Operation {
    const char* name;
    /// One operation on a file, `bytes` at this rank's place `offset`.
    int (*run)(MPI_File file, MPI_Offset offset, char* buffer, int bytes);
};

/// With the file's own pointer, which is put in place first: a seek is part of the operation, here as in a program.
template <auto call>
int at_pointer(MPI_File file, MPI_Offset offset, char* buffer, int bytes) {
    MPI_File_seek(file, offset, MPI_SEEK_SET);
    return call(file, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}
template <auto call>
int at_offset(MPI_File file, MPI_Offset offset, char* buffer, int bytes) {
    return call(file, offset, buffer, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
}

constexpr Operation operations[] = {
    {"MPI_File_write", at_pointer<MPI_File_write>},
    {"MPI_File_write_all", at_pointer<MPI_File_write_all>},
    {"MPI_File_write_at_all", at_offset<MPI_File_write_at_all>},
    {"MPI_File_read", at_pointer<MPI_File_read>},
    {"MPI_File_read_all", at_pointer<MPI_File_read_all>},
    {"MPI_File_read_at_all", at_offset<MPI_File_read_at_all>},
};

void check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    std::fprintf(stderr, "%s failed with %d\n", what, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

double run(const Operation& operation, const std::string& directory, int file_count, int bytes, int count, int rank) {
    std::vector<char> buffer(static_cast<std::size_t>(bytes), static_cast<char>('a' + rank % 26));
    const MPI_Offset offset = static_cast<MPI_Offset>(rank) * bytes;
    std::vector<MPI_File> files(static_cast<std::size_t>(file_count));
    std::vector<std::string> paths;
    for (int i = 0; i < file_count; ++i) {
        paths.push_back(directory + "/table3." + std::to_string(i));
        MPI_File& file = files[static_cast<std::size_t>(i)];
        check(
            MPI_File_open(MPI_COMM_WORLD, paths.back().c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
            "MPI_File_open");
        // The data are there, so that neither allocation nor an empty file enters the figures.
        check(MPI_File_write_at(file, offset, buffer.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
    }
    // The first operation on a file sets things up.
    for (MPI_File file : files) check(operation.run(file, offset, buffer.data(), bytes), operation.name);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < count; ++i)
        check(operation.run(files[static_cast<std::size_t>(i % file_count)], offset, buffer.data(), bytes),
              operation.name);
    const double mine = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (MPI_File& file : files) MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        for (const std::string& path : paths) MPI_File_delete(path.c_str(), MPI_INFO_NULL);
    return slowest;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) {
        if (rank == 0)
            std::fprintf(stderr, "usage: %s DIRECTORY FILES SIZE:OPERATIONS[,SIZE:OPERATIONS...]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    std::istringstream sizes(argv[3]);
    for (std::string word; std::getline(sizes, word, ',');) {
        const int bytes = std::atoi(word.c_str());
        const std::size_t colon = word.find(':');
        const int count = colon == std::string::npos ? 0 : std::atoi(word.c_str() + colon + 1);
        if (bytes <= 0 || count <= 0) {
            std::fprintf(stderr, "'%s' is no SIZE:OPERATIONS\n", word.c_str());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (const Operation& operation : operations) {
            const double seconds = run(operation, argv[1], std::atoi(argv[2]), bytes, count, rank);
            if (rank == 0)
                std::printf("{\"function\": \"%s\", \"bytes\": %d, \"operations\": %d, \"seconds\": %.6f}\n",
                            operation.name, bytes, count, seconds);
        }
    }
    MPI_Finalize();
    return 0;
}
