// For tests only: random extent lists and patterns over a small file, and the independent oracle: a map of bytes.
// What does not live here: anything that is linked into the libraries.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "layout/core/access_pattern.hpp"
#include "layout/core/extent.hpp"

namespace ioweir::layout {

inline void PrintTo(const Extent& extent, std::ostream* out) {
    *out << "{" << extent.offset << ", " << extent.length << "}";
}
inline void showValue(const Extent& extent, std::ostream& out) { PrintTo(extent, &out); }  // RapidCheck's counterpart

namespace testing {

inline constexpr std::int64_t small_file_bytes = 96;

/// How many extents of the list hold each byte of the small file.
inline std::vector<int> byte_map(ExtentSpan extents) {
    std::vector<int> held(small_file_bytes, 0);
    for (const Extent& extent : extents) {
        for (std::int64_t byte = extent.offset; byte < extent.end(); ++byte) ++held.at(static_cast<std::size_t>(byte));
    }
    return held;
}

/// The normal list of the bytes for which `wanted` holds.
template <typename Predicate>
ExtentList list_of_bytes(Predicate wanted) {
    ExtentList extents;
    for (std::int64_t byte = 0; byte < small_file_bytes; ++byte) {
        if (wanted(static_cast<std::size_t>(byte))) append_joining(extents, {byte, 1});
    }
    return extents;
}

/// Rising extents with gaps; short repetitions of the same shape are frequent.
inline ExtentList random_extents(std::int64_t start, bool gapless) {
    ExtentList list;
    std::int64_t at = start;
    const int groups = *rc::gen::inRange(0, 6);
    for (int group = 0; group < groups; ++group) {
        const std::int64_t gap = gapless ? 0 : *rc::gen::inRange<std::int64_t>(0, 200);
        const std::int64_t length = *rc::gen::inRange<std::int64_t>(1, 300);
        const int repeats = *rc::gen::inRange(1, 5);
        for (int i = 0; i < repeats; ++i) {
            list.push_back({at + gap, length});
            at += gap + length;
        }
    }
    return list;
}

/// Extents in any order, overlapping, touching and empty ones among them.
inline rc::Gen<ExtentList> any_list() {
    const auto extent = rc::gen::mapcat(rc::gen::inRange<std::int64_t>(0, small_file_bytes), [](std::int64_t offset) {
        return rc::gen::map(
            rc::gen::inRange<std::int64_t>(0, std::min<std::int64_t>(17, small_file_bytes - offset + 1)),
            [offset](std::int64_t length) { return Extent{offset, length}; });
    });
    return rc::gen::container<ExtentList>(extent);
}

inline rc::Gen<ExtentList> normal_list() {
    return rc::gen::map(any_list(), [](ExtentList list) { return normalized(std::move(list)); });
}

/// `ranks` lists; with `shared_bytes` several ranks may name the same byte, without none does.
inline rc::Gen<std::vector<ExtentList>> lists_of_ranks(int ranks, bool shared_bytes) {
    return rc::gen::map(rc::gen::container<std::vector<ExtentList>>(static_cast<std::size_t>(ranks), any_list()),
                        [shared_bytes](std::vector<ExtentList> lists) {
                            ExtentList taken;
                            for (ExtentList& list : lists) {
                                normalize(list);
                                if (shared_bytes) continue;
                                list = subtract(list, taken);
                                taken = unite(taken, list);
                            }
                            return lists;
                        });
}

inline ListedPattern pattern_of(std::vector<ExtentList> lists) {
    auto pattern = ListedPattern::make(std::move(lists));
    if (!pattern) throw std::runtime_error(pattern.error().message());
    return pattern.take();
}

}  // namespace testing
}  // namespace ioweir::layout
