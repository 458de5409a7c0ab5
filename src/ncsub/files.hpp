// Files of a divided netCDF file from outside, without MPI and without a netCDF library: reading headers, and putting the one file together.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/function_ref.hpp"
#include "ncsub/logical.hpp"

namespace ioweir::ncsub {

/// The header of the file at a path; a prefix for MPI-IO ("ufs:") is left out.
[[nodiscard]] Result<Header> read_header(const std::string& path);

/// "ufs:data.nc" names data.nc for MPI-IO.
[[nodiscard]] std::string without_prefix(const std::string& path);

/// Bytes that are the same in the one file.
struct Copy {
    std::int64_t subfile = -1;  ///< -1: of the master
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const Copy&, const Copy&) = default;
};

/// Records of the one file: the most that one of its files has. An array whose records are fewer in one of them has zeros there.
[[nodiscard]] std::int64_t records_of(const Header& master, std::span<const Header> subfiles);

/// Where all data of the one file come from, variable by variable. `subfiles`: the header of each. Pure.
void for_each_copy(const Logical& logical, const Header& master, std::span<const Header> subfiles,
                   FunctionRef<void(const Copy&)> visit);

/// Writes the one file to `output`, which appears whole or not at all; holes stay holes. With the master's own path it takes the master's
/// place, and the subfiles are removed. Another output that exists is refused. Returns its length in bytes. Nobody may be writing the file.
[[nodiscard]] Result<std::int64_t> merge(const std::string& path, const std::string& output);

}  // namespace ioweir::ncsub
