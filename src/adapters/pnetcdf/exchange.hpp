// Requests go to the ranks that keep the subfiles, and come back (Son et al. 2016, Algorithm 3).
// What does not live here: what a call asks for (access.cpp), how a request is cut (ncsub/request.hpp).
#pragma once

#include <cstddef>
#include <span>

#include "adapters/pnetcdf/file.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/core/request.hpp"

namespace ioweir::pnetcdf {

/// What a rank wants of a divided variable. The elements lie packed in memory, in the order of the request.
struct Wanted {
    int variable = 0;
    ncsub::Element element = ncsub::Element::schar;
    int access = 0;                   ///< of those that are carried out together, the one that it is a part of
    ncsub::RequestView request;       ///< has been checked
    const std::byte* from = nullptr;  ///< writing
    std::byte* to = nullptr;          ///< reading
    int error = no_error;             ///< afterwards: the library's
};

/// Which variables a call names: this rank's, and after an exchange any rank's. With the library alone each rank may name another one.
struct NamedVariables {
    bool divided = true;
    bool in_master = false;
};

/// Carries out what all ranks want, each any number of accesses, of which all write or all read. Collective over the file. Errors are in
/// `wanted`; the result is one that struck a subfile or the exchange itself, the same on all ranks, after which nothing is known of the data.
/// `records`: that the file has at least after what this rank writes. Where no rank names a divided variable, nothing happens after ranks have
/// told each other so.
[[nodiscard]] int exchange(File& file, std::span<Wanted> wanted, bool writing, std::int64_t records,
                           NamedVariables& named);

/// Carries out what this rank wants by itself, in independent mode: each subfile that it reaches is opened by it alone until that mode ends.
/// Errors are in `wanted`.
void carry_out_alone(File& file, std::span<Wanted> wanted, bool writing);

}  // namespace ioweir::pnetcdf
