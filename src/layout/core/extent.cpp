// The algebra of extent lists (see extent.hpp).
#include "layout/core/extent.hpp"

#include <algorithm>
#include <string>

#include "base/checked.hpp"

namespace ioweir::layout {

namespace {

bool starts_earlier(const Extent& a, const Extent& b) { return a.offset < b.offset; }

void drop_empty_and_sort(ExtentList& extents) {
    std::erase_if(extents, [](const Extent& extent) { return extent.empty(); });
    if (!std::is_sorted(extents.begin(), extents.end(), starts_earlier)) {
        std::sort(extents.begin(), extents.end(), starts_earlier);
    }
}

/// Adds an extent that starts no earlier than the last of a normal list.
void extend_normal(ExtentList& normal, Extent next) {
    if (!normal.empty() && next.offset <= normal.back().end()) {
        normal.back().length = std::max(normal.back().end(), next.end()) - normal.back().offset;
    } else {
        normal.push_back(next);
    }
}

}  // namespace

std::optional<Error> check_extents(ExtentSpan extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
        const Extent& extent = extents[i];
        const std::string where = "extent " + std::to_string(i) + ", offset " + std::to_string(extent.offset) +
                                  ", length " + std::to_string(extent.length);
        if (extent.length < 0)
            return Error{"an extent has a negative length", where, "lengths count bytes from the offset upward"};
        if (!checked_add(extent.offset, extent.length)) {
            return Error{"an extent ends beyond the largest file offset", where,
                         "offset + length must stay below 2^63"};
        }
    }
    return std::nullopt;
}

bool is_normal(ExtentSpan extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i].empty() || (i > 0 && extents[i].offset <= extents[i - 1].end())) return false;
    }
    return true;
}

void normalize(ExtentList& extents) {
    if (is_normal(extents)) return;
    drop_empty_and_sort(extents);
    std::size_t kept = 0;
    for (std::size_t i = 1; i < extents.size(); ++i) {
        if (extents[i].offset <= extents[kept].end()) {
            extents[kept].length = std::max(extents[kept].end(), extents[i].end()) - extents[kept].offset;
        } else {
            extents[++kept] = extents[i];
        }
    }
    if (!extents.empty()) extents.resize(kept + 1);
}

ExtentList normalized(ExtentList extents) {
    normalize(extents);
    return extents;
}

void append_joining(ExtentList& extents, Extent extent) {
    if (extent.empty()) return;
    if (!extents.empty() && extents.back().end() == extent.offset) {
        extents.back().length += extent.length;
    } else {
        extents.push_back(extent);
    }
}

std::optional<std::int64_t> total_bytes(ExtentSpan extents) {
    std::int64_t total = 0;
    for (const Extent& extent : extents) {
        if (extent.empty()) continue;
        if (__builtin_add_overflow(total, extent.length, &total)) return std::nullopt;
    }
    return total;
}

Extent intersect(Extent a, Extent b) {
    if (a.empty() || b.empty()) return Extent{a.offset, 0};
    const std::int64_t begin = std::max(a.offset, b.offset);
    const std::int64_t end = std::min(a.end(), b.end());
    return Extent{begin, end > begin ? end - begin : 0};
}

Extent hull(Extent a, Extent b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    const std::int64_t begin = std::min(a.offset, b.offset);
    return Extent{begin, std::max(a.end(), b.end()) - begin};
}

Extent bounds(ExtentSpan extents) {
    Extent all;
    for (const Extent& extent : extents) all = hull(all, extent);
    return all;
}

ExtentSpan touching(ExtentSpan normal, Extent range) {
    if (range.empty()) return {};
    const auto first = std::partition_point(normal.begin(), normal.end(),
                                            [&](const Extent& extent) { return extent.end() <= range.offset; });
    const auto last =
        std::partition_point(first, normal.end(), [&](const Extent& extent) { return extent.offset < range.end(); });
    return {first, last};
}

ExtentList intersect(ExtentSpan normal, Extent range) {
    const ExtentSpan slice = touching(normal, range);
    ExtentList common(slice.begin(), slice.end());
    if (!common.empty()) {
        common.front() = intersect(common.front(), range);
        common.back() = intersect(common.back(), range);
    }
    return common;
}

ExtentList intersect(ExtentSpan normal_a, ExtentSpan normal_b) {
    ExtentList common;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < normal_a.size() && j < normal_b.size()) {
        const Extent both = intersect(normal_a[i], normal_b[j]);
        if (!both.empty()) common.push_back(both);
        if (normal_a[i].end() < normal_b[j].end()) {
            ++i;
        } else {
            ++j;
        }
    }
    return common;
}

ExtentList subtract(ExtentSpan normal_a, ExtentSpan normal_b) {
    ExtentList rest;
    std::size_t j = 0;
    for (const Extent& extent : normal_a) {
        std::int64_t begin = extent.offset;
        while (j < normal_b.size() && normal_b[j].end() <= begin) ++j;
        // An extent of b may reach into the next extent of a: only those that end inside this one are passed for good.
        for (std::size_t k = j; k < normal_b.size() && normal_b[k].offset < extent.end(); ++k) {
            if (normal_b[k].offset > begin) rest.push_back({begin, normal_b[k].offset - begin});
            begin = normal_b[k].end();
            if (begin < extent.end()) j = k + 1;
        }
        if (begin < extent.end()) rest.push_back({begin, extent.end() - begin});
    }
    return rest;
}

ExtentList unite(ExtentSpan normal_a, ExtentSpan normal_b) {
    ExtentList all;
    all.reserve(std::max(normal_a.size(), normal_b.size()));
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < normal_a.size() || j < normal_b.size()) {
        const bool take_a = j == normal_b.size() || (i < normal_a.size() && normal_a[i].offset <= normal_b[j].offset);
        extend_normal(all, take_a ? normal_a[i++] : normal_b[j++]);
    }
    return all;
}

ExtentList sort_and_find_shared(ExtentList& extents) {
    drop_empty_and_sort(extents);
    ExtentList shared;
    Extent furthest;  // of those seen, the one that ends last: a later one may overlap it and not its neighbour
    for (const Extent& extent : extents) {
        const Extent both = intersect(furthest, extent);
        if (!both.empty()) extend_normal(shared, both);
        if (furthest.empty() || extent.end() > furthest.end()) furthest = extent;
    }
    return shared;
}

}  // namespace ioweir::layout
