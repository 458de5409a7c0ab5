// The communicators that a set's ranks use among themselves: ours, so that no message of the program's meets one of a set's.
// They are kept with the program's communicator and used again by its next set: making them is more exchanges than all the rest of a set takes.
// When the program frees its communicator they are freed with it, or with the set that uses them then.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "mpi/mpi.hpp"

namespace ioweir::partition {

class SetComms {
public:
    /// Local: is there a pair that was kept with `comm` and is not in use? All ranks must say so before take() is told to use it.
    [[nodiscard]] static bool has_kept(MPI_Comm comm);
    /// Local: would a new pair stay with `comm`? Where not all ranks would keep it, none does: to free it is collective.
    [[nodiscard]] static bool would_keep(MPI_Comm comm);
    /// Collective over `comm`, with the same on all ranks. `kept`: all have one; `stays`: all would keep a new one.
    [[nodiscard]] static SetComms take(MPI_Comm comm, bool kept, bool stays);
    SetComms(SetComms&& other) noexcept;
    SetComms& operator=(SetComms&&) = delete;
    /// Local where it is kept; else collective.
    ~SetComms();

    [[nodiscard]] MPI_Comm all() const;
    /// Collective over all when it is first asked for a number of files: the ranks that write file `file` of `files`, in their order. `files`: 1 to the number of ranks.
    [[nodiscard]] MPI_Comm of_file(std::int64_t file, std::int64_t files);

    struct Kept;

private:
    explicit SetComms(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
    std::shared_ptr<Kept> kept_;
};

}  // namespace ioweir::partition
