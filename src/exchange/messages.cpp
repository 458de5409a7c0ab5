#include "exchange/messages.hpp"

#include <cstring>

namespace ioweir::exchange {

void RunWriter::put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_[static_cast<std::size_t>(size_++)] = static_cast<std::byte>(value | 0x80);
    bytes_[static_cast<std::size_t>(size_++)] = static_cast<std::byte>(value);
}

void RunWriter::put_pending() {
    if (repeats_ == 0) return;
    put(static_cast<std::uint64_t>(gap_));
    put(static_cast<std::uint64_t>(length_));
    put(static_cast<std::uint64_t>(repeats_));
    repeats_ = 0;
}

bool RunWriter::add(Run run) {
    const std::int64_t gap = run.at - end_;
    if (repeats_ > 0 && gap == gap_ && run.bytes == length_) {
        ++repeats_;
    } else {
        if (size_ + 2 * longest_entry > capacity) return false;
        put_pending();
        gap_ = gap;
        length_ = run.bytes;
        repeats_ = 1;
    }
    end_ = run.at + run.bytes;
    return true;
}

void RunWriter::finish() { put_pending(); }

void RunWriter::clear() {
    size_ = 0;
    end_ = 0;
    repeats_ = 0;
}

bool RunReader::get(std::int64_t& value) {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 63 && at_ != end_; shift += 7) {
        const auto next = static_cast<std::uint64_t>(*at_++);
        result |= (next & 0x7fU) << shift;
        if (next < 0x80) {
            value = static_cast<std::int64_t>(result);
            return true;
        }
    }
    return false;
}

bool RunReader::next(Run& run) {
    if (repeats_ == 0) {
        if (at_ == end_ || !get(gap_) || !get(length_) || !get(repeats_)) return false;
        if (repeats_ <= 0) return false;
    }
    if (gap_ < 0 || length_ <= 0 || gap_ > limit_ - place_ || length_ > limit_ - place_ - gap_) return false;
    --repeats_;
    run = {place_ + gap_, length_};
    place_ = run.at + run.bytes;
    return true;
}

void Mailbox::open(MPI_Comm comm) {
    if (memory_) return;
    memory_ = std::unique_ptr<Memory>(new Memory);  // uninitialised on purpose: pages are used as packets fill them
    memory_->runs.clear();
    comm_ = comm;
    requests_.fill(MPI_REQUEST_NULL);
}

std::byte* Mailbox::free_buffer(Purpose purpose) {
    const auto kind = static_cast<std::size_t>(purpose);
    for (std::size_t i = kind * buffers_each; i < (kind + 1) * buffers_each; ++i) {
        int done = 1;
        if (requests_[i] != MPI_REQUEST_NULL) PMPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
        if (done == 0) continue;
        given_[kind] = i;
        return memory_->outgoing[i].data() + sizeof(PacketHeader);
    }
    return nullptr;
}

void Mailbox::send(Purpose purpose, int to, Tag tag, const PacketHeader& header, const RunWriter* runs) {
    const std::size_t i = given_[static_cast<std::size_t>(purpose)];
    std::byte* const packet = memory_->outgoing[i].data();
    PacketHeader whole = header;
    whole.runs_bytes = runs != nullptr ? static_cast<std::int32_t>(runs->size()) : 0;
    std::memcpy(packet, &whole, sizeof whole);
    const auto data_end = sizeof whole + static_cast<std::size_t>(header.data_bytes);
    if (runs != nullptr) std::memcpy(packet + data_end, runs->data(), static_cast<std::size_t>(runs->size()));
    const int bytes = static_cast<int>(data_end) + whole.runs_bytes;
    PMPI_Isend(packet, bytes, MPI_BYTE, to, static_cast<int>(tag), comm_, &requests_[i]);
    ++sent_;
    sent_bytes_ += bytes;
}

bool Mailbox::all_sent() {
    int done = 0;
    PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
}

bool Mailbox::receive(int from, Tag tag, Packet& packet) {
    int there = 0;
    PMPI_Iprobe(from, static_cast<int>(tag), comm_, &there, MPI_STATUS_IGNORE);
    if (there == 0) return false;
    std::byte* const memory = memory_->incoming.data();
    PMPI_Recv(memory, static_cast<int>(packet_bytes), MPI_BYTE, from, static_cast<int>(tag), comm_, MPI_STATUS_IGNORE);
    std::memcpy(&packet.header, memory, sizeof packet.header);
    packet.data = memory + sizeof packet.header;
    packet.runs = packet.data + packet.header.data_bytes;
    return true;
}

}  // namespace ioweir::exchange
