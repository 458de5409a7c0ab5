#include "adapters/hdf5/transfer.hpp"

#include <algorithm>
#include <array>

#include "adapters/hdf5/decomposition.hpp"

namespace ioweir::hdf5 {
namespace {

bool has_filters(const Library& library, Id dataset) {
    const List list = List::of_dataset(library, dataset);
    return list && library.H5Pget_nfilters(list.id()) > 0;
}

/// Is it so on any rank?
bool on_any(const File& file, bool here) {
    int any = here ? 1 : 0;
    if (file.ranks > 1) PMPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, file.comm);
    return any != 0;
}

/// Does a selection of a space lie in one piece where the elements of the space lie one after the other? Empty ones do.
bool is_one_piece(const Library& library, Id space) {
    if (space == by_default) return true;
    const std::int64_t points = library.H5Sget_select_npoints(space);
    if (points == 0) return true;
    std::array<Size, most_dimensions> lengths{};
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    if (points < 0 || library.H5Sget_simple_extent_type(space) != space_simple) return false;
    const int dimensions = library.H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
    if (dimensions < 0 || library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) return false;
    // From the first element to the last there are as many as are selected.
    Size from = 0;
    Size to = 0;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
        from = from * lengths[d] + first[d];
        to = to * lengths[d] + last[d];
    }
    return to - from + 1 == static_cast<Size>(points);
}

/// Does a rank want whole chunks, each of which lies in one piece in memory, if the selection does? Nothing counts as well.
bool is_whole_chunks(const Library& library, Id list, Id space) {
    std::array<Size, most_dimensions> chunk{};
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    const int dimensions = library.H5Pget_chunk(list, most_dimensions, chunk.data());
    if (space == by_default || dimensions < 1) return false;
    const std::int64_t points = library.H5Sget_select_npoints(space);
    if (points == 0) return true;
    if (points < 0 || library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) return false;
    Size box = 1;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
        const Size count = last[d] - first[d] + 1;
        box *= count;
        if (first[d] % chunk[d] != 0 || (d == 0 ? count % chunk[d] != 0 : count != chunk[d])) return false;
    }
    return box == static_cast<Size>(points);
}

/// Needs no other rank, for its bytes go from memory to the file in pieces that are as large as they can be.
bool goes_alone(const Library& library, const Part& part) {
    const List list = List::of_dataset(library, part.dataset);
    if (!list || library.H5Pget_nfilters(list.id()) > 0) return false;
    if (!is_one_piece(library, part.memory == by_default ? part.space : part.memory)) return false;
    const int layout = library.H5Pget_layout(list.id());
    if (layout == layout_chunked) return part.memory != by_default && is_whole_chunks(library, list.id(), part.space);
    return layout == layout_contiguous && is_one_piece(library, part.space);
}

/// The mode to take, given the program's.
int wanted_mode(File& file, const Move& move, int programs) {
    const Library& library = *file.library;
    const policy::Hdf5Transfer wished = file.wish().transfer;
    if (wished == policy::Hdf5Transfer::collective) return collective;
    if (programs != collective) return programs;
    const auto any = [&](auto is) { return std::any_of(move.parts.begin(), move.parts.end(), is); };
    if (wished == policy::Hdf5Transfer::independent) {
        bool filters = move.writes && any([&](const Part& part) { return has_filters(library, part.dataset); });
        // The one dataset of a collective call is the same on all ranks; several need not be.
        if (move.writes && move.several) filters = on_any(file, filters);
        if (filters) {
            file.refuse(
                "transfer = \"independent\": HDF5 writes datasets with filters (compression) collectively only");
            return programs;
        }
        return independent;
    }
    const bool together = on_any(file, any([&](const Part& part) { return !goes_alone(library, part); }));
    return together ? programs : independent;
}

}  // namespace

int mode_of(const Library& library, Id list) {
    int mode = independent;
    const Quiet quiet(library);
    if (list != by_default && library.H5Pget_dxpl_mpio != nullptr) library.H5Pget_dxpl_mpio(list, &mode);
    return mode;
}

Word transfer(File& file, Move& move) {
    const Library& library = *file.library;
    const Id programs = move.list;
    int before = independent;
    int mode = independent;
    FailedCall failed(library);
    {
        const Quiet quiet(library);
        before = mode_of(library, programs);
        mode = wanted_mode(file, move, before);
    }
    if (mode == before) return move.go_on();
    ++file.changed_transfers;
    // The program's own list is changed for the time of the call: HDF5 says in it how the bytes were moved.
    const List own(library, by_default, programs == by_default ? library.dataset_transfer : nullptr);
    const Id list = own ? own.id() : programs;
    if (list == by_default || library.H5Pset_dxpl_mpio(list, mode) < 0) {
        file.refuse("transfer: HDF5 " + library.version() + " does not take it");
        return move.go_on();
    }
    move.list = list;
    const Word result = move.go_on();
    if (static_cast<std::int32_t>(result) < 0) failed.keep_errors();
    move.list = programs;
    if (!own) library.H5Pset_dxpl_mpio(list, before);
    return result;
}

}  // namespace ioweir::hdf5
