#include "sim/clients.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ioweir::sim {
namespace {

/// Where a range of a striped file lies in the object of the target that is `dealt`-th (from the layout's start): stripes of one object follow
/// each other there, so it is one range.
layout::Extent in_object(const layout::StripeLayout& stripes, layout::Extent range, std::int64_t dealt) {
    const std::int64_t size = stripes.stripe_bytes(), count = stripes.stripe_count();
    // Bytes of the object that lie below a file offset.
    const auto below = [&](std::int64_t offset) {
        const std::int64_t stripe = offset / size, row = stripe / count, column = stripe % count;
        if (column > dealt) return (row + 1) * size;
        return row * size + (column == dealt ? offset % size : 0);
    };
    const std::int64_t begin = below(range.offset);
    return {begin, below(range.end()) - begin};
}

}  // namespace

Clients::Clients(Events& events, const Machine& machine, int nodes, Fabric& fabric, Targets& targets,
                 ExtentLocks& locks)
    : events_(events),
      figures_(machine.client),
      locked_(machine.locks.used),
      whole_stripes_(machine.locks.whole_stripes),
      files_(machine.files),
      copy_bytes_per_s_(machine.node.processors > 0 ? 0 : machine.node.copy_bytes_per_s),
      one_client_((nodes - 1) / machine.client.nodes_of_forwarder == 0),
      target_count_(static_cast<std::size_t>(machine.targets.count)),
      fabric_(fabric),
      targets_(targets),
      locks_(locks) {}

Clients::Stream& Clients::stream(std::uint32_t number) {
    if (number >= streams_.size()) streams_.resize(number + 1);
    return streams_[number];
}

void Clients::push(Queue& queue, std::uint32_t request, Next next) {
    requests_under_way_[request].*next = Queue::none;
    if (queue.empty())
        queue.first = request;
    else
        requests_under_way_[queue.last].*next = request;
    queue.last = request;
}

std::uint32_t Clients::pop(Queue& queue, Next next) {
    const std::uint32_t first = queue.first;
    queue.first = requests_under_way_[first].*next;
    return first;
}

Clients::Connection& Clients::connection(int node, int target) {
    return connections_[static_cast<std::size_t>(client_of(node)) * target_count_ + static_cast<std::size_t>(target)];
}

/// A file on one target has stripes, too, where it matters how they lie.
std::int64_t Clients::block_of(const SimulatedFile& file) const {
    const std::int64_t own = file.stripes.stripe_bytes();
    return own > 0 ? own : files_.stripe_bytes;
}

bool Clients::is_in_memory(const Access& access) const {
    return !access.writes && one_client_ && figures_.page_cache_bytes > 0 &&
           written_bytes_ <= figures_.page_cache_bytes;
}

/// Until write_late(). What lies on several objects has its share of the access's pages.
void Clients::keep_back(const Access& access, const std::vector<std::uint32_t>& pieces) {
    for (const std::uint32_t which : pieces) {
        const Piece& piece = pieces_[which];
        Late& late =
            late_.try_emplace(piece.object, Late{access.file, access.stream, access.node, piece.target, piece.begin, 0})
                .first->second;
        late.begin = std::min(late.begin, piece.begin);
        const std::int64_t bytes = piece.end - piece.begin;
        late.bytes += access.page_bytes < 0
                          ? bytes
                          : std::llround(static_cast<double>(access.page_bytes) *
                                         (static_cast<double>(bytes) / static_cast<double>(access.range.length)));
        pieces_.remove(which);
    }
}

/// All of it.
void Clients::write_late() {
    for (const auto& [object, late] : std::exchange(late_, {})) {
        if (late.bytes == 0) continue;
        const std::uint32_t which = running_.add(
            {{late.file, {late.begin, late.bytes}, true, late.stream, late.node}, {}, events_.now(), events_.now()});
        const std::uint32_t piece =
            pieces_.add({which, late.target, object, late.begin, late.begin + late.bytes, 0, 0, 0});
        running_[which].untaken = running_[which].unfinished = 1;
        cut(piece);
    }
}

void Clients::begin(const Access& access, Callback returned) {
    if (access.writes) written_bytes_ += access.range.length;
    const std::uint32_t which = running_.add({access, returned, events_.now(), events_.now()});
    if (is_in_memory(access)) return events_.at(events_.now(), {this, access_over, which});
    std::vector<std::uint32_t> begun;
    const layout::StripeLayout& stripes = access.file->stripes;
    const auto add = [&](std::int64_t index, layout::Extent range) {
        if (range.length == 0) return;
        const std::int32_t target = stripes.targets()[static_cast<std::size_t>(index)];
        begun.push_back(pieces_.add({which, target, access.file->first_object + static_cast<std::uint32_t>(index),
                                     range.offset, range.end(), 0, 0, 0}));
    };
    if (stripes.stripe_bytes() == 0) {
        add(0, access.range);
    } else {
        const std::int64_t size = stripes.stripe_bytes(), count = stripes.stripe_count();
        const std::int64_t first = access.range.offset / size;
        const std::int64_t touched = std::min(count, (access.range.end() - 1) / size - first + 1);
        for (std::int64_t i = 0; i < touched; ++i) {
            const std::int64_t dealt = (first + i) % count;
            add((dealt + stripes.start()) % count, in_object(stripes, access.range, dealt));
        }
    }
    if (access.writes && figures_.writes_late) {
        keep_back(access, begun);
        return events_.at(events_.now(), {this, access_over, which});
    }
    running_[which].untaken = running_[which].unfinished = static_cast<int>(begun.size());
    for (const std::uint32_t piece : begun) begin_piece(piece);
}

void Clients::begin_piece(std::uint32_t which) {
    Piece& piece = pieces_[which];
    if (!locked_) return cut(which);
    const Access& access = running_[piece.access].access;
    layout::Extent range{piece.begin, piece.end - piece.begin};
    if (whole_stripes_) {
        const std::int64_t block = block_of(*access.file);
        const std::int64_t end = (piece.end - 1) / block * block + block;
        range.offset = piece.begin / block * block;
        range.length = end - range.offset;
    }
    const LockRequest request{piece.object, piece.target, client_of(access.node), range, access.writes};
    if (const auto held = locks_.use(request)) {
        piece.lock = *held;
        return cut(which);
    }
    running_[piece.access].asked = true;
    locks_.ask(request, {this, lock_granted, which});
}

/// Its lock is held.
void Clients::cut(std::uint32_t which) {
    const Piece piece = pieces_[which];
    Running& running = running_[piece.access];
    if (running.asked) running.granted = std::max(running.granted, events_.now());
    const Access access = running.access;
    const std::int64_t block = files_.scattered ? block_of(*access.file) : 0;
    const auto request_at = [&](std::int64_t at) {
        std::int64_t bytes = std::min(figures_.rpc_bytes, piece.end - at);
        if (block > 0) bytes = std::min(bytes, block - at % block);
        return bytes;
    };
    std::int64_t count = 0;
    for (std::int64_t at = piece.begin; at < piece.end; at += request_at(at)) ++count;
    pieces_[which].untaken = pieces_[which].unacknowledged = static_cast<int>(count);
    stream(access.stream).unacknowledged += count;
    unacknowledged_ += count;
    Connection& to = connection(access.node, piece.target);
    for (std::int64_t at = piece.begin, bytes = 0; at < piece.end; at += bytes) {
        bytes = request_at(at);
        const std::uint32_t request = requests_under_way_.add({which, at, bytes});
        ++requests_;
        push(to.unsent, request, &Request::next_unsent);
        if (access.writes && figures_.cache_bytes > 0) {
            if (to.dirty + bytes <= figures_.cache_bytes) {
                to.dirty += bytes;
                take(request);
            } else {
                requests_under_way_[request].queued = true;
                push(to.untaken, request, &Request::next_untaken);
            }
        }
    }
    send_next(to);
}

void Clients::send_next(Connection& to) {
    while (to.in_flight < figures_.rpcs_in_flight && !to.unsent.empty()) {
        const std::uint32_t which = pop(to.unsent, &Request::next_unsent);
        ++to.in_flight;
        const Request& request = requests_under_way_[which];
        const Piece& piece = pieces_[request.piece];
        const Access& access = running_[piece.access].access;
        if (access.writes)
            fabric_.to_server(access.node, targets_.server_of(piece.target), request.bytes, {this, at_target, which});
        else
            events_.after(fabric_.latency(), {this, at_target, which});
    }
}

/// The caller's bytes are not needed any more, or have come.
void Clients::take(std::uint32_t which) {
    Request& request = requests_under_way_[which];
    if (request.taken) return;
    request.taken = true;
    Piece& piece = pieces_[request.piece];
    if (--piece.untaken > 0) return;
    Running& running = running_[piece.access];
    if (--running.untaken > 0) return;
    Stream& its = stream(running.access.stream);
    its.lock_s += running.granted - running.began;
    // A process moves its own bytes no faster than it can.
    const auto bytes = static_cast<double>(running.access.range.length);
    Seconds over = events_.now();
    if (figures_.process_bytes_per_s > 0) over = std::max(over, running.began + bytes / figures_.process_bytes_per_s);
    if (figures_.cache_bytes > 0 && running.access.writes && copy_bytes_per_s_ > 0)
        over = std::max(over, running.began + bytes / copy_bytes_per_s_);
    events_.at(over, {this, access_over, piece.access});
}

/// A request is on its target, or its bytes have come from there.
void Clients::finish(std::uint32_t which) {
    const Request request = requests_under_way_[which];
    const Piece piece = pieces_[request.piece];
    const Access access = running_[piece.access].access;
    Connection& to = connection(access.node, piece.target);
    --to.in_flight;
    const bool cached = access.writes && figures_.cache_bytes > 0;
    if (cached && request.taken) to.dirty -= request.bytes;
    take(which);
    requests_under_way_[which].acknowledged = true;
    if (!request.queued) requests_under_way_.remove(which);
    while (cached && !to.untaken.empty()) {
        const std::uint32_t next = to.untaken.first;
        const Request waiting = requests_under_way_[next];
        if (!waiting.taken) {
            if (to.dirty + waiting.bytes > figures_.cache_bytes) break;
            to.dirty += waiting.bytes;
            take(next);
        }
        pop(to.untaken, &Request::next_untaken);
        requests_under_way_[next].queued = false;
        if (waiting.acknowledged) requests_under_way_.remove(next);
    }
    send_next(to);
    if (--pieces_[request.piece].unacknowledged == 0) {
        if (locked_) locks_.release(piece.lock);
        pieces_.remove(request.piece);
        Running& running = running_[piece.access];
        if (--running.unfinished == 0 && running.over) running_.remove(piece.access);
    }
    --unacknowledged_;
    Stream& its = stream(access.stream);
    if (--its.unacknowledged == 0) std::exchange(its.settled, {})();
    if (unacknowledged_ == 0) std::exchange(all_settled_, {})();
}

void Clients::settle(std::uint32_t number, Callback settled) {
    write_late();
    Stream& its = stream(number);
    if (its.unacknowledged == 0) return settled();
    its.settled = settled;
}

void Clients::settle_all(Callback settled) {
    write_late();
    if (unacknowledged_ == 0) return settled();
    all_settled_ = settled;
}

void Clients::happen(std::uint32_t what, std::uint32_t which) {
    switch (what) {
        case lock_granted:
            pieces_[which].lock = locks_.granted();
            return cut(which);
        case at_target: {
            const Request& request = requests_under_way_[which];
            const Piece& piece = pieces_[request.piece];
            const bool writes = running_[piece.access].access.writes;
            // A scattered block is reached by a seek, wherever the one before it is.
            const bool apart = files_.scattered && request.offset % block_of(*running_[piece.access].access.file) == 0;
            return targets_.submit({piece.target, piece.object, request.offset, request.bytes, writes, apart},
                                   {this, served, which});
        }
        case served: {
            const Request& request = requests_under_way_[which];
            const Piece& piece = pieces_[request.piece];
            const Access& access = running_[piece.access].access;
            if (access.writes) return events_.after(fabric_.latency(), {this, acknowledged, which});
            return fabric_.from_server(targets_.server_of(piece.target), access.node, request.bytes,
                                       {this, acknowledged, which});
        }
        case acknowledged:
            return finish(which);
        default: {
            const Callback returned = running_[which].returned;
            running_[which].over = true;
            if (running_[which].unfinished == 0) running_.remove(which);
            returned();
        }
    }
}

}  // namespace ioweir::sim
