// An HDF5 file that a rule of the plan is for, as the program has it open.
// What does not live here: the table of such files (open_files.hpp).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "adapters/hdf5/adapter.hpp"
#include "adapters/hdf5/call.hpp"
#include "adapters/hdf5/library.hpp"

namespace ioweir::hdf5 {

class Lessons;
class Unfilled;

struct File {
    const Library* library = nullptr;
    Host host;
    const policy::FileRule* rule = nullptr;
    std::uint32_t number = 0;  ///< the library's
    std::string path;          ///< as the program first named it
    std::string mark_path;     ///< the same from the root: a program may go to another folder while it is open
    pid_t marker = 0;          ///< the process that has made the mark; 0: there is none
    std::string identity;      ///< the same for all its names, and for no other file that is open
    std::vector<unsigned long> openings;  ///< the library's numbers of it, guarded by OpenFiles
    bool parallel = false;                ///< opened through MPI-IO
    std::atomic<bool> writable{false};
    MPI_Comm comm = MPI_Comm{};  ///< a duplicate of the program's, where it is parallel
    int rank = 0;
    int ranks = 1;
    std::shared_ptr<Lessons>
        lessons;  ///< what was learned about its datasets, and of other files that all ranks have open
    std::shared_ptr<Unfilled> unfilled;         ///< datasets of it
    std::atomic<bool> said_of_reads{false};     ///< of those, before they have their fill value
    int opens = 0;                              ///< so often, guarded by OpenFiles
    std::atomic<bool> lingers{false};           ///< HDF5 has it open for objects alone
    std::atomic<std::int64_t> objects_left{0};  ///< then: as many, or more
    bool set_aside = false;  ///< other ranks have it open in another way than it was opened here: nothing is changed
    std::atomic<bool> holds{false};                  ///< metadata wait in memory
    std::atomic<std::int64_t> chunked{0};            ///< datasets that were given chunks
    std::atomic<std::int64_t> changed_transfers{0};  ///< of this rank, in another mode than the program's
    std::atomic<std::int64_t> reshaped_transfers{
        0};                                         ///< of this rank, with memory in the shape of the file's selection
    std::mutex words;                               // guards what follows, never held in a call of the library
    std::set<std::string> said;                     ///< what was refused
    std::map<std::string, std::int64_t> of_a_kind;  ///< of how many datasets the same would be said

    [[nodiscard]] const policy::Hdf5Options& wish() const { return rule->hdf5; }
    [[nodiscard]] std::int64_t agreed(std::int64_t of_rank_0) const;
    /// Something of the plan that does not apply, and why: once on standard error and in the trace, by rank 0.
    void refuse(const std::string& text);
    /// For the trace alone, by rank 0.
    void note(const std::string& text) const;
    /// Is this dataset to be named, of which the same is said as of others? Those that are not are counted.
    [[nodiscard]] bool names(const std::string& kind);
    void note_unnamed();
};

/// Does the list have a communicator? Each copy of such a list makes a duplicate of it.
bool is_parallel(const Library& library, Id access);
/// Takes the program's communicator, if its access list has one. Collective over it.
void find_communicator(File& file, Id access);
void release(File& file);

/// What a list was like before it was changed: what is added is done at the end, the last first.
class Undo {
public:
    Undo() = default;
    ~Undo() {
        for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) (*step)();
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void add(std::function<void()> step) { steps_.push_back(std::move(step)); }

private:
    std::vector<std::function<void()>> steps_;
};

/// What was applied to a file, in words.
using Words = std::vector<std::string>;

/// Change lists as the rule wishes (file_lists.cpp); the creation list is a copy, `undo` gives the access list its own
/// values back if it is the program's. Collective. `existing`: the file is not being made.
void change_access(File& file, Id access, bool existing, Size user_block, Words& applied, Undo* undo);
/// `access`: the list that the file will be made with.
void change_creation(File& file, Id creation, Id access, std::int64_t most_chunks, Words& applied);
/// Bytes of the program's own before a new file's first of HDF5's.
Size user_block_of(const Library& library, Id creation);

/// A file's path from the root, where its mark lies beside it.
std::string path_from_root(const std::string& path);
/// The file beside an HDF5 file that says that its metadata wait in memory. By rank 0 alone; what went wrong, or nothing.
std::string make_mark(const std::string& path);
void remove_mark(const std::string& path);

}  // namespace ioweir::hdf5
