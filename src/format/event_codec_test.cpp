// What the encoder writes the decoder reads, for any events; regular ones take few bytes; damage is noticed, never followed
// out of bounds.
#include "format/event_codec.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

namespace ioweir::format {
namespace {

using codec::decode;
using codec::encode;
using codec::State;

std::vector<std::byte> encode_all(const std::vector<EventFields>& events) {
    std::vector<std::byte> out(events.size() * codec::longest_event + codec::longest_event);
    const auto state = std::make_unique<State>();
    state->reset(1000);
    std::byte* at = out.data();
    for (const EventFields& event : events) {
        std::byte* const end = encode(*state, event, at);
        EXPECT_LE(static_cast<std::size_t>(end - at), codec::longest_event);
        at = end;
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
    return out;
}

std::vector<EventFields> decode_all(const std::vector<std::byte>& bytes, bool* whole = nullptr) {
    std::vector<EventFields> events;
    const auto state = std::make_unique<State>();
    state->reset(1000);
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    while (at != nullptr && at != end) {
        EventFields event;
        at = decode(*state, event, at, end);
        if (at != nullptr) events.push_back(event);
    }
    if (whole != nullptr) *whole = at == end;
    return events;
}

TEST(EventCodec, AnyEventsComeBackAsTheyWere) {
    std::mt19937_64 random(11);
    const auto any = [&](int bits) { return random() >> (64 - bits); };
    for (int round = 0; round < 300; ++round) {
        std::vector<EventFields> events;
        std::uint64_t time = 1000;
        // From tame to wild: wild ones have every bit of every field.
        const int bits = 1 + round % 63;
        for (int i = 0; i < 200; ++i) {
            EventFields event;
            event.function = static_cast<std::uint16_t>(1 + any(round % 2 == 0 ? 2 : 10));
            event.origin = static_cast<std::uint8_t>(any(2));
            event.failed = any(3) == 0;
            event.file = static_cast<std::uint32_t>(any(1 + round % 32));
            event.sequence = static_cast<std::uint32_t>(round % 3 == 0 ? random() : static_cast<std::uint64_t>(i + 1));
            event.parent = any(1) != 0 ? static_cast<std::uint32_t>(any(32)) : 0;
            if (event.parent == event.sequence) event.parent = 0;
            event.missing = !event.failed && any(3) == 0 ? any(bits) : 0;
            event.site = static_cast<std::uint32_t>(round % 4 == 0 ? any(1 + round % 32) : round % 4 == 1 ? any(2) : 0);
            event.start = round % 5 == 0 ? random() : time + any(12);
            event.end = event.start + any(1 + round % 64 % 40);
            event.offset = static_cast<std::int64_t>(any(bits)) * (any(1) != 0 ? 1 : -1);
            event.bytes = static_cast<std::int64_t>(any(bits)) * (any(4) != 0 ? 1 : -1);
            time = event.end;
            events.push_back(event);
        }
        ASSERT_EQ(decode_all(encode_all(events)), events) << "round " << round;
    }
}

TEST(EventCodec, TheFastFormWritesWhatTheOtherDoes) {
    std::mt19937_64 random(12);
    const auto any = [&](int bits) { return random() >> (64 - bits); };
    for (int round = 0; round < 64; ++round) {
        const auto fast = std::make_unique<State>();
        const auto slow = std::make_unique<State>();
        fast->reset(1000);
        slow->reset(1000);
        EventFields event{1, 0, false, 3, 0, 0, 1000, 1000, 0, 1};
        int written = 0;
        for (int i = 0; i < 500; ++i) {
            // Each field as before, or different by up to so many bits that every length, and too much, occurs.
            const int bits = 1 + round % 63;
            if (any(1) != 0) event.file = 3 + static_cast<std::uint32_t>(any(2));
            const std::int64_t distance = any(2) == 0   ? static_cast<std::int64_t>(any(bits)) * (any(1) != 0 ? 1 : -1)
                                          : any(1) != 0 ? event.bytes
                                                        : 4096;
            event.offset = codec::sum(event.offset, distance);
            if (any(2) == 0) event.bytes = static_cast<std::int64_t>(any(bits));
            event.start = event.end + any(1 + static_cast<int>(any(3)) * (1 + round % 5)) - any(4);
            event.end = event.start + any(1 + static_cast<int>(any(3)) * (1 + round % 5));
            event.sequence += any(4) != 0 ? 1 : 2;
            std::array<std::byte, 2 * codec::longest_event> expected{};
            std::array<std::byte, 2 * codec::longest_event> found{};
            std::byte* const end = encode(*slow, event, expected.data());
            std::byte* at = codec::encode_common(fast->previous, fast->contexts,
                                                 codec::key_of(event.function, event.origin, event.file), event.start,
                                                 event.end, event.offset, event.bytes, event.sequence, 0, found.data());
            if (at != nullptr)
                ++written;
            else
                at = encode(*fast, event, found.data());
            ASSERT_EQ(at - found.data(), end - expected.data()) << round << " " << i;
            ASSERT_EQ(found, expected) << round << " " << i;
        }
        ASSERT_GT(written, 10) << round;
        ASSERT_LT(written, 500) << round;
    }
}

enum class Pattern { constant, sequential, strided, rows, varying_sizes, random };

/// Bytes an event in a loop like the one tracers are compared with: pwrite, or MPI_File_write_at with its pwrite inside.
double bytes_per_event(Pattern pattern, bool nested) {
    std::mt19937_64 random(5);
    std::vector<EventFields> events;
    std::uint64_t time = 1'000'000;
    std::uint32_t sequence = 0;
    std::int64_t offset = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::int64_t bytes = 4096;
        switch (pattern) {
            case Pattern::constant:
                break;
            case Pattern::sequential:
                offset += bytes;
                break;
            case Pattern::strided:
                offset += 65536;
                break;
            case Pattern::rows:
                offset += i % 64 == 63 ? 1 << 20 : 8192;
                break;
            case Pattern::varying_sizes:
                offset += events.empty() ? 0 : events.back().bytes;
                bytes = static_cast<std::int64_t>(64 + random() % 4032);
                break;
            case Pattern::random:
                offset = static_cast<std::int64_t>(random() % (64U << 20));
                bytes = static_cast<std::int64_t>(64 + random() % 4032);
                break;
        }
        // Units of 16 ns: a call of 300 to 2,000 ns, 100 to 900 ns apart.
        const std::uint64_t start = time + 6 + random() % 50;
        const std::uint64_t end = start + 18 + random() % 100;
        EventFields inner{12,   static_cast<std::uint8_t>(nested ? 1 : 0), false, 3, ++sequence, 0, start, end, offset,
                          bytes};
        if (nested) {
            inner.parent = inner.sequence;
            inner.sequence = ++sequence;
        }
        events.push_back(inner);
        if (nested) events.push_back({22, 0, false, 3, inner.parent, 0, start - 4, end + 3, offset, bytes});
        time = end + 3;
    }
    return static_cast<double>(encode_all(events).size()) / static_cast<double>(events.size());
}

TEST(EventCodec, RegularPatternsTakeAtMostSixBytesAnEvent) {
    for (const bool nested : {false, true}) {
        for (const Pattern pattern : {Pattern::constant, Pattern::sequential, Pattern::strided, Pattern::rows}) {
            EXPECT_LE(bytes_per_event(pattern, nested), 6.0) << static_cast<int>(pattern) << nested;
        }
        EXPECT_LE(bytes_per_event(Pattern::varying_sizes, nested), 8.0);
        EXPECT_LE(bytes_per_event(Pattern::random, nested), 12.0);
    }
}

TEST(EventCodec, CutOffOrDamagedBytesAreNoticedOrReadWithinBounds) {
    std::vector<EventFields> events;
    for (std::uint32_t i = 1; i <= 50; ++i)
        events.push_back({static_cast<std::uint16_t>(1 + i % 3), 0, i % 7 == 0, i % 5, i, i % 4 == 0 ? i - 1 : 0,
                          2000 + 40 * i, 2010 + 40 * i, 512 * i, static_cast<std::int64_t>(i % 7 == 0 ? -5 : 512)});
    const std::vector<std::byte> bytes = encode_all(events);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        const std::vector<EventFields> read = decode_all(part);
        ASSERT_LE(read.size(), events.size());
        for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], events[i]);
    }
    std::mt19937_64 random(2);
    for (int round = 0; round < 5'000; ++round) {
        std::vector<std::byte> damaged = bytes;
        for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
        bool whole = false;
        ASSERT_LE(decode_all(damaged, &whole).size(), damaged.size());
    }
}

TEST(EventCodec, ACallAndTheOnesItMakesNeverShareASlot) {
    for (std::uint16_t outer = 0; outer < 300; ++outer)
        for (std::uint16_t inner = 0; inner < 300; ++inner)
            for (std::uint32_t file = 1; file < 4; ++file)
                for (std::uint8_t origin = 1; origin <= 2; ++origin)
                    ASSERT_NE(codec::slot_of(codec::key_of(outer, 0, file)),
                              codec::slot_of(codec::key_of(inner, origin, file)));
}

}  // namespace
}  // namespace ioweir::format
