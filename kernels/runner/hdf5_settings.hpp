// How mode hdf5 makes its file: what a program can ask of HDF5, switched one by one. The defaults are HDF5's own.
// What does not live here: the calls (hdf5.cpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace ioweir::kernels {

/// The settings of Howison et al. 2010, section III-A, and what HDF5 has got since.
struct Hdf5Settings {
    bool collective = true;            ///< transfer=collective|independent
    std::int64_t alignment = 0;        ///< alignment=SIZE: H5Pset_alignment; 0: none
    std::int64_t threshold = 1 << 16;  ///< threshold=SIZE: only objects from this size on are aligned
    bool chunked = false;              ///< layout=contiguous|chunked: chunks as large as the largest part of a rank
    bool large_index = false;  ///< index=default|large: H5Pset_istore_k, so that one node of the index holds all chunks
    bool evictions = true;     ///< evictions=on|off: metadata stay in memory until the file is closed (figure 5)
    bool collective_metadata = false;  ///< metadata=independent|collective
    std::int64_t meta_block = 0;       ///< meta_block=SIZE: H5Pset_meta_block_size; 0: HDF5's 2 KiB
    bool fill = true;                  ///< fill=default|never
    bool guarded = false;  ///< memory=packed|guarded: lines have guard_cells elements before and behind them in memory
    bool new_format = false;  ///< format=earliest|1.10: H5Pset_libver_bounds
};

/// Of an array in memory=guarded, at both ends of its fastest dimension: FLASH's four.
inline constexpr std::int64_t guard_cells = 4;

/// Sets what "name=value" says. Unknown names and values are errors that name what is known.
[[nodiscard]] Result<bool> set_hdf5(Hdf5Settings& settings, std::string_view name, std::string_view value);

}  // namespace ioweir::kernels
