#include "kernels/runner/mpi_types.hpp"

#include <algorithm>
#include <climits>
#include <vector>

#include "kernels/runner/job.hpp"

namespace ioweir::kernels {

namespace {

int as_int(std::int64_t value) {
    if (value > INT_MAX)
        fail("a length is too large for MPI's int: " + std::to_string(value) + "; choose smaller parameters");
    return static_cast<int>(value);
}

std::vector<int> as_ints(const std::vector<std::int64_t>& values) {
    std::vector<int> ints;
    for (const std::int64_t value : values) ints.push_back(as_int(value));
    return ints;
}

MPI_Datatype committed(MPI_Datatype type) {
    must_mpi(MPI_Type_commit(&type), "MPI_Type_commit");
    return type;
}

MPI_Datatype contiguous(std::int64_t count, MPI_Datatype base) {
    MPI_Datatype type;
    must_mpi(MPI_Type_contiguous(as_int(count), base, &type), "MPI_Type_contiguous");
    return committed(type);
}

/// Not committed: used alone it is committed by the caller, else as a part of another type.
MPI_Datatype subarray(const Box& box, int order, MPI_Datatype element) {
    std::vector<int> sizes = as_ints(box.sizes), lengths = as_ints(box.lengths), starts = as_ints(box.starts);
    if (order == MPI_ORDER_FORTRAN) {
        for (auto* list : {&sizes, &lengths, &starts}) std::reverse(list->begin(), list->end());
    }
    MPI_Datatype type;
    must_mpi(MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), lengths.data(), starts.data(),
                                      order, element, &type),
             "MPI_Type_create_subarray");
    return type;
}

/// As full_mpiio.f of NPB does it: one subarray a cell, all at displacement 0.
MPI_Datatype structure(const std::vector<Box>& boxes, MPI_Datatype element) {
    std::vector<MPI_Datatype> types;
    for (const Box& box : boxes) types.push_back(subarray(box, MPI_ORDER_FORTRAN, element));
    const std::vector<int> ones(boxes.size(), 1);
    const std::vector<MPI_Aint> zeros(boxes.size(), 0);
    MPI_Datatype all;
    must_mpi(MPI_Type_create_struct(static_cast<int>(boxes.size()), ones.data(), zeros.data(), types.data(), &all),
             "MPI_Type_create_struct");
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
    return committed(all);
}

MPI_Datatype blocks(const Box& box) {
    MPI_Datatype strided, sized;
    must_mpi(MPI_Type_vector(as_int(box.lengths[0]), as_int(box.lengths[2]), as_int(box.sizes[1] * box.sizes[2]),
                             MPI_BYTE, &strided),
             "MPI_Type_vector");
    must_mpi(MPI_Type_create_resized(strided, 0, box.sizes[0] * box.sizes[1] * box.sizes[2], &sized),
             "MPI_Type_create_resized");
    MPI_Type_free(&strided);
    return committed(sized);
}

MPI_Datatype distributed(const Distribution& distribution, int ranks, int rank, MPI_Datatype element) {
    const std::vector<int> sizes = as_ints(distribution.sizes), grid = as_ints(distribution.grid);
    const std::vector<int> block(sizes.size(), MPI_DISTRIBUTE_BLOCK), usual(sizes.size(), MPI_DISTRIBUTE_DFLT_DARG);
    MPI_Datatype type;
    must_mpi(MPI_Type_create_darray(ranks, rank, static_cast<int>(sizes.size()), sizes.data(), block.data(),
                                    usual.data(), grid.data(), MPI_ORDER_C, element, &type),
             "MPI_Type_create_darray");
    return committed(type);
}

void free_unless_named(MPI_Datatype& type) {
    if (type != MPI_BYTE && type != MPI_INT && type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
}

}  // namespace

MpiTypes::MpiTypes(const Kernel& kernel, int rank, std::int64_t call) {
    const std::vector<Box> boxes = kernel.boxes(rank, call);
    std::int64_t bytes = 0;
    for (const Box& box : boxes) bytes += bytes_of(box);
    const Box& first = boxes.front();
    switch (kernel.file_type()) {
        case FileType::offset:
            default_view = true;
            break;
        case FileType::vector:
            displacement = first.starts[1] * first.sizes[2];
            view = blocks(first);
            break;
        case FileType::subarray:
            displacement = first.base;
            etype = contiguous(first.element_bytes, MPI_BYTE);
            view = committed(subarray(first, MPI_ORDER_C, etype));
            break;
        case FileType::darray:
            // coll_perf.c's elements are MPI_INT. A rank without any has nothing to view.
            etype = view = MPI_INT;
            if (bytes > 0) view = distributed(kernel.distribution(), kernel.ranks(), rank, etype);
            break;
        case FileType::subarray_struct:
            etype = contiguous(first.element_bytes / static_cast<std::int64_t>(sizeof(double)), MPI_DOUBLE);
            view = structure(boxes, etype);
            break;
    }
    int etype_bytes = 1;
    MPI_Type_size(etype, &etype_bytes);
    etypes_of_a_call = bytes / etype_bytes;
    const std::vector<Box> in_memory = kernel.memory(rank);
    if (in_memory.empty()) {
        memory = etype;
        memory_count = as_int(etypes_of_a_call);
    } else {
        memory = structure(in_memory, etype);
        memory_count = 1;
    }
}

MpiTypes::~MpiTypes() {
    if (memory != etype) free_unless_named(memory);
    if (view != etype) free_unless_named(view);
    free_unless_named(etype);
}

}  // namespace ioweir::kernels
