// Series: files that a loop writes or reads one after the other, and by which strategy the next one is. Where their collective calls can be divided,
// the alternatives are compared on portions of them (portions.hpp). Else the loop's first files are observed, then each alternative has a file.
// The best is kept and watched.
// Values only: what is measured, and that all ranks have the same measures, is the caller's (choosing.cpp). Ranks that add the same come to the same.
// What does not live here: which alternatives there are (alternatives.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/choice/portions.hpp"

namespace ioweir::engine {

/// What a file took, of the rank that took longest, had most bytes and made most calls.
struct Repetition {
    std::int64_t ns = 0;  ///< of its calls that read, write, sync and close
    std::int64_t bytes = 0;
    std::int64_t calls = 0;
    bool cut = false;  ///< its strategy was given up on the way, for it was much slower than the best
};

class Series {
public:
    static constexpr std::size_t library = PortionTrial::library;

    enum class Step : std::uint8_t {
        observed,  ///< by the library, to see what the loop does
        tried,     ///< by an alternative of which too little is known
        kept,      ///< by the best
        ended,     ///< by the library, for good
        compared,  ///< portions of its calls by each alternative in turn, the rest by the best of them
    };
    struct Turn {
        std::size_t alternative = library;
        Step step = Step::observed;
    };

    struct Options {
        std::size_t alternatives = 1;  ///< the library is the first
        std::uint64_t seed = 0;        ///< of the order in which they are tried
        double share = 0.1;            ///< of the series' time that trying may cost, against the best that is known
        /// From earlier runs, for each alternative: its time as a share of the library's; 0: not known. Empty: nothing is.
        std::vector<double> known = {};
        bool divides = false;  ///< collective calls may be divided
    };
    explicit Series(Options options);

    /// Of the file that is opened next.
    [[nodiscard]] Turn next() const { return next_; }
    /// That file was opened: the turn after it is decided, by what was added so far. `elapsed_ns`: the program's time so far.
    void opened(std::int64_t elapsed_ns = 0);
    /// What became of a file, in the order in which they were opened. `elapsed_ns`: the program's time so far.
    void add(const Turn& turn, const Repetition& repetition, std::int64_t elapsed_ns);
    /// Alternatives are being compared on portions; else mover() has the whole of each call of a file that is `compared`.
    [[nodiscard]] bool compares() const { return trial_ && !trial_->is_over(); }
    [[nodiscard]] std::size_t mover() const { return trial_ ? trial_->best() : base_; }
    /// The last comparison, also when it is over; null: there was none.
    [[nodiscard]] const PortionTrial* trial() const { return trial_ ? &*trial_ : nullptr; }
    [[nodiscard]] std::int64_t trials() const { return trials_; }
    /// Where it compares; what all ranks agree on: a call, its portions, and the rest of it.
    void see(const PortionTrial::Divided& call);
    void add(const PortionTrial::Portion& portion);
    void add_rest(const PortionTrial::Divided& call, std::int64_t bytes);
    /// All is left to the library from now on. `why` is said in the report.
    void end(std::string why);

    /// How long a file of so many bytes takes at best; 0: not known.
    [[nodiscard]] double best_ns() const;
    [[nodiscard]] const std::string& why_ended() const { return why_ended_; }
    /// Changes with all that was added: ranks with different states have different ones.
    [[nodiscard]] std::uint64_t state() const { return state_; }

private:
    static constexpr std::size_t most_samples = 7;

    struct Alternative {
        std::vector<double> costs;  ///< ns a byte, of the last files
        std::int64_t begun = 0;     ///< files, also those not added yet
        bool dropped = false;
        double reference = 0;  ///< what it took when it was found to be the best, and
        double spread = 0;     ///< how much that varied; reference 0: not found to be
        int outside = 0;       ///< files in a row that took longer (above 0) or less (below 0) than that
    };

    [[nodiscard]] Turn decide();
    void begin_trial(const std::vector<bool>& left_out);
    void allow();
    void end_trial();
    void look_at_size(double librarys_ns);
    void add_compared(double took_ns);
    [[nodiscard]] std::size_t best() const;
    [[nodiscard]] bool may_try() const;
    [[nodiscard]] std::size_t next_untried() const;
    [[nodiscard]] bool is_told_apart(std::size_t alternative) const;
    void watch(Alternative& alternative, double cost);
    void begin_anew(std::size_t base);

    Options options_;
    std::vector<Alternative> alternatives_;
    std::optional<PortionTrial> trial_;
    double base_share_ = 1;  ///< of the library's time, by the last comparison
    std::int64_t trials_ = 0, files_ = 0;
    bool had_calls_ = false;          ///< that are compared on portions, in the file that was opened last
    std::vector<std::size_t> order_;  ///< of those that are tried
    Turn next_;
    std::size_t base_ = library;  ///< what the others are first compared with
    std::int64_t least_observed_ = 2;
    std::int64_t last_bytes_ = 0, last_calls_ = 0;
    double all_ns_ = 0;      ///< of all files
    double trying_ns_ = 0;   ///< what tried ones took longer than the best would have
    double against_ns_ = 0;  ///< what all took longer than the library would have; below zero: less
    double elapsed_ns_ = 0;
    int misses_ = 0, hits_ = 0;  ///< alternatives that were slower, or faster, than the library
    int anew_ = 0, empty_ = 0, small_ = 0;
    bool ended_ = false;
    std::string why_ended_;
    std::uint64_t state_ = 0;
};

}  // namespace ioweir::engine
