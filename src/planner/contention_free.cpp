// The order as a sequence of integral circulations (see contention_free.hpp).
//
// With r rounds left, a round is good when the remainder still fits into r - 1: every domain with `load` items must serve at least
// max(0, load - capacity * (r - 1)) of them now, and at most its capacity. Such a round exists whenever load <= capacity * r for
// every domain, because serving items / r of each pair satisfies all bounds, and circulations with integral bounds have integral
// solutions. A round is repeated as long as its remainder stays feasible; then either a pair has run out or a domain has become
// tight, and a domain that is tight stays so. Hence the bound on the number of patterns.
//
// The circulation is kept from pattern to pattern and repaired (out-of-kilter method: Ford and Fulkerson 1962, III.11), so that a
// step costs a few searches of the network instead of a maximum flow.
#include "planner/contention_free.hpp"

#include <algorithm>
#include <string>

#include "base/checked.hpp"

namespace ioweir::planner {

namespace {

/// An arc of the network. `load` items have to pass it in the rounds that are left, `capacity` in one.
struct Arc {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int64_t load = 0;
    std::int64_t capacity = 0;
    std::int64_t flow = 0;
};

class Network {
public:
    explicit Network(const ItemTable& table) : table_(table) {
        // Nodes: 0 is source and sink in one. A domain's arc leads from its parent to itself on the writers' side, and from itself
        // to its parent on the targets' side; a writer and a target are nodes behind their domains.
        std::int32_t nodes = 1;
        const auto writer_side = nodes;
        nodes += static_cast<std::int32_t>(table.writer_domains.size());
        const auto first_writer = nodes;
        nodes += table.writers;
        const auto target_side = nodes;
        nodes += static_cast<std::int32_t>(table.target_domains.size());
        node_count_ = nodes;

        for (std::size_t i = 0; i < table.writer_domains.size(); ++i) {
            const SharedDomain& domain = table.writer_domains[i];
            arcs_.push_back({domain.parent < 0 ? 0 : writer_side + domain.parent,
                             writer_side + static_cast<std::int32_t>(i), 0, domain.capacity});
        }
        for (std::int32_t writer = 0; writer < table.writers; ++writer) {
            const std::int32_t domain =
                table.domain_of_writer.empty() ? -1 : table.domain_of_writer[static_cast<std::size_t>(writer)];
            arcs_.push_back({domain < 0 ? 0 : writer_side + domain, first_writer + writer, 0, 1});
        }
        for (std::size_t i = 0; i < table.target_domains.size(); ++i) {
            const SharedDomain& domain = table.target_domains[i];
            arcs_.push_back({target_side + static_cast<std::int32_t>(i),
                             domain.parent < 0 ? 0 : target_side + domain.parent, 0, domain.capacity});
        }
        first_pair_ = arcs_.size();
        for (const ItemTable::Pair& pair : table.pairs) {
            const std::int32_t domain = table.domain_of_target[static_cast<std::size_t>(pair.target)];
            arcs_.push_back({first_writer + pair.writer, target_side + domain, pair.items, 1});
            // The pair's items load every domain around it.
            const auto add = [&](std::size_t arc) { arcs_[arc].load += pair.items; };
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
        link();
    }

    /// The most that a domain or a writer needs.
    [[nodiscard]] std::int64_t rounds() const {
        std::int64_t most = 0;
        for (std::size_t i = 0; i < first_pair_; ++i)
            most = std::max(most, ceil_divide(arcs_[i].load, arcs_[i].capacity));
        return most;
    }

    void visit(RoundPatternVisitor visitor) {
        for (left_ = rounds(); left_ > 0;) {
            repair();
            fill();
            const std::int64_t times = repetitions();
            visitor(pattern(times));
            for (Arc& arc : arcs_) arc.load -= times * arc.flow;
            left_ -= times;
        }
    }

private:
    [[nodiscard]] std::int64_t upper(const Arc& arc) const { return std::min(arc.capacity, arc.load); }
    [[nodiscard]] std::int64_t lower(const Arc& arc) const {
        return std::max<std::int64_t>(0, arc.load - arc.capacity * (left_ - 1));
    }

    /// For each node the arcs that touch it, both ways.
    void link() {
        starts_.assign(static_cast<std::size_t>(node_count_) + 1, 0);
        for (const Arc& arc : arcs_) {
            ++starts_[static_cast<std::size_t>(arc.from) + 1];
            ++starts_[static_cast<std::size_t>(arc.to) + 1];
        }
        for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
        touching_.resize(arcs_.size() * 2);
        std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
        for (std::size_t i = 0; i < arcs_.size(); ++i) {
            touching_[next[static_cast<std::size_t>(arcs_[i].from)]++] = i;
            touching_[next[static_cast<std::size_t>(arcs_[i].to)]++] = i;
        }
        came_by_.resize(static_cast<std::size_t>(node_count_));
        seen_.assign(static_cast<std::size_t>(node_count_), 0);
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
            for (std::size_t at = starts_[0]; at < starts_[1]; ++at) {
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
            for (std::size_t k = starts_[static_cast<std::size_t>(node)];
                 k < starts_[static_cast<std::size_t>(node) + 1]; ++k) {
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

    /// How often the round can be done before a pair runs out or a domain that serves less than its capacity becomes tight.
    [[nodiscard]] std::int64_t repetitions() const {
        std::int64_t times = left_;
        for (std::size_t i = 0; i < arcs_.size(); ++i) {
            const Arc& arc = arcs_[i];
            if (arc.flow > 0) times = std::min(times, arc.load / arc.flow);
            if (i < first_pair_ && arc.flow < arc.capacity)
                times = std::min(times, (arc.capacity * left_ - arc.load) / (arc.capacity - arc.flow));
        }
        return times;
    }

    [[nodiscard]] RoundPattern pattern(std::int64_t times) const {
        RoundPattern result;
        result.rounds = times;
        for (std::size_t i = first_pair_; i < arcs_.size(); ++i) {
            const ItemTable::Pair& pair = table_.pairs[i - first_pair_];
            if (arcs_[i].flow > 0) result.moves.push_back({pair.writer, pair.target});
        }
        std::sort(result.moves.begin(), result.moves.end(),
                  [](const auto& a, const auto& b) { return a.writer < b.writer; });
        return result;
    }

    const ItemTable& table_;
    std::int32_t node_count_ = 0;
    std::vector<Arc> arcs_;  // writer domains, writers, target domains, pairs
    std::size_t first_pair_ = 0;
    std::int64_t left_ = 0;  // rounds
    std::vector<std::size_t> starts_;
    std::vector<std::size_t> touching_;
    std::vector<std::size_t> came_by_;
    std::vector<std::uint64_t> seen_;  // number of the search that reached a node
    std::uint64_t search_ = 0;
    std::vector<std::int32_t> queue_;
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
    return Network(table).rounds();
}

std::optional<Error> visit_contention_free(const ItemTable& table, RoundPatternVisitor visitor) {
    if (auto error = check(table)) return error;
    Network(table).visit(visitor);
    return std::nullopt;
}

}  // namespace ioweir::planner
