#include "engine/choice/choosing.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/checksum.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {
namespace {

/// A program with ever new names makes no more than these; files of others are the library's.
constexpr std::size_t most_series = 256;
/// A trace does not grow with a loop for ever.
constexpr std::int64_t most_told = 2000;

std::int64_t file_system_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct statfs info{};
    return ::statfs(directory.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.f_type) : 0;
}

void tell(const Engine& engine, ChosenSeries& one, const Series::Turn& turn, const Repetition& repetition) {
    const std::string& why = one.series.why_ended();
    const bool says_end = !why.empty() && !std::exchange(one.said_end, !why.empty());
    if (engine.host.chosen == nullptr || one.rank != 0 || (one.told == most_told && !says_end)) return;
    format::ChosenFigures<std::int64_t> figures{};
    figures.number = ++one.told;
    figures.elapsed_ns = repetition.ns;
    figures.bytes = repetition.bytes;
    figures.cut = repetition.cut ? 1 : 0;
    const bool compared = turn.step == Series::Step::compared;
    const Alternative& mover = one.alternatives[compared ? one.series.mover() : turn.alternative];
    const std::string words = one.digest + " " + mover.name + (why.empty() ? "" : " " + why);
    engine.host.chosen(one.pattern.c_str(), words.c_str(), static_cast<format::ChoiceStep>(turn.step),
                       static_cast<std::uint32_t>(one.ranks), figures);
}

/// Once a comparison is over, and when MPI ends: what each of the alternatives took.
void tell_portions(const Engine& engine, ChosenSeries& one) {
    const PortionTrial* const trial = one.series.trial();
    if (trial == nullptr || std::exchange(one.told_trials, one.series.trials()) == one.series.trials()) return;
    if (engine.host.chosen == nullptr || one.rank != 0) return;
    for (const PortionTrial::Portion& sum : trial->sums()) {
        if (sum.bytes == 0) continue;
        format::ChosenFigures<std::int64_t> figures{};
        figures.number = one.told;
        figures.elapsed_ns = sum.ns;
        figures.bytes = sum.bytes;
        const std::string words = one.digest + " " + one.alternatives[sum.alternative].name;
        engine.host.chosen(one.pattern.c_str(), words.c_str(), format::ChoiceStep::portion,
                           static_cast<std::uint32_t>(one.ranks), figures);
    }
}

/// Of all by which the turns of two ranks could differ: one of them may see another file system at the path, for example. Not of the
/// directory: ranks may call it differently.
std::uint64_t key_of(const std::string& digest, const Series::Options& options) {
    std::string text = digest + '\n' + std::to_string(options.seed) + '\n';
    const auto append = [&](double value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
    append(options.share);
    append(options.divides ? 1 : 0);
    for (const double share : options.known) append(share);
    return checksum(text.data(), text.size());
}

std::int64_t elapsed_ns(const Engine& engine) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - engine.begun)
        .count();
}

}  // namespace

static_assert(static_cast<int>(format::ChoiceStep::observed) == static_cast<int>(Series::Step::observed) &&
              static_cast<int>(format::ChoiceStep::tried) == static_cast<int>(Series::Step::tried) &&
              static_cast<int>(format::ChoiceStep::kept) == static_cast<int>(Series::Step::kept) &&
              static_cast<int>(format::ChoiceStep::ended) == static_cast<int>(Series::Step::ended) &&
              static_cast<int>(format::ChoiceStep::compared) == static_cast<int>(Series::Step::compared));

/// More than half as long again as the best takes for so much, and by more than a tenth of what that takes for the whole file.
bool Choosing::is_too_slow() const {
    if (best_ns <= 0 || usual_bytes <= 0 || turn.step != Series::Step::tried) return false;
    const double part = std::min(1.0, static_cast<double>(mine.bytes) / static_cast<double>(usual_bytes));
    return static_cast<double>(mine.ns) > 1.5 * part * best_ns + 0.1 * best_ns;
}

std::shared_ptr<ChosenSeries> find_series(Engine& engine, const policy::FileRule& rule, const std::string& path,
                                          int access_mode, int rank, int ranks) {
    if (rule.choosing != policy::Choosing::automatic || engine.threaded) return nullptr;
    std::string resolved;
    {
        const StorageScope scope(engine);
        resolved = without_links(path);
    }
    const std::string pattern = folded(resolved);
    const std::string name = pattern + '\n' + std::to_string(access_mode) + '\n' + std::to_string(ranks);
    if (const auto known = engine.series.find(name); known != engine.series.end()) return known->second;
    if (engine.series.size() == most_series) return nullptr;
    std::vector<Alternative> alternatives = alternatives_for(ranks);
    const std::string digest = digest_of(pattern, access_mode, ranks, file_system_of(resolved));
    Series::Options options;
    options.alternatives = alternatives.size();
    options.share = rule.choose_share.value_or(0.1);
    options.seed = engine.seed ^ checksum(digest.data(), digest.size());
    options.known = known_shares(rule.known, digest, alternatives);
    options.divides = may_take_turns(engine);
    const std::uint64_t key = key_of(digest, options);
    auto made = std::make_shared<ChosenSeries>(std::move(alternatives), std::move(options));
    made->pattern = folded(path);
    made->digest = digest;
    made->key = key;
    made->rank = rank;
    made->ranks = ranks;
    engine.series[name] = made;
    return made;
}

void put_writers(const ChosenSeries& series, planner::Strategy& strategy) {
    const Series::Turn turn = series.series.next();
    // Where all of them have portions, it is opened so that the ranks can exchange bytes.
    const bool compares = turn.step == Series::Step::compared;
    put_writers(compares ? series.alternatives.back() : series.alternatives[turn.alternative], strategy);
}

void put_writers(const Alternative& one, planner::Strategy& strategy) {
    strategy.writers = one.writers;
    strategy.domains = one.domains;
    strategy.order = planner::Order::sequential;
}

bool put_unmeasured(const ChosenSeries& series, planner::Strategy& strategy) {
    const Series::Turn turn = series.series.next();
    const std::size_t who = turn.step == Series::Step::compared ? series.series.mover() : turn.alternative;
    if (who == Series::library) return false;
    put_writers(series.alternatives[who], strategy);
    return true;
}

SeriesWords words_of(const Engine& engine, const ChosenSeries* series) {
    if (series == nullptr) return {};
    const std::uint64_t same = checksum(&series->key, sizeof series->key) ^ series->series.state() ^
                               (series->closed ? 1U : 0U) ^ static_cast<std::uint64_t>(series->opened) << 1U;
    const auto word = static_cast<std::int64_t>(same >> 1U);  // its negation can be told, too
    const Repetition mine = series->closed ? series->closed->mine : Repetition{};
    return {{word, -word, -mine.ns, -mine.bytes, -mine.calls, mine.cut ? 0 : 1, -elapsed_ns(engine),
             series->is_open ? 0 : 1, 1}};
}

bool is_one_series(const SeriesWords& least) { return least.words[8] != 0 && least.words[0] == -least.words[1]; }

std::shared_ptr<Choosing> begin_choosing(Engine& engine, const std::shared_ptr<ChosenSeries>& series,
                                         const SeriesWords& least, bool engaged) {
    if (!series) return nullptr;
    ChosenSeries& one = *series;
    if (!is_one_series(least)) {  // of another series, or with another history
        one.closed.reset();
        one.series.end("its ranks have opened different files");
        return nullptr;
    }
    if (least.words[7] == 0) return nullptr;  // the file before is still open: only one at a time is measured
    if (const auto before = std::exchange(one.closed, std::nullopt)) {
        const Repetition all{-least.words[2], -least.words[3], -least.words[4], least.words[5] == 0};
        one.series.add(before->turn, all, -least.words[6]);
        tell(engine, one, before->turn, all);
        if (!one.series.compares()) tell_portions(engine, one);
    }
    auto choosing = std::make_shared<Choosing>();
    choosing->series = series;
    choosing->turn = one.series.next();
    const bool by_library =
        choosing->turn.alternative == Series::library && choosing->turn.step != Series::Step::compared;
    if (!by_library && !engaged) {
        one.series.end("the engine cannot move its files");
        return nullptr;
    }
    choosing->best_ns = one.series.best_ns();
    choosing->usual_bytes = one.last_bytes;
    one.series.opened(-least.words[6]);
    ++one.opened;
    if (choosing->turn.step == Series::Step::ended) return nullptr;
    one.is_open = true;
    return choosing;
}

void stop_choosing(Handle& handle, const char* why) {
    const auto choosing = std::exchange(handle.choosing, nullptr);
    if (!choosing) return;
    choosing->series->is_open = false;
    choosing->series->series.end(why);
}

void end_choosing(const Engine& engine, Handle& handle) {
    const auto choosing = std::exchange(handle.choosing, nullptr);
    if (!choosing) return;
    ChosenSeries& one = *choosing->series;
    // With verification each call is looked at, and counted.
    if (!handle.engaged && !engine.verify && choosing->mine.calls > 0)
        handle.passed.count(handle.refusal, choosing->mine.calls);
    one.is_open = false;
    one.last_bytes = choosing->mine.bytes;
    one.closed = ChosenSeries::Closed{choosing->turn, choosing->mine};
}

void tell_last_choices(Engine& engine) {
    for (const auto& [name, one] : engine.series) {
        if (const auto last = std::exchange(one->closed, std::nullopt)) tell(engine, *one, last->turn, last->mine);
        tell_portions(engine, *one);
    }
}

}  // namespace ioweir::engine
