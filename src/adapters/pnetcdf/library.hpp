// PnetCDF's own functions, as the adapter calls them, found in the library that the program uses; and the constants of its header, which is
// included nowhere.
// What does not live here: what they are called for.
#pragma once

#include <cstdint>

#include "mpi/mpi.hpp"

namespace ioweir::pnetcdf {

// nc_type, sizes and ids are as in pnetcdf.h (PnetCDF 1.12); an int is returned: 0 or an error (negative).
using Offset = MPI_Offset;

inline constexpr int no_error = 0;
inline constexpr int error_permission = -37;      // NC_EPERM
inline constexpr int error_in_define = -39;       // NC_EINDEFINE
inline constexpr int error_type = -45;            // NC_EBADTYPE
inline constexpr int error_coordinates = -40;     // NC_EINVALCOORDS
inline constexpr int error_name_in_use = -42;     // NC_ENAMEINUSE
inline constexpr int error_no_variable = -49;     // NC_ENOTVAR
inline constexpr int error_global = -50;          // NC_EGLOBAL
inline constexpr int error_not_netcdf = -51;      // NC_ENOTNC
inline constexpr int error_text = -56;            // NC_ECHAR
inline constexpr int error_edge = -57;            // NC_EEDGE
inline constexpr int error_range = -60;           // NC_ERANGE
inline constexpr int error_memory = -61;          // NC_ENOMEM
inline constexpr int error_collective = -202;     // NC_ENOTINDEP
inline constexpr int error_independent = -203;    // NC_EINDEP
inline constexpr int error_file = -204;           // NC_EFILE
inline constexpr int error_write = -206;          // NC_EWRITE
inline constexpr int error_quota = -225;          // NC_EQUOTA
inline constexpr int error_io = -68;              // NC_EIO
inline constexpr int error_types = -208;          // NC_EMULTITYPES
inline constexpr int error_mismatch = -209;       // NC_EIOMISMATCH
inline constexpr int error_access = -77;          // NC_EACCESS
inline constexpr int error_space = -224;          // NC_ENO_SPACE
inline constexpr int error_open_mode = -251;      // NC_EMULTIDEFINE_OMODE
inline constexpr int error_create_mode = -273;    // NC_EMULTIDEFINE_CMODE
inline constexpr int error_padding = -134;        // NC_ENULLPAD
inline constexpr int error_start = -226;          // NC_ENULLSTART
inline constexpr int error_element_type = -211;   // NC_EUNSPTETYPE
inline constexpr int error_request = -212;        // NC_EINVAL_REQUEST
inline constexpr int error_type_mismatch = -230;  // NC_ETYPE_MISMATCH
inline constexpr int error_no_record = -233;      // NC_ENOTRECVAR
inline constexpr int error_no_fill = -234;        // NC_ENOTFILL
inline constexpr int error_pending = -236;        // NC_EPENDING
inline constexpr int error_arguments = -269;      // NC_EMULTIDEFINE_FNC_ARGS
inline constexpr int error_unsupported = -214;    // NC_ENOTSUPPORT
inline constexpr int error_pending_bput = -218;   // NC_EPENDINGBPUT
inline constexpr int error_buffer = -219;         // NC_EINSUFFBUF
inline constexpr int error_overflow = -221;       // NC_EINTOVERFLOW

inline constexpr int global = -1;            // NC_GLOBAL
inline constexpr int no_request = -1;        // NC_REQ_NULL
inline constexpr int all_requests = -1;      // NC_REQ_ALL
inline constexpr int all_gets = -2;          // NC_GET_REQ_ALL
inline constexpr int all_puts = -3;          // NC_PUT_REQ_ALL
inline constexpr int mode_write = 0x1;       // NC_WRITE
inline constexpr int mode_noclobber = 0x4;   // NC_NOCLOBBER
inline constexpr int mode_share = 0x800;     // NC_SHARE
inline constexpr int mode_netcdf4 = 0x1000;  // NC_NETCDF4
inline constexpr int no_fill = 0x100;        // NC_NOFILL
inline constexpr int longest_name = 256;     // NC_MAX_NAME
inline constexpr int type_text = 2;          // NC_CHAR
inline constexpr int type_int = 4;           // NC_INT

// clang-format off: one function a line.
#define IOWEIR_PNETCDF_FUNCTIONS(X) \
    X(create, (MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid)) \
    X(open, (MPI_Comm comm, const char* path, int mode, MPI_Info info, int* ncid)) \
    X(close, (int ncid)) \
    X(abort, (int ncid)) \
    X(enddef, (int ncid)) \
    X(redef, (int ncid)) \
    X(inq, (int ncid, int* dimensions, int* variables, int* attributes, int* unlimited)) \
    X(inq_format, (int ncid, int* format)) \
    X(inq_path, (int ncid, int* length, char* path)) \
    X(inq_dim, (int ncid, int dimension, char* name, Offset* length)) \
    X(inq_var, (int ncid, int variable, char* name, int* type, int* dimensions, int* ids, int* attributes)) \
    X(inq_varoffset, (int ncid, int variable, Offset* offset)) \
    X(inq_var_fill, (int ncid, int variable, int* no_fill, void* value)) \
    X(inq_attname, (int ncid, int variable, int number, char* name)) \
    X(inq_att, (int ncid, int variable, const char* name, int* type, Offset* length)) \
    X(get_att_int, (int ncid, int variable, const char* name, int* value)) \
    X(put_att_int, (int ncid, int variable, const char* name, int type, Offset length, const int* values)) \
    X(put_att_text, (int ncid, int variable, const char* name, Offset length, const char* text)) \
    X(copy_att, (int from, int from_variable, const char* name, int to, int to_variable)) \
    X(del_att, (int ncid, int variable, const char* name)) \
    X(def_dim, (int ncid, const char* name, Offset length, int* id)) \
    X(def_var, (int ncid, const char* name, int type, int dimensions, const int* ids, int* id)) \
    X(def_var_fill, (int ncid, int variable, int no_fill, const void* value)) \
    X(rename_dim, (int ncid, int dimension, const char* name)) \
    X(rename_var, (int ncid, int variable, const char* name)) \
    X(set_fill, (int ncid, int mode, int* old)) \
    X(inq_put_size, (int ncid, Offset* bytes)) \
    X(inq_get_size, (int ncid, Offset* bytes)) \
    X(sync, (int ncid)) \
    X(sync_numrecs, (int ncid)) \
    X(begin_indep_data, (int ncid)) \
    X(end_indep_data, (int ncid)) \
    X(fill_var_rec, (int ncid, int variable, Offset record)) \
    X(put_vara_all, (int ncid, int variable, const Offset* start, const Offset* count, const void* buffer, Offset buffer_count, MPI_Datatype type)) \
    X(iget_vara, (int ncid, int variable, const Offset* start, const Offset* count, void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(iput_vara, (int ncid, int variable, const Offset* start, const Offset* count, const void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(iget_vars, (int ncid, int variable, const Offset* start, const Offset* count, const Offset* stride, void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(iput_vars, (int ncid, int variable, const Offset* start, const Offset* count, const Offset* stride, const void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(iget_varn, (int ncid, int variable, int pieces, Offset* const* starts, Offset* const* counts, void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(iput_varn, (int ncid, int variable, int pieces, Offset* const* starts, Offset* const* counts, const void* buffer, Offset buffer_count, MPI_Datatype type, int* request)) \
    X(inq_nreqs, (int ncid, int* requests)) \
    X(inq_buffer_size, (int ncid, Offset* bytes)) \
    X(inq_buffer_usage, (int ncid, Offset* bytes)) \
    X(wait, (int ncid, int count, int* requests, int* statuses)) \
    X(wait_all, (int ncid, int count, int* requests, int* statuses)) \
    X(cancel, (int ncid, int count, int* requests, int* statuses))
// clang-format on

struct Library {
#define IOWEIR_PNETCDF_FUNCTION(name, parameters) int(*name) parameters = nullptr;
    IOWEIR_PNETCDF_FUNCTIONS(IOWEIR_PNETCDF_FUNCTION)
#undef IOWEIR_PNETCDF_FUNCTION
    const char* (*strerror)(int error) = nullptr;
};

/// Null, or the first function that the library does not have. `find` looks a name up in the library.
template <typename Find>
const char* fill(Library& library, Find&& find) {
#define IOWEIR_PNETCDF_FUNCTION(name, parameters)                                  \
    library.name = reinterpret_cast<decltype(library.name)>(find("ncmpi_" #name)); \
    if (library.name == nullptr) return "ncmpi_" #name;
    IOWEIR_PNETCDF_FUNCTIONS(IOWEIR_PNETCDF_FUNCTION)
#undef IOWEIR_PNETCDF_FUNCTION
    library.strerror = reinterpret_cast<decltype(library.strerror)>(find("ncmpi_strerror"));
    if (library.strerror == nullptr) return "ncmpi_strerror";
    return nullptr;
}

}  // namespace ioweir::pnetcdf
