#include "exchange/exchange_call.hpp"

#include <ctime>
#include <new>

#include "base/raw_syscall.hpp"

namespace ioweir::exchange {

using layout::Extent;

bool FragmentCursor::next(Fragment& fragment) {
    if (io_.memory == nullptr) return false;
    Stretch stretch;
    while (!stretches_ || !stretches_->next(stretch)) {
        if (index_ == windows_.size() || windows_[index_].file.offset >= file_end_) return false;
        const Extent file = windows_[index_++].file;
        const auto part_before = [&](std::int64_t offset) {
            return std::clamp<std::int64_t>(io_.range.view->data_before(offset) - io_.range.first_byte, 0,
                                            io_.memory->bytes);
        };
        stretches_.emplace(*io_.memory, io_.range, part_before(file.offset),
                           part_before(std::min(file.end(), file_end_)));
    }
    const planner::Window& window = windows_[index_ - 1];
    fragment = {stretch.memory, window.at + (stretch.file.offset - window.file.offset), stretch.file.length};
    return true;
}

ExchangeCall::ExchangeCall(Exchange& exchange, const planner::CompiledPlan& compiled,
                           const planner::RequestSummary& request, const IoRequest& io, ExchangeFigures& figures)
    : exchange_(exchange),
      group_(exchange.group_),
      compiled_(compiled),
      request_(request),
      io_(io),
      figures_(figures),
      distance_(compiled.distance_to(request)),
      local_index_(exchange.local_index_),
      last_round_(exchange.last_round_),
      windows_(exchange.windows_),
      my_windows_(exchange.my_windows_) {
    ++exchange_.call_;
    std::int64_t next = 0;
    for (std::int64_t writer = 0; writer < compiled_.writers(); ++writer) {
        const auto index = static_cast<std::size_t>(writer);
        const int rank = rank_of(writer);
        local_index_[index] = group_.is_local(rank) ? next++ : -1;
        last_round_[index] = -1;
        exchange_.last_turn_[index] = -1;
        if (rank == group_.rank()) mine_ = writer;
    }
    exchange_.round_others_.clear();
    exchange_.call_others_.clear();
    figures_.messages -= exchange_.mailbox_.sent();
    figures_.sent_bytes -= exchange_.mailbox_.sent_bytes();
}

/// `done` of every station of the node has gone on by as many rounds as its writer had.
void ExchangeCall::end_call() {
    for (std::int64_t writer = 0; writer < compiled_.writers(); ++writer) {
        const std::int64_t index = local_index_[static_cast<std::size_t>(writer)];
        if (index >= 0) exchange_.base_[static_cast<std::size_t>(index)] = after_round(writer, rounds_of(writer) - 1);
    }
    for (const int rank : exchange_.call_others_) exchange_.owes_[static_cast<std::size_t>(rank)] = 0;
    figures_.messages += exchange_.mailbox_.sent();
    figures_.sent_bytes += exchange_.mailbox_.sent_bytes();
}

Exchange::Station& ExchangeCall::station(std::int64_t writer) const {
    auto* stations = std::launder(reinterpret_cast<Station*>(exchange_.memory_.data()));
    return stations[local_index_[static_cast<std::size_t>(writer)]];
}

ExchangeCall::Slot ExchangeCall::slot(std::int64_t writer, std::int64_t round) const {
    const auto index = static_cast<std::size_t>(2 * local_index_[static_cast<std::size_t>(writer)] + (round & 1));
    std::byte* const maps =
        exchange_.memory_.data() + static_cast<std::size_t>(exchange_.room_.stations) * sizeof(Station);
    std::byte* const slots = maps + exchange_.room_.map_bytes;
    return {slots + index * Exchange::slot_stride(compiled_),
            std::launder(reinterpret_cast<MapWord*>(maps + index * Exchange::map_stride(compiled_)))};
}

std::uint32_t ExchangeCall::after_round(std::int64_t writer, std::int64_t round) const {
    const auto index = static_cast<std::size_t>(local_index_[static_cast<std::size_t>(writer)]);
    return exchange_.base_[index] + static_cast<std::uint32_t>(round + 1);
}

void ExchangeCall::rest() {
    const timespec little{0, 20'000};
    raw::call(SYS_nanosleep, raw::word(&little), 0);
}

void ExchangeCall::begin_round(std::int64_t round) {
    round_ = round;
    participants_ = 0;
    owing_ = 0;
    exchange_.round_others_.clear();
    if (writes_in(round) && compiled_.windows(mine_, round, my_windows_, distance_)) find_participants(round);
}

/// Packets of a rank of another node, in this round.
void ExchangeCall::expect(int rank) {
    char& owes = exchange_.owes_[static_cast<std::size_t>(rank)];
    if ((owes & took_part) == 0) exchange_.call_others_.push_back(rank);
    owes = owes_now | took_part;
    exchange_.round_others_.push_back(rank);
    ++owing_;
}

void ExchangeCall::find_participants(std::int64_t round) {
    if (exchange_.participants_ != nullptr) {
        const Exchange::Participants& known = *exchange_.participants_;
        const auto index = static_cast<std::size_t>(round);
        participants_ = known.local[index];
        for (std::size_t i = index == 0 ? 0 : known.ends[index - 1]; i < known.ends[index]; ++i)
            expect(known.others[i]);
        return;
    }
    const Extent hull = Exchange::hull_of(my_windows_);
    for (int rank = 0; rank < group_.size(); ++rank) {
        if (!takes_part(rank, hull)) continue;
        if (group_.is_local(rank))
            ++participants_;
        else
            expect(rank);
    }
}

void ExchangeCall::await_turn(std::int64_t round) {
    compiled_.plan.schedule->visit_before({mine_, round}, [&](planner::Turn turn) {
        shares_ = true;
        if (is_local(turn.writer)) {
            wait_for(station(turn.writer).done, after_round(turn.writer, turn.round));
            return;
        }
        ++turns_due_;
        std::int64_t& last = exchange_.last_turn_[static_cast<std::size_t>(turn.writer)];
        work_until([&] {
            Mailbox::Packet packet;
            while (last < turn.round && exchange_.mailbox_.receive(rank_of(turn.writer), Tag::turn, packet)) {
                last = packet.header.round;
                ++turns_told_;
            }
            return last >= turn.round;
        });
    });
}

/// Frees what waits for this turn: on this node it sees `done`.
void ExchangeCall::end_turn(std::int64_t round) {
    Station& mine = station(mine_);
    mine.done.store(after_round(mine_, round), std::memory_order_release);
    wake_all(mine.done);
    if (group_.nodes() == 1) return;
    compiled_.plan.schedule->visit_after({mine_, round}, [&](planner::Turn turn) {
        if (is_local(turn.writer)) return;
        Mailbox& mailbox = exchange_.mailbox_;
        work_until([&] { return mailbox.free_buffer(Mailbox::Purpose::answer) != nullptr; });
        PacketHeader header;
        header.round = static_cast<std::int32_t>(round);
        mailbox.send(Mailbox::Purpose::answer, rank_of(turn.writer), Tag::turn, header, nullptr);
    });
}

/// One message comes for each turn waited for, and later ones say what earlier ones do: takes those that nobody had to read.
void ExchangeCall::await_last_turns() {
    work_until([&] {
        for (std::int64_t writer = 0; writer < compiled_.writers() && turns_told_ < turns_due_; ++writer) {
            Mailbox::Packet packet;
            if (is_local(writer)) continue;
            while (turns_told_ < turns_due_ && exchange_.mailbox_.receive(rank_of(writer), Tag::turn, packet))
                ++turns_told_;
        }
        return turns_told_ == turns_due_;
    });
}

void ExchangeCall::mark(const Slot& slot, std::int64_t at, std::int64_t bytes) const {
    // A granule that a window's edge cuts is wanted on its other side, too.
    const std::int64_t first = at / compiled_.granule_bytes;
    mark_granules(slot.map, first, (at + bytes - 1) / compiled_.granule_bytes + 1 - first);
}

void ExchangeCall::fail(int error) {
    error_ = error;
    Station& mine = station(mine_);
    mine.error.store(error, std::memory_order_relaxed);
    mine.failed_call.store(exchange_.call_, std::memory_order_relaxed);  // seen by those who see `done`
}

int ExchangeCall::error_of(std::int64_t writer) const {
    const Station& its = station(writer);
    if (its.failed_call.load(std::memory_order_relaxed) != exchange_.call_) return 0;
    return its.error.load(std::memory_order_relaxed);
}

}  // namespace ioweir::exchange
