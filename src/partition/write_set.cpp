#include "partition/write_set.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {
namespace {

constexpr std::int64_t large_piece_bytes = std::int64_t{64} << 10;
/// Of a rank: less than one more is padding, at most a twentieth.
constexpr double little_padding_blocks = 20;

}  // namespace

WriteSet::WriteSet(std::unique_ptr<SetFile> file, const Options& options) : file_(std::move(file)), options_(options) {
    begin_blocks();
}

std::optional<Failure> WriteSet::create(MPI_Comm comm, const Wanted& wanted, MPI_Info info,
                                        std::unique_ptr<WriteSet>& made) {
    Options options;
    auto mine = read_options(info, options);
    std::unique_ptr<SetFile> file;
    if (auto failure = SetFile::create(comm, wanted, options, info, std::move(mine), file)) return failure;
    made.reset(new WriteSet(std::move(file), options));
    return std::nullopt;
}

std::optional<Failure> WriteSet::write(std::int64_t field, std::int64_t part, const BlockHeader& header,
                                       const void* items, std::optional<Failure> mine) {
    const Timed timed(file_->figures.write_ns);
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
    std::vector<std::int64_t> sizes;  // of all blocks, where they are known already
    if (!std::exchange(decided_, true) &&
        (options_.layout == BlockLayout::automatic || options_.calls == WriteCalls::automatic)) {
        sizes = file_->gather_sizes(std::ssize(text) + bytes);
        decide(sizes);
    }
    const bool had_failed = file_->failure().has_value();
    if (options_.layout == BlockLayout::aligned)
        write_aligned(block, text, items, bytes);
    else
        write_unaligned(block, text, items, bytes, std::move(sizes));
    if (brings) {
        note_written(field, part);
        file_->figures.useful_bytes += block_header_bytes + bytes;
    }
    if (mine) {
        file_->remember(mine);
        return mine;
    }
    return had_failed ? std::nullopt : file_->failure();
}

/// By what the first field tells: the rest is taken to be like it. Liu et al., section 3.3: with less than a block a rank aligned writes mostly write padding; with one block and a bit
/// half of it still is.
/// Large blocks gain nothing by going through other ranks: each lies in one piece.
void WriteSet::decide(const std::vector<std::int64_t>& first_sizes) {
    const auto blocks =
        std::count_if(first_sizes.begin(), first_sizes.end(), [](std::int64_t bytes) { return bytes > 0; });
    const std::int64_t all = std::accumulate(first_sizes.begin(), first_sizes.end(), std::int64_t{0});
    const std::int64_t a_block = blocks == 0 ? 0 : all / blocks;
    const double of_rank = static_cast<double>(a_block) * static_cast<double>(file_->parts_of_file()) *
                           static_cast<double>(fields().size()) / static_cast<double>(file_->ranks_of_file());
    if (options_.layout == BlockLayout::automatic) {
        const double enough = little_padding_blocks * static_cast<double>(options_.block_bytes);
        options_.layout = of_rank >= enough ? BlockLayout::aligned : BlockLayout::unaligned;
    }
    file_->settle(a_block >= large_piece_bytes || options_.layout == BlockLayout::aligned);
}

void WriteSet::write_unaligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes,
                               std::vector<std::int64_t> sizes) {
    if (sizes.empty()) sizes = file_->gather_sizes(std::ssize(text) + bytes);
    const std::int64_t offset = file_->take_room(sizes);
    if (block.field >= 0) file_->place(block.field, block.part, offset);
    file_->move({{text.data(), std::ssize(text)}, {items, bytes}}, offset);
}

void WriteSet::write_aligned(const Pending& block, const std::string& text, const void* items, std::int64_t bytes) {
    const std::int64_t length = std::ssize(text) + bytes;
    const bool too_large = length > options_.buffer_bytes;
    const bool full = std::ssize(collected_) + length > options_.buffer_bytes;
    std::array<int, 2> any{full ? 1 : 0, too_large ? 1 : 0};
    MPI_Allreduce(MPI_IN_PLACE, any.data(), 2, MPI_INT, MPI_MAX, file_->of_file());
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
    const std::int64_t offset = file_->take_room(file_->gather_sizes(bytes), unit);
    const std::string padding(static_cast<std::size_t>(ceil_divide(bytes, unit) * unit - bytes), '\0');
    pieces.push_back({padding.data(), std::ssize(padding)});
    for (const Pending& block : blocks) file_->place(block.field, block.part, offset + block.at);
    file_->figures.padded_bytes += std::ssize(padding);
    file_->move(pieces, offset);
}

std::optional<Failure> WriteSet::close() {
    const Timed timed(file_->figures.write_ns);
    if (decided_ && options_.layout == BlockLayout::aligned) {
        commit({{collected_.data(), std::ssize(collected_)}}, pending_);
        collected_.clear();
        pending_.clear();
    }
    file_->remember(why_incomplete());
    return file_->close();
}

}  // namespace ioweir::partition
