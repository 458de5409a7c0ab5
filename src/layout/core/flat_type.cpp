#include "layout/core/flat_type.hpp"

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "base/mixed_bits.hpp"

namespace ioweir::layout {
namespace {

/// Where a nest of loops over a run begins and ends, and whether it only goes up.
struct Reach {
    Extent bounds;
    std::int64_t runs = 1;
    bool ascending = true;
};

Reach reach_of(Extent first, const Loop* loops, std::size_t count) {
    Reach reach{first, 1, true};
    for (std::size_t i = count; i-- > 0;) {
        const Loop& loop = loops[i];
        // The next turn must begin where the inner nest has ended, or later.
        if (loop.stride < reach.bounds.length) reach.ascending = false;
        const std::int64_t span = loop.stride * (loop.count - 1);
        if (span < 0) reach.bounds.offset += span;
        reach.bounds.length += span < 0 ? -span : span;
        reach.runs *= loop.count;
    }
    return reach;
}

std::uint64_t digest_of(const FlatType& type) {
    std::uint64_t digest = 0;
    const auto add = [&](std::int64_t number) { digest = mixed_bits(digest ^ static_cast<std::uint64_t>(number)); };
    for (const FlatType::Block& block : type.blocks) {
        add(block.first.offset - type.bounds.offset);
        add(block.first.length);
        add(block.loops_count);
    }
    for (const Loop& loop : type.loops) {
        add(loop.count);
        add(loop.stride);
    }
    return digest;
}

}  // namespace

bool same_runs(const FlatType& one, const FlatType& other) {
    return &one == &other || (one.digest == other.digest && one.size == other.size && one.runs == other.runs &&
                              one.bounds.length == other.bounds.length && one.blocks.size() == other.blocks.size() &&
                              one.loops.size() == other.loops.size());
}

FlatTypeBuilder FlatTypeBuilder::run(std::int64_t offset, std::int64_t length) {
    FlatTypeBuilder builder;
    if (length <= 0) return builder;
    builder.drafts_.push_back({{offset, length}, {}});
    builder.low_ = offset;
    builder.high_ = offset + length;
    builder.bytes_ = length;
    return builder;
}

bool FlatTypeBuilder::reach(std::int64_t low, std::int64_t high, std::int64_t bytes) {
    if (low < -farthest || high > farthest || bytes > farthest) return false;
    low_ = low;
    high_ = high;
    bytes_ = bytes;
    return true;
}

bool FlatTypeBuilder::shift(std::int64_t distance) {
    if (drafts_.empty()) return true;
    const auto low = checked_add(low_, distance), high = checked_add(high_, distance);
    if (!low || !high || !reach(*low, *high, bytes_)) return false;
    for (Draft& draft : drafts_) draft.first.offset += distance;
    return true;
}

bool FlatTypeBuilder::repeat(std::int64_t count, std::int64_t stride) {
    if (count <= 0) *this = FlatTypeBuilder(most_blocks_);
    if (count <= 1 || drafts_.empty()) return true;
    const auto span = checked_multiply(count - 1, stride);
    const auto bytes = checked_multiply(bytes_, count);
    if (!span || !bytes || *span > 2 * farthest || *span < -2 * farthest) return false;
    if (!reach(low_ + std::min<std::int64_t>(*span, 0), high_ + std::max<std::int64_t>(*span, 0), *bytes)) return false;
    if (drafts_.size() == 1) {
        Draft& draft = drafts_.front();
        if (draft.loops.empty() && stride == draft.first.length) {
            draft.first.length *= count;
            return true;
        }
        if (!draft.loops.empty() && draft.loops.front().stride * draft.loops.front().count == stride) {
            draft.loops.front().count *= count;
            return true;
        }
        if (std::ssize(draft.loops) < max_loops) {
            draft.loops.insert(draft.loops.begin(), Loop{count, stride});
            return true;
        }
    }
    if (static_cast<std::int64_t>(most_blocks_ / drafts_.size()) < count) return false;
    const std::vector<Draft> once = drafts_;
    drafts_.reserve(once.size() * static_cast<std::size_t>(count));
    for (std::int64_t i = 1; i < count; ++i) {
        for (Draft draft : once) {
            draft.first.offset += i * stride;
            if (!append(std::move(draft))) return false;
        }
    }
    return true;
}

bool FlatTypeBuilder::append(const FlatTypeBuilder& other) {
    if (other.drafts_.empty()) return true;
    const bool first = drafts_.empty();
    if (!reach(first ? other.low_ : std::min(low_, other.low_), first ? other.high_ : std::max(high_, other.high_),
               bytes_ + other.bytes_))
        return false;
    return std::all_of(other.drafts_.begin(), other.drafts_.end(), [&](const Draft& draft) { return append(draft); });
}

bool FlatTypeBuilder::append(Extent run) {
    if (run.empty()) return true;
    if (run.offset < -farthest || run.offset > farthest || run.length > farthest) return false;
    return append(FlatTypeBuilder::run(run.offset, run.length));
}

bool FlatTypeBuilder::append(Draft draft) {
    if (!drafts_.empty() && draft.loops.empty()) {
        Draft& last = drafts_.back();
        if (last.loops.empty() && last.first.end() == draft.first.offset) {
            last.first.length += draft.first.length;
            return true;
        }
        if (last.first.length == draft.first.length) {
            const std::int64_t distance = draft.first.offset - last.first.offset;
            if (last.loops.empty()) {
                last.loops.push_back({2, distance});
                return true;
            }
            if (last.loops.size() == 1 && distance == last.loops[0].count * last.loops[0].stride) {
                ++last.loops[0].count;
                return true;
            }
        }
    }
    if (drafts_.size() >= most_blocks_) return false;
    drafts_.push_back(std::move(draft));
    return true;
}

bool FlatTypeBuilder::is_run_of(std::int64_t length) const {
    if (drafts_.empty()) return length == 0;
    return drafts_.size() == 1 && drafts_[0].loops.empty() && drafts_[0].first == Extent{0, length};
}

FlatType FlatTypeBuilder::build(std::int64_t lower_bound, std::int64_t extent) const {
    FlatType type;
    type.lower_bound = lower_bound;
    type.extent = extent;
    type.ascending_once = true;
    type.blocks.reserve(drafts_.size());
    for (const Draft& draft : drafts_) {
        const Reach reach = reach_of(draft.first, draft.loops.data(), draft.loops.size());
        if (!reach.ascending || (!type.blocks.empty() && reach.bounds.offset < type.bounds.end()))
            type.ascending_once = false;
        type.bounds = type.blocks.empty() ? reach.bounds : hull(type.bounds, reach.bounds);
        type.blocks.push_back({draft.first, type.size, static_cast<std::uint32_t>(type.loops.size()),
                               static_cast<std::uint32_t>(draft.loops.size())});
        type.loops.insert(type.loops.end(), draft.loops.begin(), draft.loops.end());
        type.size += reach.runs * draft.first.length;
        type.runs += reach.runs;
    }
    if (type.bounds.offset < 0) type.ascending_once = false;
    type.ascending = type.ascending_once && extent >= type.bounds.length;
    type.contiguous = type.blocks.size() == 1 && type.loops.empty() && extent == type.size;
    type.digest = digest_of(type);
    return type;
}

}  // namespace ioweir::layout
