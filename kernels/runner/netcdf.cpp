#include "kernels/runner/netcdf.hpp"

#include <unistd.h>

#include <array>

#include "kernels/runner/array_parts.hpp"
#include "kernels/runner/library.hpp"

namespace ioweir::kernels {

namespace {

// Of pnetcdf.h.
constexpr int new_file_mode = 0x20;  // NC_CLOBBER | NC_64BIT_DATA
constexpr int read_mode = 0;         // NC_NOWRITE
constexpr MPI_Offset unlimited = 0;  // NC_UNLIMITED

struct Netcdf {
    int (*create)(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* file);
    int (*open)(MPI_Comm comm, const char* path, int mode, MPI_Info info, int* file);
    int (*def_dim)(int file, const char* name, MPI_Offset length, int* id);
    int (*def_var)(int file, const char* name, int type, int dimensions, const int* ids, int* id);
    int (*enddef)(int file);
    int (*inq_varid)(int file, const char* name, int* id);
    int (*put_vara_all)(int file, int variable, const MPI_Offset* start, const MPI_Offset* count, const void* data,
                        MPI_Offset elements, MPI_Datatype type);
    int (*get_vara_all)(int file, int variable, const MPI_Offset* start, const MPI_Offset* count, void* data,
                        MPI_Offset elements, MPI_Datatype type);
    int (*sync)(int file);
    int (*close)(int file);
    int (*remove)(const char* path, MPI_Info info);
    const char* (*strerror)(int code);
};

const Netcdf& netcdf() {
    static const Netcdf functions = [] {
        constexpr std::array names{"libpnetcdf.so", "libpnetcdf.so.4", "libpnetcdf.so.0d"};
        void* const library = load_library(names, "PnetCDF");
        Netcdf found{};
        find(library, names.front(), "ncmpi_create", found.create);
        find(library, names.front(), "ncmpi_open", found.open);
        find(library, names.front(), "ncmpi_def_dim", found.def_dim);
        find(library, names.front(), "ncmpi_def_var", found.def_var);
        find(library, names.front(), "ncmpi_enddef", found.enddef);
        find(library, names.front(), "ncmpi_inq_varid", found.inq_varid);
        find(library, names.front(), "ncmpi_put_vara_all", found.put_vara_all);
        find(library, names.front(), "ncmpi_get_vara_all", found.get_vara_all);
        find(library, names.front(), "ncmpi_sync", found.sync);
        find(library, names.front(), "ncmpi_close", found.close);
        find(library, names.front(), "ncmpi_delete", found.remove);
        find(library, names.front(), "ncmpi_strerror", found.strerror);
        return found;
    }();
    return functions;
}

void must_nc(int code, const char* what) {
    if (code != 0) fail(std::string(what) + ": " + netcdf().strerror(code));
}

int type_number(ElementType type) {
    switch (type) {
        case ElementType::int32:
            return 4;  // NC_INT
        case ElementType::int64:
            return 10;  // NC_INT64
        case ElementType::float32:
            return 5;  // NC_FLOAT
        case ElementType::float64:
            return 6;  // NC_DOUBLE
    }
    return 0;
}

MPI_Datatype mpi_type(ElementType type) {
    switch (type) {
        case ElementType::int32:
            return MPI_INT;
        case ElementType::int64:
            return MPI_INT64_T;
        case ElementType::float32:
            return MPI_FLOAT;
        case ElementType::float64:
            return MPI_DOUBLE;
    }
    return MPI_DATATYPE_NULL;
}

/// A part as PnetCDF takes it: one block.
struct Place {
    explicit Place(const ArrayPart& part)
        : start(part.slabs().front().start.begin(), part.slabs().front().start.end()),
          count(part.slabs().front().count.begin(), part.slabs().front().count.end()) {}
    std::vector<MPI_Offset> start, count;
};

std::vector<int> define(const ArrayFile& arrays, int file) {
    std::vector<int> dimensions, variables;
    for (const ArrayDimension& dimension : arrays.dimensions) {
        const MPI_Offset length = dimension.unlimited ? unlimited : dimension.length;
        must_nc(netcdf().def_dim(file, dimension.name.c_str(), length, &dimensions.emplace_back()), "ncmpi_def_dim");
    }
    for (const Array& array : arrays.arrays) {
        std::vector<int> ids;
        for (const std::size_t d : array.dimensions) ids.push_back(dimensions[d]);
        must_nc(netcdf().def_var(file, array.name.c_str(), type_number(array.type), static_cast<int>(ids.size()),
                                 ids.data(), &variables.emplace_back()),
                "ncmpi_def_var");
    }
    must_nc(netcdf().enddef(file), "ncmpi_enddef");
    return variables;
}

void write_arrays(const Job& job, const ArrayFile& arrays, MPI_Info info, Times& times) {
    Stopwatch watch;
    int file = -1;
    must_nc(netcdf().create(MPI_COMM_WORLD, job.path.c_str(), new_file_mode, info, &file), "ncmpi_create");
    const std::vector<int> variables = define(arrays, file);
    const auto slabs = slabs_of_calls(job, arrays);
    for (std::size_t i = 0; i < slabs.size(); ++i) {
        ArrayPart part(arrays, slabs[i], job.content.salt);
        part.fill();
        const Place place(part);
        watch.run([&] {
            must_nc(netcdf().put_vara_all(file, variables[part.array()], place.start.data(), place.count.data(),
                                          part.data.data(), part.elements(), mpi_type(part.type())),
                    "ncmpi_put_vara_all");
            if (job.sync && i + 1 == slabs.size()) must_nc(netcdf().sync(file), "ncmpi_sync");
        });
    }
    must_nc(netcdf().close(file), "ncmpi_close");
    times.write_s = watch.slowest();
    times.write_span_s = watch.span();
}

void read_arrays(const Job& job, const ArrayFile& arrays, MPI_Info info, Times& times) {
    Stopwatch watch;
    int file = -1;
    must_nc(netcdf().open(MPI_COMM_WORLD, job.path.c_str(), read_mode, info, &file), "ncmpi_open");
    for (const auto& slabs : slabs_of_calls(job, arrays)) {
        int variable = -1;
        must_nc(netcdf().inq_varid(file, arrays.arrays[slabs.front().array].name.c_str(), &variable),
                "ncmpi_inq_varid");
        ArrayPart part(arrays, slabs, job.content.salt);
        const Place place(part);
        watch.run([&] {
            must_nc(netcdf().get_vara_all(file, variable, place.start.data(), place.count.data(), part.data.data(),
                                          part.elements(), mpi_type(part.type())),
                    "ncmpi_get_vara_all");
        });
        times.right = part.is_right() && times.right;
    }
    must_nc(netcdf().close(file), "ncmpi_close");
    times.read_s = watch.slowest();
}

}  // namespace

Times run_netcdf(Job& job) {
    const ArrayFile arrays = job.kernel->arrays();
    MPI_Info info;
    MPI_Info_create(&info);
    for (const auto& [name, value] : job.hints) MPI_Info_set(info, name.c_str(), value.c_str());
    Times times;
    times.right = true;
    if (job.written_by == 0) write_arrays(job, arrays, info, times);
    if (job.cold) forget_pages(job.rank);
    read_arrays(job, arrays, info, times);
    MPI_Info_free(&info);
    return times;
}

void remove_netcdf(const Job& job) {
    if (::access(job.path.c_str(), F_OK) == 0)
        must_nc(netcdf().remove(job.path.c_str(), MPI_INFO_NULL), "ncmpi_delete");
}

}  // namespace ioweir::kernels
