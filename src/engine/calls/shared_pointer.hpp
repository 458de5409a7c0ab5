// SharedPointer: the shared file pointer (MPI 4.0, section 14.4.4) of the ranks that have opened a container together.
// What does not live here: the calls that go by it (shared_calls.cpp), those of ordinary files, which are the MPI library's.
//
// It is two numbers in a file of the container's directory, as ROMIO keeps it in a file beside the program's: which view it belongs to, and
// where it stands. MPI_File_set_view, in which all ranks meet, only counts views up: a pointer of an earlier one stands at zero.
// Nothing is made before the first call that goes by it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "container/sharing/locked_file.hpp"

namespace ioweir::engine {

class SharedPointer {
public:
    /// `open` tells it from those of other handles: the same on all ranks of this one. `begin`: where it stands before any view is set.
    SharedPointer(storage::Backend& below, const container::Directory& directory, std::uint64_t open,
                  std::int64_t begin);

    /// In etypes of the view; `error` is an errno value.
    struct Place {
        std::int64_t etypes = 0;
        int error = 0;
    };
    /// Where it stands, and moves it on by so much, in one step for all ranks. EOVERFLOW: it would leave what an MPI_Offset can say.
    [[nodiscard]] Place advance(std::int64_t etypes);
    [[nodiscard]] Place now() { return advance(0); }
    /// An errno value.
    [[nodiscard]] int set(std::int64_t etypes);

    /// A view was set, by all ranks: it stands at zero.
    void begin_view() { ++view_; }
    /// When all ranks are done with it.
    void remove() { file_.remove(); }
    [[nodiscard]] const std::string& path() const { return file_.path(); }

private:
    [[nodiscard]] std::int64_t place_of(container::LockedFile::Numbers numbers) const;

    container::LockedFile file_;
    const std::int64_t begin_;
    std::atomic<std::int64_t> view_{1};
};

}  // namespace ioweir::engine
