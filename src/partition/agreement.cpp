#include "partition/agreement.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ioweir/ioweir.h"

namespace ioweir::partition {

std::string text_of_first(MPI_Comm comm, const std::string& text) {
    long long length = static_cast<long long>(text.size());
    MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, comm);
    std::string told = text;
    told.resize(static_cast<std::size_t>(length));
    MPI_Bcast(told.data(), static_cast<int>(length), MPI_CHAR, 0, comm);
    return told;
}

std::optional<Failure> agree(MPI_Comm comm, const std::optional<Failure>& mine) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int failed = mine ? rank : size;
    int first = failed;
    if (size > 1) MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == size) return std::nullopt;
    if (size == 1) return mine;
    Failure told = rank == first ? *mine : Failure{};
    long long words[] = {told.code, static_cast<long long>(told.error.what.size()),
                         static_cast<long long>(told.error.value.size()),
                         static_cast<long long>(told.error.remedy.size())};
    MPI_Bcast(words, 4, MPI_LONG_LONG, first, comm);
    told.code = static_cast<int>(words[0]);
    std::string* const texts[] = {&told.error.what, &told.error.value, &told.error.remedy};
    for (int i = 0; i < 3; ++i) {
        texts[i]->resize(static_cast<std::size_t>(words[i + 1]));
        MPI_Bcast(texts[i]->data(), static_cast<int>(words[i + 1]), MPI_CHAR, first, comm);
    }
    if (mine) return mine;  // each rank knows its own best
    told.error.what = "rank " + std::to_string(first) + ": " + told.error.what;
    return told;
}

std::string to_lines(const Error& error) { return error.what + "\n" + error.value + "\n" + error.remedy + "\n"; }

Error parse_lines(const std::string& lines) {
    Error error;
    std::size_t at = 0;
    for (std::string* const text : {&error.what, &error.value, &error.remedy}) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size());
        *text = lines.substr(at, end - at);
        at = std::min(end + 1, lines.size());
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
