#include "partition/delegate.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sstream>
#include <utility>

#include "base/checked.hpp"
#include "ioweir/ioweir.h"

namespace ioweir::partition {
namespace {

constexpr std::int64_t wire_bytes = sizeof(Wire);
constexpr std::int64_t least_reserve = std::int64_t{256} << 10;

Failure no_memory(const std::string& what, std::int64_t bytes) {
    return {IOWEIR_ERR_MEMORY,
            {"a delegate has no memory for " + what, std::to_string(bytes) + " bytes",
             "make ioweir_delegate_memory smaller, or have more delegates"}};
}

}  // namespace

std::string to_text(const SetText& set) {
    const Options& options = set.options;
    std::string text = set.wanted.base + "\n" + std::to_string(set.wanted.step) + " " +
                       std::to_string(set.wanted.parts) + " " + std::to_string(set.wanted.files) + " " +
                       name_of(options.calls) + " " + std::to_string(options.block_bytes) + " " +
                       (options.directories ? "1" : "0") + " " + (options.replaces ? "1" : "0") + " " +
                       (options.durable ? "1" : "0") + "\n";
    for (const std::string& field : set.wanted.fields) text += field + "\n";
    text += "\n";  // no field is empty
    for (const auto& [key, value] : set.hints) text += key + "\n" + value + "\n";
    return text;
}

SetText parse_set(const std::string& text) {
    std::istringstream lines(text);
    SetText set;
    std::string numbers, calls, field;
    std::getline(lines, set.wanted.base);
    std::getline(lines, numbers);
    std::istringstream words(numbers);
    words >> set.wanted.step >> set.wanted.parts >> set.wanted.files >> calls >> set.options.block_bytes >>
        set.options.directories >> set.options.replaces >> set.options.durable;
    set.options.calls = calls_of_name(calls);
    while (std::getline(lines, field) && !field.empty()) set.wanted.fields.push_back(field);
    for (std::string key, value; std::getline(lines, key) && std::getline(lines, value);)
        set.hints.emplace_back(key, value);
    return set;
}

Delegate::Delegate(const Channels& channels, std::vector<int> workers, MPI_Comm delegates, Passage* passage,
                   std::int64_t memory_bytes, std::int64_t longest_message)
    : reserve_(least_reserve),
      channels_(channels),
      delegates_(delegates),
      passage_(passage),
      memory_(passage != nullptr ? passage->memory() : own_memory_),
      workers_(std::move(workers)),
      most_bytes_(memory_bytes),
      left_(workers_.size(), false),
      sink_(new char[static_cast<std::size_t>(longest_message)]) {}

Delegate::Set& Delegate::set_of(std::int64_t number) {
    Set& set = sets_[number];
    if (set.shares.empty()) set.shares = std::vector<Share>(workers_.size());
    return set;
}

bool Delegate::has_begun(const Set& set) const {
    return std::all_of(set.shares.begin(), set.shares.end(), [](const Share& share) { return share.begun; });
}

bool Delegate::is_whole(const Set& set) const {
    return std::all_of(set.shares.begin(), set.shares.end(), [](const Share& share) {
        return share.promised == share.blocks && (share.blocks_here.empty() || share.blocks_here.back().is_whole());
    });
}

void Delegate::serve() {
    const Reserve::Use use(reserve_);
    exchange::Patience patience;
    while (std::find(left_.begin(), left_.end(), false) != left_.end() || !sets_.empty()) {
        bool any = false;
        for (std::size_t worker = 0; worker < workers_.size(); ++worker)
            any = (!left_[worker] && take_from(worker)) || any;
        if (any)
            patience.reset();
        else
            rest(patience);
    }
    told_.wait_all();
}

void Delegate::rest(exchange::Patience& patience) {
    if (passage_ == nullptr) return patience.wait();
    // Messages must be looked for; a parcel that there was no memory for waits for a message.
    const bool is_alone = workers_.size() == 1 && !passage_->next();
    passage_->wait(is_alone ? std::nullopt : std::optional(std::chrono::microseconds(patience.next_us())));
}

bool Delegate::take_from(std::size_t worker) {
    const bool any = worker == 0 && passage_ != nullptr ? take_parcel() : take_message(worker);
    if (any) {
        recover();
        go_on();
    }
    return any;
}

bool Delegate::take_message(std::size_t worker) {
    const std::optional<exchange::Arrival> arrival = exchange::arrived(channels_.blocks, workers_[worker]);
    if (!arrival) return false;
    const auto kind = static_cast<Message>(arrival->tag);
    // How long a block is that comes in several messages is not known yet.
    if (kind == Message::block && !make_room(arrival->bytes)) return false;
    if (kind == Message::first && !make_room(most_bytes_)) return false;
    // Further bytes of a block are copied to their place, which is there; all other messages are kept.
    Buffer message;
    if (kind != Message::more) message = memory_or_none(arrival->bytes);
    char* const to = message.empty() ? sink_.get() : message.data.get();
    exchange::take_arrival(channels_.blocks, workers_[worker], *arrival, to);
    take(worker, to, std::move(message));
    return true;
}

bool Delegate::take_parcel() {
    const std::optional<Wire> wire = passage_->next();
    if (!wire) return false;
    const bool is_block = wire->kind == Message::block;
    if (is_block && !make_room(wire->bytes)) return false;
    Passage::Parcel parcel = passage_->take();
    if (!is_block) {
        take_word(0, *wire, parcel.text.data());
    } else {
        if (parcel.is_lent()) {
            parcel.block = memory_or_none(wire->bytes);
            if (!parcel.block.empty()) parcel.copy_into(parcel.block);
        }
        if (parcel.block.empty())
            drop(0, *wire);
        else
            keep(0, *wire, Block{wire->field, wire->part, std::move(parcel.block), 0, wire->bytes});
    }
    passage_->done();
    return true;
}

void Delegate::drop(std::size_t worker, const Wire& wire) {
    Share& share = set_of(wire.set).shares[worker];
    ++share.blocks;
    share.drops = true;
    if (!share.failure) share.failure = no_memory("a block", wire.number);
}

void Delegate::recover() {
    const auto refills = [&] {
        memory_.keep(0);
        return reserve_.refill();
    };
    if (reserve_.is_there() || refills()) return;
    for (auto& [number, set] : sets_) {
        if (set.file || set.failure) write_some(set);
    }
    if (refills()) return;
    for (auto& [number, set] : sets_) drop_blocks(set);
    (void)refills();  // without it, sets that are begun later fail
}

void Delegate::drop_blocks(Set& set) {
    set.lacks_memory = true;
    for (Share& share : set.shares) {
        if (share.blocks_here.empty()) continue;
        share.drops = share.drops || !share.blocks_here.back().is_whole();
        for (const Block& block : share.blocks_here) held_bytes_ -= block.memory.bytes;
        share.blocks_here.clear();
    }
}

std::int64_t Delegate::small_bytes(const Set& set) const {
    constexpr std::int64_t of_worker = 512, of_block = 256, of_entry = 64, most_parts = INT32_MAX;
    const bool has_table = set.file && set.file->rank_in_file() == 0;
    const std::int64_t parts = has_table ? std::min(set.file->parts_of_file(), most_parts) : 0;
    std::int64_t own = 0;
    for (const Share& share : set.shares) own += std::clamp<std::int64_t>(share.parts, 0, most_parts);
    return least_reserve + of_worker * std::ssize(workers_) +
           (of_block * own + of_entry * parts) * std::ssize(set.text->wanted.fields);
}

Buffer Delegate::memory_or_none(std::int64_t bytes) {
    for (const bool last : {false, true}) {
        try {
            return memory(bytes);
        } catch (const std::bad_alloc&) {
            if (last) break;
        }
        for (auto& [number, set] : sets_) {
            if (set.file || set.failure) write_some(set);
        }
        memory_.keep(0);
    }
    return {};
}

Buffer Delegate::memory(std::int64_t bytes) { return memory_.take(bytes, most_bytes_ - held_bytes_ - bytes); }

void Delegate::give_back(Block& block) {
    held_bytes_ -= block.memory.bytes;
    memory_.give_back(std::move(block.memory));
}

void Delegate::take(std::size_t worker, const char* data, Buffer message) {
    Wire wire;
    std::memcpy(&wire, data, sizeof wire);
    if (wire.kind == Message::block || wire.kind == Message::first)
        take_block(worker, wire, std::move(message));
    else if (wire.kind == Message::more)
        take_more(worker, wire, data + wire_bytes);
    else
        take_word(worker, wire, data + wire_bytes);
}

void Delegate::take_word(std::size_t worker, const Wire& wire, const char* text) {
    if (wire.kind == Message::leave) {
        left_[worker] = true;
        return;
    }
    Set& set = set_of(wire.set);
    Share& share = set.shares[worker];
    const std::string words(text, static_cast<std::size_t>(wire.bytes));
    if (wire.kind == Message::begin) {
        SetText of_set = parse_set(words);
        share.begun = true;
        share.parts = of_set.wanted.parts;
        if (!set.text) set.text = std::move(of_set);
    } else if (wire.kind == Message::end) {
        share.promised = wire.number;
        if (wire.code != 0 && !share.failure) share.failure = Failure{wire.code, parse_message(words)};
    }
}

void Delegate::take_more(std::size_t worker, const Wire& wire, const char* bytes) {
    Share& share = set_of(wire.set).shares[worker];
    if (share.drops) return;
    Block& block = share.blocks_here.back();
    std::memcpy(block.memory.data.get() + wire_bytes + wire.number, bytes, static_cast<std::size_t>(wire.bytes));
    block.there += wire.bytes;
}

void Delegate::take_block(std::size_t worker, const Wire& wire, Buffer message) {
    if (message.empty()) return drop(worker, wire);
    if (wire.kind == Message::first) {
        Buffer whole = memory_or_none(wire_bytes + wire.number);
        if (whole.empty()) return drop(worker, wire);
        std::memcpy(whole.data.get(), message.data.get(), static_cast<std::size_t>(message.bytes));
        message = std::move(whole);
    }
    keep(worker, wire, Block{wire.field, wire.part, std::move(message), wire_bytes, wire_bytes + wire.bytes});
}

void Delegate::keep(std::size_t worker, const Wire& wire, Block block) {
    Share& share = set_of(wire.set).shares[worker];
    held_bytes_ += block.memory.bytes;
    memory_.keep(most_bytes_ - held_bytes_);
    share.blocks_here.push_back(std::move(block));
    share.drops = false;
    ++share.blocks;
}

bool Delegate::make_room(std::int64_t bytes) {
    if (held_bytes_ + bytes <= most_bytes_) return true;
    for (auto& [number, set] : sets_) {
        if (set.file || set.failure) write_some(set);
        if (held_bytes_ + bytes <= most_bytes_) return true;
    }
    return false;  // blocks of a set that other workers have not begun yet stay until they have
}

/// Sets are made and finished in their order, by all delegates alike.
void Delegate::go_on() {
    for (auto found = sets_.find(next_); found != sets_.end(); found = sets_.find(next_)) {
        Set& set = found->second;
        if (!set.file && !set.failure) {
            if (!has_begun(set)) return;
            create(set);
            recover();
        }
        if (!is_whole(set)) return;
        finish(next_++);
        recover();
    }
}

void Delegate::create(Set& set) {
    Wanted wanted = set.text->wanted;
    wanted.parts = 0;
    for (const Share& share : set.shares) wanted.parts += share.parts;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (const auto& [key, value] : set.text->hints) MPI_Info_set(info, key.c_str(), value.c_str());
    std::optional<Failure> mine;
    if (!reserve_.refill(small_bytes(set))) mine = no_memory("a set besides its blocks", small_bytes(set));
    set.failure = SetFile::create(delegates_, wanted, set.text->options, info, mine, set.file);
    if (set.file) {
        set.file->settle(true);
        if (!reserve_.refill(small_bytes(set))) set.lacks_memory = true;
    }
    MPI_Info_free(&info);
}

std::vector<Delegate::Block> Delegate::collect(Set& set) {
    std::vector<Block> all;
    std::int64_t first = 0;  // of the worker's parts
    for (Share& share : set.shares) {
        while (!share.blocks_here.empty() && share.blocks_here.front().is_whole()) {
            Block& block = share.blocks_here.front();
            block.part += first;
            all.push_back(std::move(block));
            share.blocks_here.pop_front();
        }
        first += share.parts;
    }
    std::sort(all.begin(), all.end(),
              [](const Block& a, const Block& b) { return std::pair(a.field, a.part) < std::pair(b.field, b.part); });
    return all;
}

namespace {

std::vector<MemoryPiece> pieces_of(const auto& blocks) {
    std::vector<MemoryPiece> pieces;
    for (const auto& block : blocks) pieces.push_back(block.piece());
    return pieces;
}

}  // namespace

/// Before the end, by itself: at a place that follows from the delegate's number and how often it has done so.
void Delegate::write_some(Set& set) {
    std::vector<Block> blocks = collect(set);
    if (set.file && !set.lacks_memory && !blocks.empty()) {
        const std::vector<MemoryPiece> pieces = pieces_of(blocks);
        // As large as what a delegate may hold: regions of different ones cannot meet.
        const std::int64_t unit = set.text->options.block_bytes;
        const std::int64_t offset = set.file->region(set.regions++, ceil_divide(most_bytes_, unit) * unit);
        std::int64_t at = offset;
        for (std::size_t i = 0; i < blocks.size(); at += pieces[i++].bytes)
            set.file->place(blocks[i].field, blocks[i].part, at);
        set.file->move(pieces, offset, true);
    }
    for (Block& block : blocks) give_back(block);
}

void Delegate::finish(std::int64_t number) {
    Set& set = sets_.at(number);
    std::optional<Failure> failure = set.failure;
    std::vector<Block> blocks = collect(set);
    if (set.file) {
        const std::vector<MemoryPiece> pieces = pieces_of(blocks);
        for (const Share& share : set.shares) set.file->remember(share.failure);
        if (set.lacks_memory) set.file->remember(no_memory("a set besides its blocks", small_bytes(set)));
        set.file->end_regions();
        std::int64_t at = set.file->take_room(set.file->gather_sizes(total(pieces)));
        const std::int64_t offset = at;
        for (std::size_t i = 0; i < blocks.size(); at += pieces[i++].bytes)
            set.file->place(blocks[i].field, blocks[i].part, at);
        set.file->move(pieces, offset);
        failure = set.file->close();
    }
    for (Block& block : blocks) give_back(block);
    sets_.erase(number);
    tell(number, failure);
}

void Delegate::tell(std::int64_t number, const std::optional<Failure>& failure) {
    std::string text;
    if (failure) text = to_message(failure->error);
    Wire wire;
    wire.kind = Message::result;
    wire.code = failure ? failure->code : 0;
    wire.set = number;
    wire.bytes = std::ssize(text);
    if (passage_ != nullptr) passage_->tell(failure);
    const std::string message = std::string(reinterpret_cast<const char*>(&wire), sizeof wire) + text;
    for (std::size_t i = passage_ != nullptr ? 1 : 0; i < workers_.size(); ++i)
        told_.post(channels_.results, workers_[i], static_cast<int>(Message::result), message);
}

}  // namespace ioweir::partition
