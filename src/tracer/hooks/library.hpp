// HDF5, PnetCDF and netCDF calls: what is known of each intercepted function, and what lies behind it.
// No library's header is included anywhere: arguments are passed on as the registers and stack slots they came in. On x86-64
// and aarch64 an int, a pointer, a hid_t and an MPI handle of either kind each fill one of them; none of the functions takes
// a floating-point argument.
// What does not live here: finding the real functions (preload/library_symbols.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "ioweir_generated/functions.hpp"
#include "tracer/ring/process.hpp"

namespace ioweir::tracer::library {

using Word = std::uint64_t;

enum class Api : std::uint8_t { hdf5, pnetcdf, netcdf };
inline constexpr int api_count = 3;

/// What is done around a call: see library_hooks.cpp.
enum class Body : std::uint8_t {
    open,      ///< makes a file handle from a path
    object,    ///< makes a handle of something in the same file
    linked,    ///< the same, possibly in another file (HDF5's external links)
    close,     ///< ends a handle
    release,   ///< may end a handle
    path,      ///< is told a path and makes no handle
    other,     ///< is told a handle, moves no data
    transfer,  ///< H5Dread, H5Dwrite
    multi,     ///< several datasets
    chunk,     ///< a chunk as it lies in the file
    access,    ///< one variable of PnetCDF or netCDF
    several,   ///< several variables or pieces
    wait,      ///< completes what was begun before
    cancel,    ///< gives up what was begun before
    forget,    ///< ends every handle
    plain,     ///< is not recorded
};

/// What a function returns: the ones of HDF5 are negative when they fail, the others' int is not zero.
enum class Returns : std::uint8_t { hid_t, herr_t, htri_t, integer };

enum class Shape : std::uint8_t { none, var, var1, vara, vars, varm, varn };

/// One row a symbol, generated. Places of arguments: -1 where there is none.
struct LibraryFunction {
    const char* symbol;
    format::Function event;
    format::Function reading;  ///< completions: the event when reads end
    Api api;
    Body body;
    Returns returns;
    Shape shape;
    std::uint8_t arguments;
    bool asynchronous;           ///< HDF5's: places do not count what such a form has ahead of a function's arguments
    std::uint8_t element_bytes;  ///< in memory; 0: the call says
    std::int8_t path;
    std::int8_t made;      ///< where the new handle is stored
    std::int8_t location;  ///< the handle that counts, if it is not the first argument
    std::int8_t variable;
    std::int8_t start;
    std::int8_t counts;
    std::int8_t stride;
    std::int8_t number;
    std::int8_t buffer_count;
    std::int8_t buffer_type;
    std::int8_t request;
};

/// Functions that ask a library something before a call is passed on to it. None of them is intercepted.
// clang-format off: the macro comes out differently each time.
#define IOWEIR_LIBRARY_QUERIES(X) \
    X(H5Iget_type) X(H5Fget_name) X(H5Tget_size) X(H5Sget_select_npoints) X(H5Sget_simple_extent_npoints) \
    X(H5Sclose) X(H5Dget_space) X(H5Dget_chunk_storage_size) X(H5ESget_count) X(ncmpi_inq_varndims) \
    X(ncmpi_inq_vardimid) X(ncmpi_inq_dimlen) X(ncmpi_inq_vartype) X(ncmpi_inq_path) X(nc_inq_varndims) \
    X(nc_inq_vardimid) X(nc_inq_dimlen) X(nc_inq_vartype) X(nc_inq_type) X(nc_inq_path)
// clang-format on
enum class Query : std::uint8_t {
#define IOWEIR_QUERY(name) name,
    IOWEIR_LIBRARY_QUERIES(IOWEIR_QUERY)
#undef IOWEIR_QUERY
        count
};
inline constexpr int query_count = static_cast<int>(Query::count);
inline constexpr const char* query_names[query_count] = {
#define IOWEIR_QUERY(name) #name,
    IOWEIR_LIBRARY_QUERIES(IOWEIR_QUERY)
#undef IOWEIR_QUERY
};
/// A function that every version of a library has and nobody intercepts: whoever defines it is the library.
inline constexpr const char* anchors[api_count] = {"H5get_libversion", "ncmpi_inq_libvers", "nc_inq_libvers"};

/// A loaded library. Two of one kind may be loaded at once, and their handles mean different things.
struct Provider {
    void* queries[query_count] = {};
    std::uint32_t number = 0;  ///< from 1
    bool traced = false;       ///< it is of a version whose calls are understood

    /// Calls a query; its result is 0 where the library has no such function.
    template <typename Result, typename... Arguments>
    Result ask(Query query, Arguments... arguments) const {
        void* function = queries[static_cast<int>(query)];
        return function != nullptr ? reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...) : Result{};
    }
};

/// What lies behind a hook for one caller.
struct Real {
    void* function = nullptr;  ///< null: there is none
    const Provider* provider = nullptr;
};

extern const LibraryFunction functions[];
extern const int function_count;

/// Finds what a call from `caller` (a return address) would have reached without us. `callee`: the real function that this
/// thread is in, which is who called when `caller` lies in our own code (a function that ends in a call is left by a jump).
using Resolve = Real (*)(int function, const void* caller, const void* callee);
/// Set by the preload when it is loaded; of programs that ioweir is linked into (src/linked/library_symbols.cpp) from the start.
extern Resolve resolve;
Real linked_library_call(int function, const void* caller, const void* callee);

/// Carries out a call in the library's place, and gives what it returns; false: the call is for the library as it is.
using CarryOut = bool (*)(const char* symbol, const Real& real, const Word* arguments, int count, Word* result);
/// For each kind of library. Null: nobody does. Set while one thread runs (MPI is being initialised).
extern CarryOut carry_out[api_count];
/// A call of any function of `count` such arguments.
Word invoke(void* function, const Word* arguments, int count);

/// What asynchronous forms have ahead of a function's arguments: app_file, app_func, app_line. Behind them: an event set.
inline constexpr int ahead_of_arguments = 3;

/// What a call is about, found out before it is made.
struct Subject {
    std::uint32_t file = 0;
    std::int64_t bytes = 0;
};

/// The describing of calls, by kind of library. `before`: of what the call moves. `after`: for successful calls (and failed
/// ones, which forget nothing), what becomes of handles; may still change the subject.
struct Call {
    const LibraryFunction& about;
    const Provider& provider;
    const Word* arguments;  ///< without what asynchronous forms have ahead of them
    ThreadStream& stream;
    std::uint32_t sequence;

    template <typename Type>
    [[nodiscard]] Type argument(int place) const {
        if constexpr (sizeof(Type) == sizeof(Word))
            return __builtin_bit_cast(Type, arguments[place]);
        else
            return static_cast<Type>(arguments[place]);  // the upper half of an int's register may hold anything
    }
};
void before_hdf5(const Call& call, Subject& subject);
void after_hdf5(const Call& call, Word result, bool failed, Subject& subject);
/// An asynchronous call with an event set of which calls are under way: to ask for what they are about could wait for them.
bool is_put_off(const LibraryFunction& about, const Provider& provider, const Word* arguments);
/// False: a handle that belongs to no file; nothing is recorded.
bool concerns_hdf5(const LibraryFunction& about, const Provider& provider, Word handle);

void before_netcdf(const Call& call, Subject& subject);
void after_netcdf(const Call& call, Word result, bool failed, Subject& subject);
/// Which of the two events of a completion this one is, and which call began it.
struct Completion {
    bool reading = false;
    std::uint32_t began = 0;  ///< sequence of the first call that is being completed; 0: unknown
};
Completion completion_of(const Call& call);

/// Names of files in handle tables: one more than the file's number, since 0 there means an unknown handle.
std::uint32_t register_named(const Call& call, const char* path);

}  // namespace ioweir::tracer::library
