#include "preload/all_here.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>

#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::preload {
namespace {

constexpr const char* limit_name = "IOWEIR_START_LIMIT";
constexpr long default_limit_s = 120;
constexpr int exit_code = 1;

/// On standard error and in the trace.
struct Say {
    void (*note)(const std::string& text);
    void operator()(const std::string& text) const {
        say_line("ioweir: " + text + "\n");
        note(text);
    }
};

long limit_s(int rank, const Say& say) {
    const char* text = std::getenv(limit_name);
    if (text == nullptr || text[0] == '\0') return default_limit_s;
    char* end = nullptr;
    errno = 0;
    const long value = std::strtol(text, &end, 10);
    if (errno == 0 && *end == '\0' && value > 0) return value;
    if (rank == 0) {
        say(std::string(limit_name) + "=" + text + " is not a whole number of seconds above 0: it is " +
            std::to_string(default_limit_s));
    }
    return default_limit_s;
}

}  // namespace

void wait_until_all_are_here(void (*note)(const std::string& text)) {
    const Say say{note};
    int rank = 0, ranks = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 1) return;
    const long limit = limit_s(rank, say);
    // One rank ends the job, not several at once: Open MPI 4.1's launcher may not end then.
    constexpr int most_apart = 100;
    const auto patience = std::chrono::seconds(limit) + std::chrono::milliseconds(100 * std::min(rank, most_apart));
    const auto started = std::chrono::steady_clock::now();
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    constexpr long longest_ns = 1'000'000;
    for (long pause_ns = 10'000;; pause_ns = std::min(2 * pause_ns, longest_ns)) {
        int done = 0;
        PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return;
        if (std::chrono::steady_clock::now() - started > patience) break;
        const timespec little{0, pause_ns};
        raw::call(SYS_nanosleep, raw::word(&little), 0);
    }
    say("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " has waited " + std::to_string(limit) +
        " s in MPI_Init for ranks that run without ioweir: a plan needs it on all of them. The job is ended. Is ioweir "
        "installed on "
        "every node, at the same path, and is no program of the job static? (" +
        limit_name + "=SECONDS waits longer; without --plan such jobs run, and the ranks with ioweir are traced.)");
    PMPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace ioweir::preload
