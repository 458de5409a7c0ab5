// A program's weak references to functions that nobody but the preload has.
#pragma once

namespace ioweir::preload {

/// To be called once, while the program has one thread and its own code has not run.
void clear_weak_references();

}  // namespace ioweir::preload
