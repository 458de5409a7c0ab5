#include "sim/trace/recorder.hpp"

#include <algorithm>

#include "sim/random.hpp"

namespace ioweir::sim {
namespace {

constexpr std::size_t most_pieces = 65'536;
constexpr std::int64_t most_events = 4'000'000;

}  // namespace

Recorder::Recorder(RecorderOptions options)
    : options_(std::move(options)),
      topology_(
          planner::Topology::blocks(options_.ranks, (options_.ranks - 1) / std::max(1, options_.ranks_of_node) + 1)) {
    const auto ranks = static_cast<std::int64_t>(options_.ranks);
    const std::int64_t kept = std::min<std::int64_t>(ranks, std::max(1, options_.sample));
    places_.assign(static_cast<std::size_t>(ranks), -1);
    RandomStream stream(1, Part::sample, 0);
    for (std::int64_t i = 0; i < kept; ++i) {
        const std::int64_t first = i * ranks / kept, last = (i + 1) * ranks / kept;
        const auto chosen = first + static_cast<std::int64_t>(stream.uniform() * static_cast<double>(last - first));
        Rank rank;
        rank.rank = static_cast<int>(std::min(chosen, last - 1));
        places_[static_cast<std::size_t>(rank.rank)] = static_cast<std::int32_t>(ranks_.size());
        ranks_.push_back(std::move(rank));
    }
}

std::vector<int> Recorder::kept() const {
    std::vector<int> ranks;
    ranks.reserve(ranks_.size());
    for (const Rank& rank : ranks_) ranks.push_back(rank.rank);
    return ranks;
}

Recorder::Rank* Recorder::kept_rank(int rank) {
    const std::int32_t place = places_[static_cast<std::size_t>(rank)];
    return place < 0 ? nullptr : &ranks_[static_cast<std::size_t>(place)];
}

void Recorder::keep(Rank& rank, const Entry& entry) {
    if (events_ >= most_events && entry.what == What::operation) {
        ++left_out_;
        return;
    }
    ++events_;
    rank.entries.push_back(entry);
}

void Recorder::opened(bool writes, Seconds begin, const std::vector<Seconds>& ends) {
    writes_ = writes;
    first_call_ = true;
    for (Rank& rank : ranks_) {
        const Seconds end = shift_ + (ends.empty() ? begin : ends[static_cast<std::size_t>(rank.rank)]);
        keep(rank, {What::open, writes, 0, 0, 0, 0, shift_ + begin, end});
        rank.free_at = end;
        end_ = std::max(end_, end);
    }
}

std::uint32_t Recorder::shape_of(const layout::AccessPattern& pattern, int rank, std::int64_t& offset) {
    const layout::Extent bounds = pattern.rank_bounds(rank);
    offset = bounds.offset;
    if (pattern.rank_bytes(rank) == bounds.length) return 0;
    Shape shape;
    pattern.visit(rank, bounds, [&](layout::Extent piece) {
        if (shape.size() > most_pieces) return;
        if (!shape.empty() && shape.back().first + shape.back().second == piece.offset - offset)
            shape.back().second += piece.length;
        else
            shape.emplace_back(piece.offset - offset, piece.length);
    });
    if (shape.size() > most_pieces) return 1;
    return shapes_.emplace(std::move(shape), static_cast<std::uint32_t>(shapes_.size() + 2)).first->second;
}

void Recorder::calls(std::int64_t /*call*/, const planner::Plan& plan, const layout::AccessPattern& pattern) {
    exchanges_ = plan.schedule->writers() > 0 && plan.schedule->has_buffer(0);
    const std::int64_t rounds = plan.rounds();
    for (int rank = 0; rank < pattern.ranks(); ++rank) {
        const std::int64_t bytes = pattern.rank_bytes(rank);
        sums_.calls += bytes > 0 || !options_.alone ? 1 : 0;
        (writes_ ? sums_.written_bytes : sums_.read_bytes) += bytes;
    }
    for (Rank& rank : ranks_) {
        rank.asked = pattern.rank_bytes(rank.rank);
        rank.shape = shape_of(pattern, rank.rank, rank.offset);
        if (exchanges_) rank.rounds += rounds;
        // Without anything to move, a call of its own is not made.
        rank.in_call = rank.asked > 0 || !options_.alone;
        if (writes_ && !first_call_) rank.free_at += options_.compute_s;
    }
    first_call_ = false;
}

void Recorder::handed(int number, planner::Turn /*turn*/, std::int64_t bytes) {
    ++sums_.messages;
    if (Rank* rank = kept_rank(number)) {
        ++rank->messages;
        rank->handed_bytes += bytes;
    }
}

void Recorder::moved(const Moved& operation) {
    ++sums_.operations;
    (operation.writes ? sums_.stored_bytes : sums_.fetched_bytes) += operation.range.length;
    if (Rank* rank = kept_rank(operation.rank))
        keep(*rank, {What::operation, operation.writes, 0, operation.file, operation.range.offset,
                     operation.range.length, shift_ + operation.begin, shift_ + operation.end});
}

void Recorder::returned(int number, std::int64_t /*call*/, Seconds end) {
    end_ = std::max(end_, shift_ + end);
    Rank* rank = kept_rank(number);
    if (rank == nullptr) return;
    if (rank->in_call)
        keep(*rank, {What::call, writes_, rank->shape, 0, rank->offset, rank->asked, rank->free_at, shift_ + end});
    rank->free_at = std::max(rank->free_at, shift_ + end);
    rank->in_call = false;
}

void Recorder::closed(bool writes, Seconds began, Seconds end) {
    end_ = std::max(end_, shift_ + end);
    for (Rank& rank : ranks_) {
        // Who has written flushes it; the others wait for them.
        const Seconds from = std::max(rank.free_at, std::min(shift_ + began, shift_ + end));
        if (writes) keep(rank, {What::sync, true, 0, 0, 0, 0, rank.free_at, shift_ + end});
        keep(rank, {What::close, writes, 0, 0, 0, 0, std::max(from, shift_ + end), std::max(from, shift_ + end)});
        rank.free_at = shift_ + end;
    }
}

}  // namespace ioweir::sim
