// What is known of a file while it is open, and what is said about it.
#include "adapters/hdf5/file.hpp"
#include "base/standard_error.hpp"

namespace ioweir::hdf5 {

std::int64_t File::agreed(std::int64_t of_rank_0) const {
    if (parallel && ranks > 1) PMPI_Bcast(&of_rank_0, 1, MPI_INT64_T, 0, comm);
    return of_rank_0;
}

void File::note(const std::string& text) const {
    if (rank == 0 && host.note != nullptr) host.note(path.c_str(), ("hdf5: " + text).c_str());
}

void File::refuse(const std::string& text) {
    if (rank != 0) return;
    {
        const std::lock_guard lock(words);
        if (!said.insert(text).second) return;
    }
    say_line("ioweir: " + path + ": hdf5: " + text + "\n");
    note(text);
}

// Files of a program may have thousands of datasets: the first ones are named.
constexpr std::int64_t most_named = 8;

bool File::names(const std::string& kind) {
    const std::lock_guard lock(words);
    return ++of_a_kind[kind] <= most_named;
}

void File::note_unnamed() {
    const std::lock_guard lock(words);
    for (const auto& [kind, datasets] : of_a_kind)
        if (datasets > most_named)
            note(kind + ": in all " + std::to_string(datasets) + " datasets, of which the first " +
                 std::to_string(most_named) + " are named");
    of_a_kind.clear();
}

bool is_parallel(const Library& library, Id access) {
    if (access == by_default || library.H5Pget_fapl_mpio == nullptr) return false;
    // Other drivers have no communicator to give. Where this one cannot be named, the question for it tells.
    if (library.H5FD_mpio_init == nullptr) return true;
    const Quiet quiet(library);
    return library.H5Pget_driver(access) == library.H5FD_mpio_init();
}

void find_communicator(File& file, Id access) {
    const Library& library = *file.library;
    if (!is_parallel(library, access)) return;
    const Quiet quiet(library);
    MPI_Comm comm{};
    MPI_Info info{};
    if (library.H5Pget_fapl_mpio(access, &comm, &info) < 0) return;
    file.comm = comm;
    file.parallel = true;
    if (info != MPI_INFO_NULL && info != MPI_Info{}) PMPI_Info_free(&info);
    PMPI_Comm_set_errhandler(file.comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(file.comm, &file.rank);
    PMPI_Comm_size(file.comm, &file.ranks);
}

void release(File& file) {
    if (!file.parallel) return;
    PMPI_Comm_free(&file.comm);
    file.parallel = false;
}

}  // namespace ioweir::hdf5
