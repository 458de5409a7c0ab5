// Random MPI-IO cases as a plain MPI program, to be run with and without ioweir: checks itself, prints a hash.
//
//   mpiexec -n R random_views --directory DIR [--file NAME] [--seed 1] [--cases 100] [--first 0] [--wild 1] [--verbose 1]
//
// --wild 1: also what MPI libraries get wrong by themselves (mpi_cases/case_runner.hpp).
// Ends with "random_views: CASES cases, BYTES bytes, hash HEX" and 0, or says what is wrong and ends with 1. The hash depends on
// the seed, the cases, the number of ranks and the MPI library's extents, not on who does the I/O.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "mpi_cases/case_runner.hpp"
#include "mpi_cases/random.hpp"

namespace {

struct Settings {
    std::string directory, file = "random_views.data";
    std::uint64_t seed = 1, first = 0, cases = 100;
    bool wild = false, verbose = false;
};

bool parse(int argc, char** argv, Settings& settings) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        const char* value = argv[i + 1];
        if (name == "--directory")
            settings.directory = value;
        else if (name == "--file")
            settings.file = value;
        else if (name == "--seed")
            settings.seed = std::strtoull(value, nullptr, 10);
        else if (name == "--cases")
            settings.cases = std::strtoull(value, nullptr, 10);
        else if (name == "--first")
            settings.first = std::strtoull(value, nullptr, 10);
        else if (name == "--wild")
            settings.wild = std::atoi(value) != 0;
        else if (name == "--verbose")
            settings.verbose = std::atoi(value) != 0;
        else
            return false;
    }
    return argc % 2 == 1 && !settings.directory.empty();
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Settings settings;
    if (!parse(argc, argv, settings)) {
        if (rank == 0)
            std::fprintf(stderr,
                         "usage: random_views --directory DIR [--file NAME] [--seed S] [--cases N] [--first I] [--wild "
                         "1] [--verbose 1]\n");
        MPI_Finalize();
        return 2;
    }
    const auto level = settings.wild ? cases::Level::wild : cases::Level::tame;
    long long bad = 0, bytes = 0;
    unsigned long long hash = 0;
    for (std::uint64_t i = settings.first; i < settings.first + settings.cases; ++i) {
        const std::string path = settings.directory + "/" + settings.file;
        const cases::CaseResult result =
            cases::run_case(cases::mpi_calls, level, settings.seed, i, MPI_COMM_WORLD, path);
        if (settings.verbose || !result.problems.empty()) {
            std::fprintf(stderr, "case %llu, rank %d: %s\n", static_cast<unsigned long long>(i), rank,
                         result.text.c_str());
        }
        for (const std::string& problem : result.problems) {
            std::fprintf(stderr, "case %llu, rank %d: WRONG: %s\n", static_cast<unsigned long long>(i), rank,
                         problem.c_str());
        }
        bad += static_cast<long long>(result.problems.size());
        bytes += result.data_bytes;
        hash ^= cases::Random::mix(cases::hash_of(result) + i * 1000 + static_cast<std::uint64_t>(rank));
    }
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("random_views: %llu cases, %lld bytes, hash %016llx\n",
                    static_cast<unsigned long long>(settings.cases), bytes, hash);
    }
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
