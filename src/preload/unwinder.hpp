// libgcc's unwinder, which is linked into each of our libraries.
#pragma once

#include <unwind.h>

namespace ioweir::preload {

/// Makes it learn the sizes of the registers, as it does when it first walks a stack. Where a thread is cancelled inside of a
/// hook, another copy (the C library loads libgcc_s.so for that) walks the stack, and ours only enters our frames' cleanups:
/// without the sizes it would abort the program.
inline void prepare_unwinder() {
    _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

}  // namespace ioweir::preload
