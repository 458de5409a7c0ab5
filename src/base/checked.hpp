// Checked integer arithmetic: the result, or nothing when it does not fit. For sizes and offsets that a program or a file
// handed in, where a silent wrap-around would address the wrong bytes.
// What does not live here: text ("16 MiB", base/size_text.hpp), errors for a person (callers know what the number meant).
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace ioweir {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, std::type_identity_t<T> b) {
    T sum{};
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_multiply(T a, std::type_identity_t<T> b) {
    T product{};
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}

/// `value` as another integer type, if it can hold it: checked_cast<int>(std::int64_t{1} << 31) is nothing.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr std::optional<To> checked_cast(From value) {
    if (!std::in_range<To>(value)) return std::nullopt;
    return static_cast<To>(value);
}

/// The least integer not below a / b, for a >= 0 and b > 0. ceil_divide(7, 3) == 3; it cannot overflow, unlike (a + b - 1) / b.
template <std::integral T>
[[nodiscard]] constexpr T ceil_divide(T a, std::type_identity_t<T> b) {
    return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}

/// The greatest multiple of `unit` not above `value`, for value >= 0 and unit > 0.
template <std::integral T>
[[nodiscard]] constexpr T round_down(T value, std::type_identity_t<T> unit) {
    return static_cast<T>(value - value % unit);
}

/// The least multiple of `unit` not below `value`, or nothing when that does not fit.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_round_up(T value, std::type_identity_t<T> unit) {
    const T remainder = static_cast<T>(value % unit);
    return remainder == 0 ? std::optional<T>(value) : checked_add<T>(value, static_cast<T>(unit - remainder));
}

}  // namespace ioweir
