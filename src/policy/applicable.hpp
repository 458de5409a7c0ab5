// Can the rules of a plan be carried out beneath a program at all? What a command asks before it starts one.
// What does not live here: reading plan files (plan_file.hpp), whether target directories are there (python/ioweir/plan/plan_check.py), what
// only an open file tells (engine/open.cpp).
#pragma once

#include <optional>

#include "base/result.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::policy {

/// The first rule that the engine would leave to the MPI library whatever the program does, or that says something which nobody would
/// follow: which key, in which rule, and what can be written instead. Nothing when there is none. Keys that only adapters read (netcdf,
/// hdf5) are judged by what they do to the bytes, like any other rule.
[[nodiscard]] std::optional<Error> why_not_applied(const PlanFile& plan);

}  // namespace ioweir::policy
