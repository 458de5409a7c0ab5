// Records: the unlimited dimension of the one file is as long as the longest of its files says. The master is made to say so, because records of
// its own variables may be asked for; a subfile has those alone that something was written to, and zeros are read of others.
// What does not live here: reading and writing of records (access.cpp, tasks.cpp), filling them (fill.cpp).
#include <algorithm>
#include <vector>

#include "adapters/pnetcdf/file.hpp"

namespace ioweir::pnetcdf {
namespace {

/// Makes a file have so many records, without writing any: the library takes the records of a collective write from where it begins and from its
/// count, though this one has no elements. Collective over the ranks that have the file open, all of which know it to have the same number.
int raise(const File& file, int ncid, int variable, Offset records) {
    Offset has = 0;
    int error = records_in(file, ncid, has);
    if (error != no_error || has >= records) return error;
    int dimensions = 0;
    error = file.library->inq_var(ncid, variable, nullptr, nullptr, &dimensions, nullptr, nullptr);
    if (error != no_error) return error;
    std::vector<Offset> start(static_cast<std::size_t>(dimensions), 0);
    const std::vector<Offset> count(start);
    start.at(0) = records;
    const char nothing = 0;
    return file.library->put_vara_all(ncid, variable, start.data(), count.data(), &nothing, 0, MPI_DATATYPE_NULL);
}

/// In independent mode, ranks know different numbers at first.
int raise_master(const File& file) {
    if (file.state != File::State::independent) return raise(file, file.master, file.record_in_master, file.records);
    int error = file.library->sync_numrecs(file.master);
    Offset has = 0;
    if (error == no_error) error = records_in(file, file.master, has);
    if (error != no_error || has >= file.records) return error;
    error = file.library->end_indep_data(file.master);
    if (error == no_error) error = raise(file, file.master, file.record_in_master, file.records);
    const int again = file.library->begin_indep_data(file.master);
    return error != no_error ? error : again;
}

}  // namespace

void find_records(File& file) {
    const ncsub::Header& header = file.logical.header;
    file.unlimited = file.record_in_master = file.record_in_subfiles = -1;
    for (std::size_t i = 0; i < header.dimensions.size(); ++i)
        if (header.dimensions[i].length == 0) file.unlimited = static_cast<int>(i);
    for (int v = 0; v < static_cast<int>(header.variables.size()); ++v) {
        if (!is_record(file, v)) continue;
        if (file.is_divided(v))
            file.record_in_subfiles = file.in_subfile[static_cast<std::size_t>(v)];
        else
            file.record_in_master = v;
    }
}

bool is_record(const File& file, int variable) {
    return file.logical.header.is_record(file.logical.header.variables[static_cast<std::size_t>(variable)]);
}

int records_in(const File& file, int ncid, Offset& records) {
    int unlimited = -1;
    const int error = file.library->inq(ncid, nullptr, nullptr, nullptr, &unlimited);
    return error == no_error ? file.library->inq_dim(ncid, unlimited, nullptr, &records) : error;
}

std::int64_t records_of(const File& file) {
    Offset in_master = 0;
    if (file.record_in_master >= 0) (void)records_in(file, file.master, in_master);
    return std::max<std::int64_t>(file.records, in_master);
}

int keep_records(const File& file) {
    if (file.record_in_master < 0 || !file.writable) return no_error;
    return raise(file, file.master, file.record_in_master, file.records);
}

int settle_records(File& file) {
    // Of each subfile, then of all, and an error.
    std::vector<std::int64_t> most(static_cast<std::size_t>(file.logical.subfiles), 0);
    if (file.record_in_subfiles >= 0)
        for (const Subfile& own : file.alone) {
            Offset records = 0;
            if (records_in(file, own.ncid, records) == no_error) most[static_cast<std::size_t>(own.number)] = records;
        }
    int error = close_alone(file);
    most.push_back(records_of(file));
    most.push_back(-error);
    if (PMPI_Allreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_INT64_T, MPI_MAX, file.comm) !=
        MPI_SUCCESS)
        return error_file;
    error = static_cast<int>(-most.back());
    file.records = most[most.size() - 2];
    if (!file.writable || error != no_error) return error;
    if (file.record_in_master >= 0) error = raise_master(file);
    if (file.record_in_subfiles >= 0)
        for (const Subfile& subfile : file.subfiles) {
            // The last that closed it may have been one that had fewer.
            const int code =
                raise(file, subfile.ncid, file.record_in_subfiles, most[static_cast<std::size_t>(subfile.number)]);
            if (error == no_error) error = code;
        }
    return agree(file, error);
}

}  // namespace ioweir::pnetcdf
