#include "partition/set_file.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "base/checksum.hpp"
#include "ioweir/ioweir.h"
#include "partition/memory_type.hpp"

namespace ioweir::partition {
std::int64_t total(const std::vector<MemoryPiece>& pieces) {
    std::int64_t bytes = 0;
    for (const MemoryPiece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

std::optional<Failure> SetFile::create(MPI_Comm comm, const Wanted& wanted, const Options& options, MPI_Info info,
                                       std::unique_ptr<SetFile>& made) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    std::vector<std::int64_t> parts(static_cast<std::size_t>(ranks));
    MPI_Allgather(&wanted.parts, 1, MPI_INT64_T, parts.data(), 1, MPI_INT64_T, comm);
    auto shape = Shape::make(parts, wanted.files == 0 ? ceil_divide(std::int64_t{ranks}, 64) : wanted.files);
    if (!shape) return argument(shape.error());  // the same on all ranks
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &own);
    std::unique_ptr<SetFile> set(new SetFile(own, shape.take()));
    const std::optional<Failure> failure = agree(own, set->open(options, wanted, info));
    if (failure) {
        set->abandon();
        return failure;
    }
    made = std::move(set);
    return std::nullopt;
}

SetFile::~SetFile() {
    if (of_file_ != MPI_COMM_NULL) MPI_Comm_free(&of_file_);
    MPI_Comm_free(&comm_);
}

/// Collective over all; the failure is this rank's.
std::optional<Failure> SetFile::open(const Options& options, const Wanted& wanted, MPI_Info info) {
    MPI_Comm_rank(comm_, &rank_);
    durable_ = options.durable;
    name_ = {wanted.base, wanted.step, options.directories};
    own_ = shape_.parts_of_rank(rank_);
    const std::int64_t file = shape_.file_of_rank(rank_);
    header_.fields = wanted.fields;
    header_.parts = shape_.parts_of_file(file).count;
    std::optional<Failure> failure;
    const auto header_bytes = master_header_bytes(std::ssize(header_.fields), std::max<std::int64_t>(1, header_.parts));
    if (!header_bytes) {
        failure = argument(header_bytes.error());
    } else {
        position_ = header_.bytes = header_bytes.value();
        if (const auto front = encode_front(header_); !front) failure = argument(front.error());
    }
    std::string token;
    if (rank_ == 0 && !failure) {
        auto begun = NewSet::begin(name_, shape_.files(), options.replaces);
        if (begun) {
            token = begun.value().token();
            place_ = begun.take();
        } else {
            const bool exists = begun.error().what == set_is_there;
            failure = Failure{exists ? IOWEIR_ERR_EXISTS : IOWEIR_ERR_IO, begun.error()};
        }
    }
    if (auto known = agree(comm_, failure)) return known;
    path_ = NewSet::new_file(name_, text_of_first(comm_, token), file);
    MPI_Comm_split(comm_, static_cast<int>(file), rank_, &of_file_);
    MPI_Comm_rank(of_file_, &rank_in_file_);
    MPI_Comm_size(of_file_, &ranks_in_file_);
    const auto parts = static_cast<std::size_t>(own_.count);
    offsets_.assign(header_.fields.size(), std::vector<std::uint64_t>(parts, 0));
    const int result =
        MPI_File_open(of_file_, path_.c_str(), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, info, &file_);
    if (result != MPI_SUCCESS) file_ = MPI_FILE_NULL;
    return of_mpi(result, "a file of a set cannot be made", path_);
}

void SetFile::remember(std::optional<Failure> failure) {
    if (failure && !failure_) failure_ = std::move(failure);
}

void SetFile::place(std::int64_t field, std::int64_t part, std::int64_t offset) {
    offsets_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)] = static_cast<std::uint64_t>(offset);
}

std::int64_t SetFile::region(std::int64_t number, std::int64_t bytes) {
    const std::int64_t offset = position_ + (number * ranks_in_file_ + rank_in_file_) * bytes;
    regions_end_ = std::max(regions_end_, offset + bytes);
    return offset;
}

void SetFile::end_regions() {
    std::int64_t end = std::max(position_, regions_end_);
    MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT64_T, MPI_MAX, of_file_);
    had_regions_ = end > position_;
    position_ = end;
}

std::int64_t SetFile::take_room(std::int64_t bytes, std::int64_t unit) {
    // One exchange, where a scan and a broadcast of the sum would be two: ranks wait for each other in each.
    const std::int64_t mine = ceil_divide(bytes, unit) * unit;
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks_in_file_));
    MPI_Allgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, of_file_);
    const std::int64_t begin = ceil_divide(position_, unit) * unit;
    const std::int64_t own = std::accumulate(all.begin(), all.begin() + rank_in_file_, begin);
    position_ = std::accumulate(all.begin() + rank_in_file_, all.end(), own);
    return own;
}

void SetFile::move(const std::vector<MemoryPiece>& pieces, std::int64_t offset, WriteCalls calls) {
    const std::int64_t bytes = total(pieces);
    if (calls == WriteCalls::independent && bytes == 0) return;
    const MemoryType type(pieces);
    MPI_Status status;
    int result = MPI_SUCCESS;
    switch (calls) {
        case WriteCalls::collective:
            result = MPI_File_write_at_all(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
            break;
        case WriteCalls::automatic:  // was decided
        case WriteCalls::independent:
            result = MPI_File_write_at(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
            break;
        case WriteCalls::split:
            result = MPI_File_write_at_all_begin(file_, offset, MPI_BOTTOM, 1, type.get());
            if (result == MPI_SUCCESS) result = MPI_File_write_at_all_end(file_, MPI_BOTTOM, &status);
            break;
    }
    ++figures.calls;
    remember(of_mpi(result, "a set cannot be written", path_));
    if (result != MPI_SUCCESS || bytes == 0) return;  // ROMIO leaves the status of nothing as it was
    MPI_Count moved = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    if (moved != bytes)
        remember(Failure{IOWEIR_ERR_IO,
                         {"a set cannot be written",
                          path_ + ": " + std::to_string(moved) + " of " + std::to_string(bytes) + " bytes at " +
                              std::to_string(offset),
                          "is there room?"}});
}

std::uint64_t SetFile::write_header() {
    // Of each rank [field][part]; the table is [field][part of the file].
    const Span ranks = shape_.ranks_of_file(shape_.file_of_rank(rank_));
    const std::int64_t first = shape_.parts_of_rank(ranks.first).first;
    std::vector<int> counts, places;
    int place = 0;
    for (std::int64_t rank = ranks.first; rank < ranks.end(); ++rank) {
        counts.push_back(static_cast<int>(shape_.parts_of_rank(rank).count * std::ssize(offsets_)));
        places.push_back(place);
        place += counts.back();
    }
    std::vector<std::uint64_t> mine, all(static_cast<std::size_t>(rank_in_file_ == 0 ? place : 0));
    for (const auto& field : offsets_) mine.insert(mine.end(), field.begin(), field.end());
    MPI_Gatherv(mine.data(), static_cast<int>(mine.size()), MPI_UINT64_T, all.data(), counts.data(), places.data(),
                MPI_UINT64_T, 0, of_file_);
    if (rank_in_file_ != 0) return 0;
    std::vector<std::vector<std::uint64_t>> table(offsets_.size(),
                                                  std::vector<std::uint64_t>(static_cast<std::size_t>(header_.parts)));
    auto next = all.begin();
    for (std::int64_t rank = ranks.first; rank < ranks.end(); ++rank) {
        const Span parts = shape_.parts_of_rank(rank);
        for (auto& field : table) {
            std::copy_n(next, parts.count, field.begin() + (parts.first - first));
            next += parts.count;
        }
    }
    const std::string bytes = encode_front(header_).value() + encode_table(table);
    MPI_Status status;
    const int result = MPI_File_write_at(file_, 0, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, &status);
    remember(of_mpi(result, "a set's header cannot be written", path_));
    return checksum(bytes.data(), bytes.size());
}

std::optional<Failure> SetFile::close() {
    const std::uint64_t header_checksum = write_header();
    // Where nothing is behind the header, or regions are not full.
    if (position_ == header_.bytes || had_regions_)
        remember(of_mpi(MPI_File_set_size(file_, position_), "a set cannot be written", path_));
    if (durable_) remember(of_mpi(MPI_File_sync(file_), "a set does not reach the storage", path_));
    remember(of_mpi(MPI_File_close(&file_), "a set cannot be closed", path_));
    file_ = MPI_FILE_NULL;
    return finish(header_checksum);
}

std::optional<Failure> SetFile::finish(std::uint64_t header_checksum) {
    std::optional<Failure> failure = failure_;
    const std::array<std::uint64_t, 3> mine{static_cast<std::uint64_t>(position_), header_checksum,
                                            failure ? std::uint64_t{1} : 0};
    std::vector<std::array<std::uint64_t, 3>> all(rank_ == 0 ? static_cast<std::size_t>(shape_.ranks()) : 0);
    MPI_Gather(mine.data(), 3, MPI_UINT64_T, all.data(), 3, MPI_UINT64_T, 0, comm_);
    if (rank_ == 0 && std::all_of(all.begin(), all.end(), [](const auto& one) { return one[2] == 0; })) {
        Manifest manifest;
        manifest.step = name_.step;
        manifest.ranks = shape_.ranks();
        for (std::int64_t file = 0; file < shape_.files(); ++file) {
            const auto& of_first = all[static_cast<std::size_t>(shape_.ranks_of_file(file).first)];
            manifest.files.push_back({shape_.parts_of_file(file), static_cast<std::int64_t>(of_first[0]), of_first[1]});
        }
        if (auto problem = place_->complete(manifest)) failure = Failure{IOWEIR_ERR_IO, *problem};
    }
    failure = agree(comm_, failure);
    if (failure && place_) place_->abandon();
    return failure;
}

void SetFile::abandon() {
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
    MPI_Barrier(comm_);  // nobody writes any more
    if (place_) place_->abandon();
}

}  // namespace ioweir::partition
