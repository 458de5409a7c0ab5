// Masters with the attribute names of Son et al. 2016 (figure 9): num_subfiles and ndims_org of a variable that is a scalar there, the names of
// the subfiles as attributes "subfile 0" of the file (test.0, test.1 where they are missing), and in each subfile range(z) = 0, 49. Such a
// master does not say which dimensions an array had: that follows from the subfiles, whose dimensions are called z.cube. Pure.
// What does not live here: the names that PnetCDF and this library write (logical.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ncsub/header.hpp"

namespace ioweir::ncsub {

[[nodiscard]] bool has_plain_names(const Header& master);

/// The names of its subfiles, which lie beside it; `path` is the master's. An error: they lie elsewhere, or nothing says how many there are.
[[nodiscard]] Result<std::vector<std::string>> plain_subfiles(const Header& master, std::string_view path);

/// The same master with the attributes that logical_of() reads in place of the plain ones. `subfiles`: their headers. What contradicts
/// itself is an error that names `path`.
[[nodiscard]] Result<Header> with_own_names(const Header& master, std::span<const Header> subfiles,
                                            std::string_view path);

}  // namespace ioweir::ncsub
