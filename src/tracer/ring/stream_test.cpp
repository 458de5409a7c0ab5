// The hot path without a preload around it: records into plain memory, parents, longjmp.
#include "tracer/ring/stream.hpp"

#include <gtest/gtest.h>

#include <csetjmp>
#include <memory>
#include <vector>

namespace ioweir::tracer {
namespace {

using format::EventFields;
using format::Function;
using format::Origin;

class StreamTest : public ::testing::Test {
protected:
    StreamTest() : memory_(1000) {
        tracer_.active = true;
        tracer_.alive = &alive_;
        tracer_.refill = [](ThreadStream& stream, std::size_t) -> std::byte* {
            ++refills;
            (void)stream;
            return nullptr;
        };
        stream_.cursor = memory_.data();
        stream_.end = memory_.data() + memory_.size();
        stream_.limit = stream_.end - format::codec::longest_event;
        tracer_.append = append;
        tracer_.thread_offset =
            reinterpret_cast<std::byte*>(&stream_) - static_cast<std::byte*>(__builtin_thread_pointer());
        refills = 0;
    }
    void record(Function function, Context context, std::uint32_t sequence) {
        record_event(tracer_, stream_, function, context, sequence, 5, 100 << time_shift, 130 << time_shift, 7, 8,
                     false);
    }
    std::vector<EventFields> events() const {
        std::vector<EventFields> out;
        const auto state = std::make_unique<format::codec::State>();
        const std::byte* at = memory_.data();
        while (at != nullptr && at != memory_.data() + memory_.size() && *at != std::byte{0}) {
            EventFields event;
            at = format::codec::decode(*state, event, at, memory_.data() + memory_.size());
            if (at != nullptr) out.push_back(event);
        }
        return out;
    }

    static inline int refills = 0;
    volatile std::uint32_t alive_ = 1;
    std::vector<std::byte> memory_;
    Tracer tracer_;
    ThreadStream stream_;
};

TEST_F(StreamTest, RecordsWhatItIsGiven) {
    record(Function::pwrite, {3, Origin::engine}, 9);
    const EventFields expected{static_cast<std::uint16_t>(Function::pwrite),
                               static_cast<std::uint8_t>(Origin::engine),
                               false,
                               5,
                               9,
                               3,
                               100,
                               130,
                               7,
                               8};
    EXPECT_EQ(events(), std::vector<EventFields>{expected});
}

TEST_F(StreamTest, FullChunkAsksForMoreAndWritesNothingBeyond) {
    std::size_t written = 0;
    while (refills < 3) {
        record(Function::pread, {}, 1);
        if (refills == 0) ++written;
        ASSERT_LE(stream_.cursor, stream_.end);
    }
    EXPECT_EQ(events().size(), written);
    EXPECT_GT(written, 100U);
}

TEST_F(StreamTest, ChildOfForkNeverWritesIntoTheParentsChunk) {
    alive_ = 0;  // what MADV_WIPEONFORK does
    record(Function::pread, {}, 1);
    EXPECT_EQ(refills, 1);
    EXPECT_TRUE(events().empty());
}

TEST_F(StreamTest, ParentIsTheInnermostRecordedCall) {
    int here = 0;
    EXPECT_EQ(context_of(stream_, &here).parent, 0U);
    EXPECT_EQ(context_of(stream_, &here).origin, Origin::application);
    const auto inner = [&](auto&& check) __attribute__((noinline)) {
        volatile char frame[64];
        frame[0] = 0;
        check(const_cast<const char*>(&frame[0]));
    };
    {
        const Scope init(stream_, Layer::mpi, 0);
        inner([&](const void* at) {
            EXPECT_EQ(context_of(stream_, at).parent, 0U);
            EXPECT_EQ(context_of(stream_, at).origin, Origin::mpi_library);
            EXPECT_FALSE(inside_mpi_io(stream_, at));
        });
    }
    {
        const Scope outer(stream_, Layer::mpi_io, 11);
        inner([&](const void* at) {
            EXPECT_EQ(context_of(stream_, at).parent, 11U);
            EXPECT_TRUE(inside_mpi_io(stream_, at));
        });
    }
    EXPECT_EQ(stream_.depth, 0);
    EXPECT_EQ(context_of(stream_, &here).parent, 0U);
}

TEST_F(StreamTest, LeafFindsItsParentAndOrigin) {
    const auto leaf = [&] { EXPECT_EQ(record_leaf(tracer_, Function::pwrite, 5, 0, 16, 7, 8), 8); };
    stream_.sequence = 30;
    for (int round = 0; round < 3; ++round) {  // the first is recorded slowly, the others are not
        leaf();
        const std::uint32_t outer = next_sequence(stream_);
        const Scope recorded(stream_, Layer::mpi_io, outer);
        leaf();
        const Scope unrecorded(stream_, Layer::engine, 0);
        leaf();
    }
    const std::vector<EventFields> found = events();
    ASSERT_EQ(found.size(), 9U);
    for (std::size_t round = 0; round < 3; ++round) {
        const std::uint32_t first = 31 + 4 * static_cast<std::uint32_t>(round);
        const EventFields alone = found[3 * round];
        EXPECT_EQ(alone.sequence, first);
        EXPECT_EQ(alone.parent, 0U);
        EXPECT_EQ(alone.origin, static_cast<std::uint8_t>(Origin::application));
        const EventFields inside = found[3 * round + 1];
        EXPECT_EQ(inside.sequence, first + 2);
        EXPECT_EQ(inside.parent, first + 1);
        EXPECT_EQ(inside.origin, static_cast<std::uint8_t>(Origin::mpi_library));
        const EventFields deeper = found[3 * round + 2];
        EXPECT_EQ(deeper.sequence, first + 3);
        EXPECT_EQ(deeper.parent, first + 1);
        EXPECT_EQ(deeper.origin, static_cast<std::uint8_t>(Origin::engine));
    }
    EXPECT_EQ(stream_.depth, 0);
}

std::jmp_buf back;

[[gnu::noinline]] void leave_by_longjmp(ThreadStream& stream) {
    const Scope scope(stream, Layer::mpi_io, 21);
    std::longjmp(back, 1);
}

/// Two frames, so that what the jump left behind lies within the array of one of them.
[[maybe_unused, gnu::noinline]] Context ask_from_a_deeper_frame(ThreadStream& stream, int more = 1) {
    volatile char deep[512];
    for (std::size_t i = 0; i < sizeof deep; ++i) deep[i] = static_cast<char>(i);
    const Context context =
        more > 0 ? ask_from_a_deeper_frame(stream, more - 1) : context_of(stream, const_cast<const char*>(&deep[0]));
    deep[0] = 0;
    return context;
}

TEST_F(StreamTest, LongjmpLeavesNoParentBehind) {
    int here = 0;
    if (setjmp(back) == 0) leave_by_longjmp(stream_);
    EXPECT_EQ(context_of(stream_, &here).parent, 0U);
    EXPECT_EQ(stream_.depth, 0);
#if !defined(__SANITIZE_ADDRESS__)  // it keeps variables apart: what was left behind would not be written over
    if (setjmp(back) == 0) leave_by_longjmp(stream_);
    EXPECT_EQ(ask_from_a_deeper_frame(stream_).parent, 0U);
    if (setjmp(back) == 0) leave_by_longjmp(stream_);
    record_leaf(tracer_, Function::pwrite, 5, 0, 16, 7, 8);
    ASSERT_EQ(events().size(), 1U);
    EXPECT_EQ(events()[0].parent, 0U);
#endif
}

TEST_F(StreamTest, NestingDeeperThanTheTableIsForgottenNotOverrun) {
    const auto nest = [&](auto&& self, std::uint32_t level) -> void {
        const Scope scope(stream_, Layer::mpi_io, level);
        if (level < 20) self(self, level + 1);
    };
    nest(nest, 1);
    EXPECT_EQ(stream_.depth, 0);
}

}  // namespace
}  // namespace ioweir::tracer
