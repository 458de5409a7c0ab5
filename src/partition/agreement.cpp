#include "partition/agreement.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "exchange/delivery.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {

std::optional<Failure> agree(MPI_Comm comm, const std::optional<Failure>& mine) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int failed = mine ? rank : size;
    int first = failed;
    if (size > 1) MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == size) return std::nullopt;
    if (size == 1) return mine;
    int code = mine ? mine->code : 0;
    std::string message = mine ? to_message(mine->error) : std::string();
    MPI_Bcast(&code, 1, MPI_INT, first, comm);
    (void)exchange::broadcast(comm, message, first);
    if (mine) return mine;  // each rank knows its own best
    Failure told{code, parse_message(message)};
    told.error.what = "rank " + std::to_string(first) + ": " + told.error.what;
    return told;
}

std::string to_message(const Error& error) { return error.what + '\0' + error.value + '\0' + error.remedy + '\0'; }

Error parse_message(const std::string& message) {
    Error error;
    std::size_t at = 0;
    for (std::string* const text : {&error.what, &error.value, &error.remedy}) {
        const std::size_t end = std::min(message.find('\0', at), message.size());
        *text = message.substr(at, end - at);
        at = std::min(end + 1, message.size());
    }
    return error;
}

Failure argument(const Error& error) { return {IOWEIR_ERR_ARGUMENT, error}; }

Failure argument(const std::string& what, const std::string& value, const std::string& remedy) {
    return argument(Error{what, value, remedy});
}

std::optional<Failure> of_mpi(int result, const std::string& what, const std::string& path) {
    if (result == MPI_SUCCESS) return std::nullopt;
    int error_class = MPI_ERR_OTHER, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(result, &error_class);
    MPI_Error_string(result, text, &length);
    int code = IOWEIR_ERR_MPI;
    const char* remedy = "";
    if (error_class == MPI_ERR_NO_SPACE || error_class == MPI_ERR_QUOTA) {
        code = IOWEIR_ERR_NO_SPACE;
        remedy = "make room, or write elsewhere";
    } else if (error_class == MPI_ERR_IO || error_class == MPI_ERR_READ_ONLY || error_class == MPI_ERR_ACCESS ||
               error_class == MPI_ERR_NO_SUCH_FILE || error_class == MPI_ERR_FILE) {
        code = IOWEIR_ERR_IO;
    }
    return Failure{code, {what, path + ": " + std::string(text, static_cast<std::size_t>(length)), remedy}};
}

std::optional<Failure> of_errno(int error, const std::string& what, const std::string& path) {
    if (error == 0) return std::nullopt;
    const bool full = error == ENOSPC || error == EDQUOT;
    return Failure{full ? IOWEIR_ERR_NO_SPACE : IOWEIR_ERR_IO,
                   {what, path + ": " + std::strerror(error), full ? "make room, or write elsewhere" : ""}};
}

}  // namespace ioweir::partition
