#include "adapters/pnetcdf/early.hpp"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "base/raw_syscall.hpp"
#include "ncsub/files.hpp"

namespace ioweir::pnetcdf {
namespace {

/// Of a longer range the kernel takes up the beginning alone, as long as its read-ahead is at most: 128 KiB, where nobody has changed it.
constexpr std::int64_t advised_bytes = 128 << 10;

/// More would push out of memory what has just come.
constexpr std::int64_t most_advised = std::int64_t{1} << 30;

struct Bytes {
    std::int64_t offset = 0;
    std::int64_t length = 0;
};

/// From the first byte of a task's to its last in the subfile. Nothing: of a record, or the library does not say where the variable is.
std::optional<Bytes> reach_of(const File& file, const Subfile& subfile, const Task& task) {
    if (elements_of(task.request) == 0 || is_record(file, task.variable)) return std::nullopt;
    const auto variable = static_cast<std::size_t>(task.variable);
    const ncsub::Variable& of_file = file.logical.header.variables[variable];
    const ncsub::Division& division = *file.logical.divisions[variable];
    const auto number = static_cast<std::size_t>(subfile.number);
    Offset begin = 0;
    if (file.library->inq_varoffset(subfile.ncid, file.in_subfile[variable], &begin) != no_error) return std::nullopt;
    std::int64_t first = 0, last = 0, stride = ncsub::bytes_of(of_file.type);
    for (std::size_t d = task.request.start.size(); d-- > 0;) {
        const std::int64_t from = task.request.start[d];
        first += from * stride;
        last += (from + (task.request.count[d] - 1) * task.request.stride[d]) * stride;
        const auto id = static_cast<std::size_t>(division.dimension_ids[d]);
        stride *= static_cast<int>(d) == division.dimension
                      ? division.boundaries[number + 1] - division.boundaries[number]
                      : file.logical.header.dimensions[id].length;
    }
    return Bytes{begin + first, last - first + ncsub::bytes_of(of_file.type)};
}

}  // namespace

void open_early(File& file) {
    MPI_Comm node{};
    int rank = 0;
    if (PMPI_Comm_split_type(file.group, MPI_COMM_TYPE_SHARED, file.rank, MPI_INFO_NULL, &node) != MPI_SUCCESS) return;
    PMPI_Comm_rank(node, &rank);
    PMPI_Comm_free(&node);
    if (rank != 0) return;
    for (Subfile& subfile : file.subfiles) {
        if (subfile.ncid < 0 || subfile.descriptor >= 0) continue;
        const std::string path = ncsub::subfile_path(file.logical, file.path, subfile.number);
        subfile.descriptor =
            raw::openat(AT_FDCWD, ncsub::without_prefix(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    }
}

void close_early(File& file) {
    for (Subfile& subfile : file.subfiles) {
        if (subfile.descriptor >= 0) raw::close(subfile.descriptor);
        subfile.descriptor = -1;
    }
}

void begin_flush(const Subfile& subfile) {
    if (subfile.descriptor >= 0) (void)::sync_file_range(subfile.descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
}

void begin_read(const File& file, const std::vector<Task>& tasks) {
    if (file.subfiles.size() < 2) return;
    std::int64_t left = most_advised;
    for (const Task& task : tasks) {
        const auto is_its = [&](const Subfile& one) { return one.number == task.subfile && one.descriptor >= 0; };
        const auto subfile = std::find_if(file.subfiles.begin(), file.subfiles.end(), is_its);
        if (subfile == file.subfiles.end()) continue;
        const auto reach = reach_of(file, *subfile, task);
        // Where most of it is left out, it is not worth its reading.
        if (!reach || reach->length > 2 * task.bytes) continue;
        const std::int64_t length = std::min(left, reach->length);
        left -= length;
        for (std::int64_t done = 0; done < length; done += advised_bytes)
            (void)::posix_fadvise(subfile->descriptor, reach->offset + done, std::min(advised_bytes, length - done),
                                  POSIX_FADV_WILLNEED);
    }
}

}  // namespace ioweir::pnetcdf
