// longjmp and its relatives: a jump out of an intercepted call (an MPI error handler may do that) leaves its Scope on the
// stack behind, and where the stack is not written over it looks alive. So the frames below the jump's target are dropped
// from the thread's parent stack here. Outside of intercepted calls a jump costs one test more.
// What does not live here: noticing frames that were left by other ways (tracer/ring/stream.hpp).
#include <setjmp.h>

#include <cstdint>
#include <cstdlib>

#include "preload/real_symbols.hpp"
#include "tracer/ring/process.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::preload {
namespace {

// Where glibc keeps the stack pointer in a jmp_buf, and that it is mixed with a secret of the process (PTR_MANGLE), is
// what the thread sanitizer relies on too (compiler-rt, tsan_platform_linux.cpp: UnmangleLongJmpSp).
#if defined(__x86_64__)
constexpr int stack_pointer_slot = 6;
std::uintptr_t unmangled(std::uintptr_t value) {
    std::uintptr_t guard = 0;
    __asm__("mov %%fs:0x30, %0" : "=r"(guard));
    return (value >> 17 | value << 47) ^ guard;
}
#elif defined(__aarch64__)
constexpr int stack_pointer_slot = 13;
std::uintptr_t key;
std::uintptr_t unmangled(std::uintptr_t value) { return value ^ key; }
#endif

std::uintptr_t stack_pointer_of(const void* buffer) {
    return unmangled(static_cast<std::uintptr_t>(static_cast<const std::uint64_t*>(buffer)[stack_pointer_slot]));
}

/// Whether this C library keeps its jmp_buf as described: asked of one that was filled here.
__attribute__((noinline)) bool layout_is_known() {
    jmp_buf here;
    if (_setjmp(here) != 0) return false;
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
#if defined(__aarch64__)
    std::uintptr_t stack_pointer = 0;
    __asm__("mov %0, sp" : "=r"(stack_pointer));
    key =
        static_cast<std::uintptr_t>(reinterpret_cast<const std::uint64_t*>(&here)[stack_pointer_slot]) ^ stack_pointer;
#endif
    const std::uintptr_t found = stack_pointer_of(&here);
    return found <= frame + 64 && frame - found < 4096;
}

void leave_frames(const void* buffer) {
    tracer::ThreadStream& stream = tracer::thread_stream;
    if (stream.depth == 0) return;
    static const bool known = layout_is_known();
    if (!known || stream.depth > tracer::ThreadStream::max_depth) return;
    const std::uintptr_t target = stack_pointer_of(buffer);
    while (stream.depth > 0 && reinterpret_cast<std::uintptr_t>(stream.frames[stream.depth - 1].scope) < target)
        --stream.depth;
}

using Jump = void (*)(struct __jmp_buf_tag*, int);

[[noreturn]] void jump(Jump& known, const char* name, struct __jmp_buf_tag* buffer, int value) {
    leave_frames(buffer);
    Jump real = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (real == nullptr) {
        real = reinterpret_cast<Jump>(find_next(name));
        __atomic_store_n(&known, real, __ATOMIC_RELAXED);
    }
    if (real != nullptr) real(buffer, value);
    std::abort();  // a C library without longjmp: the program cannot have been linked with it
}

Jump real_longjmp;
Jump real__longjmp;
Jump real_siglongjmp;
Jump real___longjmp_chk;

}  // namespace
}  // namespace ioweir::preload

using namespace ioweir::preload;  // NOLINT: the hooks below are global C functions

// By names of their own: some C++ libraries bring setjmp.h, which declares these functions as ones that let no exception through.
extern "C" {
#define IOWEIR_JUMP(name)                                                                                     \
    IOWEIR_EXPORT void hooked_##name(struct __jmp_buf_tag* buffer, int value) noexcept(false) __asm__(#name); \
    void hooked_##name(struct __jmp_buf_tag* buffer, int value) noexcept(false) {                             \
        jump(real_##name, #name, buffer, value);                                                              \
    }
IOWEIR_JUMP(longjmp)
IOWEIR_JUMP(_longjmp)
IOWEIR_JUMP(siglongjmp)
IOWEIR_JUMP(__longjmp_chk)
#undef IOWEIR_JUMP
}
