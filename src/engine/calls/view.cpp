// MPI_File_set_view: the real one always happens; then all ranks agree whether the engine can follow every rank's view.
#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/calls/shared_pointer.hpp"
#include "engine/files/hints.hpp"
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

/// What set_view() was given.
struct Wanted {
    MPI_Offset displacement = 0;
    MPI_Datatype etype{}, filetype{};
    const char* representation = nullptr;
};

/// A view that can be followed.
struct Followed {
    layout::FileView view;
    std::int64_t bytes = 0;  ///< of its data
    bool external32 = false;
};

/// How the file's bytes are to be understood, or why not. Of shared files only those in `native` are followed.
std::string understand(const Handle& handle, const Wanted& wanted, Followed& followed) {
    if (wanted.representation == nullptr) return "no data representation";
    const auto is = [&](const char* name) { return ::strcasecmp(wanted.representation, name) == 0; };
    if (is("native")) return {};
    if (!handle.container) return "a data representation other than native";
    if (is("internal")) return {};  // as in ROMIO
    if (!is("external32")) return "a data representation other than native, internal and external32";
    followed.external32 = true;
    return {};
}

/// The view as extents, or why not. Where each tile ascends but reaches into the next one (PnetCDF's first rank has the file's
/// header before a subarray, whose bounds are the filetype's), the first tile alone is followed. MPI requires the rest of filetypes anyway
/// (MPI 4.0, section 14.3).
std::string follow(const Handle& handle, const Wanted& wanted, Followed& followed) {
    if (std::string why = understand(handle, wanted, followed); !why.empty()) return why;
    if (wanted.displacement < 0) return "a negative displacement";
    MPI_Count etype_bytes = 0;
    PMPI_Type_size_x(wanted.etype, &etype_bytes);
    if (etype_bytes <= 0) return "an empty etype";
    const auto flat = layout::flatten(wanted.filetype);
    if (!flat.ok()) return "the view's filetype: " + flat.error().message();
    const layout::FlatType& filetype = *flat.value();
    if (filetype.size % etype_bytes != 0) return "a filetype that is not made of etypes";
    if (filetype.size == 0) {
        // What PnetCDF gives to ranks that take part in a collective call without any bytes.
        followed.view = {wanted.displacement, etype_bytes, layout::flatten(MPI_BYTE).value()};
        followed.bytes = 0;
        return {};
    }
    if (!filetype.ascending_once) return "a filetype whose displacements do not ascend";
    followed.view = {wanted.displacement, etype_bytes, filetype.ascending ? flat.value() : one_tile(filetype)};
    followed.bytes = filetype.ascending ? INT64_MAX : filetype.size;
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
struct Opinion {
    Verdict verdict;
    std::int64_t piece_bytes;
    bool goes_on;  ///< its writers are not too slow
};

Opinion least_of_all(const Handle& handle, Opinion mine) {
    if (handle.size == 1) return mine;
    std::int64_t words[] = {static_cast<std::int64_t>(mine.verdict), mine.piece_bytes, mine.goes_on ? 1 : 0};
    if (PMPI_Allreduce(MPI_IN_PLACE, words, 3, MPI_INT64_T, MPI_MIN, handle.comm) != MPI_SUCCESS)
        return {Verdict::left, 0, true};
    return {static_cast<Verdict>(words[0]), words[1], words[2] != 0};
}

/// Collective. MPI_DISPLACEMENT_CURRENT (MPI 4.0, section 14.3): where in the file the shared pointer stands, by the view so far. -1: cannot be told.
MPI_Offset current_displacement(const Engine& engine, Handle& handle) {
    std::int64_t displacement = -1;
    if (handle.rank == 0) {
        const StorageScope scope(engine);
        const SharedPointer::Place now = handle.shared_pointer->now();
        std::int64_t byte = 0;
        layout::Extent piece;
        if (now.error == 0 && !__builtin_mul_overflow(now.etypes, handle.view.etype_bytes, &byte) &&
            byte < handle.view_bytes && handle.view.pieces(byte, 1).next(piece))
            displacement = piece.offset;
    }
    if (handle.size > 1) PMPI_Bcast(&displacement, 1, MPI_INT64_T, 0, handle.comm);
    return displacement;
}

}  // namespace

int set_view(Engine& engine, MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info) {
    const std::shared_ptr<Handle> handle = engine.find(fh);
    const auto real = [&](MPI_Info told) {
        return engine.below.File_set_view(fh, displacement, etype, filetype, datarep, told);
    };
    if (handle) handle->view_is_set = true;
    if (!handle || !handle->engaged) return real(info);
    using Sieving = LibraryInfo::Sieving;
    const auto real_with = [&](Sieving sieving) {
        return real(LibraryInfo(info, handle->strategy.stripe, sieving).get());
    };
    if (handle->container) handle->container->begin_batch();
    const bool from_here = handle->sequential && handle->shared_pointer && displacement == MPI_DISPLACEMENT_CURRENT;
    const MPI_Offset begin = from_here ? current_displacement(engine, *handle) : displacement;
    const std::int64_t pointer = handle->own_pointer;
    const bool was_cut = handle->is_cut;
    const Sieving sieving = was_cut ? Sieving::as_by_default : Sieving::off;
    const int result = info == MPI_INFO_NULL && (was_cut || !handle->library_sieves) ? real(info) : real_with(sieving);
    if (result != MPI_SUCCESS && pointer >= 0) PMPI_File_seek(fh, pointer, MPI_SEEK_SET);  // all is the library's now
    handle->library_sieves = false;
    Followed followed;
    std::string refusal = result == MPI_SUCCESS ? follow(*handle, {begin, etype, filetype, datarep}, followed)
                                                : "MPI_File_set_view failed";
    Verdict verdict = refusal.empty() ? Verdict::followed : Verdict::left;
    // In sequential mode there is none.
    const bool right = !refusal.empty() || followed.bytes == 0 || handle->sequential || pointer_is_right(fh);
    if (!right && !handle->container) {
        verdict = Verdict::wrong_pointer;
        refusal = "a view in which the MPI library's file pointer is wrong";
    }
    // A rank on which something failed takes part all the same: the others are on their way here.
    const bool goes_on = !handle->is_cut && (!handle->choosing || !handle->choosing->is_too_slow());
    const auto [least, piece_bytes, all_go_on] =
        least_of_all(*handle, {verdict, verdict == Verdict::followed ? mean_piece(followed.view) : 0, goes_on});
    if (!all_go_on) {
        // The library's, as it would have had the file from the beginning. All earlier calls are done: every rank is here.
        handle->is_cut = true;
        if (handle->choosing) handle->choosing->mine.cut = true;
        refusal = "left to the MPI library, for it was slower than the best so far";
        handle->library_sieves = true;
        if (!was_cut && least != Verdict::wrong_pointer) real_with(Sieving::as_by_default);
    }
    if (least != Verdict::followed && refusal.empty()) refusal = "another rank's view";
    if (least == Verdict::wrong_pointer) {
        // Without data sieving ROMIO writes to other places in such a view. All of this file's calls are the library's now, so that its
        // sieving disturbs nobody.
        handle->library_sieves = true;
        real_with(Sieving::as_by_default);
    }
    if (refusal.empty()) {
        handle->view = followed.view;
        handle->view_bytes = followed.bytes;
        handle->external32 = followed.external32;
        handle->view_piece_bytes = piece_bytes;
    }
    // A view that is left to the library has the library's pointer, and so has a file in atomic mode or MPI_MODE_SEQUENTIAL.
    handle->own_pointer = !refusal.empty() || handle->library_atomic || handle->sequential ? -1 : 0;
    for (Subgroup& subgroup : handle->subgroup) subgroup.begin_view();
    for (LeftCall& left : handle->left_calls) left = {};
    handle->view_refusal = refusal;
    judge_lean(engine, *handle);
    if (handle->shared_pointer) handle->shared_pointer->begin_view();
    return result;
}

}  // namespace ioweir::engine
