// The real functions behind hooks that are looked up at their first use. One load and one test afterwards.
#pragma once

namespace ioweir::tracer {

/// The definition behind ours, null when there is none. Defined by whoever holds the hooks (preload, linked).
void* find_behind_hook(const char* name);

/// A data object as the program has it, null when there is none. A program may have its own copy (copy relocation).
void* find_program_object(const char* name);

/// Looks `name` up; false, with errno ENOSYS, when there is none.
bool find_real_slowly(void** place, const char* name);

template <typename Function>
[[gnu::always_inline]] inline bool find_real(Function& place, const char* name) {
    if (__atomic_load_n(&place, __ATOMIC_RELAXED) != nullptr) [[likely]]
        return true;
    return find_real_slowly(reinterpret_cast<void**>(&place), name);
}

}  // namespace ioweir::tracer
