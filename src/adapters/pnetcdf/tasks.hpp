// Pieces of requests for one subfile, handed to the library.
// What does not live here: whose they are and how they came here (exchange.cpp), which of them are read together (ncsub/reading.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "adapters/pnetcdf/file.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/core/request.hpp"

namespace ioweir::pnetcdf {

/// Pieces of somebody's requests for one variable, as the rank sees them that carries them out. Their elements lie one piece behind the other.
struct Task {
    std::int64_t source = 0;
    int variable = 0;
    ncsub::Element element = ncsub::Element::schar;
    std::int64_t subfile = 0;
    std::int64_t* numbers = nullptr;  ///< of each piece: starts, counts and, if there are strides, those
    std::int64_t pieces = 0;
    std::size_t dimensions = 0;
    bool strides = false;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int error = no_error;

    [[nodiscard]] std::size_t numbers_of_piece() const { return dimensions * (strides ? 3 : 2); }
    [[nodiscard]] std::int64_t* starts(std::int64_t piece) const {
        return numbers + static_cast<std::size_t>(piece) * numbers_of_piece();
    }
    [[nodiscard]] ncsub::RequestView request(std::int64_t piece) const {
        const std::int64_t* start = starts(piece);
        return {start, start + dimensions, strides ? start + 2 * dimensions : nullptr, dimensions};
    }
};

/// Begins one request as a non-blocking call of the library's. `data`: the elements, which are read or written. 0 or an
/// error, and `number` is what the library calls the request; it stays as it is where the request was refused.
[[nodiscard]] int begin_request(const Library& library, int ncid, int variable, const ncsub::RequestView& request,
                                ncsub::Element element, std::byte* data, bool writing, int& number);

/// The first error of tasks that is none of a value that does not fit its type: what struck a subfile, which is said once for each of them on
/// standard error.
[[nodiscard]] int failure_in(const File& file, const std::vector<Task>& tasks);

/// Those of each subfile, in their order, so that the library is given variables as they lie in it: it puts requests in that order one by one.
[[nodiscard]] std::vector<Task*> by_subfile(const File& file, std::vector<Task>& tasks);
[[nodiscard]] std::span<Task* const> of_subfile(std::span<Task* const> sorted, std::int64_t subfile);

/// Carries out tasks, all of which are for this subfile, as non-blocking calls that are waited for together. Records that the subfile does not
/// have are zeros. Collective over `group`, the ranks that have the subfile open.
void carry_out_tasks(const File& file, const Subfile& subfile, MPI_Comm group, std::span<Task* const> tasks,
                     bool writing);

/// The same for tasks of any subfiles, as by_subfile() sorts them, by this rank alone: it opens what it reaches (alone.cpp).
void carry_out_tasks_alone(File& file, std::span<Task* const> sorted, bool writing);

}  // namespace ioweir::pnetcdf
