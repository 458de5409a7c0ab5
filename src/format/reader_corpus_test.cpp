// The fuzzer's inputs without the fuzzer: what it once found, whole traces, and traces damaged in a few thousand ways that
// are the same in every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "format/reader_fuzz.hpp"

namespace ioweir::format {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(ReaderCorpus, WhatWasFoundStaysFixed) {
    int inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(IOWEIR_CORPUS)) {
        std::ifstream stream(entry.path(), std::ios::binary);
        const Bytes input((std::istreambuf_iterator<char>(stream)), {});
        SCOPED_TRACE(entry.path().filename().string());
        LLVMFuzzerTestOneInput(input.data(), input.size());
        ++inputs;
    }
    EXPECT_GT(inputs, 0) << "nothing in " << IOWEIR_CORPUS;
}

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

TEST(ReaderCorpus, RandomDamage) {
    std::mt19937_64 random(20'260'101);
    const std::vector<Bytes> traces = whole_traces();
    constexpr std::uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xbf, 0xff};
    for (int round = 0; round < 3000; ++round) {
        Bytes input = pack(traces[random() % traces.size()]);
        for (std::uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
            std::uint8_t& byte = input[random() % input.size()];
            switch (random() % 3) {
                case 0:
                    byte ^= static_cast<std::uint8_t>(1U << random() % 8);
                    break;
                case 1:
                    byte = static_cast<std::uint8_t>(random());
                    break;
                default:
                    byte = telling[random() % std::size(telling)];
                    break;
            }
        }
        LLVMFuzzerTestOneInput(input.data(), input.size());
    }
}

}  // namespace
}  // namespace ioweir::format
