#include "partition/written_file.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ioweir/ioweir.h"
#include "storage/coherent.hpp"

namespace ioweir::partition {

std::string why_not_direct(const std::string& directory) {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return directory + ": " + std::strerror(errno);
    std::string refusal = storage::why_not_coherent(descriptor);
    ::close(descriptor);
    return refusal;
}

bool prefers_mpi(const Hints& hints) { return !hints.empty() || std::getenv("IOWEIR_PLAN") != nullptr; }

WrittenFile::~WrittenFile() {
    if (descriptor_ >= 0) storage_.close(descriptor_);
}

std::optional<Failure> WrittenFile::open(MPI_Comm comm, const std::string& path, const std::string& unique_path,
                                         WriteCalls calls, MPI_Info info, bool is_made) {
    path_ = final_path_ = path;
    calls_ = calls;
    if (calls == WriteCalls::direct) return std::nullopt;
    path_ = unique_path;
    const int makes = is_made ? 0 : MPI_MODE_CREATE | MPI_MODE_EXCL;
    const int result = MPI_File_open(comm, path_.c_str(), makes | MPI_MODE_WRONLY, info, &file_);
    if (result != MPI_SUCCESS) file_ = MPI_FILE_NULL;
    return of_mpi(result, "a file of a set cannot be made", path_);
}

std::optional<Failure> WrittenFile::open_descriptor() {
    if (descriptor_ >= 0) return std::nullopt;
    const storage::Opened opened = storage_.open(path_.c_str(), O_CREAT | O_WRONLY);
    descriptor_ = opened.descriptor;
    return of_errno(opened.error, "a file of a set cannot be made", path_);
}

std::optional<Failure> WrittenFile::write(const std::vector<MemoryPiece>& pieces, std::int64_t offset, bool alone) {
    if (is_direct()) return write_directly(pieces, offset);
    if (file_ == MPI_FILE_NULL) return std::nullopt;
    return write_by_mpi(pieces, offset, alone ? WriteCalls::independent : *calls_);
}

std::optional<Failure> WrittenFile::write_directly(const std::vector<MemoryPiece>& pieces, std::int64_t offset) {
    std::vector<iovec> memory;
    memory.reserve(pieces.size());
    for (const MemoryPiece& piece : pieces) {
        if (piece.bytes > 0) memory.push_back({const_cast<void*>(piece.data), static_cast<std::size_t>(piece.bytes)});
    }
    if (memory.empty()) return std::nullopt;
    if (auto failure = open_descriptor()) return failure;
    const storage::Transfer done = storage_.write_pieces_at(descriptor_, memory.data(), std::ssize(memory), offset);
    if (done.error != 0) return of_errno(done.error, "a set cannot be written", path_);
    return too_few(done.bytes, total(pieces), offset);
}

std::optional<Failure> WrittenFile::write_by_mpi(const std::vector<MemoryPiece>& pieces, std::int64_t offset,
                                                 WriteCalls calls) {
    const std::int64_t bytes = total(pieces);
    if (calls == WriteCalls::independent && bytes == 0) return std::nullopt;
    const MemoryType type(pieces);
    MPI_Status status;
    int result = MPI_SUCCESS;
    if (calls == WriteCalls::collective) {
        result = MPI_File_write_at_all(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
    } else if (calls == WriteCalls::split) {
        result = MPI_File_write_at_all_begin(file_, offset, MPI_BOTTOM, 1, type.get());
        if (result == MPI_SUCCESS) result = MPI_File_write_at_all_end(file_, MPI_BOTTOM, &status);
    } else {
        result = MPI_File_write_at(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
    }
    if (auto failure = of_mpi(result, "a set cannot be written", path_)) return failure;
    if (bytes == 0) return std::nullopt;  // ROMIO leaves the status of nothing as it was
    MPI_Count moved = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    return too_few(moved, bytes, offset);
}

std::optional<Failure> WrittenFile::too_few(std::int64_t moved, std::int64_t bytes, std::int64_t offset) const {
    if (moved == bytes) return std::nullopt;
    return Failure{
        IOWEIR_ERR_IO,
        {"a set cannot be written",
         path_ + ": " + std::to_string(moved) + " of " + std::to_string(bytes) + " bytes at " + std::to_string(offset),
         "is there room?"}};
}

std::optional<Failure> WrittenFile::set_length(std::int64_t bytes) {
    constexpr const char* what = "a set cannot be written";
    if (file_ != MPI_FILE_NULL) return of_mpi(MPI_File_set_size(file_, bytes), what, path_);
    if (!is_direct()) return std::nullopt;
    if (auto failure = open_descriptor()) return failure;
    return of_errno(::ftruncate(descriptor_, bytes) == 0 ? 0 : errno, what, path_);
}

std::optional<Failure> WrittenFile::sync() {
    constexpr const char* what = "a set does not reach the storage";
    if (file_ != MPI_FILE_NULL) return of_mpi(MPI_File_sync(file_), what, path_);
    if (descriptor_ < 0) return std::nullopt;
    return of_errno(::fsync(descriptor_) == 0 ? 0 : errno, what, path_);
}

std::optional<Failure> WrittenFile::close() {
    constexpr const char* what = "a set cannot be closed";
    if (file_ != MPI_FILE_NULL) return of_mpi(MPI_File_close(&file_), what, path_);
    if (descriptor_ < 0) return std::nullopt;
    return of_errno(storage_.close(std::exchange(descriptor_, -1)), what, path_);
}

std::optional<Failure> WrittenFile::take_path() const {
    if (path_ == final_path_ || std::rename(path_.c_str(), final_path_.c_str()) == 0) return std::nullopt;
    return of_errno(errno, "a file of a set cannot be renamed", path_);
}

}  // namespace ioweir::partition
