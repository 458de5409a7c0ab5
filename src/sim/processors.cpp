#include "sim/processors.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace ioweir::sim {

Processors::Processors(Events& events, const Machine& machine, const planner::Topology& topology)
    : events_(events),
      processors_(machine.node.processors),
      slowdown_(machine.processor.slowdown),
      together_(machine.processor.together),
      spin_share_(machine.processor.spins) {
    if (!modelled()) return;
    nodes_.resize(static_cast<std::size_t>(topology.nodes()));
    for (const int node : topology.node_of) ranks_.push_back({node, none, none, false});
    for (const int node : topology.node_of) ranks_.push_back({node, none, none, false});
}

/// Of a processor that each rank with work has.
double Processors::speed(const Node& node) const {
    const auto working = static_cast<double>(node.running.size());
    const double wanted = working + spin_share_ * node.spinning;
    const double share = std::min(1.0, processors_ / wanted);
    return processors_ > 1 && node.running.size() > 1 ? share * together_ : share;
}

void Processors::catch_up(Node& node) {
    if (!node.running.empty()) {
        const Seconds each = (events_.now() - node.at) * speed(node);
        node.given += each;
        worked_ += each * static_cast<double>(node.running.size());
    }
    node.at = events_.now();
}

/// The next end, as far as nothing changes before.
void Processors::foresee(int number) {
    Node& node = nodes_[static_cast<std::size_t>(number)];
    ++node.change;
    if (node.running.empty()) return;
    const Seconds left = std::max(0.0, node.running.top().end - node.given);
    events_.after(left / speed(node), {this, node.change, static_cast<std::uint32_t>(number)});
}

/// A rank's first job. The node has caught up.
void Processors::start(std::uint32_t rank) {
    Node& node = nodes_[static_cast<std::size_t>(ranks_[rank].node)];
    node.running.push({node.given + jobs_[ranks_[rank].first].seconds, order_++, rank});
}

void Processors::work(int rank, Seconds seconds, Callback done) {
    assert(modelled());
    const auto which = static_cast<std::uint32_t>(rank);
    Rank& its = ranks_[which];
    const std::uint32_t job = jobs_.add({seconds * slowdown_, done, none});
    if (its.first != none) {
        jobs_[its.last].next = job;
        its.last = job;
        return;
    }
    its.first = its.last = job;
    Node& node = nodes_[static_cast<std::size_t>(its.node)];
    catch_up(node);
    if (its.spins) --node.spinning;
    start(which);
    foresee(its.node);
}

void Processors::spin(int rank, bool spins) {
    if (!modelled()) return;
    Rank& its = ranks_[static_cast<std::size_t>(rank)];
    if (its.spins == spins) return;
    its.spins = spins;
    if (its.first != none) return;
    Node& node = nodes_[static_cast<std::size_t>(its.node)];
    catch_up(node);
    node.spinning += spins ? 1 : -1;
    foresee(its.node);
}

void Processors::happen(std::uint32_t what, std::uint32_t which) {
    Node& node = nodes_[which];
    if (what != node.change) return;  // it was foreseen before something changed
    catch_up(node);
    const Running over = node.running.top();
    node.running.pop();
    // Of rounding nothing is left over for the next.
    node.given = over.end;
    Rank& its = ranks_[over.rank];
    const std::uint32_t job = its.first;
    const Callback done = jobs_[job].done;
    its.first = jobs_[job].next;
    jobs_.remove(job);
    if (its.first != none)
        start(over.rank);
    else if (its.spins)
        ++node.spinning;
    foresee(static_cast<int>(which));
    done();
}

}  // namespace ioweir::sim
