#include "adapters/pnetcdf/early.hpp"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "base/raw_syscall.hpp"
#include "mpi/node_leaders.hpp"
#include "ncsub/files.hpp"

namespace ioweir::pnetcdf {
namespace {

/// Of a longer range the kernel takes up the beginning alone, as long as its read-ahead is at most: 128 KiB, where nobody has changed it.
constexpr std::int64_t advised_bytes = 128 << 10;

/// More would push out of memory what has just come.
constexpr std::int64_t most_advised = std::int64_t{1} << 30;

struct Reach {
    std::int64_t offset = 0;
    std::int64_t length = 0;
};

/// From the first byte of a piece to its last in the subfile, where its variable is `begin`. Not of records.
Reach reach_of(const File& file, const Subfile& subfile, int id, Offset begin, const ncsub::RequestView& request) {
    const auto variable = static_cast<std::size_t>(id);
    const ncsub::Division& division = *file.logical.divisions[variable];
    const auto number = static_cast<std::size_t>(subfile.number);
    const std::int64_t element = ncsub::bytes_of(file.logical.header.variables[variable].type);
    std::int64_t first = 0, last = 0, stride = element;
    for (std::size_t d = request.dimensions; d-- > 0;) {
        first += request.start[d] * stride;
        last += request.last(d) * stride;
        const auto dimension = static_cast<std::size_t>(division.dimension_ids[d]);
        stride *= static_cast<int>(d) == division.dimension
                      ? division.boundaries[number + 1] - division.boundaries[number]
                      : file.logical.header.dimensions[dimension].length;
    }
    return Reach{begin + first, last - first + element};
}

/// The kernel takes up whole pages: what is so near to each other is one range.
constexpr std::int64_t near_bytes = 16 << 10;

/// What tasks read of one subfile, as few ranges as their order gives, each with how much of it is wanted.
class Ranges {
public:
    Ranges(const File& file, const Subfile& subfile, std::span<Task* const> tasks) {
        for (const Task* task : tasks) {
            if (is_record(file, task->variable)) continue;
            Offset begin = 0;
            const int variable = file.in_subfile[static_cast<std::size_t>(task->variable)];
            if (file.library->inq_varoffset(subfile.ncid, variable, &begin) != no_error) continue;
            const std::int64_t element = ncsub::bytes_of(task->element);
            for (std::int64_t piece = 0; piece < task->pieces; ++piece) {
                const auto request = task->request(piece);
                const std::int64_t wanted = elements_of(request) * element;
                if (wanted > 0) add(reach_of(file, subfile, task->variable, begin, request), wanted);
            }
        }
    }
    /// Calls advise(offset, length) for those that are worth their reading: where most is left out, they are not.
    template <typename Advise>
    void for_each(Advise&& advise) const {
        for (const Range& range : ranges_)
            if (range.bytes.length <= 2 * range.wanted) advise(range.bytes.offset, range.bytes.length);
    }

private:
    struct Range {
        Reach bytes;
        std::int64_t wanted = 0;
    };
    void add(Reach bytes, std::int64_t wanted) {
        if (!ranges_.empty()) {
            Range& last = ranges_.back();
            const std::int64_t gap = bytes.offset - (last.bytes.offset + last.bytes.length);
            if (gap >= 0 && gap <= near_bytes) {
                last.bytes.length += gap + bytes.length;
                last.wanted += wanted;
                return;
            }
        }
        ranges_.push_back({bytes, wanted});
    }
    std::vector<Range> ranges_;
};

}  // namespace

void open_early(File& file) {
    if (!mpi::is_node_leader(file.group)) return;
    for (Subfile& subfile : file.subfiles) {
        if (subfile.ncid < 0 || subfile.descriptor >= 0) continue;
        const std::string path = ncsub::subfile_path(file.logical, path_now(file), subfile.number);
        auto opened = ncsub::open_subfile(path);
        if (opened) subfile.descriptor = opened.value().release();
    }
}

void close_early(File& file) {
    for (Subfile& subfile : file.subfiles) {
        if (subfile.descriptor >= 0) raw::close(subfile.descriptor);
        subfile.descriptor = -1;
    }
}

void begin_read(const File& file, std::span<Task* const> tasks) {
    if (file.subfiles.size() < 2) return;
    std::int64_t left = most_advised;
    for (const Subfile& subfile : file.subfiles) {
        if (subfile.descriptor < 0) continue;
        const Ranges ranges(file, subfile, of_subfile(tasks, subfile.number));
        ranges.for_each([&](std::int64_t offset, std::int64_t range) {
            const std::int64_t length = std::min(left, range);
            left -= length;
            for (std::int64_t done = 0; done < length; done += advised_bytes)
                (void)::posix_fadvise(subfile.descriptor, offset + done, std::min(advised_bytes, length - done),
                                      POSIX_FADV_WILLNEED);
        });
    }
}

}  // namespace ioweir::pnetcdf
