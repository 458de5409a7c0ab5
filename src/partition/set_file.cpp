#include "partition/set_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.hpp"
#include "base/checksum.hpp"
#include "ioweir/ioweir.h"
#include "partition/files/posix_file.hpp"

namespace ioweir::partition {
namespace {

/// What a rank brings to the beginning of a set.
struct Offer {
    std::int64_t parts = 0, failed = 0, may_be_direct = 0, has_comms = 0, keeps_comms = 0, way = 0, what = 0;
};
constexpr int offer_words = sizeof(Offer) / sizeof(std::int64_t);

/// Of the options by which ranks meet, and find where their blocks go.
std::int64_t digest_of(const Options& options) {
    const std::array<std::int64_t, 6> words{static_cast<std::int64_t>(options.layout),
                                            static_cast<std::int64_t>(options.calls),
                                            options.block_bytes,
                                            options.directories ? 1 : 0,
                                            options.replaces ? 1 : 0,
                                            options.durable ? 1 : 0};
    return static_cast<std::int64_t>(checksum(words.data(), sizeof words));
}

/// Of what names a set's files and fields, which blocks are found by. Not of its base: ranks may have other names of one folder.
std::int64_t digest_of(const Wanted& wanted) {
    std::string text = std::to_string(wanted.step) + " " + std::to_string(wanted.files);
    for (const std::string& field : wanted.fields) text += "\n" + field;
    return static_cast<std::int64_t>(checksum(text.data(), text.size()));
}

/// What rank 0 says of the place that it has made for a set.
struct Place {
    std::int64_t failed = 0;
    std::array<char, 16> token{};
};

/// The master header of the file with the most parts must be one that can be.
std::optional<Failure> check_headers(const Wanted& wanted, const Shape& shape) {
    std::int64_t most = 1;
    for (std::int64_t file = 0; file < shape.files(); ++file) most = std::max(most, shape.parts_of_file(file).count);
    const auto bytes = master_header_bytes(std::ssize(wanted.fields), most);
    if (!bytes) return argument(bytes.error());
    return std::nullopt;
}

}  // namespace

std::optional<Failure> check_fields(const std::vector<std::string>& fields) {
    MasterHeader header;
    header.fields = fields;
    header.bytes = header_unit_bytes;
    if (const auto front = encode_front(header); !front) return argument(front.error());
    return std::nullopt;
}

std::optional<Failure> SetFile::create(MPI_Comm comm, const Wanted& wanted, const Options& options, MPI_Info info,
                                       std::optional<Failure> mine, std::unique_ptr<SetFile>& made) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    if (!mine) mine = check_fields(wanted.fields);
    Offer offer{wanted.parts,
                0,
                0,
                SetComms::has_kept(comm) ? 1 : 0,
                SetComms::would_keep(comm) ? 1 : 0,
                digest_of(options),
                digest_of(wanted)};
    if (!mine && (options.calls == WriteCalls::direct || options.calls == WriteCalls::automatic)) {
        const std::string refusal = why_not_direct(directory_of(wanted.base));
        if (options.calls == WriteCalls::direct && !refusal.empty())
            mine = argument("ioweir_write = direct where ranks cannot write so", refusal, "leave it to auto");
        offer.may_be_direct =
            refusal.empty() && (options.calls == WriteCalls::direct || !prefers_mpi(hints_of(info))) ? 1 : 0;
    }
    offer.failed = mine ? 1 : 0;
    // One exchange for all of it: ranks wait for each other in each, and where they share processors that is what a small set costs.
    std::vector<Offer> offers(static_cast<std::size_t>(ranks));
    MPI_Allgather(&offer, offer_words, MPI_INT64_T, offers.data(), offer_words, MPI_INT64_T, comm);
    if (std::any_of(offers.begin(), offers.end(), [](const Offer& one) { return one.failed != 0; }))
        return agree(comm, mine);
    if (std::any_of(offers.begin(), offers.end(), [&](const Offer& one) { return one.way != offer.way; }))
        return argument("ranks want to write one set in different ways", wanted.base,
                        "give all ranks an MPI_Info with the same keys of ioweir; only ioweir_buffer may differ");
    if (std::any_of(offers.begin(), offers.end(), [&](const Offer& one) { return one.what != offer.what; }))
        return argument("ranks want to write different sets together", wanted.base, sameness);
    std::vector<std::int64_t> parts(offers.size());
    std::transform(offers.begin(), offers.end(), parts.begin(), [](const Offer& one) { return one.parts; });
    auto shape = Shape::make(parts, wanted.files == 0 ? ceil_divide(std::int64_t{ranks}, 64) : wanted.files);
    if (!shape) return argument(shape.error());  // the same on all ranks
    if (auto failure = check_headers(wanted, shape.value())) return failure;
    const bool kept = std::all_of(offers.begin(), offers.end(), [](const Offer& one) { return one.has_comms != 0; });
    const bool stays = std::all_of(offers.begin(), offers.end(), [](const Offer& one) { return one.keeps_comms != 0; });
    std::unique_ptr<SetFile> set(new SetFile(SetComms::take(comm, kept, stays), shape.take()));
    set->may_be_direct_ =
        std::all_of(offers.begin(), offers.end(), [](const Offer& one) { return one.may_be_direct != 0; });
    const std::optional<Failure> failure = set->open(options, wanted, info);
    if (failure) {
        set->abandon();
        return failure;
    }
    made = std::move(set);
    return std::nullopt;
}

SetFile::SetFile(SetComms comms, Shape shape)
    : comms_(std::move(comms)), comm_(comms_.all()), shape_(std::move(shape)) {
    MPI_Comm_rank(comm_, &rank_);
}

/// Collective over all, who get the same failure or none.
std::optional<Failure> SetFile::open(const Options& options, const Wanted& wanted, MPI_Info info) {
    durable_ = options.durable;
    name_ = {wanted.base, wanted.step, options.directories};
    own_ = shape_.parts_of_rank(rank_);
    const std::int64_t file = shape_.file_of_rank(rank_);
    header_.fields = wanted.fields;
    header_.parts = shape_.parts_of_file(file).count;
    position_ = header_.bytes =
        master_header_bytes(std::ssize(header_.fields), std::max<std::int64_t>(1, header_.parts)).value();
    offsets_.assign(header_.fields.size(), std::vector<std::uint64_t>(static_cast<std::size_t>(own_.count), 0));
    std::optional<Failure> failure;
    Place place;
    if (rank_ == 0) {
        auto begun = NewSet::begin(name_, shape_.files(), options.replaces);
        if (begun) {
            begun.value().token().copy(place.token.data(), place.token.size());
            place_ = begun.take();
        } else {
            const bool exists = begun.error().what == set_is_there;
            failure = Failure{exists ? IOWEIR_ERR_EXISTS : IOWEIR_ERR_IO, begun.error()};
            place.failed = 1;
        }
    }
    MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, comm_);
    if (place.failed != 0) return agree(comm_, failure);
    const std::string token(place.token.data(), place.token.size());
    path_ = NewSet::new_file(name_, token, file);
    unique_path_ = name_.directories ? path_ + ".new-" + token : path_;
    is_made_ = options.replaces && !name_.directories;
    of_file_ = comms_.of_file(file, shape_.files());
    MPI_Comm_rank(of_file_, &rank_in_file_);
    MPI_Comm_size(of_file_, &ranks_in_file_);
    if (options.calls == WriteCalls::automatic && may_be_direct_) return std::nullopt;  // settle() opens
    failure = file_.open(of_file_, path_, unique_path_, options.calls, info, is_made_);
    return file_.is_direct() ? std::nullopt : agree(comm_, failure);
}

void SetFile::settle(bool large) {
    if (file_.is_open() && file_.calls() != WriteCalls::automatic) return;
    const WriteCalls alone = may_be_direct_ ? WriteCalls::direct : WriteCalls::independent;
    const WriteCalls calls = large ? alone : WriteCalls::collective;
    if (file_.is_open())
        file_.use(calls);
    else
        remember(file_.open(of_file_, path_, unique_path_, calls, MPI_INFO_NULL, is_made_));
    if (!may_be_direct_ || large) return;
    // Without a file on one of them, none may call what is collective.
    int there = file_.is_there() ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, of_file_);
    if (there == 0) file_.give_up();
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

std::vector<std::int64_t> SetFile::gather_sizes(std::int64_t bytes) const {
    // One exchange, where a scan and a broadcast of the sum would be two: ranks wait for each other in each.
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks_in_file_));
    MPI_Allgather(&bytes, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, of_file_);
    return all;
}

std::int64_t SetFile::take_room(const std::vector<std::int64_t>& sizes, std::int64_t unit) {
    std::int64_t own = 0;
    position_ = ceil_divide(position_, unit) * unit;
    for (std::int64_t rank = 0; rank < std::ssize(sizes); ++rank) {
        if (rank == rank_in_file_) own = position_;
        position_ += ceil_divide(sizes[static_cast<std::size_t>(rank)], unit) * unit;
    }
    return own;
}

void SetFile::move(const std::vector<MemoryPiece>& pieces, std::int64_t offset, bool alone) {
    const bool together = !alone && is_collective(file_.calls());
    if (total(pieces) == 0 && !together) return;
    ++figures.calls;
    remember(file_.write(pieces, offset, alone));
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
    remember(file_.write({{bytes.data(), std::ssize(bytes)}}, 0, true));
    return checksum(bytes.data(), bytes.size());
}

std::optional<Failure> SetFile::close() {
    settle(true);  // where nobody wrote
    const std::uint64_t header_checksum = write_header();
    // Where nothing is behind the header, or regions are not full.
    if ((position_ == header_.bytes || had_regions_) && (!file_.is_direct() || rank_in_file_ == 0))
        remember(file_.set_length(position_));
    if (durable_) remember(file_.sync());
    remember(file_.close());
    if (rank_in_file_ == 0) remember(file_.take_path());
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
    remember(file_.close());
    MPI_Barrier(comm_);  // nobody writes any more
    if (place_) place_->abandon();
}

}  // namespace ioweir::partition
