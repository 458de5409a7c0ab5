#include "sim/fabric.hpp"

#include <algorithm>

namespace ioweir::sim {
namespace {

Seconds time_of(std::int64_t bytes, double bytes_per_s) {
    return bytes_per_s > 0 ? static_cast<double>(bytes) / bytes_per_s : 0;
}

}  // namespace

Fabric::Fabric(Events& events, const Machine& machine, int nodes)
    : events_(events),
      node_(machine.node),
      figures_(machine.fabric),
      server_bytes_per_s_(machine.targets.server_bytes_per_s),
      out_(static_cast<std::size_t>(nodes)),
      in_(out_.size()),
      memory_(out_.size()),
      server_in_(static_cast<std::size_t>((machine.targets.count - 1) / machine.targets.of_server + 1)),
      server_out_(server_in_.size()),
      nodes_of_forwarder_(machine.client.nodes_of_forwarder),
      forwarder_bytes_per_s_(machine.client.forwarder_bytes_per_s),
      forwarder_out_(static_cast<std::size_t>((nodes - 1) / nodes_of_forwarder_ + 1)),
      forwarder_in_(forwarder_out_.size()) {}

void Fabric::send(int from_node, int to_node, std::int64_t bytes, Callback left, Callback arrived) {
    const std::uint32_t which = transfers_.add({from_node, to_node, bytes, 0, 0, left, arrived});
    next_chunk(which, events_.now() + figures_.message_s);
}

void Fabric::next_chunk(std::uint32_t which, Seconds from) {
    Transfer& transfer = transfers_[which];
    transfer.chunk = figures_.chunk_bytes > 0 ? std::min(transfer.left, figures_.chunk_bytes) : transfer.left;
    Seconds over = 0;
    if (transfer.from == transfer.to) {
        Line& memory = memory_[static_cast<std::size_t>(transfer.from)];
        over = std::max(from + time_of(transfer.chunk, node_.copy_bytes_per_s),
                        memory.serve(from, time_of(transfer.chunk, node_.memory_bytes_per_s)));
    } else {
        Line& out = out_[static_cast<std::size_t>(transfer.from)];
        over = out.serve(from, time_of(transfer.chunk, node_.nic_bytes_per_s));
    }
    events_.at(over, {this, chunk_left, which});
}

void Fabric::finish_chunk(std::uint32_t which) {
    Transfer& transfer = transfers_[which];
    const bool stays = transfer.from == transfer.to;
    Seconds there = events_.now();
    if (!stays) {
        Line& in = in_[static_cast<std::size_t>(transfer.to)];
        there = in.serve(events_.now() + figures_.latency_s, time_of(transfer.chunk, node_.nic_bytes_per_s));
    }
    transfer.left -= transfer.chunk;
    if (transfer.left > 0) return next_chunk(which, events_.now());
    events_.at(there, {this, message_arrived, which});
    const Callback left = transfer.when_left;
    left();
}

void Fabric::begin(Line& out, Seconds duration, What what, const Transfer& transfer) {
    const Seconds begins = std::max(events_.now(), out.free_at());
    const std::uint32_t which = transfers_.add(transfer);
    transfers_[which].leaves = out.serve(events_.now(), duration);
    events_.at(begins, {this, what, which});
}

void Fabric::to_server(int node, int server, std::int64_t bytes, Callback arrived) {
    begin(out_[static_cast<std::size_t>(node)], time_of(bytes, node_.nic_bytes_per_s), request_begins,
          {node, server, bytes, 0, 0, {}, arrived});
}

void Fabric::from_server(int server, int node, std::int64_t bytes, Callback arrived) {
    begin(server_out_[static_cast<std::size_t>(server)], time_of(bytes, server_bytes_per_s_), answer_begins,
          {server, node, bytes, 0, 0, {}, arrived});
}

void Fabric::happen(std::uint32_t what, std::uint32_t which) {
    switch (what) {
        case chunk_left:
            return finish_chunk(which);
        case message_arrived:
            break;
        case request_begins: {
            const Transfer& request = transfers_[which];
            const Seconds passed =
                std::max(to_storage_.serve(events_.now(), time_of(request.left, figures_.storage_bytes_per_s)),
                         forwarder(forwarder_out_, request.from)
                             .serve(events_.now(), time_of(request.left, forwarder_bytes_per_s_)));
            Line& in = server_in_[static_cast<std::size_t>(request.to)];
            const Seconds taken =
                in.serve(events_.now() + figures_.latency_s, time_of(request.left, server_bytes_per_s_));
            return events_.at(std::max(std::max(request.leaves, passed) + figures_.latency_s, taken),
                              {this, message_arrived, which});
        }
        default: {
            const Transfer& answer = transfers_[which];
            const Seconds passed = std::max(
                from_storage_.serve(events_.now(), time_of(answer.left, figures_.storage_bytes_per_s)),
                forwarder(forwarder_in_, answer.to).serve(events_.now(), time_of(answer.left, forwarder_bytes_per_s_)));
            Line& in = in_[static_cast<std::size_t>(answer.to)];
            const Seconds taken =
                in.serve(events_.now() + figures_.latency_s, time_of(answer.left, node_.nic_bytes_per_s));
            return events_.at(std::max(std::max(answer.leaves, passed) + figures_.latency_s, taken),
                              {this, message_arrived, which});
        }
    }
    const Callback arrived = transfers_[which].when_arrived;
    transfers_.remove(which);
    arrived();
}

}  // namespace ioweir::sim
