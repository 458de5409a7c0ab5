// What is known of handles: it ends with the age, and no reader sees half of it.
#include "base/made_handles.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ioweir {
namespace {

struct Pair {
    std::int64_t one = 0, other = 0;
};

TEST(MadeHandles, KnowsWhatIsKeptUntilAnyIsFreed) {
    MadeHandles<Pair> handles;
    EXPECT_FALSE(handles.find(0x5500));
    handles.keep(0x5500, {3, -3}, handles.age());
    ASSERT_TRUE(handles.find(0x5500));
    EXPECT_EQ(handles.find(0x5500)->other, -3);
    EXPECT_FALSE(handles.find(0x5510));
    const std::uint32_t before = handles.age();
    handles.forget();
    EXPECT_FALSE(handles.find(0x5500));
    handles.keep(0x5500, {4, -4}, before);
    EXPECT_FALSE(handles.find(0x5500)) << "one was freed after the object had been asked";
    handles.keep(0x5500, {4, -4}, handles.age());
    EXPECT_EQ(handles.find(0x5500)->one, 4);
}

TEST(MadeHandles, ReadersSeeWholeValues) {
    MadeHandles<Pair> handles;
    std::atomic<bool> over{false};
    std::int64_t wrong = 0, seen = 0;
    std::thread reader([&] {
        while (!over || seen == 0) {
            const auto pair = handles.find(0x5500);
            seen += pair ? 1 : 0;
            wrong += pair && pair->one != -pair->other ? 1 : 0;
        }
    });
    for (std::int64_t i = 1; i < 200'000; ++i) handles.keep(0x5500, {i, -i}, handles.age());
    over = true;
    reader.join();
    EXPECT_GT(seen, 0);
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ioweir
