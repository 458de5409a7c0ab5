// What a target profile must not be.
#include "layout/core/target_profile.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ioweir::layout {
namespace {

TargetProfile two_targets_on_one_server() {
    TargetProfile profile;
    profile.domains = {{DomainKind::server, "oss0", -1, 2e9, 0.0, 2},
                       {DomainKind::target, "ost0", 0, 1e9, 0.0, 1},
                       {DomainKind::target, "ost1", 0, 1e9, 0.0, 1}};
    profile.domain_of_target = {1, 2};
    return profile;
}

TEST(TargetProfile, SoundOnesPass) {
    EXPECT_FALSE(check_profile({}).has_value());
    EXPECT_FALSE(check_profile(two_targets_on_one_server()).has_value());
}

TEST(TargetProfile, NamesWhatIsWrong) {
    auto ring = two_targets_on_one_server();
    ring.domains[0].parent = 2;
    ASSERT_TRUE(check_profile(ring).has_value());
    EXPECT_EQ(check_profile(ring)->what, "contention domains lie in each other");

    auto no_capacity = two_targets_on_one_server();
    no_capacity.domains[1].capacity_writers = 0;
    ASSERT_TRUE(check_profile(no_capacity).has_value());
    EXPECT_EQ(check_profile(no_capacity)->value, "domain 1 'ost0': 0");

    auto no_rate = two_targets_on_one_server();
    no_rate.domains[2].read_bytes_per_second = std::numeric_limits<double>::quiet_NaN();
    ASSERT_TRUE(check_profile(no_rate).has_value());
    EXPECT_EQ(check_profile(no_rate)->what, "a rate that is not a number of bytes a second");

    auto no_parent = two_targets_on_one_server();
    no_parent.domains[1].parent = 3;
    ASSERT_TRUE(check_profile(no_parent).has_value());
    EXPECT_EQ(check_profile(no_parent)->what, "a contention domain lies in one that does not exist");

    auto no_domain = two_targets_on_one_server();
    no_domain.domain_of_target.push_back(3);
    ASSERT_TRUE(check_profile(no_domain).has_value());
    EXPECT_EQ(check_profile(no_domain)->value, "target 2: 3");
}

}  // namespace
}  // namespace ioweir::layout
