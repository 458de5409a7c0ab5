// A call of a library that an adapter may carry out in the library's place, and its arguments.
// What does not live here: where such calls come from (preload), what is done with them (adapters/hdf5, adapters/pnetcdf).
#pragma once

#include <cstdint>

namespace ioweir::adapters {

/// An argument or a result, as the register or stack slot that it came in.
using Word = std::uint64_t;

/// A call of the program.
struct Call {
    const char* symbol = "";    ///< "ncmpi_create"
    void* real = nullptr;       ///< the library's function
    std::uint32_t library = 0;  ///< a number for each of the process's libraries of one kind
    const Word* arguments = nullptr;
    int count = 0;  ///< of them
    Word (*invoke)(void* function, const Word* arguments, int count) = nullptr;
};

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

}  // namespace ioweir::adapters
