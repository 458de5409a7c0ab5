// The hot path without a preload around it: records into plain memory, parents, longjmp.
#include "tracer/ring/stream.hpp"

#include <gtest/gtest.h>

#include <csetjmp>
#include <vector>

namespace ioweir::tracer {
namespace {

using format::EventRecord;
using format::Function;
using format::Origin;

class StreamTest : public ::testing::Test {
protected:
    StreamTest() : memory_(16 * sizeof(EventRecord)) {
        tracer_.active = true;
        tracer_.alive = &alive_;
        tracer_.refill = [](ThreadStream& stream, std::size_t) -> std::byte* {
            ++refills;
            (void)stream;
            return nullptr;
        };
        stream_.cursor = memory_.data();
        stream_.end = memory_.data() + memory_.size();
        refills = 0;
    }
    void record(Function function, Context context, std::uint32_t sequence) {
        record_event(tracer_, stream_, function, context, sequence, 5, 100, 130, 7, 8, false);
    }
    const EventRecord& event(std::size_t index) const {
        return *reinterpret_cast<const EventRecord*>(memory_.data() + index * sizeof(EventRecord));
    }

    static inline int refills = 0;
    volatile std::uint32_t alive_ = 1;
    std::vector<std::byte> memory_;
    Tracer tracer_;
    ThreadStream stream_;
};

TEST_F(StreamTest, RecordsWhatItIsGiven) {
    record(Function::pwrite, {3, Origin::engine}, 9);
    EXPECT_EQ(event(0).kind, static_cast<std::uint16_t>(Function::pwrite));
    EXPECT_EQ(event(0).origin, static_cast<std::uint8_t>(Origin::engine));
    EXPECT_EQ(event(0).parent, 3U);
    EXPECT_EQ(event(0).sequence, 9U);
    EXPECT_EQ(event(0).file, 5U);
    EXPECT_EQ(event(0).start_tick, 100U);
    EXPECT_EQ(event(0).duration_ticks, 30U);
    EXPECT_EQ(event(0).offset, 7);
    EXPECT_EQ(event(0).bytes, 8);
    EXPECT_EQ(event(1).kind, 0);
}

TEST_F(StreamTest, FullChunkAsksForMoreAndWritesNothingBeyond) {
    for (int i = 0; i < 20; ++i) record(Function::pread, {}, static_cast<std::uint32_t>(i));
    EXPECT_EQ(refills, 4);
    EXPECT_EQ(stream_.cursor, stream_.end);
}

TEST_F(StreamTest, ChildOfForkNeverWritesIntoTheParentsChunk) {
    alive_ = 0;  // what MADV_WIPEONFORK does
    record(Function::pread, {}, 1);
    EXPECT_EQ(refills, 1);
    EXPECT_EQ(event(0).kind, 0);
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

std::jmp_buf back;

[[gnu::noinline]] void leave_by_longjmp(ThreadStream& stream) {
    const Scope scope(stream, Layer::mpi_io, 21);
    std::longjmp(back, 1);
}

[[gnu::noinline]] Context ask_from_a_deeper_frame(ThreadStream& stream) {
    volatile char deep[2048];
    for (std::size_t i = 0; i < sizeof deep; ++i) deep[i] = static_cast<char>(i);
    return context_of(stream, const_cast<const char*>(&deep[0]));
}

TEST_F(StreamTest, LongjmpLeavesNoParentBehind) {
    int here = 0;
    if (setjmp(back) == 0) leave_by_longjmp(stream_);
    EXPECT_EQ(context_of(stream_, &here).parent, 0U);
    EXPECT_EQ(stream_.depth, 0);
    if (setjmp(back) == 0) leave_by_longjmp(stream_);
    EXPECT_EQ(ask_from_a_deeper_frame(stream_).parent, 0U);
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
