#include "adapters/hdf5/memory_space.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/hdf5/transfer.hpp"

namespace ioweir::hdf5 {
namespace {

/// Lengths of a selection that is a whole box, and the place of its first element in the space.
struct SelectedBox {
    std::vector<Size> lengths;
    Size first = 0;
    Size last = 0;
};

std::optional<SelectedBox> selected_box(const Library& library, Id space) {
    std::array<Size, most_dimensions> lengths{};
    std::array<Size, most_dimensions> first{};
    std::array<Size, most_dimensions> last{};
    const std::int64_t points = library.H5Sget_select_npoints(space);
    const int kind = library.H5Sget_select_type(space);
    if (points <= 0 || (kind != selects_blocks && kind != selects_all)) return std::nullopt;
    if (library.H5Sget_simple_extent_type(space) != space_simple) return std::nullopt;
    const int dimensions = library.H5Sget_simple_extent_dims(space, lengths.data(), nullptr);
    if (dimensions < 1 || library.H5Sget_select_bounds(space, first.data(), last.data()) < 0) return std::nullopt;
    SelectedBox box;
    Size volume = 1;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimensions); ++d) {
        box.first = box.first * lengths[d] + first[d];
        box.last = box.last * lengths[d] + last[d];
        box.lengths.push_back(last[d] - first[d] + 1);
        volume *= box.lengths.back();
    }
    if (volume != static_cast<Size>(points)) return std::nullopt;
    return box;
}

bool is_one_piece(const SelectedBox& box) {
    Size volume = 1;
    for (const Size length : box.lengths) volume *= length;
    return box.last - box.first + 1 == volume;
}

/// As HDF5 compares them: from the last dimension on, further ones of length 1.
bool have_same_shape(const std::vector<Size>& one, const std::vector<Size>& other) {
    const std::size_t most = std::max(one.size(), other.size());
    const auto length = [most](const std::vector<Size>& of, std::size_t d) {
        return d < most - of.size() ? Size{1} : of[d - (most - of.size())];
    };
    for (std::size_t d = 0; d < most; ++d) {
        if (length(one, d) != length(other, d)) return false;
    }
    return true;
}

/// Like the boxes that other ranks are given, without anything selected; negative: none could be made.
Id empty_box(const Library& library, int dimensions) {
    const std::vector<Size> lengths(static_cast<std::size_t>(dimensions), 1);
    const Id space = library.H5Screate_simple(dimensions, lengths.data(), nullptr);
    if (space < 0 || library.H5Sselect_none(space) >= 0) return space;
    library.H5Sclose(space);
    return -1;
}

bool is_chunked(const Library& library, Id dataset) {
    const List list = List::of_dataset(library, dataset);
    return list && library.H5Pget_layout(list.id()) == layout_chunked;
}

/// Another way to describe the memory of a part.
struct Shaped {
    bool alike = false;  ///< the memory has the file's shape, in `space` or as it is
    Id space = -1;       ///< negative: as it is
    Size before = 0;     ///< elements of the program's memory ahead of those that are wanted
};

Shaped shape_in_file(const Library& library, Id memory, Id in_file) {
    if (memory == by_default) return {true};
    if (in_file == by_default) return {};
    const std::int64_t points = library.H5Sget_select_npoints(in_file);
    // Calls in which both selections have not as many elements are for HDF5 to refuse.
    if (points < 0 || library.H5Sget_select_npoints(memory) != points) return {};
    if (points == 0) {
        const int dimensions = library.H5Sget_simple_extent_dims(in_file, nullptr, nullptr);
        if (dimensions == library.H5Sget_simple_extent_dims(memory, nullptr, nullptr)) return {true};
        const Id space = dimensions > 0 ? empty_box(library, dimensions) : -1;
        return {space >= 0, space};
    }
    const std::optional<SelectedBox> wanted = selected_box(library, in_file);
    const std::optional<SelectedBox> given = wanted ? selected_box(library, memory) : std::nullopt;
    if (!given) return {};
    if (have_same_shape(wanted->lengths, given->lengths)) return {true};
    if (!is_one_piece(*given)) return {};
    const int dimensions = static_cast<int>(wanted->lengths.size());
    const Id space = library.H5Screate_simple(dimensions, wanted->lengths.data(), nullptr);
    return {space >= 0, space, given->first};
}

/// A collective call, in which all ranks have to agree.
bool is_collective(const File& file, const Move& move) {
    return file.parallel && file.ranks > 1 &&
           (mode_of(*file.library, move.list) == collective ||
            file.wish().transfer == policy::Hdf5Transfer::collective);
}

}  // namespace

MemoryInFileShape::MemoryInFileShape(File& file, Move& move) : library_(*file.library) {
    const Quiet quiet(library_);
    std::vector<Part> changed = move.parts;
    bool alike = true;
    bool some_chunked = false;
    for (Part& part : changed) {
        if (!is_chunked(library_, part.dataset)) continue;
        some_chunked = true;
        const Shaped shaped = shape_in_file(library_, part.memory, part.space);
        alike = alike && shaped.alike;
        if (shaped.space < 0) continue;
        spaces_.push_back(shaped.space);
        const std::size_t element = library_.H5Tget_size(part.type);
        alike = alike && element > 0;
        part.memory = shaped.space;
        part.buffer += shaped.before * element;
    }
    // The one dataset of a collective call is the same on all ranks; several need not be.
    if (!some_chunked && !move.several) return;
    if (is_collective(file, move)) {
        int all = alike ? 1 : 0;
        PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, file.comm);
        alike = all != 0;
    }
    if (spaces_.empty() || !alike) return;
    move.parts = std::move(changed);
    ++file.reshaped_transfers;
}

MemoryInFileShape::~MemoryInFileShape() {
    for (const Id space : spaces_) library_.H5Sclose(space);
}

}  // namespace ioweir::hdf5
