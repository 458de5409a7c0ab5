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

Delegate::Delegate(const Channels& channels, std::vector<int> workers, MPI_Comm delegates, std::int64_t memory_bytes,
                   std::int64_t longest_message)
    : channels_(channels),
      delegates_(delegates),
      workers_(std::move(workers)),
      most_bytes_(memory_bytes),
      left_(workers_.size(), false),
      sink_(new char[static_cast<std::size_t>(longest_message)]) {}

Delegate::Set& Delegate::set_of(std::int64_t number) {
    Set& set = sets_[number];
    if (set.shares.empty()) set.shares.resize(workers_.size());
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
    Patience patience;
    while (std::find(left_.begin(), left_.end(), false) != left_.end() || !sets_.empty()) {
        bool any = false;
        for (std::size_t worker = 0; worker < workers_.size(); ++worker)
            any = (!left_[worker] && take_from(worker)) || any;
        if (any)
            patience.reset();
        else
            patience.wait();
    }
    for (auto& [request, text] : told_) MPI_Wait(&request, MPI_STATUS_IGNORE);
    told_.clear();
}

bool Delegate::take_from(std::size_t worker) {
    int there = 0, bytes = 0;
    MPI_Status status;
    MPI_Iprobe(workers_[worker], MPI_ANY_TAG, channels_.blocks, &there, &status);
    if (there == 0) return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    // How long a block is that comes in several messages is not known yet.
    if (status.MPI_TAG == static_cast<int>(Message::block) && !make_room(bytes)) return false;
    if (status.MPI_TAG == static_cast<int>(Message::first) && !make_room(most_bytes_)) return false;
    // Further bytes of a block are copied to their place, which is there; all other messages are kept.
    std::vector<char> message;
    if (status.MPI_TAG != static_cast<int>(Message::more)) message = memory_or_none(bytes);
    char* const to = message.empty() ? sink_.get() : message.data();
    MPI_Recv(to, bytes, MPI_BYTE, workers_[worker], status.MPI_TAG, channels_.blocks, MPI_STATUS_IGNORE);
    take(worker, to, std::move(message));
    go_on();
    return true;
}

void Delegate::drop(std::size_t worker, const Wire& wire) {
    Share& share = set_of(wire.set).shares[worker];
    ++share.blocks;
    share.drops = true;
    if (!share.failure)
        share.failure = Failure{IOWEIR_ERR_MEMORY,
                                {"a delegate has no memory for a block", std::to_string(wire.number) + " bytes",
                                 "make ioweir_delegate_memory smaller, or have more delegates"}};
}

std::vector<char> Delegate::memory_or_none(std::int64_t bytes) {
    for (const bool last : {false, true}) {
        try {
            return memory(bytes);
        } catch (const std::bad_alloc&) {
            if (last) break;
        }
        for (auto& [number, set] : sets_) {
            if (set.file || set.failure) write_some(set);
        }
        forget_spare();
    }
    return {};
}

void Delegate::forget_spare() {
    spare_.clear();
    spare_bytes_ = 0;
}

/// Of a block that was written before, if there is one that is not much too large.
std::vector<char> Delegate::memory(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes);
    const auto found = std::find_if(spare_.begin(), spare_.end(), [&](const std::vector<char>& one) {
        return one.capacity() >= wanted && one.capacity() / 2 <= wanted;
    });
    std::vector<char> taken;
    if (found != spare_.end()) {
        taken = std::move(*found);
        spare_.erase(found);
        spare_bytes_ -= static_cast<std::int64_t>(taken.capacity());
    } else if (held_bytes_ + spare_bytes_ + bytes > most_bytes_) {
        forget_spare();
    }
    taken.resize(wanted);
    return taken;
}

void Delegate::give_back(std::vector<char> bytes) {
    held_bytes_ -= std::ssize(bytes);
    spare_bytes_ += static_cast<std::int64_t>(bytes.capacity());
    spare_.push_back(std::move(bytes));
}

void Delegate::take(std::size_t worker, const char* data, std::vector<char> message) {
    Wire wire;
    std::memcpy(&wire, data, sizeof wire);
    const char* const behind = data + wire_bytes;
    if (wire.kind == Message::leave) {
        left_[worker] = true;
        return;
    }
    Set& set = set_of(wire.set);
    Share& share = set.shares[worker];
    switch (wire.kind) {
        case Message::begin: {
            SetText text = parse_set(std::string(behind, static_cast<std::size_t>(wire.bytes)));
            share.begun = true;
            share.parts = text.wanted.parts;
            if (!set.text) set.text = std::move(text);
            break;
        }
        case Message::block:
        case Message::first:
            take_block(worker, wire, std::move(message));
            break;
        case Message::more: {
            if (share.drops) break;
            Block& block = share.blocks_here.back();
            std::memcpy(block.bytes.data() + wire_bytes + wire.number, behind, static_cast<std::size_t>(wire.bytes));
            block.there += wire.bytes;
            break;
        }
        case Message::end:
            share.promised = wire.number;
            if (wire.code != 0 && !share.failure)
                share.failure =
                    Failure{wire.code, parse_lines(std::string(behind, static_cast<std::size_t>(wire.bytes)))};
            break;
        default:
            break;
    }
}

void Delegate::take_block(std::size_t worker, const Wire& wire, std::vector<char> message) {
    if (message.empty()) return drop(worker, wire);
    if (wire.kind == Message::first) {
        std::vector<char> whole = memory_or_none(wire_bytes + wire.number);
        if (whole.empty()) return drop(worker, wire);
        std::copy(message.begin(), message.end(), whole.begin());
        message = std::move(whole);
    }
    Share& share = set_of(wire.set).shares[worker];
    Block block{wire.field, wire.part, std::move(message), wire_bytes + wire.bytes};
    held_bytes_ += std::ssize(block.bytes);
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
        }
        if (!is_whole(set)) return;
        finish(next_++);
    }
}

void Delegate::create(Set& set) {
    Wanted wanted = set.text->wanted;
    wanted.parts = 0;
    for (const Share& share : set.shares) wanted.parts += share.parts;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    for (const auto& [key, value] : set.text->hints) MPI_Info_set(info, key.c_str(), value.c_str());
    set.failure = SetFile::create(delegates_, wanted, set.text->options, info, {}, set.file);
    if (set.file) set.file->settle(true);
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
    for (const auto& block : blocks)
        pieces.push_back({block.bytes.data() + wire_bytes, std::ssize(block.bytes) - wire_bytes});
    return pieces;
}

}  // namespace

/// Before the end, by itself: at a place that follows from the delegate's number and how often it has done so.
void Delegate::write_some(Set& set) {
    std::vector<Block> blocks = collect(set);
    if (set.file && !blocks.empty()) {
        const std::vector<MemoryPiece> pieces = pieces_of(blocks);
        // As large as what a delegate may hold: regions of different ones cannot meet.
        const std::int64_t unit = set.text->options.block_bytes;
        const std::int64_t offset = set.file->region(set.regions++, ceil_divide(most_bytes_, unit) * unit);
        std::int64_t at = offset;
        for (std::size_t i = 0; i < blocks.size(); at += pieces[i++].bytes)
            set.file->place(blocks[i].field, blocks[i].part, at);
        set.file->move(pieces, offset, true);
    }
    for (Block& block : blocks) give_back(std::move(block.bytes));
}

void Delegate::finish(std::int64_t number) {
    Set& set = sets_.at(number);
    std::optional<Failure> failure = set.failure;
    std::vector<Block> blocks = collect(set);
    if (set.file) {
        const std::vector<MemoryPiece> pieces = pieces_of(blocks);
        for (const Share& share : set.shares) set.file->remember(share.failure);
        set.file->end_regions();
        std::int64_t at = set.file->take_room(set.file->gather_sizes(total(pieces)));
        const std::int64_t offset = at;
        for (std::size_t i = 0; i < blocks.size(); at += pieces[i++].bytes)
            set.file->place(blocks[i].field, blocks[i].part, at);
        set.file->move(pieces, offset);
        failure = set.file->close();
    }
    for (Block& block : blocks) give_back(std::move(block.bytes));
    sets_.erase(number);
    tell(number, failure);
}

void Delegate::tell(std::int64_t number, const std::optional<Failure>& failure) {
    std::string text;
    if (failure) text = to_lines(failure->error);
    Wire wire;
    wire.kind = Message::result;
    wire.code = failure ? failure->code : 0;
    wire.set = number;
    wire.bytes = std::ssize(text);
    for (const int worker : workers_) {
        auto message = std::make_unique<std::string>(reinterpret_cast<const char*>(&wire), sizeof wire);
        *message += text;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(message->data(), static_cast<int>(message->size()), MPI_BYTE, worker,
                  static_cast<int>(Message::result), channels_.results, &request);
        told_.emplace_back(request, std::move(message));
    }
    std::erase_if(told_, [](auto& one) {
        int done = 0;
        MPI_Test(&one.first, &done, MPI_STATUS_IGNORE);
        return done != 0;
    });
}

}  // namespace ioweir::partition
