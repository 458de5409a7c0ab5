// TargetProfile: how fast each storage target is and what it shares with others. Values only.
// What does not live here: measuring them (probe), which targets a file uses (stripe_layout.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ioweir::layout {

/// What kind of part a contention domain is; they form a tree, target within server within router (docs/explanation/contention-free-order.md).
enum class DomainKind : std::uint8_t { target, server, router };

/// A part of the storage system that its users slow each other down on.
struct ContentionDomain {
    DomainKind kind = DomainKind::target;
    std::string name;                     ///< as the storage system calls it: "OST0004"
    std::int32_t parent = -1;             ///< index of the domain it lies in, -1 for a root
    double write_bytes_per_second = 0.0;  ///< of the whole domain, 0 = not measured
    double read_bytes_per_second = 0.0;   ///< of the whole domain, 0 = not measured
    std::int32_t capacity_writers = 1;    ///< writers needed to saturate it: more than that only wait for each other
};

struct TargetProfile {
    std::vector<ContentionDomain> domains;
    /// For each target id of a StripeLayout the index of its own domain.
    std::vector<std::int32_t> domain_of_target;
};

/// Says what is wrong with a profile's tree, indices, capacities or rates; nothing when it is sound. The empty profile is sound:
/// nothing is known about any target.
[[nodiscard]] std::optional<Error> check_profile(const TargetProfile& profile);

}  // namespace ioweir::layout
