#include "ncsub/core/request.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/checked.hpp"

namespace ioweir::ncsub {
namespace {

/// Calls copy(packed place, memory place) for every element, both counted in elements.
template <typename Copy>
void for_each_mapped(std::span<const std::int64_t> count, std::span<const std::int64_t> map, Copy&& copy) {
    for (const std::int64_t n : count)
        if (n <= 0) return;
    std::vector<std::int64_t> at(count.size(), 0);
    std::int64_t memory = 0;
    for (std::int64_t packed = 0;; ++packed) {
        copy(packed, memory);
        std::size_t d = count.size();
        for (; d > 0; --d) {
            memory += map[d - 1];
            if (++at[d - 1] < count[d - 1]) break;
            memory -= count[d - 1] * map[d - 1];
            at[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

/// Calls copy(place in the whole, place in the piece, bytes) for every contiguous run.
template <typename Copy>
void for_each_run(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes, Copy&& copy) {
    const auto divided = static_cast<std::size_t>(dimension);
    std::size_t outer = 1;
    std::size_t inner = element_bytes;
    for (std::size_t d = 0; d < whole.dimensions; ++d) {
        if (d < divided) outer *= static_cast<std::size_t>(whole.count[d]);
        if (d > divided) inner *= static_cast<std::size_t>(whole.count[d]);
    }
    const std::size_t row = static_cast<std::size_t>(whole.count[divided]) * inner;
    const std::size_t run = static_cast<std::size_t>(piece.count) * inner;
    const std::size_t first = static_cast<std::size_t>(piece.first) * inner;
    if (run == row) {
        if (outer * row > 0) copy(std::size_t{0}, std::size_t{0}, outer * row);
        return;
    }
    for (std::size_t i = 0; i < outer; ++i) copy(i * row + first, i * run, run);
}

}  // namespace

Request request_of(const RequestView& view) {
    const auto list = [&](const std::int64_t* numbers) {
        return numbers != nullptr ? std::vector<std::int64_t>(numbers, numbers + view.dimensions)
                                  : std::vector<std::int64_t>(view.dimensions, 1);
    };
    return {list(view.start), list(view.count), list(view.stride)};
}

std::int64_t records_of(const RequestView& request) { return elements_of(request) == 0 ? 0 : request.last(0) + 1; }

Reach reach_of(const RequestView& request, std::int64_t records) {
    const std::int64_t start = request.start[0];
    const std::int64_t count = request.count[0];
    if (start > records || (start == records && count > 0)) return Reach::begins_outside;
    // Counted without the stride as well, as the library does it.
    const bool fits = count <= records - start && (count == 0 || count - 1 <= (records - 1 - start) / request.step(0));
    return fits ? Reach::inside : Reach::ends_outside;
}

std::int64_t count_within(const RequestView& request, std::int64_t records) {
    const std::int64_t left = records - request.start[0];
    const std::int64_t fit = left > 0 ? ceil_divide(left, request.step(0)) : 0;
    return std::min(request.count[0], fit);
}

bool may_meet(const RequestView& one, const RequestView& other) {
    for (std::size_t d = 0; d < one.dimensions; ++d) {
        if (one.count[d] == 0 || other.count[d] == 0) return false;
        if (one.last(d) < other.start[d] || other.last(d) < one.start[d]) return false;
        // Of one element the stride means nothing.
        const std::int64_t step = one.count[d] > 1 ? one.step(d) : 0;
        const std::int64_t other_step = other.count[d] > 1 ? other.step(d) : 0;
        const std::int64_t common = std::gcd(step, other_step);
        if (common > 1 && (other.start[d] - one.start[d]) % common != 0) return false;
    }
    return true;
}

std::optional<std::int64_t> only_subfile(const RequestView& request, int dimension,
                                         std::span<const std::int64_t> boundaries) {
    const auto d = static_cast<std::size_t>(dimension);
    const auto next = std::upper_bound(boundaries.begin(), boundaries.end(), request.start[d]);
    if (request.last(d) >= *next) return std::nullopt;
    return next - boundaries.begin() - 1;
}

Slice slice_of(const Piece& piece, int dimension) {
    return {piece.first, piece.request.count[static_cast<std::size_t>(dimension)]};
}

std::vector<Piece> split(const Request& request, int dimension, std::span<const std::int64_t> boundaries) {
    std::vector<Piece> pieces;
    if (elements_of(request) == 0) return pieces;
    const auto d = static_cast<std::size_t>(dimension);
    const std::int64_t stride = request.stride[d];
    for (std::int64_t done = 0; done < request.count[d];) {
        const std::int64_t at = request.start[d] + done * stride;
        const auto next = std::upper_bound(boundaries.begin(), boundaries.end(), at);
        Piece piece{next - boundaries.begin() - 1, request, done};
        const std::int64_t fit = ceil_divide(*next - at, stride);
        piece.request.start[d] = at - *(next - 1);
        piece.request.count[d] = std::min(fit, request.count[d] - done);
        done += piece.request.count[d];
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

std::vector<Request> cut(const Request& request, std::int64_t element_bytes, std::int64_t most) {
    if (elements_of(request) * element_bytes <= most) return {request};
    // Along the first dimension of which one index, with all of the later ones, is not too much; of earlier ones, one index at a time.
    std::size_t along = 0;
    std::int64_t inner = elements_of(request) * element_bytes;
    for (; along < request.count.size(); ++along) {
        inner /= request.count[along];
        if (inner <= most) break;
    }
    along = std::min(along, request.count.size() - 1);
    const std::int64_t step = std::max<std::int64_t>(1, most / inner);
    std::vector<Request> parts;
    std::vector<std::int64_t> at(along + 1, 0);
    for (;;) {
        Request part = request;
        for (std::size_t d = 0; d <= along; ++d) {
            part.start[d] += at[d] * request.stride[d];
            part.count[d] = d < along ? 1 : std::min(step, request.count[d] - at[d]);
        }
        parts.push_back(std::move(part));
        std::size_t d = along + 1;
        for (; d > 0; --d) {
            at[d - 1] += d - 1 == along ? step : 1;
            if (at[d - 1] < request.count[d - 1]) break;
            at[d - 1] = 0;
        }
        if (d == 0) return parts;
    }
}

std::optional<std::int64_t> place_of(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes) {
    std::optional<std::int64_t> place;
    std::int64_t end = 0;
    bool together = true;
    for_each_run(whole, dimension, piece, element_bytes, [&](std::size_t in_whole, std::size_t, std::size_t bytes) {
        const auto at = static_cast<std::int64_t>(in_whole);
        if (!place)
            place = at;
        else if (at != end)
            together = false;
        end = at + static_cast<std::int64_t>(bytes);
    });
    return together ? place : std::nullopt;
}

void gather(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes, const std::byte* from,
            std::byte* to) {
    for_each_run(whole, dimension, piece, element_bytes,
                 [&](std::size_t in_whole, std::size_t in_piece, std::size_t bytes) {
                     std::memcpy(to + in_piece, from + in_whole, bytes);
                 });
}

void scatter(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes, const std::byte* from,
             std::byte* to) {
    for_each_run(whole, dimension, piece, element_bytes,
                 [&](std::size_t in_whole, std::size_t in_piece, std::size_t bytes) {
                     std::memcpy(to + in_whole, from + in_piece, bytes);
                 });
}

void pack_mapped(std::span<const std::int64_t> count, std::span<const std::int64_t> map, std::size_t element_bytes,
                 const std::byte* from, std::byte* to) {
    for_each_mapped(count, map, [&](std::int64_t packed, std::int64_t memory) {
        std::memcpy(to + static_cast<std::size_t>(packed) * element_bytes,
                    from + memory * static_cast<std::int64_t>(element_bytes), element_bytes);
    });
}

void unpack_mapped(std::span<const std::int64_t> count, std::span<const std::int64_t> map, std::size_t element_bytes,
                   const std::byte* from, std::byte* to) {
    for_each_mapped(count, map, [&](std::int64_t packed, std::int64_t memory) {
        std::memcpy(to + memory * static_cast<std::int64_t>(element_bytes),
                    from + static_cast<std::size_t>(packed) * element_bytes, element_bytes);
    });
}

}  // namespace ioweir::ncsub
