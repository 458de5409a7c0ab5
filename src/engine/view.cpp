// MPI_File_set_view: the real one always happens; then all ranks agree whether the engine can follow every rank's view.
#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/hints.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::engine {
namespace {

/// A filetype of which no more than one tile is followed, with an extent that no second one would lie within.
std::shared_ptr<const layout::FlatType> one_tile(const layout::FlatType& type) {
    auto tile = std::make_shared<layout::FlatType>(type);
    tile->extent = type.bounds.length;
    tile->ascending = true;
    return tile;
}

/// The view as extents, or why not. Where each tile ascends but reaches into the next one (PnetCDF's first rank has the file's
/// header before a subarray, whose bounds are the filetype's), the first tile alone is followed: `followed_bytes` of the view's data. MPI requires the rest of filetypes anyway (MPI 4.0, section 14.3).
std::string follow(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                   layout::FileView& view, std::int64_t& followed_bytes) {
    if (datarep == nullptr || ::strcasecmp(datarep, "native") != 0) return "a data representation other than native";
    if (displacement < 0) return "a negative displacement";
    MPI_Count etype_bytes = 0;
    PMPI_Type_size_x(etype, &etype_bytes);
    if (etype_bytes <= 0) return "an empty etype";
    const auto flat = layout::flatten(filetype);
    if (!flat.ok()) return "the view's filetype: " + flat.error().message();
    if (flat.value()->size % etype_bytes != 0) return "a filetype that is not made of etypes";
    if (flat.value()->size == 0) {
        // What PnetCDF gives to ranks that take part in a collective call without any bytes.
        view = {displacement, etype_bytes, layout::flatten(MPI_BYTE).value()};
        followed_bytes = 0;
        return {};
    }
    if (!flat.value()->ascending_once) return "a filetype whose displacements do not ascend";
    const bool all_tiles = flat.value()->ascending;
    view = {displacement, etype_bytes, all_tiles ? flat.value() : one_tile(*flat.value())};
    followed_bytes = all_tiles ? INT64_MAX : flat.value()->size;
    return {};
}

/// The engine goes by the library's file pointer. ROMIO's is wrong, from the beginning, in views whose filetype has data below its
/// lower bound, as MPI_Type_create_resized makes them: it is said to stand at -1, and no seek puts it right.
bool pointer_is_right(MPI_File fh) {
    MPI_Offset position = -1;
    return PMPI_File_get_position(fh, &position) == MPI_SUCCESS && position == 0;
}

/// How many bytes lie together in the file, on average.
std::int64_t mean_piece(const layout::FileView& view) {
    const layout::FlatType& type = *view.filetype;
    return type.contiguous ? INT64_MAX : type.size / std::max<std::int64_t>(type.runs, 1);
}

enum class Verdict : std::int64_t { wrong_pointer, left, followed };

/// What a rank says of its view; the least of all ranks counts.
struct Said {
    Verdict verdict;
    std::int64_t piece_bytes;
};

Said least_of_all(const Handle& handle, Said mine) {
    if (handle.size == 1) return mine;
    std::int64_t words[] = {static_cast<std::int64_t>(mine.verdict), mine.piece_bytes};
    if (PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_INT64_T, MPI_MIN, handle.comm) != MPI_SUCCESS)
        return {Verdict::left, 0};
    return {static_cast<Verdict>(words[0]), words[1]};
}

}  // namespace

int set_view(Engine& engine, MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info) {
    const std::shared_ptr<Handle> handle = engine.find(fh);
    const auto real = [&](MPI_Info told) {
        return engine.below.File_set_view(fh, displacement, etype, filetype, datarep, told);
    };
    if (!handle || !handle->engaged) return real(info);
    using Sieving = LibraryInfo::Sieving;
    const auto real_with = [&](Sieving sieving) {
        return real(LibraryInfo(info, handle->strategy.stripe, sieving).get());
    };
    if (handle->container) handle->container->begin_batch();
    const int result = info == MPI_INFO_NULL && !handle->library_sieves ? real(info) : real_with(Sieving::off);
    handle->library_sieves = false;
    layout::FileView view;
    std::int64_t followed_bytes = 0;
    std::string refusal = result == MPI_SUCCESS ? follow(displacement, etype, filetype, datarep, view, followed_bytes)
                                                : "MPI_File_set_view failed";
    Verdict verdict = refusal.empty() ? Verdict::followed : Verdict::left;
    if (refusal.empty() && followed_bytes > 0 && !pointer_is_right(fh)) {
        verdict = Verdict::wrong_pointer;
        refusal = "a view in which the MPI library's file pointer is wrong";
    }
    // A rank on which something failed takes part all the same: the others are on their way here.
    const auto [least, piece_bytes] =
        least_of_all(*handle, {verdict, verdict == Verdict::followed ? mean_piece(view) : 0});
    if (least != Verdict::followed && refusal.empty()) refusal = "another rank's view";
    if (least == Verdict::wrong_pointer) {
        // Without data sieving ROMIO writes to other places in such a view. All of this file's calls are the library's now, so that its
        // sieving disturbs nobody.
        handle->library_sieves = true;
        real_with(Sieving::as_by_default);
    }
    if (refusal.empty()) {
        handle->view = view;
        handle->view_bytes = followed_bytes;
        handle->view_piece_bytes = piece_bytes;
    }
    for (Subgroup& subgroup : handle->subgroup) subgroup.calls_left = 0;  // all ranks look at their requests again
    handle->view_refusal = refusal;
    return result;
}

}  // namespace ioweir::engine
