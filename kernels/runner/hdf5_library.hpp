// The functions of a parallel HDF5 that the runner calls, found when they are first asked for: a runner that was built without HDF5 runs with
// whichever is there (1.10 or later, whose ids have 64 bits). What does not live here: what is done with them (hdf5.cpp).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/arrays.hpp"

namespace ioweir::kernels::hdf5 {

using Id = std::int64_t;     ///< hid_t
using Size = std::uint64_t;  ///< hsize_t

/// H5AC_cache_config_t, version 1: of 1.8 to 1.14. (H5ACpublic.h)
struct CacheConfig {
    int version = 1;
    bool rpt_fcn_enabled = false;
    bool open_trace_file = false;
    bool close_trace_file = false;
    char trace_file_name[1025] = {};
    bool evictions_enabled = true;
    bool set_initial_size = false;
    std::size_t initial_size = 0;
    double min_clean_fraction = 0;
    std::size_t max_size = 0;
    std::size_t min_size = 0;
    long epoch_length = 0;
    int incr_mode = 0;  ///< 0: off
    double lower_hr_threshold = 0;
    double increment = 0;
    bool apply_max_increment = false;
    std::size_t max_increment = 0;
    int flash_incr_mode = 0;  ///< 0: off
    double flash_multiple = 0;
    double flash_threshold = 0;
    int decr_mode = 0;  ///< 0: off
    double upper_hr_threshold = 0;
    double decrement = 0;
    bool apply_max_decrement = false;
    std::size_t max_decrement = 0;
    int epochs_before_eviction = 0;
    bool apply_empty_reserve = false;
    double empty_reserve = 0;
    std::size_t dirty_bytes_threshold = 0;
    int metadata_write_strategy = 0;
};

// Of HDF5's headers; the same from 1.10 to 1.14.
constexpr Id default_list = 0;            // H5P_DEFAULT, H5S_ALL
constexpr unsigned new_file = 2;          // H5F_ACC_TRUNC
constexpr unsigned read_only = 0;         // H5F_ACC_RDONLY
constexpr int select_set = 0;             // H5S_SELECT_SET
constexpr int select_or = 1;              // H5S_SELECT_OR
constexpr int independent_transfer = 0;   // H5FD_MPIO_INDEPENDENT
constexpr int collective_transfer = 1;    // H5FD_MPIO_COLLECTIVE
constexpr int whole_scope = 1;            // H5F_SCOPE_GLOBAL
constexpr int fill_never = 1;             // H5D_FILL_TIME_NEVER
constexpr int version_1_10 = 2;           // H5F_LIBVER_V110
constexpr unsigned most_index_k = 32767;  // a node has twice as many entries, of which it counts with 16 bits

struct Functions {
    int (*open_library)();
    Id (*create_list)(Id kind);
    int (*close_list)(Id list);
    int (*set_mpio)(Id access, MPI_Comm comm, MPI_Info info);
    int (*set_transfer)(Id transfer, int mode);
    int (*set_alignment)(Id access, Size threshold, Size alignment);
    int (*set_meta_block)(Id access, Size bytes);
    int (*set_collective_metadata_writes)(Id access, bool collective);
    int (*set_collective_metadata_reads)(Id access, bool collective);
    int (*get_cache)(Id access, CacheConfig* config);
    int (*set_cache)(Id access, const CacheConfig* config);
    int (*set_versions)(Id access, int low, int high);
    int (*set_index_k)(Id creation, unsigned k);
    int (*set_chunk)(Id creation, int dimensions, const Size* lengths);
    int (*set_fill_time)(Id creation, int when);
    int (*set_intermediate_groups)(Id link_creation, unsigned create);
    Id (*create_file)(const char* path, unsigned flags, Id creation, Id access);
    Id (*open_file)(const char* path, unsigned flags, Id access);
    int (*flush)(Id file, int scope);
    int (*close_file)(Id file);
    Id (*create_space)(int dimensions, const Size* lengths, const Size* most);
    int (*select_block)(Id space, int how, const Size* start, const Size* stride, const Size* count, const Size* block);
    int (*select_none)(Id space);
    int (*close_space)(Id space);
    Id (*create_dataset)(Id file, const char* name, Id type, Id space, Id link_creation, Id creation, Id access);
    Id (*open_dataset)(Id file, const char* name, Id access);
    int (*write)(Id dataset, Id type, Id memory, Id file, Id transfer, const void* data);
    int (*read)(Id dataset, Id type, Id memory, Id file, Id transfer, void* data);
    int (*close_dataset)(Id dataset);

    // Known after open_library has been called.
    const Id* file_creation;
    const Id* file_access;
    const Id* dataset_creation;
    const Id* dataset_transfer;
    const Id* link_creation;
    const Id* int32;
    const Id* int64;
    const Id* float32;
    const Id* float64;
};

/// Ends all ranks with a message when there is no such library, or only one without MPI or for another MPI library. Which is looked for:
/// libhdf5_openmpi.so or libhdf5_mpich.so (Debian's names), then libhdf5.so, as LD_LIBRARY_PATH leads to them.
[[nodiscard]] const Functions& functions();

[[nodiscard]] Id type_of(ElementType type);

/// Ends all ranks when an HDF5 function has failed; it has said why on standard error.
void must(int result, std::string_view what);
[[nodiscard]] Id must_id(Id id, std::string_view what);

}  // namespace ioweir::kernels::hdf5
