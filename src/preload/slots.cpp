// The jump table of the MPI entries before a back end has filled it: each slot's first use finds the real function.
#include <cstdint>

#include "ioweir_generated/mpi_slots.hpp"
#include "preload/large_counts.hpp"
#include "preload/real_symbols.hpp"

extern "C" {
// Called by entries.S.
__attribute__((visibility("hidden"))) void* ioweir_resolve_slot(std::uint64_t index);
extern void* ioweir_slots[] __attribute__((visibility("hidden")));
extern void* const ioweir_lazy_entries[] __attribute__((visibility("hidden")));
}

namespace ioweir::preload {
namespace {

int missing_function(void) {
    return 16;
}  // an MPI error code other than MPI_SUCCESS in every MPI: MPI_ERR_OTHER or near

}  // namespace
}  // namespace ioweir::preload

void* ioweir_resolve_slot(std::uint64_t index) {
    using namespace ioweir::preload;
    void* found = find_behind(slot_names[index]);
    if (found == nullptr) found = narrow_form(static_cast<Slot>(index));
    if (found == nullptr) return reinterpret_cast<void*>(&missing_function);
    // Remembered, since programs wait for messages by the million; but a back end may have armed the slot meanwhile.
    void* lazy = ioweir_lazy_entries[index];
    __atomic_compare_exchange_n(&ioweir_slots[index], &lazy, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return found;
}
