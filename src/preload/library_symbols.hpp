// Which HDF5, PnetCDF or netCDF library a call belongs to: the one that it would have reached without us.
#pragma once

#include <link.h>

namespace ioweir::preload {

/// Lets the hooks of src/tracer/hooks/library_hooks.cpp find their real functions.
void start_library_symbols();

/// For dlsym with a handle of the program's: what to give for `found`, an address of the function `name`. The hook, where
/// calls through it will reach the library that was asked; else what was found, and its calls are not traced.
void* library_symbol_for(const char* name, void* found, void* hook);

/// A function of the loaded object that another function lies in; null: it has none of that name.
void* find_beside(const void* function, const char* name);

/// True for names of functions that are hooked for these libraries.
bool is_library_function(const char* name);

/// Whether a function that we stand in for exists for an object: in the global scope behind us, or in a local one that the
/// object is in. Null: for one of the global scope only.
bool is_defined_behind_us(const char* name, const link_map* object);

}  // namespace ioweir::preload
