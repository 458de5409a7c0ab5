// The line of a Python program that is being carried out: call sites of programs that an interpreter runs.
//
// Asked only where call sites are recorded, and only in processes that hold an interpreter; through its public functions, looked
// up by name. The interpreter must not run code of the program meanwhile: its collector is put off, and where the calling
// thread has given its lock away (mpi4py and os.write do), it is taken back only if no other Python thread could hold it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ioweir::tracer {

/// Finds a function as the whole program sees it (dlsym); null when there is none.
using FindFunction = void* (*)(const char* name);

struct PythonLine {
    char file[1024];
    std::uint32_t line = 0;  ///< 0: no line of a Python program
};

/// Looks the interpreter's functions up, if that has not succeeded yet. Cheap, but takes the loader's lock.
void look_for_python(FindFunction find);

/// Whether there is an interpreter.
bool python_is_there();

/// The innermost line outside of Python's own library and of installed packages. The file as the interpreter names it.
void find_python_line(PythonLine& out);

}  // namespace ioweir::tracer
