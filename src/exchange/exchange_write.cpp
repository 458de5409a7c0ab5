// Writing through the exchange. In each round a rank first hands its bytes over to the writers, then, if it is one, waits until all
// have, and puts them into the file. No cycle of waiting: the ranks in the earliest round wait for nobody but each other's hand-overs of
// that round, and those only for rounds before it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "exchange/exchange_call.hpp"

namespace ioweir::exchange {

Outcome Exchange::write(const planner::CompiledPlan& compiled, const planner::RequestSummary& request,
                        const IoRequest& io, ExchangeFigures& figures) {
    return ExchangeCall(*this, compiled, request, io, figures).write();
}

Outcome ExchangeCall::write() {
    maps_ = !compiled_.dense;
    for (std::int64_t round = 0; round < compiled_.rounds; ++round) {
        begin_round(round);
        visit_writers(round,
                      [&](std::int64_t writer) { is_local(writer) ? hand_over(writer, round) : send(writer, round); });
        if (writes_in(round)) collect(round);
    }
    Outcome outcome;
    outcome.bytes = io_.memory != nullptr ? io_.memory->bytes : 0;
    for (std::int64_t writer = 0; writer < compiled_.writers(); ++writer) {
        const std::int64_t last = last_round_[static_cast<std::size_t>(writer)];
        if (last < 0 || !is_local(writer)) continue;
        wait_for(station(writer).done, after_round(writer, last));
        if (const int error = error_of(writer); error != 0) outcome.error = error;
    }
    if (group_.nodes() > 1) {
        await_last_turns();
        exchange_receipts(outcome);
    }
    if (error_ != 0) outcome.error = error_;
    if (outcome.error != 0) outcome.bytes = 0;
    outcome.operations = operations_;
    end_call();
    return outcome;
}

/// This rank's bytes into a writer's buffer on this node.
void ExchangeCall::hand_over(std::int64_t writer, std::int64_t round) {
    Station& its = station(writer);
    if (round >= 2) wait_for(its.done, after_round(writer, round - 2));
    const Slot slot = this->slot(writer, round);
    FragmentCursor fragments(io_, windows_);
    Fragment fragment;
    std::int64_t bytes = 0;
    while (fragments.next(fragment)) {
        bytes += fragment.bytes;
        copy_bytes(slot.data + fragment.at, fragment.memory, fragment.bytes);
        if (maps_) mark(slot, fragment.at, fragment.bytes);
    }
    count_up(its.handed[round & 1]);
    tell_handed(writer, round, bytes);
}

/// The same to another node. While packets cannot leave, takes those that come.
void ExchangeCall::send(std::int64_t writer, std::int64_t round) {
    Mailbox& mailbox = exchange_.mailbox_;
    FragmentCursor fragments(io_, windows_);
    Fragment fragment;
    bool more = fragments.next(fragment);
    std::int64_t sent = 0;
    for (bool first = true; first || more; first = false) {
        std::byte* data = nullptr;
        work_until([&] {
            take_packets(round);
            data = mailbox.free_buffer(Mailbox::Purpose::question);
            return data != nullptr;
        });
        RunWriter& runs = mailbox.runs();
        runs.clear();
        PacketHeader header;
        header.round = static_cast<std::int32_t>(round);
        while (more && header.data_bytes < Mailbox::data_capacity) {
            const std::int64_t bytes = std::min(fragment.bytes, Mailbox::data_capacity - header.data_bytes);
            if (!runs.add({fragment.at, bytes})) break;
            copy_bytes(data + header.data_bytes, fragment.memory, bytes);
            header.data_bytes += bytes;
            fragment = {fragment.memory + bytes, fragment.at + bytes, fragment.bytes - bytes};
            if (fragment.bytes == 0) more = fragments.next(fragment);
        }
        runs.finish();
        header.last = more ? 0 : 1;
        mailbox.send(Mailbox::Purpose::question, rank_of(writer), Tag::data, header, &runs);
        sent += header.data_bytes;
    }
    tell_handed(writer, round, sent);
}

/// Packets of this round for this rank as a writer, as far as they have come.
void ExchangeCall::take_packets(std::int64_t round) {
    if (owing_ == 0) return;
    const Slot slot = this->slot(mine_, round);
    for (const int rank : exchange_.round_others_) {
        char& owes = exchange_.owes_[static_cast<std::size_t>(rank)];
        if ((owes & owes_now) == 0) continue;
        Mailbox::Packet packet;
        while ((owes & owes_now) != 0 && exchange_.mailbox_.receive(rank, Tag::data, packet)) {
            RunReader runs(packet.runs, packet.header.runs_bytes, compiled_.slot_bytes);
            Run run;
            const std::byte* from = packet.data;
            while (runs.next(run)) {
                copy_bytes(slot.data + run.at, from, run.bytes);
                if (maps_) mark(slot, run.at, run.bytes);
                from += run.bytes;
            }
            if (packet.header.last == 0) continue;
            owes = static_cast<char>(owes & ~owes_now);
            --owing_;
        }
    }
}

/// Waits for everyone's bytes of the round, moves them, and frees the buffer.
void ExchangeCall::collect(std::int64_t round) {
    Station& mine = station(mine_);
    const auto parity = static_cast<std::size_t>(round & 1);
    mine.expected[parity] += participants_;
    if (owing_ > 0) {
        work_until([&] {
            take_packets(round);
            return owing_ == 0;
        });
    }
    wait_for(mine.handed[parity], mine.expected[parity]);
    const Slot slot = this->slot(mine_, round);
    await_turn(round);
    on_storage([&] {
        store(slot);
        if (is_awaited(round)) settle(exchange_.flushes_.count());
    });
    if (maps_) std::memset(static_cast<void*>(slot.map), 0, static_cast<std::size_t>(compiled_.map_bytes()));
    end_turn(round);
}

void ExchangeCall::store(const Slot& slot) {
    const std::int64_t granule = compiled_.granule_bytes;
    // In the page cache an order of writes is none.
    const bool sends_on = compiled_.strategy.order == planner::Order::contention_free;
    const storage::Moment begun = storage::now();
    const std::size_t before = exchange_.flushes_.count();
    for (const planner::Window& window : my_windows_) {
        const std::int64_t end = window.at + window.file.length;
        if (!maps_) {
            store_range(window, window.at, end, slot);
        } else {
            const std::int64_t last = (end + granule - 1) / granule;
            for (std::int64_t at = window.at / granule; at < last;) {
                const std::int64_t begin = find_granule(slot.map, at, last, true);
                at = find_granule(slot.map, begin, last, false);
                if (begin < at)
                    store_range(window, std::max(window.at, begin * granule), std::min(end, at * granule), slot);
            }
        }
        if (sends_on && error_ == 0) exchange_.flushes_.begin(*io_.backend, io_.descriptor, window.file, begun);
    }
    // With this round's bytes in its queue the storage is not idle while what comes before them is waited for, nor while the next
    // round's come together.
    settle(before);
}

/// Is somebody's turn after this one, or nothing in this call waited for otherwise? Without an end to wait for, a program could fill the
/// page cache, and nobody would know how fast a target is.
bool ExchangeCall::is_awaited(std::int64_t round) {
    bool awaited = false;
    compiled_.plan.schedule->visit_after({mine_, round}, [&](planner::Turn) { awaited = true; });
    shares_ = shares_ || awaited;
    const bool last = !io_.goes_on && round + 1 == rounds_of(mine_);
    return awaited || (last && (shares_ || !exchange_.has_waited_));
}

/// Waits for the oldest of what is on its way to storage. The first time counts even where nothing had to be waited for: what one takes at
/// most is known then.
void ExchangeCall::settle(std::size_t flushes) {
    if (error_ != 0) return exchange_.flushes_.forget();
    if (flushes == 0) return;
    const bool first = exchange_.flushes_.usual_ns() == 0;
    const auto waited = exchange_.flushes_.wait(*io_.backend, io_.descriptor, flushes, first);
    if (waited.error != 0) fail(waited.error);
    exchange_.has_waited_ = true;
}

void ExchangeCall::store_range(const planner::Window& window, std::int64_t begin, std::int64_t end, const Slot& slot) {
    if (error_ != 0) return;
    const storage::Transfer done =
        io_.backend->write_at(io_.descriptor, slot.data + begin, end - begin, window.file.offset + (begin - window.at));
    ++operations_;
    tell_operation({window.file.offset + (begin - window.at), end - begin});
    if (done.error != 0) fail(done.error);
}

/// Writers tell ranks of other nodes that their bytes are in the file, or why not.
void ExchangeCall::exchange_receipts(Outcome& outcome) {
    Mailbox& mailbox = exchange_.mailbox_;
    std::size_t to = 0;
    std::int64_t from = 0;
    work_until([&] {
        for (; to < exchange_.call_others_.size(); ++to) {
            if (mailbox.free_buffer(Mailbox::Purpose::answer) == nullptr) break;
            PacketHeader header;
            header.error = error_;
            mailbox.send(Mailbox::Purpose::answer, exchange_.call_others_[to], Tag::receipt, header, nullptr);
        }
        for (; from < compiled_.writers(); ++from) {
            if (is_local(from) || last_round_[static_cast<std::size_t>(from)] < 0) continue;
            Mailbox::Packet packet;
            if (!mailbox.receive(rank_of(from), Tag::receipt, packet)) break;
            if (packet.header.error != 0) outcome.error = packet.header.error;
        }
        return to == exchange_.call_others_.size() && from == compiled_.writers() && mailbox.all_sent();
    });
}

}  // namespace ioweir::exchange
