// Fuzzes the requests of traces: whatever the reader takes, types are built within bounds, and extents have the bytes of their request.
// Inputs are those of the reader's own target (format/fuzz_image.cpp).
#include <cstddef>
#include <cstdint>

#include "analysis/requests.hpp"
#include "base/fuzz_target.hpp"
#include "format/reader_fuzz.hpp"

namespace ioweir::analysis {
namespace {

constexpr int most_pieces = 1000;  ///< of one request that are looked at

void walk(std::optional<layout::PieceCursor> pieces, std::int64_t bytes, bool in_file) {
    if (!pieces) return;
    layout::Extent piece;
    std::int64_t seen = 0;
    int count = 0;
    while (count < most_pieces && pieces->next(piece)) {
        ++count;
        require(piece.length > 0, "a piece has bytes");
        require(in_file || piece.offset > -(std::int64_t{1} << 62), "a place in memory");
        seen += piece.length;
    }
    require(seen <= bytes && (count == most_pieces || seen == bytes), "as many bytes as the request");
}

void check(const format::TraceFiles& files) {
    const Requests requests(files);
    require(requests.all().size() <= files.event_count(), "a request is an event");
    for (const Request& request : requests.all()) {
        require(request.process < files.about().processes.size(), "a request's process");
        walk(requests.extents(request), request.bytes, true);
        walk(requests.memory(request), request.bytes, false);
    }
}

}  // namespace
}  // namespace ioweir::analysis

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    const format::PackedTrace trace = format::image_of(data, size);
    const format::TraceBytes one{"trace", trace.bytes};
    const auto files = format::TraceFiles::read({&one, 1}, trace.span);
    if (files) analysis::check(files.value());
    return 0;
}
