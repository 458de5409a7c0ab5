// H5Dwrite, H5Dread and their forms for several datasets with another transfer mode than the program's.
#pragma once

#include "adapters/hdf5/file.hpp"
#include "adapters/hdf5/move.hpp"

namespace ioweir::hdf5 {

/// The mode of a program's transfer list: independent where it has none.
[[nodiscard]] int mode_of(const Library& library, Id list);

/// Carries out a call in the mode that the rule wishes. Collective where the program's mode is collective, and where the rule makes it so.
[[nodiscard]] Word transfer(File& file, Move& move);

}  // namespace ioweir::hdf5
