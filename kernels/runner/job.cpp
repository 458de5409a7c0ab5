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
