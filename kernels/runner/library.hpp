// Libraries that the runner loads when a mode needs them. What does not live here: which functions are asked of them.
#pragma once

#include <span>
#include <string>

namespace ioweir::kernels {

/// The first of the names that is found. None: ends all ranks, saying what to install. One for another MPI library than this program's:
/// likewise, for two in a process do not understand each other's handles.
[[nodiscard]] void* load_library(std::span<const char* const> names, const std::string& product);

/// Ends all ranks when there is no such symbol.
[[nodiscard]] void* find_symbol(void* library, const char* library_name, const char* name);

template <typename Function>
void find(void* library, const char* library_name, const char* name, Function& function) {
    function = reinterpret_cast<Function>(find_symbol(library, library_name, name));
}

}  // namespace ioweir::kernels
