// What lies behind the hooks of HDF5, PnetCDF and netCDF in a program that ioweir is linked into: of each library the one that
// the program is linked with. The archive members of the functions that the program uses say where (tools/generator/linking.py).
// What does not live here: choosing between several loaded libraries, which the preload does (preload/library_symbols.cpp).
#include "preload/library_symbols.hpp"

#include <cstdint>
#include <iterator>
#include <string_view>

#include "ioweir_generated/linked_libraries.hpp"
#include "tracer/hooks/library.hpp"

namespace {
/// Of one function: its row in the table of hooks, and in the order of tools/generator/linking.py what its library is asked.
struct Linked {
    std::uint64_t row;
    void* function;
    void* const* questions;
};
}  // namespace

extern "C" {
// The linker's names for the ends of a section; null where no member has come in.
extern const Linked __start_ioweir_reals[] __attribute__((weak, visibility("hidden")));  // NOLINT
extern const Linked __stop_ioweir_reals[] __attribute__((weak, visibility("hidden")));   // NOLINT
}

namespace ioweir::preload {
namespace {

using namespace tracer::library;

Real reals[library_function_count];
Provider providers[api_count];
bool known = false;

/// How many questions a library is asked, and which is its first; behind them lies what tells whether it is understood.
struct Questions {
    int first;
    int count;
};
constexpr Questions questions_of(Api api) {
    Questions questions{-1, 0};
    for (int i = 0; i < query_count; ++i) {
        const char* name = query_names[i];
        const Api owner = name[0] == 'H' ? Api::hdf5 : name[2] == 'm' ? Api::pnetcdf : Api::netcdf;
        if (owner != api) continue;
        if (questions.first < 0) questions.first = i;
        ++questions.count;
    }
    return questions;
}

/// The questions of library.hpp are those of the archive's members, in the same order, but for each member's last.
constexpr bool questions_agree() {
    int at = 0;
    for (const Api api : {Api::hdf5, Api::pnetcdf, Api::netcdf}) {
        const Questions questions = questions_of(api);
        for (int i = 0; i < questions.count; ++i)
            if (std::string_view(query_names[questions.first + i]) != library_questions[at++]) return false;
        ++at;
    }
    return at == static_cast<int>(std::size(library_questions));
}
static_assert(questions_agree());

/// Several threads may do it at once: they store the same.
void gather() {
    for (const Linked* each = __start_ioweir_reals; each != __stop_ioweir_reals; ++each) {
        const Api api = functions[each->row].api;
        Provider& provider = providers[static_cast<int>(api)];
        const Questions questions = questions_of(api);
        for (int i = 0; i < questions.count; ++i) provider.queries[questions.first + i] = each->questions[i];
        provider.number = static_cast<std::uint32_t>(api) + 1;
        provider.traced = each->questions[questions.count] != nullptr;
        reals[each->row] = {each->function, &provider};
    }
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
}

}  // namespace

void start_library_symbols() { gather(); }

}  // namespace ioweir::preload

namespace ioweir::tracer::library {

/// A constructor of the program may come before ours.
Real linked_library_call(int function, const void*, const void*) {
    if (!__atomic_load_n(&preload::known, __ATOMIC_ACQUIRE)) preload::gather();
    return preload::reals[function];
}

}  // namespace ioweir::tracer::library
