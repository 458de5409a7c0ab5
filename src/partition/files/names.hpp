// Names of a set's files, and which sets lie at a base name. No MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ioweir::partition {

/// Of one step of `base` ("run/restart"). Two ways to lie:
/// directories: run/restart-dat.10.d/manifest, and run/restart-dat.10.d/K/restart-dat.10.K, a directory for each file (Liu et al., section 2.1: no
///   two groups of ranks contend for one directory's lock);
/// flat: run/restart-dat.10.set (the manifest), and run/restart-dat.10.K, as PHASTA's own library looks for them.
struct SetName {
    std::string base;
    std::int64_t step = 0;
    bool directories = true;

    [[nodiscard]] std::string manifest() const;
    /// `number` from 0.
    [[nodiscard]] std::string file(std::int64_t number) const;
    /// directories: what is renamed as a whole.
    [[nodiscard]] std::string directory() const;
    /// Last part of a path without its number: restart-dat.10.
    [[nodiscard]] std::string stem() const;
};

/// The set that a path belongs to by its name: of its directory, of its manifest or of one of its files. Nothing: it is no name of a set's.
[[nodiscard]] std::optional<SetName> set_of_path(const std::string& path);

/// Steps of which there is anything at `base`, whole or not, ascending.
[[nodiscard]] Result<std::vector<std::int64_t>> steps_at(const std::string& base);

}  // namespace ioweir::partition
