// Pieces of requests for one subfile, handed to the library.
// What does not live here: whose they are and how they came here (exchange.cpp, alone.cpp).
#pragma once

#include <cstddef>
#include <vector>

#include "adapters/pnetcdf/file.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/request.hpp"

namespace ioweir::pnetcdf {

/// A piece of somebody's request, as the rank sees it that carries it out.
struct Task {
    std::int64_t source = 0;
    int variable = 0;
    ncsub::Element element = ncsub::Element::schar;
    std::int64_t subfile = 0;
    ncsub::Request request;
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    int error = no_error;
};

/// Begins one request as a non-blocking call of the library's. `data`: the elements, which are read or written. 0 or an
/// error, and `number` is what the library calls the request; it stays as it is where the request was refused.
[[nodiscard]] int begin_request(const Library& library, int ncid, int variable, const ncsub::Request& request,
                                ncsub::Element element, std::byte* data, bool writing, int& number);

/// The first error of tasks that is none of a value that does not fit its type: what struck a subfile, which is said once for each of them on
/// standard error.
[[nodiscard]] int failure_in(const File& file, const std::vector<Task>& tasks);

/// Carries out those of the tasks that are for this subfile, as non-blocking calls that are waited for together. Records that the subfile does not
/// have are zeros. Collective over `group`, the ranks that have the subfile open.
void carry_out_tasks(const File& file, const Subfile& subfile, MPI_Comm group, std::vector<Task>& tasks, bool writing);

}  // namespace ioweir::pnetcdf
