// What is done with a call of the program, by the name of its function.
// What does not live here: doing it (adapter.cpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace ioweir::pnetcdf {

/// What is done with a call; but for the first four it is about an open file.
enum class Kind : std::uint8_t {
    create,
    open,
    remove,
    files,  ///< which ones are open
    end_define,
    begin_define,
    close,
    abort,
    access,   ///< to one variable: divided, or the master's
    several,  ///< to several variables
    wait,
    wait_all,
    cancel,
    requests,  ///< how many are begun
    usage,     ///< of the buffer for bput
    detach,    ///< that buffer goes
    fill_record,
    records,  ///< ncmpi_sync_numrecs
    master,   ///< the master's business alone: its buffers, its sizes
    both,     ///< the logical file's and the master's, in this order: what changes attributes and names
    copy,     ///< the same of ncmpi_copy_att
    mode,     ///< the same
    sync,
    path_of,
    dimension,  ///< of the master, but while the file is being defined
    fill_of,
    bytes,
    logical,  ///< the logical file alone answers
};

/// `symbol`: "ncmpi_enddef". What is not known is for the logical file.
[[nodiscard]] Kind kind_of(std::string_view symbol);

}  // namespace ioweir::pnetcdf
