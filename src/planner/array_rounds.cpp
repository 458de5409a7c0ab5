#include "planner/array_rounds.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ioweir::planner {
namespace {

using ncsub::Piece;
using ncsub::Request;

constexpr std::int64_t scattered = -1;  ///< for several subfiles, and for each in several pieces of memory

/// A part, and whom it is for.
struct Share {
    RoundPart part;
    std::int64_t subfile = 0;
    std::int64_t turn = 0;  ///< of its subfile
    std::int64_t bytes = 0;
};

/// What a request has for each subfile.
void add_shares(const DividedRequest& one, std::size_t number, std::deque<Request>& kept, std::vector<Share>& shares) {
    if (const auto only = ncsub::only_subfile(one.request, one.dimension, one.boundaries)) {
        shares.push_back({{number, one.request, 0}, *only});
        return;
    }
    const std::size_t before = shares.size();
    for (Piece& piece : ncsub::split(request_of(one.request), one.dimension, one.boundaries)) {
        const auto place = ncsub::place_of(one.request, one.dimension, slice_of(piece, one.dimension),
                                           static_cast<std::size_t>(one.element_bytes));
        if (!place) {
            shares.resize(before);
            shares.push_back({{number, one.request, 0}, scattered});
            return;
        }
        piece.request.start[static_cast<std::size_t>(one.dimension)] +=
            one.boundaries[static_cast<std::size_t>(piece.subfile)];
        shares.push_back({{number, kept.emplace_back(std::move(piece.request)), *place}, piece.subfile});
    }
}

/// Adds the share, in parts whose elements take at most `most`.
void cut_share(const DividedRequest& one, Share share, std::int64_t most, std::deque<Request>& kept,
               std::vector<Share>& shares) {
    const auto add = [&] {
        share.bytes = one.bytes_in_round(share.part.request);
        shares.push_back(share);
    };
    if (elements_of(share.part.request) * one.element_bytes <= most) return add();
    for (Request& request : ncsub::cut(request_of(share.part.request), one.element_bytes, most)) {
        share.part.request = kept.emplace_back(std::move(request));
        add();
        share.part.place += elements_of(share.part.request) * one.element_bytes;
    }
}

/// A turn of a subfile has at most `most`, or one part.
void take_turns(std::vector<Share>& shares, std::int64_t most) {
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> turns;  // of each subfile: the last, and its bytes
    for (Share& share : shares) {
        auto& [turn, bytes] = turns[share.subfile];
        if (bytes > 0 && bytes + share.bytes > most) {
            ++turn;
            bytes = 0;
        }
        bytes += share.bytes;
        share.turn = turn;
    }
    std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.turn < b.turn; });
}

/// Shares that follow each other, or turns that do, as long as they fit.
std::vector<std::vector<RoundPart>> group(const std::vector<Share>& shares, bool whole_turns, std::int64_t most) {
    std::vector<std::vector<RoundPart>> rounds(1);
    std::int64_t bytes = 0;
    for (auto next = shares.begin(); next != shares.end();) {
        const auto begin = next;
        std::int64_t more = 0;
        for (; next != shares.end() && (next == begin || (whole_turns && next->turn == begin->turn)); ++next)
            more += next->bytes;
        if (bytes > 0 && bytes + more > most) {
            rounds.emplace_back();
            bytes = 0;
        }
        bytes += more;
        for (auto share = begin; share != next; ++share) rounds.back().push_back(share->part);
    }
    return rounds;
}

}  // namespace

ArrayRounds array_rounds(std::span<const DividedRequest> requests, RoundLimits limits) {
    ArrayRounds rounds;
    std::int64_t bytes = 0;
    auto& all = rounds.parts.emplace_back();
    all.reserve(requests.size());
    for (const DividedRequest& one : requests) {
        all.push_back({all.size(), one.request, 0});
        bytes += one.bytes_in_round(one.request);
    }
    if (bytes <= limits.round_bytes) return rounds;
    std::vector<Share> whole, shares;
    for (std::size_t i = 0; i < requests.size(); ++i) add_shares(requests[i], i, rounds.kept, whole);
    std::set<std::int64_t> subfiles;
    for (const Share& share : whole) subfiles.insert(share.subfile);
    const std::int64_t count = std::ssize(subfiles), most = std::max(limits.least_share, limits.round_bytes / count);
    for (const Share& share : whole)
        cut_share(requests[share.part.whose], share, share.subfile == scattered ? limits.round_bytes : most,
                  rounds.kept, shares);
    // Requests of one rank that meet in a subfile keep their order: turns go by subfile, and parts for several have none.
    const bool has_turns = !subfiles.contains(scattered);
    if (has_turns) take_turns(shares, most);
    rounds.parts = group(shares, has_turns && most * count <= limits.round_bytes, limits.round_bytes);
    return rounds;
}

}  // namespace ioweir::planner
