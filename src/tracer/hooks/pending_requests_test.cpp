#include "tracer/hooks/pending_requests.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ioweir::tracer {
namespace {

std::vector<std::uint32_t> sequences_of(const PendingRequests& pending, std::uint32_t first) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t at = first; at != 0; at = pending.entry(at).next_claimed)
        found.push_back(pending.entry(at).operation.sequence);
    return found;
}

TEST(PendingRequests, FindsTheRequestsOfIoAmongOthersInTheOrderOfTheArray) {
    auto pending = std::make_unique<PendingRequests>();
    EXPECT_FALSE(pending->any());
    pending->add(0x1000, {1, 10, true});
    pending->add(0x2000, {2, 20, false});
    pending->add(0x3000, {3, 30, true});
    const std::vector<std::uintptr_t> handles = {5, 0x3000, 6, 0x1000, 7};
    const std::uint32_t claimed = pending->claim(handles.data(), static_cast<int>(handles.size()));
    EXPECT_EQ(sequences_of(*pending, claimed), (std::vector<std::uint32_t>{30, 10}));
    EXPECT_EQ(pending->entry(claimed).position, 1);
}

TEST(PendingRequests, AClaimedOneIsFoundAgainOnlyWhenItWasGivenBack) {
    auto pending = std::make_unique<PendingRequests>();
    pending->add(0x1000, {1, 10, true});
    const std::uintptr_t handle = 0x1000;
    const std::uint32_t claimed = pending->claim(&handle, 1);
    EXPECT_EQ(pending->claim(&handle, 1), 0U);
    pending->settle(claimed, false);
    EXPECT_EQ(pending->claim(&handle, 1), claimed);
    pending->settle(claimed, true);
    EXPECT_EQ(pending->claim(&handle, 1), 0U);
    EXPECT_FALSE(pending->any());
}

TEST(PendingRequests, AHandleGivenOutAgainBeforeTheFirstIsSettledIsASecondRequest) {
    auto pending = std::make_unique<PendingRequests>();
    const std::uintptr_t handle = 0x1000;
    pending->add(handle, {1, 10, true});
    const std::uint32_t first = pending->claim(&handle, 1);
    pending->add(handle, {2, 20, true});
    pending->settle(first, true);
    EXPECT_EQ(sequences_of(*pending, pending->claim(&handle, 1)), std::vector<std::uint32_t>{20});
}

TEST(PendingRequests, TheOldestOfEqualHandlesComesFirst) {
    auto pending = std::make_unique<PendingRequests>();
    const std::uintptr_t handle = 0x1000;
    for (std::uint32_t sequence : {1U, 2U, 3U}) pending->add(handle, {0, sequence, false});
    for (std::uint32_t sequence : {1U, 2U, 3U}) {
        const std::uint32_t claimed = pending->claim(&handle, 1);
        EXPECT_EQ(pending->entry(claimed).operation.sequence, sequence);
        pending->settle(claimed, true);
    }
}

TEST(PendingRequests, HoldsCapacityMinusOneAndRefusesFurtherOnes) {
    auto pending = std::make_unique<PendingRequests>();
    const std::uint32_t most = PendingRequests::capacity - 1;
    std::vector<std::uintptr_t> handles;
    for (std::uint32_t i = 0; i < most; ++i) {
        handles.push_back(0x10000 + 16 * std::uintptr_t{i});
        ASSERT_TRUE(pending->add(handles.back(), {0, i + 1, true}));
    }
    EXPECT_FALSE(pending->add(1, {0, 1, true}));
    std::uint32_t at = pending->claim(handles.data(), static_cast<int>(handles.size()));
    for (std::uint32_t i = 0; i < most; ++i) {
        ASSERT_NE(at, 0U);
        const PendingRequests::Entry entry = pending->entry(at);
        ASSERT_EQ(entry.operation.sequence, i + 1);
        pending->settle(at, true);
        at = entry.next_claimed;
    }
    EXPECT_EQ(at, 0U);
    EXPECT_FALSE(pending->any());
    EXPECT_TRUE(pending->add(1, {0, 1, true}));
}

}  // namespace
}  // namespace ioweir::tracer
