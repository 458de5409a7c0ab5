// Sizes as the environment writes them; chunks stay within the buffer, whatever the number of threads.
#include "tracer/ring/limits.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ioweir::tracer {
namespace {

TEST(Limits, SizesAreWholeNumbersOfBytes) {
    std::uint64_t bytes = 1;
    EXPECT_TRUE(parse_size("262144", smallest_buffer_bytes, bytes));
    EXPECT_EQ(bytes, 262144U);
    EXPECT_TRUE(parse_size("18446744073709551615", smallest_quota_bytes, bytes));
    EXPECT_EQ(bytes, no_quota);
    for (const char* text : {"", "8 MiB", "-1", "262143", "0x100000", " 262144", "262144 ", "18446744073709551616",
                             "99999999999999999999999"})
        EXPECT_FALSE(parse_size(text, smallest_buffer_bytes, bytes)) << text;
    EXPECT_EQ(bytes, no_quota);
}

/// Threads that take one chunk after another, each leaving the last when it takes the next.
std::uint64_t most_mapped(const Limits& limits, std::size_t threads, int rounds, std::uint64_t* largest = nullptr) {
    std::vector<std::uint64_t> of_thread(threads);
    std::uint64_t mapped = 0;
    std::uint64_t most = 0;
    std::uint32_t chunks = 0;
    for (int round = 0; round < rounds; ++round) {
        for (std::uint64_t& bytes : of_thread) {
            const bool first = bytes == 0;
            mapped -= bytes;
            bytes = chunk_bytes(limits, mapped, chunks++, first);
            EXPECT_EQ(bytes % format::chunk_alignment, 0U);
            mapped += bytes;
            most = std::max(most, mapped);
            if (largest != nullptr) *largest = std::max(*largest, bytes);
        }
    }
    return most;
}

TEST(Limits, ChunksGrowToAnEighthOfTheBufferAndStayWithinIt) {
    for (const std::uint64_t buffer : {256U << 10, 1U << 20, 8U << 20, 100U << 20}) {
        const Limits limits{buffer, no_quota};
        std::uint64_t largest = 0;
        EXPECT_LE(most_mapped(limits, 1, 20, &largest), buffer);
        EXPECT_EQ(largest, std::max<std::uint64_t>(buffer / 8 / format::chunk_alignment, 1) * format::chunk_alignment);
        for (const std::size_t threads : {2U, 7U, 64U}) {
            if (threads * 2 * format::chunk_alignment <= buffer) {
                EXPECT_LE(most_mapped(limits, threads, 20), buffer) << threads << " threads, " << buffer;
            }
        }
    }
}

TEST(Limits, MoreThreadsThanTheBufferHoldsHaveTheSmallestChunkEach) {
    const Limits limits{smallest_buffer_bytes, no_quota};
    EXPECT_LE(most_mapped(limits, 100, 5), 100 * format::chunk_alignment + smallest_buffer_bytes);
}

TEST(Limits, AProcessBeginsWithASmallChunk) {
    EXPECT_EQ(chunk_bytes({}, 0, 0, true), format::chunk_alignment);
    EXPECT_EQ(chunk_bytes({}, 0, 1, false), 4 * format::chunk_alignment);
    EXPECT_EQ(chunk_bytes({}, 0, 4, false), default_buffer_bytes / 8);
}

}  // namespace
}  // namespace ioweir::tracer
