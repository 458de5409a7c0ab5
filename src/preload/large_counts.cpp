// A form with int counts is called with the same registers: all parameters are of register size, and the callee looks at the
// lower half of the count only; what they store (an extent: MPI_Aint, MPI_Count) has 64 bits in both. (On x86-64 and aarch64, six parameters of this kind are in registers.)
#include "preload/large_counts.hpp"

#include <array>
#include <climits>
#include <cstdint>
#include <utility>

#include "preload/real_symbols.hpp"

extern "C" {
extern void* ioweir_slots[] __attribute__((visibility("hidden")));
}

namespace ioweir::preload {
namespace {

constexpr int mpi_err_count = 2;  // in Open MPI, in MPICH and its relatives, and in the standard ABI

using Register = std::int64_t;
using Function = int (*)(Register, Register, Register, Register, Register, Register);

template <std::size_t index>
int call_plain(Register a, Register b, Register c, Register d, Register e, Register f) {
    constexpr LargeCount form = large_counts[index];
    static_assert(form.count_position == -1 || form.count_position == 2 || form.count_position == 3);
    if constexpr (form.count_position != -1) {
        const Register count = form.count_position == 2 ? c : d;
        if (count > INT_MAX || count < INT_MIN) return mpi_err_count;
    }
    return reinterpret_cast<Function>(ioweir_slots[static_cast<int>(form.plain)])(a, b, c, d, e, f);
}

template <std::size_t... index>
constexpr std::array<Function, sizeof...(index)> all_of(std::index_sequence<index...>) {
    return {&call_plain<index>...};
}

}  // namespace

void* narrow_form(Slot slot) {
    static constexpr auto functions = all_of(std::make_index_sequence<std::size(large_counts)>());
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (large_counts[i].large != slot) continue;
        const bool exists = find_behind(slot_names[static_cast<int>(large_counts[i].plain)]) != nullptr;
        return exists ? reinterpret_cast<void*>(functions[i]) : nullptr;
    }
    return nullptr;
}

}  // namespace ioweir::preload
