// The table `hdf5` of a rule, read and written.
// What does not live here: the other keys (plan_file.cpp, plan_file_text.cpp). Include it in source files only, as base/toml_reader.hpp.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/toml_parser.hpp"
#include "planner/hdf5_wish.hpp"

namespace ioweir::planner {

/// `name`: of the plan file, for messages.
[[nodiscard]] Result<Hdf5Wish> read_hdf5_wish(const toml::node& node, std::string_view name);

[[nodiscard]] bool is_hdf5_key(std::string_view key);

/// "hdf5 = { ... }" and a line's end; empty for a wish of nothing.
[[nodiscard]] std::string hdf5_text(const Hdf5Wish& wish);

}  // namespace ioweir::planner
