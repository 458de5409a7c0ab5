#include "sim/collective.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace ioweir::sim {

using layout::Extent;
using planner::Turn;

void Collective::begin(CollectiveCall call, Callback handed_over, Callback over) {
    call_ = std::move(call);
    handed_over_ = handed_over;
    over_ = over;
    work_ = {};
    const planner::Schedule& schedule = *call_.plan->schedule;
    writes_ = call_.plan->writes;
    const int count = call_.topology->ranks();
    ranks_.assign(static_cast<std::size_t>(count), {});
    writers_.assign(static_cast<std::size_t>(schedule.writers()), {});
    operations_.assign(writers_.size(), {});
    rounds_.clear();
    sent_.clear();
    most_rounds_ = call_.plan->rounds();
    work_.rounds = most_rounds_;
    done_.assign(writers_.size() * static_cast<std::size_t>(most_rounds_), true);
    exchanges_ = false;
    for (std::size_t writer = 0; writer < writers_.size(); ++writer) {
        const auto number = static_cast<std::int64_t>(writer);
        writers_[writer].rank = schedule.writer_rank(number);
        exchanges_ = exchanges_ || schedule.has_buffer(number);
        list_rounds(number);
    }
    if (writes_)
        sort_by_rank();
    else
        for (const Sent& sent : sent_) ++ranks_[sent.rank].end;
    Seconds last = events_.now();
    for (const Seconds arrival : call_.arrivals) last = std::max(last, arrival);
    // A reduction in which ranks meet in pairs.
    const auto steps = static_cast<double>(std::bit_width(static_cast<unsigned>(count - 1)));
    if (exchanges_) last += steps * fabric_.message_time();
    unfinished_ = not_handed_over_ = ranks_.size();
    call_.in_step = call_.in_step && exchanges_;
    parked_.clear();
    if (call_.in_step) begin_step();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const Seconds comes = exchanges_ || call_.arrivals.empty() ? last : call_.arrivals[rank];
        events_.at(comes, {this, rank_comes, static_cast<std::uint32_t>(rank)});
    }
}

/// The rounds in which a writer has something to do, and what it is handed in them.
void Collective::list_rounds(std::int64_t number) {
    const planner::Schedule& schedule = *call_.plan->schedule;
    Writer& writer = writers_[static_cast<std::size_t>(number)];
    writer.first = writer.now = rounds_.size();
    const bool has_buffer = schedule.has_buffer(number);
    for (std::int64_t round = 0; round < schedule.rounds(number); ++round) {
        Round one{static_cast<std::uint32_t>(round), 0, 0, sent_.size()};
        bool works = false;
        schedule.visit_messages(*call_.pattern, number, round, [&](const planner::Message& message) {
            works = true;
            if (!has_buffer) return;
            std::int64_t bytes = 0;
            for (const Extent& extent : message.extents) bytes += extent.length;
            sent_.push_back({static_cast<std::uint32_t>(message.rank), static_cast<std::uint32_t>(number),
                             static_cast<std::uint32_t>(round), static_cast<std::uint32_t>(message.extents.size()),
                             bytes});
            ++one.expected;
        });
        // A window of which nobody wants anything is read where all windows are.
        if (!works && !writes_) schedule.visit_operations(*call_.pattern, number, round, [&](Extent) { works = true; });
        if (!works) continue;
        work_.messages += one.expected;
        rounds_.push_back(one);
        done_[index_of({number, round})] = false;
    }
    writer.end = rounds_.size();
    if (writer.first == writer.end) return;
    // Where turns keep writers apart, rounds belong together by their numbers.
    if (call_.in_step && call_.plan->strategy.order == planner::Order::sequential)
        writer.first_round = rounds_[writer.first].number;
    ++work_.writers;
    ranks_[static_cast<std::size_t>(writer.rank)].writer = static_cast<std::int32_t>(number);
}

/// A rank hands over round by round, and in a round writer by writer.
void Collective::sort_by_rank() {
    std::vector<std::size_t> first(ranks_.size() + 1, 0);
    for (const Sent& sent : sent_) ++first[sent.rank + 1];
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        first[rank + 1] += first[rank];
        ranks_[rank].next = first[rank];
        ranks_[rank].end = first[rank + 1];
    }
    std::vector<Sent> sorted(sent_.size());
    for (const Sent& sent : sent_) sorted[first[sent.rank]++] = sent;
    sent_ = std::move(sorted);
    for (const Rank& rank : ranks_)
        std::stable_sort(sent_.begin() + static_cast<std::ptrdiff_t>(rank.next),
                         sent_.begin() + static_cast<std::ptrdiff_t>(rank.end),
                         [this](const Sent& a, const Sent& b) { return step_of(a) < step_of(b); });
}

/// The next one in which anybody does anything.
void Collective::begin_step() {
    left_in_step_ = 0;
    step_ = UINT32_MAX;
    for (const Writer& writer : writers_)
        if (writer.now < writer.end) step_ = std::min(step_, step_of(writer));
    for (const Writer& writer : writers_)
        if (writer.now < writer.end && step_of(writer) == step_)
            left_in_step_ += 1 + (writes_ ? 0 : rounds_[writer.now].expected);
}

/// A writer has ended its round, or a reader has got its bytes. After the last one the ranks agree on the next round.
void Collective::end_part_of_step() {
    if (--left_in_step_ > 0) return;
    const std::uint32_t over = step_;
    begin_step();
    const std::uint32_t next = std::exchange(step_, over);
    if (next == UINT32_MAX) return;
    const auto steps = static_cast<double>(std::bit_width(static_cast<unsigned>(ranks_.size() - 1)));
    events_.after(steps * fabric_.message_time(), {this, step_begins, next});
}

bool Collective::must_wait_for_step(const Rank& rank) const {
    if (!call_.in_step) return false;
    std::uint32_t next = UINT32_MAX;
    if (writes_ && rank.next < rank.end) next = step_of(sent_[rank.next]);
    if (rank.writer >= 0)
        if (const Writer& writer = writers_[static_cast<std::size_t>(rank.writer)]; writer.now < writer.end)
            next = std::min(next, step_of(writer));
    return next != UINT32_MAX && next > step_;
}

/// The next step of a rank that is free to make one.
void Collective::advance(std::uint32_t number) {
    Rank& rank = ranks_[number];
    Writer* const writer = rank.writer < 0 ? nullptr : &writers_[static_cast<std::size_t>(rank.writer)];
    const bool stores = writer != nullptr && writer->now < writer->end;
    if (!rank.handed_over && (!writes_ || rank.next == rank.end)) {
        rank.handed_over = true;
        if (call_.behind) tell_returned(number);
        if (--not_handed_over_ == 0) std::exchange(handed_over_, {})();
    }
    if (rank.parked) return;
    if (must_wait_for_step(rank)) {
        rank.parked = true;
        return parked_.push_back(number);
    }
    if (writes_ && rank.next < rank.end && (!stores || step_of(sent_[rank.next]) <= step_of(*writer))) {
        const Sent& sent = sent_[rank.next];
        if (!has_buffer_for(sent)) return writers_[sent.writer].waiting.push_back(number);
        ++rank.next;
        const auto round = static_cast<std::uint32_t>(&sent - sent_.data());
        if (call_.observer != nullptr)
            call_.observer->handed(static_cast<int>(number), {sent.writer, sent.round}, sent.bytes);
        if (processors_.modelled())
            return processors_.work(static_cast<int>(number), costs_.handover(sent.pieces, sent.bytes),
                                    {this, packed, round});
        return fabric_.send(node_of(static_cast<int>(number)), node_of(writers_[sent.writer].rank), sent.bytes,
                            {this, bytes_left, number}, {this, bytes_there, round});
    }
    if (stores) return collect(static_cast<std::uint32_t>(rank.writer));
    finish_rank(number);
}

/// A writer has two buffers: of the round that it is at, and of the next.
bool Collective::has_buffer_for(const Sent& sent) {
    if (call_.behind || call_.in_step) return true;  // in step: nobody sends what is not wanted yet
    const Writer& writer = writers_[sent.writer];
    return writer.now + 1 >= writer.end || sent.round <= rounds_[writer.now + 1].number;
}

void Collective::collect(std::uint32_t number) {
    Writer& writer = writers_[number];
    const Round& round = rounds_[writer.now];
    if (writer.doing == Doing::nothing) writer.doing = Doing::collecting;
    const bool ready = writes_ ? round.arrived == round.expected : writer.untaken[(writer.now - writer.first) & 1] == 0;
    if (writer.doing != Doing::collecting || !ready) return;
    work_.exchange_s += events_.now() - writer.since;
    writer.since = events_.now();
    take_turn(number);
}

void Collective::take_turn(std::uint32_t number) {
    Writer& writer = writers_[number];
    writer.doing = Doing::waiting;
    if (!call_.in_step)
        call_.plan->schedule->visit_before(turn_of(number),
                                           [&](Turn turn) { writer.missing += is_done(turn) ? 0 : 1; });
    if (writer.missing == 0) store(number);
}

void Collective::store(std::uint32_t number) {
    Writer& writer = writers_[number];
    work_.wait_s += events_.now() - writer.since;
    writer.doing = Doing::storing;
    writer.since = events_.now();
    writer.locks_before = clients_.lock_s(static_cast<std::uint32_t>(writer.rank));
    writer.next_operation = 0;
    layout::ExtentList& operations = operations_[number];
    operations.clear();
    const planner::Schedule& schedule = *call_.plan->schedule;
    const Turn turn = turn_of(number);
    const auto add = [&](Extent extent) { layout::append_joining(operations, extent); };
    // What everybody's bytes fill is one operation a window, as it is where they are looked at one by one.
    if (call_.dense) schedule.visit_windows(turn.writer, turn.round, add);
    if (operations.empty())
        schedule.visit_operations(*call_.pattern, turn.writer, turn.round,
                                  [&](Extent extent) { operations.push_back(extent); });
    if (call_.dense) {
        const Extent region = call_.pattern->bounds();
        for (Extent& extent : operations) extent = layout::intersect(extent, region);
        std::erase_if(operations, [](const Extent& extent) { return extent.empty(); });
    }
    next_operation(number);
}

void Collective::next_operation(std::uint32_t number) {
    Writer& writer = writers_[number];
    if (writer.next_operation == operations_[number].size()) {
        bool awaited = false;
        if (!call_.in_step) call_.plan->schedule->visit_after(turn_of(number), [&](Turn) { awaited = true; });
        // Who comes next on the same targets must not meet what is on its way to them.
        if (awaited && writes_)
            return clients_.settle(static_cast<std::uint32_t>(writer.rank), {this, settled, number});
        return end_round(number);
    }
    const layout::ExtentList& operations = operations_[number];
    const Extent extent = operations[writer.next_operation++];
    const Place place = call_.place(number, extent);
    std::int64_t bytes = extent.length, pieces = 1;
    // A log takes pieces from anywhere behind each other: one operation (Backend::write_scattered_at).
    for (; call_.joins && pieces < most_joined && writer.next_operation < operations.size(); ++pieces) {
        const Extent next = operations[writer.next_operation++];
        (void)call_.place(number, next);
        bytes += next.length;
    }
    ++work_.operations;
    work_.bytes += bytes;
    writer.operation = {
        writer.rank, turn_of(number), place.file->number, {place.offset, bytes}, writes_, events_.now(), 0};
    writer.access = {
        place.file, {place.offset, bytes}, writes_, static_cast<std::uint32_t>(writer.rank), node_of(writer.rank)};
    if (!processors_.modelled()) return clients_.begin(writer.access, {this, access_over, number});
    const std::int64_t pages =
        writes_ ? page_cache_.write(writer.access.node, place.file->number, writer.access.range) : 0;
    if (writes_) writer.access.page_bytes = pages * PageCache::page_bytes;
    writer.work_s = costs_.operation(writes_, pieces, bytes, pages);
    if (!call_.plan->schedule->has_buffer(number)) writer.work_s += picking(writer.rank, extent, pieces, bytes);
    if (!writes_ || !locks_files_) return work_on_operation(number);
    writer.asked = events_.now();
    file_locks_.enter(node_of(writer.rank), place.file->number, {this, lock_taken, number});
}

/// What a rank that moves its own bytes copies besides: short pieces that it writes as one, and what it picks out of what it has read
/// (exchange/direct.cpp).
Seconds Collective::picking(int rank, Extent extent, std::int64_t pieces, std::int64_t bytes) const {
    const planner::DirectTuning& tuning = call_.plan->direct_tuning;
    if (writes_) return pieces > 1 && bytes / pieces < tuning.copy_below_bytes ? costs_.copy(0, bytes) : 0;
    std::int64_t wanted = 0, count = 0;
    call_.pattern->visit(rank, extent, [&](Extent piece) {
        wanted += piece.length;
        ++count;
    });
    return count > 1 ? costs_.copy(count, wanted) : 0;
}

void Collective::work_on_operation(std::uint32_t number) {
    const Writer& writer = writers_[number];
    processors_.work(call_.behind ? processors_.thread_of(writer.rank) : writer.rank, writer.work_s,
                     {this, worked, number});
}

void Collective::end_work_on_operation(std::uint32_t number) {
    const Access access = writers_[number].access;
    if (writes_ && locks_files_) file_locks_.leave(access.node, access.file->number);
    clients_.begin(access, {this, access_over, number});
}

/// A rank has packed a message, or copied it where it belongs.
void Collective::pass_message(std::uint32_t message) {
    const Sent sent = sent_[message];
    const int from = node_of(sender_of(sent)), to = node_of(taker_of(sent));
    const Callback left = writes_ ? Callback{this, bytes_left, sent.rank} : Callback{};
    if (from != to) return fabric_.send(from, to, sent.bytes, left, {this, crossed, message});
    if (shares_buffer(sent))
        take_message(message);
    else
        unpack(message);
    left();
}

void Collective::unpack(std::uint32_t message) {
    const Sent& sent = sent_[message];
    processors_.work(taker_of(sent), costs_.handover(sent.pieces, sent.bytes), {this, bytes_there, message});
}

void Collective::end_round(std::uint32_t number) {
    Writer& writer = writers_[number];
    const Turn turn = turn_of(number);
    const Seconds locks = clients_.lock_s(static_cast<std::uint32_t>(writer.rank)) - writer.locks_before +
                          std::exchange(writer.files_s, 0);
    work_.lock_s += locks;
    work_.storage_s += events_.now() - writer.since - locks;
    writer.since = events_.now();
    done_[index_of(turn)] = true;
    writer.doing = Doing::nothing;
    if (!writes_) give(number);
    ++writer.now;
    if (call_.in_step)
        end_part_of_step();
    else
        pass_on(turn);
    for (const std::uint32_t rank : std::exchange(writer.waiting, {})) advance(rank);
    advance(static_cast<std::uint32_t>(writer.rank));
}

/// What has been read goes to those who want it. The next round goes into the other buffer, when that is free.
void Collective::give(std::uint32_t number) {
    Writer& writer = writers_[number];
    const Round& round = rounds_[writer.now];
    writer.untaken[(writer.now - writer.first) & 1] = round.expected;
    for (std::uint32_t i = 0; i < round.expected; ++i) {
        const auto message = static_cast<std::uint32_t>(round.first_message + i);
        const Sent& sent = sent_[message];
        if (call_.observer != nullptr)
            call_.observer->handed(static_cast<int>(sent.rank), {sent.writer, sent.round}, sent.bytes);
        if (!processors_.modelled())
            fabric_.send(node_of(writer.rank), node_of(static_cast<int>(sent.rank)), sent.bytes, {},
                         {this, bytes_there, message});
        else if (shares_buffer(sent))
            unpack(message);
        else
            processors_.work(writer.rank, costs_.handover(sent.pieces, sent.bytes), {this, packed, message});
    }
}

void Collective::pass_on(Turn turn) {
    call_.plan->schedule->visit_after(turn, [&](Turn next) {
        Writer& writer = writers_[static_cast<std::size_t>(next.writer)];
        if (writer.doing != Doing::waiting || rounds_[writer.now].number != next.round) return;
        if (--writer.missing == 0) store(static_cast<std::uint32_t>(next.writer));
    });
}

void Collective::tell_returned(std::uint32_t number) {
    if (call_.observer != nullptr) call_.observer->returned(static_cast<int>(number), call_.number, events_.now());
}

void Collective::finish_rank(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.over || (!writes_ && rank.end > 0)) return;
    rank.over = true;
    if (!call_.behind) tell_returned(number);
    // Until all are through the call: where ranks exchange, they sleep until their bytes are moved.
    if (!exchanges_) processors_.spin(static_cast<int>(number), true);
    if (--unfinished_ > 0) return;
    for (std::size_t each = 0; each < ranks_.size(); ++each) processors_.spin(static_cast<int>(each), false);
    std::exchange(over_, {})();
}

void Collective::take_part(std::uint32_t number) {
    if (ranks_[number].writer >= 0) writers_[static_cast<std::size_t>(ranks_[number].writer)].since = events_.now();
    advance(number);
}

/// A message is where it belongs.
void Collective::take_message(std::uint32_t message) {
    const Sent sent = sent_[message];
    Writer& writer = writers_[sent.writer];
    const auto round = std::lower_bound(rounds_.begin() + static_cast<std::ptrdiff_t>(writer.first),
                                        rounds_.begin() + static_cast<std::ptrdiff_t>(writer.end), sent.round,
                                        [](const Round& its, std::uint32_t wanted) { return its.number < wanted; });
    if (writes_) {
        ++round->arrived;
        if (writer.doing == Doing::collecting) collect(sent.writer);
        return;
    }
    const auto place = static_cast<std::size_t>(round - rounds_.begin()) - writer.first;
    if (--writer.untaken[place & 1] == 0 && writer.doing == Doing::collecting) collect(sent.writer);
    if (--ranks_[sent.rank].end == 0) advance(sent.rank);
    if (call_.in_step) end_part_of_step();
}

void Collective::happen(std::uint32_t what, std::uint32_t which) {
    switch (what) {
        case rank_comes:
            if (!processors_.modelled()) return take_part(which);
            if (by_library_) processors_.spin(static_cast<int>(which), true);
            return processors_.work(static_cast<int>(which), costs_.call(), {this, entered, which});
        case entered:
            return take_part(which);
        case bytes_left:
            return advance(which);
        case packed:
            return pass_message(which);
        case crossed:
            return unpack(which);
        case lock_taken:
            writers_[which].files_s += events_.now() - writers_[which].asked;
            return work_on_operation(which);
        case worked:
            return end_work_on_operation(which);
        case bytes_there:
            return take_message(which);
        case access_over:
            if (call_.observer != nullptr) {
                writers_[which].operation.end = events_.now();
                call_.observer->moved(writers_[which].operation);
            }
            return next_operation(which);
        case step_begins:
            step_ = which;
            for (const std::uint32_t rank : std::exchange(parked_, {})) {
                ranks_[rank].parked = false;
                advance(rank);
            }
            return;
        default:
            return end_round(which);
    }
}

}  // namespace ioweir::sim
