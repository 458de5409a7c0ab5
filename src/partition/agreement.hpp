// What went wrong, for all ranks of a communicator alike.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "mpi/mpi.hpp"

namespace ioweir::partition {

/// An Error with the code that the C interface returns for it.
struct Failure {
    int code = 0;
    Error error;
};

/// Collective over `comm`: nothing if no rank has a failure; else, on every rank, that of the lowest rank that has one, with its number if it is another's.
[[nodiscard]] std::optional<Failure> agree(MPI_Comm comm, const std::optional<Failure>& mine);

/// A failure's three texts, which may have several lines, as one message; and from it.
[[nodiscard]] std::string to_message(const Error& error);
[[nodiscard]] Error parse_message(const std::string& message);

/// With the code for a value that cannot be.
[[nodiscard]] Failure argument(const Error& error);
[[nodiscard]] Failure argument(const std::string& what, const std::string& value, const std::string& remedy);
/// Nothing for MPI_SUCCESS; else what MPI says of `result`, with `path`.
[[nodiscard]] std::optional<Failure> of_mpi(int result, const std::string& what, const std::string& path);
/// Nothing for 0; else what the system says of the errno value, with `path`.
[[nodiscard]] std::optional<Failure> of_errno(int error, const std::string& what, const std::string& path);

}  // namespace ioweir::partition
