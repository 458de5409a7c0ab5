// Independent mode: a rank carries out its accesses by itself, and opens the subfiles that it reaches for itself, as the library opens its one
// file. It closes them where that mode ends and where ranks agree about records: what they then write into headers, settle_records() puts right.
#include <algorithm>
#include <utility>

#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {
namespace {

/// A piece of what is wanted, and its elements.
struct Own {
    std::size_t wanted = 0;
    ncsub::Piece piece;
    std::vector<std::byte> data;
};

const ncsub::Division& division_of(const File& file, const Wanted& wanted) {
    return *file.logical.divisions[static_cast<std::size_t>(wanted.variable)];
}

std::vector<Own> pieces_of(const File& file, std::span<const Wanted> all, bool writing) {
    std::vector<Own> pieces;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Wanted& wanted = all[i];
        const ncsub::Division& division = division_of(file, wanted);
        const auto bytes = static_cast<std::size_t>(ncsub::bytes_of(wanted.element));
        for (ncsub::Piece& piece : split(wanted.request, division.dimension, division.boundaries)) {
            Own own{i, std::move(piece), {}};
            own.data.resize(static_cast<std::size_t>(elements_of(own.piece.request)) * bytes);
            if (writing) gather(wanted.request, division.dimension, own.piece, bytes, wanted.from, own.data.data());
            pieces.push_back(std::move(own));
        }
    }
    return pieces;
}

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
    const int error = file.library->open(MPI_COMM_SELF, ncsub::subfile_path(file.logical, file.path, number).c_str(),
                                         mode, file.has_info ? file.info : MPI_INFO_NULL, &subfile.ncid);
    if (error == no_error) file.alone.push_back(subfile);
    return error;
}

}  // namespace

void carry_out_alone(File& file, std::span<Wanted> wanted, bool writing) {
    std::vector<Own> pieces = pieces_of(file, wanted, writing);
    std::vector<Task> tasks;
    std::vector<std::int64_t> numbers;
    for (Own& own : pieces) {
        const Wanted& one = wanted[own.wanted];
        tasks.push_back({file.rank, one.variable, one.element, own.piece.subfile, own.piece.request, own.data.data(),
                         std::ssize(own.data), no_error});
        numbers.push_back(own.piece.subfile);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const std::int64_t number : numbers) {
        Subfile subfile;
        const int error = open_alone(file, number, subfile);
        if (error == no_error) {
            carry_out_tasks(file, subfile, MPI_COMM_SELF, tasks, writing);
            continue;
        }
        for (Task& task : tasks)
            if (task.subfile == number) task.error = error;
    }
    (void)failure_in(file, tasks);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Own& own = pieces[i];
        Wanted& one = wanted[own.wanted];
        if (one.error == no_error) one.error = tasks[i].error;
        if (!writing)
            scatter(one.request, division_of(file, one).dimension, own.piece,
                    static_cast<std::size_t>(ncsub::bytes_of(one.element)), own.data.data(), one.to);
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
