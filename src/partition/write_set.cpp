#include "partition/write_set.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/checked.hpp"
#include "base/checksum.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {
namespace {

/// A datatype of some memory, by its addresses; to be used with MPI_BOTTOM and count 1.
class MemoryType {
public:
    explicit MemoryType(const std::vector<MemoryPiece>& pieces) {
        constexpr std::int64_t most = std::int64_t{1} << 30;  // lengths are int
        std::vector<int> lengths;
        std::vector<MPI_Aint> places;
        for (const MemoryPiece& piece : pieces) {
            MPI_Aint place = 0;
            MPI_Get_address(const_cast<void*>(piece.data), &place);
            for (std::int64_t at = 0; at < piece.bytes; at += most) {
                lengths.push_back(static_cast<int>(std::min(most, piece.bytes - at)));
                places.push_back(MPI_Aint_add(place, at));
            }
        }
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
    }
    ~MemoryType() { MPI_Type_free(&type_); }
    MemoryType(const MemoryType&) = delete;
    MemoryType& operator=(const MemoryType&) = delete;
    [[nodiscard]] MPI_Datatype get() const { return type_; }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

std::int64_t total(const std::vector<MemoryPiece>& pieces) {
    std::int64_t bytes = 0;
    for (const MemoryPiece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

Failure argument(const Error& error) { return {IOWEIR_ERR_ARGUMENT, error}; }

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

std::optional<Failure> WriteSet::create(MPI_Comm comm, const Wanted& wanted, MPI_Info info,
                                        std::unique_ptr<WriteSet>& made) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    std::vector<std::int64_t> parts(static_cast<std::size_t>(ranks));
    MPI_Allgather(&wanted.parts, 1, MPI_INT64_T, parts.data(), 1, MPI_INT64_T, comm);
    Options options;
    std::optional<Failure> failure = read_options(info, options);
    auto shape = Shape::make(parts, wanted.files == 0 ? ceil_divide(std::int64_t{ranks}, 64) : wanted.files);
    if (!failure && !shape) failure = argument(shape.error());
    if ((failure = agree(comm, failure))) return failure;
    MPI_Comm own = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &own);
    std::unique_ptr<WriteSet> set(new WriteSet(own, shape.take()));
    failure = agree(own, set->open_file(options, wanted, info));
    if (failure) {
        set->abandon();
        return failure;
    }
    made = std::move(set);
    return std::nullopt;
}

WriteSet::~WriteSet() {
    if (of_file_ != MPI_COMM_NULL) MPI_Comm_free(&of_file_);
    MPI_Comm_free(&comm_);
}

/// Collective over all; the failure is this rank's.
std::optional<Failure> WriteSet::open_file(const Options& options, const Wanted& wanted, MPI_Info info) {
    MPI_Comm_rank(comm_, &rank_);
    options_ = options;
    name_ = {wanted.base, wanted.step, options.directories};
    own_ = shape_.parts_of_rank(rank_);
    const std::int64_t file = shape_.file_of_rank(rank_);
    header_.fields = wanted.fields;
    header_.parts = shape_.parts_of_file(file).count;
    std::optional<Failure> failure;
    const auto header_bytes =
        master_header_bytes(std::ssize(header_.fields), std::max<std::int64_t>(1, header_.parts));
    if (!header_bytes) {
        failure = argument(header_bytes.error());
    } else {
        position_ = header_.bytes = header_bytes.value();
        if (const auto front = encode_front(header_); !front) failure = argument(front.error());
    }
    if (auto known = agree(comm_, failure)) return known;
    std::string token;
    if (rank_ == 0) {
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
    given_.assign(header_.fields.size(), std::vector<bool>(parts, false));
    const int result = MPI_File_open(of_file_, path_.c_str(), MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, info, &file_);
    if (result != MPI_SUCCESS) file_ = MPI_FILE_NULL;
    return of_mpi(result, "a file of a set cannot be made", path_);
}

void WriteSet::remember(std::optional<Failure> failure) {
    if (failure && !failure_) failure_ = std::move(failure);
}

bool WriteSet::is_written(std::int64_t field, std::int64_t part) const {
    return given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)];
}

std::int64_t WriteSet::take_room(std::int64_t bytes) {
    std::int64_t through = bytes;
    MPI_Scan(&bytes, &through, 1, MPI_INT64_T, MPI_SUM, of_file_);
    std::int64_t all = through;
    MPI_Bcast(&all, 1, MPI_INT64_T, ranks_in_file_ - 1, of_file_);
    return std::exchange(position_, position_ + all) + through - bytes;
}

void WriteSet::move(const std::vector<MemoryPiece>& pieces, std::int64_t offset) {
    const std::int64_t bytes = total(pieces);
    if (options_.calls == WriteCalls::independent && bytes == 0) return;
    const MemoryType type(pieces);
    MPI_Status status;
    int result = MPI_SUCCESS;
    switch (options_.calls) {
        case WriteCalls::collective:
            result = MPI_File_write_at_all(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
            break;
        case WriteCalls::independent:
            result = MPI_File_write_at(file_, offset, MPI_BOTTOM, 1, type.get(), &status);
            break;
        case WriteCalls::split:
            result = MPI_File_write_at_all_begin(file_, offset, MPI_BOTTOM, 1, type.get());
            if (result == MPI_SUCCESS) result = MPI_File_write_at_all_end(file_, MPI_BOTTOM, &status);
            break;
    }
    ++figures_.calls;
    remember(of_mpi(result, "a set cannot be written", path_));
    if (result != MPI_SUCCESS) return;
    MPI_Count moved = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    if (moved != bytes)
        remember(Failure{IOWEIR_ERR_IO,
                         {"a set cannot be written",
                          path_ + ": " + std::to_string(moved) + " of " + std::to_string(bytes) + " bytes at " +
                              std::to_string(offset),
                          "is there room?"}});
}

std::optional<Failure> WriteSet::write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                       const void* items, std::optional<Failure> mine) {
    const std::int64_t started = now_ns();
    std::string text;
    if (!mine && part >= 0) {
        auto encoded = encode_block_header(header);
        if (encoded)
            text = encoded.take();
        else
            mine = argument(encoded.error());
    }
    const bool brings = !mine && part >= 0;
    const std::int64_t bytes = brings ? header.bytes : 0;
    const Pending block{brings ? field : -1, part, 0};
    if (!decided_) choose_layout(brings ? block_header_bytes + bytes : 0);
    const bool had_failed = failure_.has_value();
    if (options_.layout == BlockLayout::aligned)
        write_aligned(block, text, items, bytes);
    else
        write_unaligned(block, text, items, bytes);
    if (brings) {
        given_[static_cast<std::size_t>(field)][static_cast<std::size_t>(part)] = true;
        figures_.useful_bytes += block_header_bytes + bytes;
    }
    figures_.write_ns += now_ns() - started;
    if (mine) {
        remember(mine);
        return mine;
    }
    return had_failed ? std::nullopt : failure_;
}

/// By what the first field tells: the rest is taken to be like it. Collective over the file's ranks. Liu et al., section 3.3: with less than a block a rank
/// aligned writes mostly write padding.
void WriteSet::choose_layout(std::int64_t first_bytes) {
    decided_ = true;
    if (options_.layout != BlockLayout::automatic) return;
    std::array<std::int64_t, 2> sum{first_bytes, first_bytes > 0 ? 1 : 0};
    MPI_Allreduce(MPI_IN_PLACE, sum.data(), 2, MPI_INT64_T, MPI_SUM, of_file_);
    const std::int64_t a_block = sum[1] == 0 ? 0 : sum[0] / sum[1];
    const double of_rank = static_cast<double>(a_block) * static_cast<double>(header_.parts) *
                           static_cast<double>(header_.fields.size()) / ranks_in_file_;
    options_.layout =
        of_rank >= static_cast<double>(options_.block_bytes) ? BlockLayout::aligned : BlockLayout::unaligned;
}

void WriteSet::write_unaligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes) {
    const std::int64_t offset = take_room(std::ssize(text) + bytes);
    if (block.field >= 0)
        offsets_[static_cast<std::size_t>(block.field)][static_cast<std::size_t>(block.part)] =
            static_cast<std::uint64_t>(offset);
    move({{text.data(), std::ssize(text)}, {items, bytes}}, offset);
}

void WriteSet::write_aligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes) {
    const std::int64_t length = std::ssize(text) + bytes;
    const bool too_large = length > options_.buffer_bytes;
    const bool full = std::ssize(collected_) + length > options_.buffer_bytes;
    std::array<int, 2> any{full ? 1 : 0, too_large ? 1 : 0};
    MPI_Allreduce(MPI_IN_PLACE, any.data(), 2, MPI_INT, MPI_MAX, of_file_);
    if (any[0] != 0) {
        commit({{collected_.data(), std::ssize(collected_)}}, pending_);
        collected_.clear();
        pending_.clear();
    }
    if (any[1] != 0) {
        if (too_large)
            commit({{text.data(), std::ssize(text)}, {items, bytes}}, {block});
        else
            commit({}, {});
    }
    if (block.field < 0 || too_large) return;
    collect(block, text, items, bytes);
}

void WriteSet::collect(const Pending& block, const std::string& text, const void* items, std::int64_t bytes) {
    pending_.push_back({block.field, block.part, std::ssize(collected_)});
    collected_ += text;
    if (bytes > 0) collected_.append(static_cast<const char*>(items), static_cast<std::size_t>(bytes));
}

void WriteSet::commit(std::vector<MemoryPiece> pieces, const std::vector<Pending>& blocks) {
    const std::int64_t unit = options_.block_bytes;
    const std::int64_t bytes = total(pieces);
    const std::int64_t room = ceil_divide(bytes, unit) * unit;
    position_ = ceil_divide(position_, unit) * unit;
    const std::int64_t offset = take_room(room);
    const std::string padding(static_cast<std::size_t>(room - bytes), '\0');
    pieces.push_back({padding.data(), std::ssize(padding)});
    for (const Pending& block : blocks)
        offsets_[static_cast<std::size_t>(block.field)][static_cast<std::size_t>(block.part)] =
            static_cast<std::uint64_t>(offset + block.at);
    figures_.padded_bytes += room - bytes;
    move(pieces, offset);
}

std::optional<Failure> WriteSet::why_incomplete() const {
    for (std::size_t field = 0; field < given_.size(); ++field) {
        for (std::size_t part = 0; part < given_[field].size(); ++part) {
            if (!given_[field][part])
                return Failure{IOWEIR_ERR_ARGUMENT,
                               {"a field that was not written for every part",
                                header_.fields[field] + ", part " +
                                    std::to_string(global_part(static_cast<std::int64_t>(part))),
                                "write each field of each part before the set is closed"}};
        }
    }
    return std::nullopt;
}

std::uint64_t WriteSet::write_header() {
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
    const int result =
        MPI_File_write_at(file_, 0, bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, &status);
    remember(of_mpi(result, "a set's header cannot be written", path_));
    return checksum(bytes.data(), bytes.size());
}

std::optional<Failure> WriteSet::close() {
    const std::int64_t started = now_ns();
    if (decided_ && options_.layout == BlockLayout::aligned) {
        commit({{collected_.data(), std::ssize(collected_)}}, pending_);
        collected_.clear();
        pending_.clear();
    }
    remember(why_incomplete());
    const std::uint64_t header_checksum = write_header();
    if (position_ == header_.bytes)  // nothing behind the header
        remember(of_mpi(MPI_File_set_size(file_, position_), "a set cannot be written", path_));
    if (options_.durable) remember(of_mpi(MPI_File_sync(file_), "a set does not reach the storage", path_));
    remember(of_mpi(MPI_File_close(&file_), "a set cannot be closed", path_));
    file_ = MPI_FILE_NULL;
    figures_.write_ns += now_ns() - started;
    return finish(header_checksum, agree(comm_, failure_));
}

std::optional<Failure> WriteSet::finish(std::uint64_t header_checksum, std::optional<Failure> failure) {
    std::array<std::uint64_t, 2> mine{static_cast<std::uint64_t>(position_), header_checksum};
    std::vector<std::array<std::uint64_t, 2>> all(rank_ == 0 ? static_cast<std::size_t>(shape_.ranks()) : 0);
    MPI_Gather(mine.data(), 2, MPI_UINT64_T, all.data(), 2, MPI_UINT64_T, 0, comm_);
    if (rank_ == 0 && !failure) {
        Manifest manifest;
        manifest.step = name_.step;
        manifest.ranks = shape_.ranks();
        for (std::int64_t file = 0; file < shape_.files(); ++file) {
            const auto& of_first = all[static_cast<std::size_t>(shape_.ranks_of_file(file).first)];
            manifest.files.push_back(
                {shape_.parts_of_file(file), static_cast<std::int64_t>(of_first[0]), of_first[1]});
        }
        if (auto problem = place_->complete(manifest)) failure = Failure{IOWEIR_ERR_IO, *problem};
    }
    failure = agree(comm_, failure);
    if (failure && place_) place_->abandon();
    return failure;
}

void WriteSet::abandon() {
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
    MPI_Barrier(comm_);  // nobody writes any more
    if (place_) place_->abandon();
}

}  // namespace ioweir::partition
