// Result<T>: a value or an Error that says what went wrong, which value was at fault and what to do about it.
// What does not live here: the choice of what to do with an error (callers), MPI error classes (engine).
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace ioweir {

/// An error for a person: three short phrases. `what` is never empty.
struct Error {
    std::string what;    ///< what is wrong: "unknown key"
    std::string value;   ///< the value at fault: "writrs (line 4)"
    std::string remedy;  ///< what to do: "did you mean 'writers'?"
    int number = 0;      ///< an errno value, where a system call failed or one says what is wrong

    /// One line: "unknown key: writrs (line 4); did you mean 'writers'?"
    [[nodiscard]] std::string message() const {
        std::string text = what;
        if (!value.empty()) text += ": " + value;
        if (!remedy.empty()) text += "; " + remedy;
        return text;
    }
};

/// Either a T or an Error. Accessing the wrong one is a programming error (assert).
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    [[nodiscard]] T& value() {
        assert(ok());
        return std::get<0>(state_);
    }
    [[nodiscard]] const T& value() const {
        assert(ok());
        return std::get<0>(state_);
    }
    [[nodiscard]] T take() {
        assert(ok());
        return std::move(std::get<0>(state_));
    }
    [[nodiscard]] const Error& error() const {
        assert(!ok());
        return std::get<1>(state_);
    }

private:
    std::variant<T, Error> state_;
};

}  // namespace ioweir
