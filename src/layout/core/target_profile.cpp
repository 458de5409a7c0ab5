// Checks of a TargetProfile (see target_profile.hpp).
#include "layout/core/target_profile.hpp"

#include <cmath>

namespace ioweir::layout {

namespace {

std::optional<Error> check_domain(const ContentionDomain& domain, const std::string& called) {
    if (domain.capacity_writers < 1) {
        return Error{"a contention domain without capacity", called + ": " + std::to_string(domain.capacity_writers),
                     "give the number of writers that saturate it, 1 or more"};
    }
    for (const double rate : {domain.write_bytes_per_second, domain.read_bytes_per_second}) {
        if (!std::isfinite(rate) || rate < 0) {
            return Error{"a rate that is not a number of bytes a second", called + ": " + std::to_string(rate),
                         "give 0 for not measured"};
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Error> check_profile(const TargetProfile& profile) {
    const auto count = static_cast<std::int32_t>(profile.domains.size());
    for (std::int32_t i = 0; i < count; ++i) {
        const ContentionDomain& domain = profile.domains[static_cast<std::size_t>(i)];
        const std::string called = "domain " + std::to_string(i) + " '" + domain.name + "'";
        if (auto error = check_domain(domain, called)) return error;
        if (domain.parent < -1 || domain.parent >= count) {
            return Error{"a contention domain lies in one that does not exist",
                         called + ": " + std::to_string(domain.parent),
                         "parents are indices into the domains, -1 for none"};
        }
        // A walk upward that takes more steps than there are domains has met a ring.
        std::int32_t steps = 0;
        for (std::int32_t at = i; at != -1 && steps <= count; ++steps) {
            at = profile.domains[static_cast<std::size_t>(at)].parent;
            if (at < -1 || at >= count) break;  // reported when its own turn comes
        }
        if (steps > count) return Error{"contention domains lie in each other", called, "they must form a tree"};
    }
    for (std::size_t target = 0; target < profile.domain_of_target.size(); ++target) {
        const std::int32_t domain = profile.domain_of_target[target];
        if (domain < 0 || domain >= count) {
            return Error{"a target without a contention domain",
                         "target " + std::to_string(target) + ": " + std::to_string(domain),
                         "give an index into the domains"};
        }
    }
    return std::nullopt;
}

}  // namespace ioweir::layout
