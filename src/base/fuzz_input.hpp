// What a fuzzer gives, taken from its front, number by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ioweir {

/// False, and nothing is taken, where fewer bytes are left than `number` has. Native byte order.
template <typename Number>
[[nodiscard]] bool take(const std::uint8_t*& at, std::size_t& left, Number& number) {
    if (left < sizeof number) return false;
    std::memcpy(&number, at, sizeof number);
    at += sizeof number;
    left -= sizeof number;
    return true;
}

/// The same for targets that build something of an input and do not mind its end: zeros follow behind it.
class FuzzInput {
public:
    FuzzInput(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

    template <typename Number>
    [[nodiscard]] Number number() {
        Number value{};
        if (!take(at_, left_, value)) left_ = 0;
        return value;
    }
    /// At most `bytes` of what is left.
    [[nodiscard]] std::string text(std::size_t bytes) {
        const std::size_t taken = bytes < left_ ? bytes : left_;
        std::string value(reinterpret_cast<const char*>(at_), taken);
        at_ += taken;
        left_ -= taken;
        return value;
    }
    [[nodiscard]] std::string rest() { return text(left_); }
    [[nodiscard]] bool empty() const { return left_ == 0; }

private:
    const std::uint8_t* at_;
    std::size_t left_;
};

#if defined(__clang__)
#define IOWEIR_NOT_COVERED __attribute__((no_sanitize("coverage")))
#else
#define IOWEIR_NOT_COVERED
#endif

/// For checks that take much longer than the reader: true for one input in `many`, and for the same ones in every run. The fuzzer does not see it
/// as a part of the reader.
[[nodiscard]] IOWEIR_NOT_COVERED inline bool is_one_in(std::uint64_t many, const std::uint8_t* data, std::size_t size) {
    std::uint64_t sum = size;
    for (; size > 0; --size) sum = (sum ^ *data++) * 0x100000001b3;  // FNV-1a
    return (sum ^ sum >> 32) % many == 0;
}

/// A seed for a target that takes its input so: numbers and texts one behind the other.
class FuzzSeed {
public:
    template <typename Number>
    FuzzSeed& number(Number value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    FuzzSeed& text(std::string_view value) {
        bytes_ += value;
        return *this;
    }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

}  // namespace ioweir
