// PortionTrial: which of several ways moves a program's collective calls fastest, found on portions of those calls: each way in turn moves a
// portion, the best of them the rest. So a way that is many times slower costs a portion, and not a file.
// Values only: ranks that add the same come to the same. Carrying portions out is in calls/in_portions.cpp, what follows for whole files in
// series.hpp.
//
// Promises:
// - Against the MPI library, portions cost no more than a given share of all that was moved, but for the last of them.
// - Portions are compared with each other only where they follow on each other and are of about one size. All of a trial are read, or all written,
//   whichever the program does more of; who is the best at that moves its other calls, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ioweir::engine {

class PortionTrial {
public:
    static constexpr std::size_t library = 0;  ///< the alternative that leaves the call to the MPI library
    static constexpr std::int64_t most_units = 256;

    struct Options {
        std::size_t alternatives = 1;
        std::uint64_t seed = 0;           ///< of the order in which they have their portions
        std::vector<bool> left_out = {};  ///< of each, whether it has none; empty: all have
    };
    /// How much a portion took, on the rank where it took longest, and its bytes, on the rank that had most.
    struct Portion {
        std::size_t alternative = library;
        std::int64_t ns = 0;
        std::int64_t bytes = 0;
    };
    /// A call whose bytes can be divided: how much it has in all, and in one of its units.
    struct Divided {
        std::int64_t bytes = 0;  ///< of the rank that has most; 0: the call is not to be compared
        std::int64_t units = 1;  ///< equal parts into which every rank can divide its own
        bool reads = false;
    };

    explicit PortionTrial(Options options);

    /// How many units a call of so many bytes is to have, at most.
    [[nodiscard]] static std::int64_t units_for(std::int64_t bytes);
    /// A call comes; before next() is asked about it.
    void see(const Divided& call);
    /// How many units the next portion takes.
    [[nodiscard]] std::int64_t width(const Divided& call) const;
    /// Whose portion is next, of a call of which so many units are left; nothing: the best moves what is left.
    [[nodiscard]] std::optional<std::size_t> next(const Divided& call, std::int64_t units_left) const;
    void add(const Portion& portion);
    /// The best moves so many bytes of the call.
    void add_rest(const Divided& call, std::int64_t bytes);
    /// What portions may cost against the library.
    struct Limits {
        double share = 0;     ///< of all that is moved
        double least_ns = 0;  ///< in any case
        double most_ns = 0;
        bool with_next = false;  ///< with what is expected of the next portion; else of those before it
    };
    void allow(const Limits& limits) { limits_ = limits; }
    /// Nanoseconds a byte that the library's portions took; 0: it had none.
    [[nodiscard]] double librarys_cost() const;
    /// Some of the alternatives took longer than the library so far, and none took less.
    [[nodiscard]] bool looks_hopeless() const;

    [[nodiscard]] bool is_over() const { return is_over_; }
    /// By what is known so far; once it is over, the library where nothing is faster by more than chance.
    [[nodiscard]] std::size_t best() const { return best_; }
    /// Once it is over: does it differ from the library, one way or the other?
    [[nodiscard]] bool is_told_apart() const { return is_told_apart_; }
    /// Each alternative's time as a share of the library's; 0: not known.
    [[nodiscard]] std::vector<double> shares() const;
    /// What the portions of each have taken: those of rounds that count, else all.
    [[nodiscard]] std::vector<Portion> sums() const;
    /// What portions took longer than the library would have.
    [[nodiscard]] double excess_ns() const { return excess_ns_; }

private:
    static constexpr std::size_t most_rounds = 7;

    struct Alternative {
        bool is_out = false;
        double last = 0;            ///< ns a byte, of its last portion; 0: it had none
        std::vector<double> costs;  ///< ns a byte, in the rounds that count
        double against_best = 0;    ///< its time as a share of the best's when it was last compared; 0: never
    };

    void begin_round();
    void end_round();
    void waste();
    void compare_direction(bool reads);
    [[nodiscard]] bool fits_round(const Divided& call) const;
    void compare();
    [[nodiscard]] std::vector<std::size_t> present() const;
    [[nodiscard]] std::size_t cheapest() const;
    void end();

    std::vector<bool> left_out_;
    std::vector<Alternative> alternatives_;
    std::vector<Portion> all_, counted_;  ///< sums over the portions of each
    std::uint64_t random_;
    std::vector<std::size_t> order_;  ///< of this round
    std::vector<Portion> round_;      ///< what it has so far
    std::size_t passed_by_ = 0;       ///< calls since its last portion of which none would be like it
    std::array<double, 2> seen_{};    ///< bytes of calls that write, and that read
    bool reads_ = false;              ///< what is compared
    bool is_warm_ = false;            ///< the first round counts for little: what each way makes once, it makes there
    std::size_t rounds_ = 0, wasted_ = 0;
    Limits limits_;
    double excess_ns_ = 0, all_ns_ = 0;
    std::size_t best_ = library;
    bool is_over_ = false, is_told_apart_ = false;
};

}  // namespace ioweir::engine
