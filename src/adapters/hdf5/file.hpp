// An HDF5 file that a rule of the plan is for, as the program has it open.
// What does not live here: the table of such files (adapter.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/hdf5/adapter.hpp"
#include "adapters/hdf5/library.hpp"

namespace ioweir::hdf5 {

class Lessons;

struct File {
    const Library* library = nullptr;
    Host host;
    const planner::FileRule* rule = nullptr;
    std::string path;
    bool parallel = false;  ///< opened through MPI-IO
    bool writable = false;
    MPI_Comm comm = MPI_Comm{};  ///< a duplicate of the program's, where it is parallel
    int rank = 0;
    int ranks = 1;
    std::shared_ptr<Lessons>
        lessons;               ///< what was learned about its datasets, and of other files that all ranks have open
    int opens = 0;             ///< ids of it that the program has
    bool holds = false;        ///< metadata wait in memory
    std::int64_t chunked = 0;  ///< datasets that were given chunks
    std::int64_t changed_transfers = 0;   ///< of this rank, in another mode than the program's
    std::int64_t reshaped_transfers = 0;  ///< of this rank, with memory in the shape of the file's selection
    std::vector<std::string> applied;     ///< in words, for the note at the end
    std::set<std::string> said;           ///< what was refused

    [[nodiscard]] const planner::Hdf5Wish& wish() const { return rule->hdf5; }
    [[nodiscard]] std::int64_t agreed(std::int64_t of_rank_0) const;
    /// Something of the plan that does not apply, and why: once on standard error and in the trace, by rank 0.
    void refuse(const std::string& text);
    /// For the trace alone, by rank 0.
    void note(const std::string& text) const;
};

/// Takes the program's communicator, if its access list has one. Collective over it.
void find_communicator(File& file, Id access);
void release(File& file);

/// Change copies of the program's lists as the rule wishes (file_lists.cpp). Collective. `existing`: the file is not being made.
void change_access(File& file, Id access, bool existing, Size user_block);
void change_creation(File& file, Id creation, std::int64_t most_chunks);
/// Bytes of the program's own before a new file's first of HDF5's.
Size user_block_of(const Library& library, Id creation);

/// The file beside an HDF5 file that says that its metadata wait in memory. By rank 0 alone; what went wrong, or nothing.
std::string make_mark(const std::string& path);
void remove_mark(const std::string& path);

}  // namespace ioweir::hdf5
