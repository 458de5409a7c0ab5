// Independent mode: a rank carries out its accesses by itself, and opens the subfiles that it reaches for itself, as the library opens its one
// file. It closes them where that mode ends and where ranks agree about records: what they then write into headers, settle_records() puts right.
#include <algorithm>
#include <utility>

#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/tasks.hpp"

namespace ioweir::pnetcdf {
namespace {

/// A piece of what is wanted, its numbers and its elements.
struct Own {
    std::size_t wanted = 0;
    ncsub::Slice slice;
    std::int64_t subfile = 0;
    std::size_t numbers = 0;  ///< where they begin among those of all
    std::size_t data = 0;
    std::int64_t bytes = 0;
};

/// All of them. Each is a task of its own: values that do not fit are an error of one request.
struct Pieces {
    std::vector<Own> pieces;
    std::vector<std::int64_t> numbers;
    std::vector<std::byte> data;
};

const ncsub::Division& division_of(const File& file, const Wanted& wanted) {
    return *file.logical.divisions[static_cast<std::size_t>(wanted.variable)];
}

void add_piece(std::span<const Wanted> all, std::size_t number, std::int64_t subfile, std::size_t divided,
               const ncsub::RequestView& request, ncsub::Slice slice, std::int64_t first, Pieces& pieces) {
    Own own{number, slice, subfile, pieces.numbers.size(), pieces.data.size(), 0};
    own.bytes = elements_of(request) * ncsub::bytes_of(all[number].element);
    for (std::size_t d = 0; d < request.dimensions; ++d)
        pieces.numbers.push_back(d == divided ? first : request.start[d]);
    for (std::size_t d = 0; d < request.dimensions; ++d) pieces.numbers.push_back(request.count[d]);
    for (std::size_t d = 0; d < request.dimensions; ++d) pieces.numbers.push_back(request.step(d));
    pieces.data.resize(pieces.data.size() + static_cast<std::size_t>(own.bytes));
    pieces.pieces.push_back(own);
}

Pieces pieces_of(const File& file, std::span<const Wanted> all, bool writing) {
    Pieces pieces;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Wanted& wanted = all[i];
        const ncsub::Division& division = division_of(file, wanted);
        const auto divided = static_cast<std::size_t>(division.dimension);
        if (const auto only = only_subfile(wanted.request, division.dimension, division.boundaries)) {
            const std::int64_t before = division.boundaries[static_cast<std::size_t>(*only)];
            add_piece(all, i, *only, divided, wanted.request, {0, wanted.request.count[divided]},
                      wanted.request.start[divided] - before, pieces);
            continue;
        }
        for (const ncsub::Piece& piece : split(request_of(wanted.request), division.dimension, division.boundaries))
            add_piece(all, i, piece.subfile, divided, piece.request, slice_of(piece, division.dimension),
                      piece.request.start[divided], pieces);
    }
    if (!writing) return pieces;
    for (const Own& own : pieces.pieces) {
        const Wanted& wanted = all[own.wanted];
        gather(wanted.request, division_of(file, wanted).dimension, own.slice,
               static_cast<std::size_t>(ncsub::bytes_of(wanted.element)), wanted.from, pieces.data.data() + own.data);
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
    Pieces pieces = pieces_of(file, wanted, writing);
    std::vector<Task> tasks;
    tasks.reserve(pieces.pieces.size());
    for (const Own& own : pieces.pieces) {
        const Wanted& one = wanted[own.wanted];
        tasks.push_back({file.rank, one.variable, one.element, own.subfile, pieces.numbers.data() + own.numbers, 1,
                         one.request.dimensions, true, pieces.data.data() + own.data, own.bytes, no_error});
    }
    const std::vector<Task*> sorted = by_subfile(file, tasks);
    for (std::size_t begin = 0; begin < sorted.size();) {
        const std::span<Task* const> own = of_subfile(std::span(sorted).subspan(begin), sorted[begin]->subfile);
        begin += own.size();
        Subfile subfile;
        const int error = open_alone(file, own.front()->subfile, subfile);
        if (error == no_error)
            carry_out_tasks(file, subfile, MPI_COMM_SELF, own, writing);
        else
            for (Task* task : own) task->error = error;
    }
    (void)failure_in(file, tasks);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Own& own = pieces.pieces[i];
        Wanted& one = wanted[own.wanted];
        if (one.error == no_error) one.error = tasks[i].error;
        if (!writing)
            scatter(one.request, division_of(file, one).dimension, own.slice,
                    static_cast<std::size_t>(ncsub::bytes_of(one.element)), pieces.data.data() + own.data, one.to);
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
