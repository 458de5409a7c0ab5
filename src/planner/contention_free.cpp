// The order as a sequence of integral circulations (see contention_free.hpp).
//
// Step by step. // With r rounds left, a round is good when the remainder still fits into r - 1: every domain with `load` items must serve at least
// max(0, load - capacity * (r - 1)) of them now, and at most its capacity. Such a round exists whenever load <= capacity * r for
// every domain, because serving items / r of each pair satisfies all bounds, and circulations with integral bounds have integral
// solutions. A round is repeated as long as its remainder stays feasible; then either a pair has run out or a domain has become
// tight, and a domain that is tight stays so. Hence the bound on the number of patterns.
//
// The circulation is kept from pattern to pattern and repaired (out-of-kilter method: Ford and Fulkerson 1962, III.11), so that a
// step costs a few searches of the network instead of a maximum flow.
//
// Halving. Where rounds are few and pairs are many, a step for each round costs too much. An even number of rounds is cut in two
// halves that each have half of every load, rounded one way here and the other way there (Euler partition: Gabow 1976); the
// circulation stays one, so that every domain's capacity holds in both. An odd number is made even by one step. 672 writers with
// an item each on 672 targets: see docs/internal/checks.md for the cost of both ways.
#include "planner/contention_free.hpp"

#include <algorithm>
#include <string>

#include "base/checked.hpp"

namespace ioweir::planner {

namespace {

/// Halving pays from this number of arcs times rounds on; below, both take milliseconds, and the step by step order does everything
/// as early as it can be done.
constexpr std::int64_t least_work = 4'000'000;
/// And it takes up to a pattern a round: not for more rounds than this many for each domain or writer.
constexpr std::size_t most_rounds_a_node = 4;

/// An arc of the network. `load` items have to pass it in the rounds that are left, `capacity` in one. There are fewer than 2^31 items;
/// small arcs matter, because searches touch them all over.
struct Arc {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int32_t load = 0;
    std::int32_t capacity = 0;
    std::int32_t flow = 0;
    std::uint32_t pair = 0;  ///< index in the table, of a pair's arc
};

std::int32_t narrow(std::int64_t items) { return static_cast<std::int32_t>(std::min<std::int64_t>(items, INT32_MAX)); }

/// The arcs of a table: those of domains and writers first, then the pairs'. The arc between a node and its parent, whichever way it
/// leads, has the node's number less one.
struct Arcs {
    std::vector<Arc> list;
    std::size_t first_pair = 0;
    std::int32_t nodes = 0;

    /// The most rounds that a domain or a writer needs.
    [[nodiscard]] std::int64_t rounds() const {
        std::int64_t most = 0;
        for (std::size_t i = 0; i < first_pair; ++i)
            most = std::max(most, ceil_divide<std::int64_t>(list[i].load, list[i].capacity));
        return most;
    }
};

Arcs arcs_of(const ItemTable& table) {
    // Nodes: 0 is source and sink in one. A domain's arc leads from its parent to itself on the writers' side, and from itself
    // to its parent on the targets' side; a writer and a target are nodes behind their domains.
    Arcs arcs;
    const std::int32_t writer_side = 1;
    const auto first_writer = writer_side + static_cast<std::int32_t>(table.writer_domains.size());
    const std::int32_t target_side = first_writer + table.writers;
    arcs.nodes = target_side + static_cast<std::int32_t>(table.target_domains.size());

    for (std::size_t i = 0; i < table.writer_domains.size(); ++i) {
        const SharedDomain& domain = table.writer_domains[i];
        arcs.list.push_back({domain.parent < 0 ? 0 : writer_side + domain.parent,
                             writer_side + static_cast<std::int32_t>(i), 0, narrow(domain.capacity)});
    }
    for (std::int32_t writer = 0; writer < table.writers; ++writer) {
        const std::int32_t domain =
            table.domain_of_writer.empty() ? -1 : table.domain_of_writer[static_cast<std::size_t>(writer)];
        arcs.list.push_back({domain < 0 ? 0 : writer_side + domain, first_writer + writer, 0, 1});
    }
    for (std::size_t i = 0; i < table.target_domains.size(); ++i) {
        const SharedDomain& domain = table.target_domains[i];
        arcs.list.push_back({target_side + static_cast<std::int32_t>(i),
                             domain.parent < 0 ? 0 : target_side + domain.parent, 0, narrow(domain.capacity)});
    }
    arcs.first_pair = arcs.list.size();
    arcs.list.reserve(arcs.first_pair + table.pairs.size());
    for (std::size_t which = 0; which < table.pairs.size(); ++which) {
        const ItemTable::Pair& pair = table.pairs[which];
        const std::int32_t domain = table.domain_of_target[static_cast<std::size_t>(pair.target)];
        const std::int32_t items = narrow(pair.items);
        arcs.list.push_back(
            {first_writer + pair.writer, target_side + domain, items, 1, 0, static_cast<std::uint32_t>(which)});
        // The pair's items load every domain around it.
        const auto add = [&](std::size_t arc) { arcs.list[arc].load += items; };
        const auto domains = table.writer_domains.size();
        add(domains + static_cast<std::size_t>(pair.writer));
        std::int32_t at =
            table.domain_of_writer.empty() ? -1 : table.domain_of_writer[static_cast<std::size_t>(pair.writer)];
        for (; at >= 0; at = table.writer_domains[static_cast<std::size_t>(at)].parent)
            add(static_cast<std::size_t>(at));
        const std::size_t targets_begin = domains + static_cast<std::size_t>(table.writers);
        for (at = domain; at >= 0; at = table.target_domains[static_cast<std::size_t>(at)].parent)
            add(targets_begin + static_cast<std::size_t>(at));
    }
    return arcs;
}

/// For each node the arcs that touch it, both ways; of those arcs that `wanted` says.
class Touching {
public:
    template <typename Wanted>
    void link(const Arcs& arcs, Wanted wanted) {
        starts_.assign(static_cast<std::size_t>(arcs.nodes) + 1, 0);
        for (const Arc& arc : arcs.list) {
            if (!wanted(arc)) continue;
            ++starts_[static_cast<std::size_t>(arc.from) + 1];
            ++starts_[static_cast<std::size_t>(arc.to) + 1];
        }
        for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        list_.resize(starts_.back());
        std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
        for (std::size_t i = 0; i < arcs.list.size(); ++i) {
            if (!wanted(arcs.list[i])) continue;
            list_[next[static_cast<std::size_t>(arcs.list[i].from)]++] = static_cast<std::uint32_t>(i);
            list_[next[static_cast<std::size_t>(arcs.list[i].to)]++] = static_cast<std::uint32_t>(i);
        }
    }
    [[nodiscard]] std::size_t begin(std::int32_t node) const { return starts_[static_cast<std::size_t>(node)]; }
    [[nodiscard]] std::size_t end(std::int32_t node) const { return starts_[static_cast<std::size_t>(node) + 1]; }
    [[nodiscard]] std::size_t operator[](std::size_t place) const { return list_[place]; }

private:
    std::vector<std::size_t> starts_;
    std::vector<std::uint32_t> list_;
};

/// Takes good rounds off the loads, one at a time.
class Circulation {
public:
    explicit Circulation(Arcs& arcs) : arcs_(arcs.list), first_pair_(arcs.first_pair) {
        touching_.link(arcs, [](const Arc&) { return true; });
        came_by_.resize(static_cast<std::size_t>(arcs.nodes));
        seen_.assign(static_cast<std::size_t>(arcs.nodes), 0);
    }

    /// Makes the flow a good round when `left` rounds are left.
    void find(std::int64_t left) {
        left_ = left;
        if (!begun_) begin();
        begun_ = true;
        repair();
        fill();
    }

    /// How often the round can be done before a pair runs out or a domain that serves less than its capacity becomes tight.
    [[nodiscard]] std::int64_t repetitions() const {
        std::int64_t times = left_;
        for (std::size_t i = 0; i < arcs_.size(); ++i) {
            const Arc& arc = arcs_[i];
            if (arc.flow > 0) times = std::min<std::int64_t>(times, arc.load / arc.flow);
            if (i < first_pair_ && arc.flow < arc.capacity)
                times = std::min(times, (arc.capacity * left_ - arc.load) / (arc.capacity - arc.flow));
        }
        return times;
    }

    void take(std::int64_t times) {
        for (Arc& arc : arcs_) arc.load -= static_cast<std::int32_t>(times * arc.flow);
    }

private:
    [[nodiscard]] static std::int32_t upper(const Arc& arc) { return std::min(arc.capacity, arc.load); }
    [[nodiscard]] std::int64_t lower(const Arc& arc) const {
        return std::max<std::int64_t>(0, arc.load - arc.capacity * (left_ - 1));
    }

    /// A first flow: each pair as far as there is room.
    void begin() {
        const auto visit_way = [&](const Arc& pair, auto visit) {
            bool all = visit(arcs_[static_cast<std::size_t>(&pair - arcs_.data())]);
            for (std::int32_t node = pair.from; all && node != 0;) {
                Arc& arc = arcs_[static_cast<std::size_t>(node) - 1];
                all = visit(arc);
                node = arc.from;
            }
            for (std::int32_t node = pair.to; all && node != 0;) {
                Arc& arc = arcs_[static_cast<std::size_t>(node) - 1];
                all = visit(arc);
                node = arc.to;
            }
            return all;
        };
        for (std::size_t i = first_pair_; i < arcs_.size(); ++i) {
            if (!visit_way(arcs_[i], [](const Arc& arc) { return arc.flow < upper(arc); })) continue;
            visit_way(arcs_[i], [](Arc& arc) { return ++arc.flow > 0; });
        }
    }

    /// Brings every arc back between its bounds: first what is above its upper one (a pair that ran out), then what is below its
    /// lower one (a domain that has to hurry).
    void repair() {
        for (std::size_t i = 0; i < arcs_.size(); ++i)
            while (arcs_[i].flow > upper(arcs_[i])) {
                // One unit less on the arc: the unit has to find another way from its tail to its head.
                --arcs_[i].flow;
                push(arcs_[i].from, arcs_[i].to, i);
            }
        for (std::size_t i = 0; i < arcs_.size(); ++i)
            while (arcs_[i].flow < lower(arcs_[i])) {
                ++arcs_[i].flow;
                push(arcs_[i].to, arcs_[i].from, i);
            }
    }

    /// More moves where there is room: nothing is put off that can be done now.
    void fill() {
        const std::int32_t source_and_sink = 0;
        // A unit leaves node 0 over any arc that begins there and has room, and comes back to it.
        for (bool found = true; found;) {
            ++search_;
            queue_.clear();
            for (std::size_t at = touching_.begin(0); at < touching_.end(0); ++at) {
                const Arc& arc = arcs_[touching_[at]];
                if (arc.from == source_and_sink && arc.flow < upper(arc)) reach(arc.to, touching_[at]);
            }
            found = search(source_and_sink, arcs_.size(), true);
            if (found) shift(source_and_sink, source_and_sink);
        }
    }

    /// Moves one unit from a node to another along arcs with room, without `except`; false when there is no way.
    bool push(std::int32_t from, std::int32_t to, std::size_t except) {
        ++search_;
        queue_.clear();
        reach(from, except);
        if (!search(to, except)) return false;
        shift(from, to);
        return true;
    }

    void reach(std::int32_t node, std::size_t by) {
        if (seen_[static_cast<std::size_t>(node)] == search_) return;
        seen_[static_cast<std::size_t>(node)] = search_;
        came_by_[static_cast<std::size_t>(node)] = by;
        queue_.push_back(node);
    }

    /// Depth first, and to the end as soon as it is in sight: networks are dense, almost every way is one.
    /// `new_unit`: node 0 is reached as a sink only; giving a unit back to it as the source would gain nothing.
    bool search(std::int32_t to, std::size_t except, bool new_unit = false) {
        while (!queue_.empty()) {
            const std::int32_t node = queue_.back();
            queue_.pop_back();
            for (std::size_t k = touching_.begin(node); k < touching_.end(node); ++k) {
                const std::size_t i = touching_[k];
                if (i == except) continue;
                const Arc& arc = arcs_[i];
                const bool forward = arc.from == node;
                // Arcs that are out of their bounds themselves may only come nearer to them.
                if (forward ? arc.flow >= upper(arc) : arc.flow <= lower(arc)) continue;
                if (new_unit && !forward && arc.from == 0) continue;
                reach(forward ? arc.to : arc.from, i);
                if (seen_[static_cast<std::size_t>(to)] == search_) return true;
            }
        }
        return false;
    }

    /// One unit more along the way that the search found.
    void shift(std::int32_t from, std::int32_t to) {
        for (std::int32_t node = to;;) {
            Arc& arc = arcs_[came_by_[static_cast<std::size_t>(node)]];
            const bool forward = arc.to == node;
            arc.flow += forward ? 1 : -1;
            node = forward ? arc.from : arc.to;
            if (node == from) return;
        }
    }

    std::vector<Arc>& arcs_;
    std::size_t first_pair_;
    std::int64_t left_ = 0;  // rounds
    bool begun_ = false;
    Touching touching_;
    std::vector<std::size_t> came_by_;
    std::vector<std::uint64_t> seen_;  // number of the search that reached a node
    std::uint64_t search_ = 0;
    std::vector<std::int32_t> queue_;
};

/// Puts an order together.
class Scheduler {
public:
    Scheduler(const ItemTable& table, RoundPatternVisitor visitor) : table_(table), visitor_(visitor) {}

    void run(ContentionFreeMethod method) {
        Arcs arcs = arcs_of(table_);
        std::int64_t left = arcs.rounds();
        const auto halves = [&] {
            if (method != ContentionFreeMethod::automatic) return method == ContentionFreeMethod::halving;
            const auto most =
                static_cast<std::int64_t>(std::min(arcs.list.size(), most_rounds_a_node * arcs.first_pair));
            return left <= most && left * static_cast<std::int64_t>(arcs.list.size()) > least_work;
        };
        if (!halves()) {
            Circulation circulation(arcs);
            while (left > 0 && !halves()) {
                circulation.find(left);
                const std::int64_t times = circulation.repetitions();
                emit(times, arcs);
                circulation.take(times);
                left -= times;
            }
        }
        halve(std::move(arcs), left, 1);
    }

private:
    /// Everything in `rounds` rounds, each `times` times. Depth of the recursion: the binary digits of `rounds`.
    void halve(Arcs arcs, std::int64_t rounds, std::int64_t times) {
        if (rounds % 2 == 1) {
            drop_empty(arcs);
            for (Arc& arc : arcs.list) arc.flow = rounds == 1 ? arc.load : 0;
            if (rounds > 1) {
                Circulation circulation(arcs);
                circulation.find(rounds);
                circulation.take(1);
            }
            emit(times, arcs);
            --rounds;
        }
        if (rounds == 0) return;
        drop_empty(arcs);
        if (is_even(arcs)) {
            for (Arc& arc : arcs.list) arc.load /= 2;
            return halve(std::move(arcs), rounds / 2, 2 * times);
        }
        Arcs others = arcs;
        split(arcs, others);
        halve(std::move(arcs), rounds / 2, times);
        halve(std::move(others), rounds / 2, times);
    }

    static void drop_empty(Arcs& arcs) {
        const auto is_empty = [](const Arc& arc) { return arc.load == 0; };
        const auto pairs = arcs.list.begin() + static_cast<std::ptrdiff_t>(arcs.first_pair);
        arcs.list.erase(std::remove_if(pairs, arcs.list.end(), is_empty), arcs.list.end());
    }

    static bool is_even(const Arcs& arcs) {
        return std::none_of(arcs.list.begin(), arcs.list.end(), [](const Arc& arc) { return arc.load % 2 != 0; });
    }

    /// Halves of all loads. An odd one is rounded up on one side and down on the other: as loads are a circulation, an even number
    /// of odd ones meets at each node, and they form closed walks; rounding up those that a walk takes forward and down the others
    /// keeps it a circulation.
    void split(Arcs& arcs, Arcs& others) {
        odd_.link(arcs, [](const Arc& arc) { return arc.load % 2 != 0; });
        std::vector<std::size_t> next(static_cast<std::size_t>(arcs.nodes));
        for (std::int32_t node = 0; node < arcs.nodes; ++node) next[static_cast<std::size_t>(node)] = odd_.begin(node);
        std::vector<char> walked(arcs.list.size(), 0);
        for (std::size_t i = 0; i < arcs.list.size(); ++i) {
            others.list[i].load /= 2;
            if (arcs.list[i].load % 2 == 0) arcs.list[i].load /= 2;
        }
        for (std::int32_t node = 0; node < arcs.nodes; ++node) {
            for (std::int32_t at = node;;) {
                std::size_t& place = next[static_cast<std::size_t>(at)];
                while (place < odd_.end(at) && walked[odd_[place]] != 0) ++place;
                if (place == odd_.end(at)) break;  // back where the walk began
                walked[odd_[place]] = 1;
                Arc& arc = arcs.list[odd_[place]];
                Arc& other = others.list[odd_[place]];
                const bool forward = arc.from == at;
                arc.load = other.load + (forward ? 1 : 0);
                other.load += forward ? 0 : 1;
                ++place;
                at = forward ? arc.to : arc.from;
            }
        }
    }

    /// The round that the flow is.
    void emit(std::int64_t times, const Arcs& arcs) {
        RoundPattern result;
        result.rounds = times;
        for (std::size_t i = arcs.first_pair; i < arcs.list.size(); ++i) {
            if (arcs.list[i].flow == 0) continue;
            const ItemTable::Pair& pair = table_.pairs[arcs.list[i].pair];
            result.moves.push_back({pair.writer, pair.target});
        }
        std::sort(result.moves.begin(), result.moves.end(),
                  [](const auto& a, const auto& b) { return a.writer < b.writer; });
        visitor_(result);
    }

    const ItemTable& table_;
    RoundPatternVisitor visitor_;
    Touching odd_;
};

std::optional<Error> check_domains(const std::vector<SharedDomain>& domains, const char* what) {
    for (std::size_t i = 0; i < domains.size(); ++i) {
        const std::string which = std::string(what) + " " + std::to_string(i);
        if (domains[i].capacity < 1)
            return Error{"a contention domain that serves nobody",
                         which + ", capacity " + std::to_string(domains[i].capacity), "capacities are 1 or more"};
        if (domains[i].parent < -1 || domains[i].parent >= static_cast<std::int64_t>(i))
            return Error{"a contention domain that comes before the one it lies in",
                         which + ", parent " + std::to_string(domains[i].parent), "list parents first"};
    }
    return std::nullopt;
}

bool inside(std::int64_t index, std::size_t count) { return index >= 0 && static_cast<std::uint64_t>(index) < count; }

std::optional<Error> check(const ItemTable& table) {
    if (auto error = check_domains(table.target_domains, "target domain")) return error;
    if (auto error = check_domains(table.writer_domains, "writer domain")) return error;
    for (const std::int32_t domain : table.domain_of_target)
        if (!inside(domain, table.target_domains.size()))
            return Error{"a target in no domain", std::to_string(domain), "each target has a domain of its own"};
    if (table.writers < 0 ||
        (!table.domain_of_writer.empty() && table.domain_of_writer.size() != static_cast<std::size_t>(table.writers)))
        return Error{"a number of writers that does not fit", std::to_string(table.writers),
                     "give each writer a domain or none at all"};
    for (const std::int32_t domain : table.domain_of_writer)
        if (domain != -1 && !inside(domain, table.writer_domains.size()))
            return Error{"a writer in an unknown domain", std::to_string(domain), "use -1 for none"};
    std::vector<std::pair<std::int32_t, std::int32_t>> seen;
    std::int64_t sum = 0;
    for (const ItemTable::Pair& pair : table.pairs) {
        const std::string which = "writer " + std::to_string(pair.writer) + ", target " + std::to_string(pair.target);
        if (!inside(pair.writer, static_cast<std::size_t>(table.writers)) ||
            !inside(pair.target, table.domain_of_target.size()))
            return Error{"items of an unknown writer or target", which, "both count from 0"};
        const auto total = checked_add(sum, pair.items);
        // The bound keeps capacity x rounds below 2^63 for every capacity of up to 2^31.
        if (pair.items < 0 || !total || *total >= std::int64_t{1} << 31)
            return Error{"too many items, or fewer than none", which + ", " + std::to_string(pair.items) + " items",
                         "use a larger buffer"};
        sum = *total;
        seen.emplace_back(pair.writer, pair.target);
    }
    std::sort(seen.begin(), seen.end());
    if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end())
        return Error{"a pair stands twice in the table",
                     "writer " + std::to_string(twice->first) + ", target " + std::to_string(twice->second),
                     "add their items"};
    return std::nullopt;
}

}  // namespace

Result<std::int64_t> fewest_rounds(const ItemTable& table) {
    if (auto error = check(table)) return *error;
    return arcs_of(table).rounds();
}

std::optional<Error> visit_contention_free(const ItemTable& table, RoundPatternVisitor visitor,
                                           ContentionFreeMethod method) {
    if (auto error = check(table)) return error;
    Scheduler(table, visitor).run(method);
    return std::nullopt;
}

}  // namespace ioweir::planner
