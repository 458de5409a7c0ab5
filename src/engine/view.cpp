// MPI_File_set_view: the real one always happens; then all ranks agree whether the engine can follow every rank's view.
#include <strings.h>

#include <string>

#include "engine/hints.hpp"
#include "engine/parts.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::engine {
namespace {

/// The view as extents, or why not. MPI requires the rest of filetypes anyway (MPI 4.0, section 14.3).
std::string follow(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep,
                   layout::FileView& view) {
    if (datarep == nullptr || ::strcasecmp(datarep, "native") != 0) return "a data representation other than native";
    if (displacement < 0) return "a negative displacement";
    MPI_Count etype_bytes = 0;
    PMPI_Type_size_x(etype, &etype_bytes);
    if (etype_bytes <= 0) return "an empty etype";
    const auto flat = layout::flatten(filetype);
    if (!flat.ok()) return "the view's filetype: " + flat.error().message();
    if (flat.value()->size == 0 || flat.value()->size % etype_bytes != 0)
        return "a filetype that is not made of etypes";
    if (!flat.value()->ascending) return "a filetype whose displacements do not ascend";
    view = {displacement, etype_bytes, flat.value()};
    return {};
}

bool all_can(const Handle& handle, bool can) {
    if (handle.size == 1) return can;
    int mine = can ? 1 : 0;
    int least = 0;
    return PMPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, handle.comm) == MPI_SUCCESS && least == 1;
}

}  // namespace

int set_view(Engine& engine, MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info) {
    const std::shared_ptr<Handle> handle = engine.find(fh);
    const auto real = [&](MPI_Info told) {
        return engine.below.File_set_view(fh, displacement, etype, filetype, datarep, told);
    };
    if (!handle || !handle->engaged) return real(info);
    const int result = info == MPI_INFO_NULL ? real(info) : real(LibraryInfo(info, handle->strategy.stripe).get());
    layout::FileView view;
    std::string refusal =
        result == MPI_SUCCESS ? follow(displacement, etype, filetype, datarep, view) : "MPI_File_set_view failed";
    // A rank on which something failed takes part all the same: the others are on their way here.
    if (!all_can(*handle, refusal.empty()) && refusal.empty()) refusal = "another rank's view";
    if (refusal.empty()) handle->view = view;
    for (Subgroup& subgroup : handle->subgroup) subgroup.calls_left = 0;  // all ranks look at their requests again
    handle->view_refusal = refusal;
    return result;
}

}  // namespace ioweir::engine
