// Accesses to arrays: start, count and stride in each dimension; cut at the boundaries of subfiles, and their elements moved between packed
// buffers (Son et al. 2016, Algorithm 3). Pure.
// What does not live here: whether a request is valid (the library says so, of the logical file), who carries a piece out (exchange.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ioweir::ncsub {

/// Elements start, start + stride, ... of each dimension. Counts and starts from 0, strides from 1; all of one length.
struct Request {
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> count;
    std::vector<std::int64_t> stride;
    friend bool operator==(const Request&, const Request&) = default;
};

/// A request whose numbers lie in somebody else's memory.
struct RequestView {
    const std::int64_t* start = nullptr;
    const std::int64_t* count = nullptr;
    const std::int64_t* stride = nullptr;  ///< null: 1 in each dimension
    std::size_t dimensions = 0;

    RequestView() = default;
    RequestView(const std::int64_t* starts, const std::int64_t* counts, const std::int64_t* strides, std::size_t number)
        : start(starts), count(counts), stride(strides), dimensions(number) {}
    RequestView(const Request& request)  // NOLINT(google-explicit-constructor): as a span is of a vector
        : RequestView(request.start.data(), request.count.data(), request.stride.data(), request.start.size()) {}
    [[nodiscard]] std::int64_t step(std::size_t dimension) const { return stride != nullptr ? stride[dimension] : 1; }
    [[nodiscard]] std::int64_t last(std::size_t dimension) const {
        return start[dimension] + (count[dimension] - 1) * step(dimension);
    }
};
[[nodiscard]] Request request_of(const RequestView& view);

/// Elements of a request; of one without dimensions (a scalar's) 1.
[[nodiscard]] inline std::int64_t elements_of(const RequestView& request) {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < request.dimensions; ++d) product *= request.count[d];
    return product;
}

/// Records that an array has at least once this was written: one more than the last of its first dimension; of nothing 0.
[[nodiscard]] std::int64_t records_of(const RequestView& request);

/// Where a request for an array of `records` records leads, as netCDF checks what is read: what it wants begins behind the last record, ends
/// behind it, or is there. For starts, counts and strides that are not negative.
enum class Reach : std::uint8_t { inside, begins_outside, ends_outside };
[[nodiscard]] Reach reach_of(const RequestView& request, std::int64_t records);

/// Of how many records in a request's first dimension there are among the first `records` of the array: those elements are the first of the
/// request's.
[[nodiscard]] std::int64_t count_within(const RequestView& request, std::int64_t records);

/// May two requests for one array have an element in common? Never wrong when it says no.
[[nodiscard]] bool may_meet(const RequestView& one, const RequestView& other);

/// What a request wants of one subfile.
struct Piece {
    std::int64_t subfile = 0;
    Request request;  ///< in the subfile's own indices
    std::int64_t first =
        0;  ///< the index, along the divided dimension of the whole request, of the piece's first element
    friend bool operator==(const Piece&, const Piece&) = default;
};

/// The pieces of a valid request for an array that is divided along `dimension`, subfile k having the indices from boundaries[k] to before
/// boundaries[k + 1]: rising, none empty. A stride goes on across boundaries: of 0, 3, 6, 9 over parts of 5, the second has 1 and 4.
[[nodiscard]] std::vector<Piece> split(const Request& request, int dimension, std::span<const std::int64_t> boundaries);

/// The subfile that has all elements of a valid request for at least one element; nothing: there are several.
[[nodiscard]] std::optional<std::int64_t> only_subfile(const RequestView& request, int dimension,
                                                       std::span<const std::int64_t> boundaries);

/// Indices of a request along the divided dimension: those of one of its pieces.
struct Slice {
    std::int64_t first = 0;
    std::int64_t count = 0;
};
[[nodiscard]] Slice slice_of(const Piece& piece, int dimension);

/// Calls visit(subfile, piece, slice, first) for what a valid request for at least one element wants of each subfile. The piece's first index
/// along the divided dimension is `first` in the subfile, whatever the piece itself says.
template <typename Visit>
void for_each_piece(const RequestView& request, int dimension, std::span<const std::int64_t> boundaries,
                    Visit&& visit) {
    const auto d = static_cast<std::size_t>(dimension);
    // Most requests of those that are many lie in one subfile.
    if (const auto only = only_subfile(request, dimension, boundaries))
        return visit(*only, request, Slice{0, request.count[d]},
                     request.start[d] - boundaries[static_cast<std::size_t>(*only)]);
    for (const Piece& piece : split(request_of(request), dimension, boundaries))
        visit(piece.subfile, RequestView(piece.request), slice_of(piece, dimension), piece.request.start[d]);
}

/// A request cut into parts of at most `most` bytes, or of one element; their packed elements, one part after the other, are the request's.
[[nodiscard]] std::vector<Request> cut(const Request& request, std::int64_t element_bytes, std::int64_t most);

/// Where the elements of a piece lie among the packed elements of its whole request, in bytes, if they lie there in one run.
[[nodiscard]] std::optional<std::int64_t> place_of(const RequestView& whole, int dimension, Slice piece,
                                                   std::size_t element_bytes);

/// Copies the elements of a piece out of the packed elements of its whole request, or back into them.
void gather(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes, const std::byte* from,
            std::byte* to);
void scatter(const RequestView& whole, int dimension, Slice piece, std::size_t element_bytes, const std::byte* from,
             std::byte* to);

/// Packs elements that lie `map[d]` elements apart in memory along dimension d (netCDF's imap), or puts them back.
void pack_mapped(std::span<const std::int64_t> count, std::span<const std::int64_t> map, std::size_t element_bytes,
                 const std::byte* from, std::byte* to);
void unpack_mapped(std::span<const std::int64_t> count, std::span<const std::int64_t> map, std::size_t element_bytes,
                   const std::byte* from, std::byte* to);

}  // namespace ioweir::ncsub
