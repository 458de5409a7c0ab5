#include "engine/calls/agreement.hpp"

#include <atomic>
#include <new>

namespace ioweir::engine {
namespace {

using exchange::Contribution;
using exchange::Group;
using exchange::Sums;

std::atomic<std::uint64_t> last_shape{0};

/// Of the view's data [first_byte, first_byte + bytes).
planner::RankSummary summary_of(const layout::FileView& view, std::int64_t first_byte, std::int64_t bytes) {
    planner::RankSummary summary;
    summary.bytes = bytes;
    layout::PieceCursor pieces = view.pieces(first_byte, bytes);
    for (layout::Extent piece; pieces.next(piece);) summary.add(piece);
    return summary;
}

/// Where data byte `first_byte` of a view lies: in an instance of its filetype, and where in the file the data of that begin.
struct Instance {
    std::int64_t byte = 0;
    std::int64_t origin = 0;
};
Instance instance_of(const layout::FileView& view, std::int64_t first_byte) {
    const layout::FlatType& type = *view.filetype;
    const std::int64_t begin = view.displacement + type.bounds.offset;
    if (type.contiguous || type.size == 0) return {0, begin + first_byte};
    return {first_byte % type.size, begin + first_byte / type.size * type.extent};
}

/// Do `bytes` of data lie alike in instances of both, `byte` behind the begin of the first? No number of blocks makes it slower.
bool lie_alike(const layout::FlatType& one, const layout::FlatType& other, std::int64_t byte, std::int64_t bytes) {
    if (&one == &other || (one.contiguous && other.contiguous)) return true;
    if (one.contiguous || other.contiguous || !layout::same_runs(one, other)) return false;
    return one.extent == other.extent || bytes <= one.size - byte;
}

/// What a rank says of how it has moved: nothing by which ranks could differ, a distance, or that it asks for something else.
Group::Range moved_between(PlacedShape before, PlacedShape now) {
    if (now.shape != before.shape) return {INT64_MIN, INT64_MAX};
    if (now.shape == 0) return {};
    return {now.origin - before.origin, now.origin - before.origin};
}

/// The distance that all ranks have moved; nothing where one has not, or another distance.
std::optional<std::int64_t> distance_of(Group::Range all) {
    if (all.least > all.most) return 0;  // nobody has bytes, as before
    return all.least == all.most ? std::optional(all.least) : std::nullopt;
}

}  // namespace

void OwnRequest::set(const exchange::FileRange& range, std::int64_t bytes) {
    if (bytes == 0) {
        *this = {};
        return;
    }
    const Instance now = instance_of(*range.view, range.first_byte);
    const bool same_shape =
        bytes == bytes_ && now.byte == byte_ && lie_alike(*range.view->filetype, *view_.filetype, now.byte, bytes);
    if (!same_shape) placed_.shape = last_shape.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!same_shape || now.origin != placed_.origin) summary_.reset();
    if (range.view->filetype != view_.filetype) view_.filetype = range.view->filetype;
    view_.displacement = range.view->displacement;
    placed_.origin = now.origin;
    first_byte_ = range.first_byte;
    byte_ = now.byte;
    bytes_ = bytes;
}

planner::RankSummary OwnRequest::summary() {
    if (bytes_ == 0) return {};
    if (!summary_) summary_ = summary_of(view_, first_byte_, bytes_);
    return *summary_;
}

bool Agreement::agree_on_the_same(Group& group, PlacedShape mine) {
    const std::optional<std::int64_t> moved = distance_of(group.range(moved_between(last_, mine)));
    if (!moved) return false;
    request_ = request_.moved_by(*moved);
    return true;
}

void Agreement::tell_all(Group& group, OwnRequest& mine) {
    const planner::RankSummary summary = mine.summary();
    const Group::Range moved = moved_between(last_, mine.placed());
    Sums sums{moved.least, moved.most, {summary.bytes, summary.pieces}, summary.seam, summary.offsets};
    const auto table = group.meet({{summary.hull.offset, summary.bytes == 0 ? 0 : summary.hull.length}}, sums);
    layout::Extent region;
    for (std::size_t rank = 0; rank < said_.size(); ++rank) {
        said_[rank].hull = {table[rank].words[0], table[rank].words[1]};
        said_[rank].bytes = table[rank].words[1];
        region = layout::hull(region, said_[rank].hull);
    }
    const planner::RankSummary all{region, sums.added[0], sums.wrapped, sums.any, sums.added[1]};
    request_ = planner::RequestSummary::of(all, said_, true);
    repeats_ = distance_of({sums.least, sums.most}).has_value();
    if (!repeats_) ++changes_;
    covered_.clear();
}

void Agreement::agree(Group& group, OwnRequest& mine, bool covers) {
    if (!repeats_ || !agree_on_the_same(group, mine.placed())) tell_all(group, mine);
    last_ = mine.placed();
    if (covers && covered_.empty()) {
        planner::RequestSummary said = request_;
        said.moved_bytes = 0;
        try {
            covered_ = said.covered();
        } catch (const std::bad_alloc&) {
            covered_.clear();  // prepare() asks again, where an error of one rank is one of all
        }
    }
}

planner::RequestSummary Agreement::request(bool writes) const {
    planner::RequestSummary request = request_;
    request.writes = writes;
    request.known_cover = covered_;
    request.shape = changes_;
    return request;
}

}  // namespace ioweir::engine
