#include "kernels/runner/netcdf.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "kernels/arrays.hpp"

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

template <typename Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) fail(std::string("libpnetcdf.so has no function ") + name);
}

/// Two MPI libraries in a process do not understand each other's handles.
bool of_this_mpi(void* library) {
    const bool open_mpi = ::dlsym(library, "ompi_mpi_comm_world") != nullptr;
#ifdef OPEN_MPI
    return open_mpi;
#else
    return !open_mpi;
#endif
}

const Netcdf& netcdf() {
    static const Netcdf functions = [] {
        constexpr std::array names{"libpnetcdf.so", "libpnetcdf.so.4", "libpnetcdf.so.0d"};
        void* library = nullptr;
        for (const char* name : names) {
            if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
        if (library == nullptr)
            fail("no libpnetcdf.so is found: install PnetCDF, or name its folder in LD_LIBRARY_PATH");
        if (!of_this_mpi(library))
            fail("libpnetcdf.so is for another MPI library: name the folder of this one's in LD_LIBRARY_PATH");
        Netcdf found{};
        find(library, "ncmpi_create", found.create);
        find(library, "ncmpi_open", found.open);
        find(library, "ncmpi_def_dim", found.def_dim);
        find(library, "ncmpi_def_var", found.def_var);
        find(library, "ncmpi_enddef", found.enddef);
        find(library, "ncmpi_inq_varid", found.inq_varid);
        find(library, "ncmpi_put_vara_all", found.put_vara_all);
        find(library, "ncmpi_get_vara_all", found.get_vara_all);
        find(library, "ncmpi_sync", found.sync);
        find(library, "ncmpi_close", found.close);
        find(library, "ncmpi_delete", found.remove);
        find(library, "ncmpi_strerror", found.strerror);
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
        case ElementType::float32:
            return MPI_FLOAT;
        case ElementType::float64:
            return MPI_DOUBLE;
    }
    return MPI_DATATYPE_NULL;
}

/// One part of an array in memory.
class Part {
public:
    Part(const ArrayFile& file, const Slab& slab, std::uint64_t salt)
        : type_(file.arrays[slab.array].type), content_{static_cast<int>(slab.array), salt} {
        Box box{0, bytes_of(type_), {}, slab.count, slab.start};
        for (const std::size_t d : file.arrays[slab.array].dimensions) box.sizes.push_back(file.dimensions[d].length);
        visit_boxes(std::span(&box, 1), layout::whole_file, [&](layout::Extent extent) { runs_.push_back(extent); });
        data.resize(static_cast<std::size_t>(kernels::bytes_of(box)));
        start.assign(slab.start.begin(), slab.start.end());
        count.assign(slab.count.begin(), slab.count.end());
    }

    void fill() {
        for_each_run([&](char* memory, layout::Extent run) { content_.fill(memory, run.offset, run.length); });
    }
    [[nodiscard]] bool is_right() {
        bool right = true;
        for_each_run([&](const char* memory, layout::Extent run) {
            right = right && content_.matches(memory, run.offset, run.length);
        });
        return right;
    }
    [[nodiscard]] MPI_Offset elements() const { return std::ssize(data) / bytes_of(type_); }
    [[nodiscard]] MPI_Datatype type() const { return mpi_type(type_); }

    std::vector<MPI_Offset> start, count;
    std::vector<char> data;

private:
    template <typename Visit>
    void for_each_run(Visit visit) {
        char* memory = data.data();
        for (const layout::Extent run : runs_) {
            visit(memory, run);
            memory += run.length;
        }
    }

    ElementType type_;
    Content content_;
    layout::ExtentList runs_;
};

/// An even part of the array along its longest dimension, all records.
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

/// What this rank moves in one collective call.
std::vector<Slab> all_slabs(const Job& job, const ArrayFile& arrays) {
    std::vector<Slab> slabs;
    if (job.written_by > 0) {
        for (std::size_t array = 0; array < arrays.arrays.size(); ++array)
            slabs.push_back(even_part(arrays, array, job.rank, job.ranks));
        return slabs;
    }
    const std::int64_t calls = job.kernel->calls(), beside = job.kernel->calls_beside();
    for (std::int64_t call = calls; call < calls + beside; ++call) slabs.push_back(job.kernel->slab(job.rank, call));
    for (std::int64_t call = 0; call < calls; ++call) slabs.push_back(job.kernel->slab(job.rank, call));
    return slabs;
}

void write_arrays(const Job& job, const ArrayFile& arrays, MPI_Info info, Times& times) {
    Stopwatch watch;
    int file = -1;
    must_nc(netcdf().create(MPI_COMM_WORLD, job.path.c_str(), new_file_mode, info, &file), "ncmpi_create");
    const std::vector<int> variables = define(arrays, file);
    const std::vector<Slab> slabs = all_slabs(job, arrays);
    for (std::size_t i = 0; i < slabs.size(); ++i) {
        Part part(arrays, slabs[i], job.content.salt);
        part.fill();
        watch.run([&] {
            must_nc(netcdf().put_vara_all(file, variables[slabs[i].array], part.start.data(), part.count.data(),
                                          part.data.data(), part.elements(), part.type()),
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
    for (const Slab& slab : all_slabs(job, arrays)) {
        int variable = -1;
        must_nc(netcdf().inq_varid(file, arrays.arrays[slab.array].name.c_str(), &variable), "ncmpi_inq_varid");
        Part part(arrays, slab, job.content.salt);
        watch.run([&] {
            must_nc(netcdf().get_vara_all(file, variable, part.start.data(), part.count.data(), part.data.data(),
                                          part.elements(), part.type()),
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
