// HDF5's own functions, as the adapter calls them, found in the library that the program uses; and the constants and structures of its
// headers, which are included nowhere. The same from 1.10 to 1.14.
// What does not live here: what they are called for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "mpi/mpi.hpp"

namespace ioweir::hdf5 {

using Id = std::int64_t;     // hid_t
using Size = std::uint64_t;  // hsize_t

inline constexpr Id by_default = 0;           // H5P_DEFAULT, H5S_ALL, H5E_DEFAULT
inline constexpr unsigned flag_write = 0x1;   // H5F_ACC_RDWR
inline constexpr int kind_file = 1;           // H5I_FILE
inline constexpr int kind_space = 4;          // H5I_DATASPACE
inline constexpr unsigned all_kinds = 0x1f;   // H5F_OBJ_ALL, of all files where a file is asked for
inline constexpr int space_simple = 1;        // H5S_SIMPLE
inline constexpr int selects_nothing = 0;     // H5S_SEL_NONE
inline constexpr int selects_points = 1;      // H5S_SEL_POINTS
inline constexpr int selects_blocks = 2;      // H5S_SEL_HYPERSLABS
inline constexpr int selects_all = 3;         // H5S_SEL_ALL
inline constexpr int class_string = 3;        // H5T_STRING
inline constexpr int class_compound = 6;      // H5T_COMPOUND
inline constexpr int class_reference = 7;     // H5T_REFERENCE
inline constexpr int class_vlen = 9;          // H5T_VLEN
inline constexpr int layout_contiguous = 1;   // H5D_CONTIGUOUS
inline constexpr int layout_chunked = 2;      // H5D_CHUNKED
inline constexpr int layout_virtual = 3;      // H5D_VIRTUAL
inline constexpr int fill_at_allocation = 0;  // H5D_FILL_TIME_ALLOC
inline constexpr int fill_never = 1;          // H5D_FILL_TIME_NEVER
inline constexpr int fill_if_set = 2;         // H5D_FILL_TIME_IFSET
inline constexpr int fill_undefined = 0;      // H5D_FILL_VALUE_UNDEFINED
inline constexpr int fill_default = 1;        // H5D_FILL_VALUE_DEFAULT
inline constexpr int fill_users = 2;          // H5D_FILL_VALUE_USER_DEFINED
inline constexpr int strategy_page = 1;       // H5F_FSPACE_STRATEGY_PAGE
inline constexpr int independent = 0;         // H5FD_MPIO_INDEPENDENT
inline constexpr int collective = 1;          // H5FD_MPIO_COLLECTIVE
inline constexpr int most_dimensions = 32;    // H5S_MAX_RANK

/// Of a VOL connector: H5VL_CAP_FLAG_ASYNC.
inline constexpr std::uint64_t works_later = 0x2;

/// H5AC_cache_config_t, version 1 (H5ACpublic.h).
struct CacheConfig {
    int version = 1;
    bool rpt_fcn_enabled;
    bool open_trace_file;
    bool close_trace_file;
    char trace_file_name[1025];
    bool evictions_enabled;
    bool set_initial_size;
    std::size_t initial_size;
    double min_clean_fraction;
    std::size_t max_size;
    std::size_t min_size;
    long epoch_length;
    int incr_mode;
    double lower_hr_threshold;
    double increment;
    bool apply_max_increment;
    std::size_t max_increment;
    int flash_incr_mode;
    double flash_multiple;
    double flash_threshold;
    int decr_mode;
    double upper_hr_threshold;
    double decrement;
    bool apply_max_decrement;
    std::size_t max_decrement;
    int epochs_before_eviction;
    bool apply_empty_reserve;
    double empty_reserve;
    std::size_t dirty_bytes_threshold;
    int metadata_write_strategy;
};

// Results: an id, or a number; negative where a call fails.
// clang-format off: one function a line.
#define IOWEIR_HDF5_FUNCTIONS(X) \
    X(int, H5open, ()) \
    X(int, H5get_libversion, (unsigned* major, unsigned* minor, unsigned* release)) \
    X(int, H5free_memory, (void* memory)) \
    X(int, H5Eget_auto2, (Id stack, void** function, void** data)) \
    X(int, H5Eset_auto2, (Id stack, void* function, void* data)) \
    X(int, H5Eclear2, (Id stack)) \
    X(Id, H5Eget_current_stack, ()) \
    X(int, H5Eset_current_stack, (Id stack)) \
    X(int, H5Iget_type, (Id id)) \
    X(int, H5Iget_ref, (Id id)) \
    X(std::int64_t, H5Fget_name, (Id object, char* name, std::size_t room)) \
    X(std::int64_t, H5Fget_obj_count, (Id file, unsigned kinds)) \
    X(std::int64_t, H5Fget_obj_ids, (Id file, unsigned kinds, std::size_t most, Id* ids)) \
    X(int, H5Fget_mdc_size, (Id file, std::size_t* most, std::size_t* clean, std::size_t* now, int* entries)) \
    X(Id, H5Pcreate, (Id list_class)) \
    X(Id, H5Pcopy, (Id list)) \
    X(int, H5Pclose, (Id list)) \
    X(char*, H5Pget_class_name, (Id list_class)) \
    X(Id, H5Pget_driver, (Id access)) \
    X(int, H5Pget_alignment, (Id access, Size* threshold, Size* alignment)) \
    X(int, H5Pset_alignment, (Id access, Size threshold, Size alignment)) \
    X(int, H5Pget_mdc_config, (Id access, CacheConfig* config)) \
    X(int, H5Pset_mdc_config, (Id access, const CacheConfig* config)) \
    X(int, H5Pget_meta_block_size, (Id access, Size* bytes)) \
    X(int, H5Pset_meta_block_size, (Id access, Size bytes)) \
    X(int, H5Pget_small_data_block_size, (Id access, Size* bytes)) \
    X(int, H5Pset_small_data_block_size, (Id access, Size bytes)) \
    X(int, H5Pget_sieve_buf_size, (Id access, std::size_t* bytes)) \
    X(int, H5Pset_sieve_buf_size, (Id access, std::size_t bytes)) \
    X(int, H5Pget_libver_bounds, (Id access, int* low, int* high)) \
    X(int, H5Pset_libver_bounds, (Id access, int low, int high)) \
    X(int, H5Pget_userblock, (Id creation, Size* bytes)) \
    X(int, H5Pget_istore_k, (Id creation, unsigned* k)) \
    X(int, H5Pset_istore_k, (Id creation, unsigned k)) \
    X(int, H5Pget_layout, (Id creation)) \
    X(int, H5Pget_chunk, (Id creation, int most, Size* shape)) \
    X(int, H5Pset_chunk, (Id creation, int dimensions, const Size* shape)) \
    X(int, H5Pget_external_count, (Id creation)) \
    X(int, H5Pget_nfilters, (Id creation)) \
    X(int, H5Pget_fill_time, (Id creation, int* time)) \
    X(int, H5Pset_fill_time, (Id creation, int time)) \
    X(int, H5Pfill_value_defined, (Id creation, int* status)) \
    X(int, H5Pget_fill_value, (Id creation, Id type, void* value)) \
    X(Id, H5Screate_simple, (int dimensions, const Size* lengths, const Size* most)) \
    X(int, H5Sclose, (Id space)) \
    X(int, H5Sget_simple_extent_type, (Id space)) \
    X(int, H5Sget_simple_extent_dims, (Id space, Size* lengths, Size* most)) \
    X(std::int64_t, H5Sget_simple_extent_npoints, (Id space)) \
    X(std::int64_t, H5Sget_select_npoints, (Id space)) \
    X(int, H5Sget_select_type, (Id space)) \
    X(int, H5Sget_select_bounds, (Id space, Size* first, Size* last)) \
    X(std::int64_t, H5Sget_select_hyper_nblocks, (Id space)) \
    X(int, H5Sget_select_hyper_blocklist, (Id space, Size first, Size count, Size* corners)) \
    X(std::int64_t, H5Sget_select_elem_npoints, (Id space)) \
    X(int, H5Sget_select_elem_pointlist, (Id space, Size first, Size count, Size* points)) \
    X(int, H5Sselect_none, (Id)) \
    X(int, H5Sselect_hyperslab, \
      (Id space, int operation, const Size* start, const Size* stride, const Size* count, const Size* block)) \
    X(int, H5Tdetect_class, (Id type, int wanted)) \
    X(std::size_t, H5Tget_size, (Id type)) \
    X(int, H5Tget_class, (Id type)) \
    X(int, H5Tis_variable_str, (Id type)) \
    X(int, H5Tclose, (Id type)) \
    X(Id, H5Dget_type, (Id dataset)) \
    X(int, H5Dwrite, (Id dataset, Id type, Id memory, Id space, Id transfer, const void* values)) \
    X(int, H5Dclose, (Id dataset)) \
    X(Id, H5Dget_space, (Id dataset)) \
    X(Id, H5Dget_create_plist, (Id dataset))
/// Those that not every library has: a serial one, one before 1.10.1, or one without HDF5 1.6's functions.
#define IOWEIR_HDF5_MAYBE(X) \
    X(int, H5is_library_threadsafe, (bool* is)) \
    X(int, H5Oget_info2, (Id object, void* info, unsigned fields)) \
    X(Id, H5Oopen_by_addr, (Id place, Size address)) \
    X(int, H5Eauto_is_v2, (Id stack, unsigned* is_second)) \
    X(int, H5Eget_auto1, (void** function, void** data)) \
    X(int, H5Eset_auto1, (void* function, void* data)) \
    X(Id, H5FD_mpio_init, ()) \
    X(int, H5Pget_fapl_mpio, (Id access, MPI_Comm* comm, MPI_Info* info)) \
    X(int, H5Pget_dxpl_mpio, (Id transfer, int* mode)) \
    X(int, H5Pset_dxpl_mpio, (Id transfer, int mode)) \
    X(int, H5Pget_coll_metadata_write, (Id access, bool* collective)) \
    X(int, H5Pset_coll_metadata_write, (Id access, bool collective)) \
    X(int, H5Pget_all_coll_metadata_ops, (Id access, bool* collective)) \
    X(int, H5Pset_all_coll_metadata_ops, (Id access, bool collective)) \
    X(int, H5Pset_file_space_strategy, (Id creation, int strategy, bool persist, Size threshold)) \
    X(int, H5Pset_file_space_page_size, (Id creation, Size bytes)) \
    X(int, H5Pget_vol_cap_flags, (Id access, std::uint64_t* flags)) \
    X(int, H5Pset_page_buffer_size, (Id access, std::size_t bytes, unsigned least_metadata, unsigned least_data))
// clang-format on

struct Library {
#define IOWEIR_HDF5_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
    IOWEIR_HDF5_FUNCTIONS(IOWEIR_HDF5_FUNCTION)
    IOWEIR_HDF5_MAYBE(IOWEIR_HDF5_FUNCTION)
#undef IOWEIR_HDF5_FUNCTION
    unsigned major = 0, minor = 0, release = 0;
    bool thread_safe = false;  ///< several threads may be in it
    // Data objects: classes of property lists.
    Id* file_create = nullptr;
    Id* file_access = nullptr;
    Id* dataset_create = nullptr;
    Id* dataset_transfer = nullptr;

    /// Its functions that write are those that have hooks. 1.14 is the last version whose functions were gone through.
    [[nodiscard]] bool is_known() const { return major == 1 && minor <= 14; }
    [[nodiscard]] std::string version() const {
        return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
    }
};

/// How names are looked up.
struct Finder {
    void* beside = nullptr;                                             ///< a function of the library
    void* (*function)(const void* beside, const char* name) = nullptr;  ///< in its library; data objects, too
    void* (*object)(const char* name) = nullptr;  ///< as the whole program sees it: a program may have its own copy
};

/// Null, or the first thing that the library does not have.
[[nodiscard]] const char* fill(Library& library, const Finder& find);

/// Where an object lies, as the library has it open now.
struct ObjectPlace {
    unsigned long opening = 0;  ///< a number of its file; each file that the library opens for itself has another one
    Size address = 0;           ///< of the object header in it
};
/// Of an object, or of a file's root. Nothing: the library does not tell. The caller is quiet.
[[nodiscard]] std::optional<ObjectPlace> place_of(const Library& library, Id object);

/// While it lives, failing calls print nothing; after it the error stack is empty, and who is told of errors is as the program has it, be that by
/// H5Eset_auto2 or by H5Eset_auto1. Only before the library's own call.
class Quiet {
public:
    explicit Quiet(const Library& library);
    ~Quiet();
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

private:
    const Library& library_;
    bool by_first_ = false;  ///< the program has used H5Eset_auto1
    void* function_ = nullptr;
    void* data_ = nullptr;
};

/// Keeps what a failed call of the program has left on the error stack from being cleared by further calls, up to its own end.
class FailedCall {
public:
    explicit FailedCall(const Library& library) : library_(library) {}
    ~FailedCall();
    FailedCall(const FailedCall&) = delete;
    FailedCall& operator=(const FailedCall&) = delete;
    /// After the call, before any other.
    void keep_errors() { stack_ = library_.H5Eget_current_stack(); }

private:
    const Library& library_;
    Id stack_ = 0;
};

/// A list of our own, as a copy of one of the program's, closed at the end. Making one tells nobody of errors.
class List {
public:
    /// Of a default list of `list_class` if the program gave none; 0 where neither can be had.
    List(const Library& library, Id programs, const Id* list_class);
    /// A dataset's creation list, which HDF5 makes for each question.
    static List of_dataset(const Library& library, Id dataset) {
        return {library, library.H5Dget_create_plist(dataset)};
    }
    ~List();
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    [[nodiscard]] Id id() const { return id_; }
    [[nodiscard]] explicit operator bool() const { return id_ > 0; }

private:
    List(const Library& library, Id own) : library_(library), id_(own > 0 ? own : 0) {}

    const Library& library_;
    Id id_ = 0;
};

}  // namespace ioweir::hdf5
