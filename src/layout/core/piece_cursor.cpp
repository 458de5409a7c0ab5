#include "layout/core/piece_cursor.hpp"

#include <algorithm>

namespace ioweir::layout {

PieceCursor::PieceCursor(const FlatType& type, std::int64_t origin, std::int64_t first_byte, std::int64_t bytes)
    : type_(&type), origin_(origin), left_(type.size > 0 ? bytes : 0) {
    if (left_ <= 0) return;
    if (type.contiguous) {  // one run, as long as it takes
        offset_ = origin + type.blocks[0].first.offset;
        skip_ = first_byte;
        length_ = first_byte + bytes;
        return;
    }
    const std::int64_t instance = first_byte / type.size;
    std::int64_t within = first_byte % type.size;
    origin_ += instance * type.extent;
    const auto after =
        std::upper_bound(type.blocks.begin(), type.blocks.end(), within,
                         [](std::int64_t byte, const FlatType::Block& block) { return byte < block.bytes_before; });
    block_ = static_cast<std::size_t>(after - type.blocks.begin()) - 1;
    enter_block();
    within -= type.blocks[block_].bytes_before;
    std::int64_t run = within / length_;
    skip_ = within % length_;
    const FlatType::Block& block = type.blocks[block_];
    for (std::uint32_t i = block.loops_count; i-- > 0;) {
        const Loop& loop = type.loops[block.loops_begin + i];
        const std::int64_t turn = run % loop.count;
        run /= loop.count;
        offset_ += turn * loop.stride;
        if (i + 1 == block.loops_count) {
            inner_left_ = loop.count - 1 - turn;
        } else {
            turn_[i] = turn;
        }
    }
}

void PieceCursor::enter_block() {
    const FlatType::Block& block = type_->blocks[block_];
    offset_ = origin_ + block.first.offset;
    length_ = block.first.length;
    turn_.fill(0);
    inner_left_ = 0;
    if (block.loops_count > 0) {
        const Loop& inner = type_->loops[block.loops_begin + block.loops_count - 1];
        inner_left_ = inner.count - 1;
        inner_stride_ = inner.stride;
    }
}

void PieceCursor::leave_inner_loop() {
    const FlatType::Block& block = type_->blocks[block_];
    const Loop* loops = type_->loops.data() + block.loops_begin;
    if (block.loops_count > 1) {
        offset_ -= loops[block.loops_count - 1].stride * (loops[block.loops_count - 1].count - 1);
        for (std::uint32_t i = block.loops_count - 1; i-- > 0;) {
            if (++turn_[i] < loops[i].count) {
                offset_ += loops[i].stride;
                inner_left_ = loops[block.loops_count - 1].count - 1;
                return;
            }
            turn_[i] = 0;
            offset_ -= loops[i].stride * (loops[i].count - 1);
        }
    }
    if (++block_ == type_->blocks.size()) {
        block_ = 0;
        origin_ += type_->extent;
    }
    enter_block();
}

namespace {

/// Bytes of one nest of loops before `position`, which counts as the nest's first run does.
std::int64_t nest_bytes_before(const FlatType& type, const FlatType::Block& block, std::int64_t position) {
    const Loop* loops = type.loops.data() + block.loops_begin;
    std::int64_t inner_runs = 1;
    for (std::uint32_t i = 0; i < block.loops_count; ++i) inner_runs *= loops[i].count;
    std::int64_t runs = 0;
    position -= block.first.offset;
    for (std::uint32_t i = 0; i < block.loops_count; ++i) {
        inner_runs /= loops[i].count;
        if (loops[i].count == 1) continue;
        const std::int64_t turn = std::min(position / loops[i].stride, loops[i].count - 1);
        runs += turn * inner_runs;
        position -= turn * loops[i].stride;
    }
    return runs * block.first.length + std::min(position, block.first.length);
}

}  // namespace

std::int64_t data_before(const FlatType& ascending, std::int64_t origin, std::int64_t position) {
    if (ascending.size == 0) return 0;
    std::int64_t within = position - origin - ascending.bounds.offset;
    if (within <= 0) return 0;
    if (ascending.contiguous) return within;
    const std::int64_t instances = within / ascending.extent;
    within = within % ascending.extent + ascending.bounds.offset;
    const auto after = std::partition_point(ascending.blocks.begin(), ascending.blocks.end(),
                                            [&](const FlatType::Block& block) { return block.first.offset < within; });
    if (after == ascending.blocks.begin()) return instances * ascending.size;
    const FlatType::Block& block = *(after - 1);
    return instances * ascending.size + block.bytes_before + nest_bytes_before(ascending, block, within);
}

bool FileView::has_places(std::int64_t first_byte, std::int64_t bytes) const {
    const FlatType& type = *filetype;
    std::int64_t end = 0;  // of the data, or of the last instance that has some
    if (__builtin_add_overflow(first_byte, bytes, &end)) return false;
    if (!type.contiguous) {
        if (type.size == 0) return bytes == 0;
        const std::int64_t last = std::max<std::int64_t>(end - 1, 0) / type.size;
        if (__builtin_mul_overflow(last, type.extent, &end) || __builtin_add_overflow(end, type.bounds.length, &end))
            return false;
    }
    return !__builtin_add_overflow(end, type.bounds.offset, &end) && !__builtin_add_overflow(end, displacement, &end);
}

}  // namespace ioweir::layout
