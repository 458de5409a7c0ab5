#include "sim/simulation.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "planner/placement.hpp"
#include "planner/plan.hpp"
#include "sim/events.hpp"
#include "sim/file_locks.hpp"
#include "sim/indexed_pattern.hpp"
#include "sim/jobs.hpp"
#include "sim/page_cache.hpp"
#include "sim/processors.hpp"
#include "sim/random.hpp"

namespace ioweir::sim {
namespace {

using layout::StripeLayout;
using planner::MappingKind;
using planner::Strategy;

/// The files of a run, made when they are written to.
class Files {
public:
    Files(const Machine& machine, const Strategy& strategy, std::vector<std::int32_t> chosen_targets)
        : figures_(machine.files),
          targets_(machine.targets.count),
          kind_(strategy.mapping.kind),
          chosen_(kind_ == MappingKind::subfiles || kind_ == MappingKind::log ? std::move(chosen_targets)
                                                                              : std::vector<std::int32_t>{}),
          in_folder_(machine.targets.folders && kind_ != MappingKind::subfiles && chosen_.empty()) {
        stripe_bytes_ = strategy.stripe.size_bytes > 0 ? strategy.stripe.size_bytes : figures_.stripe_bytes;
        asked_ = strategy.stripe.count > 0 ? strategy.stripe.count : 0;
        if (kind_ != MappingKind::subfiles) return;
        asked_ = strategy.mapping.count;
        if (asked_ == 0) asked_ = std::ssize(chosen_);
        if (asked_ == 0 && machine.targets.folders) asked_ = targets_;
    }

    /// The stripes that plans go by.
    [[nodiscard]] StripeLayout shared_stripes() const { return stripes_of(0, is_divided() ? small() : large()); }

    Place place(std::int64_t number, layout::Extent extent) {
        if (kind_ != MappingKind::log) return {&file(is_divided() ? number : 0), extent.offset};
        SimulatedFile& log = file(number);
        std::int64_t& end = ends_[number];
        return {&log, std::exchange(end, end + extent.length)};
    }
    /// Reading finds what a log has in the order in which it was written.
    void rewind() { ends_.clear(); }

private:
    [[nodiscard]] bool is_divided() const { return kind_ == MappingKind::grouped || kind_ == MappingKind::log; }
    [[nodiscard]] std::int64_t large() const {
        std::int64_t count = asked_ > 0 ? asked_ : figures_.stripe_count;
        // Each of several subfiles is a file of its own.
        if (figures_.most_stripes > 0 && kind_ != MappingKind::subfiles) {
            if (count == 0) count = targets_;
            count = std::min<std::int64_t>(count, figures_.most_stripes);
        }
        return bounded(count);
    }
    [[nodiscard]] std::int64_t small() const { return bounded(figures_.small_stripe_count); }
    [[nodiscard]] std::int64_t bounded(std::int64_t count) const {
        if (in_folder_) return 1;
        return count > 0 ? std::min<std::int64_t>(count, targets_) : targets_;
    }
    [[nodiscard]] StripeLayout stripes_of(std::int64_t number, std::int64_t count) const {
        std::vector<std::int32_t> chosen(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t place = number * count + i;
            chosen[static_cast<std::size_t>(i)] = chosen_.empty()
                                                      ? static_cast<std::int32_t>(in_folder_ ? 0 : place % targets_)
                                                      : chosen_[static_cast<std::size_t>(place % std::ssize(chosen_))];
        }
        if (count == 1) return StripeLayout::unstriped(chosen.front());
        return StripeLayout::make(stripe_bytes_, std::move(chosen)).take();
    }
    SimulatedFile& file(std::int64_t number) {
        const auto found = files_.find(number);
        if (found != files_.end()) return found->second;
        const StripeLayout stripes = stripes_of(number, is_divided() ? small() : large());
        SimulatedFile& made = files_.emplace(number, SimulatedFile{stripes, next_object_, number}).first->second;
        next_object_ += static_cast<std::uint32_t>(stripes.stripe_count());
        return made;
    }

    FileFigures figures_;
    std::int64_t targets_;
    MappingKind kind_;
    std::vector<std::int32_t> chosen_;  ///< targets of subfiles or logs
    bool in_folder_;                    ///< all files lie on the one target that is their folder
    std::int64_t stripe_bytes_ = 0;
    std::int64_t asked_ = 0;  ///< stripes, 0: not said
    std::map<std::int64_t, SimulatedFile> files_;
    std::map<std::int64_t, std::int64_t> ends_;
    std::uint32_t next_object_ = 0;
};

/// Until so many things have happened.
struct Countdown final : Actor {
    explicit Countdown(int count) : left(count) {}
    void happen(std::uint32_t, std::uint32_t) override { over = --left == 0; }
    int left;
    bool over = false;
};

class Simulation final : public Actor {
public:
    Simulation(const Machine& machine, const Workload& workload, const Strategy& strategy, std::uint64_t seed,
               Observer* observer)
        : stop_(workload.stopped),
          machine_(machine),
          workload_(workload),
          strategy_(strategy),
          nodes_(workload.topology ? workload.topology->nodes() : (workload.ranks - 1) / machine.node.ranks + 1),
          topology_(workload.topology ? *workload.topology
                                      : planner::Topology::blocks(workload.ranks, nodes_, machine.node.processors)),
          files_(machine, strategy, workload.chosen_targets),
          seed_(seed),
          skew_(seed, Part::rank_skew, 0),
          events_(&stop_),
          fabric_(events_, machine, nodes_),
          targets_(events_, machine, seed),
          locks_(events_, machine),
          clients_(events_, machine, nodes_, fabric_, targets_, locks_),
          processors_(events_, machine, topology_),
          jobs_(events_, machine, targets_, seed),
          observer_(observer) {
        // "drawn for one node": each has so many (planner/strategies/behind.cpp).
        if (strategy_.writers.kind == planner::WritersKind::behind) strategy_.writers.count *= nodes_;
    }

    Result<SimulationResult> run() {
        if (workload_.writes)
            if (auto error = phase(true, result_.write)) return *error;
        files_.rewind();
        if (workload_.reads)
            if (auto error = phase(false, result_.read)) return *error;
        result_.strategy = strategy_;
        result_.events = events_.happened();
        return std::move(result_);
    }

    void happen(std::uint32_t, std::uint32_t) override { happened_ = true; }

private:
    std::optional<Error> phase(bool writes, PhaseResult& result) {
        const Seconds began = events_.now();
        const LockWork locks_before = locks_.work();
        const std::int64_t requests_before = clients_.requests();
        const std::vector<TargetWork> targets_before = targets_.work();
        open(result, writes);
        Seconds computed = 0;
        const bool behind = writes && strategy_.writers.kind == planner::WritersKind::behind;
        for (std::int64_t call = 0; call < workload_.calls; ++call) {
            if (auto error = this->call(call, writes, behind, result)) return error;
            const Seconds spent = writes ? computed_behind(call) : 0;
            if (spent > 0) wait_until(events_.now() + spent);
            computed += spent;
        }
        const Seconds returned = events_.now();
        for (const auto& call : under_way_) wait_for(call->over);
        for (const auto& call : under_way_) add(call->collective.work(), result);
        under_way_.clear();
        if (writes) agree_on_flushing();
        happened_ = false;
        clients_.settle_all({this, 0, 0});
        events_.run_until(happened_);
        if (observer_ != nullptr) observer_->closed(writes, returned, events_.now());
        result.seconds = events_.now() - began - computed;
        result.perceived_s = (behind ? returned : events_.now()) - began - computed;
        result.requests = clients_.requests() - requests_before;
        result.locks = {locks_.work().requests - locks_before.requests,
                        locks_.work().handovers - locks_before.handovers};
        result.targets = targets_.work();
        for (std::size_t i = 0; i < result.targets.size(); ++i) {
            result.targets[i].requests -= targets_before[i].requests;
            result.targets[i].bytes -= targets_before[i].bytes;
            result.targets[i].seeks -= targets_before[i].seeks;
            result.targets[i].busy_s -= targets_before[i].busy_s;
            result.targets[i].last_s -= began;
        }
        return std::nullopt;
    }

    /// What ranks do themselves when they flush a file.
    void agree_on_flushing() {
        const bool has_index =
            strategy_.mapping.kind == MappingKind::grouped || strategy_.mapping.kind == MappingKind::log;
        const Seconds each = machine_.processor.sync_s + (has_index ? machine_.processor.index_s : 0);
        if (!processors_.modelled() || each == 0) return;
        Countdown all(workload_.ranks);
        for (int rank = 0; rank < workload_.ranks; ++rank) processors_.work(rank, each, {&all, 0, 0});
        events_.run_until(all.over);
    }

    [[nodiscard]] Seconds computed_behind(std::int64_t call) const {
        if (!workload_.computing.empty()) return workload_.computing[static_cast<std::size_t>(call)];
        return call + 1 < workload_.calls ? workload_.compute_s : 0;
    }

    /// Every process opens the file; files of groups and logs are made by one each.
    void open(PhaseResult& result, bool writes) {
        std::int64_t made = 1;
        if (strategy_.mapping.kind == MappingKind::grouped) made = strategy_.mapping.count;
        if (strategy_.mapping.kind == MappingKind::subfiles) made = std::max<std::int64_t>(1, strategy_.mapping.count);
        if (strategy_.mapping.kind == MappingKind::log) made = workload_.ranks;
        made = std::min<std::int64_t>(made, workload_.ranks);
        const Seconds began = events_.now();
        if (writes && workload_.probing_s > 0) wait_until(began + workload_.probing_s);
        Metadata metadata(events_, machine_, seed_);
        happened_ = false;
        // Reading finds the files that are there.
        metadata.open_all(writes ? made : 0, workload_.ranks, {this, 0, 0});
        events_.run_until(happened_);
        result.open_s = events_.now() - began;
        result.metadata = metadata.work();
        if (observer_ != nullptr) observer_->opened(writes, began, metadata.opened_at());
    }

    struct UnderWay final : Actor {
        explicit UnderWay(Simulation& its)
            : collective(its.events_, its.fabric_, its.clients_, its.processors_, its.file_locks_, its.page_cache_,
                         its.machine_, its.workload_.in_step) {}
        enum What : std::uint32_t { all_handed_over, all_over };
        void happen(std::uint32_t what, std::uint32_t) override { (what == all_over ? over : handed_over) = true; }

        std::shared_ptr<const layout::AccessPattern> pattern;
        std::unique_ptr<IndexedPattern> indexed;
        planner::Plan plan;
        Collective collective;
        std::int64_t part_bytes = 0;  ///< of the rank with most
        bool handed_over = false, over = false;
    };

    std::optional<Error> call(std::int64_t number, bool writes, bool behind, PhaseResult& result) {
        events_.pass();
        auto under_way = std::make_unique<UnderWay>(*this);
        under_way->pattern = workload_.pattern(number);
        under_way->indexed = std::make_unique<IndexedPattern>(*under_way->pattern, &stop_);
        const IndexedPattern& pattern = *under_way->indexed;
        const std::vector<planner::RankSummary> said = planner::summaries_of(pattern);
        const auto request = planner::RequestSummary::of(said, writes);
        result.bytes += request.bytes;
        if (request.bytes == 0) return std::nullopt;
        for (const planner::RankSummary& rank : said)
            under_way->part_bytes = std::max(under_way->part_bytes, rank.bytes);
        if (behind) behind = make_room(under_way->part_bytes, result);
        const bool by_strategy = writes && (behind || strategy_.writers.kind != planner::WritersKind::behind);
        Strategy strategy = by_strategy ? strategy_ : by_itself();
        if (workload_.in_step && !machine_.library.collects_apart && are_apart(said))
            strategy.writers = {planner::WritersKind::everyone, 0};
        auto made = planner::plan(request, topology_, files_.shared_stripes(), {}, strategy);
        if (!made) return made.error();
        under_way->plan = made.take();
        if (number == 0 && writes) result_.remarks = under_way->plan.remarks;
        const planner::Plan& plan = under_way->plan;
        const bool joins = writes && strategy_.mapping.kind == MappingKind::log;
        CollectiveCall call;
        call.plan = &plan;
        call.pattern = &pattern;
        call.topology = &topology_;
        // What all ranks fill together, a group of them need not.
        call.dense = request.dense && strategy_.mapping.kind != MappingKind::grouped;
        call.behind = behind;
        call.in_step = workload_.in_step;
        call.joins = joins;
        call.arrivals = arrivals();
        call.number = number;
        call.observer = observer_;
        if (observer_ != nullptr) observer_->calls(number, plan, pattern);
        call.place = [this, &plan](std::int64_t writer, layout::Extent extent) {
            return files_.place(plan.file(writer), extent);
        };
        const Seconds began = events_.now();
        UnderWay& its = *under_way_.emplace_back(std::move(under_way));
        its.collective.begin(std::move(call), {&its, UnderWay::all_handed_over, 0}, {&its, UnderWay::all_over, 0});
        if (behind) {
            wait_for(its.handed_over);
            return std::nullopt;
        }
        wait_for(its.over);
        result.writer_seconds += static_cast<double>(its.collective.work().writers) * (events_.now() - began);
        add(its.collective.work(), result);
        under_way_.clear();
        return std::nullopt;
    }

    /// Waits until the memory for bytes that wait takes those of another call, too. False: they never fit, and each rank writes its own bytes
    /// behind all that waits (engine/behind). All ranks wait for the one with most.
    bool make_room(std::int64_t part_bytes, PhaseResult& result) {
        const std::int64_t most = strategy_.buffer_bytes > 0 ? strategy_.buffer_bytes : planner::usual_behind_bytes;
        const bool fits = part_bytes <= most;
        const auto is_full = [&] {
            std::int64_t waiting = part_bytes;
            for (const auto& call : under_way_) waiting += call->over ? 0 : call->part_bytes;
            return waiting > most;
        };
        while (!under_way_.empty() && (under_way_.front()->over || !fits || is_full())) {
            wait_for(under_way_.front()->over);
            add(under_way_.front()->collective.work(), result);
            under_way_.pop_front();
        }
        return fits;
    }

    /// Does each rank's part begin behind the end of the one before? ROMIO lets each move its own then (ad_write_coll.c: interleave_count).
    static bool are_apart(const std::vector<planner::RankSummary>& said) {
        std::int64_t end = 0;
        for (const planner::RankSummary& rank : said) {
            if (rank.bytes == 0) continue;
            if (rank.hull.offset < end) return false;
            end = rank.hull.end();
        }
        return true;
    }

    /// What was written behind the program is read by each rank, and what its memory does not take is written by each.
    [[nodiscard]] Strategy by_itself() const {
        Strategy strategy = strategy_;
        if (strategy.writers.kind == planner::WritersKind::behind)
            strategy.writers = {planner::WritersKind::everyone, 0};
        return strategy;
    }

    [[nodiscard]] std::vector<Seconds> arrivals() {
        std::vector<Seconds> arrivals(static_cast<std::size_t>(workload_.ranks), events_.now());
        if (machine_.skew_s > 0)
            for (Seconds& arrival : arrivals) arrival += skew_.exponential(machine_.skew_s);
        return arrivals;
    }

    static void add(const CollectiveWork& work, PhaseResult& result) {
        result.work.rounds += work.rounds;
        result.work.messages += work.messages;
        result.work.operations += work.operations;
        result.work.bytes += work.bytes;
        result.work.writers = std::max(result.work.writers, work.writers);
        result.work.exchange_s += work.exchange_s;
        result.work.wait_s += work.wait_s;
        result.work.lock_s += work.lock_s;
        result.work.storage_s += work.storage_s;
    }

    void wait_for(const bool& what) { events_.run_until(what); }
    void wait_until(Seconds time) {
        happened_ = false;
        events_.at(time, {this, 0, 0});
        events_.run_until(happened_);
    }

    StopSign stop_;
    Machine machine_;
    const Workload& workload_;
    Strategy strategy_;
    int nodes_;
    planner::Topology topology_;
    Files files_;
    std::uint64_t seed_;
    RandomStream skew_;
    Events events_;
    Fabric fabric_;
    Targets targets_;
    ExtentLocks locks_;
    Clients clients_;
    Processors processors_;
    FileLocks file_locks_;
    PageCache page_cache_;
    Jobs jobs_;
    std::deque<std::unique_ptr<UnderWay>> under_way_;
    SimulationResult result_;
    Observer* observer_;
    bool happened_ = false;
};

}  // namespace

Result<SimulationResult> simulate(const Machine& machine, const Workload& workload, const planner::Strategy& strategy,
                                  std::uint64_t seed, Observer* observer) {
    if (auto error = check_machine(machine)) return *error;
    if (workload.ranks < 1 || workload.calls < 1)
        return Error{"nothing to simulate",
                     std::to_string(workload.ranks) + " ranks, " + std::to_string(workload.calls) + " calls",
                     "give at least one rank and one call"};
    if (workload.ranks > most_ranks)
        return Error{"more ranks than are simulated", std::to_string(workload.ranks),
                     "give 1 to " + std::to_string(most_ranks)};
    if (!(workload.compute_s >= 0 && workload.compute_s <= most_seconds))
        return Error{"a time of computing that cannot be", std::to_string(workload.compute_s) + " s",
                     "give 0 to " + std::to_string(static_cast<std::int64_t>(most_seconds)) + " s (10 years)"};
    const bool may_be = std::all_of(workload.computing.begin(), workload.computing.end(),
                                    [](double spent) { return spent >= 0 && spent <= most_seconds; });
    if (!workload.computing.empty() && (!may_be || std::ssize(workload.computing) != workload.calls))
        return Error{
            "times of computing that cannot be",
            std::to_string(workload.computing.size()) + " of them, " + std::to_string(workload.calls) + " calls",
            "give none, or one behind each call, 0 to 10 years"};
    for (const std::int32_t target : workload.chosen_targets)
        if (target < 0 || target >= machine.targets.count)
            return Error{"a file on a target that is not there", std::to_string(target),
                         "give 0 to " + std::to_string(machine.targets.count - 1)};
    if (strategy.mapping.kind == MappingKind::grouped && strategy.mapping.count > workload.ranks)
        return Error{"more files than ranks",
                     to_text(strategy.mapping) + " with " + std::to_string(workload.ranks) + " ranks",
                     "give at most one file a rank"};
    if (auto error = planner::why_not_executable(strategy)) return *error;
    try {
        return Simulation(machine, workload, strategy, seed, observer).run();
    } catch (const Stopped&) {
        return Error{"the simulation was stopped", "", ""};
    }
}

}  // namespace ioweir::sim
