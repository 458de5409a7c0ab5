// Fabric: bytes between processes and to storage servers. A NIC sends and takes one chunk after the other; messages that are under way at the
// same time take turns, chunk by chunk (as packets do in a torus or a Clos network), or go one after the other where chunk_bytes is 0. Each
// message has a latency (Hockney 1994: time = latency + bytes / bandwidth). Processes of one node hand bytes over by copying them once, as fast
// as one process copies, and together as fast as the node's memory. A request to or from storage runs through both network interfaces and what
// lies between them at the same time, as packets do: it takes as long as the slowest of them. Where I/O nodes forward for compute
// nodes (Blue Gene/P: Liu et al. 2013, section 3.1), the one of the node is among them.
// Limits: no topology, no routes that several nodes share but the one to storage, no protocol for large messages.
// What does not live here: what a server does with bytes (targets.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/events.hpp"
#include "sim/machine.hpp"

namespace ioweir::sim {

class Fabric final : public Actor {
public:
    Fabric(Events& events, const Machine& machine, int nodes);

    /// A message of a process, which can go on when `left` happens; `arrived` is when all of it is there.
    void send(int from_node, int to_node, std::int64_t bytes, Callback left, Callback arrived);
    /// The bytes of a request to or from a server.
    void to_server(int node, int server, std::int64_t bytes, Callback arrived);
    void from_server(int server, int node, std::int64_t bytes, Callback arrived);

    [[nodiscard]] Seconds latency() const { return figures_.latency_s; }
    /// Of a message without bytes.
    [[nodiscard]] Seconds message_time() const { return figures_.latency_s + figures_.message_s; }

    void happen(std::uint32_t what, std::uint32_t which) override;

private:
    enum What : std::uint32_t { chunk_left, message_arrived, request_begins, answer_begins };

    struct Transfer {
        int from = 0, to = 0;
        std::int64_t left = 0, chunk = 0;
        Seconds leaves = 0;  ///< of a request or answer: when the last byte has left
        Callback when_left, when_arrived;
    };

    Line& forwarder(std::vector<Line>& lines, int node) const {
        return lines[static_cast<std::size_t>(node / nodes_of_forwarder_)];
    }
    void begin(Line& out, Seconds duration, What what, const Transfer& transfer);
    void next_chunk(std::uint32_t which, Seconds from);
    void finish_chunk(std::uint32_t which);

    Events& events_;
    NodeFigures node_;
    FabricFigures figures_;
    double server_bytes_per_s_;
    std::vector<Line> out_, in_, memory_;  ///< of each node
    std::vector<Line> server_in_, server_out_;
    Line to_storage_, from_storage_;
    int nodes_of_forwarder_;
    double forwarder_bytes_per_s_;
    std::vector<Line> forwarder_out_, forwarder_in_;  ///< of each I/O node: to storage, and from it
    Pool<Transfer> transfers_;
};

}  // namespace ioweir::sim
