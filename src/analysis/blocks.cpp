#include "analysis/blocks.hpp"

#include <bit>
#include <cstddef>

#include "base/large_pages.hpp"

namespace ioweir::analysis {
namespace {

/// Numbers pairs from 0 on as they come.
class PairNumbers {
public:
    /// `most`: no more pairs come.
    explicit PairNumbers(std::size_t most) : slots_(std::bit_ceil(most + most / 2 + 1)) {}

    std::uint32_t operator()(std::int64_t a, std::int64_t b) {
        const std::size_t mask = slots_.size() - 1;
        std::uint64_t mixed = static_cast<std::uint64_t>(a) * 0x9E37'79B9'7F4A'7C15ULL + static_cast<std::uint64_t>(b);
        mixed = (mixed ^ mixed >> 32) * 0xC2B2'AE3D'27D4'EB4FULL;
        for (std::size_t at = mixed >> 20 & mask;; at = (at + 1) & mask) {
            Slot& slot = slots_[at];
            if (slot.number == none) slot = Slot{a, b, count_++};
            if (slot.a == a && slot.b == b) return slot.number;
        }
    }
    [[nodiscard]] std::uint32_t count() const { return count_; }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    struct Slot {
        std::int64_t a = 0, b = 0;
        std::uint32_t number = none;
    };
    std::vector<Slot, LargePages<Slot>> slots_;
    std::uint32_t count_ = 0;
};

}  // namespace

std::vector<std::int64_t> sharers(std::span<const std::int64_t> file, std::span<const std::int64_t> block,
                                  std::span<const std::int64_t> unit) {
    struct Block {
        std::int64_t first_unit;
        std::int64_t units;
    };
    PairNumbers numbers(file.size());
    std::vector<std::uint32_t> number(file.size());
    std::vector<Block> blocks;
    std::vector<std::size_t> others;  // entries of units that are not the first in their blocks
    for (std::size_t at = 0; at < file.size(); ++at) {
        number[at] = numbers(file[at], block[at]);
        if (number[at] == blocks.size()) blocks.push_back(Block{unit[at], 1});
        if (blocks[number[at]].first_unit != unit[at]) others.push_back(at);
    }
    PairNumbers users(others.size());
    for (const std::size_t at : others) {
        const std::uint32_t known = users.count();
        if (users(number[at], unit[at]) == known) ++blocks[number[at]].units;
    }
    std::vector<std::int64_t> result(file.size());
    for (std::size_t at = 0; at < file.size(); ++at) result[at] = blocks[number[at]].units;
    return result;
}

std::vector<std::uint8_t> changed_hands(const Touches& touches) {
    const std::size_t calls = touches.file.size();
    PairNumbers blocks(2 * calls);
    std::vector<std::int64_t> last_unit;
    std::vector<std::uint8_t> result(calls, 0);
    const auto touch = [&](std::size_t at, std::int64_t block) {
        const std::uint32_t number = blocks(touches.file[at], block);
        last_unit.resize(blocks.count(), -1);
        if (last_unit[number] >= 0 && last_unit[number] != touches.unit[at]) result[at] = 1;
        last_unit[number] = touches.unit[at];
    };
    for (std::size_t begin = 0; begin < calls;) {
        std::size_t end = begin;
        for (; end < calls && touches.start[end] == touches.start[begin]; ++end) touch(end, touches.first[end]);
        for (; begin < end; ++begin) touch(begin, touches.last[begin]);
    }
    return result;
}

}  // namespace ioweir::analysis
