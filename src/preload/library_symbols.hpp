// Which HDF5, PnetCDF or netCDF library a call belongs to: the one that it would have reached without us.
#pragma once

namespace ioweir::preload {

/// Lets the hooks of src/tracer/hooks/library_hooks.cpp find their real functions.
void start_library_symbols();

/// For dlsym with a handle of the program's: what to give for `found`, an address of the function `name`. The hook, where
/// calls through it will reach the library that was asked; else what was found, and its calls are not traced. Null: `found`
/// is our hook and no library is loaded that could be meant.
void* library_symbol_for(const char* name, void* found, void* hook);

/// True for names of functions that are hooked for these libraries.
bool is_library_function(const char* name);

}  // namespace ioweir::preload
