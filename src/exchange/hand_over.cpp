#include "exchange/hand_over.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ioweir::exchange {

int Patience::next_us() {
    constexpr int most_us = 1000;
    return std::exchange(us_, std::min(most_us, us_ * 2 + 1));
}

void Patience::wait() {
    const int us = next_us();
    if (us == 0) {
        ::sched_yield();
    } else {
        const timespec time{0, us * 1000};
        ::nanosleep(&time, nullptr);
    }
}

SendRing::SendRing(MPI_Comm comm, int to, std::int64_t room)
    : comm_(comm), to_(to), room_(room), memory_(new char[static_cast<std::size_t>(room)]) {
    // Its pages are made now rather than while the program waits.
    std::memset(memory_.get(), 0, static_cast<std::size_t>(room_));
}

SendRing::~SendRing() { drain(); }

void SendRing::drain() {
    while (!sent_.empty()) collect(true);
}

void SendRing::collect(bool waits) {
    Patience patience;
    while (!sent_.empty()) {
        int done = 0;
        PMPI_Test(&sent_.front().request, &done, MPI_STATUS_IGNORE);
        if (done != 0) {
            tail_ = sent_.front().end;
            sent_.pop_front();
            waits = false;
            continue;
        }
        if (!waits) break;
        patience.wait();
    }
    if (sent_.empty()) head_ = tail_ = 0;
}

char* SendRing::take(std::int64_t bytes) {
    for (;;) {
        // One byte stays free, so that head_ == tail_ means that nothing is on its way.
        if (head_ >= tail_) {
            if (head_ + bytes <= room_) break;
            if (bytes < tail_) {
                head_ = 0;
                break;
            }
        } else if (head_ + bytes < tail_) {
            break;
        }
        collect(true);
    }
    return memory_.get() + std::exchange(head_, head_ + bytes);
}

void SendRing::post(char* from, std::int64_t bytes, int tag) {
    // Synchronous: it ends when the other rank takes it. Else small messages would pile up in that rank's MPI library, beyond any bound.
    Sent sent;
    PMPI_Issend(from, static_cast<int>(bytes), MPI_BYTE, to_, tag, comm_, &sent.request);
    sent.end = from - memory_.get() + bytes;
    sent_.push_back(sent);
}

void Letters::post(MPI_Comm comm, int to, int tag, std::string text) {
    Letter letter{MPI_REQUEST_NULL, std::make_unique<std::string>(std::move(text))};
    PMPI_Isend(letter.text->data(), static_cast<int>(letter.text->size()), MPI_BYTE, to, tag, comm, &letter.request);
    sent_.push_back(std::move(letter));
    std::erase_if(sent_, [](Letter& one) {
        int done = 0;
        PMPI_Test(&one.request, &done, MPI_STATUS_IGNORE);
        return done != 0;
    });
}

void Letters::wait_all() {
    for (Letter& letter : sent_) PMPI_Wait(&letter.request, MPI_STATUS_IGNORE);
    sent_.clear();
}

std::optional<Arrival> arrived(MPI_Comm comm, int from) {
    int there = 0;
    MPI_Status status;
    PMPI_Iprobe(from, MPI_ANY_TAG, comm, &there, &status);
    if (there == 0) return std::nullopt;
    Arrival arrival{status.MPI_TAG, 0};
    PMPI_Get_count(&status, MPI_BYTE, &arrival.bytes);
    return arrival;
}

void take_arrival(MPI_Comm comm, int from, const Arrival& arrival, char* to) {
    PMPI_Recv(to, arrival.bytes, MPI_BYTE, from, arrival.tag, comm, MPI_STATUS_IGNORE);
}

void let_messages_go_on(MPI_Comm comm) {
    int there = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, MPI_STATUS_IGNORE);
}

}  // namespace ioweir::exchange
