// Trial: two ways to make calls of one kind, the engine's and the MPI library's, compared over the program's own calls, which are made in
// turns. Values only; what is measured, and of which ranks, is the caller's.
//
// Machines are noisy: two calls that follow on each other are compared, and as many of such pairs must agree as chance alone would have
// agree less than once in fifty times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ioweir::engine {

class Trial {
public:
    enum class By : std::uint8_t { engine, library };
    struct Result {
        bool library_is_faster = false;                         ///< by more than a twentieth
        std::int64_t pairs = 0;                                 ///< that were compared
        std::int64_t engine_ns = 0, library_ns = 0, bytes = 0;  ///< medians over these pairs, of a call
    };

    /// `doubts`: it ends as soon as half of the pairs are not won by the library.
    explicit Trial(bool doubts = false) : doubts_(doubts) {}

    /// Whose turn it is: the engine's first in one pair, and second in the next.
    [[nodiscard]] By turn() const {
        const bool second = calls_ % 2 != 0, swapped = calls_ / 2 % 2 != 0;
        return second != swapped ? By::library : By::engine;
    }
    [[nodiscard]] bool is_between_pairs() const { return calls_ % 2 == 0; }
    /// How the call of that turn went.
    void add(std::int64_t ns, std::int64_t bytes);
    /// Now it may be decided; before the next turn it must be tried.
    [[nodiscard]] bool may_end() const;
    /// Nothing: more calls are needed. Where may_end().
    [[nodiscard]] std::optional<Result> result() const;
    /// All times and bytes: where all ranks take the largest of all, all come to the same result.
    [[nodiscard]] std::span<std::int64_t> figures() { return figures_; }

private:
    static constexpr std::int64_t most_pairs = 15;
    /// The first pair counts for nothing: what both make once, they make there.
    static constexpr std::int64_t first_looks[] = {3, 7};

    /// The engine, where the library took four times as long in one of the first two pairs: a program with few large calls would pay for more.
    [[nodiscard]] std::optional<Result> far_ahead() const;

    std::array<std::int64_t, 4 * (1 + most_pairs)> figures_{};  // of each pair: both times, both bytes
    std::int64_t calls_ = 0;
    bool doubts_ = false;
};

}  // namespace ioweir::engine
