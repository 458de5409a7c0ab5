// The kernel that a user's words name, for bindings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/text.hpp"
#include "kernels/kernel.hpp"

namespace ioweir {

/// Raises what is wrong with a kernel, its parameters ("name=value") or its number of ranks.
inline std::shared_ptr<const kernels::Kernel> kernel_of(const std::string& name, int ranks,
                                                        const std::vector<std::string>& words) {
    std::vector<kernels::Setting> settings;
    for (const std::string& word : words) settings.push_back(value_of(kernels::parse_setting(word)));
    return value_of(kernels::make_kernel(name, ranks, settings));
}

}  // namespace ioweir
