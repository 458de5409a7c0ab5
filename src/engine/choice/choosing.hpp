// Who moves the files of a loop, where the plan leaves that to what is measured (choose = "auto"): what the ranks of a file know of its
// series, what they tell each other of the file before when they open the next one, and what is measured meanwhile.
// What does not live here: the decision (series.hpp), opening files (open.cpp).
//
// Promises:
// - A file, or a portion of a call, is moved by the same writers, or by the library, on all ranks: they have agreed that they know the same before.
// - No collective call is made for whole files: what the ranks tell each other goes along where they agree anyway, when a file is opened and when its
//   view is set. Ranks that compare alternatives on portions agree on these (calls/in_portions.cpp).
// - Files that are the library's from the beginning are opened with the program's own hints, and nothing of the engine happens in them but that calls are timed.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/choice/alternatives.hpp"
#include "engine/choice/series.hpp"
#include "policy/plan_file.hpp"

namespace ioweir::engine {

class Engine;
struct Handle;

/// A series as a process knows it.
struct ChosenSeries {
    ChosenSeries(std::vector<Alternative> all, Series::Options options)
        : alternatives(std::move(all)), series(std::move(options)) {}

    std::string pattern, digest;
    std::uint64_t key =
        0;  ///< of what its turns follow from, besides files: ranks with one key and state come to the same
    std::vector<Alternative> alternatives;
    Series series;
    int rank = 0, ranks = 1;
    std::int64_t opened = 0;
    bool is_open = false;
    /// The file before, of which the others do not know yet.
    struct Closed {
        Series::Turn turn;
        Repetition mine;
    };
    std::optional<Closed> closed;
    std::int64_t last_bytes = 0;   ///< of this rank, in the file before
    std::int64_t told = 0;         ///< files in the trace
    std::int64_t told_trials = 0;  ///< comparisons
    bool said_end = false;
};

/// What is measured of one file, on this rank.
struct Choosing {
    std::shared_ptr<ChosenSeries> series;
    Series::Turn turn;
    Repetition mine;
    double best_ns = 0;            ///< 0: not known
    std::int64_t usual_bytes = 0;  ///< of this rank
    /// Much slower than the best so far: by this rank's calls.
    [[nodiscard]] bool is_too_slow() const;
};

/// Takes the time of a call; null: of none.
class TimedCall {
public:
    explicit TimedCall(Choosing* choosing) : choosing_(choosing) {
        if (choosing_ != nullptr) begin_ = Clock::now();
    }
    ~TimedCall() {
        if (choosing_ == nullptr) return;
        choosing_->mine.ns += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count();
    }
    TimedCall(const TimedCall&) = delete;
    TimedCall& operator=(const TimedCall&) = delete;

private:
    using Clock = std::chrono::steady_clock;
    Choosing* choosing_;
    Clock::time_point begin_;
};

/// What a rank says of a series when it opens a file; the least of all ranks counts. All 0: it knows of none.
struct SeriesWords {
    static constexpr std::size_t count = 9;
    std::array<std::int64_t, count> words{};
};

/// Before a file is opened; null: nothing is chosen.
[[nodiscard]] std::shared_ptr<ChosenSeries> find_series(Engine& engine, const policy::FileRule& rule,
                                                        const std::string& path, int access_mode, int rank, int ranks);
/// Writers that are chosen take the place of the rule's.
void put_writers(const Alternative& alternative, planner::Strategy& strategy);
/// Those of the file that is opened next.
void put_writers(const ChosenSeries& series, planner::Strategy& strategy);
/// The same for a file of which nothing is measured, after begin_choosing(). False: the library moves it.
[[nodiscard]] bool put_unmeasured(const ChosenSeries& series, planner::Strategy& strategy);
[[nodiscard]] SeriesWords words_of(const Engine& engine, const ChosenSeries* series);
/// By the least of all ranks' words: do all know the same of the same series, and so have the same writers in mind?
[[nodiscard]] bool is_one_series(const SeriesWords& least);
/// When all ranks have agreed on the least of their words, and whether the file is the engine's. What is measured of it; null: nothing is.
[[nodiscard]] std::shared_ptr<Choosing> begin_choosing(Engine& engine, const std::shared_ptr<ChosenSeries>& series,
                                                       const SeriesWords& least, bool engaged);
/// On all ranks alike: nothing is measured of this file, and all of its series is left to the library. Nothing happens where nothing was measured.
void stop_choosing(Handle& handle, const char* why);
/// After the file was closed.
void end_choosing(const Engine& engine, Handle& handle);
/// When MPI ends: files of which nobody was told yet.
void tell_last_choices(Engine& engine);

/// By what the series of this process are found.
using SeriesByName = std::map<std::string, std::shared_ptr<ChosenSeries>>;

}  // namespace ioweir::engine
