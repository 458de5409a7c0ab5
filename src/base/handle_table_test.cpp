// The handle table against std::map under random opens and closes.
#include "base/handle_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

namespace ioweir {
namespace {

TEST(HandleTable, BehavesLikeAMap) {
    const auto table = std::make_unique<HandleTable<std::uint32_t>>();
    std::map<std::uintptr_t, std::uint32_t> oracle;
    std::mt19937_64 random(3);
    for (int step = 0; step < 200'000; ++step) {
        // Few distinct handles, so that the same ones come and go.
        const std::uintptr_t handle = 0x5500'0000'0000U + 16 * (random() % 500);
        const std::uint64_t action = random() % 3;
        if (action == 0) {
            const auto file = static_cast<std::uint32_t>(1 + random() % 1000);
            if (!oracle.contains(handle)) {
                ASSERT_TRUE(table->insert(handle, file));
                oracle[handle] = file;
            }
        } else if (action == 1) {
            table->erase(handle);
            oracle.erase(handle);
        }
        const auto expected = oracle.find(handle);
        ASSERT_EQ(table->find(handle), expected == oracle.end() ? 0 : expected->second) << step;
    }
}

TEST(HandleTable, RefusesWhatDoesNotFit) {
    const auto table = std::make_unique<HandleTable<std::uint32_t>>();
    for (std::uintptr_t i = 0; i < HandleTable<std::uint32_t>::capacity; ++i)
        ASSERT_TRUE(table->insert(0x1000 + 16 * i, 1));
    EXPECT_FALSE(table->insert(0x7000'0000, 1));
    EXPECT_EQ(table->find(0x7000'0000), 0U);
    table->erase(0x1000);
    EXPECT_TRUE(table->insert(0x7000'0000, 2));
    EXPECT_EQ(table->find(0x7000'0000), 2U);
}

}  // namespace
}  // namespace ioweir
