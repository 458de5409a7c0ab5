// What the tests of the kernels share: making them. What does not live here: expectations.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"

namespace ioweir::kernels {

inline std::shared_ptr<const Kernel> must_make(std::string_view name, int ranks,
                                               const std::vector<std::string>& words) {
    std::vector<Setting> settings;
    for (const std::string& word : words) settings.push_back(parse_setting(word).take());
    auto made = make_kernel(name, ranks, settings);
    if (!made) throw std::runtime_error(made.error().message());
    return made.take();
}

inline std::string error_of(std::string_view name, int ranks, const std::vector<std::string>& words) {
    std::vector<Setting> settings;
    for (const std::string& word : words) settings.push_back(parse_setting(word).take());
    const auto made = make_kernel(name, ranks, settings);
    return made ? "no error" : made.error().message();
}

}  // namespace ioweir::kernels
