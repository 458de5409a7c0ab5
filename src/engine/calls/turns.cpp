#include "engine/calls/turns.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

using format::CallKind;

enum class Turn { engine, library, looked_at, measured_engine, measured_library };

/// Of 0 .. 7: by powers of eight.
std::size_t size_class(std::int64_t bytes) {
    const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))));
    return static_cast<std::size_t>(std::clamp((bits - 4) / 3, 0, static_cast<int>(Choices::sizes) - 1));
}

std::size_t kind_of(const Call& call) {
    return (call.collective ? 4U : 0U) + (call.direction == Direction::write ? 2U : 0U) +
           (call.explicit_offset ? 1U : 0U);
}
static_assert(static_cast<int>(CallKind::write_at_all) == 7 && static_cast<int>(CallKind::read_all) == 4 &&
              static_cast<int>(CallKind::write) == 2 && static_cast<int>(CallKind::read_at) == 1);

bool is_crowded(const Handle& handle) {
    return handle.size > 1 && handle.ranks->team && handle.ranks->team->group->topology().crowded;
}

/// Collective where the calls are: what was found, where the trial is over. A collective call has taken what its slowest rank took.
std::optional<Trial::Result> end_trial(const Handle& handle, const Choice& choice, bool collective) {
    if (!collective || handle.size == 1) return choice.trial.result();
    Trial all = choice.trial;
    const std::span<std::int64_t> figures = all.figures();
    // What the engine has won so far is not lost where ranks cannot tell each other.
    if (PMPI_Allreduce(MPI_IN_PLACE, figures.data(), static_cast<int>(figures.size()), MPI_INT64_T, MPI_MAX,
                       handle.comm) != MPI_SUCCESS)
        return Trial::Result{};
    return all.result();
}

/// Collective where the calls are: whether the engine's second call was long and fast; it took what its slowest rank took.
bool has_time(const Engine& engine, const Handle& handle, const Choice& choice, bool collective) {
    auto [ns, bytes] = choice.look;
    if (collective) {
        // A program with one call a file may make no more than these: the library's reduction, whose ranks spin for a processor that others need,
        // would be a third of such a call.
        const exchange::Group::Range all = range_of_all(handle, {-ns, bytes});
        ns = -all.least;
        bytes = all.most;
    }
    return ns >= engine.trial_pace.long_call_ns && bytes / (ns / 1000 + 1) >= engine.trial_pace.fast_bytes_per_us;
}

/// Collective where the calls are, between two pairs of a trial: it is over, or goes on, where there is time after some calls.
void go_on(const Engine& engine, const Handle& handle, Choice& choice, bool collective) {
    choice.is_apart = true;
    const auto found = choice.trial.may_end() ? end_trial(handle, choice, collective) : std::nullopt;
    if (!found) {
        if (choice.has_time) choice.calls_left = engine.trial_pace.between;
        return;
    }
    constexpr std::int64_t most_calls = std::int64_t{1} << 40;
    choice.found = *found;
    choice.calls_left = choice.next_calls;
    choice.next_calls = std::min(4 * choice.next_calls, most_calls);
    choice.trial = Trial(!handle.choices->acts);
    ++choice.trials;
}

Turn next_turn(const Engine& engine, const Handle& handle, Choice& choice, bool collective) {
    if (choice.calls_left == 0 && !choice.is_looked_at && collective && is_crowded(handle) &&
        !std::exchange(choice.has_waited, true))
        choice.calls_left = engine.trial_pace.before_look_crowded;
    if (choice.calls_left == 0 && !choice.is_looked_at) {
        if (choice.look[0] < 0) return Turn::looked_at;
        choice.is_looked_at = true;
        choice.has_time = has_time(engine, handle, choice, collective);
        const TrialPace& pace = engine.trial_pace;
        if (choice.has_time) choice.calls_left = is_crowded(handle) ? pace.before_crowded : pace.before;
    }
    if (choice.calls_left == 0 && !choice.is_apart && choice.trial.is_between_pairs())
        go_on(engine, handle, choice, collective);
    if (choice.calls_left > 0) {
        --choice.calls_left;
        return handle.choices->acts && choice.found.library_is_faster ? Turn::library : Turn::engine;
    }
    choice.is_apart = false;
    return choice.trial.turn() == Trial::By::engine ? Turn::measured_engine : Turn::measured_library;
}

using Clock = std::chrono::steady_clock;

/// Tells at its end how many nanoseconds a call took, whatever comes of it.
template <typename Tell>
class Timed {
public:
    explicit Timed(Tell tell) : tell_(std::move(tell)), begin_(Clock::now()) {}
    ~Timed() { tell_(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count()); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

private:
    Tell tell_;
    Clock::time_point begin_;
};

auto in_trial(Choice& choice, std::int64_t bytes) {
    return Timed([&choice, bytes](std::int64_t ns) { choice.trial.add(ns, bytes); });
}

/// The engine's call before the first trial.
auto looked_at(Choice& choice, std::int64_t bytes) {
    return Timed([&choice, bytes](std::int64_t ns) { choice.look = {ns, bytes}; });
}

/// The choice for an independent call; null: there is none.
Choice* own_choice(const Handle& handle, const Call& call, std::int64_t bytes) {
    Choices& choices = *handle.choices;
    const layout::FlatType& filetype = *handle.view.filetype;
    const std::int64_t piece =
        filetype.contiguous ? INT64_MAX : filetype.size / std::max<std::int64_t>(filetype.runs, 1);
    const auto key = static_cast<std::uint32_t>(kind_of(call) | size_class(bytes) << 3U | size_class(piece) << 6U);
    const auto known =
        std::find_if(choices.own.begin(), choices.own.end(), [&](const auto& one) { return one.key == key; });
    if (known != choices.own.end()) return &known->choice;
    if (choices.own.size() == choices.most_own) return nullptr;
    return &choices.own.emplace_back(Choices::Own{key, Choice(choices.acts)}).choice;
}

}  // namespace

void meet(const Handle& handle) {
    if (handle.size == 1) return;
    if (is_crowded(handle))
        (void)handle.ranks->team->group->all(true);
    else
        PMPI_Barrier(handle.comm);
}

int by_library(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> real) {
    settle_size(engine, *handle.file);
    int result = MPI_SUCCESS;
    {
        const LentPointer lent(handle, call.fh, !call.explicit_offset);
        result = real();
    }
    // Two-phase calls return before another rank has written this one's bytes, or has written back what lay between them. The library's next
    // call would come after that, by whom it has the bytes moved; the engine's would not.
    if (call.collective && call.direction == Direction::write) meet(handle);
    return result;
}

exchange::Group::Range range_of_all(const Handle& handle, exchange::Group::Range mine) {
    if (handle.size == 1) return mine;
    if (is_crowded(handle)) return handle.ranks->team->group->range(mine);
    std::int64_t words[] = {mine.least, -mine.most};
    if (PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_INT64_T, MPI_MIN, handle.comm) != MPI_SUCCESS) return {0, 0};
    return {words[0], -words[1]};
}

Choices::Choices(bool is_to_act) : acts(is_to_act), most_own(is_to_act ? 64 : 8) {
    for (auto& of_a_size : together) of_a_size.fill(Choice(acts));
    own.reserve(most_own);
}

bool may_take_turns(const Engine& engine) { return engine.weighs && !engine.verify && !engine.threaded; }

std::optional<int> take_turn_alone(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes,
                                   FunctionRef<int()> by_engine, FunctionRef<int()> real) {
    const bool writes = call.direction == Direction::write;
    if (!handle.choices || call.collective || !call.blocks || bytes == 0) return {};
    if (writes && !handle.view.filetype->contiguous) return {};
    Choice* const choice = own_choice(handle, call, bytes);
    if (choice == nullptr) return {};
    Weighed& weighed = handle.weighed[kind_of(call)];
    weighed.choice = choice;
    switch (next_turn(engine, handle, *choice, false)) {
        case Turn::engine:
            return {};
        case Turn::looked_at: {
            const auto timed = looked_at(*choice, bytes);
            return by_engine();
        }
        case Turn::library:
            handle.left_calls[writes ? 1 : 0] = {choice, call.datatype, call.count, call.explicit_offset};
            ++weighed.left;
            return by_library(engine, handle, call, real);
        case Turn::measured_engine: {
            const auto timed = in_trial(*choice, bytes);
            return by_engine();
        }
        case Turn::measured_library: {
            ++weighed.tried;
            const auto timed = in_trial(*choice, bytes);
            return by_library(engine, handle, call, real);
        }
    }
    return {};
}

int transfer_in_turns(Engine& engine, Handle& handle, Call call, FunctionRef<int()> same,
                      FunctionRef<int()> independent) {
    if (!handle.choices) return transfer(engine, handle, call, same, independent);
    call.blocks = true;
    if (!call.collective) {
        const LeftCall& left = handle.left_calls[call.direction == Direction::write ? 1 : 0];
        if (left.choice == nullptr || handle.library_atomic || left.datatype != call.datatype ||
            left.count != call.count || left.explicit_offset != call.explicit_offset || left.choice->calls_left == 0)
            return transfer(engine, handle, call, same, independent);
        --left.choice->calls_left;
        ++handle.weighed[kind_of(call)].left;
        return by_library(engine, handle, call, same);
    }
    // All ranks alike.
    if (handle.library_atomic || !handle.view_refusal.empty()) return transfer(engine, handle, call, same, independent);
    const bool writes = call.direction == Direction::write;
    Choice& choice = handle.choices->together[size_class(handle.view_piece_bytes)][writes ? 1 : 0];
    Weighed& weighed = handle.weighed[kind_of(call)];
    weighed.choice = &choice;
    switch (next_turn(engine, handle, choice, true)) {
        case Turn::engine:
            break;
        case Turn::looked_at: {
            meet(handle);
            const auto timed = looked_at(choice, bytes_asked(call));
            return transfer(engine, handle, call, same, independent);
        }
        case Turn::library:
            ++weighed.left;
            return by_library(engine, handle, call, same);
        case Turn::measured_engine: {
            meet(handle);  // who comes late is not to be counted against whoever waits for it
            const auto timed = in_trial(choice, bytes_asked(call));
            return transfer(engine, handle, call, same, independent);
        }
        case Turn::measured_library: {
            ++weighed.tried;
            meet(handle);
            const auto timed = in_trial(choice, bytes_asked(call));
            return by_library(engine, handle, call, same);
        }
    }
    return transfer(engine, handle, call, same, independent);
}

void begin_turns(Engine& engine, Handle& handle, std::int64_t rule_line) {
    if (handle.container || handle.behind || handle.rebalance || handle.sequential) return;
    if (handle.strategy.writers.kind != planner::WritersKind::automatic) {
        handle.choices = std::make_shared<Choices>(false);
        return;
    }
    std::shared_ptr<Choices>& choices =
        handle.size > 1 ? handle.ranks->choices[rule_line] : engine.choices_alone[rule_line];
    if (!choices) choices = std::make_shared<Choices>(true);
    handle.choices = choices;
}

void note_turns(const Engine& engine, const Handle& handle) {
    if (engine.host.weighed == nullptr) return;
    for (std::size_t kind = 0; kind < std::size(handle.weighed); ++kind) {
        const Weighed& one = handle.weighed[kind];
        if (one.choice == nullptr || one.tried + one.left == 0 || (kind >= 4 && handle.rank != 0)) continue;
        const Trial::Result& found = one.choice->found;
        format::WeighedFigures<std::int64_t> figures{};
        figures.pairs = found.pairs;
        figures.engine_ns = found.engine_ns;
        figures.library_ns = found.library_ns;
        figures.bytes = found.bytes;
        figures.tried = one.tried;
        figures.left = one.left;
        auto chosen = one.choice->trials == 0 ? format::Chosen::undecided : format::Chosen::engine;
        if (found.library_is_faster) chosen = handle.choices->acts ? format::Chosen::library : format::Chosen::plan;
        engine.host.weighed(handle.path.c_str(), static_cast<CallKind>(kind), chosen, figures);
    }
}

}  // namespace ioweir::engine
