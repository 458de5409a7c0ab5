#include "kernels/runner/job.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ioweir::kernels {

namespace {

layout::ExtentList extents_of(const std::vector<Box>& boxes) {
    layout::ExtentList extents;
    visit_boxes(boxes, layout::whole_file, [&](layout::Extent extent) { extents.push_back(extent); });
    return extents;
}

std::int64_t bytes_of_all(const std::vector<Box>& boxes) {
    std::int64_t bytes = 0;
    for (const Box& box : boxes) bytes += bytes_of(box);
    return bytes;
}

}  // namespace

void forget_pages(int rank) {
    constexpr const char* control = "/proc/sys/vm/drop_caches";
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        ::sync();
        const int fd = ::open(control, O_WRONLY | O_CLOEXEC);
        must(fd >= 0, std::string("--cold needs root, who may write to ") + control);
        must(::write(fd, "3", 1) == 1, control);
        ::close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

TakenMemory::TakenMemory(double share) {
    if (share <= 0) return;
    MPI_Comm machine;
    must_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
             "MPI_Comm_split_type");
    int ranks = 1;
    MPI_Comm_size(machine, &ranks);
    long long available = 0;  // KiB; the same for all ranks of the machine
    if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file) != nullptr && available == 0)
            std::sscanf(line, "MemAvailable: %lld", &available);
        std::fclose(file);
    }
    must(available > 0, "--dummy: /proc/meminfo does not say how much memory is available");
    MPI_Allreduce(MPI_IN_PLACE, &available, 1, MPI_LONG_LONG, MPI_MIN, machine);
    MPI_Comm_free(&machine);
    pages_.assign(static_cast<std::size_t>(share * 1024 * static_cast<double>(available) / ranks), '\1');
}

void fail(const std::string& what) {
    std::fprintf(stderr, "kernel_runner: %s\n", what.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

void must(bool good, const std::string& what) {
    if (!good) fail(what + (errno != 0 ? std::string(": ") + std::strerror(errno) : " failed"));
}

void must_mpi(int result, const char* what) {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(result, text, &length);
    fail(std::string(what) + ": " + text);
}

std::string Job::own_path() const {
    const std::string own = path + "." + std::to_string(rank);
    if (spread.empty()) return own;
    return spread[static_cast<std::size_t>(rank) % spread.size()] + own.substr(own.find_last_of('/'));
}

std::vector<Piece> Job::pieces(std::int64_t call) const {
    const layout::ExtentList file = extents_of(kernel->boxes(rank, call));
    layout::ExtentList memory = extents_of(kernel->memory(rank));
    if (memory.empty()) memory.push_back({0, bytes_of_all(kernel->boxes(rank, call))});
    std::vector<Piece> pieces;
    std::size_t m = 0;
    std::int64_t used = 0;  // of memory extent m
    for (const layout::Extent& extent : file) {
        for (std::int64_t done = 0; done < extent.length;) {
            const std::int64_t length = std::min(extent.length - done, memory[m].length - used);
            pieces.push_back({extent.offset + done, memory[m].offset + used, length});
            done += length;
            used += length;
            if (used == memory[m].length) {
                ++m;
                used = 0;
            }
        }
    }
    return pieces;
}

std::int64_t Job::memory_bytes() const {
    const std::vector<Box> memory = kernel->memory(rank);
    if (memory.empty()) {
        std::int64_t most = 0;
        for (std::int64_t call = 0; call < kernel->calls(); ++call)
            most = std::max(most, bytes_of_all(kernel->boxes(rank, call)));
        return most;
    }
    std::int64_t bytes = memory.front().element_bytes;
    for (const std::int64_t size : memory.front().sizes) bytes *= size;
    return bytes;
}

void Job::fill(const std::vector<Piece>& pieces) {
    std::fill(buffer.begin(), buffer.end(), '\0');
    for (const Piece& piece : pieces) content.fill(buffer.data() + piece.memory, piece.file, piece.length);
}

bool Job::back_is_right(const std::vector<Piece>& pieces) {
    fill(pieces);
    const bool right = back == buffer;
    std::fill(back.begin(), back.end(), '\0');
    return right;
}

}  // namespace ioweir::kernels
