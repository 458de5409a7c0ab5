// Independent mode: a rank carries out its accesses by itself, and opens the subfiles that it reaches for itself, as the library opens its one
// file. It closes them where that mode ends and where ranks agree about records: what they then write into headers, settle_records() puts right.
// What does not live here: how accesses become tasks (exchange.cpp).
#include <algorithm>

#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {
namespace {

/// This rank's own handle of a subfile. 0 or an error.
int open_alone(File& file, std::int64_t number, Subfile& subfile) {
    const auto is_it = [&](const Subfile& one) { return one.number == number; };
    const auto found = std::find_if(file.alone.begin(), file.alone.end(), is_it);
    if (found != file.alone.end()) {
        subfile = *found;
        return no_error;
    }
    const int mode = (file.writable ? mode_write : 0) | (file.mode & mode_share);
    subfile.number = number;
    const std::string path = ncsub::subfile_path(file.logical, path_now(file), number);
    const int error =
        file.library->open(MPI_COMM_SELF, path.c_str(), mode, file.has_info ? file.info : MPI_INFO_NULL, &subfile.ncid);
    if (error == no_error) file.alone.push_back(subfile);
    return error;
}

}  // namespace

void carry_out_tasks_alone(File& file, std::span<Task* const> sorted, bool writing) {
    while (!sorted.empty()) {
        const std::span<Task* const> own = of_subfile(sorted, sorted.front()->subfile);
        sorted = sorted.subspan(own.size());
        Subfile subfile;
        const int error = open_alone(file, own.front()->subfile, subfile);
        if (error == no_error)
            carry_out_tasks(file, subfile, MPI_COMM_SELF, own, writing);
        else
            for (Task* task : own) task->error = error;
    }
}

int close_alone(File& file) {
    int error = no_error;
    for (const Subfile& subfile : file.alone) {
        const int code = file.library->close(subfile.ncid);
        if (error == no_error) error = code;
    }
    file.alone.clear();
    return error;
}

}  // namespace ioweir::pnetcdf
