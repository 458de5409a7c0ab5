// Traces cut at every place, and what fuzz inputs stand for. Random damage: the fuzz target itself (trace_replay_test).
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "format/reader_fuzz.hpp"

namespace ioweir::format {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(ReaderCorpus, InputsStandForFiles) {
    for (const Bytes& trace : whole_traces()) {
        const Bytes input = pack(trace);
        EXPECT_LT(input.size(), 8192U);
        EXPECT_EQ(unpack(input.data(), input.size()), trace);
    }
}

TEST(ReaderCorpus, EveryTruncation) {
    for (const Bytes& trace : whole_traces()) {
        const std::size_t used = static_cast<std::size_t>(
            std::find_if(trace.rbegin(), trace.rend(), [](std::uint8_t byte) { return byte != 0; }).base() -
            trace.begin());
        for (std::size_t length = 0; length <= used; length += length < 200 || length + 600 > used ? 1 : 97)
            read_everything(Bytes(trace.begin(), trace.begin() + static_cast<std::ptrdiff_t>(length)));
    }
}

}  // namespace
}  // namespace ioweir::format
