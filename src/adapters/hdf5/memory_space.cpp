#include "adapters/hdf5/memory_space.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "adapters/hdf5/transfer.hpp"

namespace ioweir::hdf5 {
namespace {

// Places of H5Dwrite's and H5Dread's arguments.
constexpr int dataset_at = 0, type_at = 1, memory_space_at = 2, file_space_at = 3, list_at = 4, buffer_at = 5;

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

}  // namespace

MemoryInFileShape::MemoryInFileShape(File& file, const Call& call) : library_(*file.library), call_(call) {
    if (call.count <= buffer_at) return;
    const Quiet quiet(library_);
    if (!is_chunked(library_, argument<Id>(call, dataset_at))) return;
    const Id memory = argument<Id>(call, memory_space_at);
    Size before = 0;  // elements of the program's memory that are not wanted
    bool alike = look(memory, argument<Id>(call, file_space_at), before);
    const std::size_t element = space_ >= 0 ? library_.H5Tget_size(argument<Id>(call, type_at)) : 1;
    alike = alike && element > 0;
    if (file.parallel && file.ranks > 1 &&
        (mode_of(library_, argument<Id>(call, list_at)) == collective ||
         file.wish().transfer == planner::Hdf5Transfer::collective)) {
        int all = alike ? 1 : 0;
        PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, file.comm);
        alike = all != 0;
    }
    if (space_ < 0 || !alike) return;
    std::copy_n(call.arguments, call.count, arguments_.begin());
    arguments_[memory_space_at] = word_of(space_);
    arguments_[buffer_at] += before * element;
    call_.arguments = arguments_.data();
    ++file.reshaped_transfers;
}

bool MemoryInFileShape::look(Id memory, Id in_file, Size& before) {
    if (memory == by_default) return true;
    if (in_file == by_default) return false;
    const std::int64_t points = library_.H5Sget_select_npoints(in_file);
    // Calls in which both selections have not as many elements are for HDF5 to refuse.
    if (points < 0 || library_.H5Sget_select_npoints(memory) != points) return false;
    if (points == 0) {
        const int dimensions = library_.H5Sget_simple_extent_dims(in_file, nullptr, nullptr);
        if (dimensions == library_.H5Sget_simple_extent_dims(memory, nullptr, nullptr)) return true;
        space_ = dimensions > 0 ? empty_box(library_, dimensions) : -1;
        return space_ >= 0;
    }
    const std::optional<SelectedBox> wanted = selected_box(library_, in_file);
    const std::optional<SelectedBox> given = wanted ? selected_box(library_, memory) : std::nullopt;
    if (!given) return false;
    if (have_same_shape(wanted->lengths, given->lengths)) return true;
    if (!is_one_piece(*given)) return false;
    before = given->first;
    space_ = library_.H5Screate_simple(static_cast<int>(wanted->lengths.size()), wanted->lengths.data(), nullptr);
    return space_ >= 0;
}

MemoryInFileShape::~MemoryInFileShape() {
    if (space_ >= 0) library_.H5Sclose(space_);
}

}  // namespace ioweir::hdf5
