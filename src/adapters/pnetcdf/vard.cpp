#include "adapters/pnetcdf/vard.hpp"

#include "adapters/pnetcdf/access.hpp"
#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "layout/mpi/flatten.hpp"
#include "layout/mpi/piece_cursor.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/linear.hpp"

namespace ioweir::pnetcdf {

int requests_of_type(const File& file, const Call& call, int variable, std::vector<ncsub::Request>& requests) {
    const auto type = argument<MPI_Datatype>(call, 2);
    const auto buffer_type = argument<MPI_Datatype>(call, 5);
    // No type, an empty one and an empty buffer are requests for nothing.
    if (type == MPI_DATATYPE_NULL || (buffer_type != MPI_DATATYPE_NULL && argument<Offset>(call, 4) == 0))
        return no_error;
    const auto flat = layout::flatten(type);
    if (!flat) {
        complain_here(file, std::string(call.symbol) + " was refused: " + flat.error().message());
        return error_element_type;
    }
    if (flat.value()->size == 0) return no_error;
    const ncsub::Variable& about = file.logical.header.variables[static_cast<std::size_t>(variable)];
    const Decoded decoded = decode_type(type);
    if (decoded.error != no_error) return decoded.error;
    if (decoded.element != element_of(about.type)) return error_type_mismatch;
    const ncsub::Linear array = ncsub::linear_of(file.logical.header, about);
    layout::PieceCursor cursor(*flat.value(), 0, 0, flat.value()->size);
    for (layout::Extent piece; cursor.next(piece);)
        if (!ncsub::add_run(array, piece.offset, piece.length, requests)) {
            complain_here(file, std::string(call.symbol) + " was refused: its file type leads to bytes " +
                                    std::to_string(piece.offset) + " to " +
                                    std::to_string(piece.offset + piece.length) +
                                    ", which are not elements of variable " + about.name);
            requests.clear();
            return error_edge;
        }
    return no_error;
}

int access_master_by_type(const File& file, const Call& call) {
    const auto form = *ncsub::parse_call(call.symbol);
    const bool independent = file.state == File::State::independent;
    if (form.collective == independent) return independent ? error_independent : error_collective;
    Access access(file, call, form);
    std::vector<Wanted> all;
    access.add_to(all);
    // Not varn, with which the library (1.12) fails where one variable alone has records.
    const Library& library = *file.library;
    std::vector<int> requests;
    int error = access.error();
    for (const Wanted& wanted : all) {
        const std::vector<Offset> start(wanted.request.start.begin(), wanted.request.start.end()),
            count(wanted.request.count.begin(), wanted.request.count.end());
        const Offset elements = elements_of(wanted.request);
        const MPI_Datatype type = mpi_type(wanted.element);
        int request = no_request;
        const int code = form.writes() ? library.iput_vara(file.master, wanted.variable, start.data(), count.data(),
                                                           wanted.from, elements, type, &request)
                                       : library.iget_vara(file.master, wanted.variable, start.data(), count.data(),
                                                           wanted.to, elements, type, &request);
        if (error == no_error) error = code;
        if (request != no_request) requests.push_back(request);
    }
    std::vector<int> statuses(requests.size(), no_error);
    const auto wait = independent ? library.wait : library.wait_all;
    const int waited = wait(file.master, static_cast<int>(requests.size()), requests.data(), statuses.data());
    if (error == no_error) error = waited;
    for (const int status : statuses)
        if (error == no_error) error = status;
    const int finished = access.finish();
    return error != no_error ? error : finished;
}

}  // namespace ioweir::pnetcdf
