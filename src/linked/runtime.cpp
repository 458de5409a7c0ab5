// The one part of the C++ run-time library that the tracer's code may refer to; the programs that libioweir_trace.a is linked
// into need not have that library. None of it is visible outside of the archive.
#include <cstdlib>

namespace std {  // NOLINT: libstdc++ declares it there, and calls it where a string_view's bounds are checked

[[noreturn]] void __throw_out_of_range_fmt(const char*, ...) { ::abort(); }

}  // namespace std
