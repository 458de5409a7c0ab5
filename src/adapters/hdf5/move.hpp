// What H5Dwrite, H5Dread and their forms for several datasets (1.14: H5Dwrite_multi, H5Dread_multi) move.
// What does not live here: what is changed about it (memory_space.hpp, transfer.hpp).
#pragma once

#include <vector>

#include "adapters/hdf5/call.hpp"
#include "adapters/hdf5/library.hpp"

namespace ioweir::hdf5 {

/// Of one dataset.
struct Part {
    Id dataset = 0;
    Id type = 0;    ///< of the elements in memory
    Id memory = 0;  ///< the space there
    Id space = 0;   ///< that in the file
    Word buffer = 0;
};

/// A call's parts and its transfer list, which may be changed before it is carried out.
class Move {
public:
    /// Of several datasets: HDF5 takes only those of one file.
    explicit Move(const Call& call);
    [[nodiscard]] Word go_on() const;

    const bool writes;
    const bool several;       ///< the call is one for several datasets, though it may have one
    std::vector<Part> parts;  ///< none: the call is for HDF5 to refuse
    Id list = by_default;

private:
    [[nodiscard]] Word go_on_with_one() const;
    [[nodiscard]] Word go_on_with_several() const;

    const Call& call_;
};

}  // namespace ioweir::hdf5
