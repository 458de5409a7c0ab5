// Reading through the exchange. In each round a writer first reads its windows, then all ranks take what is theirs out of the writers'
// buffers. Where little of the region is wanted, ranks of the node first mark what, so that the rest is not read.
#include <algorithm>
#include <cstring>

#include "exchange/exchange_call.hpp"

namespace ioweir::exchange {
Outcome Exchange::read(const planner::CompiledPlan& compiled, const planner::RequestSummary& request,
                       const IoRequest& io, ExchangeFigures& figures) {
    return ExchangeCall(*this, compiled, request, io, figures).read();
}

Outcome ExchangeCall::read() {
    maps_ = !compiled_.plan.window_rule.whole;
    Outcome outcome;
    for (std::int64_t round = 0; round < compiled_.rounds; ++round) {
        begin_round(round);
        if (maps_) visit_writers(round, [&](std::int64_t writer) { want(writer, round); });
        if (writes_in(round)) fetch(round);
        visit_writers(round, [&](std::int64_t writer) {
            is_local(writer) ? take(writer, round, outcome) : ask(writer, round, outcome);
        });
        if (owing_ > 0) {
            work_until([&] {
                answer(round);
                return owing_ == 0;
            });
        }
    }
    if (group_.nodes() > 1) {
        await_last_turns();
        work_until([&] { return exchange_.mailbox_.all_sent(); });
    }
    if (error_ != 0) outcome.error = error_;
    outcome.operations = operations_;
    end_call();
    return outcome;
}

void ExchangeCall::want(std::int64_t writer, std::int64_t round) {
    Station& its = station(writer);
    // Its map is free again once the round before the last has been read.
    if (round >= 2) wait_for(its.done, after_round(writer, round - 2));
    const Slot slot = this->slot(writer, round);
    FragmentCursor fragments(io_, windows_);
    Fragment fragment;
    while (fragments.next(fragment)) mark(slot, fragment.at, fragment.bytes);
    count_up(its.marked[round & 1]);
}

/// Reads this rank's windows into its buffer, when those of the round before the last are through with it.
void ExchangeCall::fetch(std::int64_t round) {
    Station& mine = station(mine_);
    const auto parity = static_cast<std::size_t>(round & 1);
    wait_for(mine.handed[parity], mine.expected[parity]);
    if (maps_) {
        mine.expected_marks[parity] += participants_;
        wait_for(mine.marked[parity], mine.expected_marks[parity]);
    }
    const Slot slot = this->slot(mine_, round);
    await_turn(round);
    std::int64_t valid_end = my_windows_.empty() ? 0 : my_windows_.front().file.offset;
    if (participants_ > 0 || owing_ > 0) on_storage([&] { valid_end = load(slot); });
    if (maps_) std::memset(static_cast<void*>(slot.map), 0, static_cast<std::size_t>(compiled_.map_bytes()));
    mine.expected[parity] += participants_;
    mine.valid_end[parity].store(valid_end, std::memory_order_relaxed);
    end_turn(round);
}

/// Returns the file offset below which what is wanted is in the slot.
std::int64_t ExchangeCall::load(const Slot& slot) {
    const std::int64_t granule = compiled_.granule_bytes;
    for (const planner::Window& window : my_windows_) {
        const std::int64_t end = window.at + window.file.length;
        const std::int64_t last = (end + granule - 1) / granule;
        std::int64_t at = window.at;
        while (at < end) {
            std::int64_t until = end;
            if (maps_) {
                std::int64_t begin = find_granule(slot.map, at / granule, last, true);
                if (begin == last) break;
                std::int64_t stop = find_granule(slot.map, begin, last, false);
                for (;;) {  // on over short gaps
                    const std::int64_t next = find_granule(slot.map, stop, last, true);
                    if (next == last || (next - stop) * granule > compiled_.plan.window_rule.longest_gap_bytes) break;
                    stop = find_granule(slot.map, next, last, false);
                }
                at = std::max(at, begin * granule);
                until = std::min(end, stop * granule);
            }
            const std::int64_t offset = window.file.offset + (at - window.at);
            const storage::Transfer done = io_.backend->read_at(io_.descriptor, slot.data + at, until - at, offset);
            ++operations_;
            tell_operation({offset, until - at});
            if (done.error != 0) fail(done.error);
            if (done.bytes < until - at) return offset + done.bytes;
            at = until;
        }
    }
    return INT64_MAX;
}

/// This rank's bytes out of a buffer on this node. What lies behind the end of the file leaves memory as it was.
void ExchangeCall::take(std::int64_t writer, std::int64_t round, Outcome& outcome) {
    Station& its = station(writer);
    wait_for(its.done, after_round(writer, round));
    const std::int64_t valid_end = its.valid_end[round & 1].load(std::memory_order_relaxed);
    if (const int error = error_of(writer); error != 0) outcome.error = error;
    const Slot slot = this->slot(writer, round);
    FragmentCursor fragments(io_, windows_, valid_end);
    Fragment fragment;
    std::int64_t bytes = 0;
    while (fragments.next(fragment)) {
        copy_bytes(fragment.memory, slot.data + fragment.at, fragment.bytes);
        bytes += fragment.bytes;
    }
    outcome.bytes += bytes;
    tell_handed(writer, round, bytes);
    count_up(its.handed[round & 1]);
}

/// The same from another node, a packet at a time; meanwhile answers those who ask this rank.
void ExchangeCall::ask(std::int64_t writer, std::int64_t round, Outcome& outcome) {
    Mailbox& mailbox = exchange_.mailbox_;
    FragmentCursor questions(io_, windows_);
    FragmentCursor places(io_, windows_);
    Fragment question, place;
    bool more = questions.next(question);
    std::int64_t taken = 0;
    for (bool first = true; first || more; first = false) {
        work_until([&] {
            answer(round);
            return mailbox.free_buffer(Mailbox::Purpose::question) != nullptr;
        });
        RunWriter& runs = mailbox.runs();
        runs.clear();
        PacketHeader header;
        header.round = static_cast<std::int32_t>(round);
        while (more && header.wanted < Mailbox::data_capacity) {
            const std::int64_t bytes = std::min(question.bytes, Mailbox::data_capacity - header.wanted);
            if (!runs.add({question.at, bytes})) break;
            header.wanted += bytes;
            question = {nullptr, question.at + bytes, question.bytes - bytes};
            if (question.bytes == 0) more = questions.next(question);
        }
        runs.finish();
        header.last = more ? 0 : 1;
        mailbox.send(Mailbox::Purpose::question, rank_of(writer), Tag::request, header, &runs);
        Mailbox::Packet packet{};
        work_until([&] {
            answer(round);  // before: what it receives would overwrite the packet
            return mailbox.receive(rank_of(writer), Tag::reply, packet);
        });
        if (packet.header.error != 0) outcome.error = packet.header.error;
        outcome.bytes += packet.header.data_bytes;
        taken += packet.header.data_bytes;
        const std::byte* from = packet.data;
        std::int64_t valid = packet.header.data_bytes;
        for (std::int64_t left = header.wanted; left > 0;) {
            if (place.bytes == 0) places.next(place);
            const std::int64_t bytes = std::min(place.bytes, left);
            const std::int64_t there = std::min(bytes, valid);
            if (there > 0) copy_bytes(place.memory, from, there);
            from += there;
            valid -= there;
            left -= bytes;
            place = {place.memory + bytes, place.at + bytes, place.bytes - bytes};
        }
    }
    tell_handed(writer, round, taken);
}

/// Requests of this round to this rank as a writer, as far as they have come.
void ExchangeCall::answer(std::int64_t round) {
    if (owing_ == 0) return;
    Mailbox& mailbox = exchange_.mailbox_;
    const std::int64_t valid_end = station(mine_).valid_end[round & 1].load(std::memory_order_relaxed);
    const Slot slot = this->slot(mine_, round);
    std::int64_t valid_place = 0;  // the end of what is valid, as a place in the buffer
    for (const planner::Window& window : my_windows_) {
        const std::int64_t valid = std::min(window.file.length, valid_end - window.file.offset);
        if (valid > 0) valid_place = window.at + valid;
    }
    for (const int rank : exchange_.round_others_) {
        char& owes = exchange_.owes_[static_cast<std::size_t>(rank)];
        while ((owes & owes_now) != 0) {
            std::byte* const data = mailbox.free_buffer(Mailbox::Purpose::answer);
            Mailbox::Packet packet;
            if (data == nullptr || !mailbox.receive(rank, Tag::request, packet)) break;
            PacketHeader header;
            header.round = packet.header.round;
            header.wanted = packet.header.wanted;
            header.error = error_;
            RunReader runs(packet.runs, packet.header.runs_bytes, compiled_.slot_bytes);
            Run run;
            while (runs.next(run)) {
                const std::int64_t bytes = std::clamp<std::int64_t>(valid_place - run.at, 0, run.bytes);
                copy_bytes(data + header.data_bytes, slot.data + run.at, bytes);
                header.data_bytes += bytes;
            }
            mailbox.send(Mailbox::Purpose::answer, rank, Tag::reply, header, nullptr);
            if (packet.header.last == 0) continue;
            owes = static_cast<char>(owes & ~owes_now);
            --owing_;
        }
    }
}

}  // namespace ioweir::exchange
