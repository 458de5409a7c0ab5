// The exported hooks of unit `stdio`: spec/functions_stdio.toml. And __uflow and __overflow, which the inline forms of
// getc_unlocked and putc_unlocked call at the end of the buffer.
#include <features.h>
#undef __USE_EXTERN_INLINES  // the C library's own inline definitions of some of what is defined here
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "tracer/hooks/real.hpp"
#include "tracer/hooks/stdio_bodies.hpp"
#include "tracer/ring/paths.hpp"

#undef getc
#undef putc
#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::tracer {
namespace {

std::FILE* standard(std::FILE**& variable, const char* name) {
    if (!stdio_is_traced()) return nullptr;
    if (variable == nullptr) variable = static_cast<std::FILE**>(find_program_object(name));
    return variable != nullptr ? *variable : nullptr;
}
std::FILE** input;
std::FILE** output;

}  // namespace

std::FILE* standard_input() { return standard(input, "stdin"); }
std::FILE* standard_output() { return standard(output, "stdout"); }

void record_stream_open(Function function, std::FILE* file, const char* path, const char* mode, std::uint64_t start,
                        std::uint64_t stop) {
    const KeepErrno error;
    const bool stdio = stdio_is_traced();
    const bool appends = mode != nullptr && mode[0] == 'a';
    if (file == nullptr) {
        if (!stdio || path == nullptr || error.value() == EFAULT) return;
        if (const std::uint32_t id = file_of_path(AT_FDCWD, path))
            record_call(function, id, start, stop, -1, 0, error.value());
        return;
    }
    const int fd = file->_fileno;
    struct stat status{};
    if (raw::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
    char absolute[4096];
    const std::uint32_t id = path != nullptr && absolute_path(AT_FDCWD, path, absolute, sizeof absolute)
                                 ? process_tracer.register_file(thread_stream, absolute)
                                 : file_of_open_descriptor(fd);
    if (id == 0) return;
    // The descriptor too: C++ streams open with fopen, and read and write with the descriptor.
    if (process_tracer.traces(LayerBit::posix)) open_descriptor(fd, id, appends);
    if (!stdio) return;
    open_stream(file, id, appends, 0);
    record_call(function, id, start, stop, -1, 0, 0);
    sample_clock(thread_stream);
}

}  // namespace ioweir::tracer

using namespace ioweir::tracer;  // NOLINT: the hooks below are global C functions

#include "ioweir_generated/stdio_hooks.inc"

static int (*real___uflow)(FILE*);
static int (*real___overflow)(FILE*, int);

extern "C" IOWEIR_EXPORT int __uflow(FILE* stream) {
    if (Stream* followed = stream_of(stream)) followed->place = place_lost;
    return find_real(real___uflow, "__uflow") ? real___uflow(stream) : EOF;
}
extern "C" IOWEIR_EXPORT int __overflow(FILE* stream, int character) {
    if (Stream* followed = stream_of(stream)) followed->place = place_lost;
    return find_real(real___overflow, "__overflow") ? real___overflow(stream, character) : EOF;
}
