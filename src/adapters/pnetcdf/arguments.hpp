// Arguments of the program's calls, out of the registers and stack slots that they came in.
#pragma once

#include "adapters/pnetcdf/adapter.hpp"

namespace ioweir::pnetcdf {

/// Argument `place`, from 0. The upper half of an int's register may hold anything.
template <typename Type>
Type argument(const Call& call, int place) {
    if constexpr (sizeof(Type) == sizeof(Word))
        return __builtin_bit_cast(Type, call.arguments[place]);
    else
        return static_cast<Type>(call.arguments[place]);
}

/// An argument for a call of the library.
template <typename Type>
Word word_of(Type value) {
    if constexpr (sizeof(Type) == sizeof(Word))
        return __builtin_bit_cast(Word, value);
    else
        return static_cast<Word>(static_cast<std::int64_t>(value));
}

}  // namespace ioweir::pnetcdf
