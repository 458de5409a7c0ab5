// The table `hdf5` of a rule, read and written.
// What does not live here: the other keys (plan_file.cpp, plan_file_text.cpp). Include it in source files only, as base/toml_reader.hpp.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/toml_parser.hpp"
#include "policy/hdf5_options.hpp"

namespace ioweir::policy {

/// `name`: of the plan file, for messages.
[[nodiscard]] Result<Hdf5Options> read_hdf5_options(const toml::node& node, std::string_view name);

[[nodiscard]] bool is_hdf5_key(std::string_view key);

/// "hdf5 = { ... }" and a line's end; empty where nothing is asked for.
[[nodiscard]] std::string hdf5_text(const Hdf5Options& options);

}  // namespace ioweir::policy
