#include "kernels/runner/array_parts.hpp"

namespace ioweir::kernels {

ArrayPart::ArrayPart(const ArrayFile& file, std::vector<Slab> slabs, std::uint64_t salt)
    : type_(file.arrays[slabs.front().array].type),
      content_{static_cast<int>(slabs.front().array), salt},
      slabs_(std::move(slabs)) {
    std::int64_t bytes = 0;
    for (const Slab& slab : slabs_) {
        Box box{0, bytes_of(type_), {}, slab.count, slab.start};
        for (const std::size_t d : file.arrays[slab.array].dimensions) box.sizes.push_back(file.dimensions[d].length);
        visit_boxes(std::span(&box, 1), layout::whole_file, [&](layout::Extent extent) { runs_.push_back(extent); });
        bytes += kernels::bytes_of(box);
    }
    data.resize(static_cast<std::size_t>(bytes));
}

void ArrayPart::fill() {
    char* memory = data.data();
    for (const layout::Extent run : runs_) {
        content_.fill(memory, run.offset, run.length);
        memory += run.length;
    }
}

bool ArrayPart::is_right() const {
    bool right = true;
    const char* memory = data.data();
    for (const layout::Extent run : runs_) {
        right = right && content_.matches(memory, run.offset, run.length);
        memory += run.length;
    }
    return right;
}

std::int64_t ArrayPart::elements() const { return std::ssize(data) / bytes_of(type_); }

Slab even_part(const ArrayFile& file, std::size_t array, int rank, int ranks) {
    Slab slab{array, {}, {}};
    std::size_t longest = 0;
    std::int64_t most = -1;
    for (const std::size_t d : file.arrays[array].dimensions) {
        const ArrayDimension& dimension = file.dimensions[d];
        if (!dimension.unlimited && dimension.length > most) {
            most = dimension.length;
            longest = slab.count.size();
        }
        slab.start.push_back(0);
        slab.count.push_back(dimension.length);
    }
    const std::int64_t length = slab.count[longest];
    slab.start[longest] = length * rank / ranks;
    slab.count[longest] = length * (rank + 1) / ranks - slab.start[longest];
    return slab;
}

std::vector<std::vector<Slab>> slabs_of_calls(const Job& job, const ArrayFile& file) {
    std::vector<std::vector<Slab>> slabs;
    if (job.written_by > 0) {
        for (std::size_t array = 0; array < file.arrays.size(); ++array)
            slabs.push_back({even_part(file, array, job.rank, job.ranks)});
        return slabs;
    }
    const std::int64_t calls = job.kernel->calls(), beside = job.kernel->calls_beside();
    for (std::int64_t call = calls; call < calls + beside; ++call) slabs.push_back(job.kernel->slabs(job.rank, call));
    for (std::int64_t call = 0; call < calls; ++call) slabs.push_back(job.kernel->slabs(job.rank, call));
    return slabs;
}

}  // namespace ioweir::kernels
